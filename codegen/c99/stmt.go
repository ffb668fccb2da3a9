package c99

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// statements translates a list of statements and the comments between them.
func (g *translator) statements(list []ast.Stmt) {
	for i, s := range list {
		g.commentsBefore(s.Pos())
		if l, ok := s.(*ast.LabeledStmt); ok {
			g.out.put("%s:;", l.Label.Name)
			s = l.Stmt
			g.commentsBefore(s.Pos())
		}
		switch s := s.(type) {
		case *ast.EmptyStmt: // behind a label
		case *ast.BlockStmt:
			g.blockStmt(s, list[i+1:])
		default:
			g.statement(s)
		}
	}
}

// blockStmt translates a block. Its statements may jump to a label that the statements after it begin with.
func (g *translator) blockStmt(b *ast.BlockStmt, after []ast.Stmt) {
	ends := g.ends
	if len(after) > 0 {
		if l, ok := after[0].(*ast.LabeledStmt); ok {
			g.ends = append(g.ends, l.Label.Name)
		}
	}
	g.out.put("{")
	g.block(b)
	g.out.put("}")
	g.ends = ends
}

// block translates the content of a block; the caller writes the braces.
func (g *translator) block(b *ast.BlockStmt) {
	g.out.indent++
	g.statements(b.List)
	g.commentsBefore(b.Rbrace)
	g.out.indent--
}

// statement translates one statement.
func (g *translator) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		g.assign(s)
	case *ast.ExprStmt:
		g.callStmt(s)
	case *ast.ReturnStmt:
		g.returnStmt(s)
	case *ast.IfStmt:
		g.ifStmt(s)
	case *ast.ForStmt:
		g.forStmt(s)
	case *ast.RangeStmt:
		g.rangeStmt(s)
	case *ast.BranchStmt:
		if s.Tok == token.GOTO && slices.Contains(g.ends, s.Label.Name) {
			g.out.put("goto %s;", s.Label.Name)
			return
		}
		if s.Label != nil || s.Tok != token.BREAK && s.Tok != token.CONTINUE {
			g.refuse(s, "jump to a label")
		}
		g.out.put("%s;", s.Tok)
	default:
		g.refuse(s, "statement %T", s)
	}
}

// orderedExpr translates an expression. Its calls are hoisted if their order matters.
func (g *translator) orderedExpr(x ast.Expr) operand {
	g.hoistCalls = g.flow.unordered(x)
	defer func() { g.hoistCalls = false }()
	return g.expr(x)
}

// callStmt translates a call as a statement.
func (g *translator) callStmt(s *ast.ExprStmt) {
	c, ok := ast.Unparen(s.X).(*ast.CallExpr)
	if name := g.builtinName(c); name == "clear" || name == "copy" {
		g.blockCall(c, name)
		return
	}
	if !ok || g.flow.callee(c) == nil {
		g.refuse(s, "statement that does not call a function of the tick")
	}
	text := g.multiCall(c)
	if g.flow.callee(c).Signature().Results().Len() > 0 {
		text = "(void)" + text
	}
	g.out.put("%s;", text)
}

// blockCall translates a call of clear or copy; name says which. Its arguments are parts of arrays.
func (g *translator) blockCall(c *ast.CallExpr, name string) {
	to, count, typ := g.part(c.Args[0])
	if name == "clear" {
		g.out.put("memset(%s, 0, %d * sizeof(%s));", to, count, typ)
		return
	}
	from, other, _ := g.part(c.Args[1])
	if other != count || g.flow.locate(c.Args[0]).overlaps(g.flow.locate(c.Args[1])) {
		g.refuse(c, "copy between parts of one field, or of different lengths")
	}
	g.out.put("memcpy(%s, %s, %d * sizeof(%s));", to, from, count, typ)
}

// part returns the address of the first element of x[a:a+count], count and the type of the elements in C.
func (g *translator) part(x ast.Expr) (text string, count int64, typ string) {
	s, ok := x.(*ast.SliceExpr)
	if !ok || s.High == nil || s.Slice3 {
		g.refuse(x, "slice other than x[a:b]")
	}
	array, ok := pointee(g.info.TypeOf(s.X)).Underlying().(*types.Array)
	if !ok || !is[*types.Basic](array.Elem()) {
		g.refuse(x, "slice of %s, which is not an array of scalars", g.info.TypeOf(s.X))
	}
	text, high := g.expr(s.X).in(bindsPostfix), s.High
	if s.Low != nil {
		text = "&" + text + "[" + g.text(s.Low) + "]"
		if sum, ok := high.(*ast.BinaryExpr); ok && sum.Op == token.ADD && g.text(sum.X) == g.text(s.Low) {
			high = sum.Y
		} else {
			count = -g.constant(s.Low)
		}
	}
	return text, count + g.constant(high), g.declare(array.Elem(), "", x)
}

