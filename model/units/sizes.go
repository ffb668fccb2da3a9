package units

import "math"

// Sizes is the range of the absolute values of numbers in a unit, SI.
type Sizes struct {
	Unit  string
	Least float64 // of a number that may not be 0; also the least distance of two rows of a table
	Most  float64
}

// AllSizes lists the sizes by unit, from micromechanics to ships. Products of a few values within
// them are finite. An element may narrow or widen them for a parameter.
var AllSizes = []Sizes{
	{"1", 1e-12, 1e12}, // also rad
	{"s", 1e-9, 1e9},
	{"rad/s", 1e-9, 1e7},
	{"rad/s2", 1e-9, 1e12},
	{"Hz", 1e-9, 1e7},
	{"m", 1e-9, 1e9},
	{"1/m", 1e-9, 1e9},
	{"m/s", 1e-9, 1e6},
	{"m/s2", 1e-9, 1e9},
	{"s/m", 1e-9, 1e9},
	{"m2", 1e-18, 1e6},
	{"m3", 1e-21, 1e6},
	{"m3/s", 1e-21, 1e6},
	{"kg", 1e-9, 1e9},
	{"kg.m2", 1e-12, 1e12}, // also N.m.s2
	{"kg/m3", 1e-6, 1e6},
	{"N.m", 1e-12, 1e15}, // also N.m/rad and J
	{"N", 1e-12, 1e15},
	{"N/m", 1e-12, 1e15},
	{"N/m3", 1e-6, 1e21},
	{"rad/N.m", 1e-15, 1e12},
	{"N.m.s", 1e-15, 1e12}, // also N.m.s/rad and N.m.s/rad2
	{"N.s/m", 1e-15, 1e12},
	{"N.s/m2", 1e-15, 1e12},
	{"Pa", 1e-6, 1e11},
	{"Pa/m3", 1e-3, 1e21},
	{"W", 1e-12, 1e15},
	{"K", 1e-3, 1e5},
	{"1/K", 1e-9, 1e3},
	{"J/K", 1e-9, 1e12},
	{"W/K", 1e-9, 1e12},
	{"K/W", 1e-12, 1e9},
	{"A", 1e-9, 1e7},
	{"V", 1e-9, 1e9},
	{"V/A", 1e-9, 1e9},
	{"A.s", 1e-6, 1e12},
}

// SizesOf returns the sizes of numbers with the dimension of a unit; 1e-15 to 1e15 for a dimension
// that AllSizes lacks.
func SizesOf(u Unit) Sizes {
	if s, ok := sizesOf[u.Dim]; ok {
		return s
	}
	return Sizes{u.SI, 1e-15, 1e15}
}

// sizesOf holds AllSizes by dimension.
var sizesOf = func() map[Dim]Sizes {
	of := map[Dim]Sizes{}
	for _, s := range AllSizes {
		of[Want(s.Unit).Dim] = s
	}
	return of
}()

// Accepted returns the range of values that an input takes, SI: Min to Max, and where there is no limit,
// that of the sizes of its unit.
func (p *Port) Accepted() (low, high float64) {
	most := SizesOf(Want(p.Unit).Unit).Most
	low, high = p.Min, p.Max
	if math.IsInf(low, 0) {
		low = min(-most, high)
	}
	if math.IsInf(high, 0) {
		high = max(most, low)
	}
	return low, high
}
