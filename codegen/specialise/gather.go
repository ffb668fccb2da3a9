package specialise

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// own is an element of an array of the kernel that is known when the code is written, or of
// a row of one.
var own = regexp.MustCompile(`^(k\.\pL[\pL\pN_]*)\[(?:\d+|(\pL[\pL\pN_]* ?& ?\d+)(?: ?\+ ?\d+)?)\]$`)

// inner is what stands in brackets.
var inner = regexp.MustCompile(`\[[^\[\]]*\]`)

// sink is a vector to which products are added that are not of what is in it: its elements.
type sink struct{ of map[string]bool }

// unrollProducts writes a loop out that adds products to a vector.
func (f *frame) unrollProducts(st *ast.RangeStmt, x *value, count int) {
	to, from := f.sinkOf(st), len(*f.fn.out)
	f.unrollRange(st, x, count)
	for _, st := range (*f.fn.out)[from:] {
		st.sink = to
	}
}

// sinkOf is the vector that a loop adds products to, where the function in which it stands
// has the directive noalias.
func (f *frame) sinkOf(st *ast.RangeStmt) *sink {
	for _, d := range f.funcs {
		if d.Body == nil || st.Pos() < d.Body.Pos() || d.Body.End() < st.End() || !f.noalias[d] {
			continue
		}
		to := f.eval(st.Body.List[0].(*ast.AssignStmt).Lhs[0].(*ast.IndexExpr).X)
		if n, ok := f.lengthOf(st, to).integer(); ok {
			s := &sink{map[string]bool{}}
			for i := range int(n) {
				s.of[f.nth(nil, to, wholeNumber(i)).at.full()] = true
			}
			return s
		}
	}
	return nil
}

// gathered brings together what neighbouring statements add to the elements of one array, so
// that a sum lies in a variable while it grows: memory would hold up every one of its terms.
// Each sum keeps the order of its own terms.
func (f *frame) gathered(list []*stmt) (out []*stmt) {
	for len(list) > 0 {
		n, again := f.terms(list)
		if !again {
			st := list[0]
			st.body, st.els = f.gathered(st.body), f.gathered(st.els)
			out, list = append(out, st), list[1:]
			continue
		}
		out, list = append(out, f.sums(list[:n])...), list[n:]
	}
	return out
}

// terms is how many statements set elements of one array of float64 to numbers and add to them
// what the tick computes and does not depend on those elements; again: some have several.
func (f *frame) terms(list []*stmt) (n int, again bool) {
	var row []string
	var to *sink // of those that read other elements of the array
	seen := map[string]bool{}
	for _, st := range list {
		if st.kind != set || len(st.names) != 1 || st.text != "" && st.text != " = " && st.text != " += " {
			break
		}
		name := st.names[0]
		m := own.FindStringSubmatch(name)
		if m == nil || row != nil && !slices.Equal(m[1:], row) || callNames(st.right) != nil {
			break
		}
		if strings.Contains(st.right, m[1]+"[") {
			if st.sink == nil || to != nil && to != st.sink || !st.sink.has(seen) {
				break
			}
			to = st.sink
		}
		if at := f.shapes[m[1]+"[*]"]; to != nil && !to.of[name] || at == nil || goType(at.typ) != "float64" || st.text == " += " && !strings.ContainsFunc(st.right, unicode.IsLetter) {
			break
		}
		if row = m[1:]; st.text != " += " && (seen[name] || strings.ContainsAny(st.right, " *k")) {
			break
		}
		again = again || seen[name] && st.text == " += "
		seen[name] = true
		n++
	}
	return n, again
}

// has reports whether all elements are of the vector.
func (s *sink) has(names map[string]bool) bool {
	for name := range names {
		if !s.of[name] {
			return false
		}
	}
	return true
}

// sums writes such statements element by element.
func (f *frame) sums(list []*stmt) (out []*stmt) {
	of, order := map[string][]*stmt{}, []string{}
	for _, st := range list {
		name := st.names[0]
		if of[name] == nil {
			order = append(order, name)
		}
		of[name] = append(of[name], st)
	}
	for _, name := range order {
		parts := of[name]
		if len(parts) < 2 {
			out = append(out, parts...)
			continue
		}
		sum, from := f.unique("sum"), name
		if parts[0].text != " += " {
			from, parts = parts[0].right, parts[1:]
		}
		op, right := " + ", parts[0].right
		if rest, minus := strings.CutPrefix(right, "-"); minus && single(rest) {
			op, right = " - ", rest
		} else if outer := inner.ReplaceAllString(right, ""); strings.Contains(outer, " + ") || strings.Contains(outer, " - ") {
			right = "(" + right + ")"
		}
		out = append(out, &stmt{kind: declare, names: []string{sum}, right: from + op + right, pure: true})
		for _, st := range parts[1:] {
			out = append(out, &stmt{kind: set, names: []string{sum}, text: " += ", right: st.right, pure: true})
		}
		out = append(out, &stmt{kind: set, names: []string{name}, text: " = ", right: sum, pure: true})
	}
	return out
}

// single reports whether a text is one variable or element, no expression of several.
func single(text string) bool {
	depth := 0
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0 && r != '.' && r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)):
			return false
		}
	}
	return text != ""
}
