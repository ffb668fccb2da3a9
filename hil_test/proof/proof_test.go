package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/proof/unit"
	"lockstep/io/record"
)

// proofVar is the length of a run in a lab, like 3m; hil_test/long sets it.
const proofVar = "LOCKSTEP_PROOF"

const unitVar = "LOCKSTEP_LAB_UNIT" // set: the test binary is the unit on brutella/can

// proofUnit is the main function of a test binary that is started as the unit on brutella/can. It
// returns the exit status.
func proofUnit(args []string) int {
	if err := unit.Run(args, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "unit:", err)
		return 2
	}
	return 0
}

// schedule says when the messages of both benches are due: at the grid points k, from 1 on, with
// k modulo cycle = phase. It repeats the bench files independently.
var schedule = map[string]struct{ cycle, phase int64 }{
	"Wheels": {1, 0}, "Shafts": {2, 0}, "Torque": {2, 1}, "Gears": {4, 2}, "Service": {20, 3}, "Engine": {4, 0},
	"Motion": {1, 0}, "Chassis": {4, 1}, "MotionC": {1, 0}, "ChassisC": {4, 1},
	"Ignition": {20, 7}, "Ambient": {200, 11},
}

// proofRun is a run of a bench of package proof against both units.
type proofRun struct {
	*testing.T
	name   string               // name of the bench
	bus    string               // bus of the bench
	units  string               // bus of the units
	d      time.Duration        // length of the run
	args   []string             // more arguments of lockstep run
	record string               // path of the record
	step   func(t *record.Tick) // called for each tick of the record, if set
	flood  string               // attempted frames per second of a flood
}

// evidence is the data of all sides about a run.
type evidence struct {
	report   lab.Report
	in       []lab.ProtectedMessage
	python   pythonResult
	brutella unit.Result
	wire     wire
	here     int // receive overruns of the card of the bench
	there    int // receive overruns of the card of the units
}

// pythonResult is the output of unit.py.
type pythonResult struct {
	unit.Result
	Late  [][2]float64 // grid point of Wheels and its delay over the earliest frame, ms; above 2 ms
	Probe [][2]int64   // grid point of Motion and raw value of the probe, if not that of the waveform
	Gone  []int64      // grid points of Motion that were not received, from the first to the last
}

// wire is the content of the record.
type wire struct {
	ticks   int64
	missed  map[int64]bool // lost grid points
	ledger  []record.Event // entries of the ledger
	sent    map[string]int // sent frames, by message
	dropped map[string]int // frames that the bus refused, by message
	events  []record.Event // all other events

	// Effects of injected faults.
	withheld map[string]int // frames kept from the bus, or from the plant, by message
	off      map[string]int // withheld frames while the bench was off the bus, by message
	copies   map[string]int // frames sent again or late, or decoded late, by message
	old      int            // copies of Shafts after frames of a later grid point
	newest   int64          // last grid point with a sent frame
	motion   map[int64]bool // grid points at which Motion was sent
	step     func(t *record.Tick)
}

// run runs the bench and both units, and returns the evidence. The units stop sending before the
// bench ends.
func (r *proofRun) run() *evidence {
	r.Helper()
	seconds := (r.d - r.d/20 - 4*time.Second).Seconds()
	// Large receive buffers keep frames while a unit gets no CPU.
	if err := os.WriteFile("/proc/sys/net/core/rmem_default", []byte("16777216"), 0); err != nil {
		r.Fatal(err)
	}
	python := lab.Start(r.T, "/usr/bin/python3", "unit/unit.py", r.units, r.name, fmt.Sprint(seconds))
	r.Setenv(unitVar, "1")
	brutella := lab.Start(r.T, os.Args[0], r.units, fmt.Sprint(seconds))
	os.Unsetenv(unitVar)
	python.AwaitOutput("ready")
	brutella.AwaitOutput("ready")
	dir := r.TempDir()
	r.record = filepath.Join(dir, "run.rec")
	b := &lab.Bench{File: filepath.Join(dir, "report.json"), For: r.d}
	b.Process = lab.Start(r.T, lab.Command(r.T), append([]string{"run", r.name + ".yaml", "-bus", r.bus, "-for", r.d.String(),
		"-report", b.File, "-record", r.record}, r.args...)...)
	e := &evidence{report: b.AwaitReport()}
	var full struct{ Messages []lab.ProtectedMessage }
	data, err := os.ReadFile(b.File)
	if err == nil {
		err = json.Unmarshal(data, &full)
	}
	if err != nil {
		r.Fatal(err)
	}
	e.in = full.Messages
	readResult(python, 2*r.d+time.Minute, &e.python)
	readResult(brutella, time.Minute, &e.brutella)
	e.wire.step = r.step
	e.wire.read(r.T, r.record)
	return e
}

