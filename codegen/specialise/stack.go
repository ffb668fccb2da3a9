package specialise

import "slices"

// The linker allows a chain of functions that may not grow the stack 792 bytes, and counts
// anew behind a call through a variable. How much a function takes only the compiler knows;
// here it is at most what its variables take that are in use at the same time.
const (
	long = 60  // statements of a function that is called through a variable
	deep = 250 // bytes below which the chain of a call need not begin anew
	wide = 350 // bytes of a function above which all that it calls begins anew
	base = 40  // bytes of a function beside its variables
)

// frameOf is what a function takes of the stack, bytes.
func frameOf(g *fn) int {
	var u usage
	u.from, u.to = map[string]int{}, map[string]int{}
	u.walk(g.body)
	for _, p := range g.args {
		u.from[p] = 0
	}
	var change []int // places where one more is in use, and where one less
	for name, from := range u.from {
		if to, ok := u.to[name]; ok {
			change = append(change, 2*from+1, 2*to+2)
		}
	}
	slices.Sort(change)
	now, most := 0, 0
	for _, c := range change {
		if c%2 == 1 {
			now++
		} else {
			now--
		}
		most = max(most, now)
	}
	return base + 8*most
}

// usage is where the variables of a function are first and last in use.
type usage struct {
	at       int
	from, to map[string]int
}

func (u *usage) walk(list []*stmt) {
	for _, st := range list {
		u.at++
		one := *st
		one.body, one.els = nil, nil
		reads := map[string]int{}
		count([]*stmt{&one}, reads)
		for name := range reads {
			u.to[name] = u.at
		}
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
		for name, to := range u.to { // what comes into a loop lasts to its end
			if begin, ok := u.from[name]; to > from && (!ok || begin <= from) {
				u.to[name] = u.at
			}
		}
	}
}
