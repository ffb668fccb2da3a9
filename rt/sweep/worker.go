package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"lockstep/io/yamlfile"
	"lockstep/model/plantfile"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/virtual"
)

// Row is one case of the table without its parameters.
type Row struct {
	Case    int64
	Results []*float64 // nil: none
	Judged  bool       // what was expected was judged
	Broken  string     // names of the expectations that did not hold; "" none
	Failed  string     // why there are no results; "" there are
}

// worker runs cases, one after the other, on files of its own.
type worker struct {
	sweep  *Sweep
	from   *virtual.Variation
	places [][]*place // of each parameter
	page   *rt.StatusBlock
	stop   *atomic.Bool
}

// worker reads the plant or bench, and the scenario, and finds the places of all parameters.
func (s *Sweep) worker() (*worker, error) {
	w := &worker{sweep: s, page: new(rt.StatusBlock), stop: new(atomic.Bool)}
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

// at gives an error that has no place of its own that of the key that led to it.
func (s *Sweep) at(key string, err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "bench: "); ok {
		return s.Errorf(s.given[key], "%s: %s", key, text)
	}
	return err
}

// find finds the places of all parameters.
func (w *worker) find() error {
	all, taken := places(w.from), map[yamlfile.Node]yamlfile.Scalar{}
	for _, p := range w.sweep.parameters {
		var list []*place
		for _, name := range p.targets {
			there, err := find(all, name.Text)
			if err != nil {
				return p.Errorf(name, "%w", err)
			}
			if before, ok := taken[there.Node]; ok {
				return p.Errorf(name, "%s is varied twice, also as %s in line %d", name.Text, before.Text, before.Line)
			}
			taken[there.Node] = name
			list = append(list, there)
		}

		w.places = append(w.places, list)
	}

	return nil
}

// prepare makes a case of the values that stand in the files now.
func (w *worker) prepare() (*virtual.Case, error) {
	*w.page = rt.StatusBlock{}
	return w.from.Prepare(w.page)
}

// fit holds the units of the parameters against what stands in the files; a parameter
// without one has that of the place.
func (w *worker) fit() error {
	for i := range w.sweep.parameters {
		p := &w.sweep.parameters[i]
		column := &w.sweep.Columns[1+i]
		column.Unit = p.unit
		for j, place := range w.places[i] {
			unit, err := place.fit(p.unit)
			if err != nil {
				return p.Errorf(p.targets[j], "%w", err)
			}
			if p.unit == "" && unit != "1" {
				column.Unit = unit
			}
		}
	}

	return nil
}

// run simulates a case; false: it was stopped before its end.
func (w *worker) run(number int64) (row Row, done bool) {
	row = Row{Case: number, Results: make([]*float64, len(w.sweep.results))}
	if err := w.simulate(&row); err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		row = Row{Case: number, Results: make([]*float64, len(w.sweep.results)), Failed: strings.ToValidUTF8(text, "?")}
	}

	return row, !w.stop.Load()
}

// simulate fills the row of a case. A plant that panics is a case that failed.
func (w *worker) simulate(row *Row) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()

	for i := range w.sweep.parameters {
		p := &w.sweep.parameters[i]
		for _, place := range w.places[i] {
			place.Set(p.text(p.index(row.Case)))
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
			m.take(k, y, u)
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
			if !f.Held {
				broken = append(broken, f.What)
			}
		}

		row.Judged, row.Broken = true, strings.Join(broken, "; ")
	}

	return nil
}

// place is a value in the tree of a file, and its name in a sweep file.
type place struct {
	yamlfile.Leaf
	name string
	of   *plantfile.Draft // nil: not of a plant
}

// places are all values that a sweep can vary: those of the scenario, of the bench and of the
// plant. Some sections may be left out of a name.
func places(v *virtual.Variation) (list []place) {
	add := func(prefix string, top yamlfile.Node, of *plantfile.Draft, sections ...string) {
		leaves := yamlfile.Leaves(top)
		for _, section := range sections {
			for _, leaf := range leaves {
				if name, ok := strings.CutPrefix(leaf.Path, section); ok {
					list = append(list, place{leaf, prefix + name, of})
				}
			}
		}
	}

	if v.Scenario != nil {
		add("scenario.", v.Scenario, nil, "", "stimuli.")
	}
	if v.Bench != nil {
		add("bench.", v.Bench, nil, "")
	}
	add("", v.Plant.Top(), v.Plant, "", "parameters.", "elements.", "inputs.")
	return list
}

// find looks a name up; that of an input alone means its default.
func find(list []place, name string) (*place, error) {
	i := slices.IndexFunc(list, func(p place) bool { return p.name == name || p.name == name+".default" })
	if i >= 0 {
		return &list[i], nil
	}
	var known []string
	for _, p := range list {
		known = append(known, strings.TrimSuffix(p.name, ".default"))
	}
	return nil, fmt.Errorf("nothing called %s stands in the files%s", name, units.Meant(name, known))
}

// fit holds the unit of a parameter against what stands at its place, and returns the one in
// which a bare number counts there; "" where that is not known.
func (p *place) fit(unit string) (bare string, err error) {
	text, _ := yamlfile.ScalarText(p.Node)
	is := true
	if p.of != nil {
		if bare, is = p.of.Number(p.Node); unit != "" && unit != "degC" {
			err = p.of.Fits(p.Node, unit)
		}
	} else if _, there, wrong := number(text); wrong != nil {
		is = strings.ContainsAny(text, "+-*/()") // a calculation
	} else if unit != "" && there != "" && unit != there {
		_, err = units.Convert(unit, there)
	}

	switch {
	case !is:
		return "", fmt.Errorf("%s is no number but %q", p.name, text)
	case err != nil:
		return "", fmt.Errorf("%s: %s; there stands %q", p.name, units.Reason(err), text)
	}

	return bare, nil
}