// readResult waits for the end of a unit and decodes its result.
func readResult(p *lab.Process, limit time.Duration, to any) {
	p.T.Helper()
	if code := p.WaitFor(limit); code != 0 {
		p.T.Fatalf("%s: exit %d\n%s", p.Name, code, &p.Err)
	}
	_, text, _ := strings.Cut(p.Out.String(), "ready\n")
	if err := json.Unmarshal([]byte(text), to); err != nil {
		p.T.Fatalf("%s: %v: %s", p.Name, err, text)
	}
	p.T.Logf("%s: %.3000s", p.Name, text)
}

// read reads a record.
func (w *wire) read(t *testing.T, path string) {
	t.Helper()
	r, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.missed, w.motion = map[int64]bool{}, map[int64]bool{}
	w.sent, w.dropped, w.withheld, w.off, w.copies = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	names := map[uint32]string{}
	for _, m := range r.Header.Buses[0].Messages {
		names[m.ID] = m.Name
	}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case record.TickEntry:
			if e.Tick.Index != w.ticks+1 {
				t.Fatalf("the record has tick %d after %d", e.Tick.Index, w.ticks)
			}
			w.ticks++
			if e.Tick.Flags&record.Missed != 0 {
				w.missed[w.ticks] = true
			}
			if w.step != nil {
				w.step(&e.Tick)
			}
		case record.FrameEntry:
			w.count(names[e.Frame.ID], &e.Frame)
		case record.EventEntry:
			if e.Event.Kind == record.Overrun {
				w.ledger = append(w.ledger, e.Event)
			} else {
				w.events = append(w.events, e.Event)
			}
		}
	}
	if torn := r.Torn(); torn != "" {
		t.Errorf("the record is torn: %s", torn)
	}
}

func (w *wire) count(name string, f *record.Frame) {
	switch {
	case f.Withheld:
		w.withheld[name]++
		if f.Tick >= offFirst && f.Tick <= offLast {
			w.off[name]++
		}
	case f.Copy:
		w.copies[name]++
		if name == "Shafts" && int64(f.Data[6])|int64(f.Data[7])<<8 < w.newest {
			w.old++
		}
	case f.Sent && f.Lost:
		w.dropped[name]++
	case f.Sent:
		w.sent[name]++
		w.newest = f.Tick
		if strings.HasPrefix(name, "Motion") {
			w.motion[f.Tick] = true
		}
	}
}

// due returns the number of frames of a message at the served grid points.
func (w *wire) due(name string) (n int) {
	s := schedule[name]
	for k := int64(1); k <= w.ticks; k++ {
		if k%s.cycle == s.phase && !w.missed[k] {
			n++
		}
	}
	return n
}

// checkLedger checks that every lost grid point is in the ledger, and that every entry names a
// delay and a phase.
func (e *evidence) checkLedger(t *testing.T) {
	t.Helper()
	lost := map[int64]bool{}
	for _, v := range e.wire.ledger {
		for k := range int64(v.Count) {
			lost[v.Tick+k] = true
		}
		if !strings.Contains(v.Text, "ms late") || !strings.Contains(v.Text, "most time in ") {
			t.Errorf("an entry of the ledger lacks delay or phase: %q", v.Text)
		}
	}
	for k := range e.wire.missed {
		if !lost[k] {
			t.Errorf("grid point %d was lost and is not in the ledger", k)
		}
	}
	if len(lost) != len(e.wire.missed) || uint64(len(lost)) != e.report.Missed {
		t.Errorf("%d grid points lost by the ledger, %d by the ticks of the record, %d by the report", len(lost), len(e.wire.missed), e.report.Missed)
	}
}

