package sweep

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"lockstep/io/yamlfile"
	"lockstep/model/plantfile"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/scenario"
	"lockstep/rt/virtual"
)

// Row is the result of one case.
type Row struct {
	Case    int64
	Results []*float64 // nil: no result
	Judged  bool       // the expectations were judged
	Broken  string     // names of the expectations that did not hold; "": none
	Failed  string     // why the case has no results; "": it has results
}

// worker runs cases one after the other, with its own copy of the files.
type worker struct {
	sweep   *Sweep
	from    *virtual.Variation
	targets [][]*location // values set by each parameter
	status  *rt.StatusBlock
	stop    *atomic.Bool
}

// worker reads the plant or bench and the scenario, and finds the values of all parameters.
func (s *Sweep) worker() (*worker, error) {
	w := &worker{sweep: s, status: new(rt.StatusBlock), stop: new(atomic.Bool)}
	key := "plant"
	if s.given["bench"].Text != "" {
		key = "bench"
	}
	var err error
	if w.from, err = virtual.NewVariation(s.dir, s.Plant); err != nil {
		return nil, s.at(key, err)
	}
	if kind := map[bool]string{true: "bench", false: "plant"}[w.from.Bench != nil]; kind != key {
		return nil, s.Errorf(s.given[key], "%s: %s is a %s: write %s: %s", key, s.Plant, kind, kind, s.Plant)
	}
	if scenario := s.given["scenario"].Text; scenario != "" {
		if err := w.from.SetScenario(s.dir, scenario); err != nil {
			return nil, s.at("scenario", err)
		}
	}

	w.from.Step, w.from.For = s.step, s.length
	return w, w.find()
}

// at adds the position of a key to an error that has no position.
func (s *Sweep) at(key string, err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "bench: "); ok {
		return s.Errorf(s.given[key], "%s: %s", key, text)
	}
	return err
}

// find finds the values of all parameters.
func (w *worker) find() error {
	all, taken := locations(w.from), map[yamlfile.Node]yamlfile.Scalar{}
	for _, p := range w.sweep.parameters {
		var list []*location
		for _, name := range p.targets {
			there, err := find(all, name.Text)
			if err != nil {
				return p.Errorf(name, "%w", err)
			}
			if before, ok := taken[there.Node]; ok {
				return p.Errorf(name, "%s is varied twice: it is also %s in line %d", name.Text, before.Text, before.Line)
			}
			taken[there.Node] = name
			list = append(list, there)
		}

		w.targets = append(w.targets, list)
	}

	return nil
}

// prepare prepares a case with the current values of the files.
func (w *worker) prepare() (*virtual.Case, error) {
	*w.status = rt.StatusBlock{}
	return w.from.Prepare(w.status)
}

// fit checks the units of the parameters and sets those of their columns.
func (w *worker) fit(h *bench.Handover) error {
	for i := range w.sweep.parameters {
		p := &w.sweep.parameters[i]
		column := &w.sweep.Columns[1+i]
		column.Unit = p.unit
		for j, at := range w.targets[i] {
			bare, err := at.fit(&p.axis, h)
			if err != nil {
				return p.Errorf(p.targets[j], "%w", err)
			}
			column.Unit = cmp.Or(column.Unit, columnUnit(bare))
		}
	}

	return nil
}

// run simulates a case; done is false if it was stopped before its end.
func (w *worker) run(number int64) (row Row, done bool) {
	row = Row{Case: number, Results: make([]*float64, len(w.sweep.results))}
	if err := w.simulate(&row); err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		row = Row{Case: number, Results: make([]*float64, len(w.sweep.results)), Failed: strings.ToValidUTF8(text, "?")}
	}

	return row, !w.stop.Load()
}

// simulate fills the row of a case. A panic is an error of the case.
func (w *worker) simulate(row *Row) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()

	for i := range w.sweep.parameters {
		p := &w.sweep.parameters[i]
		for _, at := range w.targets[i] {
			at.Set(p.text(p.index(row.Case)))
		}
	}

	c, err := w.prepare()
	if err != nil {
		return err
	}
	defer c.Close()
	meters := make([]*meter, len(w.sweep.results))
	for i := range meters {
		if meters[i], err = newMeter(w.sweep.results[i], c); err != nil {
			return err
		}
	}

	report, err := c.Run(func(k int64, y, u []float64) bool {
		for _, m := range meters {
			m.measure(k, y, u)
		}
		return !w.stop.Load()
	})
	if err != nil {
		return err
	}
	for i, m := range meters {
		switch v := m.result(); {
		case math.IsInf(v, 0):
			return fmt.Errorf("result %s is not finite", w.sweep.results[i].name.Text)
		case !math.IsNaN(v):
			row.Results[i] = &v
		}
	}

	if t := report.Scenario; t != nil && len(t.Findings) > 0 {
		var broken []string
		for _, f := range t.Findings {
			if f.Broken() {
				broken = append(broken, f.What)
			}
		}

		row.Judged, row.Broken = true, strings.Join(broken, "; ")
	}

	return nil
}

