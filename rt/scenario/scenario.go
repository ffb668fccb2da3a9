// Package scenario owns what happens in a run beside the control unit, and what is expected of
// the run: stimuli, faults, live commands, expectations and their verdict, also as JUnit XML. It
// prepares faults and finds values by name; package fault applies them in the tick. It neither
// starts a run nor speaks to one.
package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// Scenario is what happens in a run and what is expected of it:
//
//	scenario: clutch1-sticks
//	about: Clutch 1 does not open in the first shift
//	for: 4 s                                   # length of the run [-for, or until stopped]
//	stimuli:                                   # of inputs that no bus drives
//	  throttle: 40 %
//	  grade: {table: [[0 s, 0], [2 s, 5 %]]}   # also period: 4 s; lines between the points
//	  wind: {sine: {mean: 0 m/s, amplitude: 3 m/s, frequency: 0.2 Hz}}
//	faults:
//	  - {name: sticks, element: clutch1, does_not_open: true, at: 1 s, for: 500 ms}
//	  - {frame: Speeds, drop: true, when: w1 > 1500 rpm, for: 5 frames}
//	expect:
//	  - {value: w1, within: 2 %, of: 1500 rpm, from: 3 s, to: 4 s}    # or above: X, below: X
//	  - {answer: clutch1.pressure < 1 bar, after: {fault: sticks}, within: 50 ms}
//	  - {answer: {frame: TCU_1}, after: 3 s, within: 50 ms}           # after: {when: CONDITION}
//	  - {count: {message: TCU_1, of: errors}, is: 5}                  # or at_least, at_most
//
// A fault has one target: input: PORT, signal: MESSAGE.SIGNAL (of a received one the
// input that it drives), frame: MESSAGE, bus: NAME or element: NAME, a friction element;
// where several buses have it, MESSAGE on BUS. It has one kind:
//
//	input, signal   stuck: 3 bar; hold; offset: 1 bar; gain: 1.1; noise: 0.1 bar (deviation);
//	                ramp: 1 bar/s (from the value at its begin); drift: 1 bar/s (onto the value);
//	                floor: 2 bar; ceiling: 5 bar; leak: {share: 30 %, time: 200 ms};
//	                delay: 20 ms; open; short: ground or supply
//	frame           drop; delay: 20 ms; and of one that the bench sends freeze_counter;
//	                checksum: frozen, random, {value: 0x00} or {offset: 1}; length: 4 (bytes);
//	                duplicate; burst: 5 (more at once)
//	bus             bus_off
//	element         does_not_open (18 bar: not below that; true: the largest value);
//	                does_not_close
//
// where a kind without a value has true. It starts at a time or a tick (at: 3 s, at: tick
// 600) and under conditions (when: two at most, joined by "and"), at once without; it
// lasts for a time, some ticks or some frames (for: 200 ms, 40 ticks, 5 frames), until it
// is cleared without; seed: 7 [1] begins what is random. Times that are not on the grid
// are rounded up to it, the end of a window down. A number without a unit is in that of
// the signal, or SI of a port.
//
// A fault on a signal waits while the bus carries the safe values; all others go on in the
// safe state (see package fault). A fault that lasts for frames of a message that is sent
// on change lasts until there were so many.
//
// Conditions and expectations are of outputs, of signals bound to a port, and of inputs
// that a bus drives, that have a course here or stay as they are: what an input does by a
// table of its own is not seen outside of the plant.
//
// What a window judges are the values at its ticks, from: and to: included, to the end of
// the run without to:. An answer is timed from the tick of its cause to the tick at which
// the condition holds, or to the stamp that the kernel has put on the frame; of a frame
// without a stamp to the tick that reads it. A run that ends before its time leaves
// unjudged what was still open, and that is as good as broken. The verdict is of the
// supervisor that began the run: who attaches to it goes on with the faults, and judges
// nothing.
type Scenario struct {
	File   string
	Name   string
	About  string
	Ticks  int64       // the length of the run; 0: it goes on until it is stopped
	Faults []FaultSpec // by slot
	Plan   fault.Plan
	Expect []Expectation

	Source []byte // the file itself
}

// Parse reads a scenario for a bench. Errors are "FILE:LINE:COL: bench: ...".
// Where h.Loop.Ticks says how long the run is, that holds, not the file's own length.
func Parse(file string, data []byte, h *bench.Handover) (*Scenario, error) {
	r := bench.NewReader(bench.FileOrigin(file))
	n := r.Document(data)
	if n == nil {
		return nil, r.Err
	}
	s, err := ReadTree(r, n, h)
	if err == nil {
		s.Source = data
	}
	return s, err
}

