package supervisor

import (
	"fmt"
	"os"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
)

// sessionOf returns the session of a bench that ticks in this process.
func sessionOf(run *runtest.Run) *Session {
	r := New(run.Handover.Bench, Options{Out: os.Stdout})
	r.View = report.View{Handover: run.Handover, Status: run.Status}
	return r
}

// guardedRun returns the session and the run of a bench file.
func guardedRun(t *testing.T, text string) (*Session, *runtest.Run) {
	t.Helper()
	run := runtest.Guarded(t, text)
	return sessionOf(run), run
}

func TestProtectedBenchKeepsEveryPhaseAndCycle(t *testing.T) {
	r, run := guardedRun(t, benchtest.GuardedText(t))
	loop, unit, commands := run.Loop, run.Unit, run.Commands(t)
	check, err := sigmap.NewProtection(r.Bench.Buses[0].Frames[1].Protect[0], &messages.Message{Name: "Torque", Len: 8, Signals: []messages.Signal{
		{Name: "counter_T", Start: 51, Len: 4, BigEndian: true, Factor: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint32][]int64{}
	frames := make([]can.Frame, 64)
	for k := int64(1); k <= 400; k++ {
		for i := range commands.Tx {
			var f can.Frame
			if commands.Due(i, k, nil, false) && (!commands.Encode(&f, i, k, nil, false) || !unit.Send(&f)) {
				t.Fatal("the unit cannot send")
			}
		}
		loop.Tick(1)
		for _, f := range frames[:unit.Recv(frames)] {
			at[f.ID] = append(at[f.ID], k)
			switch f.ID {
			case 513:
				if s := check.Check(&f.Data, 8, 513); s.Frame != sigmap.FrameOK && len(at[f.ID]) > 1 {
					t.Fatalf("tick %d: Torque is %v", k, s.Frame)
				}
			case 1024:
				want := 100 + 100*(k*5%100)/100
				if got := int64(f.Data[0]) | int64(f.Data[1])<<8; got != want || f.Data[4] != 3 {
					t.Fatalf("tick %d: speed %d, mode %d, want %d, 3", k, got, f.Data[4], want)
				}
			case 1025:
				if want := k >= 10; f.Data[0] == 1 != want {
					t.Fatalf("tick %d: key %d", k, f.Data[0])
				}
			}
		}
	}
	for _, c := range []struct {
		id           uint32
		cycle, phase int64
	}{{512, 1, 0}, {513, 2, 0}, {514, 2, 1}, {1024, 2, 0}, {1026, 4, 1}} {
		tx := r.Handover.Maps[0].Tx
		for i := range tx {
			if tx[i].ID == c.id && (tx[i].CycleTicks != c.cycle || tx[i].PhaseTicks != c.phase) {
				t.Errorf("%s has cycle %d, phase %d; want %d, %d", tx[i].Name, tx[i].CycleTicks, tx[i].PhaseTicks, c.cycle, c.phase)
			}
		}
		want := []int64(nil)
		for k := int64(1); k <= 400; k++ {
			if k%c.cycle == c.phase {
				want = append(want, k)
			}
		}
		if fmt.Sprint(at[c.id]) != fmt.Sprint(want) {
			t.Errorf("%d came at %v, want %v", c.id, at[c.id], want)
		}
	}
	if fmt.Sprint(at[1025]) != "[1 10]" {
		t.Errorf("the frame sent on change came at %v, want at 1 and 10", at[1025])
	}
	w := &r.Status.Rx[0]
	if w.Counts().Frames != 200 || w.Counts().OK != 200 || w.CycleMin.Load() != 10e6 || w.CycleMax.Load() != 10e6 || w.Counts().Timeouts != 0 || w.AgeMax.Load() != 5e6 {
		t.Errorf("%d frames, %d good, cycle %d to %d ns, %d timeouts, age %d ns", w.Counts().Frames, w.Counts().OK, w.CycleMin.Load(), w.CycleMax.Load(), w.Counts().Timeouts, w.AgeMax.Load())
	}
	if s := w.Load(); s != (rt.RxStatus{Frame: sigmap.FrameOK, Window: sigmap.WindowValid, Protected: true}) {
		t.Errorf("%+v", s)
	}
}

func TestFailingProtectionTakesTheBusToTheSafeState(t *testing.T) {
	r, run := guardedRun(t, benchtest.GuardedText(t))
	loop, unit, commands := run.Loop, run.Unit, run.Commands(t)
	for k := int64(1); k <= 100 && r.Status.SafeReason.Load() == 0; k++ {
		var f can.Frame
		commands.Encode(&f, 0, 0, nil, false)
		if k > 20 {
			f.Data[0] ^= 1
		}
		unit.Send(&f)
		loop.Tick(1)
	}
	if why := rt.Reason(r.Status.SafeReason.Load()); why != rt.MessageWrong || r.Status.SafeTick.Load() != 23 {
		t.Errorf("%v at tick %d, want the third wrong frame at 23", why, r.Status.SafeTick.Load())
	}
	if got := loop.U[0]; got != 20e5 {
		t.Errorf("clutch1.pressure is %g Pa, want 20 bar", got)
	}
}

func TestReportAndStatusShowTheStateOfReceivedMessages(t *testing.T) {
	r, run := guardedRun(t, benchtest.GuardedText(t))
	loop, unit, commands := run.Loop, run.Unit, run.Commands(t)
	s := newStatus(r)
	defer s.end()
	step := func(change func(f *can.Frame)) {
		for i := range commands.Tx {
			var f can.Frame
			commands.Encode(&f, i, 0, nil, false)
			if i == 0 {
				change(&f)
			}
			unit.Send(&f)
		}
		loop.Tick(1)
		loop.Tick(1)
	}
	for range 30 {
		step(func(*can.Frame) {})
	}
	if got := s.problem(); got != "" {
		t.Errorf("without a fault: %q", got)
	}
	for range 2 {
		step(func(f *can.Frame) { f.Data[0] ^= 1 })
	}
	if got := s.problem(); got != "TCU_Pressure_1: wrong checksum 2" {
		t.Errorf("two wrong frames: %q", got)
	}
	for range 9 {
		loop.Tick(1)
	}
	for range 8 {
		step(func(f *can.Frame) { *f = can.Frame{ID: 0x123} })
	}
	v := r.ReceivedMessages()
	want := report.Received{
		Bus: "drive", Message: "TCU_Pressure_1", ID: 0x110, Protected: true, Frames: 32, OK: 30, Errors: 2, NoNew: v[0].NoNew,
		State: "NONEWDATA", Window: "INVALID", Timeouts: 1, Late: true, AgeMax: v[0].AgeMax, Cycle: v[0].Cycle,
	}
	if fmt.Sprint(v[0]) != fmt.Sprint(want) || v[0].AgeMax != 30*5e6 || v[0].NoNew < 9 {
		t.Errorf("got  %+v\nwant %+v", v[0], want)
	}
	if c := *v[0].Cycle; c != (report.Cycle{Min: 10e6, Mean: 10e6, Max: 10e6, Jitter: 0}) {
		t.Errorf("cycle %+v", c)
	}
	if c := *v[1].Cycle; c.Min != 10e6 || c.Max != 55e6 || c.Jitter == 0 {
		t.Errorf("cycle of the other %+v", c)
	}
	line := "TCU_Pressure_1: 32 frames every 10.000 ms (10.000 to 10.000), jitter 0.000 ms, age at most 150.000 ms, INVALID; wrong checksum 2, timeouts 1"
	if got := v[0].String(); got != line {
		t.Errorf("got  %s\nwant %s", got, line)
	}
	if got := s.problem(); got != "TCU_Pressure_1: wrong checksum 2" {
		t.Errorf("late: %q", got)
	}
	for range 100 {
		loop.Tick(1)
	}
	if got := s.problem(); got != "no valid TCU_Pressure_1 for 0.7 s" {
		t.Errorf("silent: %q", got)
	}
	if v := r.Silent(); len(v) != 2 || !v[0].Substituted || v[1].Substituted {
		t.Errorf("silent: %+v", v)
	}
}

func TestTargetGetsTheProtectionAndTheWaveforms(t *testing.T) {
	r, run := guardedRun(t, benchtest.GuardedText(t))
	f, err := r.Handover.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := bench.LoadHandover(f)
	if err != nil {
		t.Fatal(err)
	}
	commands := run.Commands(t)
	here, there := r.Handover.Maps[0], h.Maps[0]
	y := make([]float64, len(r.Handover.Tables.Outputs))
	u, v := make([]float64, len(r.Handover.Tables.Inputs)), make([]float64, len(r.Handover.Tables.Inputs))
	for k := int64(1); k <= 200; k++ {
		var in, a, b can.Frame
		if k%3 != 0 && k < 100 {
			commands.Encode(&in, 0, 0, nil, false)
			here.Decode(u, &in)
			there.Decode(v, &in)
		}
		if d, e := here.Tick(u, k), there.Tick(v, k); d != e || fmt.Sprint(u) != fmt.Sprint(v) {
			t.Fatalf("tick %d: %v and %d here, %v and %d there", k, u, d, v, e)
		}
		for i := range here.Tx {
			due := here.Due(i, k, y, false)
			if due != there.Due(i, k, y, false) {
				t.Fatalf("tick %d: %s is due on one side", k, here.Tx[i].Name)
			}
			if !here.Encode(&a, i, k, y, false) || !there.Encode(&b, i, k, y, false) || a != b {
				t.Fatalf("tick %d: % x here, % x there", k, a.Data[:8], b.Data[:8])
			}
		}
	}
	if u[0] != 3e5 || here.Rx[0].Counts != there.Rx[0].Counts || here.Rx[0].Counts.Timeouts != 1 {
		t.Errorf("clutch1.pressure %g Pa; counted %+v here, %+v there", u[0], here.Rx[0].Counts, there.Rx[0].Counts)
	}
}
