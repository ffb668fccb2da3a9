package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/cycle"
	"lockstep/model/kernel"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// Scenario is a scenario file resolved for a bench. SCENARIO.md describes the file.
type Scenario struct {
	File      string
	Name      string
	About     string
	Ticks     int64              // length of the run; 0: until it is stopped
	Shortened bool               // h.Loop.Ticks ends the run before the length of the scenario: expectations may be skipped
	Faults    []*faultSpec       // by slot
	Plan      fault.Plan         // stimuli, and the faults by slot
	named     []bench.NamedFault // names of the faults by slot

	stimuli []*resolvedTarget // targets of Plan.Stimuli
	driver  *driverSection    // nil: nobody drives a cycle

	Changes     []kernel.Change // tables of later grid points, with other parameters
	changeTexts []string        // parameters of each change: "m_car=2000 kg, mu=0.2"

	stateTexts []string // of Plan.States: "reset warm"
	snapshots  []string // names of their snapshots, by slot

	Expect []Expectation

	Source []byte // content of the file
}

// Parse reads a scenario for a bench. A length of the run in h.Loop.Ticks takes precedence over the
// file; what the file plans after a shorter one does not happen and is not judged. Errors are "FILE:LINE:COL: bench: ...".
func Parse(file string, data []byte, h *bench.Handover) (s *Scenario, err error) {
	r := bench.NewReader(file)
	err = r.Try(func() { s = read(r, r.Document(data), nil, h) })
	if err == nil {
		s.Source = data
	}
	return s, err
}

// Draft is a parsed scenario for many runs, with the cycle that it names. The caller may change values in its tree.
type Draft struct {
	Top yamlfile.Node

	file  string
	cycle *cycle.Cycle // nil: none
}

// ParseDraft parses a scenario and reads the cycle that it names.
func ParseDraft(file string, data []byte) (*Draft, error) {
	r := bench.NewReader(file)
	d := &Draft{file: file}
	err := r.Try(func() {
		d.Top = r.Document(data)
		for _, f := range r.FieldsOf(yamlfile.Root(d.Top), "scenario file") {
			if f.Key != "driver" {
				continue
			}
			for _, g := range r.FieldsOf(f, "driver") {
				if g.Key == "cycle" {
					d.cycle = loadCycle(r, g)
				}
			}
		}
	})
	return d, err
}

// Cycle returns the name of the file of the cycle and its SHA-256; "" for an embedded cycle, or none.
func (d *Draft) Cycle() (name string, digest []byte) {
	if d.cycle == nil || d.cycle.Digest == nil {
		return "", nil
	}
	return d.cycle.Source, d.cycle.Digest
}

// Scenario is Parse for the current tree.
func (d *Draft) Scenario(h *bench.Handover) (s *Scenario, err error) {
	r := bench.NewReader(d.file)
	err = r.Try(func() { s = read(r, d.Top, d.cycle, h) })
	return s, err
}

// read reads a scenario. c is the cycle that it names; nil: the file is read, too.
func read(r *yamlfile.Reader, n yamlfile.Node, c *cycle.Cycle, h *bench.Handover) *Scenario {
	given := r.Section(yamlfile.Root(n), "scenario file", "scenario", "about", "for", "start", "stimuli", "driver", "parameters", "states", "steps", "faults", "diagnosis", "expect")
	s := &Scenario{
		File:  r.File,
		Name:  bench.ReadTitle(r, r.Scalar(given["scenario"], "scenario"), "scenario"),
		About: r.Scalar(given["about"], "about").Text,
		Ticks: readLength(r, given["for"], h),
	}
	if start := bench.ReadStart(r, given["start"]); len(start) > 0 {
		if r.Err = h.SetStart(start); r.Err != nil {
			return s
		}
	}
	readStimuli(r, given["stimuli"], s, h)
	s.driver = readDriver(r, given["driver"], c, s, h)
	for _, f := range r.Items(given["faults"], "faults") {
		s.Faults = append(s.Faults, readFault(r, f))
	}
	var expect []*entry
	for _, f := range r.Items(given["expect"], "expect") {
		expect = append(expect, readEntry(r, f, "expect", expectKeys, expectParts))
	}
	if s.Name == "" {
		r.FailAt(yamlfile.Pos{Line: 1, Col: 1}, "the name is missing (scenario: NAME)")
	}

	if s.driver != nil {
		s.Ticks = cmp.Or(s.Ticks, s.driver.ticks(h))
		if !s.driver.judges {
			s.Plan.Cycle = &s.driver.plan
		}
	}
	if s.Shortened = h.Loop.Ticks > 0 && s.Ticks > h.Loop.Ticks; !s.Shortened {
		s.Ticks = cmp.Or(h.Loop.Ticks, s.Ticks)
	}
	s.readChanges(r, given["parameters"], h)
	s.readStates(r, given["states"], h)
	s.readSteps(r, given["steps"], h)
	h.Loop.Faults.Stimuli, h.Loop.Faults.Cycle, h.Loop.Faults.Lane = s.Plan.Stimuli, s.Plan.Cycle, s.Plan.Lane // makes these inputs visible to conditions
	s.resolveFaults(h)
	s.readRequests(r, given["diagnosis"], h)
	for _, e := range expect {
		s.Expect = append(s.Expect, expectSpec{e, s, h}.resolve())
	}
	s.expectChanges(h)
	if s.driver != nil {
		s.driver.expect(s)
	}
	s.expectStates(h)

	s.Ticks = cmp.Or(h.Loop.Ticks, s.Ticks)
	return s
}

