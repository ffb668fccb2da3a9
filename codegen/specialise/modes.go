package specialise

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// maxModes is the largest number of modes for which a function with the directive modes is generated once
// per mode. The matrices of a known mode are numbers, and most of them are 0 or 1. With more modes the
// code is longer than their tables.
const maxModes = 16

// byLockSet reports whether a quiet tick is generated for each lock set.
func (s *spec) byLockSet() bool {
	return s.plant.Quiet && len(s.plant.Modes) <= maxModes && !s.oneQuiet
}

// modeOf returns the last argument of a function with the directive modes; nil for other functions.
func (f *frame) modeOf(d *ast.FuncDecl) *value {
	if !f.byMode[d] {
		return nil
	}
	list := names(d.Type.Params)
	return f.vars[f.info.Defs[list[len(list)-1]]].val
}

// selectMode emits the branches that call a function for each of its modes and return its results.
func (f *frame) selectMode(d *ast.FuncDecl, mode *value) flow {
	return f.selectCall(d, mode, 0, len(f.plant.Modes), func(args []*value, n int) { args[len(args)-1] = wholeNumber(n) })
}

// selectCall emits the branches that call function d where number is lo to hi - 1, and return its results. set changes the
// arguments of d to those for a number.
func (f *frame) selectCall(d *ast.FuncDecl, number *value, lo, hi int, set func(args []*value, n int)) flow {
	if mid := (lo + hi) / 2; mid > lo {
		below, above := func() flow { return f.selectCall(d, number, lo, mid, set) }, func() flow { return f.selectCall(d, number, mid, hi, set) }
		return f.followBranches(arith(token.LSS, number, wholeNumber(mid)), nil, below, above)
	}
	args := []*value{}
	for _, n := range names(d.Recv, d.Type.Params) {
		args = append(args, f.vars[f.info.Defs[n]].val)
	}
	set(args, lo)
	got, texts := f.invoke(d, args, callMode{}), []string{}
	f.fn.recordReturn(got)
	for _, v := range got {
		texts = append(texts, v.text)
	}
	f.emit(&stmt{kind: line, text: strings.TrimSpace("return " + strings.Join(texts, ", "))})
	return leaves
}

// holdLocally replaces the elements of an array of the kernel by variables, in a function that sets
// each of them before it reads it. It leaves a function as it is that does not, or where the tick
// computes an index, or that calls another one with the kernel.
func (f *frame) holdLocally(list []*stmt, array string) []*stmt {
	element, any := regexp.MustCompile(`\bk\.`+array+`\[\d+\]`), regexp.MustCompile(`\bk\.`+array+`\b`)
	local := map[string]string{} // variable of each element
	first := func(st *stmt) bool {
		return st.kind == set && len(st.names) == 1 && st.text != " += " && local[st.names[0]] == "" &&
			element.FindString(st.names[0]) == st.names[0]
	}
	for _, st := range list {
		for in := range all([]*stmt{st}) {
			text := in.text + " " + in.right
			if in != st || !first(st) {
				text += " " + strings.Join(in.names, " ")
			}
			for _, e := range element.FindAllString(text, -1) {
				if local[e] == "" {
					return list
				}
			}
			if any.MatchString(element.ReplaceAllString(text, "")) || slices.ContainsFunc(callNames(text), usesKernel) {
				return list
			}
		}
		if first(st) {
			local[st.names[0]] = f.unique(array + "_")
		}
	}

	declared := map[string]bool{}
	for _, st := range list {
		if name := st.names; st.kind == set && len(name) == 1 && local[name[0]] != "" && !declared[name[0]] {
			declared[name[0]], st.kind, st.text = true, declare, ""
		}
		rewrite([]*stmt{st}, func(text string) string {
			return element.ReplaceAllStringFunc(text, func(e string) string { return local[e] })
		})
	}
	return removeUnread(list)
}

// usesKernel reports whether the name of a call is that of a function with the kernel k.
func usesKernel(name string) bool {
	return strings.HasPrefix(name, "k.") || strings.HasPrefix(name, "jump.")
}
