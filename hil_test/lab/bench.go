package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ProtectedMessage is the entry of a protected message in the report.
type ProtectedMessage struct {
	Frames   uint64 `json:"frames"`
	OK       uint64 `json:"ok"`
	SomeLost uint64 `json:"ok_somelost"`
	Repeated uint64 `json:"repeated"`
	Errors   uint64 `json:"error"`
	Sequence uint64 `json:"wrongsequence"`
	Window   string `json:"window"`
}

// Report is the part of `lockstep run -report` that the tests read.
type Report struct {
	StepNs      int64   `json:"step_ns"`
	SafeAfter   float64 `json:"safe_after_s"`
	Ticks       uint64  `json:"ticks"`
	LateNs      spread  `json:"late_ns"`
	TickNs      spread  `json:"tick_ns"`
	Response    spread  `json:"response_ns"`
	Missed      uint64  `json:"missed"`
	Transitions uint64  `json:"transitions"`
	LagMax      float64 `json:"lag_max_s"`
	Allocs      uint64  `json:"allocs"`
	GCCycles    uint64  `json:"gc_cycles"`
	Minor       uint64  `json:"page_faults_minor"`
	Major       uint64  `json:"page_faults_major"`
	BusDown     uint64  `json:"bus_down"`
	RxFrames    uint64  `json:"rx_frames"`
	RxUnknown   uint64  `json:"rx_unknown"`
	RxFormat    uint64  `json:"rx_format"`
	RxShort     uint64  `json:"rx_short"`
	RxRange     uint64  `json:"rx_range"`
	RxOverflow  uint64  `json:"rx_overflow"`
	TxFrames    uint64  `json:"tx_frames"`
	TxDropped   uint64  `json:"tx_dropped"`
	TxAgain     uint64  `json:"tx_again"`
	TxLost      uint64  `json:"tx_lost"`
	BestEffort  bool    `json:"besteffort"`
	Ended       string  `json:"ended"`
	Silent      []struct {
		Message string  `json:"message"`
		Last    float64 `json:"last_s"`
		For     float64 `json:"for_s"`
	} `json:"silent"`
	Conflicts []struct {
		Message string `json:"message"`
		Frames  uint64 `json:"frames"`
	} `json:"id_conflicts"`
}

// spread is the distribution of a time in the report, ns.
type spread struct {
	P50 int64 `json:"p50"`
	Max int64 `json:"max"`
}

// Bench is a running bench that writes a report.
type Bench struct {
	*Process
	File string        // path of the report
	For  time.Duration // length of the run; UntilStopped: until the test stops it
}

// UntilStopped is the length of a run that the test stops. A test that acts while the bench runs
// needs it: on a loaded machine a run of fixed length may end too soon.
const UntilStopped time.Duration = 0

// StartDemo starts the demo bench on vcan0, best effort.
func StartDemo(t *testing.T, d time.Duration) *Bench {
	t.Helper()
	return StartDemoOn(t, "vcan0", d, nil, "-besteffort")
}

// Edit replaces the first text in a bench file by the second.
type Edit [2]string

// StartDemoOn starts the demo bench, edited, with more arguments.
func StartDemoOn(t *testing.T, bus string, d time.Duration, edits []Edit, args ...string) *Bench {
	t.Helper()
	return StartDemoWith(t, d, edits, append([]string{"run", "-bus", bus}, args...)...)
}

