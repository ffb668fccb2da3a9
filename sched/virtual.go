package sched

import (
	"slices"
	"time"
)

// Virtual is the Ticker of a simulation without a clock: Wait returns at once,
// and the instant is that of the last grid point passed. Point 0 is at 0 ns.
type Virtual struct {
	grid   Grid
	k      int64  // the last grid point passed
	misses []miss // by k
	next   int    // index in misses: still to come
}

// miss says that the wake-up of grid point k comes n points late.
type miss struct{ k, n int64 }

// NewVirtual returns a ticker of the given period.
func NewVirtual(period time.Duration) *Virtual {
	return &Virtual{grid: Grid{Period: int64(period)}}
}

// Miss makes the wake-up of grid point k come n points late: the Wait that
// would return 1 at k returns 1+n at k+n.
func (v *Virtual) Miss(k, n int64) {
	v.misses = append(v.misses, miss{k, n})
	slices.SortStableFunc(v.misses[v.next:], func(a, b miss) int { return int(a.k - b.k) })
}

// Start puts the ticker back to grid point 0; misses that have come do not come
// again.
func (v *Virtual) Start() error {
	v.k = 0
	return nil
}

// Wait passes the next grid point and those that Miss has added to it, and
// returns how many these are.
//
//go:nosplit
func (v *Virtual) Wait() int64 {
	n := int64(1)
	for v.next < len(v.misses) && v.misses[v.next].k <= v.k+n {
		n += v.misses[v.next].n
		v.next++
	}
	v.k += n
	return n
}

// Err returns nil: a virtual timer does not fail.
func (v *Virtual) Err() error { return nil }

// Now returns the instant of the last grid point passed, ns.
//
//go:nosplit
func (v *Virtual) Now() int64 { return v.grid.Due(v.k) }

// Grid returns the grid.
//
//go:nosplit
func (v *Virtual) Grid() Grid { return v.grid }
