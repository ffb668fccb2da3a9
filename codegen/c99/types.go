package c99

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// cBasic are Go's scalars in C.
var cBasic = map[types.BasicKind]string{
	types.Bool: "bool", types.Float64: "double", types.Int: "int64_t", types.Uint: "uint64_t", types.Uintptr: "uint64_t",
	types.Int8: "int8_t", types.Int16: "int16_t", types.Int32: "int32_t", types.Int64: "int64_t",
	types.Uint8: "uint8_t", types.Uint16: "uint16_t", types.Uint32: "uint32_t", types.Uint64: "uint64_t",
	types.UntypedBool: "bool", types.UntypedFloat: "double", types.UntypedInt: "int64_t",
}

// declare writes the declaration of a name, or of a type where the name is "". An array
// without elements gets one, since C has none; a pointer to an array is one to its first
// element.
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
			if _, ok := a.Elem().Underlying().(*types.Array); ok {
				return g.declare(a.Elem(), "(*"+name+")", at)
			}
			return g.declare(a.Elem(), "*"+name, at)
		}
		return g.declare(u.Elem(), "*"+name, at)
	case *types.Struct:
		return join(g.structName(t, at), name)
	}
	g.refuse(at, "type %s is not in what is translated", t)
	return ""
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

// parameter declares a pointer or a scalar, const where nothing is written through it.
func (g *translator) parameter(t types.Type, name string, writes bool, at ast.Node) string {
	text := g.declare(t, name, at)
	if _, ok := t.Underlying().(*types.Pointer); ok && !writes {
		return "const " + text
	}
	return text
}

// structName is the name of a struct; it also notes that it is needed. One without a
// name gets a number.
func (g *translator) structName(t types.Type, at ast.Node) string {
	if n := namedOf(t); n != nil {
		if _, ok := g.structs[n]; !ok {
			g.refuse(at, "type %s is not in what is translated", t)
		}
		g.needStruct(n.Type(), g.names[n], at)
		return g.names[n]
	}
	for _, s := range g.typeList {
		if types.Identical(s.typ, t) {
			return s.name
		}
	}
	name := free(g.prefix+"_entry", g.taken)
	g.taken[name] = true
	g.needStruct(t, name, at)
	return name
}

// cStruct is a struct type of the C text.
type cStruct struct {
	typ    types.Type
	name   string
	body   []string
	public bool // part of the kernel
}

// needStruct writes a struct and, before it, those it holds.
func (g *translator) needStruct(t types.Type, name string, at ast.Node) {
	for _, s := range g.typeList {
		if s.name == name {
			return
		}
	}
	if g.open[name] {
		g.refuse(at, "type %s holds itself", t)
	}
	g.open[name] = true
	s := t.Underlying().(*types.Struct)
	w := lines{}
	spec := g.structs[namedOf(t)]
	if spec != nil {
		w.comment(g.docs[namedOf(t)])
	}
	w.put("typedef struct {")
	w.indent++
	fields := fieldsOf(spec)
	for i := range s.NumFields() {
		f := s.Field(i)
		if _, ok := f.Type().Underlying().(*types.Signature); ok {
			g.refuse(at, "a function in a struct of the tick")
		}
		ast := fields[f.Pos()]
		if ast != nil {
			w.comment(ast.Doc)
		}
		w.put("%s;", g.declare(f.Type(), g.fieldName(f), at))
		if ast != nil && ast.Comment != nil {
			w.append(commentText(ast.Comment.List[0].Text))
		}
	}
	if s.NumFields() == 0 {
		w.put("char nothing; // C has no empty struct")
	}
	w.indent--
	w.put("} %s;", name)
	g.typeList = append(g.typeList, cStruct{typ: t, name: name, body: w.text, public: g.public})
}

// fieldName is the name of a field of a struct.
func (g *translator) fieldName(f *types.Var) string { return cIdentifier(f.Name()) }

// fieldsOf lists the fields of a struct's text by their place.
func fieldsOf(spec *ast.TypeSpec) map[token.Pos]*ast.Field {
	fields := map[token.Pos]*ast.Field{}
	if spec == nil {
		return fields
	}
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return fields
	}
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			t := f.Type
			if star, ok := t.(*ast.StarExpr); ok {
				t = star.X
			}
			fields[t.Pos()] = f
		}
		for _, n := range f.Names {
			fields[n.Pos()] = f
		}
	}
	return fields
}

// mangle is a type as part of a name.
func (g *translator) mangle(t types.Type, at ast.Node) string {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return strings.TrimSuffix(cBasic[u.Kind()], "_t")
	case *types.Array:
		return fmt.Sprintf("%s_%d", g.mangle(u.Elem(), at), u.Len())
	}
	return strings.TrimPrefix(g.structName(t, at), g.prefix+"_")
}

// resultType is the C type of a function's results: void, the type, or a struct of
// them, the same for all functions with such results.
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
