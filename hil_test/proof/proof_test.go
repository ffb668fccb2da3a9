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

// proofVar is how long a proof in a lab runs, like 3m; hil_test/long sets it.
const proofVar = "LOCKSTEP_PROOF"

const unitVar = "LOCKSTEP_LAB_UNIT" // set: be the unit of package proof

// proofUnit is what the test binary is when it is started as the unit on brutella/can.
func proofUnit(args []string) int {
	if err := unit.Run(args, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "unit:", err)
		return 2
	}
	return 0
}

// schedule is when the messages of both benches are due: at the grid points k, from 1 on,
// with k modulo cycle = phase. It is written down here a second time.
var schedule = map[string]struct{ cycle, phase int64 }{
	"Wheels": {1, 0}, "Shafts": {2, 0}, "Torque": {2, 1}, "Gears": {4, 2}, "Service": {20, 3}, "Engine": {4, 0},
	"Motion": {1, 0}, "Chassis": {4, 1}, "MotionC": {1, 0}, "ChassisC": {4, 1},
	"Ignition": {20, 7}, "Ambient": {200, 11},
}

// proofRun is a run of a bench of package proof against both units.
type proofRun struct {
	*testing.T
	name   string               // of the bench
	bus    string               // of the bench
	units  string               // bus of the units
	d      time.Duration        // how long
	args   []string             // more for lockstep run
	record string               // file
	step   func(t *record.Tick) // called for each tick of the record, if set
	flood  string               // frames per second of a flood that are tried
}

// evidence is what all sides say of a run.
type evidence struct {
	report   lab.Report
	in       []lab.ProtectedMessage
	python   witnessed
	brutella unit.Testimony
	wire     wire
	here     int // how often the card of the bench says that it has lost frames that came
	there    int // and that of the units
}

// witnessed is what unit.py says.
type witnessed struct {
	unit.Testimony
	Late  [][2]float64 // grid points of Wheels, and how much later than the earliest they came, ms; above 2 ms
	Probe [][2]int64   // grid points of Motion at which the probe is not its course, and its raw value
	Gone  []int64      // grid points of Motion that it has not seen, from its first to its last
}

// wire is what the record says.
type wire struct {
	ticks   int64
	missed  map[int64]bool // grid points that were lost
	ledger  []record.Event // its entries
	sent    map[string]int // frames that the bus took, by message
	dropped map[string]int // frames that it did not take
	events  []record.Event // all others

	// Of faults on purpose.
	withheld map[string]int // frames made and kept from the bus, or received and kept from the plant
	off      map[string]int // of them while the bench was off the bus
	copies   map[string]int // sent once more, or only now; or decoded only now
	old      int            // copies of Shafts that come after frames of a later grid point
	newest   int64          // the last one of which a frame went out
	motion   map[int64]bool // grid points at which Motion was on the bus
	step     func(t *record.Tick)
}

// run runs the bench; the units send for as long as it certainly listens.
func (r *proofRun) run() *evidence {
	r.Helper()
	seconds := (r.d - r.d/20 - 4*time.Second).Seconds()
	// A witness that is not given a CPU for a while loses nothing.
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
	testify(python, 2*r.d+time.Minute, &e.python)
	testify(brutella, time.Minute, &e.brutella)
	e.wire.step = r.step
	e.wire.read(r.T, r.record)
	return e
}