// constant returns an integer constant.
func (g *translator) constant(x ast.Expr) int64 {
	v := g.info.Types[x].Value
	if v == nil {
		g.refuse(x, "slice whose length is not constant")
	}
	n, _ := constant.Int64Val(constant.ToInt(v))
	return n
}

// returnStmt translates a return. Several results become a struct.
func (g *translator) returnStmt(s *ast.ReturnStmt) {
	r := g.fn.Signature().Results()
	switch {
	case r.Len() == 0:
		g.out.put("return;")
	case len(s.Results) != r.Len():
		g.refuse(s, "return that does not list its results")
	case r.Len() == 1:
		g.out.put("return %s;", g.orderedExpr(s.Results[0]).text)
	default:
		g.hoistCalls = g.flow.unordered(s.Results...)
		texts := make([]string, r.Len())
		for i, x := range s.Results {
			texts[i] = g.text(x)
		}
		g.hoistCalls = false
		g.out.put("return (%s){%s};", g.resultType(r, s), strings.Join(texts, ", "))
	}
}

// multiCall returns the text of a call with any number of results.
func (g *translator) multiCall(c *ast.CallExpr) string {
	g.hoistCalls = g.flow.unordered(c.Args...)
	defer func() { g.hoistCalls = false }()
	if fn := g.flow.callee(c); fn != nil {
		return g.callText(c, fn)
	}
	return g.call(c).text
}

// ifStmt translates if, else if and else. An else if whose condition needs hoisted calls becomes an
// if inside the else.
func (g *translator) ifStmt(s *ast.IfStmt) {
	if s.Init != nil {
		g.refuse(s, "if with a statement before its condition")
	}
	g.out.put("if (%s) {", g.orderedExpr(s.Cond).text)
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
		g.ifStmt(rest)
		g.out.indent--
	case *ast.BlockStmt:
		g.out.put("} else {")
		g.block(rest)
	}

	g.out.put("}")
}

// forStmt translates a loop with a condition and an optional post statement.
func (g *translator) forStmt(s *ast.ForStmt) {
	if s.Init != nil || s.Cond == nil || g.flow.unordered(s.Cond) {
		g.refuse(s, "loop with an init statement, without a condition, or with calls in its condition")
	}
	if s.Post == nil {
		g.out.put("while (%s) {", g.text(s.Cond))
	} else {
		g.out.put("for (; %s; %s) {", g.text(s.Cond), g.loopPost(s.Post))
	}

	g.block(s.Body)
	g.out.put("}")
}

// loopPost returns the post statement of a loop.
func (g *translator) loopPost(s ast.Stmt) string {
	held := g.out
	g.out = lines{}
	g.statement(s)
	text := g.out.text
	g.out = held
	if len(text) != 1 {
		g.refuse(s, "post statement of a loop that is not one assignment")
	}
	return strings.TrimSuffix(text[0], ";")
}

// rangeStmt translates a loop over an integer.
func (g *translator) rangeStmt(s *ast.RangeStmt) {
	b, ok := g.info.TypeOf(s.X).Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 || s.Value != nil || s.Key != nil && s.Tok != token.DEFINE {
		g.refuse(s, "range over %s", g.info.TypeOf(s.X))
	}
	n := g.orderedExpr(s.X)
	if !g.isConst(s.X) {
		if id, ok := ast.Unparen(s.X).(*ast.Ident); !ok || g.flow.changed[g.info.ObjectOf(id)] > 0 {
			name := g.newLocal("n")
			g.out.put("const %s = %s;", g.declare(g.info.TypeOf(s.X), name, s), n.text)
			n.text = name
		}
	}

	t, i := types.Default(b), ""
	if id, ok := s.Key.(*ast.Ident); ok && id.Name != "_" {
		v := g.info.Defs[id]
		if g.flow.changed[v] > 0 {
			g.refuse(s, "loop counter that the loop assigns to")
		}
		t, i = v.Type(), g.names[v]
		g.intervals[v] = counterInterval(n.interval)
	} else {
		i = g.newLocal("i")
	}

	g.out.put("for (%s = 0; %s < %s; %s++) {", g.declare(t, i, s), i, n.in(bindsShift), i)
	g.block(s.Body)
	g.out.put("}")
}

