package model

import (
	"fmt"
	"math"
)

// Bounds of a Partition.
const (
	maxSub  = 20
	maxIter = 5
)

// Partition has a plant stepped in two parts: what friction and laws alone turn by Sub
// micro steps of the period, the linear rest by one (Gyebroszki, Efficient numerical
// time-domain simulation of rail vehicles with coupled simulator systems, ch. 7).
type Partition struct {
	Sub   int    // micro steps of a period, 1 to 20
	Iter  int    // additional iterations that refine it, 0 to 5
	Place string // FILE:LINE:COL
}

// readPartition reads the section partition.
func (l *loader) readPartition(f field) {
	if f.key == "" || l.err != nil {
		return
	}
	const what = "partition"
	p := &Partition{Sub: 1, Place: fmt.Sprintf("%s:%d:%d", l.file, f.keyAt.line, f.keyAt.col)}
	list := l.entries(f.node, f.at, what)
	l.known(list, what, "N_sub", "N_iter")
	for _, g := range list {
		if g.key == "N_sub" {
			p.Sub = l.whole(g, what+": N_sub", 1, maxSub)
		} else {
			p.Iter = l.whole(g, what+": N_iter", 0, maxIter)
		}
	}
	l.plant.partition = p
}

// whole reads a whole number from low to high.
func (l *loader) whole(f field, what string, low, high int) int {
	number, _ := Units("1")
	v := l.quantity(f, what, wanted{number, "1"})
	if !(v >= float64(low) && v <= float64(high) && v == math.Trunc(v)) {
		l.fail(f.at, "%s %g is not a whole number from %d to %d", what, v, low, high)
		return low
	}
	return int(v)
}
