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
	misses []miss // still to come, by k
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
	slices.SortStableFunc(v.misses, func(a, b miss) int { return int(a.k - b.k) })
}

// Start puts the ticker back to grid point 0.
func (v *Virtual) Start() error {
	v.k = 0
	return nil
}

// Wait passes the next grid point and those that Miss has added to it.
func (v *Virtual) Wait() (int64, error) {
	n := int64(1)
	for len(v.misses) > 0 && v.misses[0].k <= v.k+n {
		n += v.misses[0].n
		v.misses = v.misses[1:]
	}
	v.k += n
	return n, nil
}

// Now returns the instant of the last grid point passed, ns.
func (v *Virtual) Now() int64 { return v.grid.Due(v.k) }

// Grid returns the grid.
func (v *Virtual) Grid() Grid { return v.grid }
