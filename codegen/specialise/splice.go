package specialise

import (
	"slices"
	"strings"
)

// inlined returns the statements of a function in place of its call by a statement of g, and its results. The
// results are nil if the statements replace that of the call. last reports whether g ends after the statement.
func (in *inliner) inlined(g *fn, c *call, st *stmt, last bool) (out []*stmt, results []string) {
	h := c.fn
	out, body := in.bound(g, h, c.args)
	in.size[g] += in.size[h]
	if len(body) > 4 {
		out = append(out, &stmt{kind: comment, text: h.summary()})
	}
	returns := 0
	for b := range all(body) {
		if isReturn(b) {
			returns++
		}
	}
	discard := st.kind == line && c.whole
	switch end := body[max(len(body)-1, 0):]; {
	case discard && isReturn(st): // the returns of h are those of g
		return append(out, body...), nil
	case discard && last && len(g.results)+len(h.results) == 0: // both return
		return append(out, body...), nil
	case returns == 0:
		return append(out, body...), nil
	case returns == 1 && isReturn(end[0]) && !discard:
		return append(out, body[:len(body)-1]...), returned(end[0])
	}

	if !discard {
		for i, t := range h.results {
			name := "got"
			if c.whole && len(st.names) > i && plainName(st.names[i]) && st.names[i] != "_" {
				name = st.names[i]
			}
			results = append(results, g.unusedName(in.spec, name))
			out = append(out, &stmt{kind: declare, names: []string{results[i]}, right: zeroOf(t).typed(), pure: true})
		}
	}
	j := &jumps{inliner: in, results: results, values: zeroTexts(h)}
	j.name = func() string { return g.unusedName(in.spec, strings.ToLower(h.name[:1])+h.name[1:]+"End") }
	if body = j.replace(body, true); j.label != "" {
		body = []*stmt{{kind: block, text: j.label, body: body}}
	}
	return append(out, body...), results
}

// zeroTexts returns the zero values of the results of a function.
func zeroTexts(h *fn) (list []string) {
	for _, t := range h.results {
		list = append(list, zeroOf(t).text)
	}
	return list
}

// jumps replaces the returns of an inlined function by assignments to its results, which are 0 before, and jumps
// to the end of its statements.
type jumps struct {
	*inliner
	results []string // nil if they are not used
	values  []string // zero values of the results
	label   string   // "" if there is no jump
	name    func() string
}

func (j *jumps) replace(list []*stmt, last bool) (out []*stmt) {
	for i, st := range list {
		end := last && i == len(list)-1
		if !isReturn(st) {
			st.body, st.els = j.replace(st.body, end && st.kind == branch), j.replace(st.els, end)
			out = append(out, st)
			continue
		}
		for i, r := range returned(st) {
			called, _, _ := strings.Cut(r, "(")
			switch h := j.byCall[called]; {
			case j.results == nil && h != nil && h.effects:
				out = append(out, &stmt{kind: line, text: r})
			case j.results != nil && r != j.values[i]:
				out = append(out, &stmt{kind: set, names: []string{j.results[i]}, right: r, pure: true})
			}
		}
		if end {
			continue
		}
		if j.label == "" {
			j.label = j.name()
		}
		out = append(out, &stmt{kind: line, text: "goto " + j.label})
	}
	return out
}

// bound returns a copy of the statements of h with names that g does not have yet, after the declarations of
// parameters.
func (in *inliner) bound(g, h *fn, args []string) (declared, body []*stmt) {
	body = copied(h.body)
	to, assigned := map[string]string{}, map[string]bool{}
	for st := range all(body) {
		for _, n := range st.names {
			switch {
			case st.kind == set:
				assigned[n] = true
			case n != "_":
				to[n] = g.unusedName(in.spec, n)
			}
		}
		switch st.kind {
		case loop: // with an assignment in its head
			for n := range st.changed() {
				assigned[n] = true
			}
		case block:
			to[st.text] = g.unusedName(in.spec, st.text)
		}
	}

	if h.indirect {
		args = args[1:] // the kernel
	}
	for i, p := range h.params {
		name, typ, _ := strings.Cut(p, " ")
		switch arg := args[i]; {
		case name == "_":
		case plainName(arg) && !assigned[name] || strings.HasPrefix(typ, "*"):
			to[name] = arg
		default:
			if isLiteral(arg) { // it has no type by itself
				arg = typ + "(" + arg + ")"
			}
			to[name] = g.unusedName(in.spec, name)
			declared = append(declared, &stmt{kind: declare, names: []string{to[name]}, right: arg, pure: in.pure(arg)})
		}
	}
	renameIn(body, to)
	return declared, body
}