// StartDemoWith starts a command on the demo bench, edited. The demo bench ends after 200 ticks
// missed at once, or 3 s without a tick. A lab may stall for longer, so both limits are raised.
func StartDemoWith(t *testing.T, d time.Duration, edits []Edit, args ...string) *Bench {
	t.Helper()
	dir := t.TempDir()
	plants := Start(t, Command(t), "plants", "powershift-bench")
	if code := plants.Wait(); code != 0 {
		t.Fatalf("lockstep plants powershift-bench: exit %d\n%s", code, &plants.Err)
	}
	text := plants.Out.String()
	limits := []Edit{{"overrun: skip 200", "overrun: skip 1000"}, {"# watchdog: 3 s ", "watchdog: 20 s "}}
	for _, e := range append(edits, limits...) {
		if !strings.Contains(text, e[0]) {
			t.Fatalf("the demo bench has no line %q:\n%s", e[0], text)
		}
		text = strings.Replace(text, e[0], e[1], 1)
	}

	file := filepath.Join(dir, "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &Bench{File: filepath.Join(dir, "report.json"), For: d}
	args = append(args, file, "-report", b.File)
	if d != UntilStopped {
		args = append(args, "-for", d.String())
	}
	b.Process = Start(t, Command(t), args...)
	return b
}

// AwaitTicking waits for the first status line: from then on the loop of the run ticks.
func (p *Process) AwaitTicking() {
	p.T.Helper()
	p.AwaitOutput("missed")
	if strings.Contains(p.Out.String(), " (policy ") { // the report of a run that has ended has the word, too
		p.T.Fatalf("%s: has ended\n%s%s", p.Name, &p.Out, &p.Err)
	}
}

// AwaitReport waits for the end of a run and returns its report. The run must end with exit 0 and
// all ticks.
func (b *Bench) AwaitReport() Report {
	b.T.Helper()
	r := b.end(b.For + Timeout)
	if want := uint64(b.For.Nanoseconds() / r.StepNs); r.Ticks != want {
		b.T.Errorf("%d grid points stepped in %v, want all %d", r.Ticks, b.For, want)
	}
	return r
}

// Stop ends a run as Ctrl-C does and returns its report. The run must end with exit 0.
func (b *Bench) Stop() Report {
	b.T.Helper()
	return b.StopWithin(Timeout)
}

// StopWithin is Stop with a time limit.
func (b *Bench) StopWithin(limit time.Duration) Report {
	b.T.Helper()
	b.Signal(syscall.SIGINT)
	return b.end(limit)
}

func (b *Bench) end(limit time.Duration) (r Report) {
	b.T.Helper()
	if code := b.WaitFor(limit); code != 0 {
		b.T.Fatalf("%s: exit %d, want 0\n%s%s", b.Name, code, &b.Out, &b.Err)
	}
	data, err := os.ReadFile(b.File)
	if err != nil {
		b.T.Fatal(err)
	}
	var all map[string]any
	if err := errors.Join(json.Unmarshal(data, &r), json.Unmarshal(data, &all)); err != nil {
		b.T.Fatalf("%v in the report %s", err, data)
	}
	if ledger, _ := all["ledger"].([]any); len(ledger) > 3 { // a slow machine has hundreds of late ticks
		all["ledger"] = append(ledger[:3], fmt.Sprintf("and %d more", len(ledger)-3))
	}
	line, _ := json.Marshal(all)
	b.T.Logf("report: %s", line)
	return r
}

// StartUnit starts the virtual control unit.
func StartUnit(t *testing.T, bus string) *Process {
	t.Helper()
	p := Start(t, Command(t), "ecu", "powershift", "-bus", bus)
	p.AwaitOutput("waiting for Speeds")
	return p
}

// ListedRun is the part of a run in `lockstep ps -json` that the tests read.
type ListedRun struct {
	Bench      string   `json:"bench"`
	Supervisor int      `json:"supervisor"`
	Target     int      `json:"target"`
	CPU        int      `json:"cpu"`
	Shared     bool     `json:"cpu_shared"`
	Buses      []string `json:"buses"`
	State      string   `json:"state"`
	Ticks      uint64   `json:"ticks"`
}

// Runs returns the runs of this host by the names of their benches.
func Runs(t *testing.T) map[string]ListedRun {
	t.Helper()
	byName := map[string]ListedRun{}
	list := listRuns(t)
	for _, v := range list {
		byName[v.Bench] = v
	}
	if len(byName) != len(list) {
		t.Errorf("two runs have one name: %+v", list)
	}
	return byName
}

func listRuns(t *testing.T) (list []ListedRun) {
	t.Helper()
	out, errors, code := Run(t, "ps", "-json")
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil {
		t.Fatalf("ps: exit %d, %s, %v", code, errors, err)
	}
	return list
}

// AwaitTicks waits until the loop has done n more ticks, counting missed ones, and has begun one
// more. The loop has then read every frame that was on the bus before. AwaitTicks also returns when
// the run ends.
func (b *Bench) AwaitTicks(n uint64) {
	b.T.Helper()
	ticks := func() uint64 {
		for _, v := range listRuns(b.T) {
			if v.Supervisor == b.Cmd.Process.Pid {
				return v.Ticks
			}
		}

		return 0
	}

	for _, n := range []uint64{n, 1} {
		before := ticks()
		Await(b.T, fmt.Sprintf("%d ticks more than %d of %s", n, before, b.Name), func() bool { return b.Ended() || ticks() >= before+n })
	}
}

// AwaitStatus waits for n more status lines: the supervisor has then made its periodic checks.
func (b *Bench) AwaitStatus(n int) {
	b.T.Helper()
	b.AwaitOutputs("missed", strings.Count(b.Out.String(), "missed")+n)
}