// readLength reads the length of the run, ticks.
func readLength(r *yamlfile.Reader, f yamlfile.Field, h *bench.Handover) int64 {
	w := r.Scalar(f, "for")
	ticks, err := parseTicks(h, w.Text)
	switch {
	case err != nil:
		r.Fail(f, "for: %v", err)
	case ticks < 1:
		r.Fail(f, "for: %s is not a positive duration", w.Text)
	}

	return ticks
}

// resolveFaults resolves the faults and assigns their slots.
func (s *Scenario) resolveFaults(h *bench.Handover) {
	for i, spec := range s.Faults {
		f := spec.resolve(h)
		switch {
		case slices.Contains(s.FaultNames(), spec.Name.Text):
			spec.fail(spec.Name, "two faults are named %s: give one of them another name (name: ...)", spec.Name.Text)
		case i >= fault.Max:
			spec.fail(spec.target, "more than %d faults", fault.Max)
		case s.Ticks > 0 && f.Start.Tick > s.Ticks:
			at := spec.get("at")
			spec.fail(at, "at: %s is after the end of the run, at %s: the fault would never start",
				at.Text, s.FormatTick(s.Ticks, h))
		}

		s.Plan.Faults = append(s.Plan.Faults, f)
		s.named = append(s.named, bench.NamedFault{Name: spec.Name.Text, Spec: spec.String()})
	}
}

// FormatTick formats a tick as a time in s, for messages.
func (s *Scenario) FormatTick(tick int64, h *bench.Handover) string {
	return fmt.Sprintf("%.9g s", float64(tick)*float64(h.Tables.PeriodNs)/1e9)
}

// drivenBy returns the received signal that drives an input; "": none.
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

// Apply puts the scenario into the hand-over to the target.
func Apply(h *bench.Handover, s *Scenario) {
	h.Loop.Faults.Faults, h.Loop.Faults.Stimuli, h.Loop.Faults.Cycle = s.Plan.Faults, s.Plan.Stimuli, s.Plan.Cycle
	h.Loop.Faults.Lane = s.Plan.Lane
	h.Loop.Ticks, h.Named = s.Ticks, s.named
	h.Loop.Faults.States = s.Plan.States
	h.Changes, h.ChangeTexts = s.Changes, s.changeTexts
	h.StateTexts, h.Snapshots = s.stateTexts, s.snapshots
}

// Load reads the scenario called name, a file or embedded, and applies it.
func Load(h *bench.Handover, name string) (*Scenario, error) {
	file, data, _, err := bench.ReadKind("scenario", name, "scenario")
	if err != nil {
		return nil, err
	}
	s, err := Parse(file, data, h)
	if err == nil {
		Apply(h, s)
	}
	return s, err
}

// FaultNames returns the names of the faults by slot.
func (s *Scenario) FaultNames() (list []string) {
	for _, f := range s.named {
		list = append(list, f.Name)
	}
	return list
}

// Describe formats the resolved scenario for people.
func (s *Scenario) Describe(h *bench.Handover) string {
	out := &strings.Builder{}
	length := "until it is stopped"
	if s.Ticks > 0 {
		length = fmt.Sprintf("for %s, %d ticks", s.FormatTick(s.Ticks, h), s.Ticks)
	}
	fmt.Fprintf(out, "%s: scenario %s, %s\n", s.File, s.Name, length)
	for i, c := range s.Plan.Stimuli {
		t := s.stimuli[i]
		lo, hi := t.toSI(slices.Min(c.Waveform.Value)), t.toSI(slices.Max(c.Waveform.Value))
		text := t.Format(lo)
		if len(c.Waveform.Value) > 1 {
			text = fmt.Sprintf("%d points from %s", len(c.Waveform.Value), formatRange(lo, hi, t.Wanted))
		}
		if c.Waveform.Period > 0 {
			text += fmt.Sprintf(", every %g s", float64(c.Waveform.Period)/1e9)
		}
		fmt.Fprintf(out, "  stimulus  %s: %s\n", t.name, text)
	}

	if l := s.Plan.Lane; l != nil {
		fmt.Fprintf(out, "  driver    steers along a path of %s by %s\n", counted(len(l.PathX), "point"), h.Tables.Inputs[l.Steer.Input].Name)
	}
	if d := s.driver; d != nil {
		fmt.Fprintf(out, "  driver    %s, %.9g s: %s\n", d.cycle.Name, float64(d.cycle.End())/1e9, d.cycle.Source)
	}

	for i, text := range s.changeTexts {
		fmt.Fprintf(out, "  parameter %s, from %s\n", text, s.FormatTick(s.Changes[i].Tick, h))
	}

	for i, text := range s.stateTexts {
		fmt.Fprintf(out, "  state     %s, at %s\n", text, s.FormatTick(s.Plan.States[i].Tick, h))
	}

	for i, f := range s.Plan.Faults {
		start, when := "at once", s.Faults[i].text("when")
		switch {
		case f.Start.Tick > 0 && when != "":
			start = fmt.Sprintf("from tick %d on, when %s", f.Start.Tick, when)
		case f.Start.Tick > 0:
			start = fmt.Sprintf("from tick %d on", f.Start.Tick)
		case when != "":
			start = "when " + when
		}

		last := "until cleared"
		if f.Duration > 0 {
			last = fmt.Sprintf("for %d %s", f.Duration, map[bool]string{true: "frames", false: "ticks"}[f.Frames])
		}
		fmt.Fprintf(out, "  fault     %s; %s, %s\n", s.named[i], start, last)
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
