package bench

import "lockstep/rt"

// Follow lets the caller of Run see more of it than its report.
type Follow struct {
	Begin func(h *Handover, page *rt.Page) // once, soon after the first tick; it must not block
	End   func(r *Report)                  // once, with the report that is then written
}
