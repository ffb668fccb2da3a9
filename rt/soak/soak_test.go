package soak

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/control"
	"lockstep/rt/fault"
	"lockstep/rt/host"
	"lockstep/rt/network"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
	"lockstep/rt/supervisor"
	"lockstep/sched"
)

// demoRun returns a session of the demo bench without a target.
func demoRun(t *testing.T) *supervisor.Session {
	t.Helper()
	run := runtest.Demo(t)
	r := supervisor.New(run.Handover.Bench, supervisor.Options{Out: os.Stdout})
	r.View = report.View{Handover: run.Handover, Status: run.Status}
	return r
}

// withClient returns a control server with one connected client.
func withClient(t *testing.T, v report.View) *control.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c, err := control.Open(dir, v, os.Getpid(), &recorder.Recorder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	sockets, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %q, %v", sockets, err)
	}
	client, err := net.Dial("unix", sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	for end := time.Now().Add(time.Minute); c.Clients() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server did not accept the client within a minute")
		}
	}
	return c
}

// soaked returns an observation of 60,000 ticks of the demo bench that fulfils all criteria, and
// its report.
func soaked(t *testing.T) (*observation, *report.Report) {
	t.Helper()
	r := demoRun(t)
	r.Options.For = 5 * time.Minute
	r.Handover.Loop.Ticks = 60_000
	r.Status.StartNs.Store(1)
	r.Target = &host.Process{EndedNs: int64(5*time.Minute) + 1_000_000}
	r.Unit = &host.Process{}
	held := [2]footprint{{10_000, 10, 20}, {50_000, 8, 15}}
	s := &observation{
		soak: &Soak{}, r: r, load: "none", entries: 4, lost: 9, maxLost: 5, unsentDue: 18, onGridTick: 59_998,
		first: held, last: held, samples: 20,
	}
	return s, &report.Report{
		Clean: true, Ended: "done", StepNs: 5e6, Ticks: 60_000, Missed: 9, LateTicks: 4, LagMax: 4e-3, Lag: 1e-3,
		Usage: &report.Usage{}, RxFrames: 59_000, TxFrames: 120_000 - 18, TxLost: 18,
		Unit: "powershift: 29500 cycles sent, 3 missed, 0 frames dropped, 90000 frames received, 0 malformed, 0 lost by their counters",
	}
}

// verdictOf adds the verdict of a soak to a report.
func verdictOf(s *observation, v *report.Report) *report.Verdict {
	v.Soak = s.verdict(v)
	return v.Soak
}

// broken returns the criteria that did not hold.
func broken(d *report.Verdict) (list []string) {
	for _, l := range d.Criteria {
		if !l.Held {
			list = append(list, l.What)
		}
	}
	return list
}

func TestSoakPassesWhenAllCriteriaHold(t *testing.T) {
	s, v := soaked(t)
	if d := verdictOf(s, v); !d.Pass || d.Failed() != nil || len(d.Criteria) < 15 {
		t.Errorf("%d criteria, broken %v", len(d.Criteria), broken(d))
	}
}

