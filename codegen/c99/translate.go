package c99

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"sort"
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
	open       map[string]bool // structs begun
	public     bool            // those of the kernel
	results    map[string]bool
	resultList []string
	helped     map[string]bool
	equals     []string
	constants  map[*types.Const]bool
	tables     map[types.Object][]string
	noNames    bool // an initialiser: C takes no named double there

	// Of the function at hand.
	fn      *types.Func
	out     lines
	locals  map[string]bool
	used    map[types.Object]bool // locals that are read
	spans   map[types.Object]span
	instead map[types.Object]string // elements of a range that stand for themselves
	exits   []*exit
	apart   bool // calls are done before the rest of their statement

	remarks []*ast.Comment // of the file at hand, with the next one
	next    int
	line    int // where the last statement ended
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
		switch r := recover().(type) {
		case nil:
		case refusal:
			body, err = nil, r
		default:
			panic(r)
		}
	}()
	return newTranslation(t, prefix)
}

func newTranslation(t *tickText, prefix string) (*Body, error) {
	g := &translator{
		tickText: t, prefix: prefix, names: map[types.Object]string{}, taken: map[string]bool{}, open: map[string]bool{}, results: map[string]bool{},
		helped: map[string]bool{}, constants: map[*types.Const]bool{}, tables: map[types.Object][]string{}, spans: map[types.Object]span{},
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
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if a, ok := p.Elem().Underlying().(*types.Array); ok {
			return a.Len()
		}
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
	code = append(code, g.equals...)
	code = append(code, g.constantText()...)
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
		if isPointer(v.Type()) && g.flow.disjoint(fn, v) {
			if a, ok := v.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Array); !ok || !isArray(a.Elem()) {
				name = "restrict " + name
			}
		}
		params = append(params, strings.TrimSpace(g.parameter(v.Type(), name, g.flow.through[v], at)))
	}
	if r := sig.Recv(); r != nil {
		add(r, g.paramName(r, named))
	}
	for v := range sig.Params().Variables() {
		if isArray(v.Type()) {
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
	g.fn, g.out, g.instead, g.exits = fn, lines{}, map[types.Object]string{}, nil
	g.nameLocals(d)
	g.used = g.readIn(d)
	g.remarksOf(d)
	if d.Doc != nil {
		g.out.comment(d.Doc)
	}
	g.out.put("%s {", g.head(fn, true))
	g.line = g.fset.Position(d.Body.Lbrace).Line
	g.behind(d.Body.Lbrace + 1)
	g.out.indent++
	sig := fn.Signature()
	for _, v := range append([]*types.Var{sig.Recv()}, slices.Collect(sig.Params().Variables())...) {
		if v != nil && !g.used[v] {
			g.out.put("(void)%s;", g.names[v])
		}
	}
	for v := range sig.Results().Variables() {
		if g.used[v] {
			g.zero(v, d)
		}
	}
	g.statements(d.Body.List)
	g.before(d.Body.Rbrace)
	g.out.indent--
	g.out.put("}")
	return g.out.text
}

// readIn are the locals of a function that it reads.
func (g *translator) readIn(d *ast.FuncDecl) map[types.Object]bool {
	used, skip := map[types.Object]bool{}, map[ast.Node]bool{}
	bare := false
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if n.Tok == token.DEFINE {
					continue
				}
				for x := l; ; {
					switch y := ast.Unparen(x).(type) {
					case *ast.Ident:
						skip[y] = true
					case *ast.IndexExpr:
						x = y.X
						if !isPointer(g.info.TypeOf(x)) {
							continue
						}
					case *ast.SelectorExpr:
						x = y.X
						if !isPointer(g.info.TypeOf(x)) {
							continue
						}
					}
					break
				}
			}
		case *ast.IncDecStmt:
			if id, ok := n.X.(*ast.Ident); ok {
				skip[id] = true
			}
		case *ast.ReturnStmt:
			bare = bare || len(n.Results) == 0
		case ast.Expr:
			if g.info.Types[n].Value != nil {
				return false
			}
			if id, ok := n.(*ast.Ident); ok && !skip[id] {
				used[g.info.Uses[id]] = true
			}
		}
		return true
	})
	named := false
	for v := range g.fn.Signature().Results().Variables() {
		named = named || used[v] || bare && v.Name() != ""
	}
	for v := range g.fn.Signature().Results().Variables() {
		if named && v.Name() != "" {
			used[v] = true
		}
	}
	g.assignedResults(d, used)
	return used
}

// assignedResults are results that are variables of the function, even if only written.
func (g *translator) assignedResults(d *ast.FuncDecl, used map[types.Object]bool) {
	for v := range g.fn.Signature().Results().Variables() {
		if v.Name() != "" && v.Name() != "_" && g.flow.changed[v] > 0 {
			used[v] = true
		}
	}
}

// remarksOf begins with the comments of a declaration.
func (g *translator) remarksOf(n ast.Node) {
	g.remarks, g.next = nil, 0
	for _, f := range g.files {
		if f.FileStart <= n.Pos() && n.Pos() < f.FileEnd {
			for _, group := range f.Comments {
				g.remarks = append(g.remarks, group.List...)
			}
		}
	}
	at := n.Pos()
	if d, ok := n.(*ast.FuncDecl); ok {
		at = d.Type.Func
	}
	g.next = sort.Search(len(g.remarks), func(i int) bool { return g.remarks[i].Pos() > at })
}

// before writes the comments that stand before a place, and the empty line.
func (g *translator) before(pos token.Pos) {
	for g.next < len(g.remarks) && g.remarks[g.next].Pos() < pos {
		c := g.remarks[g.next]
		g.next++
		text := commentText(c.Text)
		if text == "" {
			continue
		}
		if g.fset.Position(c.Pos()).Line > g.line+1 {
			g.out.blank()
		}
		g.out.comment(&ast.CommentGroup{List: []*ast.Comment{c}})
		g.line = g.fset.Position(c.End()).Line
	}
	if g.fset.Position(pos).Line > g.line+1 {
		g.out.blank()
	}
}

// behind adds the comment that ends the line of a place.
func (g *translator) behind(pos token.Pos) {
	g.line = g.fset.Position(pos).Line
	for g.next < len(g.remarks) && g.remarks[g.next].Pos() < pos+1 {
		g.next++ // within a statement: written with it, or lost in its rewriting
	}
	if g.next < len(g.remarks) && g.fset.Position(g.remarks[g.next].Pos()).Line == g.line {
		if text := commentText(g.remarks[g.next].Text); !strings.Contains(text, "\n") {
			g.out.append(text)
			g.next++
		}
	}
}

// useConst notes a constant that is written by its name.
func (g *translator) useConst(c *types.Const) { g.constants[c] = true }

// constantText declares the constants that are used.
func (g *translator) constantText() []string {
	list := make([]*types.Const, 0, len(g.constants))
	for c := range g.constants {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *types.Const) int { return g.order[a] - g.order[b] })
	w := lines{}
	if len(list) > 0 {
		w.text = []string{""}
	}
	for _, c := range list {
		if doc := g.docs[c]; doc != nil {
			w.comment(doc)
		}
		value := g.literal(g.values[c], c.Val(), c.Type())
		if b := c.Type().Underlying().(*types.Basic); b.Info()&types.IsFloat != 0 {
			w.put("static const double %s = %s;", g.names[c], value.text)
		} else {
			w.put("enum { %s = %s };", g.names[c], value.text)
		}
		if spec := g.values[c]; spec.Comment != nil {
			w.append(commentText(spec.Comment.List[0].Text))
		}
	}
	return w.text
}
