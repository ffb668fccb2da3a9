package sigmap

import (
	"strings"
	"testing"

	"lockstep/io/can"
)

// guarded returns Plain, sent by one map and received by another, with profile 5.
func guarded(t *testing.T, r Reception) (out, in *Map) {
	t.Helper()
	p := []ProtectionSpec{{Profile: "e2e-5", DataIDs: []uint32{0x1234}, Offset: 4}}
	out = bindRich(t, Spec{Sendings: []Sending{{Message: "Plain", CycleNs: period, Protect: p}}, Send: []Link{{"Plain", "x", "y0"}}})
	r.Message, r.Protect = "Plain", p
	in = bindRich(t, Spec{Receive: []Link{{"Plain", "x", "u0"}}, Receptions: []Reception{r}})
	return out, in
}

func TestOnlyFramesWithGoodProtectionAreDecoded(t *testing.T) {
	out, in := guarded(t, Reception{})
	var f, last can.Frame
	u := make([]float64, 4)
	step := func(y float64, change func(), want Result) {
		t.Helper()
		last = f
		out.Encode(&f, 0, 0, []float64{y}, false)
		change()
		_, got := in.Decode(u, &f)
		if got != want || (got == OK) != (u[0] == y) {
			t.Fatalf("%g gives %d, want %d; u is %g", y, got, want, u[0])
		}
	}
	good := func() {}
	skip := func(n int) func() {
		return func() {
			y := float64(f.Data[2])
			for range n {
				out.Encode(&f, 0, 0, []float64{y}, false)
			}
		}
	}
	step(1, good, OK)
	step(2, func() { f.Data[0] ^= 1 }, Bad)    // OK but for one bit
	step(3, good, OK)                          // one is lost
	step(4, func() { f = last }, Bad)          // REPEATED
	step(5, skip(4), Bad)                      // WRONGSEQUENCE
	step(6, good, OK)                          //
	step(7, func() { f.Len = 7 }, Short)       //
	step(8, func() { f.Data[6] ^= 0x80 }, Bad) // the counter
	want := Counts{Frames: 8, OK: 2, SomeLost: 1, Repeated: 1, Sequence: 1, Errors: 3, Length: 1}
	if in.Rx[0].Counts != want || in.Rx[0].Frame != FrameError || in.Rx[0].Window != WindowInvalid {
		t.Errorf("counted %+v, want %+v; frame %v, window %v", in.Rx[0].Counts, want, in.Rx[0].Frame, in.Rx[0].Window)
	}
}

func TestTimeoutAppliesTheDeclaredReaction(t *testing.T) {
	for _, c := range []struct {
		action Action
		u      float64
		demand Request
	}{{Hold, 7, NoRequest}, {Substitute, 99, NoRequest}, {SafeState, 7, SafeByTimeout}} {
		r := Reception{Message: "Plain", TimeoutNs: 4 * period, OnTimeout: ReactionSpec{Action: c.action}}
		if c.action == Substitute {
			r.OnTimeout.Values = []PortValue{{"u0", "99"}}
		}
		in := bindRich(t, Spec{Receive: []Link{{"Plain", "x", "u0"}, {"Plain", "y", "u1"}}, Receptions: []Reception{r}})
		u := []float64{7, 8, 0, 0}
		f := &can.Frame{ID: 3, Len: 8, Data: [64]byte{2: 7, 3: 8}}
		for k := int64(1); k <= 30; k++ {
			if k <= 10 || k == 20 {
				in.Decode(u, f)
			}
			d := in.Tick(u, k)
			late := 14 < k && k < 20 || k > 24 // 10 and 20 are the last; 4 ticks later is in time
			if wantU, wantD := 7.0, NoRequest; late {
				wantU, wantD = c.u, c.demand
				if u[0] != wantU || d != wantD || u[1] != 8 || !in.Rx[0].Late {
					t.Fatalf("%v, tick %d: u %v, demand %d, want %g, %d", c.action, k, u[:2], d, wantU, wantD)
				}
			} else if u[0] != wantU || d != wantD || in.Rx[0].Late {
				t.Fatalf("%v, tick %d: u %v, demand %d, want %g, %d", c.action, k, u[:2], d, wantU, wantD)
			}
		}
		if n := in.Rx[0].Counts; n.Timeouts != 2 || n.Frames != 11 {
			t.Errorf("counted %+v", n)
		}
	}
}

