package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// effects are what an expression, or a statement, reads and writes of what is shared.
type effects struct{ reads, writes places }

func (f *flow) effectsOf(n ast.Node) effects {
	e := effects{places{}, places{}}
	if n == nil {
		return e
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if fn := f.callee(n); fn != nil {
				e.reads.add(f.reads[fn])
				e.writes.add(f.writes[fn])
			}
		case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
			e.reads.add(f.at(n.(ast.Expr)))
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				e.writes.add(f.at(l))
			}
		case *ast.IncDecStmt:
			e.writes.add(f.at(n.X))
		case *ast.Ident:
			if v, ok := f.info.Uses[n].(*types.Var); ok && !v.IsField() {
				e.reads[place{root: v}] = true
			}
		}
		return true
	})
	return e
}

// meets says whether it matters which of two goes first.
func (a effects) meets(b effects) bool {
	return a.writes.meets(b.reads) || a.writes.meets(b.writes) || b.writes.meets(a.reads)
}

// unordered says whether operands, or parts of them, depend on an order that C does not
// have: one calls what changes another.
func (f *flow) unordered(operands ...ast.Expr) bool {
	if !slices.ContainsFunc(operands, f.writer) {
		return false
	}
	for i, a := range operands {
		if a == nil {
			continue
		}
		for _, b := range operands[:i] {
			if b != nil && f.effectsOf(a).meets(f.effectsOf(b)) {
				return true
			}
		}
		if f.unorderedWithin(a) {
			return true
		}
	}
	return false
}

// writer says whether an expression calls what writes.
func (f *flow) writer(x ast.Expr) (found bool) {
	if x == nil {
		return false
	}
	ast.Inspect(x, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			fn := f.callee(c)
			found = found || fn != nil && len(f.writes[fn]) > 0
		}
		return !found
	})
	return found
}

func (f *flow) unorderedWithin(x ast.Expr) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.BinaryExpr:
		if x.Op == token.LAND || x.Op == token.LOR {
			return f.unorderedWithin(x.X) || f.unorderedWithin(x.Y)
		}
		return f.unordered(x.X, x.Y)
	case *ast.CallExpr:
		return f.unordered(x.Args...)
	case *ast.IndexExpr:
		return f.unordered(x.X, x.Index)
	case *ast.UnaryExpr:
		return f.unorderedWithin(x.X)
	case *ast.SelectorExpr:
		return f.unorderedWithin(x.X)
	case *ast.StarExpr:
		return f.unorderedWithin(x.X)
	case *ast.CompositeLit:
		values := make([]ast.Expr, len(x.Elts))
		for i, e := range x.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			values[i] = e
		}
		return f.unordered(values...)
	}
	return false
}

// disjoint says whether a pointer of a function points to what no other of it does.
func (f *flow) disjoint(fn *types.Func, p *types.Var) bool {
	others := 0
	for _, v := range pointersOf(fn) {
		if v != p {
			others++
			if f.points[v].meets(f.points[p]) {
				return false
			}
		}
	}
	return others > 0
}

// pointersOf are the receiver and the parameters that are pointers.
func pointersOf(fn *types.Func) (list []*types.Var) {
	if r := fn.Signature().Recv(); r != nil && isPointer(r.Type()) {
		list = append(list, r)
	}
	for v := range fn.Signature().Params().Variables() {
		if isPointer(v.Type()) {
			list = append(list, v)
		}
	}
	return list
}