func TestEachCriterionOfASoakFailsByItself(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *observation, v *report.Report)
		want string
	}{
		{"safe state", func(s *observation, v *report.Report) { v.Clean = false }, "end"},
		{"too short", func(s *observation, v *report.Report) {
			v.Ticks, v.TxFrames, s.onGridTick = 59_998, 120_000-18-4, 59_997
		}, "ticks"},
		{"ahead of the clock at the end", func(s *observation, v *report.Report) { s.r.Target.EndedNs = int64(5*time.Minute) - 5_000_000 }, "ticks"},
		{"ahead of the clock before", func(s *observation, v *report.Report) { s.ahead = 1 }, "ticks"},
		{"too many missed at once", func(s *observation, v *report.Report) { s.maxLost = 201 }, "missed ticks"},
		{"not served at the end", func(s *observation, v *report.Report) { v.Unserved = 1 }, "missed ticks"},
		{"a missed tick without an entry", func(s *observation, v *report.Report) { v.Missed++ }, "ledger"},
		{"an entry not read", func(s *observation, v *report.Report) { v.LateTicks++ }, "ledger"},
		{"an entry overwritten", func(s *observation, v *report.Report) { s.overwritten++ }, "ledger"},
		{"lag", func(s *observation, v *report.Report) { s.onGridTick = 40_000 }, "lag"},
		{"lag that is no number", func(s *observation, v *report.Report) { s.onGridTick = 0 }, "lag"},
		{"allocation", func(s *observation, v *report.Report) { v.Usage.Allocs++ }, "allocations"},
		{"collection", func(s *observation, v *report.Report) { v.Usage.GCCycles++ }, "allocations"},
		{"minor fault", func(s *observation, v *report.Report) { v.Usage.MinorFaults++ }, "page faults"},
		{"major fault", func(s *observation, v *report.Report) { v.Usage.MajorFaults++ }, "page faults"},
		{"no counts", func(s *observation, v *report.Report) { v.Usage = nil }, "memory"},
		{"frame not sent", func(s *observation, v *report.Report) { v.TxFrames-- }, "frames out"},
		{"frame twice", func(s *observation, v *report.Report) { v.TxFrames++ }, "frames out"},
		{"frames of missed ticks", func(s *observation, v *report.Report) { v.TxLost--; v.TxFrames++ }, "frames out"},
		{"dropped", func(s *observation, v *report.Report) { v.TxFrames--; v.TxDropped++ }, "bus"},
		{"refused", func(s *observation, v *report.Report) { v.TxFrames--; v.TxRefused++ }, "bus"},
		{"bus down", func(s *observation, v *report.Report) { v.BusDown++ }, "bus"},
		{"bus error", func(s *observation, v *report.Report) { v.BusErrors++ }, "bus"},
		{"another sender", func(s *observation, v *report.Report) {
			v.Conflicts = []report.IDConflict{{Bus: "drive", Message: "Speeds", ID: 0x200, Frames: 1}}
		}, "identifiers"},
		{"lost in", func(s *observation, v *report.Report) { v.RxOverflow++ }, "frames in"},
		{"unknown", func(s *observation, v *report.Report) { v.RxUnknown++ }, "frames in"},
		{"short", func(s *observation, v *report.Report) { v.RxShort++ }, "frames in"},
		{"wrong format", func(s *observation, v *report.Report) { v.RxFormat++ }, "frames in"},
		{"bad size", func(s *observation, v *report.Report) { v.RxBadSize++ }, "frames in"},
		{"out of range", func(s *observation, v *report.Report) { v.RxRange++ }, "frames in"},
		{"nothing in", func(s *observation, v *report.Report) { v.RxFrames = 0 }, "frames in"},
		{"unit died", func(s *observation, v *report.Report) { v.Unit = "powershift ended at 3.000 s: signal: killed" }, "control unit"},
		{"unit lost frames", func(s *observation, v *report.Report) { v.Unit = strings.Replace(v.Unit, "0 lost", "1 lost", 1) }, "control unit"},
		{"unit received a malformed frame", func(s *observation, v *report.Report) { v.Unit = strings.Replace(v.Unit, "0 malf", "1 malf", 1) }, "control unit"},
		{"unit received nothing", func(s *observation, v *report.Report) { v.Unit = strings.Replace(v.Unit, "90000", "0", 1) }, "control unit"},
		{"one sample", func(s *observation, v *report.Report) { s.samples = 1 }, "processes"},
		{"no sample", func(s *observation, v *report.Report) { s.sampleErr = errors.New("gone") }, "processes"},
		{"supervisor grows", func(s *observation, v *report.Report) { s.last[0].KB += 4097 }, "supervisor memory"},
		{"target grows", func(s *observation, v *report.Report) { s.last[1].KB += 65 }, "target memory"},
		{"supervisor keeps a file", func(s *observation, v *report.Report) { s.last[0].Files++ }, "supervisor files"},
		{"target closes one", func(s *observation, v *report.Report) { s.last[1].Files-- }, "target files"},
		{"supervisor starts threads", func(s *observation, v *report.Report) { s.last[0].Threads += 5 }, "supervisor threads"},
		{"target starts one", func(s *observation, v *report.Report) { s.last[1].Threads++ }, "target threads"},
		{"load ended", func(s *observation, v *report.Report) { s.loadErr = errors.New("deploy: the load cpu ended by itself") }, "load"},
	} {
		s, v := soaked(t)
		c.do(s, v)
		d := verdictOf(s, v)
		if got := broken(d); d.Pass || !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: pass %t, broken %v, want %s", c.name, d.Pass, got, c.want)
		}
		if err := d.Failed(); err == nil || !strings.HasPrefix(err.Error(), "soak: "+c.want+": expected ") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestUnderStopAnyMissedTickBreaksASoak(t *testing.T) {
	s, v := soaked(t)
	s.r.Bench.Overrun = rt.Overrun{Policy: rt.Stop}
	if got := broken(verdictOf(s, v)); !slices.Contains(got, "missed ticks") {
		t.Errorf("broken %v", got)
	}
	v.Missed, v.LateTicks, s.lost, s.entries, v.TxLost, v.TxFrames, s.unsentDue = 0, 0, 0, 0, 0, 120_000, 0
	if got := broken(verdictOf(s, v)); got != nil {
		t.Errorf("without one: broken %v", got)
	}
}

