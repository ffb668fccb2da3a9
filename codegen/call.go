package codegen

import (
	"go/ast"
	"go/types"
	"math"
	"regexp"
	"runtime"
	"strings"
)

var callName = regexp.MustCompile(`([\pL_][\pL\pN_.]*)\(`)

// silent are the names of calls without an effect.
var silent = map[string]bool{
	"float64": true, "int": true, "int64": true, "uint64": true, "uint": true, "int8": true, "int32": true, "uint8": true, "uint32": true,
	"min": true, "max": true, "math.Abs": true, "math.Sqrt": true, "math.Floor": true, "math.Trunc": true, "math.Copysign": true, "math.Inf": true, "math.NaN": true,
	"math.Float64bits": true, "math.Float64frombits": true, "math.IsNaN": true, "math.IsInf": true,
	"trailingZeros": true, "leadingZeros": true, "onesCount": true,
}

// call is what a call gives.
func (f *frame) call(e *ast.CallExpr) []*value {
	wanted := f.wanted
	f.wanted = nil
	discard := f.discard == e
	if tv := f.info.Types[e.Fun]; tv.IsType() {
		return []*value{f.converted(f.eval(e.Args[0]), tv.Type)}
	}
	switch fun := e.Fun.(type) {
	case *ast.Ident:
		switch obj := f.info.Uses[fun].(type) {
		case *types.Builtin:
			return f.builtin(e, fun.Name)
		case *types.Func:
			return f.invoke(e, f.funcs[obj], nil, f.args(e.Args), callHow{wanted: wanted, discard: discard})
		case *types.Var:
			c := f.eval(fun)
			return f.enclosed(e, c)
		}
	case *ast.SelectorExpr:
		sel := f.info.Selections[fun]
		if sel == nil {
			return f.library(e, fun.X.(*ast.Ident).Name+"."+fun.Sel.Name)
		}
		if sel.Kind() == types.MethodVal {
			path := sel.Index()
			recv := f.through(fun, f.receiver(fun.X), path[:len(path)-1])
			return f.invoke(e, f.funcs[sel.Obj()], recv, f.args(e.Args), callHow{wanted: wanted, discard: discard})
		}
		at := f.selected(fun).at
		name := runtime.FuncForPC(at.one.Pointer()).Name()
		d := f.program.named[name[strings.LastIndex(name, ".")+1:]]
		args := f.args(e.Args)
		return f.invoke(e, d, args[0], args[1:], callHow{jump: true, wanted: wanted, discard: discard})
	}
	f.fail(e, "call of %T", e.Fun)
	return nil
}

// receiver is what a method is called on: a place rather than what is there.
func (f *frame) receiver(x ast.Expr) *value {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if f.info.Selections[x] != nil {
			return f.selected(x)
		}
	case *ast.IndexExpr:
		return f.elementOf(x)
	case *ast.ParenExpr:
		return f.receiver(x.X)
	}
	return f.eval(x)
}

func (f *frame) args(list []ast.Expr) (out []*value) {
	for _, e := range list {
		out = append(out, f.eval(e))
	}
	return out
}

// converted is v as a t.
func (f *frame) converted(v *value, t types.Type) *value {
	b, ok := t.Underlying().(*types.Basic)
	if !ok || v.kind != scalar {
		return v
	}
	switch c := v.con.(type) {
	case float64:
		if b.Info()&types.IsFloat != 0 {
			return constantValue(c, t)
		}
		if b.Info()&types.IsUnsigned != 0 {
			return constantValue(wrapInt(uint64(c), t), t)
		}
		return constantValue(wrapInt(int64(c), t), t)
	case int64, uint64:
		n, _ := v.integer()
		if b.Info()&types.IsFloat != 0 {
			if u, ok := c.(uint64); ok {
				return constantValue(float64(u), t)
			}
			return constantValue(float64(n), t)
		}
		if b.Info()&types.IsUnsigned != 0 {
			return constantValue(wrapInt(uint64(n), t), t)
		}
		return constantValue(wrapInt(n, t), t)
	case nil:
		if goType(v.typ) == goType(t) && !isFloat(t) {
			w := *v
			w.typ = t
			return &w
		}
		out := dynamic(goType(t)+"("+v.text+")", operand, t)
		out.plus = v.plus
		if !isFloat(v.typ) && isFloat(t) {
			out.plus = true
		}
		return out
	}
	return v
}

