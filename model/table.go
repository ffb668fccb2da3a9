package model

import (
	"math"
	"slices"
)

// Breakpoints returns the points of a table of one variable at which its slope changes. The ends
// count only if the table is not extended.
func (t Table) Breakpoints() []float64 {
	var list []float64
	for i, x := range t.X {
		before, after := 0.0, 0.0
		switch n := len(t.X); {
		case (i == 0 || i == n-1) && t.Extend || n < 2:
			continue
		case i == 0:
			after = slope(t, 0)
		case i == n-1:
			before = slope(t, n-2)
		default:
			before, after = slope(t, i-1), slope(t, i)
		}

		if math.Abs(after-before) > 1e-12*(math.Abs(after)+math.Abs(before)) {
			list = append(list, x)
		}
	}

	return list
}

// slope returns the slope of a table of one variable in interval i.
func slope(t Table, i int) float64 { return (t.Z[i+1] - t.Z[i]) / (t.X[i+1] - t.X[i]) }

// At returns the value at x of a table of one variable that is not extended.
func (t Table) At(x float64) float64 {
	for i := range len(t.X) - 1 {
		if x < t.X[i+1] {
			return t.Z[i] + slope(t, i)*(max(x, t.X[0])-t.X[i])
		}
	}

	return t.Z[len(t.Z)-1]
}

// Column returns the table of one variable that a table of two variables is at column y.
func (t Table) Column(y float64) Table {
	column := Table{X: t.X}
	for i := range t.X {
		row := Table{X: t.Y, Z: t.Z[i*len(t.Y) : (i+1)*len(t.Y)]}
		column.Z = append(column.Z, row.At(y))
	}
	return column
}

// MaxSlope returns the largest absolute slope of a table along its first variable.
func (t Table) MaxSlope() float64 {
	s, c := 0.0, max(1, len(t.Y))
	for i := range len(t.X) - 1 {
		for j := range c {
			s = max(s, math.Abs(t.Z[(i+1)*c+j]-t.Z[i*c+j])/(t.X[i+1]-t.X[i]))
		}
	}

	return s
}

// At returns z in state x and the index of its region.
func (s *Switch) At(x []float64) (z float64, region int) {
	z = s.Const
	for i, c := range s.Row {
		z += c * x[i]
	}
	for region < len(s.Borders) && z >= s.Borders[region] {
		region++
	}
	return z, region
}

// Wrapped returns the initial state with the levels of all switches in their periods.
func (s *System) Wrapped() []float64 {
	x := slices.Clone(s.X0)
	for i := range s.Switches {
		if w := s.Switches[i].Wrap; w != nil {
			x[w.State] -= w.Period * math.Floor(x[w.State]/w.Period+0.5)
		}
	}
	return x
}

// Opening returns how far the gap is open in state x where it begins to exist there.
func (g *Gap) Opening(x []float64) float64 {
	at := x[g.State]
	if len(g.Row) > 0 {
		at = g.Const
		for i, c := range g.Row {
			at += c * x[i]
		}
	}
	return g.Sign * (at - g.Limit)
}

// RegionsAt returns the region of each switch in state x.
func (s *System) RegionsAt(x []float64) (region []int) {
	for i := range s.Switches {
		_, r := s.Switches[i].At(x)
		region = append(region, r)
	}
	return region
}

// OpenAt returns A without locks and laws, n×n, with the slopes of the regions in which x lies.
func (s *System) OpenAt(x []float64) []float64 {
	a, n, m := slices.Clone(s.A), len(s.X0), len(s.Signals)
	region := s.RegionsAt(x)
	for j, signal := range s.Signals {
		if signal.Affine == nil {
			continue
		}
		on := &s.Switches[signal.Affine.Switch]
		slope, _ := signal.Affine.In(region)
		for i := range n {
			for q, c := range on.Row {
				a[i*n+q] += slope * s.B[i*m+j] * c
			}
		}
	}

	return a
}
