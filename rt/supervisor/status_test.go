package supervisor

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/yamlfile"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
	"lockstep/sched"
)

// demoRun runs the demo bench in this process, in virtual time, without a control unit.
func demoRun(t *testing.T) (*Session, *rt.Loop) {
	t.Helper()
	run := runtest.Demo(t)
	return sessionOf(run), run.Loop
}

func TestStatusLineShowsTheGearboxWithin80Columns(t *testing.T) {
	r, loop := demoRun(t)
	s := newStatus(r)
	check := func(want ...string) {
		t.Helper()
		got := s.line(columns)
		for _, w := range want {
			if !strings.Contains(got, w) || len(got) > 79 {
				t.Errorf("%q has %d columns; want at most 79, and %q", got, len(got), w)
			}
		}
	}
	check("waiting for the first tick")
	for range 40 {
		loop.Tick(1)
	}
	check("0.2 s missed 0 [1 3 6] 48.00:1 eng ", " whl ", " rpm p99 0us")
	r.missing = []sched.Missing{{What: "x"}}
	// The widest line of a usual run: 999.9 s, three digits of missed ticks, 99.9 ms late.
	r.Status.SimNs.Store(999_900_000_000)
	r.Status.Missed.Store(100)
	for range 40 {
		r.Status.Late.Record(99_000_000)
	}
	check("999.9 s best effort missed 100 [1 3 6] 48.00:1 eng ", " whl ", " rpm p99 99.0ms")
	r.Status.SimNs.Store(1e18) // a billion seconds
	for width := range 120 {
		parts := s.parts()
		whole, least := joinParts(parts[:]), joinParts([]string{parts[timePart], parts[effortPart], parts[missedPart]})
		got := s.line(width)
		if fits := width >= len(least); len(got) > width || fits && !strings.HasPrefix(got, least) {
			t.Errorf("in %d columns: %q, want %q where it fits", width, got, least)
		}
		if fits := width >= len(least+" p99 99.0ms"); fits && !strings.HasSuffix(got, " p99 99.0ms") {
			t.Errorf("in %d columns: %q, want the p99 at the end", width, got)
		}
		if (got == whole) != (width >= len(whole)) {
			t.Errorf("in %d columns: %q, want %q where it fits", width, got, whole)
		}
	}
	for range 6 {
		loop.Tick(20)
	}
	check(" s best effort missed 214 no valid TCU_Pressure_1 yet [1 3 6] ", " p99 99.0ms")
	r.Status.LastRx[0].Store(20)
	r.Status.LastRx[1].Store(20)
	check(" s best effort missed 214 no valid TCU_Pressure_1 for 0.7 s p99 99.0ms")
	r.Status.BusOff.Store(1)
	check(" s best effort missed 214 bus drive is off eng ", " rpm p99 99.0ms")
	r.Status.BusOff.Store(0)
	r.Handover.Maps[0].Rx[0].Name = strings.Repeat("x", 100)
	r.Status.Ticks.Store(2e7) // 27 hours
	r.Status.SimNs.Store(2e7 * 5e6)
	check("100000 s best effort missed 214 no valid "+strings.Repeat("x", 21)+"... ", "... p99 99.0ms")
}

// A further output is shown in the unit of the bench file, or in the unit of the plant file.
func TestStatusLineShowsFurtherOutputsInTheirUnits(t *testing.T) {
	r, loop := demoRun(t)
	r.Bench.Shown = []bench.Shown{{Output: yamlfile.Scalar{Text: "w4"}, Unit: "rad/s"}, {Output: yamlfile.Scalar{Text: "w4"}}}
	s := newStatus(r)
	for range 40 {
		loop.Tick(1)
	}
	s.parts() // reads the outputs
	w4 := s.y[s.wheel]
	want := fmt.Sprintf("w4 %.4g rad/s w4 %.4g rpm", w4, w4*30/math.Pi)
	if got := s.line(columns); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	short := strings.TrimSuffix(want, fmt.Sprintf(" w4 %.4g rpm", w4*30/math.Pi))
	if got := s.line(len("  0.2 s missed 0  p99 0us") + len(short)); !strings.Contains(got, short) || strings.Contains(got, want) {
		t.Errorf("%q in few columns, want %q alone", got, short)
	}
}

