package bench

import (
	"lockstep/rt"
	"lockstep/sched"
)

// Follow lets the caller of Run see more of it than its report.
type Follow struct {
	Begin func(b Begun)   // once, soon after the first tick; it must not block
	End   func(r *Report) // once, with the report that is then written
}

// Begun is a run that ticks.
type Begun struct {
	Thread sched.Thread // of the loop
	Files  []Hash       // what the run is made from; nil: a file cannot be read any more
	Page   *rt.Page     // the counters of the loop
}
