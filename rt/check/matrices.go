package check

import (
	"fmt"
	"io"
	"strings"

	"lockstep/rt/bench"
)

// matrices writes those of the open plant with the names of rows and columns.
func (p *understood) matrices(w io.Writer) {
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
		var size []int
		used := 4 + head
		last := first
		for ; last < len(cols); last++ {
			wide := len(cols[last])
			for r := range rows {
				wide = max(wide, len(entry(v[r*len(cols)+last])))
			}
			if used += 2 + wide; used > width && last > first {
				break
			}
			size = append(size, wide)
		}
		fmt.Fprintf(w, "\n    %-*s", head, name)
		for i, wide := range size {
			fmt.Fprintf(w, "  %*s", wide, cols[first+i])
		}
		fmt.Fprintln(w)
		for r, row := range rows {
			line := fmt.Sprintf("    %-*s", head, row)
			for i, wide := range size {
				line += fmt.Sprintf("  %*s", wide, entry(v[r*len(cols)+first+i]))
			}
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
		first = last
	}
}

// entry is a number of a matrix in few digits.
func entry(v float64) string {
	if v == 0 {
		return "."
	}
	return fmt.Sprintf("%.4g", v)
}