// A short run has no time left in its line. A soak counts the runs before.
func TestStatusLineShowsTheTimeLeft(t *testing.T) {
	r, loop := demoRun(t)
	s := newStatus(r)
	for range 40 {
		loop.Tick(1)
	}
	for _, c := range []struct {
		ticks         int64
		whole, before time.Duration
		want          string // after the time
	}{
		{0, 0, 0, " missed"},
		{59 * 200, 0, 0, " missed"},
		{60 * 200, 0, 0, " 60 s left missed"},
		{3600 * 200, 0, 0, " 60 min left missed"},
		{60 * 200, 24 * time.Hour, 2 * time.Minute, " soak 3 min of 24 h, 23 h 58 min left missed"},
	} {
		r.Handover.Loop.Ticks, r.Options.Whole, r.Options.Before = c.ticks, c.whole, c.before
		if got := s.line(columns); !strings.HasPrefix(got, "  0.2 s"+c.want) {
			t.Errorf("%d ticks of %v: %q, want %q", c.ticks, c.whole, got, c.want)
		}
	}
}

func TestStatusLineShowsThatTheTargetIsStalled(t *testing.T) {
	r, loop := demoRun(t)
	s := newStatus(r)
	for range 40 {
		loop.Tick(1)
	}
	tick40 := func(ago time.Duration) { r.Status.StartNs.Store(uint64(sched.Now() - 41*5e6 - int64(ago))) }
	tick40(50 * time.Millisecond)
	if got := s.line(columns); strings.Contains(got, "no tick") {
		t.Errorf("50 ms late: %q", got)
	}
	tick40(3210 * time.Millisecond)
	if got := s.line(columns); !strings.Contains(got, "0.2 s missed 0 no tick for 3.2 s [1 3 6]") {
		t.Errorf("3.21 s late: %q", got)
	}
	now := sched.Now()
	r.Status.StartNs.Store(uint64(now - 1e9))
	if overdue, points := r.Behind(now); overdue != 1e9-41*5e6 || points != 160 {
		t.Errorf("40 of 200 grid points: overdue for %v, %d not served; want 795 ms, 160", overdue, points)
	}
	r.Handover.Loop.Ticks = 60
	if _, points := r.Behind(now); points != 20 {
		t.Errorf("40 of 60 ticks: %d not served, want 20", points)
	}
	if got := r.overdueReason(now); got != "" {
		t.Errorf("the supervisor ends the run 0.7 s after its last grid point: %s", got)
	}
	if got := r.overdueReason(now + 2e9); !strings.Contains(got, "20 grid points were not served") {
		t.Errorf("2.7 s after its end: %q", got)
	}
	r.Handover.Loop.Ticks = 40
	if overdue, points := r.Behind(now); overdue != 0 || points != 0 {
		t.Errorf("all ticks served: overdue for %v, %d points", overdue, points)
	}
	r.Status.StartNs.Store(0)
	r.startedAt = now - 61e9
	if got := r.overdueReason(now); got != "no tick within 1m0s" {
		t.Errorf("61 s without a first tick: %q", got)
	}
}

func TestLongListOfClutchesIsShortened(t *testing.T) {
	r, loop := demoRun(t)
	s := newStatus(r)
	loop.Tick(1)
	s.parts()
	for _, at := range s.mode {
		s.y[at] = float64(kernel.Stuck)
	}
	s.clutch = []string{"C1front", "C2front", "C3front", "B1", "B2", "B3", "F1", "F2"}
	if got := s.lockedClutches(); got != "[C1front C2front +6]" {
		t.Errorf("all engaged: %q", got)
	}
}

