package specialise

import (
	"go/ast"
	"go/types"
	"strings"
)

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
	if g.effects {
		clear(f.fn.kept)
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
