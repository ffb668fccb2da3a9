package specialise

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kernelElement matches an element of an array of the kernel whose index, or whose index in a
// masked row, is known at generation.
var kernelElement = lazyRegexp(`^(k\.\pL[\pL\pN_]*)\[(?:\d+|(\pL[\pL\pN_]* ?& ?\d+)(?: ?\+ ?\d+)?)\]$`)

// inner matches the innermost brackets and their content.
var inner = regexp.MustCompile(`\[[^\[\]]*\]`)

// sink is the set of elements of a vector to which a loop adds products. The products do not depend
// on the vector.
type sink struct{ of map[string]bool }

// unrollProducts writes out a loop that adds products to a vector.
func (f *frame) unrollProducts(st *ast.RangeStmt, x *value, count int) {
	to, from := f.sinkOf(st), len(*f.fn.out)
	f.unrollRange(st, x, count)
	for _, st := range (*f.fn.out)[from:] {
		st.sink = to
	}
}

// sinkOf returns the vector to which a loop adds products, where its function has the directive
// noalias.
func (f *frame) sinkOf(st *ast.RangeStmt) *sink {
	for d := range f.noalias {
		if st.Pos() < d.Pos() || d.End() < st.End() {
			continue
		}
		to := f.eval(st.Body.List[0].(*ast.AssignStmt).Lhs[0].(*ast.IndexExpr).X)
		if n, ok := f.lengthOf(to).integer(); ok {
			s := &sink{map[string]bool{}}
			for i := range int(n) {
				s.of[f.elementRef(to, wholeNumber(i)).at.full()] = true
			}
			return s
		}
	}

	return nil
}

// groupSums groups the terms that neighbouring statements add to each element of one array, so that
// a sum grows in a variable: memory would delay every term. Each sum keeps the order of its terms.
func (f *frame) groupSums(list []*stmt) (out []*stmt) {
	for len(list) > 0 {
		n, again := f.terms(list)
		if !again {
			st := list[0]
			st.body, st.els = f.groupSums(st.body), f.groupSums(st.els)
			out, list = append(out, st), list[1:]
			continue
		}

		out, list = append(out, f.sums(list[:n])...), list[n:]
	}

	return out
}

// terms returns the number of statements that set elements of one array of float64, or add to them
// values that do not depend on these elements. again reports whether some element occurs more than
// once.
func (f *frame) terms(list []*stmt) (n int, again bool) {
	var row []string
	var to *sink // of the statements that read other elements of the array
	seen := map[string]bool{}
	for ; n < len(list); n++ {
		st := list[n]
		adds := st.text == " += "
		if st.kind != set || len(st.names) != 1 || !adds && st.text != "" && st.text != " = " {
			break
		}
		name := st.names[0]
		m := kernelElement().FindStringSubmatch(name)
		if m == nil || row != nil && !slices.Equal(m[1:], row) || slices.ContainsFunc(callNames(st.right), readsKernel) {
			break
		}
		row = m[1:]
		if strings.Contains(st.right, row[0]+"[") {
			if st.sink == nil || to != nil && to != st.sink || !st.sink.has(seen) {
				break
			}
			to = st.sink
		}

		at := f.shapes[row[0]+"[*]"]
		if to != nil && !to.of[name] || at == nil || !isFloat(at.typ) {
			break
		}
		if adds && !strings.ContainsFunc(st.right, unicode.IsLetter) {
			break
		}
		if !adds && (seen[name] || strings.ContainsAny(st.right, " *k")) {
			break
		}
		again = again || adds && seen[name]
		seen[name] = true
	}

	return n, again
}

// readsKernel reports whether a function may read the kernel beyond its arguments.
func readsKernel(name string) bool { return !pureCalls[name] }

// has reports whether all names are elements of the vector.
func (s *sink) has(names map[string]bool) bool {
	for name := range names {
		if !s.of[name] {
			return false
		}
	}

	return true
}