func TestClosedOutputEndsTheDisplayOnly(t *testing.T) {
	r, _ := demoRun(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	read.Close()
	r.Options.Out = write
	s := newStatus(r)
	s.end()  // its goroutine draws no more
	s.draw() // EPIPE
	s.draw()
	if !s.closed {
		t.Error("the status line is still drawn")
	}
}

func TestReportNamesAControlUnitThatWasSilent(t *testing.T) {
	r, _ := demoRun(t)
	var err error
	if r.Unit, err = host.Spawn("/bin/sh", nil, nil, "-c", "exit 7"); err != nil {
		t.Fatal(err)
	}
	defer r.Unit.Close()
	<-r.Unit.Done
	r.Unit.Stderr.Write([]byte("lockstep: ecu: bus fd:3: no such thing\n"))
	r.Unit.Stdout.Write([]byte("powershift: 12 cycles sent\n"))
	for _, c := range []struct {
		died  float64
		shot  bool
		rx    uint64
		want  string
		clean bool
	}{
		{0.01, false, 0, "powershift ended before its first frame, at 0.010 s: exit status 7: ecu: bus fd:3: no such thing", false},
		{0.5, false, 9, "powershift ended at 0.500 s: exit status 7", false},
		{-1, true, 9, "powershift did not answer and was killed", true},
		{-1, false, 9, "powershift: 12 cycles sent", true},
	} {
		v := &report.Report{Clean: true, Ended: "done", SimTime: 1, RxFrames: c.rx}
		r.unitEndedAt, r.Unit.Killed = c.died, c.shot
		r.reportUnit(v)
		if !strings.HasPrefix(v.Unit, c.want) || v.Clean != c.clean || v.Clean != (v.Ended == "done") {
			t.Errorf("unit %q, clean %t, ended %q; want %q, clean %t", v.Unit, v.Clean, v.Ended, c.want, c.clean)
		}
	}
}

func TestRunWhoseRelayIsKilledIsNotClean(t *testing.T) {
	r, _ := demoRun(t)
	r.Bench.Unit.Text, r.Bench.Program = "./tcu.py", &bench.Program{}
	var err error
	if r.Unit, err = host.Spawn("/bin/sh", nil, nil, "-c", "echo ./tcu.py: ready; kill -KILL $$"); err != nil {
		t.Fatal(err)
	}
	defer r.Unit.Close()
	<-r.Unit.Done
	for died, want := range map[float64]string{
		0.5: "relay of ./tcu.py ended at 0.500 s: signal: killed", -1: "relay of ./tcu.py ended after the run: signal: killed",
	} {
		v := &report.Report{Clean: true, Ended: "done", SimTime: 1, RxFrames: 9}
		r.unitEndedAt = died
		r.reportUnit(v)
		if v.Unit != want || v.Clean || v.Ended != "control unit "+want {
			t.Errorf("unit %q, clean %t, ended %q; want %q", v.Unit, v.Clean, v.Ended, want)
		}
	}
}

func TestNamesAreShortenedToTheirDistinctParts(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"clutch1 clutch2 clutch8", "1 2 8"},
		{"C1 B2", "C1 B2"},
		{"clutch1 clutch12", "1 12"},
		{"a a", "a a"},
		{"brake", "brake"},
	} {
		if got := strings.Join(shorten(strings.Fields(c.names)), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.names, got, c.want)
		}
	}
}

func TestReportStatesTheOutcomeOfARun(t *testing.T) {
	r := &report.Report{
		Plant: "powershift", Bench: "demo", StepNs: 5e6, Ticks: 600, Missed: 2, Overrun: "skip 20", SimTime: 3, Ended: "done", Clean: true,
		Late: report.Spread{P50: 40_000, P99: 90_500, P999: 1_200_000, Max: 6_000_000}, Usage: &report.Usage{}, LagMax: 0.0036, RxFrames: 120, TxFrames: 1198, TxLost: 4, BusDown: 3, BusOffs: 2,
		BestEffort: true, BestEffortWhy: []string{"no priority", "no memory"}, BestEffortHelp: []string{"setcap"},
		Silent: []report.Silence{{Bus: "drive", Message: "TCU_Pressure_1", Last: 0.6, For: 2.4}, {Bus: "drive", Message: "TCU_Pressure_2", For: 3}}, RxStale: 4, RxBound: 2, Unserved: 80, Still: 0.4, Unit: "powershift ended at 0.600 s: signal: killed",
	}
	var text strings.Builder
	r.Text(&text)
	for _, want := range []string{
		"demo: done, after 3.000 s\n",
		"ticks            600 of 5 ms, missed 2 (policy skip 20)\n",
		"wake-up latency  p50 40.0     p99 90.5     p99.9 1200.0   max 6000.0 us\n",
		"frames in        120; unknown 0, wrong format 0, short 0, out of range 0, lost 0\n",
		"frames out       1198; dropped 0, not sent at missed ticks 4\n",
		"lag              largest 3.600 ms, now 0.000 ms\n",
		"memory           allocations 0, GC cycles 0, page faults 0 minor, 0 major\n",
		"best effort      no priority\n                   no memory\n                   -> setcap\n",
		"bus errors       3 ticks with a bus down, 0 other failed calls, 2 times bus-off\n",
		"receive backlog  2 ticks left frames for the next tick; 4 frames from before the first tick dropped\n",
		"stalled          0.400 s before the end; 80 grid points were not served\n",
		"control unit     powershift ended at 0.600 s: signal: killed\n",
		"silent           TCU_Pressure_1 after 0.600 s; last valid command kept for 2.400 s\n",
		"silent           no valid frame of TCU_Pressure_2; start values kept\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not contain %q:\n%s", want, &text)
		}
	}
	r.Overrun, r.TxDropped = "catchup 20", 7
	text.Reset()
	if r.Text(&text); !strings.Contains(text.String(), "the send buffer takes about 25 frames") {
		t.Errorf("frames dropped after a catch-up are not explained:\n%s", &text)
	}
	r.Usage = nil
	text.Reset()
	if err := r.JSON(&text); err != nil || strings.Contains(text.String(), "allocs") {
		t.Errorf("a target that died cannot have counted its allocations: %v\n%s", err, &text)
	}
}

func TestGoTraceIsShortenedToOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"lockstep: rt: 1 tick\n": "rt: 1 tick",
		"noise\npanic: kernel: wrong length\n\ngoroutine 1 [running]:\nmain.main()\n": "panic: kernel: wrong length",
		"fatal error: out of memory\nruntime stack:\n":                                "fatal error: out of memory",
	} {
		var c host.Capture
		c.Write([]byte(text))
		if got := c.Reason(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A message of the bench that another node sends is a finding in the status line and the report.
func TestAnotherSenderOfAMessageIsShownAndReported(t *testing.T) {
	r, _ := demoRun(t)
	s := newStatus(r)
	defer s.end()
	r.Status.Ticks.Store(50)
	const want = "another node sends Torque"
	if got := s.problem(); got == want {
		t.Fatal(got)
	}
	c := &r.Status.TxConflicts[1]
	c.Frames.Store(3)
	c.First.Store(40)
	c.Last.Store(50)
	if got := s.problem(); got != want {
		t.Errorf("problem %q, want %q", got, want)
	}
	var text strings.Builder
	v := r.View.Report()
	v.Text(&text)
	if line := "id conflict      another node sends Torque (0x201): 3 frames from 0.200 s to 0.250 s; take it off the bus, or the message out of the bench\n"; len(v.Conflicts) != 1 || !strings.Contains(text.String(), line) {
		t.Errorf("%+v; the report has no %q:\n%s", v.Conflicts, line, &text)
	}
	r.Status.Ticks.Store(1000)
	if got := s.problem(); got == want || r.ConflictProblem(false) != want {
		t.Errorf("5 s later: %q; a silent message is more urgent", got)
	}
}

func TestMessagesOfSeveralBusesNameTheirBus(t *testing.T) {
	r, _ := demoRun(t)
	r.Status.Ticks.Store(1000)
	if got := r.Silent(); len(got) != 2 || got[0].Message != "TCU_Pressure_1" || got[0].Bus != "drive" {
		t.Errorf("one bus: %+v", got)
	}
	r.Handover.Maps = append(r.Handover.Maps, r.Handover.Maps[0])
	r.Bench.Buses = append(r.Bench.Buses, bench.Bus{Name: yamlfile.Scalar{Text: "second"}})
	if got := r.Silent(); len(got) != 4 || got[0].Message != "TCU_Pressure_1 on drive" || got[2].Line() != "no valid TCU_Pressure_1 on second yet" {
		t.Errorf("two buses: %+v", got)
	}
}

// A safe state, a bus that is down or another problem covers the loss of the CPU in the status line.
func TestLossOfTheLoopsCPUIsReportedWhateverElseIsWrong(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, loop := demoRun(t)
	for range 40 {
		loop.Tick(1)
	}
	r.Status.Thread.Store(uint64(unix.Gettid()))
	r.Handover.Thread.CPU = 1000 // no host gives this CPU to the test
	r.Status.SafeReason.Store(uint64(rt.MissedTick))
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.Options.Out = in
	s := newStatus(r)
	if r.checkAffinity(); r.loop.migrated.Load() {
		t.Error("a loop that started without its CPU has lost it")
	}
	r.Status.Pinned.Store(1)
	r.checkAffinity() // the first one: the CPU went offline before
	s.end()
	s.draw()
	s.draw()
	in.Close()
	text, err := io.ReadAll(out)
	if err != nil || strings.Count(string(text), "best effort: the loop lost CPU 1000 during the run: ") != 1 {
		t.Errorf("%v:\n%s", err, text)
	}
	if strings.Count(string(text), " s best effort missed 0 SAFE since ") != 2 {
		t.Errorf("want two status lines of a best-effort run:\n%s", text)
	}
	if v := r.missingLostCPU(); !strings.Contains(v.Help, "cpu1000/online") {
		t.Errorf("%+v", v)
	}
}
