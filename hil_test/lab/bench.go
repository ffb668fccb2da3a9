package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// GuardedMessage is what the report says of a protected message.
type GuardedMessage struct {
	Frames   uint64 `json:"frames"`
	OK       uint64 `json:"ok"`
	SomeLost uint64 `json:"ok_somelost"`
	Repeated uint64 `json:"repeated"`
	Errors   uint64 `json:"error"`
	Sequence uint64 `json:"wrongsequence"`
	Window   string `json:"window"`
}

// Report is what the tests need of `lockstep run -report`.
type Report struct {
	StepNs      int64   `json:"step_ns"`
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
}

// spread is how a time is distributed, as the report says it, ns.
type spread struct {
	P50 int64 `json:"p50"`
	Max int64 `json:"max"`
}

// Bench is a run of a bench that writes a report.
type Bench struct {
	*Process
	File string        // of the report
	For  time.Duration // length of the run; UntilStopped: it has no end of its own
}

// UntilStopped is the length of a run that the test ends. A test that does something while
// a bench runs takes this: on a loaded machine any other length may be over before.
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

// StartDemoWith starts a command on the demo bench, edited. The demo bench gives up after 200
// ticks missed at once, or 3 s without one; a lab may well stand still for longer, so that it
// gets a longer patience here.
func StartDemoWith(t *testing.T, d time.Duration, edits []Edit, args ...string) *Bench {
	t.Helper()
	dir := t.TempDir()
	plants := Start(t, Command(t), "plants", "powershift-bench")
	if code := plants.Wait(); code != 0 {
		t.Fatalf("lockstep plants powershift-bench: exit %d\n%s", code, &plants.Err)
	}
	text := plants.Out.String()
	patient := []Edit{{"overrun: skip 200", "overrun: skip 1000"}, {"# watchdog: 3 s ", "watchdog: 20 s "}}
	for _, e := range append(edits, patient...) {
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

// AwaitTicking waits until the loop of a run ticks: for the first status line.
func (p *Process) AwaitTicking() {
	p.T.Helper()
	p.AwaitOutput("missed")
}

// AwaitReport waits for the end of a run, clean and complete, and returns what it reports.
func (b *Bench) AwaitReport() Report {
	b.T.Helper()
	r := b.end(b.For + Patience)
	if want := uint64(b.For.Nanoseconds() / r.StepNs); r.Ticks != want {
		b.T.Errorf("%d grid points stepped in %v, want every one of %d", r.Ticks, b.For, want)
	}
	return r
}

// Stop ends a run as Ctrl-C does and returns what it reports. The run must have
// ended clean.
func (b *Bench) Stop() Report {
	b.T.Helper()
	b.Signal(syscall.SIGINT)
	return b.end(Patience)
}

func (b *Bench) end(patience time.Duration) (r Report) {
	b.T.Helper()
	if code := b.WaitFor(patience); code != 0 {
		b.T.Fatalf("%s: exit %d, want 0\n%s%s", b.Name, code, &b.Out, &b.Err)
	}
	data, err := os.ReadFile(b.File)
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Logf("report: %s", data)
	if err := json.Unmarshal(data, &r); err != nil {
		b.T.Fatal(err)
	}
	return r
}

// StartUnit starts the virtual control unit.
func StartUnit(t *testing.T, bus string) *Process {
	t.Helper()
	p := Start(t, Command(t), "ecu", "powershift", "-bus", bus)
	p.AwaitOutput("waiting for Speeds")
	return p
}

// Listed is what the tests need of a run in `lockstep ps -json`.
type Listed struct {
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
func Runs(t *testing.T) map[string]Listed {
	t.Helper()
	byName := map[string]Listed{}
	list := listed(t)
	for _, v := range list {
		byName[v.Bench] = v
	}
	if len(byName) != len(list) {
		t.Errorf("names are there twice: %+v", list)
	}
	return byName
}

func listed(t *testing.T) (list []Listed) {
	t.Helper()
	out, errors, code := Run(t, "ps", "-json")
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil {
		t.Fatalf("ps: exit %d, %s, %v", code, errors, err)
	}
	return list
}

// AwaitTicks waits until the loop has done n more ticks, missed ones too, and begun another
// one after these: what was on the bus before has then been read.
func (b *Bench) AwaitTicks(n uint64) {
	b.T.Helper()
	ticks := func() uint64 {
		for _, v := range listed(b.T) {
			if v.Supervisor == b.Cmd.Process.Pid {
				return v.Ticks
			}
		}

		return 0
	}

	for _, n := range []uint64{n, 1} {
		before := ticks()
		Await(b.T, fmt.Sprintf("%d ticks more than %d of %s", n, before, b.Name), func() bool { return ticks() >= before+n })
	}
}

// AwaitStatus waits for n more status lines: the supervisor has looked at everything that
// it looks at from time to time.
func (b *Bench) AwaitStatus(n int) {
	b.T.Helper()
	b.AwaitOutputs("missed", strings.Count(b.Out.String(), "missed")+n)
}
