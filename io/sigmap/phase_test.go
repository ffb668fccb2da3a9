package sigmap

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// stuffed returns the length of n bits with worst-case stuffing: a stuff bit of the other
// value after each run of five begins the next run.
func stuffed(n int) int {
	bits, run, last := 0, 0, -1
	next := 0
	for i := range n {
		b := next
		if i > 0 && run == 0 {
			b = last
		}
		if b == last {
			run++
		} else {
			run = 1
		}
		last, next = b, b
		bits++
		if run == 5 && i < n-1 { // after the last bit comes what is not stuffed
			bits++
			last, next, run = 1-last, 1-last, 1
		}
	}
	return bits
}

// A broadcast of SAE J1939-21 is one announcement and packets with 7 bytes of the message each, all of
// them frames of 8 bytes.
func TestMaxBitsOfALongMessageIsThatOfItsPackets(t *testing.T) {
	frame := Tx{ID: 0x18FEF100 | can.EFF, Len: 8}
	for length, frames := range map[int]int{9: 3, 14: 3, 15: 4, 1785: 256} {
		long := Tx{ID: frame.ID, Len: length, Flags: can.FlagLong}
		if got := long.MaxBits(); got != frames*frame.MaxBits() || long.BusFrames() != frames || frame.BusFrames() != 1 {
			t.Errorf("%d bytes: %d bits in %d frames, want %d frames of %d", length, got, long.BusFrames(), frames, frame.MaxBits())
		}
	}
}

func TestMaxBitsEqualsWorstCaseStuffing(t *testing.T) {
	for length := range 65 {
		if messages.FrameLen(length) != length {
			continue
		}
		for _, id := range []uint32{1, can.EFF | 1} {
			classic := Tx{ID: id, Len: length}
			head, crc := map[bool]int{false: 19, true: 39}[id&can.EFF != 0], 15
			if want := stuffed(head+8*length+crc) + 13; length <= 8 && classic.MaxBits() != want {
				t.Errorf("%d bytes, 0x%X: %d bits, want %d", length, id, classic.MaxBits(), want)
			}
			fd := Tx{ID: id, Len: length, Flags: can.FlagFDF}
			head, crc = map[bool]int{false: 22, true: 41}[id&can.EFF != 0], 17
			if length > 16 {
				crc = 21
			}
			fixed := (4+crc)/4 + 1
			if want := stuffed(head+8*length) + 4 + crc + fixed + 13; fd.MaxBits() != want {
				t.Errorf("FD, %d bytes, 0x%X: %d bits, want %d", length, id, fd.MaxBits(), want)
			}
		}
	}
}

func TestChosenPhasesSpreadFramesReproducibly(t *testing.T) {
	db := &messages.Database{}
	var s Spec
	s.PeriodNs = 1e6
	for i, cycle := range []int64{10, 10, 10, 10, 10, 20, 20, 20, 20, 5, 100, 100, 1} {
		m := messages.Message{Name: fmt.Sprint("M", i), ID: uint32(i + 1), Len: 8}
		db.Messages = append(db.Messages, m)
		s.Sendings = append(s.Sendings, Sending{Message: m.Name, CycleNs: cycle * 1e6, PhaseNs: FreePhase})
	}
	s.Sendings[1].PhaseNs = 3e6
	var first []int64
	for range 3 {
		m, err := Bind(db, s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var phases []int64
		most := 0
		for k := range int64(200) {
			n := 0
			for i := range m.Tx {
				if m.Tx[i].Due(k) {
					n++
				}
			}
			most = max(most, n)
		}
		for i := range m.Tx {
			phases = append(phases, m.Tx[i].PhaseTicks)
		}
		// One in every tick; of the others 2 + 5 + 2 + 0.2 in ten ticks: one at each.
		if most != 2 || m.Tx[1].PhaseTicks != 3 {
			t.Errorf("phases %v: up to %d frames in a tick, want 2", phases, most)
		}
		if first == nil {
			first = phases
		}
		if fmt.Sprint(phases) != fmt.Sprint(first) {
			t.Errorf("phases %v, then %v", first, phases)
		}
	}
}

func TestWaveformIsLinearBetweenPointsJumpsAndRepeats(t *testing.T) {
	c := Waveform{At: []int64{10, 20, 20, 40}, Value: []float64{1, 3, 5, 6}, Period: 50}
	for at, want := range map[int64]float64{0: 1, 10: 1, 15: 2, 19: 2.8, 20: 5, 30: 5.5, 40: 6, 49: 6, 50: 1, 65: 2, 80: 5.5} {
		if got := c.Eval(at); got != want {
			t.Errorf("at %d it is %g, want %g", at, got, want)
		}
	}
}

func TestImpossibleWaveformIsRefused(t *testing.T) {
	for _, c := range []struct {
		course Waveform
		want   string
	}{
		{Waveform{}, "a waveform has 1 to 65536 points, not 0"},
		{Waveform{At: make([]int64, maxPoints+1), Value: make([]float64, maxPoints+1)}, "not 65537"},
		{Waveform{At: []int64{0, 1}, Value: []float64{1}}, "a waveform has 1 to 65536 points"},
		{Waveform{At: []int64{-1}, Value: []float64{1}}, "a waveform begins at 0 or later, not at -1 ns"},
		{Waveform{At: []int64{2e9, 1e9}, Value: []float64{1, 2}}, "point 2 of the waveform, at 1 s, is earlier than the point before it, at 2 s"},
		{Waveform{At: []int64{0, 1e8}, Value: []float64{1, 2}, Period: 5e7}, "the period, 0.05 s, is shorter than the waveform, 0.1 s"},
		{Waveform{At: []int64{0}, Value: []float64{math.NaN()}}, "point 1 of the waveform is not finite: NaN"},
		{Waveform{At: []int64{0, 1}, Value: []float64{0, math.Inf(1)}}, "point 2 of the waveform is not finite: +Inf"},
	} {
		if err := c.course.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d points: %v, want %q", len(c.course.At), err, c.want)
		}
	}
}

