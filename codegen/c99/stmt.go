package c99

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// statements translates a list of statements with the comments between them.
func (g *translator) statements(list []ast.Stmt) {
	for _, s := range list {
		g.before(s.Pos())
		g.statement(s)
	}
}

// block translates a block between its braces, whose opening one is written.
func (g *translator) block(b *ast.BlockStmt) {
	g.out.indent++
	g.statements(b.List)
	g.before(b.Rbrace)
	g.out.indent--
}

// statement translates one statement.
func (g *translator) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		g.assign(s)
	case *ast.ExprStmt:
		g.callAlone(s)
	case *ast.ReturnStmt:
		g.giveBack(s)
	case *ast.IfStmt:
		g.branches(s)
	case *ast.ForStmt:
		g.loop(s)
	case *ast.RangeStmt:
		g.rangeLoop(s)
	case *ast.BranchStmt:
		if s.Label != nil || s.Tok != token.BREAK && s.Tok != token.CONTINUE {
			g.refuse(s, "a jump to a label")
		}
		g.out.put("%s;", s.Tok)
	default:
		g.refuse(s, "a statement that is not in what is translated")
	}
}

// ordered is the text of an expression; its calls are done before where their order
// matters.
func (g *translator) ordered(x ast.Expr) operand {
	g.apart = g.flow.unordered(x)
	defer func() { g.apart = false }()
	return g.expr(x)
}

// callAlone is a call whose results nobody takes.
func (g *translator) callAlone(s *ast.ExprStmt) {
	c, ok := ast.Unparen(s.X).(*ast.CallExpr)
	if !ok || g.flow.callee(c) == nil {
		g.refuse(s, "a statement that is no call of the tick")
	}
	text := g.several(c)
	if g.flow.callee(c).Signature().Results().Len() > 0 {
		text = "(void)" + text
	}
	g.out.put("%s;", text)
}

// giveBack is a return: several results are a struct.
func (g *translator) giveBack(s *ast.ReturnStmt) {
	r := g.fn.Signature().Results()
	switch {
	case r.Len() == 0:
		g.out.put("return;")
	case len(s.Results) != r.Len():
		g.refuse(s, "a return that does not list its results")
	case r.Len() == 1:
		g.out.put("return %s;", g.ordered(s.Results[0]).text)
	default:
		g.apart = g.flow.unordered(s.Results...)
		texts := make([]string, r.Len())
		for i, x := range s.Results {
			texts[i] = g.text(x)
		}
		g.apart = false
		g.out.put("return (%s){%s};", g.resultType(r, s), strings.Join(texts, ", "))
	}
}

// several is a call with any number of results.
func (g *translator) several(c *ast.CallExpr) string {
	g.apart = g.flow.unordered(c.Args...)
	defer func() { g.apart = false }()
	if fn := g.flow.callee(c); fn != nil {
		return g.callText(c, fn)
	}
	return g.call(c).text
}

// branches is if, else if and else. A condition before which something has to be done stands in
// the else of the one before.
func (g *translator) branches(s *ast.IfStmt) {
	if s.Init != nil {
		g.refuse(s, "an if with a statement before its condition")
	}
	g.out.put("if (%s) {", g.ordered(s.Cond).text)
	g.block(s.Body)

	e, more := s.Else.(*ast.IfStmt)
	for ; more && e.Init == nil && !g.flow.unordered(e.Cond); e, more = s.Else.(*ast.IfStmt) {
		g.out.put("} else if (%s) {", g.text(e.Cond))
		g.block(e.Body)
		s = e
	}

	switch rest := s.Else.(type) {
	case *ast.IfStmt:
		g.out.put("} else {")
		g.out.indent++
		g.branches(rest)
		g.out.indent--
	case *ast.BlockStmt:
		g.out.put("} else {")
		g.block(rest)
	}

	g.out.put("}")
}

// loop is for with a condition and what follows each turn.
func (g *translator) loop(s *ast.ForStmt) {
	if s.Init != nil || s.Cond == nil || g.flow.unordered(s.Cond) {
		g.refuse(s, "a loop that begins with a statement, has no condition, or one that calls")
	}
	if s.Post == nil {
		g.out.put("while (%s) {", g.text(s.Cond))
	} else {
		g.out.put("for (; %s; %s) {", g.text(s.Cond), g.clause(s.Post))
	}

	g.block(s.Body)
	g.out.put("}")
}

// clause is a statement in the head of a loop.
func (g *translator) clause(s ast.Stmt) string {
	held := g.out
	g.out = lines{}
	g.statement(s)
	text := g.out.text
	g.out = held
	if len(text) != 1 {
		g.refuse(s, "more than an assignment after each turn of a loop")
	}
	return strings.TrimSuffix(text[0], ";")
}

