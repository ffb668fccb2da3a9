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
	taken  map[string]bool // at file level

	// What the functions turn out to need.
	typeList   []cStruct
	public     bool // those of the kernel
	results    map[string]bool
	resultList []string
	helped     map[string]bool
	tables     map[types.Object][]string

	// Of the function at hand.
	fn     *types.Func
	out    lines
	locals map[string]bool
	spans  map[types.Object]span
	apart  bool // calls are done before the rest of their statement

	remarks []*ast.Comment // those that are still to be written of the file at hand
}

// entryNames are the methods of the kernel from which the tick is reached.
var entryNames = []string{"create", "reset", "step", "output", "drive", "driven", "own"}

// Body is a translated tick.
type Body struct {
	Tables int // bytes of the constant tables
	State  int // bytes of a kernel

	prefix  string
	structs []cStruct
	code    []string          // constants, tables and functions
	entry   map[string]string // the entry points' names
	inputs  int64
	outputs int64
}

// Translate makes C of the Go text of a tick, files by their names; prefix begins the names of
// all that is public.
func Translate(texts map[string][]byte, prefix string) (body *Body, err error) {
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

func newTranslation(t *tickText, prefix string) (*Body, error) {
	g := &translator{
		tickText: t, prefix: prefix, names: map[types.Object]string{}, taken: map[string]bool{},
		results: map[string]bool{}, helped: map[string]bool{},
		tables: map[types.Object][]string{}, spans: map[types.Object]span{},
	}
	kernel, ok := t.pkg.Scope().Lookup("Kernel").(*types.TypeName)
	if !ok {
		return nil, fmt.Errorf("c99: the text has no type Kernel")
	}
	g.kernel = kernel
	body := &Body{prefix: prefix, entry: map[string]string{}}
	var entries []*types.Func
	for _, name := range entryNames {
		o, _, _ := types.LookupFieldOrMethod(types.NewPointer(kernel.Type()), true, t.pkg, name)
		fn, ok := o.(*types.Func)
		if !ok || t.funcs[fn] == nil {
			return nil, fmt.Errorf("c99: the text has no method %s of Kernel", name)
		}
		entries = append(entries, fn)
	}

	step := entries[slices.Index(entryNames, "step")].Signature().Params()
	body.outputs, body.inputs = lengthOf(step.At(0).Type()), lengthOf(step.At(1).Type())
	g.flow = newFlow(t, entries)
	g.reserve()
	g.nameGlobals()
	for i, name := range entryNames {
		body.entry[name] = g.names[entries[i]]
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

// reserve keeps the names of the public functions.
func (g *translator) reserve() {
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

// functions translates what is reached, and puts before it what it needs.
func (g *translator) functions() []string {
	var protos, bodies []string
	for _, fn := range g.flow.reached {
		protos = append(protos, g.head(fn, false)+";")
		bodies = append(bodies, "")
		bodies = append(bodies, g.function1(fn)...)
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

// head is the head of a function.
func (g *translator) head(fn *types.Func, named bool) string {
	sig, at := fn.Signature(), g.funcs[fn]
	var params []string
	add := func(v *types.Var, name string) {
		if is[*types.Pointer](v.Type()) && g.flow.disjoint(fn, v) {
			if a, ok := pointee(v.Type()).Underlying().(*types.Array); !ok || !is[*types.Array](a.Elem()) {
				name = "restrict " + name
			}
		}

		params = append(params, strings.TrimSpace(g.parameter(v.Type(), name, g.flow.through[v], at)))
	}

	if r := sig.Recv(); r != nil {
		add(r, g.paramName(r, named))
	}
	for v := range sig.Params().Variables() {
		if is[*types.Array](v.Type()) {
			g.refuse(at, "parameter %s: an array that is handed over by value", v.Name())
		}
		add(v, g.paramName(v, named))
	}

	if len(params) == 0 {
		params = []string{"void"}
	}
	return "static " + g.resultType(sig.Results(), at) + " " + g.names[fn] + "(" + strings.Join(params, ", ") + ")"
}

// paramName is the name of a parameter; one without a name gets one.
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
	g.names[v] = g.temporary("unused")
	return g.names[v]
}

// function1 translates one function.
func (g *translator) function1(fn *types.Func) []string {
	d := g.funcs[fn]
	g.fn, g.out = fn, lines{}
	g.nameLocals(d)
	g.remarks = g.remarksIn(d)
	if d.Doc != nil {
		g.out.comment(d.Doc)
	}
	g.out.put("%s {", g.head(fn, true))
	g.out.indent++
	sig, used := fn.Signature(), g.usedIn(d)
	for _, v := range append([]*types.Var{sig.Recv()}, slices.Collect(sig.Params().Variables())...) {
		if v != nil && !used[v] {
			g.out.put("(void)%s;", g.names[v])
		}
	}

	for v := range sig.Results().Variables() {
		if v.Name() != "" {
			g.refuse(d, "a result with a name")
		}
	}

	g.statements(d.Body.List)
	g.before(d.Body.Rbrace)
	g.out.indent--
	g.out.put("}")
	return g.out.text
}

// usedIn are the parameters and locals that a function names.
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

// remarksIn are the comments in the body of a function.
func (g *translator) remarksIn(d *ast.FuncDecl) (list []*ast.Comment) {
	for _, f := range g.files {
		for _, group := range f.Comments {
			if d.Body.Pos() <= group.Pos() && group.Pos() < d.Body.End() {
				list = append(list, group.List...)
			}
		}
	}

	return list
}

// before writes the comments that stand before a place.
func (g *translator) before(pos token.Pos) {
	for len(g.remarks) > 0 && g.remarks[0].Pos() < pos {
		g.out.comment(&ast.CommentGroup{List: g.remarks[:1]})
		g.remarks = g.remarks[1:]
	}
}