// declareLocal returns the declaration of a local variable. The target of a pointer is const if
// nothing is written through it.
func (g *translator) declareLocal(v types.Object, at ast.Node) string {
	return g.parameter(v.Type(), g.names[v], g.flow.writtenThrough[v], at)
}

// assign translates =, := and an operation with =.
func (g *translator) assign(s *ast.AssignStmt) {
	l, r := s.Lhs[0], s.Rhs[0]
	switch {
	case isNilTest(s):
	case len(s.Lhs) > len(s.Rhs):
		g.assignResults(s.Lhs, r)
	case len(s.Lhs) > 1:
		g.refuse(s, "several assignments in one statement")
	case s.Tok == token.ASSIGN || s.Tok == token.DEFINE:
		g.hoistCalls = g.flow.unordered(append(indices(l), r)...)
		target := ""
		if g.hoistCalls && s.Tok == token.ASSIGN {
			target = g.expr(l).text // calls in its indices come before those of the right side
		}
		value := g.expr(r)
		g.hoistCalls = false
		g.assignOne(l, target, value)
	default:
		g.hoistCalls = g.flow.unordered(l, r)
		dst, src := g.expr(l), g.expr(r)
		g.hoistCalls = false
		g.assignOp(l, s.Tok+token.ADD-token.ADD_ASSIGN, dst, src)
	}
}

// isNilTest reports whether a statement is _ = *k, which only tests a pointer: no pointer of a tick is nil.
func isNilTest(s *ast.AssignStmt) bool {
	l, blank := s.Lhs[0].(*ast.Ident)
	r, star := s.Rhs[0].(*ast.StarExpr)
	if !blank || !star || l.Name != "_" {
		return false
	}
	_, named := r.X.(*ast.Ident)
	return named
}

// assignOp writes dst = dst op src, as op= where C's operator gives Go's result.
func (g *translator) assignOp(l ast.Expr, op token.Token, dst, src operand) {
	t := g.basic(l)
	same := t.Info()&types.IsFloat != 0 || op == token.AND || op == token.OR || op == token.XOR
	if !same {
		o := g.arithmetic(l, op, t, dst, src)
		same = o.text == dst.in(fits[op].binds)+" "+op.String()+" "+src.in(fits[op].binds+1) && fits[op].helper != ""
		if !same {
			g.out.put("%s = %s;", dst.text, o.text)
			return
		}
	}

	g.out.put("%s %s= %s;", dst.text, op, src.text)
}

func (g *translator) isConst(x ast.Expr) bool { return g.info.Types[x].Value != nil }

// indices returns the index expressions of an assignment's left side.
func indices(l ast.Expr) []ast.Expr {
	switch l := ast.Unparen(l).(type) {
	case *ast.IndexExpr:
		return append(indices(l.X), l.Index)
	case *ast.SelectorExpr:
		return indices(l.X)
	}

	return nil
}

// assignOne writes one assignment or declaration. target is the translated left side; "": l is
// translated here.
func (g *translator) assignOne(l ast.Expr, target string, value operand) {
	t := g.info.TypeOf(l)
	id, named := ast.Unparen(l).(*ast.Ident)
	switch {
	case named && id.Name == "_":
		g.out.put("(void)(%s);", value.text)
	case is[*types.Array](t):
		g.refuse(l, "copy of an array")
	case named && g.info.Defs[id] != nil:
		v := g.info.Defs[id]
		g.out.put("%s = %s;", g.declareLocal(v, id), value.text)
		if g.flow.changed[v] == 0 && value.interval.lo != nil {
			g.intervals[v] = value.interval
		}
	default:
		if target == "" {
			target = g.expr(l).text
		}
		g.out.put("%s = %s;", target, value.text)
	}
}

// assignResults assigns the results of one call to several variables.
func (g *translator) assignResults(lhs []ast.Expr, r ast.Expr) {
	c, ok := ast.Unparen(r).(*ast.CallExpr)
	if !ok {
		g.refuse(r, "several values that are not the results of a call")
	}
	name := g.newLocal("r")
	g.out.put("const %s %s = %s;", g.resultType(g.info.TypeOf(c).(*types.Tuple), c), name, g.multiCall(c))
	for i, l := range lhs {
		if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
			continue
		}
		if len(indices(l)) > 0 {
			g.refuse(l, "one of several results assigned to a field or an element")
		}
		g.assignOne(l, "", operand{text: fmt.Sprintf("%s.r%d", name, i)})
	}
}
