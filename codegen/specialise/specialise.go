package specialise

import (
	"go/ast"
	"go/types"
	"strconv"
	"strings"
)

// short is how many nodes the text of a function may have so that it is made anew for every
// number that it is called with.
const short = 250

// general takes numbers as they come where a function is long, and those that make no
// operation simpler.
func (f *frame) general(d *ast.FuncDecl, args []*value) []*value {
	size := 0
	ast.Inspect(d.Body, func(n ast.Node) bool { size++; return true })
	out := make([]*value, len(args))
	for i, a := range args {
		c, float := a.con.(float64)
		if out[i] = a; float && (size >= short || c != 0 && c != 1) {
			v := dynamic(a.text, a.prec, a.typ)
			v.stable = true
			out[i] = v
		}
	}
	return out
}

// specialise is the function for what is known of the arguments.
func (f *frame) specialise(d *ast.FuncDecl, jump bool, recv *value, args []*value) *fn {
	s := f.spec
	g := &fn{names: map[string]int{}, rows: []map[string]string{{}}, kept: map[string]*value{}, jump: jump, decl: d}
	h := &frame{spec: s, fn: g, vars: map[types.Object]binding{}}
	key, about := h.enter(d, recv, args)
	if jump {
		key += " by jump"
	}
	if old := s.fns[key]; old != nil {
		if old.busy {
			f.fail(d, "%s calls itself", d.Name.Name)
		}
		return old
	}
	s.fns[key], g.key = g, key
	g.name, g.about, g.busy = s.top(d.Name.Name+about), s.about(d, h.vars), true
	sig := f.info.Defs[d.Name].Type().(*types.Signature)
	for i := range sig.Results().Len() {
		h.types = append(h.types, sig.Results().At(i).Type())
	}
	g.results = h.types
	var body []*stmt
	g.out = &body
	h.named(d)
	h.list(d.Body.List)
	if !g.looks {
		body = unkept(body)
	}
	g.body, g.busy, g.key = h.hoisted(h.gathered(tidy(body))), false, key
	own := frameOf(g)
	if g.depth = own + g.below; own > wide && !s.heavy[key] {
		s.heavy[key], s.grown = true, true
	}
	g.method = g.uses("k")
	s.order = append(s.order, g)
	return g
}

// enter binds the parameters of a function: what is known, and for the rest parameters. It
// returns what is known, in full and for a name.
func (f *frame) enter(d *ast.FuncDecl, recv *value, args []*value) (key, about string) {
	names := []*ast.Ident{}
	all := args
	if d.Recv != nil {
		all = append([]*value{recv}, args...)
		names = append(names, d.Recv.List[0].Names...)
	}
	for _, p := range d.Type.Params.List {
		names = append(names, p.Names...)
	}
	key = f.fset.Position(d.Pos()).String()
	for i, n := range names {
		obj := f.info.Defs[n]
		count := len(f.fn.params)
		v := f.parts(all[i], func(v *value) *value { return f.parameter(n.Name, v) })
		key += "|" + v.key() + "/" + strconv.Itoa(len(f.fn.params)-count)
		if v.kind == scalar && v.con != nil {
			v = constantValue(wrapInt(v.con, obj.Type()), obj.Type())
		}
		about += known(n.Name, v)
		b := binding{val: v}
		if v.kind == scalar && v.con == nil {
			b.name, b.fresh = v.text, true
			b.val = f.variable(obj, v.text)
		}
		f.vars[obj] = b
	}
	return key, about
}

// known is what the name of a function tells of an argument.
func known(name string, v *value) string {
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
				return "At" + letters(v.text)
			}
		}
	case ref, slice:
		if v.at.parent == nil {
			return ""
		}
		parts := strings.FieldsFunc(v.at.full(), func(r rune) bool { return strings.ContainsRune(".[]", r) })
		last := parts[len(parts)-1]
		if n := len(parts); last[0] >= '0' && last[0] <= '9' && n > 1 {
			last = parts[n-2] + last
		}
		if last = letters(last); last != "" {
			return joined("_", last)
		}
	}
	return ""
}

// letters leaves of a text what a name may have.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, text)
}

// parameter makes a parameter of the function for what the tick computes.
func (f *frame) parameter(name string, v *value) *value {
	g := f.fn
	if v.kind == ref { // the array of a parameter
		for _, p := range g.params {
			if strings.HasPrefix(p, v.text+" ") {
				g.params = append(g.params, "_ "+arrayType(v.typ))
				return v
			}
		}
		g.names[v.text]++
		g.params = append(g.params, v.text+" "+arrayType(v.typ))
		return v
	}
	name = f.unique(name)
	g.params, g.args = append(g.params, name+" "+goType(v.typ)), append(g.args, name)
	out := dynamic(name, operand, v.typ)
	out.stable, out.plus = true, false
	return out
}

func arrayType(t types.Type) string {
	arr := t.(*types.Array)
	return "*[" + strconv.FormatInt(arr.Len(), 10) + "]" + goType(arr.Elem())
}

// uses reports whether the body of a function has a name in it.
func (g *fn) uses(name string) bool {
	reads := map[string]int{}
	count(g.body, reads)
	if reads[name] > 0 {
		return true
	}
	return usesTarget(g.body, name)
}

// usesTarget reports whether something of that name is assigned to.
func usesTarget(list []*stmt, name string) bool {
	for _, st := range list {
		if st.kind == set {
			for _, n := range st.names {
				if strings.HasPrefix(n, name+".") {
					return true
				}
			}
		}
		if usesTarget(st.body, name) || usesTarget(st.els, name) {
			return true
		}
	}
	return false
}