func TestTimeoutCountsFromTheStart(t *testing.T) {
	in := bindRich(t, Spec{Receive: []Link{{"Plain", "x", "u0"}}}) // 20 ms by the database: three cycles are 12 ticks
	u := make([]float64, 4)
	for k := int64(1); k <= 20; k++ {
		in.Tick(u, k)
		if want := k > 12; in.Rx[0].Late != want {
			t.Fatalf("tick %d: late %v", k, in.Rx[0].Late)
		}
	}
	// 4 ticks, and half of that: passed at 7, 11, 15, 19.
	if n := in.Rx[0].Counts.NoNew; n != 4 {
		t.Errorf("%d cycles without a frame, want 4", n)
	}
}

// While the control unit boots, the reaction to its silence waits once.
func TestFirstFrameHasItsOwnTimeout(t *testing.T) {
	r := Reception{Message: "Plain", TimeoutNs: 4 * period, FirstNs: 50 * period, OnTimeout: ReactionSpec{Action: SafeState}}
	f := &can.Frame{ID: 3, Len: 8}
	for _, first := range []int64{0, 30} {
		in := bindRich(t, Spec{Receive: []Link{{"Plain", "x", "u0"}}, Receptions: []Reception{r}})
		u := make([]float64, 4)
		for k := int64(1); k <= 60; k++ {
			if k == first {
				in.Decode(u, f)
			}
			late := first == 0 && k > 50 || first > 0 && k > first+4
			if d := in.Tick(u, k); in.Rx[0].Late != late || (d == SafeByTimeout) != late {
				t.Fatalf("first at %d, tick %d: late %v, demand %d", first, k, in.Rx[0].Late, d)
			}
		}
	}
}

func TestInvalidWindowAppliesTheDeclaredReaction(t *testing.T) {
	for _, c := range []struct {
		action Action
		u      float64
		demand Request
	}{{Hold, 0, NoRequest}, {Substitute, 99, NoRequest}, {SafeState, 0, SafeByError}} {
		r := Reception{OnError: ReactionSpec{Action: c.action}}
		if c.action == Substitute {
			r.OnError.Values = []PortValue{{"u0", "99"}}
		}
		out, in := guarded(t, r)
		u := make([]float64, 4)
		invalid, ticks := 0, 0
		for k := int64(1); k <= 60; k++ {
			var f can.Frame
			out.Encode(&f, 0, 0, []float64{float64(k)}, false)
			wrong := k >= 20 && k < 30
			if wrong {
				f.Data[0] ^= 0x10
			}
			in.Decode(u, &f)
			d := in.Tick(u, k)
			if in.Rx[0].Window != WindowInvalid {
				if !wrong && u[0] != float64(k) || d != NoRequest {
					t.Fatalf("%v, tick %d: u %g, demand %d", c.action, k, u[0], d)
				}
				continue
			}
			if invalid == 0 {
				invalid = int(k)
			}
			ticks++
			want := c.u
			if c.action != Substitute {
				want = float64(k)
				if wrong || k == 30 { // after ten errors the counter is out of sequence
					want = 19
				}
			}
			if u[0] != want || d != c.demand {
				t.Fatalf("%v, tick %d: u %g, demand %d, want %g, %d", c.action, k, u[0], d, want, c.demand)
			}
		}
		if invalid != 22 || ticks < 10 || in.Rx[0].Window != WindowValid || in.Rx[0].Counts.Errors != 10 {
			t.Errorf("%v: invalid from %d on for %d ticks, then %v; %+v", c.action, invalid, ticks, in.Rx[0].Window, in.Rx[0].Counts)
		}
	}
}

