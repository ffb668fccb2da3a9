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

// SafeSpeeds reports for each frame Speeds whether it carries the safe values of the demo bench:
// all four speeds, 15 bits each, are zero. In a running plant the engine always turns.
func SafeSpeeds(f *Frames) (list []bool) {
	for _, data := range f.Data {
		list = append(list, bytes.Equal(data[:7], make([]byte, 7)) && data[7]&15 == 0)
	}
	return list
}

// CheckFallToSafe checks that the frames Speeds carry the values of the plant first and the safe
// values from then on. It returns the number of each.
func CheckFallToSafe(t *testing.T, f *Frames) (plant, safe int) {
	t.Helper()
	list := SafeSpeeds(f)
	plant = max(slices.Index(list, true), 0)
	if plant == 0 {
		t.Fatalf("%d Speeds: none or the first one carries the safe values, want a later one", len(list))
	}
	if slices.Contains(list[plant:], false) {
		t.Errorf("after the safe values the bus carries values of the plant again")
	}
	return plant, len(list) - plant
}

// Frames are the frames of one identifier that candump received.
type Frames struct {
	Data [][]byte
	Lost int // missing frames, by the rolling counter; set by CountLost
}

// StartCandump starts candump with a large receive buffer. It waits until the kernel lists the
// socket of candump, since candump does not report when it is ready.
func StartCandump(t *testing.T, bus string) *Process {
	t.Helper()
	before := Listeners(t, bus)
	p := Start(t, "candump", "-L", "-d", "-r", "8000000", bus)
	Await(t, "candump listens to "+bus, func() bool { return Listeners(t, bus) > before })
	return p
}

// Listeners returns the number of sockets that receive every frame of a bus. The kernel's list
// also names a bus without sockets, with a colon.
func Listeners(t *testing.T, bus string) int {
	t.Helper()
	list, err := os.ReadFile("/proc/net/can/rcvlist_all")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(list), " "+bus+" ")
}

// AwaitQuiet waits until a program that prints the frames of a bus has printed all of them: it
// sleeps and has printed nothing for half a second, in which a card may still send frames.
func AwaitQuiet(p *Process) {
	p.T.Helper()
	const checks = 25 // of 20 ms
	for before, still := -1, 0; still < checks; time.Sleep(20 * time.Millisecond) {
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

// EndCandump ends candump after AwaitQuiet. It returns the frames by identifier, and the
// identifiers in order of reception.
func EndCandump(t *testing.T, p *Process) (byID map[string]*Frames, order []string) {
	t.Helper()
	AwaitQuiet(p)
	return EndCandumpNow(t, p)
}

// EndCandumpNow is EndCandump without AwaitQuiet.
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

// Counters are the byte and the shift of the rolling counter in each frame of the demo bench.
var Counters = map[string]struct{ at, shift int }{
	"110": {6, 4}, "111": {6, 4}, "200": {7, 4}, "201": {6, 0}, "202": {7, 4},
}

// CountLost sets Lost from the gaps in the rolling counter.
func (f *Frames) CountLost(id string) {
	c := Counters[id]
	f.Lost = 0
	for i := 1; i < len(f.Data); i++ {
		jump := int(f.Data[i][c.at]>>c.shift) - int(f.Data[i-1][c.at]>>c.shift)
		f.Lost += (jump + 15) & 15
	}
}
