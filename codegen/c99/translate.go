package c99

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// translator translates the functions of a tick to C, statement by statement.
type translator struct {
	*tickText
	flow   *flow
	prefix string
	kernel *types.TypeName
	names  map[types.Object]string
	taken  map[string]bool // names in use at file level

	// Declarations that the functions need.
	typeList    []cStruct
	public      bool // structs that are added now belong to the header
	results     map[string]bool
	resultList  []string
	usedHelpers map[string]bool
	tables      map[types.Object][]string

	// State of the function being translated.
	fn         *types.Func
	out        lines
	locals     map[string]bool
	intervals  map[types.Object]interval
	hoistCalls bool           // calls are evaluated before the rest of their statement
	ends       []string       // labels behind the blocks around the present statement
	comments   []*ast.Comment // comments of the function that are not written yet
}

// entryNames are the entry points of a tick: methods of Kernel.
var entryNames = []string{"create", "reset", "step", "output", "drive", "driven", "own", changeEntry}

// changeEntry is the entry point that only kernels have whose commands change inside of a step.
const changeEntry = "change"

// Translation is a tick in C.
type Translation struct {
	Tables int // size of the text of the constant tables, bytes
	State  int // size of a kernel, bytes

	prefix      string
	structs     []cStruct
	code        []string          // lines of helpers, tables and functions
	entryPoints map[string]string // names in C, by entry name
	inputs      int64             // length of u
	outputs     int64             // length of y
}

// Translate translates the Go files of a tick, given by name, to C. Public names in C begin with
// prefix. Go text that the translator does not support is an error with its position.
func Translate(texts map[string][]byte, prefix string) (body *Translation, err error) {
	t, err := loadTick(texts)
	if err != nil {
		return nil, err
	}
	defer func() {
		r := recover()
		if why, ok := r.(refusal); ok {
			body, err = nil, why
		} else if r != nil {
			panic(r)
		}
	}()

	return newTranslation(t, prefix)
}

func newTranslation(t *tickText, prefix string) (*Translation, error) {
	g := &translator{
		tickText: t, prefix: prefix, names: map[types.Object]string{}, taken: map[string]bool{},
		results: map[string]bool{}, usedHelpers: map[string]bool{},
		tables: map[types.Object][]string{}, intervals: map[types.Object]interval{},
	}
	kernel, ok := t.pkg.Scope().Lookup("Kernel").(*types.TypeName)
	if !ok {
		return nil, fmt.Errorf("c99: the Go text has no type Kernel")
	}
	g.kernel = kernel
	body := &Translation{prefix: prefix, entryPoints: map[string]string{}}
	var entries []*types.Func
	var present []string
	for _, name := range entryNames {
		o, _, _ := types.LookupFieldOrMethod(types.NewPointer(kernel.Type()), true, t.pkg, name)
		fn, ok := o.(*types.Func)
		if name == changeEntry && !ok {
			continue
		}
		if !ok || t.funcs[fn] == nil {
			return nil, fmt.Errorf("c99: the Go text has no method %s of Kernel", name)
		}
		entries, present = append(entries, fn), append(present, name)
	}

	step := entries[slices.Index(entryNames, "step")].Signature().Params()
	body.outputs, body.inputs = lengthOf(step.At(0).Type()), lengthOf(step.At(1).Type())
	g.flow = newFlow(t, entries)
	g.reserveNames()
	g.nameGlobals()
	for i, name := range present {
		body.entryPoints[name] = g.names[entries[i]]
	}
	g.public = true
	g.structName(kernel.Type(), t.structs[kernel])
	g.public = false
	body.code = g.functions()
	body.structs = g.typeList
	body.State = int(types.SizesFor("gc", "amd64").Sizeof(kernel.Type()))
	for _, text := range g.tables {
		body.Tables += len(strings.Join(text, "\n"))
	}
	return body, nil
}

// reserveNames reserves the names of the public functions and tables.
func (g *translator) reserveNames() {
	for _, n := range append([]string{"kernel", "input_names", "input_units", "output_names", "output_units", "input_start"}, entryNames...) {
		g.taken[g.prefix+"_"+n] = true
	}
	delete(g.taken, g.prefix+"_kernel")
}

