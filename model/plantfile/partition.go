package plantfile

import (
	"fmt"
	"math"

	"lockstep/model"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// Bounds of a Partition.
const (
	maxSub  = 20
	maxIter = 5
)

// readPartition reads the section partition.
func (l *loader) readPartition(f syntax.Field) {
	if f.Key == "" || l.Err != nil {
		return
	}
	const what = "partition"
	p := &model.Partition{Sub: 1, Place: fmt.Sprintf("%s:%d:%d", l.File, f.KeyAt.Line, f.KeyAt.Col)}
	list := l.Entries(f.Node, f.At, what)
	l.CheckKeys(list, what, "N_sub", "N_iter")
	for _, g := range list {
		if g.Key == "N_sub" {
			p.Sub = l.whole(g, what+": N_sub", 1, maxSub)
		} else {
			p.Iter = l.whole(g, what+": N_iter", 0, maxIter)
		}
	}
	l.Network.Partition = p
}

// whole reads a whole number from low to high.
func (l *loader) whole(f syntax.Field, what string, low, high int) int {
	v := l.quantity(f, what, units.Want("1"))
	if !(v >= float64(low) && v <= float64(high) && v == math.Trunc(v)) {
		l.Fail(f.At, "%s %g is not a whole number from %d to %d", what, v, low, high)
		return low
	}
	return int(v)
}
