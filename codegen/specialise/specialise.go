package specialise

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shortFunction is the number of syntax nodes up to which a function is generated anew for every
// number among its arguments.
const shortFunction = 250

// generalise turns known numbers among the arguments into parameters if the function is long, or if
// the number is neither 0 nor 1 and so simplifies no operation.
func (f *frame) generalise(d *ast.FuncDecl, args []*value) []*value {
	size := 0
	ast.Inspect(d.Body, func(n ast.Node) bool { size++; return true })
	out := slices.Clone(args)
	for i, a := range args {
		if c, float := a.con.(float64); float && (size >= shortFunction || c != 0 && c != 1) {
			out[i] = dynamic(a.text, a.prec, a.typ)
			out[i].stable = true
		}
	}

	return out
}

// specialise returns the generated function for the known values among the arguments.
func (f *frame) specialise(d *ast.FuncDecl, indirect bool, args []*value) *fn {
	s := f.spec
	g := &fn{
		names: map[string]int{}, rows: []map[string]string{{}}, stackCells: map[string]*value{},
		indirect: indirect, decl: d, results: f.resultTypes(d), bound: unlimited, strict: unlimited,
	}
	h := &frame{spec: s, fn: g, vars: map[types.Object]binding{}, types: g.results}
	key, suffix := h.bindParameters(d, args)
	if indirect {
		key += " indirect"
	}
	if old := s.fns[key]; old != nil {
		if old.busy {
			f.fail("%s calls itself", d.Name.Name)
		}
		return old
	}

	at := s.at
	s.fns[key], g.key = g, key
	g.name, g.about, g.busy = s.unusedTopName(d.Name.Name+suffix), h.describeArguments(d), true
	var body []*stmt
	g.out = &body
	h.bindResults(d)
	switch mode, p := h.modeOf(d), h.programOf(d); {
	case mode != nil && mode.con == nil && s.byLockSet():
		h.selectMode(d, mode)
	case p != nil && !p.at.known && p.at.class == 0:
		h.selectClass(d, p)
	default:
		h.execList(d.Body.List)
	}
	s.at = at
	body = h.groupSums(removeUnread(h.dropStackStores(body)))
	if s.byMode[d] {
		body = h.holdLocally(h.holdLocally(body, "x1"), "slip1")
	}
	g.body, g.busy = blocks(h.hoistMasks(body)), false
	own := frameOf(g)
	if g.depth = own + g.below; own > wideFrame && !s.largeStack[key] {
		s.largeStack[key], s.changed = true, true
	}
	g.method = reads(g.body)["k"] > 0
	s.order = append(s.order, g)
	return g
}

// bindParameters binds the parameters of a function: known values, and parameters for the others.
// It returns a key, which has the known values in full, and a suffix for the function's name, which
// has them abbreviated.
func (f *frame) bindParameters(d *ast.FuncDecl, args []*value) (key, suffix string) {
	key = f.fset.Position(d.Pos()).String()
	for i, n := range names(d.Recv, d.Type.Params) {
		obj := f.info.Defs[n]
		count := len(f.fn.params)
		v := f.replaceComputed(args[i], func(v *value) *value { return f.parameter(n.Name, v) })
		key += "|" + v.key() + "/" + strconv.Itoa(len(f.fn.params)-count)
		if v.con != nil {
			v = constantValue(v.con, obj.Type())
		}
		suffix += nameSuffix(n.Name, v)
		b := binding{val: v}
		if v.kind == scalar && v.con == nil {
			b = binding{val: f.variable(obj, v.text), name: v.text, fresh: true}
		}
		f.vars[obj] = b
	}

	return key, suffix
}

// nameSuffix returns the part of a function's name that a known argument adds.
func nameSuffix(name string, v *value) string {
	switch v.kind {
	case scalar:
		switch c := v.con.(type) {
		case int64, uint64:
			return strings.ReplaceAll(v.text, "-", "m")
		case bool:
			if c {
				return joined("_", name)
			}
		case float64:
			if c != 0 {
				return "At" + notInNames.ReplaceAllString(v.text, "")
			}
		}
	case ref, slice:
		if v.at.parent == nil {
			return ""
		}
		parts := strings.FieldsFunc(v.at.full(), func(r rune) bool { return strings.ContainsRune(".[]", r) })
		last := parts[len(parts)-1]
		if n := len(parts); digit(last[0]) && n > 1 {
			last = parts[n-2] + last
		}
		if last = notInNames.ReplaceAllString(last, ""); last != "" {
			return joined("_", last)
		}
	}

	return ""
}

// notInNames matches the characters that a name cannot have.
var notInNames = regexp.MustCompile(`\W`)

// parameter returns a new parameter of the generated function for a value that the tick computes.
func (f *frame) parameter(name string, v *value) *value {
	g := f.fn
	if v.kind == ref { // the array of a parameter
		name := v.text
		if slices.Contains(g.params, name+" "+arrayType(v.typ)) {
			name = "_"
		}
		g.names[v.text]++
		g.params = append(g.params, name+" "+arrayType(v.typ))
		return v
	}

	name = f.unique(name)
	g.params, g.args = append(g.params, name+" "+goType(v.typ)), append(g.args, name)
	out := dynamic(name, operand, v.typ)
	out.stable, out.notNegZero = true, false
	return out
}

// arrayType returns the generated type of a pointer to an array.
func arrayType(t types.Type) string {
	arr := t.(*types.Array)
	return "*[" + strconv.FormatInt(arr.Len(), 10) + "]" + goType(arr.Elem())
}
