package specialise

import "strings"

// keeps reports whether a cell is one of the stack of programs, whose values pass through
// variables where the tick has no choice.
func keeps(cell string) bool { return strings.HasPrefix(cell, "k.stack[") }

// unkept leaves out what a function stores in such cells: none is read before it is stored
// again.
func unkept(list []*stmt) (left []*stmt) {
	for _, st := range list {
		st.body, st.els = unkept(st.body), unkept(st.els)
		if st.kind != set || !keeps(st.names[0]) {
			left = append(left, st)
		}
	}
	return left
}

// keep notes what such a cell holds.
func (f *frame) keep(cell string, v *value, op string) {
	if op != "" || strings.Contains(cell, "*") {
		clear(f.fn.kept)
		return
	}
	f.fn.kept[cell] = v
}