func TestUnderCatchUpFramesOfMissedTicksMustBeSent(t *testing.T) {
	s, v := soaked(t)
	s.r.Bench.Overrun = rt.Overrun{Policy: rt.CatchUp, Max: 200}
	if got := broken(verdictOf(s, v)); !slices.Equal(got, []string{"frames out"}) {
		t.Errorf("broken %v", got)
	}
	v.TxFrames, v.TxLost = 120_000, 0
	if got := broken(verdictOf(s, v)); got != nil {
		t.Errorf("all sent: broken %v", got)
	}
}

// Frames that the ignition keeps from the bus are not missing; without an ignition each missing frame counts.
func TestFramesThatTheIgnitionKeepsBackAreNotMissing(t *testing.T) {
	off := fault.PlannedState{Tick: 100, Op: fault.SwitchIgnition, Slot: int(network.Off)}
	for _, c := range []struct {
		start  network.State
		states []fault.PlannedState
		delay  int64
		sent   uint64
		want   []string
	}{
		{network.Run, []fault.PlannedState{off}, 0, 1000, nil},
		{network.Off, nil, 0, 0, nil},
		{network.Run, nil, 8, 120_000 - 18 - 5, nil},
		{network.Run, nil, 8, 100_000, []string{"frames out"}},
	} {
		s, v := soaked(t)
		p := &network.Plan{Start: c.start}
		for _, m := range s.r.Handover.Maps {
			for range m.Tx {
				p.Delays = append(p.Delays, [network.States]int64{-1, -1, c.delay, c.delay, c.delay})
			}
		}
		s.r.Handover.Loop.Network, s.r.Handover.Loop.Faults.States = p, c.states
		v.TxFrames = c.sent
		if got := broken(verdictOf(s, v)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: broken %v", c, got)
		}
	}
}

// After a planned end the safe values go out for 20 ticks: 20 Speeds, 10 Torques and
// 10 Status, and the first of each whether due or not.
func TestSafeFramesAfterTheEndAreExpected(t *testing.T) {
	s, v := soaked(t)
	s.r.Status.Reason.Store(uint64(rt.Done))
	s.r.Handover.Loop.Safe.Ends = 1 << rt.Done
	v.TxFrames += 43
	if got := broken(verdictOf(s, v)); got != nil {
		t.Errorf("broken %v", got)
	}
	v.TxFrames++
	if got := broken(verdictOf(s, v)); !slices.Equal(got, []string{"frames out"}) {
		t.Errorf("one more: broken %v", got)
	}
}

func TestDueFramesMatchTheFramesTheLoopSends(t *testing.T) {
	for _, tx := range []sigmap.Tx{
		{CycleTicks: 1}, {CycleTicks: 2}, {CycleTicks: 2, PhaseTicks: 1}, {CycleTicks: 7, PhaseTicks: 6}, {CycleTicks: 40},
	} {
		n := int64(0)
		for k := int64(1); k <= 100; k++ {
			if tx.Due(k) {
				n++
			}
			if got := occurrences(&tx, k); got != n {
				t.Fatalf("cycle %d, phase %d: %d up to tick %d, want %d", tx.CycleTicks, tx.PhaseTicks, got, k, n)
			}
		}
		if got := occurrences(&tx, 0); got != 0 {
			t.Errorf("cycle %d: %d before the first tick", tx.CycleTicks, got)
		}
	}
}

