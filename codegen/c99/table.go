package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// useTable writes a table of the package when it is first used.
func (g *translator) useTable(v *types.Var, at ast.Node) {
	if _, ok := g.tables[v]; ok {
		return
	}
	spec := g.values[v]
	i := slices.IndexFunc(spec.Names, func(n *ast.Ident) bool { return g.info.Defs[n] == v })
	g.tables[v] = nil
	names := g.noNames
	g.noNames = true
	w := lines{}
	if doc := g.docs[v]; doc != nil {
		w.comment(doc)
	}
	head := "static const " + g.declare(v.Type(), g.names[v], at) + " ="
	switch {
	case len(spec.Values) == 0:
		w.put("%s {0};", head)
	case len(spec.Values) != len(spec.Names):
		g.refuse(spec, "a table that is the result of a call")
	default:
		if lit, ok := ast.Unparen(spec.Values[i]).(*ast.CompositeLit); ok {
			w.put("%s {", head)
			g.entries(&w, lit)
			w.put("};")
		} else {
			w.put("%s %s;", head, g.text(spec.Values[i]))
		}
	}
	if spec.Comment != nil {
		w.append(commentText(spec.Comment.List[0].Text))
	}
	g.noNames = names
	g.tables[v] = w.text
}

// entries writes the elements of a literal, a line for each line of the text, with the
// comments that stand there.
func (g *translator) entries(w *lines, lit *ast.CompositeLit) {
	notes := g.notesIn(lit)
	w.indent++
	row, rowLine := "", 0
	flush := func() {
		if row == "" {
			return
		}
		w.put("%s", row)
		for len(notes) > 0 && g.lineOf(notes[0]) == rowLine {
			w.append(commentText(notes[0].Text))
			notes = notes[1:]
		}
		row = ""
	}
	above := func(n ast.Node) {
		for len(notes) > 0 && notes[0].Pos() < n.Pos() {
			flush()
			if len(notes) > 0 && notes[0].Pos() < n.Pos() {
				w.comment(&ast.CommentGroup{List: notes[:1]})
				notes = notes[1:]
			}
		}
	}
	if len(lit.Elts) == 0 {
		w.put("0")
	}
	for _, e := range lit.Elts {
		if g.lineOf(e) != rowLine {
			flush()
		}
		above(e)
		key, value := g.entryKey(lit, e)
		inner, ok := ast.Unparen(value).(*ast.CompositeLit)
		if ok && g.fset.Position(inner.Rbrace).Line != g.lineOf(inner) {
			flush()
			w.put("%s{", key)
			g.entries(w, inner)
			for len(notes) > 0 && notes[0].Pos() < inner.Rbrace {
				notes = notes[1:]
			}
			row, rowLine = "},", g.fset.Position(inner.Rbrace).Line
			flush()
			continue
		}
		if row != "" {
			row += " "
		}
		row, rowLine = row+key+g.entryValue(value)+",", g.fset.Position(e.End()).Line
	}
	flush()
	w.indent--
}

func (g *translator) lineOf(n ast.Node) int { return g.fset.Position(n.Pos()).Line }

// notesIn are the comments within a literal.
func (g *translator) notesIn(lit *ast.CompositeLit) (notes []*ast.Comment) {
	for _, f := range g.files {
		if lit.Pos() < f.FileStart || lit.Pos() >= f.FileEnd {
			continue
		}
		i, _ := slices.BinarySearchFunc(f.Comments, lit.Pos(), func(c *ast.CommentGroup, p token.Pos) int { return int(c.Pos() - p) })
		for ; i < len(f.Comments) && f.Comments[i].Pos() < lit.End(); i++ {
			notes = append(notes, f.Comments[i].List...)
		}
	}
	return notes
}

// entryKey splits an element of a literal into where it goes and what it is.
func (g *translator) entryKey(lit *ast.CompositeLit, e ast.Expr) (string, ast.Expr) {
	kv, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return "", e
	}
	if isStruct(g.info.TypeOf(lit)) {
		return "." + g.fieldName(g.info.Uses[kv.Key.(*ast.Ident)].(*types.Var)) + " = ", kv.Value
	}
	return "[" + g.text(kv.Key) + "] = ", kv.Value
}

func (g *translator) entryValue(x ast.Expr) string {
	if lit, ok := ast.Unparen(x).(*ast.CompositeLit); ok {
		return g.initializer(lit, g.info.TypeOf(lit))
	}
	if isArray(g.info.TypeOf(x)) {
		g.refuse(x, "an array in a literal that is none itself")
	}
	return g.text(x)
}

// initializer is a literal on one line.
func (g *translator) initializer(lit *ast.CompositeLit, t types.Type) string {
	if isPointer(t) {
		g.refuse(lit, "a pointer to a literal")
	}
	if len(lit.Elts) == 0 {
		return "{0}"
	}
	texts := make([]string, len(lit.Elts))
	for i, e := range lit.Elts {
		key, value := g.entryKey(lit, e)
		texts[i] = key + g.entryValue(value)
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// tableText is the text of the tables that are used.
func (g *translator) tableText() (text []string) {
	list := make([]types.Object, 0, len(g.tables))
	for v := range g.tables {
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b types.Object) int { return g.order[a] - g.order[b] })
	for _, v := range list {
		text = append(append(text, ""), g.tables[v]...)
	}
	return text
}
