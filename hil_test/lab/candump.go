package lab

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SafeSpeeds says which of the Speeds carry the safe values of the demo bench: all four
// speeds, 15 bits each, are zero. The engine of a plant that runs always turns.
func SafeSpeeds(f *Frames) (list []bool) {
	for _, data := range f.Data {
		list = append(list, bytes.Equal(data[:7], make([]byte, 7)) && data[7]&15 == 0)
	}
	return list
}

// CheckFallToSafe holds the Speeds against the one way into the safe state: the plant's
// values, then the safe ones and nothing else. It returns how many there are of each.
func CheckFallToSafe(t *testing.T, f *Frames) (plant, safe int) {
	t.Helper()
	list := SafeSpeeds(f)
	plant = max(slices.Index(list, true), 0)
	if plant == 0 {
		t.Fatalf("of %d Speeds none, or the first, carries the safe values", len(list))
	}
	if slices.Contains(list[plant:], false) {
		t.Errorf("after the safe values the bus carries the plant's again")
	}
	return plant, len(list) - plant
}

// Frames is what candump saw of one identifier.
type Frames struct {
	Data [][]byte
	Lost int // by the rolling counter
}

// StartCandump starts candump, with a buffer for all that comes, and waits until the kernel
// has it among those that get every frame of the bus: it says nothing itself.
func StartCandump(t *testing.T, bus string) *Process {
	t.Helper()
	before := Listeners(t, bus)
	p := Start(t, "candump", "-L", "-d", "-r", "8000000", bus)
	Await(t, "candump listens to "+bus, func() bool { return Listeners(t, bus) > before })
	return p
}

// Listeners returns how many sockets get every frame of a bus. The kernel's list names a bus
// without any, too, with a colon.
func Listeners(t *testing.T, bus string) int {
	t.Helper()
	list, err := os.ReadFile("/proc/net/can/rcvlist_all")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(list), " "+bus+" ")
}

// AwaitQuiet waits until a program that prints what it reads from a bus has printed all that
// has come: it sleeps, for want of more, and has printed nothing for half a second. The half
// second is for frames that a card still has to send.
func AwaitQuiet(p *Process) {
	p.T.Helper()
	const looks = 25
	for before, still := -1, 0; still < looks; time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.Done:
			p.T.Fatalf("%s: has ended\n%s", p.Name, &p.Err)
		default:
		}

		if now := len(p.Out.String()); now != before || !asleep(p.Cmd.Process.Pid) {
			before, still = now, 0
		}
		still++
	}
}

// EndCandump ends candump once it has caught up, and returns what it saw by
// identifier, and in which order.
func EndCandump(t *testing.T, p *Process) (byID map[string]*Frames, order []string) {
	t.Helper()
	AwaitQuiet(p)
	return EndCandumpNow(t, p)
}

// EndCandumpNow ends candump at once.
func EndCandumpNow(t *testing.T, p *Process) (byID map[string]*Frames, order []string) {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	p.Wait()
	if strings.Contains(p.Out.String()+p.Err.String(), "DROPCOUNT") {
		t.Fatalf("candump itself lost frames:\n%s", &p.Err)
	}
	byID = map[string]*Frames{}
	for line := range strings.Lines(p.Out.String()) {
		id, text, ok := strings.Cut(strings.TrimSpace(line[strings.LastIndex(strings.TrimSpace(line), " ")+1:]), "#")
		data := make([]byte, len(text)/2)
		for i := range data {
			b, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
			ok = ok && err == nil
			data[i] = byte(b)
		}

		if !ok {
			t.Fatalf("candump: %q is not a frame", line)
		}
		if byID[id] == nil {
			byID[id] = &Frames{}
		}
		byID[id].Data = append(byID[id].Data, data)
		order = append(order, id)
	}

	return byID, order
}

// Counters are byte and shift of the rolling counters.
var Counters = map[string]struct{ at, shift int }{
	"110": {6, 4}, "111": {6, 4}, "200": {7, 4}, "201": {6, 0}, "202": {7, 4},
}

// Count fills in what the rolling counters say is missing.
func (f *Frames) Count(id string) {
	c := Counters[id]
	f.Lost = 0
	for i := 1; i < len(f.Data); i++ {
		jump := int(f.Data[i][c.at]>>c.shift) - int(f.Data[i-1][c.at]>>c.shift)
		f.Lost += (jump + 15) & 15
	}
}
