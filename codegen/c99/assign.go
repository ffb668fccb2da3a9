package c99

import (
	"go/ast"
	"go/token"
	"go/types"
)

// declaration is var in a function; constants are written where they are used.
func (g *translator) declaration(d *ast.GenDecl) {
	if d.Tok == token.CONST {
		return
	}
	if d.Tok != token.VAR {
		g.refuse(d, "a type in a function")
	}
	for _, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		if len(s.Values) == 0 {
			for _, n := range s.Names {
				if v := g.info.Defs[n]; n.Name != "_" {
					g.zero(v, n)
				}
			}
			continue
		}
		lhs := make([]ast.Expr, len(s.Names))
		for i, n := range s.Names {
			lhs[i] = n
		}
		g.tuple(lhs, s.Values, s)
	}
}

// zero declares a variable that is 0.
func (g *translator) zero(v types.Object, at ast.Node) {
	value := "0"
	switch b, ok := v.Type().Underlying().(*types.Basic); {
	case !ok:
		value = "{0}"
	case b.Info()&types.IsFloat != 0:
		value = "0.0"
	case b.Info()&types.IsBoolean != 0:
		value = "false"
	}
	g.out.put("%s = %s;", g.declareLocal(v, at), value)
	g.unread(v)
}

// declareLocal declares a local; a pointer is one to what is constant where nothing is
// written through it.
func (g *translator) declareLocal(v types.Object, at ast.Node) string {
	return g.parameter(v.Type(), g.names[v], g.flow.through[v], at)
}

// unread tells the compiler that a variable is not read on purpose.
func (g *translator) unread(v types.Object) {
	if !g.used[v] {
		g.out.put("(void)%s;", g.names[v])
	}
}

// assign is =, := or an operation with =.
func (g *translator) assign(s *ast.AssignStmt) {
	switch s.Tok {
	case token.ASSIGN, token.DEFINE:
		g.tuple(s.Lhs, s.Rhs, s)
	default:
		g.operate(s)
	}
}

// operate is x op= y.
func (g *translator) operate(s *ast.AssignStmt) {
	l, r := s.Lhs[0], s.Rhs[0]
	g.apart = g.flow.unordered(l, r)
	dst, src := g.expr(l), g.expr(r)
	g.apart = false
	g.update(l, s.Tok+token.ADD-token.ADD_ASSIGN, dst, src)
}

// update writes dst = dst op src: with op= where C's own operator does it.
func (g *translator) update(l ast.Expr, op token.Token, dst, src operand) {
	t := g.basic(l)
	if t.Info()&types.IsFloat != 0 {
		g.out.put("%s %s= %s;", dst.text, op, src.text)
		return
	}
	o := g.arithmetic(op, t, dst, src)
	if src.text == "1" && o.binds == bindsAdd {
		g.out.put("%s%s%s;", dst.in(bindsPostfix), op, op)
		return
	}
	if o.text == dst.in(fits[op].binds)+" "+op.String()+" "+src.in(fits[op].binds+1) && fits[op].helper != "" {
		g.out.put("%s %s= %s;", dst.text, op, src.text)
		return
	}
	if op == token.AND || op == token.OR || op == token.XOR {
		g.out.put("%s %s= %s;", dst.text, op, src.text)
		return
	}
	g.out.put("%s = %s;", dst.text, o.text)
}

// increase is ++ or --.
func (g *translator) increase(s *ast.IncDecStmt) {
	one := operand{"1", bindsPostfix, spanOfInt(1)}
	op := token.ADD
	if s.Tok == token.DEC {
		op = token.SUB
	}
	g.apart = g.flow.unordered(s.X)
	dst := g.expr(s.X)
	g.apart = false
	if g.basic(s.X).Info()&types.IsFloat != 0 {
		one.text = "1.0"
	}
	g.update(s.X, op, dst, one)
}

// tuple is an assignment or a declaration of one or several variables.
func (g *translator) tuple(lhs, rhs []ast.Expr, at ast.Node) {
	if len(lhs) > len(rhs) {
		g.spread(lhs, rhs[0], at)
		return
	}
	operands := append([]ast.Expr(nil), rhs...)
	for _, l := range lhs {
		operands = append(operands, indices(l)...)
	}
	g.apart = g.flow.unordered(operands...)
	targets := make([]string, len(lhs))
	for i, l := range lhs {
		if g.apart && !g.isNew(l) {
			targets[i] = g.expr(l).text // with calls in its indices before those of the right side
		}
	}
	values, spans := make([]string, len(rhs)), make([]span, len(rhs))
	for i, r := range rhs {
		o := g.value(r)
		if g.late(lhs[:i], r) && !g.isConst(r) { // an earlier assignment changes what it reads
			o.text = g.keep(r, o.text)
		}
		values[i], spans[i] = o.text, o.span
	}
	for i, l := range lhs {
		if i > 0 && !g.isNew(l) {
			targets[i] = g.targetOf(lhs[:i], l, targets[i])
		}
	}
	g.apart = false
	for i, l := range lhs {
		g.set(l, targets[i], rhs[i], operand{values[i], bindsComma, spans[i]})
	}
}

