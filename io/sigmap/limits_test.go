package sigmap

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// A cycle is a whole number of ticks, rounded, and at least one; no cycle stays none. The default
// timeout is three of these cycles.
func TestCycleOfAMessageIsAtLeastOneTick(t *testing.T) {
	for _, c := range []struct{ ns, ticks int64 }{
		{1, 1}, {period / 3, 1}, {period/2 - 1, 1}, {period, 1}, {period * 7 / 5, 1}, {period * 8 / 5, 2}, {3 * period, 3},
	} {
		in := bindRich(t, Spec{Receive: []Link{{"Truck", "gear", "u0"}}, Receptions: []Reception{
			{Message: "Truck", CycleNs: c.ns, TimeoutNs: DefaultTimeout, OnTimeout: ReactionSpec{Action: SafeState}},
		}})
		rx := &in.Rx[0]
		if rx.CycleTicks != c.ticks || rx.TimeoutTicks != 3*c.ticks || rx.FirstTicks != 3*c.ticks {
			t.Errorf("%d ns: a cycle of %d ticks, timeouts after %d and %d; want %d, %d", c.ns, rx.CycleTicks, rx.TimeoutTicks, rx.FirstTicks, c.ticks, 3*c.ticks)
		}
		u, late := make([]float64, 4), int64(0)
		for k := int64(1); late == 0 && k < 20; k++ {
			if in.Tick(u, k) == SafeByTimeout {
				late = k
			}
		}
		if late != 3*c.ticks+1 || rx.Counts.NoNew == 0 {
			t.Errorf("%d ns: silence leads to the safe state at tick %d, after %d missing frames; want %d", c.ns, late, rx.Counts.NoNew, 3*c.ticks+1)
		}
	}
	in := bindRich(t, Spec{Receive: []Link{{"Truck", "gear", "u0"}}})
	for k := int64(1); k < 20; k++ {
		in.Tick(make([]float64, 4), k)
	}
	if rx := &in.Rx[0]; rx.CycleTicks != 0 || rx.TimeoutTicks != 0 || rx.Late || rx.Counts.NoNew != 0 {
		t.Errorf("without a cycle: %d ticks, timeout %d, late %t, %d missing", rx.CycleTicks, rx.TimeoutTicks, rx.Late, rx.Counts.NoNew)
	}
}

// A timeout shorter than the period is one tick, and any other is rounded down.
func TestTimeoutOfAMessageIsAtLeastOneTick(t *testing.T) {
	for _, c := range []struct{ ns, first, ticks, firstTicks int64 }{
		{1, 0, 1, 1}, {period / 2, 2 * period, 1, 2}, {2*period - 1, 0, 1, 1}, {2 * period, period, 2, 2}, {0, 0, 0, 0},
	} {
		in := bindRich(t, Spec{Receive: []Link{{"Truck", "gear", "u0"}}, Receptions: []Reception{
			{Message: "Truck", TimeoutNs: c.ns, FirstNs: c.first},
		}})
		if rx := &in.Rx[0]; rx.TimeoutTicks != c.ticks || rx.FirstTicks != c.firstTicks {
			t.Errorf("%d ns, first %d ns: %d and %d ticks, want %d and %d", c.ns, c.first, rx.TimeoutTicks, rx.FirstTicks, c.ticks, c.firstTicks)
		}
	}
}

// ISO 11898-1:2015, table 5: the lengths of a CAN FD frame.
func TestDeclaredLengthIsOneOfAFrame(t *testing.T) {
	legal := map[int]bool{12: true, 16: true, 20: true, 24: true, 32: true, 48: true, 64: true}
	for n := range 9 {
		legal[n] = true
	}
	for n := 1; n <= 70; n++ {
		db := &messages.Database{Messages: []messages.Message{{Name: "M", ID: 1, Len: n, Signals: []messages.Signal{{Name: "s", Len: 8, Factor: 1}}}}}
		m, err := Bind(db, Spec{PeriodNs: 1, Receive: []Link{{"M", "s", "u"}}, Receptions: []Reception{{Message: "M", DLC: n}}}, ports("1", "u"), nil)
		if !legal[n] {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no CAN frame has %d bytes", n)) {
				t.Errorf("%d bytes are taken: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d bytes: %v", n, err)
			continue
		}
		for _, got := range []int{0, n - 1, n, n + 1, 64} {
			f := can.Frame{ID: 1, Len: uint8(min(got, 64)), Data: [64]byte{7}}
			if n > 8 {
				f.Flags = can.FlagFDF
			} else if f.Len > 8 {
				continue // a CAN FD frame
			}
			u, want := []float64{-1}, OK
			if int(f.Len) != n {
				want = Short
			}
			if _, r := m.Decode(u, &f); r != want || (u[0] == 7) != (want == OK) {
				t.Errorf("a frame of %d bytes for exactly %d: %d, u %g", f.Len, n, r, u[0])
			}
		}
	}
}

