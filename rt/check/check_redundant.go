package check

import (
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// redundant writes the smallest sets of friction elements whose lock torques the
// motion does not determine.
func (p *understood) redundant(w io.Writer) {
	var text []string
	all := true
	for _, b := range p.tables.Blocks() {
		sets, whole := dependent(b.Gram, len(b.Of))
		all = all && whole
		for _, set := range sets {
			if p.opposite(b.Of, set) {
				continue
			}
			var names []string
			for rest := set; rest != 0; rest &= rest - 1 {
				names = append(names, p.tables.Frictions[b.Of[bits.TrailingZeros64(rest)]])
			}
			text = append(text, "{"+strings.Join(names, ", ")+"}")
		}
	}
	found := len(text)
	if len(text) > 0 {
		text[0] = "smallest statically indeterminate sets: " + text[0]
	}
	text = upTo(text, 20)
	if !all {
		text = append(text, "not all sets were looked at")
	}
	list(w, "redundant", found, text)
}

// opposite reports whether a set of some elements holds both stops of a clearance, which
// never close together.
func (p *understood) opposite(of []int, set uint64) bool {
	ends := map[int]bool{}
	for rest := set; rest != 0; rest &= rest - 1 {
		if g := p.tables.Friction[of[bits.TrailingZeros64(rest)]].Gap; g != nil {
			if ends[g.State] {
				return true
			}
			ends[g.State] = true
		}
	}
	return false
}

// maxSets bounds the search of dependent.
const maxSets = 4000

// dependent finds the smallest sets of elements whose rows of W depend on each
// other, by their Gram matrix, mc×mc: those of the fewest elements first. all is
// false where the bound ended the search.
func dependent(gram []float64, mc int) (sets []uint64, all bool) {
	if independent(gram, mc, 1<<mc-1) {
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

// independent reports whether the part of gram, negative definite where it has
// full rank, that set selects has full rank (Cholesky).
func independent(gram []float64, mc int, set uint64) bool {
	var l [][]float64
	var taken []int
	for rest := set; rest != 0; rest &= rest - 1 {
		e := bits.TrailingZeros64(rest)
		row := make([]float64, len(taken)+1)
		left := -gram[e*mc+e]
		for j, g := range taken {
			s := -gram[e*mc+g]
			for q := range j {
				s -= row[q] * l[j][q]
			}
			row[j] = s / l[j][j]
			left -= row[j] * row[j]
		}
		if !(left > 1e-11*-gram[e*mc+e]) {
			return false
		}
		row[len(taken)] = math.Sqrt(left)
		l, taken = append(l, row), append(taken, e)
	}
	return true
}
