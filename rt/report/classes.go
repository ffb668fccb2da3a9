package report

import (
	"fmt"
	"math/bits"
	"strings"
)

// Class is a class of a histogram: the longest time that belongs to it, ns, and how
// many do. In the JSON it is a pair.
type Class [2]int64

// widest is how many columns the bar of the largest class takes.
const widest = 40

// histogram draws classes, one row per octave: a class of a million beside one of
// three, and the worst case in the last row.
func histogram(list []Class) (rows []string) {
	var octaves []Class
	for _, c := range list {
		upper := int64(1)<<bits.Len64(uint64(c[0])) - 1
		if n := len(octaves); n == 0 || octaves[n-1][0] != upper {
			octaves = append(octaves, Class{upper})
		}
		octaves[len(octaves)-1][1] += c[1]
	}
	most := int64(1)
	for _, c := range octaves {
		most = max(most, c[1])
	}
	for _, c := range octaves {
		bar := strings.Repeat("#", int((c[1]*widest+most-1)/most)) // what is there has one at least
		rows = append(rows, fmt.Sprintf("to %9.1f us %9d %s", float64(c[0]+1)/1e3, c[1], bar))
	}
	return rows
}
