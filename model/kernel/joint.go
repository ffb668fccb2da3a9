package kernel

// joint holds the parts of a tick that are called through a value: the phases of a
// piece, parts that few pieces need, and the phases of a step in two parts. The linker
// adds up the stack along a chain of direct calls of functions that may not grow it,
// allows about 800 bytes, and begins anew at such a call; see doc.go for what the whole
// may take. They are set once, by New, and none is called in an inner loop.
type joint struct {
	sources     func(k *Kernel, x []float64, local, length float64)
	begin       func(k *Kernel, local float64)
	walk        func(k *Kernel, local float64, look bool) (theta float64, cause int)
	seek        func(k *Kernel, local float64, look bool, agreed int, on bool) (theta float64, cause int, expanded bool)
	expand      func(k *Kernel, x []float64) // by the form
	resolve     func(k *Kernel)
	settleBlock func(k *Kernel, b int)
	couple      func(k *Kernel)
	agree       func(k *Kernel, rough bool)
	suspect     func(k *Kernel) bool
	amend       func(k *Kernel, change float64)
	torques     func(k *Kernel, x []float64)
	derive      func(k *Kernel, dst, x, w, tau []float64)
	carry       func(k *Kernel, b int, tau []float64)
	root        func(k *Kernel, curve int) (theta float64, ok bool)
	factorise   func(k *Kernel)
	rebend      func(k *Kernel)
	strike      func(k *Kernel, i int, local float64) bool
	leap        func(k *Kernel, local, theta float64)
	pulses      func(k *Kernel, local, part float64, expanded bool)
	turns       func(k *Kernel, i int, local, part float64)
	refine      func(k *Kernel, curve int, a, b, fa, fb float64) float64
	macro       func(k *Kernel)
	touch       func(k *Kernel, theta float64, rounds int)
	micro       func(k *Kernel, s int)
}

func joints(t *Tables) joint {
	j := joint{
		sources: (*Kernel).sources, begin: (*Kernel).begin, walk: (*Kernel).walk, seek: (*Kernel).seek, expand: (*Kernel).expand,
		resolve: (*Kernel).resolve, settleBlock: (*Kernel).settleBlock, carry: (*Kernel).carry, couple: (*Kernel).couple, agree: (*Kernel).agree, suspect: (*Kernel).suspect, amend: (*Kernel).amend, torques: (*Kernel).torques, derive: (*Kernel).derive, root: (*Kernel).firstRoot, factorise: (*Kernel).factorise, rebend: (*Kernel).rebend, strike: (*Kernel).strike, leap: (*Kernel).leap,
		pulses: (*Kernel).pulses, turns: (*Kernel).turns, refine: (*Kernel).refine,
		macro: (*Kernel).macro, touch: (*Kernel).touch, micro: (*Kernel).micro,
	}
	switch {
	case t.Net != nil:
		j.expand, j.couple, j.torques = (*Kernel).expandSparse, (*Kernel).coupleSparse, (*Kernel).torquesSparse
	case t.Form == Held:
		j.expand = (*Kernel).line
	}
	return j
}
