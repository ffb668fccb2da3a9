package gearbox

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// step drives a gearbox with a stepped unit for a while: Speeds every 5 ms.
func step(t *testing.T, line *unittest.Line, log *bytes.Buffer, seconds float64) (last string) {
	t.Helper()
	u := newUnit(t, "powershift", line, log)
	g := firstGear()
	var held [8]float64
	read := 0
	for k := 1; k <= int(seconds/0.005); k++ {
		line.Now = time.Duration(k) * 5 * time.Millisecond
		if err := u.Tick(line.Now - 1); err != nil {
			t.Fatal(err)
		}
		for ; read < len(line.All); read++ {
			f := line.All[read]
			word := binary.LittleEndian.Uint64(f.Data[:])
			for i := range 4 {
				held[4*int(f.ID-idPressure1)+i] = float64(word>>(12*i)&0xFFF) * barPerBit
			}
		}
		for range 50 {
			g.advance(held, euler)
		}
		f := speeds(g.measured())
		f.Data[7] |= counted(k) << 4
		u.Receive(unittest.Pack(t, f), line.Now)
	}
	return u.Close()
}

func TestSteppedUnitShiftsRepeatably(t *testing.T) {
	var logs [2]bytes.Buffer
	lines := [2]*unittest.Line{{T: t}, {T: t}}
	for i := range lines {
		last := step(t, lines[i], &logs[i], 4)
		// Its clock starts with the Speeds at 5 ms; the last cycle is that at 3.99 s.
		if got, err := unit.ParseCounts(last); err != nil || got != (unit.Counts{Cycles: 399, Received: 800, Lost: got.Lost}) {
			t.Errorf("%q: %v; want 399 cycles sent and 800 frames received", last, err)
		}
	}
	if !strings.Contains(logs[0].String(), "gear 2-4-7 engaged") {
		t.Errorf("the third shift did not come in 4 s:\n%s", &logs[0])
	}
	if logs[0].String() != logs[1].String() || len(lines[0].All) != 2*399 {
		t.Errorf("%d frames; the second drive says\n%sthe first\n%s", len(lines[0].All), &logs[1], &logs[0])
	}
	for i, f := range lines[0].All {
		if f != lines[1].All[i] {
			t.Fatalf("frame %d was % X, is % X", i, f, lines[1].All[i])
		}
		// Cycle n is due at 10·n ms, and done when the clock is taken beyond it.
		want := can.Frame{ID: idPressure1 + uint32(i%2)}
		if got := f.Data[6] >> 4; f.ID != want.ID || got != uint8(i/2%16) || lines[0].At[i] != time.Duration(i/2+1)*10*time.Millisecond+5*time.Millisecond {
			t.Fatalf("frame %d: identifier 0x%X, counter %d, at %v", i, f.ID, got, lines[0].At[i])
		}
	}
}

func TestSteppedUnitIsSilentWithoutTimeAndWithoutSpeeds(t *testing.T) {
	line := &unittest.Line{T: t}
	u := newUnit(t, "powershift", line, &bytes.Buffer{})
	if err := u.Tick(time.Second); err != nil || len(line.All) != 0 {
		t.Errorf("%v, %d frames before the first Speeds", err, len(line.All))
	}
	for range 100 {
		u.Receive(unittest.Pack(t, speeds(turning(first, 2))), time.Second)
	}
	if len(line.All) != 0 {
		t.Errorf("%d frames although no time has passed", len(line.All))
	}
	if err := u.Tick(1250 * time.Millisecond); err != nil || len(line.All) != 50 {
		t.Errorf("%v, %d frames in 250 ms, want 50", err, len(line.All))
	}
	if err := u.Tick(1250 * time.Millisecond); err != nil || len(line.All) != 50 {
		t.Errorf("%v, %d frames; the same instant again must do nothing", err, len(line.All))
	}
	// The last cycle before the unit falls asleep is at 2 s.
	if err := u.Tick(time.Minute); err != nil || len(line.All) != 2*100 {
		t.Errorf("%v, %d frames up to a second after the last Speeds, want 200", err, len(line.All))
	}
}

func TestSteppedUnitCountsMalformedPacketsAndIgnoresItsOwnFrames(t *testing.T) {
	line := &unittest.Line{T: t}
	u := newUnit(t, "powershift", line, &bytes.Buffer{})
	for _, size := range []int{0, 1, 15, 17, 72} {
		u.Receive(make([]byte, size), 0)
	}
	u.Receive(unittest.Pack(t, speeds([4]float64{math.NaN()})), 0)
	line.Err = syscall.ENOBUFS
	if err := u.Tick(10 * time.Millisecond); err != nil {
		t.Errorf("a full queue: %v", err)
	}
	last := u.Close()
	if got, err := unit.ParseCounts(last); err != nil || got != (unit.Counts{Cycles: 1, Dropped: 2, Received: 1, Malformed: 5}) {
		t.Errorf("%q: %v; want 1 cycle sent, 2 frames dropped, 1 received, 5 malformed", last, err)
	}
	line.Err = syscall.EIO
	if err := u.Tick(20 * time.Millisecond); err == nil {
		t.Error("a bus that fails is no error")
	}
}