// ReadTree reads the tree of a scenario.
func ReadTree(r *yamlfile.Reader, n ast.Node, h *bench.Handover) (*Scenario, error) {
	s := &Scenario{File: r.File}
	var length yamlfile.Scalar
	var expect []expectSpec
	r.Mapping(n, "scenario file", []yamlfile.Key{
		{Name: "scenario", Read: func(n ast.Node) { s.Name = bench.ReadTitle(r, n, "scenario") }},
		{Name: "about", Read: r.StoreText(&s.About, "about")},
		{Name: "for", Read: r.StoreScalar(&length, "for")},
		{Name: "stimuli", Read: func(n ast.Node) { readStimuli(r, n, s, h) }},
		{Name: "faults", Read: func(n ast.Node) {
			r.Sequence(n, "faults", func(n ast.Node) { s.Faults = append(s.Faults, readFault(r, n)) })
		}},
		{Name: "expect", Read: func(n ast.Node) {
			r.Sequence(n, "expect", func(n ast.Node) { expect = append(expect, readExpectation(r, n)) })
		}},
	})
	if r.Err == nil && s.Name == "" {
		r.Err = r.Errorf(yamlfile.Scalar{Line: 1, Col: 1}, "the name is missing (scenario: NAME)")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	if err := s.length(length, h, r.Origin); err != nil {
		return nil, err
	}
	h.Loop.Faults.Stimuli = s.Plan.Stimuli // which inputs are known
	if err := s.arm(h); err != nil {
		return nil, err
	}
	for i := range expect {
		e, err := s.expectation(&expect[i], h)
		if err != nil {
			return nil, err
		}
		s.Expect = append(s.Expect, e)
	}
	return s, nil
}

// length sets how long the run is.
func (s *Scenario) length(w yamlfile.Scalar, h *bench.Handover, o yamlfile.Origin) (err error) {
	if w.Text != "" {
		if s.Ticks, err = parseTicks(h, w.Text); err == nil && s.Ticks < 1 {
			err = fmt.Errorf("%s is not more than nothing", w.Text)
		}
		if err != nil {
			return o.Errorf(w, "for: %w", err)
		}
	}
	if h.Loop.Ticks > 0 {
		s.Ticks = h.Loop.Ticks
	}
	return nil
}

// arm puts the faults into their slots.
func (s *Scenario) arm(h *bench.Handover) error {
	for i := range s.Faults {
		spec := &s.Faults[i]
		f, err := ResolveFault(h, *spec)
		if err != nil {
			return err
		}
		same := func(e FaultSpec) bool { return e.Name.Text == spec.Name.Text }
		switch {
		case slices.ContainsFunc(s.Faults[:i], same):
			return spec.Errorf(spec.Name, "fault: two are called %s: give one another name (name: ...)", spec.Name.Text)
		case i >= fault.Max:
			return spec.Errorf(spec.Target, "fault: more than %d at once are not possible", fault.Max)
		case s.Ticks > 0 && f.Start.Tick > s.Ticks:
			return spec.Errorf(spec.At, "fault: at: %s is after the end of the run, at %s: it would never start", spec.At.Text, s.FormatTick(s.Ticks, h))
		}
		s.Plan.Faults = append(s.Plan.Faults, f)
	}
	return nil
}

// FormatTick is a tick in seconds, for messages.
func (s *Scenario) FormatTick(tick int64, h *bench.Handover) string {
	return fmt.Sprintf("%.9g s", float64(tick)*float64(h.Tables.PeriodNs)/1e9)
}

// readStimuli reads the courses of inputs that no bus drives.
func readStimuli(r *yamlfile.Reader, n ast.Node, s *Scenario, h *bench.Handover) {
	for _, e := range r.Entries(n, "stimuli") {
		name := yamlfile.KeyScalar(e)
		i := bench.PortIndex(h.Tables.Inputs, name.Text)
		switch {
		case r.Err != nil:
			return
		case i < 0:
			r.Err = r.Errorf(name, "stimuli: %w", unknown("input", name.Text, bench.PortNames(h.Tables.Inputs)))
			return
		case drivenBy(h, name.Text) != "":
			r.Err = r.Errorf(name, "stimuli: input %s is driven by %s: use a fault (faults: [{input: %s, stuck: ...}])",
				name.Text, drivenBy(h, name.Text), name.Text)
			return
		}
		s.Plan.Stimuli = append(s.Plan.Stimuli, fault.Stimulus{Input: i, Course: readStimulus(r, e.Value, &h.Tables.Inputs[i])})
	}
}

// drivenBy is the signal that drives an input; "" none does.
func drivenBy(h *bench.Handover, port string) string {
	for _, bus := range h.Bench.Buses {
		for _, l := range bus.Receive {
			if l.Port == port {
				return l.Message + "." + l.Signal
			}
		}
	}
	return ""
}

// readStimulus reads a value or a course, within the range of its port.
func readStimulus(r *yamlfile.Reader, n ast.Node, p *units.Port) sigmap.Course {
	what := "stimuli: " + p.Name
	c := &sigmap.Course{At: []int64{0}}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		c = bench.ReadWaveform(r, n, what, func(n ast.Node, text, what string) float64 { return bench.ReadQuantity(r, n, text, p.Unit, what) })
	default:
		c.Value = []float64{bench.ReadQuantity(r, n, r.Scalar(n, what).Text, p.Unit, what)}
	}
	if r.Err != nil {
		return *c
	}
	for _, v := range []float64{slices.Min(c.Value), slices.Max(c.Value)} {
		if !(v >= p.Min && v <= p.Max) {
			r.Fail(n, "%s: %s is beyond the range of the input, %s", what,
				bench.WithUnit(fmt.Sprintf("%.9g", v), p.Unit), bench.WithUnit(fmt.Sprintf("%.9g to %.9g", p.Min, p.Max), p.Unit))
		}
	}
	return *c
}