// The state of a message is the worst of its protections: INVALID, NODATA, INIT, VALID; and ERROR,
// WRONGSEQUENCE, REPEATED, OK_SOMELOST, INITIAL, SYNC, OK.
func TestStateOfAMessageIsTheWorstOfItsProtections(t *testing.T) {
	windows := []Window{WindowValid, WindowInit, WindowNoData, WindowInvalid} // from good to bad
	for i, v := range windows {
		for j, w := range windows {
			if got := worseWindow(v, w); got != windows[max(i, j)] {
				t.Errorf("%v and %v: %v", v, w, got)
			}
		}
	}
	states := []State{FrameOK, FrameSync, FrameInitial, FrameSomeLost, FrameRepeated, FrameWrongSequence, FrameNoNewData, FrameError}
	for i, s := range states {
		if int(s.rank()) != i {
			t.Errorf("%v has rank %d, want %d", s, s.rank(), i)
		}
	}

	// Three protections of one message; the window of the k-th needs good[k] good frames.
	good := []int{1, 5, 3}
	var list []ProtectionSpec
	for k, n := range good {
		w := WindowLimits{WindowSize: 8, MinOkStateInit: n, MinOkStateValid: 1, MinOkStateInvalid: n, MaxErrorStateInit: 1, MaxErrorStateValid: 1, MaxErrorStateInvalid: 1}
		list = append(list, ProtectionSpec{Profile: "sum", Checksum: []string{fmt.Sprintf("%d|8", 8*k)}, Range: []int{3 + k, 3 + k}, Window: &w})
	}
	msg := &messages.Message{Name: "M", ID: 1, Len: 8, Signals: []messages.Signal{{Name: "s", Start: 56, Len: 8, Factor: 1}}}
	db := &messages.Database{Messages: []messages.Message{*msg}}
	for i := range list {
		if _, err := NewProtection(list[i], msg); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Bind(db, Spec{PeriodNs: 1, Receive: []Link{{"M", "s", "u"}}, Receptions: []Reception{{Message: "M", CycleNs: 1, Protect: list}}}, ports("1", "u"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rx, u := &in.Rx[0], []float64{0}
	var got []string
	for k := int64(1); k <= 30; k++ {
		switch {
		case k == 2: // no frame
		case k >= 12 && k <= 13: // the second protection alone is wrong
			in.Decode(u, &can.Frame{ID: 1, Len: 8, Data: [64]byte{1: 1}})
		default:
			in.Decode(u, &can.Frame{ID: 1, Len: 8})
		}
		got = append(got, rx.Window.String())
		worst := WindowValid
		for j := range rx.Protect {
			worst = worseWindow(worst, rx.Protect[j].Window)
		}
		if rx.Window != worst {
			t.Errorf("frame %d: window %v, the worst of its protections is %v", k, rx.Window, worst)
		}
		in.Tick(u, k)
	}
	// The first frame ends NODATA; the second protection needs five good ones after it. Frames 12 and 13
	// are wrong, and until 19 both are among its last eight.
	want := "INIT INIT INIT INIT INIT INIT VALID VALID VALID VALID VALID VALID INVALID INVALID INVALID INVALID INVALID INVALID INVALID VALID"
	if text := strings.Join(got[:20], " "); text != want {
		t.Errorf("windows\n%s, want\n%s", text, want)
	}
}

// The rules of WindowLimits, over all small limits.
func TestWindowLimitsFollowTheRulesOfAUTOSAR(t *testing.T) {
	msg := &messages.Message{Name: "M", ID: 1, Len: 8}
	values := []int{0, 1, 2}
	var w WindowLimits
	limits := []*int{&w.MinOkStateInit, &w.MaxErrorStateInit, &w.MinOkStateValid, &w.MaxErrorStateValid, &w.MinOkStateInvalid, &w.MaxErrorStateInvalid}
	count, taken := 1, 0
	for range limits {
		count *= len(values)
	}
	for _, w.WindowSize = range []int{0, 1, 2, 3, 64, 65} {
		for i := range count {
			for j := range limits {
				*limits[j] = values[i%len(values)]
				i /= len(values)
			}
			w.MaxErrorStateInvalid-- // -1 to 1
			want := w.WindowSize >= 1 && w.WindowSize <= 64 &&
				1 <= w.MinOkStateValid && w.MinOkStateValid <= w.MinOkStateInit && w.MinOkStateInit <= w.MinOkStateInvalid &&
				w.MaxErrorStateValid >= w.MaxErrorStateInit && w.MaxErrorStateInit >= w.MaxErrorStateInvalid && w.MaxErrorStateInvalid >= 0 &&
				w.MinOkStateInit+w.MaxErrorStateInit <= w.WindowSize && w.MinOkStateValid+w.MaxErrorStateValid <= w.WindowSize &&
				w.MinOkStateInvalid+w.MaxErrorStateInvalid <= w.WindowSize
			_, err := NewProtection(ProtectionSpec{Profile: "sum", Checksum: []string{"0|8"}, Window: &w}, msg)
			if (err == nil) != want {
				t.Fatalf("%+v: %v, want taken %t", w, err, want)
			}
			if want {
				taken++
			}
		}
	}
	if taken < 50 {
		t.Errorf("only %d of %d limits are legal: this proves little", taken, 6*count)
	}
}

// The counters of a frame, its own and those of its protections, share 64 bits.
func TestCountersOfAFrameHaveAtMost64Bits(t *testing.T) {
	for _, length := range []int{15, 17, 31, 32, 33, 48} {
		for _, protected := range []bool{false, true} {
			s := Sending{Message: "M", CycleNs: 1, Counter: "n"}
			if protected {
				s.Protect = []ProtectionSpec{{Profile: "xor", Checksum: []string{"56|8"}},
					{Profile: "counter-only", Counter: []string{"64|32"}, Start: at(math.MaxUint32)}}
			}
			db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 12, Signals: []messages.Signal{{Name: "n", Start: 3, Len: length, Factor: 1}}}}}
			m, err := Bind(db, Spec{PeriodNs: 1, Sendings: []Sending{s}}, nil, nil)
			if refused := protected && length > 32; refused {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("have %d bits; together at most 64", length+32)) {
					t.Errorf("%d bits beside a protection: %v", length, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%d bits, protected %t: %v", length, protected, err)
				continue
			}
			last := uint64(1)<<length - 1
			m.Tx[0].Count = last - 1
			for i, want := range []uint64{last - 1, last, 0, 1} {
				counts := m.Tx[0].Counts()
				m.Tx[0].SetCounts(0)
				m.Tx[0].SetCounts(counts)
				var f can.Frame
				if n := m.Tx[0].Protect; protected && n[1].Next != uint64(i-1)&math.MaxUint32 {
					t.Errorf("%d bits: the counter of the protection is %d beside %d", length, n[1].Next, want)
				}
				m.Encode(&f, 0, 0, nil, false)
				if got := slow(&db.Messages[0].Signals[0], &f.Data); got != want || m.Tx[0].Counts() == counts {
					t.Errorf("%d bits, protected %t: counts %d, want %d", length, protected, got, want)
				}
			}
		}
	}
}

// The guide to the bench file lists these.
func TestWindowWithoutLimitsCountsTenFrames(t *testing.T) {
	p, err := NewProtection(ProtectionSpec{Profile: "e2e-5", DataIDs: []uint32{0x123}}, gauge())
	want := WindowLimits{
		WindowSize: 10, MinOkStateInit: 2, MaxErrorStateInit: 2, MinOkStateValid: 1, MaxErrorStateValid: 2, MinOkStateInvalid: 3, MaxErrorStateInvalid: 2,
	}
	if err != nil || p.Limits != want {
		t.Errorf("%v: limits %+v, want %+v", err, p.Limits, want)
	}
}
