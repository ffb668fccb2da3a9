package kernel

// joint holds the parts of a tick that are called through a value: the phases of a
// piece, five parts that few pieces need, and the phases of a
// step in two parts. The linker adds up the stack along a
// chain of direct calls of functions that may not grow it, allows about 800 bytes,
// and begins anew at such a call; see doc.go for what the whole may take. They are
// set once, by New, and none is called in an inner loop.
type joint struct {
	sources   func(k *Kernel, x []float64, local, length float64)
	begin     func(k *Kernel, local float64)
	walk      func(k *Kernel, local float64, look bool) (theta float64, cause int)
	expand    func(k *Kernel, x []float64) // by the form
	resolve   func(k *Kernel)
	root      func(k *Kernel, curve int) (theta float64, ok bool)
	factorise func(k *Kernel)
	rebend    func(k *Kernel)
	strike    func(k *Kernel, i int, local float64) bool
	macro     func(k *Kernel)
	touch     func(k *Kernel, theta float64, rounds int)
	micro     func(k *Kernel, s int)
}

func joints(f Form) joint {
	j := joint{
		sources: (*Kernel).sources, begin: (*Kernel).begin, walk: (*Kernel).walk, expand: (*Kernel).expand,
		resolve: (*Kernel).resolve, root: (*Kernel).firstRoot, factorise: (*Kernel).factorise, rebend: (*Kernel).rebend, strike: (*Kernel).strike,
		macro: (*Kernel).macro, touch: (*Kernel).touch, micro: (*Kernel).micro,
	}
	if f == Held {
		j.expand = (*Kernel).line
	}
	return j
}
