package check

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"lockstep/model/kernel"
	"lockstep/rt/bench"
)

// redundant writes the smallest sets of friction elements whose lock torques the
// motion does not determine.
func (p *checkedPlant) redundant(w io.Writer) {
	var text []string
	all := true
	for _, b := range p.tables.Blocks() {
		sets, whole := dependent(b.Gram, len(b.Elements))
		all = all && whole
		for _, set := range sets {
			if p.hasBothStops(b.Elements, set) {
				continue
			}
			var names []string
			for rest := set; rest != 0; rest &= rest - 1 {
				names = append(names, p.tables.Frictions[b.Elements[bits.TrailingZeros64(rest)]])
			}
			text = append(text, "{"+strings.Join(names, ", ")+"}")
		}
	}

	found := len(text)
	text = withHead("smallest statically indeterminate sets: ", atMost(text, 20))
	if !all {
		text = append(text, "not all sets were searched")
	}
	list(w, "redundant", found, text)
}

// hasBothStops reports whether a set of elements contains both stops of a clearance, which are
// never closed at the same time.
func (p *checkedPlant) hasBothStops(elements []int, set uint64) bool {
	ends := map[int]bool{}
	for rest := set; rest != 0; rest &= rest - 1 {
		if g := p.tables.Friction[elements[bits.TrailingZeros64(rest)]].Gap; g != nil {
			if ends[g.State] {
				return true
			}
			ends[g.State] = true
		}
	}

	return false
}

// maxSets limits the search of dependent.
const maxSets = 4000

// dependent returns the smallest sets of elements whose rows of W are linearly dependent, the sets
// with the fewest elements first. gram is the mc×mc Gram matrix of these rows. all is false if
// maxSets ended the search.
func dependent(gram []float64, mc int) (sets []uint64, all bool) {
	if mc == 0 || independent(gram, mc, 1<<mc-1) {
		return nil, true
	}
	level := []uint64{0} // the independent sets of one size
	for seen := 0; len(level) > 0; {
		var next []uint64
		for _, base := range level {
			if seen++; seen > maxSets {
				return sets, false
			}
			for i := bits.Len64(base); i < mc; i++ {
				set := base | 1<<i
				if slices.ContainsFunc(sets, func(s uint64) bool { return s&set == s }) {
					continue
				}
				if independent(gram, mc, set) {
					next = append(next, set)
				} else {
					sets = append(sets, set)
				}
			}
		}

		level = next
	}

	return sets, true
}

// independent reports whether the rows and columns of gram that set selects have full rank. gram is
// negative semidefinite: the function negates it, scales its diagonal to 1, factorises it (Cholesky)
// and requires that no pivot is 0.
func independent(gram []float64, mc int, set uint64) bool {
	var of []int
	for rest := set; rest != 0; rest &= rest - 1 {
		of = append(of, bits.TrailingZeros64(rest))
	}
	part := mat.NewSymDense(len(of), nil)
	for i, e := range of {
		for j, g := range of[:i+1] {
			part.SetSym(i, j, -gram[e*mc+g]/math.Sqrt(gram[e*mc+e]*gram[g*mc+g]))
		}
	}

	var factors mat.Cholesky
	if !factors.Factorize(part) {
		return false
	}

	for i := range of {
		if pivot := factors.RawU().At(i, i); !(pivot*pivot > 1e-11) {
			return false
		}
	}

	return true
}

// partition writes the properties of a partitioned plant.
func (c *Check) partition(p *checkedPlant) {
	part := p.tables.Partition
	var names []string
	for _, i := range part.Active {
		names = append(names, p.tables.StateName[i])
	}
	list(c.Out, "active", len(names), names)
	list(c.Out, "step", -1, []string{
		fmt.Sprintf("two parts: %s of %v", count(part.Sub, "micro step"), p.period()/time.Duration(part.Sub)),
		count(part.Iter, "additional iteration"), "no event is located"})
	if micro := p.period().Seconds() / float64(part.Sub); part.Decay*micro > kernel.StabilityLimit {
		c.warn("%s: partition: micro steps of %v are too long for laws with a time constant of %v in the active part: "+
			"its results are wrong; take micro steps of at most %v",
			p.file, roundDown(micro), roundDown(1/part.Decay), roundDown(kernel.StabilityLimit/part.Decay))
	}
}

// checkBudget refuses a partitioned plant whose worst tick exceeds the budget of the bench, or
// half of the period.
func checkBudget(p *checkedPlant, worst time.Duration) error {
	part, budget := p.sys.Partition, time.Duration(cmp.Or(p.budget, p.tables.PeriodNs/2))
	if part == nil || worst <= budget {
		return nil
	}
	return fmt.Errorf("%s: partition: N_sub %d with N_iter %d takes %v in the worst tick, "+
		"more than the budget of %v; use a smaller N_sub or N_iter, or a longer period",
		part.Place, part.Sub, part.Iter, worst.Round(100*time.Nanosecond), budget)
}