func TestMissingFramesCountInTheWindow(t *testing.T) {
	out, in := guarded(t, Reception{CycleNs: 2 * period, TimeoutNs: 100 * period})
	u := make([]float64, 4)
	for k := int64(1); k <= 60; k++ {
		if k <= 20 && k%2 == 0 {
			var f can.Frame
			out.Encode(&f, 0, 0, []float64{1}, false)
			in.Decode(u, &f)
		}
		in.Tick(u, k)
		// A frame at 20; passed at 24, 26, ...: the tenth, at 42, leaves nothing good in ten.
		if got, want := in.Rx[0].Window == WindowInvalid, k >= 42; got != want {
			t.Fatalf("tick %d: window %v", k, in.Rx[0].Window)
		}
	}
	if n := in.Rx[0].Counts; n.NoNew != 19 || n.Timeouts != 0 || in.Rx[0].Frame != FrameNoNewData {
		t.Errorf("%+v, %v", n, in.Rx[0].Frame)
	}
}

func TestSentFramesAreProtectedAfterAllSignals(t *testing.T) {
	spec := Sending{Message: "Plain", CycleNs: period, Counter: "y", Protect: []ProtectionSpec{
		{Profile: "e2e-1a", DataIDs: []uint32{0x123}, Range: []int{4, 7}},
		{Profile: "xor", Checksum: []string{"0|4"}, Range: []int{0, 3}},
	}}
	m := bindRich(t, Spec{Sendings: []Sending{spec}, Send: []Link{{"Plain", "x", "y0"}}})
	if m.Tx[0].Counts() != 0 {
		t.Errorf("counts %x", m.Tx[0].Counts())
	}
	groups := bindRich(t, Spec{Sendings: []Sending{spec}}).Tx[0].Protect
	for k := range 40 {
		var f can.Frame
		m.Encode(&f, 0, 0, []float64{float64(k)}, false)
		if int(f.Data[2]) != k || int(f.Data[3]) != k || int(f.Data[5]) != k%15 {
			t.Fatalf("frame %d is % x", k, f.Data[:8])
		}
		for g := range groups {
			if s := groups[g].Check(&f.Data, 8, 3); k > 0 && s.Frame != FrameOK {
				t.Fatalf("frame %d, group %d: %v", k, g, s.Frame)
			}
		}
	}
	if m.Tx[0].Counts() != 40<<4|40%15 {
		t.Errorf("counts %x", m.Tx[0].Counts())
	}
	other := bindRich(t, Spec{Sendings: []Sending{spec}, Send: []Link{{"Plain", "x", "y0"}}})
	other.Tx[0].SetCounts(m.Tx[0].Counts())
	var f, g can.Frame
	m.Encode(&f, 0, 0, []float64{1}, false)
	if other.Encode(&g, 0, 0, []float64{1}, false); f != g {
		t.Errorf("% x goes on as % x", f.Data[:8], g.Data[:8])
	}
}

func TestProtectionMustNotOverlapSignals(t *testing.T) {
	e2e := ProtectionSpec{Profile: "e2e-1a", DataIDs: []uint32{1}}
	for _, c := range []struct {
		s    Sending
		port string
		want string
	}{
		{Sending{Protect: []ProtectionSpec{e2e}}, "level", "overlaps the protection of the frame"},
		{Sending{Counter: "level", Protect: []ProtectionSpec{e2e}}, "x", "are in use already"},
		{Sending{Protect: []ProtectionSpec{e2e, e2e}}, "x", "are in use already"},
		{Sending{Protect: []ProtectionSpec{e2e}, Values: []Constant{{Signal: "mode", Text: "1"}}}, "x", "overlaps the protection of the frame"},
	} {
		c.s.Message, c.s.CycleNs = "Plain", period
		_, err := Bind(rich(), Spec{PeriodNs: period, Sendings: []Sending{c.s}, Send: []Link{{"Plain", c.port, "y0"}}}, nil, ports("1", "y0"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