func (g *translator) isConst(x ast.Expr) bool { return g.info.Types[x].Value != nil }

// isNew says whether l is declared here, or nothing.
func (g *translator) isNew(l ast.Expr) bool {
	id, ok := l.(*ast.Ident)
	return ok && (id.Name == "_" || g.info.Defs[id] != nil)
}

// value is a right side; that of an array is what memmove copies.
func (g *translator) value(r ast.Expr) operand {
	if lit, ok := ast.Unparen(r).(*ast.CompositeLit); ok {
		return operand{g.initializer(lit, g.info.TypeOf(lit)), bindsComma, span{}}
	}
	return g.expr(r)
}

// late says whether one of the targets is read by x.
func (g *translator) late(targets []ast.Expr, x ast.Expr) bool {
	reads := g.flow.effectsOf(x).reads
	for _, l := range targets {
		if !g.isNew(l) && g.flow.at(l).meets(reads) {
			return true
		}
	}
	return false
}

// keep holds a value in a variable of its own.
func (g *translator) keep(x ast.Expr, text string) string {
	name := g.temporary("t")
	t := g.info.TypeOf(x)
	if _, literal := ast.Unparen(x).(*ast.CompositeLit); isArray(t) && !literal {
		g.out.put("%s;", g.declare(t, name, x))
		g.out.put("memcpy(%s, %s, sizeof %s);", name, text, name)
		return name
	}
	g.out.put("const %s = %s;", g.declare(t, name, x), text)
	return name
}

// targetOf is the place of an assignment whose indices an earlier target changes.
func (g *translator) targetOf(earlier []ast.Expr, l ast.Expr, text string) string {
	for _, x := range indices(l) {
		if g.late(earlier, x) {
			name := g.temporary("p")
			t := types.NewPointer(g.info.TypeOf(l))
			if text == "" {
				text = g.expr(l).text
			}
			if isArray(t.Elem()) {
				g.out.put("%s = %s;", g.declare(t, name, l), text)
				return name
			}
			g.out.put("%s = &%s;", g.declare(t, name, l), text)
			return "*" + name
		}
	}
	return text
}

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

// set writes one assignment or declaration.
func (g *translator) set(l ast.Expr, target string, r ast.Expr, o operand) {
	id, named := ast.Unparen(l).(*ast.Ident)
	if named && id.Name == "_" {
		g.out.put("(void)(%s);", o.text)
		return
	}
	_, literal := ast.Unparen(r).(*ast.CompositeLit)
	t := g.info.TypeOf(r)
	if literal && o.text[0] != '{' { // held in a variable
		literal = false
	}
	if named && g.info.Defs[id] != nil {
		v := g.info.Defs[id]
		if isArray(v.Type()) && !literal {
			g.out.put("%s;", g.declareLocal(v, id))
			g.out.put("memcpy(%s, %s, sizeof %s);", g.names[v], o.text, g.names[v])
		} else {
			g.out.put("%s = %s;", g.declareLocal(v, id), o.text)
		}
		if g.flow.changed[v] == 0 && o.span.lo != nil {
			g.spans[v] = o.span
		}
		g.unread(v)
		return
	}
	if target == "" {
		target = g.expr(l).text
	}
	switch {
	case isArray(t):
		text := o.text
		if literal {
			text = g.keep(r, o.text)
		}
		g.out.put("memmove(%s, %s, sizeof(%s));", target, text, g.declare(t, "", l))
	case literal:
		g.out.put("%s = (%s)%s;", target, g.declare(t, "", l), o.text)
	default:
		g.out.put("%s = %s;", target, o.text)
	}
}

// spread gives the results of one call to several variables.
func (g *translator) spread(lhs []ast.Expr, r ast.Expr, at ast.Node) {
	c, ok := ast.Unparen(r).(*ast.CallExpr)
	if !ok {
		g.refuse(r, "several values that are no call")
	}
	results := g.info.TypeOf(c).(*types.Tuple)
	name := g.temporary("r")
	g.out.put("const %s %s = %s;", g.resultType(results, c), name, g.several(c))
	used := false
	for i, l := range lhs {
		if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
			continue
		}
		used = true
		target := g.targetOf(lhs[:i], l, "")
		g.setResult(l, target, results.At(i).Type(), name+".r"+string(rune('0'+i)))
	}
	if !used {
		g.out.put("(void)%s;", name)
	}
}

func (g *translator) setResult(l ast.Expr, target string, t types.Type, text string) {
	if id, ok := l.(*ast.Ident); ok && g.info.Defs[id] != nil {
		v := g.info.Defs[id]
		g.out.put("%s = %s;", g.declareLocal(v, id), text)
		g.unread(v)
		return
	}
	if target == "" {
		target = g.expr(l).text
	}
	g.out.put("%s = %s;", target, text)
}
