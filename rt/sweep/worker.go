package sweep

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"lockstep/rt"
	"lockstep/rt/virtual"
)

// Row is one case of the table without its parameters.
type Row struct {
	Case    int64
	Results []float64 // NaN: none
	Judged  bool      // what was expected was judged
	Broken  string    // names of the expectations that did not hold; "" none
	Failed  string    // why there are no results; "" there are
}

// worker runs cases, one after the other, on files of its own.
type worker struct {
	sweep  *Sweep
	from   *virtual.Variation
	places [][]*place // of each parameter
	page   *rt.Page
	stop   *atomic.Bool
}

func (s *Sweep) worker() (*worker, error) {
	step, err := span(s.spec.Step, "step")
	if err != nil {
		return nil, placed(s.File, err)
	}
	length, err := span(s.spec.For, "for")
	if err != nil {
		return nil, placed(s.File, err)
	}
	w := &worker{sweep: s, page: new(rt.Page), stop: new(atomic.Bool)}
	if err := w.open(); err != nil {
		return nil, err
	}
	w.from.Step, w.from.For = step, length
	return w, w.find()
}

// open reads the plant or bench, and the scenario.
func (w *worker) open() (err error) {
	s, d := w.sweep, &w.sweep.spec
	key, at := "plant", d.Plant
	if d.Bench.text != "" {
		key, at = "bench", d.Bench
	}
	if w.from, err = virtual.NewVariation(s.dir, at.text); err != nil {
		return s.from(err, at, key)
	}
	if kind := map[bool]string{true: "bench", false: "plant"}[w.from.Bench != nil]; kind != key {
		return placed(s.File, at.errorf("%s: %s is a %s: write %s: %s", key, at.text, kind, kind, at.text))
	}
	if d.Scenario.text != "" {
		return s.from(w.from.Follow(s.dir, d.Scenario.text), d.Scenario, "scenario")
	}
	return nil
}

// from gives an error that has no place of its own that of the word that led to it.
func (s *Sweep) from(err error, at word, key string) error {
	if text, without := "", false; err != nil {
		if text, without = strings.CutPrefix(err.Error(), "bench: "); without {
			return placed(s.File, at.errorf("%s: %s", key, text))
		}
	}
	return err
}

// find finds the places of all parameters.
func (w *worker) find() error {
	s, taken := w.sweep, map[any]word{}
	for i := range s.parameters {
		var list []*place
		for _, address := range s.parameters[i].targets {
			p, err := find(w.from, address)
			if err == nil && taken[p.node].text != "" {
				err = address.errorf("%s is varied twice, also as %s in line %d", address.text, taken[p.node].text, taken[p.node].line)
			}
			if err != nil {
				return placed(s.File, err)
			}
			taken[p.node] = address
			list = append(list, p)
		}
		w.places = append(w.places, list)
	}
	return nil
}

// prepare makes a case of the values that stand in the files now.
func (w *worker) prepare() (*virtual.Case, error) {
	*w.page = rt.Page{}
	return w.from.Prepare(w.page)
}

// fit holds the units of the parameters against what stands in the files; a parameter
// without one has that of the place.
func (w *worker) fit() error {
	for i := range w.sweep.parameters {
		p := &w.sweep.parameters[i]
		bare := p.unit == ""
		for j, place := range w.places[i] {
			unit, err := place.fit(&p.axis, p.targets[j])
			if err != nil {
				return err
			}
			if bare && unit != "1" {
				w.sweep.Columns[1+i].Unit = unit
			}
		}
		if !bare {
			w.sweep.Columns[1+i].Unit = p.unit
		}
	}
	return nil
}

// run simulates a case; false: it was stopped before its end.
func (w *worker) run(number int64) (row Row, done bool) {
	row = Row{Case: number, Results: make([]float64, len(w.sweep.results))}
	err := w.simulate(&row)
	if w.stop.Load() {
		return row, false
	}
	if err != nil {
		row.Failed, _, _ = strings.Cut(err.Error(), "\n")
		row.Judged, row.Broken = false, ""
		for i := range row.Results {
			row.Results[i] = math.NaN()
		}
	}
	return row, true
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
			place.write(p.text(p.index(row.Case)))
		}
	}
	c, err := w.prepare()
	if err != nil {
		return err
	}
	defer c.Close()
	meters := make([]*meter, len(w.sweep.results))
	for i := range meters {
		if meters[i], err = w.sweep.results[i].meter(c); err != nil {
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
		if row.Results[i] = m.result(); math.IsInf(row.Results[i], 0) {
			return fmt.Errorf("result %s is not finite", w.sweep.results[i].key.text)
		}
	}
	if t := report.Trial; t != nil && len(t.Findings) > 0 {
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
