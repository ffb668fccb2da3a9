package kernel

// calls are the indirect calls of a tick, by its phases. New sets them once; no inner loop makes
// one.
//
// No function of a tick may grow its stack. So the linker adds up the frames along each chain of
// direct calls, refuses more than about 800 bytes, and begins anew at an indirect call. doc.go says what
// all of a tick may take. The comment of a field names the reason:
//
//   - limit: a direct call would make the chain named too long;
//   - share: the chain named fits by itself, but not with the callers or calls beyond it, which
//     would be direct as well;
//   - form: New chooses the function by the form and the stepping of the plant.
//
// A law or a guard (run, argument, operate, sin) takes 330 bytes below its caller.
type calls struct {
	// A step in two parts: the period, the locks at an instant, a micro step.
	macro func(k *Kernel)                                // limit: Step, advance, macro, a law
	touch func(k *Kernel, theta float64, iterations int) // share: macro, touch, a law
	micro func(k *Kernel, s int)                         // limit: macro, micro, a law

	// A piece: signals over it, modes at its start, the way to its end or first event.
	sources func(k *Kernel, x []float64, local, length float64)                                                      // limit: Step, publish, show, now, sources, a law
	begin   func(k *Kernel, local float64)                                                                           // limit: Step, publish, travel, begin, a law
	walk    func(k *Kernel, local float64, look bool) (theta float64, cause int)                                     // share: Step, publish, travel, walk, seek
	seek    func(k *Kernel, local float64, look bool, agreed int, on bool) (theta float64, cause int, expanded bool) // share: walk, hunt, seek, first, reaches
	leap    func(k *Kernel, local, theta float64)                                                                    // share: walk, leap, a guard

	// The motion over a piece, in line with its laws.
	expand  func(k *Kernel, x []float64)              // form, share: agree, refined, expand
	couple  func(k *Kernel)                           // form, share: seek, halve, couple, a law
	agree   func(k *Kernel, rough bool)               // share: seek, halve, agree, a law
	amend   func(k *Kernel, change float64)           // share: agree, amend, improve, derive
	torques func(k *Kernel, x []float64)              // form, share: firstRoot, refine, a guard, torques
	derive  func(k *Kernel, dst, x, w, tau []float64) // share: agree, refined, extend, grow, derive

	// Where in a piece an event is.
	suspect func(k *Kernel) bool                                     // share: seek, suspect, a guard
	root    func(k *Kernel, curve int) (theta float64, ok bool)      // limit: seek, first, root, a guard
	refine  func(k *Kernel, curve int, a, b, fa, fb float64) float64 // limit: turns, passing, refine, a guard

	// Modes after an event: which elements are locked, and what the locks carry.
	resolve     func(k *Kernel)                            // share: Step, publish, travel, event, resolve, settleBlock
	settleBlock func(k *Kernel, b int)                     // share: event, resolve, settleBlock, balance
	carry       func(k *Kernel, b int, tau []float64)      // limit: Step, publish, travel, event, land, project, carry
	strike      func(k *Kernel, i int, local float64) bool // share: Step, publish, travel, event, strike, collide
	factorise   func(k *Kernel)                            // limit: Step, publish, travel, event, use, factorise, solve
	rebend      func(k *Kernel)                            // share: settleBlock, balance, unlocked, rebend

	// Edges of sensors in the part of a piece that was taken.
	pulses func(k *Kernel, local, part float64, expanded bool) // share: walk, leap, pulses
	turns  func(k *Kernel, i int, local, part float64)         // limit: macro, arrive, turns, stretch
}

func newCalls(t *Tables) calls {
	c := calls{
		macro: (*Kernel).macro, touch: (*Kernel).touch, micro: (*Kernel).micro,
		sources: (*Kernel).sources, begin: (*Kernel).begin, walk: (*Kernel).walk, seek: (*Kernel).seek, leap: (*Kernel).leap,
		expand: (*Kernel).expand, couple: (*Kernel).couple, agree: (*Kernel).agree, amend: (*Kernel).amend,
		torques: (*Kernel).torques, derive: (*Kernel).derive,
		suspect: (*Kernel).suspect, root: (*Kernel).firstRoot, refine: (*Kernel).refine,
		resolve: (*Kernel).resolve, settleBlock: (*Kernel).settleBlock, carry: (*Kernel).carry, strike: (*Kernel).strike,
		factorise: (*Kernel).factorise, rebend: (*Kernel).rebend,
		pulses: (*Kernel).pulses, turns: (*Kernel).turns,
	}
	switch {
	case t.Net != nil:
		c.expand, c.couple, c.torques = (*Kernel).expandSparse, (*Kernel).coupleSparse, (*Kernel).torquesSparse
	case t.Form == Held:
		c.expand = (*Kernel).line
	}
	return c
}