// location is a value in the tree of a file, with its address in a sweep file.
type location struct {
	yamlfile.Leaf
	name  string
	plant *plantfile.Draft // nil: a value of a bench or scenario
}

// locations returns all values that a sweep can vary: values of the scenario, the bench and the
// plant. Some sections may be left out of an address.
func locations(v *virtual.Variation) (list []location) {
	add := func(prefix string, top yamlfile.Node, plant *plantfile.Draft, sections ...string) {
		leaves := yamlfile.Leaves(top)
		for _, section := range sections {
			for _, leaf := range leaves {
				if name, ok := strings.CutPrefix(leaf.Path, section); ok {
					list = append(list, location{leaf, prefix + name, plant})
				}
			}
		}
	}

	if v.Scenario != nil {
		add("scenario.", v.Scenario.Top, nil, "", "stimuli.")
	}
	if v.Bench != nil {
		add("bench.", v.Bench, nil, "")
	}
	add("", v.Plant.Top(), v.Plant, "", "parameters.", "elements.", "inputs.")
	return list
}

// find finds the value with an address. The name of an input is the address of its default, that of a
// parameter with a range the address of its value.
func find(list []location, name string) (*location, error) {
	i := slices.IndexFunc(list, func(p location) bool {
		return p.name == name || p.name == name+".default" || p.name == name+".value"
	})
	if i >= 0 {
		return &list[i], nil
	}
	var known []string
	for _, p := range list {
		known = append(known, strings.TrimSuffix(p.name, ".default"))
	}
	return nil, fmt.Errorf("the files have no value %s%s", name, units.Meant(name, known))
}

// fit checks that the file has a number at this address, and the unit of its values. Only a parameter
// of an element may be bare, where the file shows no other unit than SI. bare is the unit of values
// without one; "": none.
func (p *location) fit(a *axis, h *bench.Handover) (bare string, err error) {
	text, _ := yamlfile.ScalarText(p.Node)
	there, wrong := units.Evaluate(text, nil)
	is := wrong == nil && !p.isTitle()
	if p.plant != nil {
		bare, is = p.plant.Number(p.Node)
	}
	if !is {
		return "", fmt.Errorf("%s is not a number: %q", p.name, text)
	}

	want, known := p.stimulusUnit(h)
	switch {
	case known:
	case p.plant != nil && strings.HasPrefix(p.Path, "inputs."):
		want, known = units.Want(bare), true
	case wrong == nil && !there.Bare:
		want = units.Want(there.Spelled())
		si := want.Factor == 1 && want.Zero == 0
		known = a.unit != "" || !si || bare == "" || !strings.Contains("."+p.Path, ".elements.")
	}

	switch {
	case known:
		_, err = want.Typed(a.largest())
	case p.plant != nil && a.unit != "":
		err = p.plant.Fits(p.Node, a.unit)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %s; the file has %q", p.name, units.Reason(err), text)
	}

	return bare, nil
}

// isTitle reports whether the value is text for people, which may look like a number.
func (p *location) isTitle() bool {
	key := p.Path[strings.LastIndex(p.Path, ".")+1:]
	return slices.Contains([]string{"bench", "scenario", "about", "name"}, key) && !strings.HasPrefix(p.Path, "stimuli.")
}

// stimulusUnit returns the unit of a value of a stimulus, or of a time in a table of a bench or scenario.
func (p *location) stimulusUnit(h *bench.Handover) (want units.Wanted, ok bool) {
	if p.plant != nil {
		return want, false
	}
	if tableTime.MatchString(p.Path) {
		return units.Want("s"), true
	}
	name, stimulus := strings.CutPrefix(p.Path, "stimuli.")
	if !stimulus {
		return want, false
	}
	return scenario.StimulusUnit(h, stimulusValue.ReplaceAllString(name, ""))
}

// tableTime matches the path of a time in a table, stimulusValue the end of the path of a value in the
// unit of its input or signal.
var (
	tableTime     = regexp.MustCompile(`\.table\[[0-9]+\]\[0\]$`)
	stimulusValue = regexp.MustCompile(`(\.table\[[0-9]+\]\[1\]|\.sine\.mean)$`)
)