// rangeLoop is for over a number.
func (g *translator) rangeLoop(s *ast.RangeStmt) {
	b, ok := g.info.TypeOf(s.X).Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 || s.Value != nil || s.Key != nil && s.Tok != token.DEFINE {
		g.refuse(s, "a range over what is no number")
	}
	n := g.ordered(s.X)
	if !g.isConst(s.X) {
		if id, ok := ast.Unparen(s.X).(*ast.Ident); !ok || g.flow.changed[g.info.ObjectOf(id)] > 0 {
			name := g.temporary("n")
			g.out.put("const %s = %s;", g.declare(g.info.TypeOf(s.X), name, s), n.text)
			n.text = name
		}
	}

	t, i := types.Default(b), ""
	if id, ok := s.Key.(*ast.Ident); ok && id.Name != "_" {
		v := g.info.Defs[id]
		if g.flow.changed[v] > 0 {
			g.refuse(s, "a counter that its loop changes")
		}
		t, i = v.Type(), g.names[v]
		g.spans[v] = countSpan(n.span)
	} else {
		i = g.temporary("i")
	}

	g.out.put("for (%s = 0; %s < %s; %s++) {", g.declare(t, i, s), i, n.in(bindsShift), i)
	g.block(s.Body)
	g.out.put("}")
}

// declareLocal declares a local; a pointer is one to what is constant where nothing is
// written through it.
func (g *translator) declareLocal(v types.Object, at ast.Node) string {
	return g.parameter(v.Type(), g.names[v], g.flow.through[v], at)
}

// assign is =, := or an operation with =.
func (g *translator) assign(s *ast.AssignStmt) {
	l, r := s.Lhs[0], s.Rhs[0]
	switch {
	case len(s.Lhs) > len(s.Rhs):
		g.spread(s.Lhs, r)
	case len(s.Lhs) > 1:
		g.refuse(s, "several assignments at once")
	case s.Tok == token.ASSIGN || s.Tok == token.DEFINE:
		g.apart = g.flow.unordered(append(indices(l), r)...)
		target := ""
		if g.apart && s.Tok == token.ASSIGN {
			target = g.expr(l).text // with calls in its indices before those of the right side
		}
		value := g.expr(r)
		g.apart = false
		g.set(l, target, value)
	default:
		g.apart = g.flow.unordered(l, r)
		dst, src := g.expr(l), g.expr(r)
		g.apart = false
		g.update(l, s.Tok+token.ADD-token.ADD_ASSIGN, dst, src)
	}
}

// update writes dst = dst op src: with op= where C's own operator does it.
func (g *translator) update(l ast.Expr, op token.Token, dst, src operand) {
	t := g.basic(l)
	own := t.Info()&types.IsFloat != 0 || op == token.AND || op == token.OR || op == token.XOR
	if !own {
		o := g.arithmetic(l, op, t, dst, src)
		own = o.text == dst.in(fits[op].binds)+" "+op.String()+" "+src.in(fits[op].binds+1) && fits[op].helper != ""
		if !own {
			g.out.put("%s = %s;", dst.text, o.text)
			return
		}
	}

	g.out.put("%s %s= %s;", dst.text, op, src.text)
}

func (g *translator) isConst(x ast.Expr) bool { return g.info.Types[x].Value != nil }

// indices are the expressions that say which place an assignment goes to.
func indices(l ast.Expr) []ast.Expr {
	switch l := ast.Unparen(l).(type) {
	case *ast.IndexExpr:
		return append(indices(l.X), l.Index)
	case *ast.SelectorExpr:
		return indices(l.X)
	}

	return nil
}

// set writes one assignment or declaration; target is the place where that is written already.
func (g *translator) set(l ast.Expr, target string, value operand) {
	t := g.info.TypeOf(l)
	id, named := ast.Unparen(l).(*ast.Ident)
	switch {
	case named && id.Name == "_":
		g.out.put("(void)(%s);", value.text)
	case is[*types.Array](t):
		g.refuse(l, "an array that is copied")
	case named && g.info.Defs[id] != nil:
		v := g.info.Defs[id]
		g.out.put("%s = %s;", g.declareLocal(v, id), value.text)
		if g.flow.changed[v] == 0 && value.span.lo != nil {
			g.spans[v] = value.span
		}
	default:
		if target == "" {
			target = g.expr(l).text
		}
		g.out.put("%s = %s;", target, value.text)
	}
}

// spread gives the results of one call to several variables.
func (g *translator) spread(lhs []ast.Expr, r ast.Expr) {
	c, ok := ast.Unparen(r).(*ast.CallExpr)
	if !ok {
		g.refuse(r, "several values that are no call")
	}
	name := g.temporary("r")
	g.out.put("const %s %s = %s;", g.resultType(g.info.TypeOf(c).(*types.Tuple), c), name, g.several(c))
	for i, l := range lhs {
		if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
			continue
		}
		if len(indices(l)) > 0 {
			g.refuse(l, "a result of several that goes to an element")
		}
		g.set(l, "", operand{text: fmt.Sprintf("%s.r%d", name, i)})
	}
}