func (f *frame) builtin(e *ast.CallExpr, name string) []*value {
	switch name {
	case "len", "cap":
		return []*value{f.lengthOf(e, f.eval(e.Args[0]))}
	case "min", "max":
		out := f.eval(e.Args[0])
		for _, a := range e.Args[1:] {
			out = extreme(name, out, f.eval(a))
		}
		return []*value{out}
	case "copy":
		f.copyTo(e, f.eval(e.Args[0]), f.eval(e.Args[1]))
	case "clear":
		f.clear(e, f.eval(e.Args[0]))
	case "panic":
		f.fail(e, "a tick that panics")
	default:
		f.fail(e, "%s is not part of a tick", name)
	}
	return nil
}

// extreme is the builtin min or max of two.
func extreme(name string, a, b *value) *value {
	typ := a.typ
	if basic := typ.Underlying().(*types.Basic); basic.Info()&types.IsUntyped != 0 {
		typ = b.typ
	}
	if a.con != nil && b.con != nil {
		switch x := a.con.(type) {
		case float64:
			if name == "min" {
				return constantValue(min(x, b.con.(float64)), typ)
			}
			return constantValue(max(x, b.con.(float64)), typ)
		default:
			x1, _ := a.integer()
			y1, _ := b.integer()
			if name == "min" {
				return constantValue(wrapInt(min(x1, y1), typ), typ)
			}
			return constantValue(wrapInt(max(x1, y1), typ), typ)
		}
	}
	out := dynamic(name+"("+a.text+", "+b.text+")", operand, typ)
	out.plus = name == "max" && (a.plus || b.plus) || a.plus && b.plus
	return out
}

// outright is up to how many elements a copy is written out.
const outright = 24

func (f *frame) copyTo(e ast.Node, dst, src *value) {
	n := extreme("min", dst.len, src.len)
	if goType(n.typ) == "int" && dst.len.key() == src.len.key() {
		n = dst.len
	}
	f.eachTo(e, dst, n, func(i *value) *value { return f.load(f.nth(nil, src, i)) })
}

func (f *frame) clear(e ast.Node, dst *value) {
	zero := zeroOf(dst.typ.Underlying().(*types.Slice).Elem())
	f.eachTo(e, dst, dst.len, func(*value) *value { return zero })
}

// eachTo sets the first n elements of dst.
func (f *frame) eachTo(e ast.Node, dst, n *value, from func(i *value) *value) {
	if count, ok := n.integer(); ok && count <= outright {
		for i := range count {
			i := wholeNumber(int(i))
			f.store(e, f.nth(nil, dst, i).at, from(i))
		}
		return
	}
	i := dynamic(f.unique("i"), operand, types.Typ[types.Int])
	i.stable = true
	if count, ok := n.integer(); ok {
		i.ranged, i.hi = true, count-1
	}
	body := f.block(func() { f.store(e, f.nth(nil, dst, i).at, from(i)) })
	if len(body) > 0 {
		f.emit(&stmt{kind: loop, names: []string{i.text}, right: n.text, body: body})
	}
}

// library is a call of package math or bits.
func (f *frame) library(e *ast.CallExpr, name string) []*value {
	args := f.args(e.Args)
	if known := knownLibrary(name, args); known != nil {
		return []*value{known}
	}
	typ := f.info.TypeOf(e)
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
	}
	list := strings.Join(texts, ", ")
	if helper := bitHelpers[name]; helper != "" {
		f.helper[helper] = true
		if helper == "trailingZeros" || helper == "leadingZeros" {
			f.helper["onesCount"] = true
		}
		name = helper
	}
	if tup, ok := typ.(*types.Tuple); ok {
		return f.several(name+"("+list+")", tup, nil)
	}
	out := dynamic(name+"("+list+")", operand, typ)
	out.plus = name == "math.Abs"
	return []*value{out}
}

// several binds the results of a call to variables.
func (f *frame) several(call string, tup *types.Tuple, wanted []ast.Expr) (out []*value) {
	st := &stmt{kind: declare, right: call, pure: f.pure(call)}
	for i := range tup.Len() {
		name := tup.At(i).Name()
		if i < len(wanted) {
			if id, ok := wanted[i].(*ast.Ident); ok && id.Name != "_" {
				name = id.Name
			}
		}
		if name == "" || name == "_" {
			name = "got"
		}
		name = f.unique(name)
		st.names = append(st.names, name)
		v := dynamic(name, operand, tup.At(i).Type())
		v.stable = true
		out = append(out, v)
	}
	f.emit(st)
	return out
}