// checkLate checks that every frame that unit.py received later than the budget is in the ledger.
func (e *evidence) checkLate(t *testing.T) {
	t.Helper()
	const budget = 2.5 // ms
	served := map[int64]bool{}
	for _, v := range e.wire.ledger {
		served[v.Tick+int64(v.Count)] = true
	}
	n := 0
	for _, l := range e.python.Late {
		if !(l[1] > budget) {
			continue
		}
		n++
		if !served[int64(l[0])] {
			t.Errorf("the frame of grid point %v was %v ms late, and is not in the ledger", l[0], l[1])
		}
	}
	t.Logf("%d frames received more than %v ms late; %d entries in the ledger", n, budget, len(e.wire.ledger))
}

// checkSent compares the frames of the bench, as received by a unit, with the record: every due
// frame with its length and kind, at its grid points, with the right checksum. The only allowed
// gaps are frames that the bus refused or a card has lost.
func (e *evidence) checkSent(t *testing.T, who string, seen map[string]*unit.Seen, names []string) {
	t.Helper()
	missing := 0
	for _, name := range names {
		s := seen[name]
		if s == nil {
			t.Errorf("%s has received no %s", who, name)
			continue
		}
		due, sent, dropped := e.wire.due(name), e.wire.sent[name], e.wire.dropped[name]
		if sent+dropped < due || sent > due || s.Frames > sent || s.Grids != s.Frames {
			t.Errorf("%s: %s has received %d frames of %d grid points; %d due, %d sent, %d dropped", name, who, s.Frames, s.Grids, due, sent, dropped)
		}
		gaps := dropped + sent - s.Frames // 15 lost frames in a row look like a repeated one
		if s.Wrong+s.Length+s.Flags+s.Old+s.Split != 0 || s.Lost > gaps || s.Repeated > gaps/14 || s.Phase > dropped {
			t.Errorf("%s: %s has received %+v of %d; the bus refused %d", name, who, *s, sent, dropped)
		}
		missing += sent - s.Frames
		t.Logf("%s: %s has received %d frames of %d sent and %d due; the bus refused %d", name, who, s.Frames, sent, due, dropped)
	}
	if missing > 0 && e.there == 0 {
		t.Errorf("%s lacks %d frames, and no card reports an overrun", who, missing)
	}
}

// checkReceived compares the counts of the bench for the frames of the units with the sent frames:
// all right, and none missing except those that a card has lost.
func (e *evidence) checkReceived(t *testing.T) {
	t.Helper()
	if len(e.in) != 2 {
		t.Fatalf("the report has %d messages, want 2", len(e.in))
	}
	sent, missing := []int{e.brutella.Sent, e.python.Sent}, 0
	for i, m := range e.in {
		gone := sent[i] - int(m.Frames)
		if gone < 0 || m.OK+m.SomeLost != m.Frames || int(m.SomeLost) > gone || m.Errors+m.Repeated+m.Sequence != 0 {
			t.Errorf("the bench has counted %+v of %d frames", m, sent[i])
		}
		missing += gone
		t.Logf("the bench has counted %+v of %d frames", m, sent[i])
	}
	if missing > 0 && e.here == 0 {
		t.Errorf("the bench lacks %d frames, and no card reports an overrun", missing)
	}
	for _, peer := range []struct {
		name string
		seen *unit.Seen
		sent int
	}{{"TCU_1", e.python.Frames["TCU_1"], e.brutella.Sent}, {"TCU_2C", e.brutella.Frames["TCU_2C"], e.python.Sent}} {
		if s := peer.seen; s != nil && (s.Frames != peer.sent || s.Wrong+s.Lost+s.Repeated+s.Length != 0) {
			t.Errorf("%s: the other unit has received %+v of %d", peer.name, *s, peer.sent)
		}
	}
	if e.python.Unknown+e.brutella.Unknown != 0 {
		t.Errorf("%d and %d frames of unknown identifiers", e.python.Unknown, e.brutella.Unknown)
	}
}

// checkProbe checks that the probe followed its waveform.
func (e *evidence) checkProbe(t *testing.T) {
	t.Helper()
	if len(e.python.Probe) > 0 {
		t.Errorf("the probe differs from its waveform at %d grid points: %v", len(e.python.Probe), e.python.Probe[:min(5, len(e.python.Probe))])
	}
}

// proofFor returns the length of a run in a lab.
func proofFor(t *testing.T, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(proofVar)
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", proofVar, err)
	}
	return d
}
