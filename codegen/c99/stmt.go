package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// statements translates a list of statements with the comments between them.
func (g *translator) statements(list []ast.Stmt) {
	for _, s := range list {
		g.before(s.Pos())
		g.statement(s, "")
		g.behind(s.End())
	}
}

// block translates a block between its braces, whose opening one is written.
func (g *translator) block(b *ast.BlockStmt) {
	g.behind(b.Lbrace + 1)
	g.out.indent++
	g.statements(b.List)
	g.before(b.Rbrace)
	g.out.indent--
}

// statement translates one statement; label is what stands before it.
func (g *translator) statement(s ast.Stmt, label string) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		g.assign(s)
	case *ast.IncDecStmt:
		g.increase(s)
	case *ast.DeclStmt:
		g.declaration(s.Decl.(*ast.GenDecl))
	case *ast.ExprStmt:
		c, ok := ast.Unparen(s.X).(*ast.CallExpr)
		if !ok || g.flow.callee(c) == nil {
			g.refuse(s, "a statement that is no call of the tick")
		}
		g.apart = g.flow.unordered(c.Args...)
		text := g.callText(c, g.flow.callee(c))
		g.apart = false
		if g.flow.callee(c).Signature().Results().Len() > 0 {
			text = "(void)" + text
		}
		g.out.put("%s;", text)
	case *ast.ReturnStmt:
		g.giveBack(s)
	case *ast.IfStmt:
		g.scoped(s.Init, func() { g.chain(g.branches(s)) })
	case *ast.ForStmt:
		g.loop(s, label)
	case *ast.RangeStmt:
		g.rangeLoop(s, label)
	case *ast.SwitchStmt:
		g.scoped(s.Init, func() { g.choose(s, label) })
	case *ast.BranchStmt:
		g.branch(s)
	case *ast.LabeledStmt:
		g.statement(s.Stmt, s.Label.Name)
	case *ast.BlockStmt:
		g.out.put("{")
		g.block(s)
		g.out.put("}")
	case *ast.EmptyStmt:
	default:
		g.refuse(s, "a statement that is not in what is translated")
	}
}

// scoped puts what has an initialisation into a block of its own.
func (g *translator) scoped(init ast.Stmt, body func()) {
	if init == nil {
		body()
		return
	}
	g.out.put("{")
	g.out.indent++
	g.statement(init, "")
	body()
	g.out.indent--
	g.out.put("}")
}

// ordered is the text of an expression; its calls are done before where their order
// matters.
func (g *translator) ordered(x ast.Expr) operand {
	g.apart = g.flow.unordered(x)
	defer func() { g.apart = false }()
	return g.expr(x)
}

// giveBack is a return: several results are a struct.
func (g *translator) giveBack(s *ast.ReturnStmt) {
	r := g.fn.Signature().Results()
	if r.Len() == 0 {
		g.out.put("return;")
		return
	}
	if len(s.Results) == 1 {
		if c, ok := ast.Unparen(s.Results[0]).(*ast.CallExpr); ok && r.Len() > 1 {
			g.out.put("return %s;", g.several(c))
			return
		}
		g.out.put("return %s;", g.ordered(s.Results[0]).text)
		return
	}
	g.apart = g.flow.unordered(s.Results...)
	var texts []string
	for _, x := range s.Results {
		texts = append(texts, g.text(x))
	}
	g.apart = false
	if len(s.Results) == 0 { // the results are variables
		for v := range r.Variables() {
			texts = append(texts, g.names[v])
		}
	}
	if r.Len() == 1 {
		g.out.put("return %s;", texts[0])
		return
	}
	g.out.put("return (%s){%s};", g.resultType(r, s), strings.Join(texts, ", "))
}

// several is a call with several results.
func (g *translator) several(c *ast.CallExpr) string {
	g.apart = g.flow.unordered(c.Args...)
	defer func() { g.apart = false }()
	if fn := g.flow.callee(c); fn != nil {
		return g.callText(c, fn)
	}
	return g.call(c).text
}

// arm is one case of a chain of conditions; without any it is the rest.
type arm struct {
	tag   string // what the conditions are compared with; "" for none
	conds []ast.Expr
	init  ast.Stmt
	body  func()
}

// branches are the arms of an if.
func (g *translator) branches(s *ast.IfStmt) []arm {
	list := []arm{{conds: []ast.Expr{s.Cond}, body: func() { g.block(s.Body) }}}
	switch e := s.Else.(type) {
	case *ast.IfStmt:
		rest := g.branches(e)
		rest[0].init = e.Init
		return append(list, rest...)
	case *ast.BlockStmt:
		return append(list, arm{body: func() { g.block(e) }})
	}
	return list
}

// chain writes if, else if and else. An arm that has to do something before its condition
// stands in the else of the one before.
func (g *translator) chain(arms []arm) {
	deep, open := 0, false
	for _, a := range arms {
		if len(a.conds) == 0 && a.init == nil {
			if open {
				g.out.put("} else {")
			} else {
				g.out.put("{")
			}
			a.body()
			open = true
			continue
		}
		if open && (a.init != nil || g.flow.unordered(a.conds...)) {
			g.out.put("} else {")
			g.out.indent++
			deep, open = deep+1, false
		}
		if a.init != nil {
			g.statement(a.init, "")
		}
		cond := g.condition(a)
		if open {
			g.out.put("} else if (%s) {", cond)
		} else {
			g.out.put("if (%s) {", cond)
		}
		a.body()
		open = true
	}
	if open {
		g.out.put("}")
	}
	for range deep {
		g.out.indent--
		g.out.put("}")
	}
}

