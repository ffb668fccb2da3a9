package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
	"strings"
)

func spanOfInt(n int64) span { b := big.NewInt(n); return span{b, b} }

// loop is for with up to three clauses.
func (g *translator) loop(s *ast.ForStmt, label string) {
	init, scope := g.firstClause(s)
	if scope {
		g.out.put("{")
		g.out.indent++
		g.statement(s.Init, "")
	}
	g.boundCounter(s)
	e := exit{label: label, loop: true, inC: true}
	post, simple := g.lastClause(s.Post)
	e.late = !simple
	pre := s.Cond != nil && g.flow.unordered(s.Cond)
	cond := ""
	if s.Cond != nil && !pre {
		cond = g.text(s.Cond)
	}
	switch {
	case init == "" && post == "" && cond != "":
		g.out.put("while (%s) {", cond)
	default:
		g.out.put("for (%s;%s;%s) {", init, lead(cond), lead(post))
	}
	x := g.enter(e)
	if pre {
		g.out.indent++
		o := g.ordered(s.Cond)
		g.out.put("if (!%s) {", o.in(bindsUnary))
		g.out.put("\tbreak;")
		g.out.put("}")
		g.out.indent--
	}
	g.block(s.Body)
	g.landing(x)
	if !simple {
		g.out.indent++
		g.statement(s.Post, "")
		g.out.indent--
	}
	g.out.put("}")
	g.leave()
	if scope {
		g.out.indent--
		g.out.put("}")
	}
}

func lead(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}

// landing is where a continue goes that is a goto.
func (g *translator) landing(e *exit) {
	if e.toNext {
		g.out.put("%s: ;", e.next)
	}
}

// firstClause is the first clause of a loop if C's for can hold it: one declaration of a
// scalar, or one assignment.
func (g *translator) firstClause(s *ast.ForStmt) (text string, scope bool) {
	if s.Init == nil {
		return "", false
	}
	return g.clauseText(s.Init, true)
}

// lastClause is the last clause of a loop if C's for can hold it.
func (g *translator) lastClause(s ast.Stmt) (text string, simple bool) {
	if s == nil {
		return "", true
	}
	text, more := g.clauseText(s, false)
	return text, !more
}

// clauseText translates a statement aside and takes it if it is one line.
func (g *translator) clauseText(s ast.Stmt, first bool) (text string, more bool) {
	if a, ok := s.(*ast.AssignStmt); ok && len(a.Lhs) > 1 {
		return "", true
	}
	held, locals := g.out, g.locals
	g.out, g.locals = lines{}, map[string]bool{}
	for n := range locals {
		g.locals[n] = true
	}
	g.statement(s, "")
	lines := g.out.text
	g.out, g.locals = held, locals
	if len(lines) != 1 || strings.Contains(lines[0], "memmove") {
		return "", true
	}
	return strings.TrimSuffix(lines[0], ";"), false
}

// boundCounter notes what a counter can be in the body of a loop that only its last
// clause changes.
func (g *translator) boundCounter(s *ast.ForStmt) {
	inc, ok := s.Post.(*ast.IncDecStmt)
	cond, ok2 := s.Cond.(*ast.BinaryExpr)
	init, ok3 := s.Init.(*ast.AssignStmt)
	if !ok || !ok2 || !ok3 || len(init.Lhs) != 1 {
		return
	}
	v := g.flow.object(inc.X)
	if v == nil || v != g.flow.object(cond.X) || v != g.flow.object(init.Lhs[0]) || g.flow.changed[v] != 1 {
		return
	}
	b, ok := v.Type().Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 || g.calls(cond.Y) {
		return
	}
	delete(g.spans, v)
	from, to, one := g.quietSpan(init.Rhs[0], b), g.quietSpan(cond.Y, b), big.NewInt(1)
	switch {
	case inc.Tok == token.INC && cond.Op == token.LSS:
		g.spans[v] = span{from.lo, new(big.Int).Sub(to.hi, one)}
	case inc.Tok == token.INC && cond.Op == token.LEQ && to.hi.Cmp(wholeSpan(b).hi) < 0:
		g.spans[v] = span{from.lo, to.hi}
	case inc.Tok == token.DEC && cond.Op == token.GTR:
		g.spans[v] = span{new(big.Int).Add(to.lo, one), from.hi}
	case inc.Tok == token.DEC && cond.Op == token.GEQ && to.lo.Cmp(wholeSpan(b).lo) > 0:
		g.spans[v] = span{to.lo, from.hi}
	}
}