func TestSoakObservesLagClockAndProcesses(t *testing.T) {
	r := demoRun(t)
	r.Options.For = 10 * time.Second
	r.Bench.Unit.Text = ""
	r.Target = &host.Process{PID: os.Getpid(), FD: -1, Done: make(chan struct{})}
	s := &observation{soak: &Soak{}, r: r, y: make([]float64, len(r.Handover.Tables.Outputs))}
	now := time.Now()
	s.poll(now) // before the first tick
	if s.samples != 0 || s.ahead != 0 {
		t.Errorf("%d samples before the first tick", s.samples)
	}
	period := r.Handover.Tables.PeriodNs
	r.Status.StartNs.Store(uint64(sched.Now() - 300*period))
	r.Status.Ticks.Store(150) // less than a tenth
	s.poll(now)
	if s.samples != 0 || s.ahead != 0 {
		t.Errorf("%d samples after 0.75 s of 10 s, %d times ahead of the clock", s.samples, s.ahead)
	}
	r.Status.Ticks.Store(200)
	s.busy = func() bool { return true } // with a file of its own open
	if s.poll(now); s.samples != 0 {
		t.Error("a sample while this process writes")
	}
	s.busy = nil
	c := withClient(t, r.View) // lockstep ps has a descriptor of this process
	s.poll(now)
	with := s.last[0].Files
	s.samples, s.next = 0, time.Time{}
	r.Control = c
	if s.poll(now); s.last[0].Files != with-1 {
		t.Errorf("%d files with a client, %d without", s.last[0].Files, with)
	}
	r.Control, s.samples, s.next = &control.Server{}, 0, time.Time{}
	s.poll(now)
	s.poll(now.Add(100 * time.Millisecond)) // too early for another one
	s.poll(now.Add(time.Second))
	if s.samples != 2 || s.sampleErr != nil || s.ahead != 0 {
		t.Errorf("%d samples, %v, %d times ahead of the clock; want 2", s.samples, s.sampleErr, s.ahead)
	}
	if f := s.first[1]; f.KB < 1000 || f.Threads < 2 || f.Files < 3 {
		t.Errorf("this process holds %+v", f)
	}
	r.Status.State.Store(uint64(rt.Ended))
	if s.poll(now.Add(2 * time.Second)); s.samples != 2 || s.sampleErr != nil {
		t.Errorf("%d samples, %v after the target has ended, want 2 as before", s.samples, s.sampleErr)
	}
	r.Status.Ticks.Store(1 << 30)
	if s.poll(now); s.ahead != 1 {
		t.Errorf("%d times ahead of the clock, want 1", s.ahead)
	}
}

func TestFootprintIsReadFromProc(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "proc/7/fd")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "proc/7", name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("fd/0", "")
	write("fd/17", "")
	write("status", "Name:\tx\nVmHWM:\t   999 kB\nVmRSS:\t   320 kB\nThreads:\t4\nFDSize:\t64\n")
	if f, err := measureProcess(root, 7); err != nil || f != (footprint{320, 4, 2}) {
		t.Errorf("%+v, %v", f, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if f, err := measureProcess(root, 7); err != nil || f != (footprint{320, 4, 64}) {
		t.Errorf("without the list of descriptors: %+v, %v", f, err)
	}
	write("status", "Name:\tx\nThreads:\t4\nFDSize:\t64\n") // of a process that has ended
	if _, err := measureProcess(root, 7); err == nil || !strings.Contains(err.Error(), "7/status has no VmRSS") {
		t.Errorf("without memory: %v", err)
	}
	if _, err := measureProcess(root, 8); err == nil {
		t.Error("no such process: no error")
	}
}

func TestLoadAvoidsTheCPUOfTheLoop(t *testing.T) {
	all := loadCPUs(-1, nil)
	if len(all) == 0 {
		t.Fatal("this process has no CPU")
	}
	rest := loadCPUs(all[0], nil)
	if want := all[1:]; len(want) > 0 && !slices.Equal(rest, want) || len(want) == 0 && !slices.Equal(rest, all) {
		t.Errorf("CPUs %v besides %d: %v", all, all[0], rest)
	}
}
