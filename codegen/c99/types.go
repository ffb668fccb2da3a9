package c99

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// cBasic gives the C type of each scalar type of Go.
var cBasic = map[types.BasicKind]string{
	types.Bool: "bool", types.Float64: "double", types.Int: "int64_t", types.Uint: "uint64_t", types.Uintptr: "uint64_t",
	types.Int8: "int8_t", types.Int32: "int32_t", types.Uint32: "uint32_t", types.Int64: "int64_t", types.Uint8: "uint8_t", types.Uint64: "uint64_t",
	types.UntypedBool: "bool", types.UntypedFloat: "double", types.UntypedInt: "int64_t",
}

// declare returns the declaration of a name, or the type alone if the name is "". An array of
// length 0 gets one element, since C has no empty arrays. A pointer to an array is a pointer to its
// first element.
func (g *translator) declare(t types.Type, name string, at ast.Node) string {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if c, ok := cBasic[u.Kind()]; ok {
			return join(c, name)
		}
	case *types.Array:
		return g.declare(u.Elem(), fmt.Sprintf("%s[%d]", name, max(1, u.Len())), at)
	case *types.Pointer:
		if a, ok := u.Elem().Underlying().(*types.Array); ok {
			if is[*types.Array](a.Elem()) {
				return g.declare(a.Elem(), "(*"+name+")", at)
			}
			return g.declare(a.Elem(), "*"+name, at)
		}

		return g.declare(u.Elem(), "*"+name, at)
	case *types.Struct:
		return join(g.structName(t, at), name)
	}

	g.refuse(at, "type %s", t)
	return ""
}

// is reports whether a type has a form, such as *types.Array.
func is[T types.Type](t types.Type) bool {
	_, ok := t.Underlying().(T)
	return ok
}

// pointee returns the target type of a pointer type, or t itself.
func pointee(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

func join(typ, name string) string {
	switch {
	case name == "":
		return typ
	case name[0] == '[':
		return typ + name
	}

	return typ + " " + name
}

// parameter returns the declaration of a pointer or a scalar. The target of a pointer is const if
// nothing is written through it.
func (g *translator) parameter(t types.Type, name string, writes bool, at ast.Node) string {
	text := g.declare(t, name, at)
	if is[*types.Pointer](t) && !writes {
		return "const " + text
	}
	return text
}

// structName returns the name of a struct and adds its declaration to the file.
func (g *translator) structName(t types.Type, at ast.Node) string {
	n := namedOf(t)
	if g.structs[n] == nil {
		g.refuse(at, "type %s", t)
	}
	g.needStruct(n, at)
	return g.names[n]
}

// cStruct is a struct type of the C text.
type cStruct struct {
	name   string
	body   []string
	public bool // the struct belongs to the header
}

// needStruct adds the declaration of a struct after those of the structs it contains.
func (g *translator) needStruct(n *types.TypeName, at ast.Node) {
	name := g.names[n]
	if slices.ContainsFunc(g.typeList, func(s cStruct) bool { return s.name == name }) {
		return
	}

	w := lines{}
	w.comment(g.docs[n])
	w.put("typedef struct {")
	w.indent++
	s, ok := g.structs[n].Type.(*ast.StructType)
	if !ok {
		g.refuse(at, "type %s, which is not a struct", n.Name())
	}
	for _, f := range s.Fields.List {
		w.comment(f.Doc)
		for _, id := range f.Names {
			v := g.info.Defs[id].(*types.Var)
			w.put("%s;", g.declare(v.Type(), g.fieldName(v), at))
		}

		if f.Comment != nil {
			w.append(commentText(f.Comment.List[0].Text))
		}
	}

	w.indent--
	w.put("} %s;", name)
	g.typeList = append(g.typeList, cStruct{name: name, body: w.text, public: g.public})
}

// fieldName returns the name of a struct's field.
func (g *translator) fieldName(f *types.Var) string { return cIdentifier(f.Name()) }

// mangle returns a type as a part of a name.
func (g *translator) mangle(t types.Type, at ast.Node) string {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return strings.TrimSuffix(cBasic[u.Kind()], "_t")
	case *types.Array:
		return fmt.Sprintf("%s_%d", g.mangle(u.Elem(), at), u.Len())
	}

	return strings.TrimPrefix(g.structName(t, at), g.prefix+"_")
}

// resultType returns the C type of a function's results: void, the type of one result, or a struct.
// Functions with the same list of result types share one struct.
func (g *translator) resultType(r *types.Tuple, at ast.Node) string {
	switch r.Len() {
	case 0:
		return "void"
	case 1:
		return g.declare(r.At(0).Type(), "", at)
	}

	name, body := "results", ""
	for i := range r.Len() {
		name += "_" + g.mangle(r.At(i).Type(), at)
		body += " " + g.declare(r.At(i).Type(), fmt.Sprintf("r%d", i), at) + ";"
	}

	if !g.results[name] {
		g.results[name] = true
		g.resultList = append(g.resultList, fmt.Sprintf("typedef struct {%s } %s;", body, name))
	}

	return name
}

// declareTable adds the declaration of a package variable at its first use.
func (g *translator) declareTable(v *types.Var, at ast.Node) {
	if _, ok := g.tables[v]; ok {
		return
	}
	spec := g.values[v]
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		g.refuse(spec, "variable that is not declared alone with its value")
	}

	w := lines{}
	head := "static const " + g.declare(v.Type(), g.names[v], at) + " ="
	if lit, ok := spec.Values[0].(*ast.CompositeLit); ok {
		w.put("%s {", head)
		g.entries(&w, lit)
		w.put("};")
	} else {
		w.put("%s %s;", head, g.text(spec.Values[0]))
	}

	g.tables[v] = w.text
}

// entries writes the elements of a literal, one line of C for each line of Go.
func (g *translator) entries(w *lines, lit *ast.CompositeLit) {
	if len(lit.Elts) == 0 {
		w.put("\t0")
		return
	}

	w.indent++
	row, rowLine := "", 0
	for _, e := range lit.Elts {
		if line := g.fset.Position(e.Pos()).Line; line != rowLine && row != "" {
			w.put("%s", row)
			row = ""
		}

		if row != "" {
			row += " "
		}
		row, rowLine = row+g.entry(e)+",", g.fset.Position(e.End()).Line
	}

	w.put("%s", row)
	w.indent--
}

// entry returns the text of a literal's element.
func (g *translator) entry(e ast.Expr) string {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return g.text(e)
	}
	if len(lit.Elts) == 0 {
		return "{0}"
	}

	texts := make([]string, len(lit.Elts))
	for i, e := range lit.Elts {
		texts[i] = g.entry(e)
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// tableText returns the declarations of the tables in use.
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