// condition is any of an arm's conditions.
func (g *translator) condition(a arm) string {
	g.apart = g.flow.unordered(a.conds...)
	defer func() { g.apart = false }()
	var texts []string
	for _, x := range a.conds {
		o := g.expr(x)
		if a.tag != "" {
			o = operand{a.tag + " == " + o.in(bindsShift), bindsEqual, span{}}
		}
		if len(a.conds) == 1 {
			return o.text
		}
		texts = append(texts, o.in(bindsBitOr))
	}
	return strings.Join(texts, " || ")
}

// exit is a loop or a switch that break or continue leaves.
type exit struct {
	label         string // in Go
	loop          bool
	inC           bool // a loop or switch of C, which its break leaves
	end, next     string
	toEnd, toNext bool // the labels are used
	late          bool // continue has to go to a label: what follows is not in the loop's head
}

// enter begins a loop or switch, leave ends it with the label behind it if it is used.
func (g *translator) enter(e exit) *exit {
	stem := e.label
	if stem == "" {
		stem = "out"
	}
	e.end, e.next = g.temporary(cIdentifier(stem)+"_end"), g.temporary(cIdentifier(stem)+"_next")
	g.exits = append(g.exits, &e)
	return &e
}

func (g *translator) leave() {
	e := g.exits[len(g.exits)-1]
	g.exits = g.exits[:len(g.exits)-1]
	if e.toEnd {
		g.out.put("%s: ;", e.end)
	} else {
		delete(g.locals, e.end)
	}
	if !e.toNext {
		delete(g.locals, e.next)
	}
}

// branch is break or continue: C's own where it means the same, otherwise a goto.
func (g *translator) branch(s *ast.BranchStmt) {
	if s.Tok != token.BREAK && s.Tok != token.CONTINUE {
		g.refuse(s, "%s", s.Tok)
	}
	plain := true
	for i := len(g.exits) - 1; i >= 0; i-- {
		e := g.exits[i]
		wanted := e.label != "" && s.Label != nil && s.Label.Name == e.label || s.Label == nil && (s.Tok == token.BREAK || e.loop)
		switch {
		case wanted && s.Tok == token.BREAK && plain && e.inC:
			g.out.put("break;")
		case wanted && s.Tok == token.BREAK:
			e.toEnd = true
			g.out.put("goto %s;", e.end)
		case wanted && plain && !e.late:
			g.out.put("continue;")
		case wanted:
			e.toNext = true
			g.out.put("goto %s;", e.next)
		}
		if wanted {
			return
		}
		if e.inC && (s.Tok == token.BREAK || e.loop) {
			plain = false
		}
	}
	g.refuse(s, "%s out of nothing", s.Tok)
}

// choose is a switch: C's own over whole constants, otherwise a chain of conditions.
func (g *translator) choose(s *ast.SwitchStmt, label string) {
	if s.Tag != nil && g.constantCases(s) {
		g.chooseConstant(s, label)
		return
	}
	tag := ""
	if s.Tag != nil {
		o := g.ordered(s.Tag)
		tag = o.text
		if id, ok := ast.Unparen(s.Tag).(*ast.Ident); !ok || g.flow.changed[g.info.ObjectOf(id)] > 0 {
			tag = g.temporary("tag")
			g.out.put("const %s = %s;", g.declare(g.info.TypeOf(s.Tag), tag, s), o.text)
		}
	}
	g.enter(exit{label: label})
	var arms []arm
	rest := -1
	for _, c := range s.Body.List {
		c := c.(*ast.CaseClause)
		if c.List == nil {
			rest = len(arms)
		}
		arms = append(arms, arm{tag: tag, conds: c.List, body: func() { g.clause(c) }})
	}
	if rest >= 0 { // it is the last of the chain, wherever it stands
		other := arms[rest]
		arms = append(append(arms[:rest:rest], arms[rest+1:]...), other)
	}
	g.chain(arms)
	g.leave()
}

func (g *translator) clause(c *ast.CaseClause) {
	g.behind(c.Colon + 1)
	g.out.indent++
	g.statements(c.Body)
	g.out.indent--
}

func (g *translator) constantCases(s *ast.SwitchStmt) bool {
	if b, ok := g.info.TypeOf(s.Tag).Underlying().(*types.Basic); !ok || b.Info()&types.IsInteger == 0 {
		return false
	}
	for _, c := range s.Body.List {
		for _, x := range c.(*ast.CaseClause).List {
			if g.info.Types[x].Value == nil {
				return false
			}
		}
	}
	return true
}

func (g *translator) chooseConstant(s *ast.SwitchStmt, label string) {
	g.out.put("switch (%s) {", g.ordered(s.Tag).text)
	g.behind(s.Body.Lbrace + 1)
	g.enter(exit{label: label, inC: true})
	for _, c := range s.Body.List {
		c := c.(*ast.CaseClause)
		g.before(c.Pos())
		var cases []string
		for _, x := range c.List {
			cases = append(cases, "case "+g.text(x)+":")
		}
		if c.List == nil {
			cases = append(cases, "default:")
		}
		g.out.put("%s {", strings.Join(cases, " "))
		g.clause(c)
		if n := len(c.Body); n == 0 || !leaves(c.Body[n-1]) {
			g.out.put("\tbreak;")
		}
		g.out.put("}")
	}
	g.before(s.Body.Rbrace)
	g.out.put("}")
	g.leave()
}

// leaves says whether a statement goes elsewhere for certain.
func leaves(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}
