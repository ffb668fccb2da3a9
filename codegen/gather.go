package codegen

import (
	"regexp"
	"strings"
	"unicode"
)

// own is an element of an array of the kernel that is known when the code is written.
var own = regexp.MustCompile(`^(k\.\pL[\pL\pN_]*)\[\d+\]$`)

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
// what the tick computes and does not depend on that array; again: some elements have several.
func (f *frame) terms(list []*stmt) (n int, again bool) {
	array, seen := "", map[string]bool{}
	for _, st := range list {
		if st.kind != set || len(st.names) != 1 || st.text != "" && st.text != " = " && st.text != " += " {
			break
		}
		m := own.FindStringSubmatch(st.names[0])
		if m == nil || array != "" && m[1] != array || callNames(st.right) != nil || strings.Contains(st.right, m[1]+"[") {
			break
		}
		if at := f.shapes[wild(st.names[0])]; at == nil || goType(at.typ) != "float64" || st.text == " += " && !strings.ContainsFunc(st.right, unicode.IsLetter) {
			break
		}
		if array = m[1]; st.text != " += " && (seen[st.names[0]] || strings.ContainsAny(st.right, " *k")) {
			break
		}
		again = again || seen[st.names[0]] && st.text == " += "
		seen[st.names[0]] = true
		n++
	}
	return n, again
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
		right := parts[0].right
		if strings.Contains(right, " + ") || strings.Contains(right, " - ") {
			right = "(" + right + ")"
		}
		out = append(out, &stmt{kind: declare, names: []string{sum}, right: from + " + " + right, pure: true})
		for _, st := range parts[1:] {
			out = append(out, &stmt{kind: set, names: []string{sum}, text: " += ", right: st.right, pure: true})
		}
		out = append(out, &stmt{kind: set, names: []string{name}, text: " = ", right: sum, pure: true})
	}
	return out
}
