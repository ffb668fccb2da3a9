package lab

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/brutella/can"
	"golang.org/x/sys/unix"
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
	fd, err := unix.Socket(unix.AF_CAN, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.CAN_RAW)
	if err != nil {
		return result, err
	}
	bus, err := net.InterfaceByName(args[0])
	if err != nil {
		return result, err
	}
	if err := unix.Bind(fd, &unix.SockaddrCAN{Ifindex: bus.Index}); err != nil {
		return result, err
	}
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
	// A system call is slow in a lab: one call sends all frames that are due.
	const most = 64
	var frames [most][can.MaxFrameDataLength + 8]byte
	var messages [most]struct {
		unix.Msghdr
		length, _ uint32
	}
	var vectors [most]unix.Iovec
	for i := range messages {
		vectors[i] = unix.Iovec{Base: &frames[i][0], Len: uint64(len(frames[i]))}
		messages[i].Iov, messages[i].Iovlen = &vectors[i], 1
	}
	for start, n := time.Now(), 0; time.Since(start) < end && len(stop) == 0; {
		due := min(most, int(time.Since(start).Seconds()*float64(rate))+1-n)
		for i := range due {
			f := can.Frame{ID: ids[(n+i)%len(ids)], Length: uint8(random.UintN(9))}
			binary.LittleEndian.PutUint64(f.Data[:], random.Uint64())
			data, err := can.Marshal(f)
			if err != nil {
				return result, err
			}
			copy(frames[i][:], data)
		}
		for next := 0; next < due; {
			taken, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[next])), uintptr(due-next), 0, 0, 0)
			if errno != 0 { // the first of them was refused
				result.Refused++
				next++
				continue
			}
			result.Taken += uint64(taken)
			next += int(taken)
		}
		n += max(due, 0)
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(rate))))
	}

	return result, nil
}