var bitHelpers = map[string]string{
	"bits.TrailingZeros64": "trailingZeros", "bits.LeadingZeros64": "leadingZeros", "bits.OnesCount64": "onesCount",
	"bits.Mul64": "mul64", "bits.Add64": "add64", "bits.Sub64": "sub64",
}

// knownLibrary is the value of a call where its arguments are known.
func knownLibrary(name string, args []*value) *value {
	var x []float64
	for _, a := range args {
		switch c := a.con.(type) {
		case float64:
			x = append(x, c)
		case int64:
			x = append(x, float64(c))
		default:
			return nil
		}
	}
	float := func(v float64) *value { return constantValue(v, types.Typ[types.Float64]) }
	switch name {
	case "math.Abs":
		return float(math.Abs(x[0]))
	case "math.Sqrt":
		return float(math.Sqrt(x[0]))
	case "math.Floor":
		return float(math.Floor(x[0]))
	case "math.Copysign":
		return float(math.Copysign(x[0], x[1]))
	case "math.Inf":
		return float(math.Inf(int(x[0])))
	case "math.NaN":
		return float(math.NaN())
	}
	return nil
}

// enclosed is a call of a function that is written down in another.
func (f *frame) enclosed(e *ast.CallExpr, c *value) []*value {
	i := 0
	for _, p := range c.lit.Type.Params.List {
		for _, n := range p.Names {
			f.bind(f.info.Defs[n], f.steady(f.eval(e.Args[i]), n.Name), true)
			i++
		}
	}
	ret, ok := c.lit.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		f.fail(e, "a function in a function is more than an expression")
	}
	return []*value{f.eval(ret.Results[0])}
}

// callHow is how a call is made and what becomes of its results.
type callHow struct {
	jump    bool // through joint
	wanted  []ast.Expr
	discard bool
}

// invoke calls a function of the source: in place, or as a function specialised to what is
// known of its arguments.
func (f *frame) invoke(e *ast.CallExpr, d *ast.FuncDecl, recv *value, args []*value, how callHow) []*value {
	if d == nil || d.Body == nil {
		f.fail(e, "%s is not in the source", types.ExprString(e.Fun))
	}
	switch f.inPlace(d, recv, how) {
	case always:
		return f.inline(d, recv, args)
	case perhaps:
		var got []*value
		if f.attempt(f.limit, func() { got = f.inline(d, recv, args) }) {
			return got
		}
	}
	args = f.general(d, args)
	g := f.specialise(d, how.jump, recv, args)
	if size(g.body) > long {
		g.jump = true
	}
	f.fn.effects = f.fn.effects || g.effects
	return f.residual(d, g, recv, args, how)
}

// long is how many statements a function has that is called like those of joint: its own
// stack may be large.
const long = 60

type whether uint8

const (
	never whether = iota
	perhaps
	always
)

// inPlace says whether a call is followed where it stands: what gives references must be, and
// what is a single expression or loops over arrays that it is given gains by it.
func (f *frame) inPlace(d *ast.FuncDecl, recv *value, how callHow) whether {
	sig := f.info.Defs[d.Name].Type().(*types.Signature)
	for i := range sig.Results().Len() {
		if _, ok := sig.Results().At(i).Type().Underlying().(*types.Basic); !ok {
			return always
		}
	}
	if how.jump {
		return never
	}
	method := recv != nil && recv.kind == ref && recv.at == f.root
	slices := false
	for i := range sig.Params().Len() {
		_, is := sig.Params().At(i).Type().Underlying().(*types.Slice)
		slices = slices || is
	}
	if straight(d) {
		return perhaps
	}
	if !method && (recv != nil || slices) {
		return perhaps
	}
	return never
}

// straight reports whether a function is a few assignments and a result.
func straight(d *ast.FuncDecl) bool {
	list := d.Body.List
	if len(list) == 0 || len(list) > 4 {
		return false
	}
	for _, st := range list[:len(list)-1] {
		if _, ok := st.(*ast.AssignStmt); !ok {
			return false
		}
	}
	_, ok := list[len(list)-1].(*ast.ReturnStmt)
	return ok
}

