package specialise

import (
	"slices"
	"strings"
)

// Calls of generated functions with one call are inlined when the passes are over. The Go compiler inlines functions of
// a few statements only, and a call of any other stores the variables in use before it and loads them after it. Short
// functions with several calls stay: to inline them gains nothing on average, since the instructions of a tick about
// fill the processor's cache for them.
const (
	inlinedSize  = 350 // statements of a function with inlined calls: in a longer one the compiler inlines no helpers
	inlinedFrame = 350 // estimated stack of such a function without its calls, bytes
)

// inliner inlines the calls of generated functions.
type inliner struct {
	*spec
	byCall map[string]*fn // functions by the name of their calls
	calls  map[*fn]int    // number of calls
	own    map[*fn]int    // estimated stack without calls, bytes
	size   map[*fn]int    // number of statements
}

// inlineCalls inlines calls in the functions of the last pass.
func (s *spec) inlineCalls() {
	in := &inliner{spec: s, byCall: map[string]*fn{}, calls: map[*fn]int{}, own: map[*fn]int{}, size: map[*fn]int{}}
	reached := s.reached()
	for _, g := range reached {
		in.byCall[g.callee()] = g
	}
	for _, g := range reached {
		g.renameHidden(s)
		for name := range calledIn(g.body) {
			in.calls[in.byCall[name]]++
		}
	}

	s.order = slices.DeleteFunc(s.order, func(g *fn) bool { return in.byCall[g.callee()] != g })
	for _, g := range s.order {
		in.own[g], in.size[g] = frameOf(g), size(g.body)
		g.body = removeUnread(in.list(g, g.body, true))
		in.own[g], in.size[g] = frameOf(g), size(g.body)
	}
	in.redirect()
}