func lengthOf(t types.Type) int64 {
	if a, ok := pointee(t).Underlying().(*types.Array); ok {
		return a.Len()
	}
	return 0
}

// functions returns the translated functions, after the declarations that they need.
func (g *translator) functions() []string {
	var protos, bodies []string
	for _, fn := range g.flow.reached {
		protos = append(protos, g.prototype(fn, false)+";")
		bodies = append(bodies, "")
		bodies = append(bodies, g.translateFunc(fn)...)
	}

	code := append([]string{}, g.resultList...)
	code = append(code, g.helperText()...)
	code = append(code, g.tableText()...)
	code = append(code, "")
	w := lines{}
	for _, p := range protos {
		w.put("%s", p)
	}
	return append(append(code, w.text...), bodies...)
}

// prototype returns the declaration of a function without its semicolon. With named, every
// parameter has a name.
func (g *translator) prototype(fn *types.Func, named bool) string {
	sig, at := fn.Signature(), g.funcs[fn]
	var params []string
	add := func(v *types.Var, name string) {
		if is[*types.Pointer](v.Type()) && g.flow.disjoint(fn, v) {
			if a, ok := pointee(v.Type()).Underlying().(*types.Array); !ok || !is[*types.Array](a.Elem()) {
				name = "restrict " + name
			}
		}

		params = append(params, strings.TrimSpace(g.parameter(v.Type(), name, g.flow.writtenThrough[v], at)))
	}

	if r := sig.Recv(); r != nil {
		add(r, g.paramName(r, named))
	}
	for v := range sig.Params().Variables() {
		if is[*types.Array](v.Type()) {
			g.refuse(at, "array parameter %s passed by value", v.Name())
		}
		add(v, g.paramName(v, named))
	}

	if len(params) == 0 {
		params = []string{"void"}
	}
	return "static " + g.resultType(sig.Results(), at) + " " + g.names[fn] + "(" + strings.Join(params, ", ") + ")"
}

// paramName returns the name of a parameter. With named, a parameter without a name gets one.
func (g *translator) paramName(v *types.Var, named bool) string {
	if !named {
		if v.Name() == "" || v.Name() == "_" {
			return ""
		}
		return cIdentifier(v.Name())
	}

	if name, ok := g.names[v]; ok && v.Name() != "_" {
		return name
	}
	g.names[v] = g.newLocal("unused")
	return g.names[v]
}

// translateFunc returns the lines of one function.
func (g *translator) translateFunc(fn *types.Func) []string {
	d := g.funcs[fn]
	g.fn, g.out = fn, lines{}
	g.nameLocals(d)
	g.comments = g.commentsIn(d)
	if d.Doc != nil {
		g.out.comment(d.Doc)
	}
	g.out.put("%s {", g.prototype(fn, true))
	g.out.indent++
	sig, used := fn.Signature(), g.usedIn(d)
	for _, v := range append([]*types.Var{sig.Recv()}, slices.Collect(sig.Params().Variables())...) {
		if v != nil && !used[v] {
			g.out.put("(void)%s;", g.names[v])
		}
	}

	for v := range sig.Results().Variables() {
		if v.Name() != "" {
			g.refuse(d, "named result")
		}
	}

	g.statements(d.Body.List)
	g.commentsBefore(d.Body.Rbrace)
	g.out.indent--
	g.out.put("}")
	return g.out.text
}

// usedIn returns the objects that a function uses.
func (g *translator) usedIn(d *ast.FuncDecl) map[types.Object]bool {
	used := map[types.Object]bool{}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			used[g.info.Uses[id]] = true
		}
		return true
	})
	return used
}

// commentsIn returns the comments in the body of a function.
func (g *translator) commentsIn(d *ast.FuncDecl) (list []*ast.Comment) {
	for _, f := range g.files {
		for _, group := range f.Comments {
			if d.Body.Pos() <= group.Pos() && group.Pos() < d.Body.End() {
				list = append(list, group.List...)
			}
		}
	}

	return list
}

// commentsBefore writes the comments before a position.
func (g *translator) commentsBefore(pos token.Pos) {
	for len(g.comments) > 0 && g.comments[0].Pos() < pos {
		g.out.comment(&ast.CommentGroup{List: g.comments[:1]})
		g.comments = g.comments[1:]
	}
}
