package trace

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"lockstep/model/units"
)

// Sizes of a diagram in a terminal, characters.
const (
	blockRows  = 8
	labelWidth = 11
)

// Blocks draws each signal for a terminal of a width, in columns, with half blocks.
func (t *Trace) Blocks(width int) string {
	n := max(width-labelWidth-1, 20)
	var b strings.Builder
	for i := range t.Signals {
		s := &t.Signals[i]
		ranges := t.ranges(s, n)
		var ends []float64
		for _, r := range ranges {
			ends = append(ends, r.low, r.high)
		}
		low, high := limits(ends)
		fmt.Fprintf(&b, "%s\n", strings.TrimSuffix(units.WithUnit(s.Name+",", s.Unit.Spelled), ","))
		for row := range blockRows {
			label := ""
			switch row {
			case 0:
				label = fmt.Sprintf("%.5g", high)
			case blockRows - 1:
				label = fmt.Sprintf("%.5g", low)
			}
			line := fmt.Sprintf("%*s|", labelWidth, label)
			for _, r := range ranges {
				line += block(r, low, high, row)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		from, to := fmt.Sprintf("%.6g s", t.Time[0]), fmt.Sprintf("%.6g s", t.Time[len(t.Time)-1])
		gap := max(n-utf8.RuneCountInString(from)-utf8.RuneCountInString(to), 1)
		fmt.Fprintf(&b, "%*s%s%s%s\n", labelWidth+1, "", from, strings.Repeat(" ", gap), to)
	}
	return b.String()
}

// block returns the character of a range of values in a row, counted from the top.
func block(r span, low, high float64, row int) string {
	half := func(v float64) float64 { // halves of a row from the top
		return math.Floor((high - v) / (high - low) * 2 * blockRows)
	}
	top, bottom := half(r.high), half(r.low)
	upper, lower := float64(2*row), float64(2*row+1)
	switch up, down := top <= upper && upper <= bottom, top <= lower && lower <= bottom; {
	case up && down:
		return "█"
	case up:
		return "▀"
	case down:
		return "▄"
	}
	return " "
}
