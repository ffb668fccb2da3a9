package lab

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu"
)

// SendRandom starts a sender of random frames on a bus: rate frames per second, for a number of
// seconds, with the hexadecimal identifiers in turn.
func SendRandom(t *testing.T, bus, rate, seconds string, ids ...string) *Process {
	t.Helper()
	t.Setenv(SenderVar, "1")
	p := Start(t, os.Args[0], append([]string{bus, rate, seconds}, ids...)...)
	os.Unsetenv(SenderVar)
	return p
}

// AwaitSender waits for the end of a sender and returns the number of frames that the kernel took.
func AwaitSender(t *testing.T, p *Process) uint64 {
	t.Helper()
	var s sent
	if code := p.WaitFor(3 * time.Minute); code != 0 {
		t.Fatalf("%s: exit %d\n%s", p.Name, code, &p.Err)
	}
	if err := json.Unmarshal([]byte(p.Out.String()), &s); err != nil {
		t.Fatal(err)
	}
	t.Logf("sender: %d taken, %d refused", s.Taken, s.Refused)
	return s.Taken
}

// sent is the output of a sender: the numbers of frames that the kernel took and refused.
type sent struct{ Taken, Refused uint64 }

// sender is the main function of a test binary that is started as a sender. Its arguments are
// BUS RATE SECONDS ID... It sends RATE frames per second, or as many as the lab can, for SECONDS
// or until SIGTERM. Length and content of the frames are random; the hexadecimal identifiers take
// turns. Identifiers above 7FF are 29-bit ones. It returns the exit status.
func sender(args []string) int {
	result, err := send(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sender:", err)
		return 2
	}

	json.NewEncoder(os.Stdout).Encode(result)
	return 0
}

func send(args []string) (result sent, err error) {
	file, err := ecu.Open(args[0])
	if err != nil {
		return result, err
	}
	bus := can.NewReadWriteCloser(file)
	var numbers []int
	for _, text := range args[1:3] {
		n, err := strconv.Atoi(text)
		if err != nil {
			return result, err
		}
		numbers = append(numbers, n)
	}

	rate, seconds := numbers[0], numbers[1]
	var ids []uint32
	for _, text := range args[3:] {
		id, err := strconv.ParseUint(text, 16, 29)
		if err != nil {
			return result, err
		}
		if id > can.MaskIDSff {
			id |= can.MaskEff
		}
		ids = append(ids, uint32(id))
	}

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	random := rand.New(rand.NewPCG(1, 2))
	end := time.Duration(seconds) * time.Second
	for start, n := time.Now(), 0; time.Since(start) < end && len(stop) == 0; n++ {
		f := can.Frame{ID: ids[n%len(ids)], Length: uint8(random.UintN(9))}
		binary.LittleEndian.PutUint64(f.Data[:], random.Uint64())
		if err := bus.WriteFrame(f); err != nil {
			result.Refused++
		} else {
			result.Taken++
		}

		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(rate))))
	}

	return result, nil
}
