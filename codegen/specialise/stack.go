package specialise

// The linker allows 792 bytes of stack for a chain of nosplit functions, and restarts the count at
// an indirect call. Only the compiler knows the stack of a function. This file estimates an
// upper bound from the number of variables in use at the same time.
const (
	longFunction = 60  // statements above which a function is called indirectly
	deepStack    = 250 // stack of a call, bytes, above which it is indirect
	wideFrame    = 350 // stack of a function, bytes, above which all of its calls are indirect
	frameBase    = 40  // stack of a function without its variables, bytes
)

// frameOf returns the estimated stack of a function, bytes.
func frameOf(g *fn) int {
	var u usage
	u.from, u.to = map[string]int{}, map[string]int{}
	u.walk(g.body)
	for _, p := range g.args {
		u.from[p] = 0
	}
	change := make([]int, u.at+2) // change of the number in use at a statement
	for name, from := range u.from {
		if to, ok := u.to[name]; ok {
			change[from]++
			change[to+1]--
		}
	}

	now, most := 0, 0
	for _, c := range change {
		now += c
		most = max(most, now)
	}

	return frameBase + 8*most
}

// usage is the first and the last statement at which each variable is in use.
type usage struct {
	at       int // statements walked so far
	from, to map[string]int
}

// walk records the variables of statements.
func (u *usage) walk(list []*stmt) {
	for _, st := range list {
		u.at++
		st.reads(func(name string) { u.to[name] = u.at })
		if st.kind == declare || st.kind == loop {
			for _, n := range st.names {
				u.from[n] = u.at
			}
		}

		from := u.at
		u.walk(st.body)
		u.walk(st.els)
		if st.kind != loop {
			continue
		}
		u.at++
		for name, to := range u.to { // a variable from outside a loop is in use until its end
			if begin, ok := u.from[name]; to > from && (!ok || begin <= from) {
				u.to[name] = u.at
			}
		}
	}
}
