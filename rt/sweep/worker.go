package sweep

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"lockstep/rt"
	"lockstep/rt/bench"
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
	from   *bench.Variation
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
	if w.from, err = bench.NewVariation(s.dir, s.Plant, s.spec.Scenario.text); err != nil {
		return nil, err
	}
	w.from.Step, w.from.For = step, length
	if d := &s.spec; (w.from.Bench != nil) != (d.Bench.text != "") {
		key, kind := "plant", "bench"
		if w.from.Bench == nil {
			key, kind = kind, key
		}
		return nil, placed(s.File, (word{line: d.Plant.line + d.Bench.line, col: d.Plant.col + d.Bench.col}).errorf("%s: %s is a %s: write %s: %s", key, s.Plant, kind, kind, s.Plant))
	}
	taken := map[any]word{}
	for i := range s.parameters {
		var list []*place
		for _, address := range s.parameters[i].targets {
			p, err := find(w.from, address)
			if err == nil && taken[p.node].text != "" {
				err = address.errorf("%s is what %s is already: one value would hide the other", address.text, taken[p.node].text)
			}
			if err != nil {
				return nil, placed(s.File, err)
			}
			taken[p.node] = address
			list = append(list, p)
		}
		w.places = append(w.places, list)
	}
	return w, nil
}

// prepare makes a case of the values that stand in the files now.
func (w *worker) prepare() (*bench.Case, error) {
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