// calledIn iterates over the names of the calls in statements.
func calledIn(list []*stmt) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for st := range all(list) {
			for _, name := range slices.Concat(callNames(st.text), callNames(st.right)) {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// list returns the statements of a list in g with inlined calls. last reports whether g ends after the list.
func (in *inliner) list(g *fn, list []*stmt, last bool) (out []*stmt) {
	list = mergeReturns(list)
	for i, st := range list {
		end := last && i == len(list)-1
		st.body = in.list(g, st.body, end && st.kind == branch)
		st.els = in.list(g, st.els, end)
		out = append(out, in.statement(g, st, end)...)
	}
	return out
}

// mergeReturns makes a variable that is returned at once the expression of the return.
func mergeReturns(list []*stmt) []*stmt {
	if n := len(list); n > 1 {
		d, r := list[n-2], list[n-1]
		if d.kind == declare && len(d.names) == 1 && isReturn(r) && r.text == "return "+d.names[0] {
			r.text = "return " + d.right
			return slices.Delete(list, n-2, n-1)
		}
	}
	return list
}

// statement returns a statement of g with inlined calls. last reports whether g ends after it. A call of a
// function with an effect is a whole statement; the order of other calls does not matter.
func (in *inliner) statement(g *fn, st *stmt, last bool) (out []*stmt) {
	text, before := &st.right, ""
	switch {
	case st.kind == comment || st.kind == loop && st.right == "":
		return []*stmt{st} // a condition is evaluated in each iteration
	case isReturn(st):
		text, before = &st.text, "return "
	case st.kind == line || st.kind == branch:
		text = &st.text
	}

	for {
		expr := strings.TrimPrefix(*text, before)
		c := in.firstCall(g, expr)
		if c == nil {
			return append(out, st)
		}
		if mayDecide(expr[:c.from]) {
			return append(out, in.list(g, in.decided(g, st, expr, c.from), false)...)
		}
		c.whole = c.from == 0 && c.to == len(expr)
		body, results := in.inlined(g, c, st, last)
		if out = append(out, body...); results == nil {
			return out
		}
		if len(st.names) > 1 && c.whole {
			for i, n := range st.names {
				if n != "_" {
					out = append(out, &stmt{kind: st.kind, names: []string{n}, right: results[i], pure: true})
				}
			}
			return out
		}

		r := results[0]
		if !c.whole && !single(r) {
			r = "(" + r + ")"
		}
		*text = before + expr[:c.from] + r + expr[c.to:]
	}
}

// call is a call in a text.
type call struct {
	fn       *fn
	args     []string
	from, to int  // position in the text
	whole    bool // the text is nothing but the call
}

// firstCall returns the first call in a text that is inlined in g, and whose arguments have no such call; nil for
// none. A call behind && or || is one of these only if the statement can be divided there.
func (in *inliner) firstCall(g *fn, text string) *call {
	for _, name := range callNames(text) {
		h := in.byCall[name]
		if h == nil || !in.inlines(g, h) {
			continue
		}
		from, to := findCall(text, name)
		args := text[from+len(name)+1 : to-1]
		operator, _ := lastOperator(text, from)
		if mayDecide(text[:from]) && operator < 0 || in.firstCall(g, args) != nil {
			continue
		}
		return &call{fn: h, args: splitArgs(args), from: from, to: to}
	}
	return nil
}

// inlines reports whether calls of h are inlined in g.
func (in *inliner) inlines(g, h *fn) bool {
	return in.calls[h] == 1 && !h.entry && in.size[g]+in.size[h] <= inlinedSize &&
		in.own[g]+in.own[h]-frameBase <= inlinedFrame
}

// mayDecide reports whether what follows a text may not be evaluated.
func mayDecide(text string) bool { return strings.Contains(text, "&&") || strings.Contains(text, "||") }

// lastOperator returns the position of the operator outside of parentheses that decides whether a call in a text is
// evaluated: the last || before the call, or the first one behind it, or the last && before it; -1 for none.
func lastOperator(text string, call int) (at int, or bool) {
	at = -1
	depth := 0
	for i := range len(text) - 1 {
		switch {
		case text[i] == '(' || text[i] == '[':
			depth++
		case text[i] == ')' || text[i] == ']':
			depth--
		case depth > 0:
		case text[i] == ',':
			return -1, false
		case text[i:i+2] == "||" && (i < call || at >= 0 && !or):
			at, or = i, true
		case text[i:i+2] == "&&" && i < call && !or:
			at = i
		}
	}
	return at, or
}

// decided divides a statement that calls a function behind && or ||: the operands behind the operator are
// evaluated only if those before it do not decide.
func (in *inliner) decided(g *fn, st *stmt, text string, call int) []*stmt {
	at, or := lastOperator(text, call)
	name, cond := "and", ""
	if or {
		name, cond = "or", "!"
	}
	if st.kind == declare {
		name = st.names[0]
	} else {
		name = g.unusedName(in.spec, name)
	}
	rest := &stmt{kind: set, names: []string{name}, right: strings.TrimSpace(text[at+2:]), pure: true}
	list := []*stmt{
		{kind: declare, names: []string{name}, right: strings.TrimSpace(text[:at]), pure: true},
		{kind: branch, text: cond + name, body: []*stmt{rest}, pure: true},
	}
	switch st.kind {
	case set:
		st.right = name
		return append(list, st)
	case branch:
		st.text = name
		return append(list, st)
	case line: // return
		st.text = "return " + name
		return append(list, st)
	}
	return list
}

// redirect makes calls indirect whose functions have become long or need much stack.
func (in *inliner) redirect() {
	to := map[string]*fn{}
	for _, g := range in.order {
		g.below = 0
		for name := range calledIn(g.body) {
			if h := in.byCall[name]; h != nil && !h.indirect {
				g.below = max(g.below, h.depth)
			}
		}
		g.depth = in.own[g] + g.below
		if !g.indirect && !g.entry && (in.size[g] > longFunction || g.depth > deepStack) {
			to[g.callee()], g.indirect = g, true
		}
	}

	for _, g := range in.order {
		rewrite(g.body, func(text string) string {
			for _, name := range callNames(text) {
				if h := to[name]; h != nil {
					from, end := findCall(text, name)
					args := append([]string{"k"}, splitArgs(text[from+len(name)+1:end-1])...)
					text = text[:from] + h.callee() + "(" + strings.Join(args, ", ") + ")" + text[end:]
				}
			}
			return text
		})
	}
}