// sums regroups statements that terms has found: all terms of one element, then those of the next.
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
		outer := inner.ReplaceAllString(right, "")
		if rest, minus := strings.CutPrefix(right, "-"); minus && single(rest) {
			op, right = " - ", rest
		} else if strings.Contains(outer, " + ") || strings.Contains(outer, " - ") {
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

// single reports whether a text is one variable or element.
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

// masked matches an index that begins with a variable and its mask.
var masked = lazyRegexp(`\[(\pL[\pL\pN_]*) ?& ?(\d+)( ?\+ ?[^\[\]&|^*/<>%-]+)?\]`)

// hoistMasks masks variables before a loop that does not change them; the compiler would do so in
// every iteration.
func (f *frame) hoistMasks(list []*stmt) (out []*stmt) {
	for _, st := range list {
		if st.kind == loop {
			changed, names := st.changed(), map[string]string{}
			rewrite([]*stmt{st}, func(text string) string {
				return masked().ReplaceAllStringFunc(text, func(index string) string {
					m := masked().FindStringSubmatch(index)
					if changed[m[1]] {
						return index
					}
					key := m[1] + " & " + m[2]
					if names[key] == "" {
						names[key] = f.unique(m[1])
						out = append(out, &stmt{kind: declare, names: []string{names[key]}, right: key, pure: true})
					}

					return "[" + names[key] + m[3] + "]"
				})
			})
		}

		st.body, st.els = f.hoistMasks(st.body), f.hoistMasks(st.els)
		out = append(out, st)
	}

	return out
}

// minBlock is the number of elements from which a call that clears or copies an array takes less time than a loop.
const minBlock = 16

// blocks replaces loops that only clear or copy part of an array by the functions clear and copy: a loop takes four
// instructions for each element.
func blocks(list []*stmt) []*stmt {
	for _, st := range list {
		st.body, st.els = blocks(st.body), blocks(st.els)
		count, _ := strconv.Atoi(st.right)
		if st.kind != loop || count < minBlock || len(st.names) != 1 || len(st.body) != 1 || st.body[0].text != " = " {
			continue
		}
		set := st.body[0]
		to, root := part(set.names[0], st.names[0], count)
		from, other := part(set.right, st.names[0], count)
		switch {
		case to == "":
		case set.right == "0" || set.right == "false":
			*st = stmt{kind: line, text: "clear(" + to + ")"}
		case from != "" && other != root: // copy would treat overlapping parts differently
			*st = stmt{kind: line, text: "copy(" + to + ", " + from + ")"}
		}
	}

	return list
}

// loopElement matches an element of an array of the kernel, of a parameter or a table: the array, its first two names, and
// the start of the index, which ends with a variable.
var loopElement = lazyRegexp(`^(([\pL\pN_]+(?:\.[\pL\pN_]+)?).*)\[(?:([\pL\pN_]+) ?\+ ?)?([\pL_][\pL\pN_]*)\]$`)

// part returns the slice of the elements that a loop of count iterations over variable i reaches, and the array or the
// field of the kernel that contains it; "" if text is not an element of this form.
func part(text, i string, count int) (slice, root string) {
	m := loopElement().FindStringSubmatch(text)
	if m == nil || m[4] != i {
		return "", ""
	}
	for _, name := range identifiers(m[1] + " " + m[3]) {
		if name == i {
			return "", ""
		}
	}

	from, err := strconv.Atoi(m[3])
	switch {
	case m[3] == "":
		return fmt.Sprintf("%s[:%d]", m[1], count), m[2]
	case err == nil:
		return fmt.Sprintf("%s[%d:%d]", m[1], from, from+count), m[2]
	}
	return fmt.Sprintf("%s[%s:%s+%d]", m[1], m[3], m[3], count), m[2]
}

// changed returns the variables that a loop declares or assigns to.
func (st *stmt) changed() map[string]bool {
	names := map[string]bool{}
	for st := range all([]*stmt{st}) {
		for _, n := range st.names {
			names[n] = true
		}
		if _, post, found := strings.Cut(strings.TrimPrefix(st.text, "; "), "; "); st.kind == loop && found {
			name, _, _ := strings.Cut(post, " ")
			names[name] = true
		}
	}

	return names
}

// rewrite changes the texts of statements.
func rewrite(list []*stmt, change func(string) string) {
	for st := range all(list) {
		if st.kind == comment {
			continue
		}
		st.text, st.right = change(st.text), change(st.right)
		for i := range st.names {
			st.names[i] = change(st.names[i])
		}
	}
}
