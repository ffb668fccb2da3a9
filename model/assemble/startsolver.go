package assemble

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"lockstep/model/network"
)

// startSolver finds unknowns from linear conditions, rank after rank. Conditions of rank StartGiven
// hold exactly. Conditions of a later rank determine what is still open; if they contradict each
// other, they hold in the sense of weighted least squares.
type startSolver struct{ pivots []startPivot }

// startEquation is the condition row·unknowns = value.
type startEquation struct {
	*network.StartCondition
	row   []float64
	value float64
	size  float64 // largest term of value
	text  string  // names the condition in errors
}

// startPivot is an independent condition without the unknowns of those before it.
type startPivot struct {
	*startEquation
	row   []float64 // 1 at col, 0 at the columns of earlier pivots
	col   int
	value float64
	size  float64 // largest term of value, through all pivots
	rank  network.StartRank
	parts []float64 // the row of the condition is Σ parts·rows of the pivots up to this one
}

// Tolerances of the solver.
const (
	startRound = 1e-12 // rounding of a sum, relative to its largest term
	startAgree = 1e-9  // rounding of a value in the file, relative to that value
)

// agreeWithin returns the difference within which a condition agrees with the others. size is the largest
// term of both. A distance between two positions far away is not rounded like the positions.
func agreeWithin(c *network.StartCondition, size float64) float64 {
	if c != nil && c.Rank == network.StartGiven {
		return startRound*size + startAgree*math.Abs(c.Value)
	}
	return startRound * size
}

// reduce expresses a row by the pivots: row = Σ parts·rows of the pivots + rest. value is the value
// of that sum, and size its largest term.
func (s *startSolver) reduce(row []float64) (rest, parts []float64, value, size float64) {
	rest, parts = slices.Clone(row), make([]float64, len(s.pivots))
	scale := network.Largest(row)
	for i, p := range s.pivots {
		c := rest[p.col]
		if c == 0 {
			continue
		}
		parts[i] = c
		value, size, scale = value+c*p.value, max(size, math.Abs(c)*p.size), max(scale, math.Abs(c))
		sweep(rest, p.row, p.col)
	}

	clean(rest, scale)
	return rest, parts, value, size
}

// add adds a condition if it is independent of those before it. Otherwise it returns the value by
// which the condition differs from what they determine, 0 if they agree.
func (s *startSolver) add(c *startEquation, rank network.StartRank) (parts []float64, independent bool, off float64) {
	rest, parts, value, size := s.reduce(c.row)
	size = max(size, c.size)
	off = c.value - value
	q := 0
	for i, v := range rest {
		if math.Abs(v) > math.Abs(rest[q]) {
			q = i
		}
	}

	if rest[q] == 0 {
		if math.Abs(off) <= agreeWithin(c.StartCondition, size) {
			off = 0
		}
		return parts, false, off
	}

	if math.Abs(off) <= startRound*size {
		off = 0
	}
	parts = append(parts, rest[q])
	s.pivots = append(s.pivots, startPivot{c, rest, q, off / rest[q], size / math.Abs(rest[q]), rank, parts})
	divide(rest, rest[q])
	return parts, true, 0
}

// fitRank adds the conditions of a rank after StartGiven, those of large weight first.
func (s *startSolver) fitRank(list []*startEquation, rank network.StartRank) error {
	slices.SortStableFunc(list, func(c, d *startEquation) int { return cmp.Compare(d.Weight, c.Weight) })
	first, agree := len(s.pivots), true
	parts := make([][]float64, len(list))
	for i, c := range list {
		off := 0.0
		parts[i], _, off = s.add(c, rank)
		agree = agree && off == 0
	}

	if agree {
		return nil
	}
	n := len(s.pivots) - first
	var a, b []float64
	for i, c := range list {
		weight, value, row := math.Sqrt(c.Weight), c.value, make([]float64, n)
		for j, v := range parts[i] {
			if j < first {
				value -= v * s.pivots[j].value
			} else {
				row[j-first] = weight * v
			}
		}

		if network.Largest(row) > 0 { // otherwise earlier ranks determine it
			a, b = append(a, row...), append(b, weight*value)
		}
	}

	if len(b) == 0 {
		return nil
	}

	var x mat.VecDense
	if err := x.SolveVec(mat.NewDense(len(b), n, a), mat.NewVecDense(len(b), b)); err != nil {
		return err
	}
	for j := range n {
		p := &s.pivots[first+j]
		p.value = x.AtVec(j)
		p.size = max(p.size, math.Abs(p.value))
	}

	return nil
}

// value returns the value of a row, its largest term, and the last rank that it depends on. The row
// must be determined.
func (s *startSolver) value(row []float64) (value, size float64, rank network.StartRank) {
	_, parts, value, size := s.reduce(row)
	clean(parts, network.Largest(parts))
	for i, c := range parts {
		if c != 0 {
			rank = max(rank, s.pivots[i].rank)
		}
	}

	return value, size, rank
}

// sources returns the conditions that determine a row whose parts reduce returned.
func (s *startSolver) sources(parts []float64) (list []*startEquation) {
	left := slices.Clone(parts)
	for j := len(left) - 1; j >= 0; j-- {
		p := &s.pivots[j]
		share := left[j] / p.parts[j]
		if math.Abs(share) <= 1e-10*network.Largest(parts) {
			continue
		}
		list = append(list, p.startEquation)
		for i, v := range p.parts[:j] {
			left[i] -= share * v
		}
	}

	slices.Reverse(list)
	return list
}
