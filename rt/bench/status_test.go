package bench

import (
	"os"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/sched"
)

// demoRun is the demo bench in this process, under virtual time, with nobody at the
// other end of its bus.
func demoRun(t *testing.T) (*run, *rt.Loop) {
	t.Helper()
	b, err := Load("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{bench: b, page: new(rt.Page), unitDie: -1, options: Options{Out: os.Stdout}}
	if r.h, err = Prepare(b); err != nil {
		t.Fatal(err)
	}
	theirs, ours, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	bus, err := can.Inherit(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bus.Close() })
	loop, err := rt.New(r.h.Loop, kernel.New(r.h.Tables), []*can.Bus{bus}, r.h.Maps, sched.NewVirtual(5*time.Millisecond), r.page)
	if err != nil {
		t.Fatal(err)
	}
	r.page.State.Store(uint64(rt.Running))
	return r, loop
}

func TestLineOfStatusShowsTheGearboxWithin100Columns(t *testing.T) {
	r, loop := demoRun(t)
	s := newStatus(r)
	if got := s.line(); got != "waiting for the first tick" {
		t.Errorf("before the first tick: %q", got)
	}
	for range 40 {
		loop.Tick(1)
	}
	for _, want := range []string{"0.2 s  1 3 6  48.00:1  engine ", " rpm  wheel ", "missed 0", "late 0/0 us"} {
		if got := s.line(); !strings.Contains(got, want) || len(got) > 100 {
			t.Errorf("%q has %d columns; want at most 100, and %q", got, len(got), want)
		}
	}
	r.missing = []sched.Missing{{What: "x"}}
	for range 6 {
		loop.Tick(20)
	}
	want := "missed 114  no frame from TCU_Pressure_1 yet  best effort"
	if got := s.line(); !strings.HasSuffix(got, want) || len(got) > 100 {
		t.Errorf("%q has %d columns; want at most 100, and %q at the end", got, len(got), want)
	}
	r.page.LastRx[0].Store(20)
	r.page.LastRx[1].Store(20)
	want = "missed 114  no frame from TCU_Pressure_1 for 0.7 s  best effort"
	if got := s.line(); !strings.HasSuffix(got, want) || len(got) > 100 {
		t.Errorf("%q has %d columns; want at most 100, and %q at the end", got, len(got), want)
	}
}

func TestNamesAreShortenedToWhatTellsThemApart(t *testing.T) {
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

func TestReportSaysWhatHappened(t *testing.T) {
	r := &Report{
		Plant: "powershift", Bench: "demo", StepNs: 5e6, Ticks: 600, Missed: 2, Overrun: "skip 20", SimTime: 3, Ended: "done", Clean: true,
		Late: Spread{40_000, 90_500, 1_200_000, 6_000_000}, Usage: &Usage{}, LagMax: 0.0036, RxFrames: 120, TxFrames: 1198, TxLost: 4, BusDown: 3,
		BestEffort: true, BestEffortWhy: []string{"no priority", "no memory"}, BestEffortHelp: []string{"setcap"},
		Silent: []Silence{{"TCU_Pressure_1", 0.6, 2.4}, {"TCU_Pressure_2", 0, 3}}, Unit: "powershift ended at 0.600 s: signal: killed",
	}
	var text strings.Builder
	r.Text(&text)
	for _, want := range []string{
		"demo: done, after 3.000 s\n",
		"ticks        600 of 5 ms, missed 2 (policy skip 20)\n",
		"lateness     p50 40.0     p99 90.5     p99.9 1200.0   max 6000.0 us\n",
		"frames in    120; unknown 0, short 0, out of range 0, lost 0\n",
		"frames out   1198; dropped 0, of missed ticks 4\n",
		"lag          largest 3.600 ms, now 0.000 ms\n",
		"memory       allocations 0, GC cycles 0, page faults 0 minor, 0 major\n",
		"best effort  no priority\n               no memory\n               -> setcap\n",
		"bus trouble  3 calls found it down, 0 failed otherwise\n",
		"control unit powershift ended at 0.600 s: signal: killed\n",
		"silent       TCU_Pressure_1 after 0.600 s; the plant went on with the last valid command for 2.400 s\n",
		"silent       TCU_Pressure_2 never came; the plant kept the values it started with\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, &text)
		}
	}
	r.Usage = nil
	text.Reset()
	if err := r.JSON(&text); err != nil || strings.Contains(text.String(), "allocs") {
		t.Errorf("a target that died cannot have counted its allocations: %v\n%s", err, &text)
	}
}

func TestOneLineIsTakenFromAGoTrace(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"lockstep: rt: 1 tick\n": "rt: 1 tick",
		"noise\npanic: kernel: wrong length\n\ngoroutine 1 [running]:\nmain.main()\n": "panic: kernel: wrong length",
		"fatal error: out of memory\nruntime stack:\n":                                "fatal error: out of memory",
	} {
		var c capture
		c.Write([]byte(text))
		if got := c.reason(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