// summary returns the first sentence of the comment of a function, and what its known arguments select.
func (h *fn) summary() string {
	doc, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(h.decl.Doc.Text(), "\n", " ")), ". ")
	if doc = strings.TrimSuffix(doc, ".") + "."; doc == "." {
		doc = h.decl.Name.Name + "."
	}
	return strings.TrimSpace(doc + " " + h.about)
}

// isReturn reports whether a statement is a return.
func isReturn(st *stmt) bool {
	return st.kind == line && (st.text == "return" || strings.HasPrefix(st.text, "return "))
}

// returned returns the results of a return.
func returned(st *stmt) []string { return splitArgs(strings.TrimPrefix(st.text, "return")) }

// copied returns a copy of statements.
func copied(list []*stmt) (out []*stmt) {
	for _, st := range list {
		c := *st
		c.names, c.body, c.els = slices.Clone(st.names), copied(st.body), copied(st.els)
		out = append(out, &c)
	}
	return out
}

// findCall returns where the first call of a function in a text begins and ends.
func findCall(text, name string) (from, to int) {
	m := calls().FindAllStringSubmatchIndex(text, -1)
	at := slices.IndexFunc(m, func(m []int) bool { return text[m[2]:m[3]] == name })
	depth := 0
	for to = m[at][3]; ; to++ {
		switch text[to] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return m[at][2], to + 1
		}
	}
}

// splitArgs returns the expressions of a list.
func splitArgs(text string) (list []string) {
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				list, from = append(list, strings.TrimSpace(text[from:i])), i+1
			}
		}
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		list = append(list, rest)
	}
	return list
}

// isLiteral reports whether a text is a number.
func isLiteral(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && digit(text[0]) && strings.Trim(text, "0123456789abcdefx.+-") == ""
}

// plainName reports whether a text is the name of a variable.
func plainName(text string) bool {
	for from, name := range identifiers(text) {
		return from == 0 && name == text && text != "true" && text != "false"
	}
	return false
}

// renameHidden renames the variables of a function that hide something at the top of the package: a function that is
// inlined may use it.
func (g *fn) renameHidden(s *spec) {
	to := map[string]string{}
	hides := func(n string) bool { return s.used[n] && to[n] == "" && n != "k" && n != "y" && n != "u" }
	for st := range all(g.body) {
		for _, n := range st.names {
			if (st.kind == declare || st.kind == loop) && hides(n) {
				to[n] = g.unusedName(s, n)
			}
		}
	}
	for i, n := range g.args {
		if !hides(n) {
			continue
		}
		to[n] = g.unusedName(s, n)
		g.args[i] = to[n]
		for j, p := range g.params {
			if typ, ok := strings.CutPrefix(p, n+" "); ok {
				g.params[j] = to[n] + " " + typ
			}
		}
	}
	renameIn(g.body, to)
}

// unusedName returns a name for a variable that the function does not have yet.
func (g *fn) unusedName(s *spec, name string) string { return (&frame{spec: s, fn: g}).unique(name) }

// renameIn renames variables in statements.
func renameIn(list []*stmt, to map[string]string) {
	if len(to) == 0 {
		return
	}
	rewrite(list, func(text string) string {
		var b strings.Builder
		at := 0
		for from, name := range identifiers(text) {
			if n := to[name]; n != "" && (from == 0 || text[from-1] != '.') {
				b.WriteString(text[at:from] + n)
				at = from + len(name)
			}
		}
		return b.String() + text[at:]
	})
}