// quietSpan is what an expression can be, without writing anything.
func (g *translator) quietSpan(x ast.Expr, b *types.Basic) span {
	if g.calls(x) {
		return wholeSpan(b)
	}
	return g.expr(x).span
}

// rangeLoop is for over a number or an array.
func (g *translator) rangeLoop(s *ast.RangeStmt, label string) {
	t := g.info.TypeOf(s.X).Underlying()
	if b, ok := t.(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
		o := g.ordered(s.X)
		if !g.isConst(s.X) {
			if id, ok := ast.Unparen(s.X).(*ast.Ident); !ok || g.flow.changed[g.info.ObjectOf(id)] > 0 {
				n := g.temporary("n")
				g.out.put("const %s = %s;", g.declare(g.info.TypeOf(s.X), n, s), o.text)
				o.text = n
			}
		}
		g.count(s, label, g.counterType(s, t), o, nil)
		return
	}
	overPointer := isPointer(t)
	if overPointer {
		t = t.(*types.Pointer).Elem().Underlying()
	}
	a, ok := t.(*types.Array)
	if !ok {
		g.refuse(s, "range over %s", t)
	}
	n := spanOfInt(a.Len())
	o := operand{n.lo.String(), bindsPostfix, n}
	if blank(s.Value) {
		g.count(s, label, types.Typ[types.Int], o, nil)
		return
	}
	text := g.expr(s.X).in(bindsPostfix)
	body := g.flow.effectsOf(s.Body)
	if !overPointer && body.writes.meets(g.flow.effectsOf(s.X).reads) { // Go goes over a copy
		text = g.keep(s.X, text)
		body.writes = nil
	}
	g.count(s, label, types.Typ[types.Int], o, func(i string) { g.takeElement(s, text+"["+i+"]", a.Elem()) })
}

// counterType is the type of what counts: that of the variable, else of the number.
func (g *translator) counterType(s *ast.RangeStmt, t types.Type) types.Type {
	if !blank(s.Key) {
		t = g.info.TypeOf(s.Key)
	}
	if b := t.Underlying().(*types.Basic); b.Info()&types.IsUntyped != 0 {
		return types.Typ[types.Int]
	}
	return t
}

func blank(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return x == nil || ok && id.Name == "_"
}

// count writes a loop from 0 to n. The variable is the counter itself where nothing
// changes it.
func (g *translator) count(s *ast.RangeStmt, label string, t types.Type, n operand, element func(i string)) {
	var v types.Object
	i := ""
	if !blank(s.Key) && s.Tok == token.DEFINE {
		v = g.info.Defs[s.Key.(*ast.Ident)]
		if g.flow.changed[v] == 0 {
			i = g.names[v]
			g.spans[v] = span{new(big.Int), new(big.Int).Sub(n.span.hi, big.NewInt(1))}
		}
	}
	own := i != ""
	if !own {
		i = g.temporary("i")
	}
	g.out.put("for (%s = 0; %s < %s; %s++) {", g.declare(t, i, s), i, n.in(bindsShift), i)
	x := g.enter(exit{label: label, loop: true, inC: true})
	g.out.indent++
	switch {
	case own || blank(s.Key):
	case v != nil:
		g.out.put("%s = %s;", g.declare(t, g.names[v], s), i)
	default:
		g.out.put("%s = %s;", g.text(s.Key), i)
	}
	if element != nil {
		element(i)
	}
	g.out.indent--
	g.block(s.Body)
	g.landing(x)
	g.out.put("}")
	g.leave()
}

// takeElement declares the element of a range: a struct that nothing changes is not
// copied.
func (g *translator) takeElement(s *ast.RangeStmt, text string, t types.Type) {
	if s.Tok != token.DEFINE {
		if isArray(t) {
			g.refuse(s, "a range that assigns arrays")
		}
		g.out.put("%s = %s;", g.text(s.Value), text)
		return
	}
	v := g.info.Defs[s.Value.(*ast.Ident)]
	quiet := g.flow.changed[v] == 0 && !g.flow.effectsOf(s.Body).writes.meets(g.flow.effectsOf(s.X).reads)
	switch {
	case quiet && (isStruct(t) || isArray(t)):
		g.instead[v] = text
	case isArray(t):
		g.out.put("%s;", g.declareLocal(v, s))
		g.out.put("memcpy(%s, %s, sizeof %s);", g.names[v], text, g.names[v])
		g.unread(v)
	default:
		g.out.put("%s = %s;", g.declareLocal(v, s), text)
		g.unread(v)
	}
}