func TestFrameSentOnChangeIsRepeated(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 2, Signals: []messages.Signal{{Name: "a", Len: 8, Factor: 1}}}}}
	for _, c := range []struct {
		s    Sending
		want string
	}{
		{Sending{Send: OnChange, Repeats: 2}, "[1 5 6 7 20 21 22 23]"},
		{Sending{Send: OnChange, Repeats: 2, EveryNs: 4}, "[1 5 9 13 20 21 25 29]"}, // changed again at 21
		{Sending{Send: OnChange, Repeats: 2, GapNs: 2}, "[1 5 7 9 20 22 24 26]"},    // its second value waits for the gap
		{Sending{Send: Both, CycleNs: 10, PhaseNs: 5, Repeats: 1}, "[1 5 6 15 20 21 22 25 35]"},
	} {
		c.s.Message = "M"
		m, err := Bind(db, Spec{PeriodNs: 1, Sendings: []Sending{c.s}, Send: []Link{{"M", "a", "y"}}}, nil, ports("1", "y"))
		if err != nil {
			t.Fatal(err)
		}
		var at []int64
		var f can.Frame
		for k := int64(1); k <= 40; k++ {
			y := []float64{0}
			switch {
			case k >= 21:
				y[0] = 3
			case k >= 20:
				y[0] = 2
			case k >= 5:
				y[0] = 1
			}
			if m.Due(0, k, y, false) {
				m.Encode(&f, 0, k, y, false)
				at = append(at, k)
			}
		}
		if fmt.Sprint(at) != c.want {
			t.Errorf("%+v: sent at %v, want %v", c.s, at, c.want)
		}
	}
	for _, wrong := range []Sending{{CycleNs: 10, Repeats: 1}, {Send: OnChange, Repeats: -1}, {Send: OnChange, Repeats: 1, EveryNs: -5}} {
		wrong.Message = "M"
		if _, err := Bind(db, Spec{PeriodNs: 1, Sendings: []Sending{wrong}}, nil, nil); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

func TestFrameSentOnChangeKeepsItsGap(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 2, Signals: []messages.Signal{{Name: "a", Len: 8, Factor: 0.5}}}}}
	out := ports("1", "y")
	for _, c := range []struct {
		send SendType
		want string
	}{{OnChange, "[1 5 9 12 15 30]"}, {Both, "[1 5 7 11 14 17 27 30 37]"}, {Cyclic, "[7 17 27 37]"}} {
		s := Spec{PeriodNs: 1, Sendings: []Sending{{Message: "M", Send: c.send, CycleNs: 10, PhaseNs: 7, GapNs: 3}}, Send: []Link{{"M", "a", "y"}}}
		if c.send == OnChange {
			s.Sendings[0].CycleNs, s.Sendings[0].PhaseNs = 0, 0
		}
		if c.send == Cyclic {
			s.Sendings[0].GapNs = 0
		}
		m, err := Bind(db, s, nil, out)
		if err != nil {
			t.Fatal(err)
		}
		var at []int64
		var f can.Frame
		for k := int64(1); k <= 40; k++ {
			y := 0.0
			switch {
			case k >= 30:
				y = 100
			case k >= 9 && k < 15: // a change in each tick
				y = float64(k)
			case k >= 5:
				y = 10 // and 10.1 is the same raw value
			}
			if k == 7 {
				y = 10.1
			}
			if m.Due(0, k, []float64{y}, false) {
				m.Encode(&f, 0, k, []float64{y}, false)
				at = append(at, k)
			}
		}
		if fmt.Sprint(at) != c.want {
			t.Errorf("%v: sent at %v, want %v", c.send, at, c.want)
		}
	}
}