// stepsTried lists the steps that refuseStep measures, except the refused step.
var stepsTried = []time.Duration{100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}

// refuseStep returns the error for a step that is shorter than its worst tick, with a step that
// works on this host. It measures longer steps first, then shorter ones.
func (p *checkedPlant) refuseStep(w *WorstCase) error {
	worst := time.Duration(w.WorstNs).Round(100 * time.Nanosecond)
	refused := fmt.Sprintf("%s: the worst tick takes %v, longer than the step of %v (%s)", p.file, worst, p.period(), w.Under)
	at, _ := slices.BinarySearch(stepsTried, p.period()+1)
	shorter := slices.Clone(stepsTried[:at])
	slices.Reverse(shorter)
	for _, step := range slices.Concat(stepsTried[at:], shorter) {
		if step != p.period() && p.stepWorks(step) {
			return fmt.Errorf("%s; on this host a step of %v works", refused, step)
		}
	}

	pace := "its elements"
	if fastest := p.tables.Fastest(); p.tables.Split > 1 {
		pace = fmt.Sprintf("its fastest law or mode (%.4g rad/s)", fastest)
	}
	return fmt.Errorf("%s; no step from %v to %v works on this host: %s cost more time than the step: "+
		"use softer contacts, heavier parts or a faster CPU", refused, stepsTried[0], stepsTried[len(stepsTried)-1], pace)
}

// workingShare is the share of its period that a worst tick may take in a step that is recommended.
const workingShare = 0.8

// stepWorks reports whether the worst tick of the plant at another step fits into it with a margin.
func (p *checkedPlant) stepWorks(step time.Duration) bool {
	tables, err := kernel.Prepare(p.sys, kernel.Options{Period: step, Scheme: p.tables.Scheme, Form: p.tables.Form})
	if err != nil {
		return false
	}
	other := checkedPlant{file: p.file, sys: p.sys, tables: tables}
	list, err := other.exercises(nil)
	if err != nil {
		return false
	}
	for _, e := range list {
		e.limitNs = longest / 12
		if e.run(); float64(e.WorstNs) > workingShare*float64(step) {
			return false
		}
	}
	return true
}

// matrices writes the matrices of the open plant with the names of rows and columns.
func (p *checkedPlant) matrices(w io.Writer) {
	s := p.sys
	states, signals := bench.PortNames(s.States), make([]string, len(s.Signals))
	for i := range s.Signals {
		signals[i] = s.Signals[i].Name
	}
	outputs, frictions := bench.PortNames(s.Outputs), p.tables.Frictions
	fmt.Fprint(w, "\n  x' = A·x + B·v + Bc·tau    slip = W·x    y = C·x + D·v + Dc·tau    energy = ½·xᵀ·M·x    in SI; . is 0\n")
	for _, m := range []struct {
		name       string
		rows, cols []string
		v          []float64
	}{
		{"M", states, states, s.E}, {"A", states, states, s.A}, {"B", states, signals, s.B}, {"Bc", states, frictions, s.Bc},
		{"W", frictions, states, s.W}, {"C", outputs, states, s.C}, {"D", outputs, signals, s.D}, {"Dc", outputs, frictions, s.Dc},
	} {
		if len(m.v) > 0 {
			matrix(w, m.name, m.rows, m.cols, m.v)
		}
	}

	fmt.Fprintln(w)
}

// matrix writes v, len(rows)×len(cols), in blocks of columns that fit the width.
func matrix(w io.Writer, name string, rows, cols []string, v []float64) {
	head := len(name)
	for _, r := range rows {
		head = max(head, len(r))
	}
	for first := 0; first < len(cols); {
		lines := make([]string, 1+len(rows))
		for i, label := range append([]string{name}, rows...) {
			lines[i] = fmt.Sprintf("\n    %-*s", head, label)
		}
		used, next := 4+head, first
		for ; next < len(cols); next++ {
			column, wide := []string{cols[next]}, len(cols[next])
			for r := range rows {
				column = append(column, entry(v[r*len(cols)+next]))
				wide = max(wide, len(column[r+1]))
			}

			if used += 2 + wide; used > width(w) && next > first {
				break
			}
			for i, cell := range column {
				lines[i] += fmt.Sprintf("  %*s", wide, cell)
			}
		}

		fmt.Fprintln(w, strings.Join(lines, ""))
		first = next
	}
}

// entry formats a number of a matrix with four digits.
func entry(v float64) string {
	if v == 0 {
		return "."
	}
	return fmt.Sprintf("%.4g", v)
}