// named are the faults by slot.
func (s *Scenario) named() (list []bench.NamedFault) {
	for i := range s.Faults {
		list = append(list, bench.NamedFault{Name: s.Faults[i].Name.Text, Spec: s.Faults[i].String()})
	}
	return list
}

// Apply makes the scenario part of the hand-over to the target.
func Apply(h *bench.Handover, s *Scenario) {
	h.Loop.Faults.Faults, h.Loop.Faults.Stimuli = s.Plan.Faults, s.Plan.Stimuli
	h.Loop.Ticks, h.Named = s.Ticks, s.named()
}

// Load reads the scenario called name, a file or embedded, and applies it.
func Load(h *bench.Handover, name string) (*Scenario, error) {
	file, data, err := bench.ReadAny(name)
	if err != nil {
		return nil, err
	}
	if k := bench.FileKind(file, data); k != "scenario" {
		return nil, &bench.KindError{File: file, Kind: k, Err: fmt.Errorf("bench: %s is a file of another kind (%s); a scenario begins with scenario: NAME", file, k)}
	}
	s, err := Parse(file, data, h)
	if err == nil {
		Apply(h, s)
	}
	return s, err
}

// FaultNames are those of the faults.
func (s *Scenario) FaultNames() (list []string) {
	for i := range s.Faults {
		list = append(list, s.Faults[i].Name.Text)
	}
	return list
}

// Text says what was understood, for people.
func (s *Scenario) Text(h *bench.Handover) string {
	out := &strings.Builder{}
	length := "until it is stopped"
	if s.Ticks > 0 {
		length = fmt.Sprintf("for %s, %d ticks", s.FormatTick(s.Ticks, h), s.Ticks)
	}
	fmt.Fprintf(out, "%s: scenario %s, %s\n", s.File, s.Name, length)
	for _, c := range s.Plan.Stimuli {
		p := &h.Tables.Inputs[c.Input]
		lo, hi := slices.Min(c.Course.Value), slices.Max(c.Course.Value)
		text := fmt.Sprintf("%.6g", lo)
		if len(c.Course.Value) > 1 {
			text = fmt.Sprintf("%d points from %.6g to %.6g", len(c.Course.Value), lo, hi)
		}
		text = bench.WithUnit(text, p.Unit)
		if c.Course.Period > 0 {
			text += fmt.Sprintf(", every %g s", float64(c.Course.Period)/1e9)
		}
		fmt.Fprintf(out, "  stimulus  %s: %s\n", p.Name, text)
	}
	for i, f := range s.Plan.Faults {
		start, when := "at once", s.Faults[i].When.Text
		switch {
		case f.Start.Tick > 0 && when != "":
			start = fmt.Sprintf("from tick %d on, when %s", f.Start.Tick, when)
		case f.Start.Tick > 0:
			start = fmt.Sprintf("from tick %d on", f.Start.Tick)
		case when != "":
			start = "when " + when
		}
		last := "until cleared"
		if f.Last > 0 {
			last = fmt.Sprintf("for %d %s", f.Last, map[bool]string{true: "frames", false: "ticks"}[f.Frames])
		}
		fmt.Fprintf(out, "  fault     %s; %s, %s\n", s.named()[i], start, last)
	}
	for i := range s.Expect {
		name := s.Expect[i].Name.Text + ": "
		if s.Expect[i].Name.Text == s.Expect[i].Want {
			name = ""
		}
		fmt.Fprintf(out, "  expected  %s%s\n", name, s.Expect[i].Want)
	}
	return out.String()
}