// testify reads what a unit says at its end.
func testify(p *lab.Process, patience time.Duration, to any) {
	p.T.Helper()
	if code := p.WaitFor(patience); code != 0 {
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

// due is how many frames of a message the grid points have that were served.
func (w *wire) due(name string) (n int) {
	s := schedule[name]
	for k := int64(1); k <= w.ticks; k++ {
		if k%s.cycle == s.phase && !w.missed[k] {
			n++
		}
	}
	return n
}

// checkLedger holds that every lost grid point is in the ledger, and every entry says
// what it was.
func (e *evidence) checkLedger(t *testing.T) {
	t.Helper()
	lost := map[int64]bool{}
	for _, v := range e.wire.ledger {
		for k := range int64(v.Count) {
			lost[v.Tick+k] = true
		}
		if !strings.Contains(v.Text, "ms late") || !strings.Contains(v.Text, "most in ") {
			t.Errorf("an entry of the ledger explains nothing: %q", v.Text)
		}
	}
	for k := range e.wire.missed {
		if !lost[k] {
			t.Errorf("grid point %d was lost and is not in the ledger", k)
		}
	}
	if len(lost) != len(e.wire.missed) || uint64(len(lost)) != e.report.Missed {
		t.Errorf("%d grid points lost by the ledger, %d by the steps, %d by the report", len(lost), len(e.wire.missed), e.report.Missed)
	}
}

// checkLate holds that every frame that the other side saw later than the budget is in
// the ledger.
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
	t.Logf("%d frames that the other side saw more than %v ms late, all in the ledger of %d entries", n, budget, len(e.wire.ledger))
}

// checkSent holds what one side has seen of the bench against the record: every frame
// that was due, of its length and kind, at its grid points, with the right checksum and
// no gap but those of frames that the bus did not take, or a card has lost.
func (e *evidence) checkSent(t *testing.T, who string, seen map[string]*unit.Seen, names []string) {
	t.Helper()
	missing := 0
	for _, name := range names {
		s := seen[name]
		if s == nil {
			t.Errorf("%s has seen no %s", who, name)
			continue
		}
		due, sent, dropped := e.wire.due(name), e.wire.sent[name], e.wire.dropped[name]
		if sent+dropped < due || sent > due || s.Frames > sent || s.Grids != s.Frames {
			t.Errorf("%s: %s has seen %d of %d grid points; %d due, %d sent, %d dropped", name, who, s.Frames, s.Grids, due, sent, dropped)
		}
		gaps := dropped + sent - s.Frames // 15 in a row look like a repeated one
		if s.Wrong+s.Length+s.Flags+s.Old+s.Split != 0 || s.Lost > gaps || s.Repeated > gaps/14 || s.Phase > dropped {
			t.Errorf("%s: %s has seen %+v of %d; %d were not taken by the bus", name, who, *s, sent, dropped)
		}
		missing += sent - s.Frames
		t.Logf("%s: %s has seen %d frames of %d sent and %d due, %d not taken by the bus", name, who, s.Frames, sent, due, dropped)
	}
	if missing > 0 && e.there == 0 {
		t.Errorf("%s has not seen %d frames, and no card says it has lost some", who, missing)
	}
}

// checkTaken holds what the bench says of the units' frames against what they sent: all
// of them right, and none missing but what a card has lost.
func (e *evidence) checkTaken(t *testing.T) {
	t.Helper()
	if len(e.in) != 2 {
		t.Fatalf("the report has %d messages", len(e.in))
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
		t.Errorf("the bench has not received %d frames, and no card says it has lost some", missing)
	}
	for _, peer := range []struct {
		name string
		seen *unit.Seen
		sent int
	}{{"TCU_1", e.python.Frames["TCU_1"], e.brutella.Sent}, {"TCU_2C", e.brutella.Frames["TCU_2C"], e.python.Sent}} {
		if s := peer.seen; s != nil && (s.Frames != peer.sent || s.Wrong+s.Lost+s.Repeated+s.Length != 0) {
			t.Errorf("%s: the other unit has seen %+v of %d", peer.name, *s, peer.sent)
		}
	}
	if e.python.Unknown+e.brutella.Unknown != 0 {
		t.Errorf("%d and %d frames of unknown identifiers", e.python.Unknown, e.brutella.Unknown)
	}
}

// checkProbe holds that the probe followed its course.
func (e *evidence) checkProbe(t *testing.T) {
	t.Helper()
	if len(e.python.Probe) > 0 {
		t.Errorf("the probe is not on its course at %d grid points: %v", len(e.python.Probe), e.python.Probe[:min(5, len(e.python.Probe))])
	}
}

// proofFor is how long a proof runs.
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