// inline follows a call where it stands.
func (f *frame) inline(d *ast.FuncDecl, recv *value, args []*value) []*value {
	if f.level > 30 {
		f.fail(d, "calls without end")
	}
	g := &frame{spec: f.spec, fn: f.fn, vars: map[types.Object]binding{}, inlined: true, level: f.level + 1}
	sig := f.info.Defs[d.Name].Type().(*types.Signature)
	for i := range sig.Results().Len() {
		g.types = append(g.types, sig.Results().At(i).Type())
	}
	set := func(n *ast.Ident, v *value) {
		obj := f.info.Defs[n]
		if obj == nil || n.Name == "_" {
			return
		}
		if v.kind == scalar && v.con != nil {
			v = constantValue(wrapInt(v.con, obj.Type()), obj.Type())
		}
		g.bind(obj, g.steadyAll(v, n.Name), true)
	}
	if d.Recv != nil && len(d.Recv.List[0].Names) > 0 {
		set(d.Recv.List[0].Names[0], recv)
	}
	i := 0
	for _, p := range d.Type.Params.List {
		for _, n := range p.Names {
			set(n, args[i])
			i++
		}
	}
	g.named(d)
	end := g.list(d.Body.List)
	if end == falls && len(g.types) > 0 {
		f.fail(d, "no return")
	}
	return g.back
}

// named binds the named results of a function.
func (f *frame) named(d *ast.FuncDecl) {
	if d.Type.Results == nil {
		return
	}
	for _, r := range d.Type.Results.List {
		for _, n := range r.Names {
			obj := f.info.Defs[n]
			f.results = append(f.results, obj)
			f.bind(obj, zeroOf(obj.Type()), true)
		}
	}
}

// steadyAll is v, whose texts later assignments do not change.
func (f *frame) steadyAll(v *value, name string) *value {
	switch v.kind {
	case scalar:
		return f.steady(v, name)
	case record:
		w := *v
		w.list = nil
		for _, field := range v.list {
			w.list = append(w.list, f.steadyAll(field, name))
		}
		return &w
	}
	return f.held(v)
}

// residual calls a generated function.
func (f *frame) residual(d *ast.FuncDecl, g *fn, recv *value, args []*value, how callHow) []*value {
	sig := f.info.Defs[d.Name].Type().(*types.Signature)
	out := make([]*value, sig.Results().Len())
	known := g.returned || len(out) == 0
	for i := range out {
		if g.returned && g.returns[i] != nil {
			out[i] = g.returns[i]
		} else {
			known = false
		}
	}
	if known && !g.effects {
		return out
	}
	list := f.passed(recv, args)
	text := g.callText(list)
	if !g.effects {
		f.silent[strings.TrimSuffix(g.callText(nil), "()")] = true
	}
	switch {
	case len(out) == 0 || how.discard || known:
		f.emit(&stmt{kind: line, text: text})
		return out
	case len(out) == 1 && !g.effects:
		return []*value{dynamic(text, operand, sig.Results().At(0).Type())}
	}
	got := f.several(text, sig.Results(), how.wanted)
	for i, v := range out {
		if v == nil {
			out[i] = got[i]
		}
	}
	return out
}

func (g *fn) callText(args []string) string {
	list := strings.Join(args, ", ")
	switch {
	case g.jump:
		if list != "" {
			list = ", " + list
		}
		return "jump." + g.name + "(k" + list + ")"
	case g.method:
		return "k." + g.name + "(" + list + ")"
	}
	return g.name + "(" + list + ")"
}

// passed are the arguments that a generated function takes: what the tick computes.
func (f *frame) passed(recv *value, args []*value) (list []string) {
	hole := func(v *value) *value { list = append(list, v.text); return v }
	all := args
	if recv != nil {
		all = append([]*value{recv}, args...)
	}
	for _, a := range all {
		f.parts(a, hole)
	}
	return list
}

// parts goes through what the tick computes of an argument, in one order.
func (f *frame) parts(a *value, hole func(*value) *value) *value {
	if a == nil {
		return a
	}
	switch a.kind {
	case scalar:
		if a.con == nil {
			return hole(a)
		}
	case ref, slice:
		w := *a
		root := a.at
		for root.parent != nil {
			root = root.parent
		}
		if root.param {
			hole(&value{kind: ref, at: root, text: root.text, typ: root.typ})
		}
		w.at = f.rebuilt(a.at, hole)
		if a.kind == slice {
			w.off, w.len = f.parts(a.off, hole), f.parts(a.len, hole)
		}
		return &w
	case tuple, record:
		w := *a
		w.list = nil
		for _, el := range a.list {
			w.list = append(w.list, f.parts(el, hole))
		}
		return &w
	}
	return a
}
