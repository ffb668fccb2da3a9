package c99

import (
	"go/ast"
	"go/types"
)

// unordered reports whether the value of operands may depend on an order of evaluation that C
// leaves open: they call a function that writes shared memory, and also call another function or
// read memory.
func (f *flow) unordered(operands ...ast.Expr) bool {
	calls, writers, reads := 0, 0, 0
	for _, x := range operands {
		ast.Inspect(x, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if fn := f.callee(n); fn != nil {
					if calls++; f.writes[fn] {
						writers++
					}
				}
			case *ast.SelectorExpr:
				if sel := f.info.Selections[n]; sel != nil && sel.Kind() == types.FieldVal {
					reads++
				}
			case *ast.IndexExpr:
				reads++
			}

			return true
		})
	}

	return writers > 0 && (calls > 1 || reads > 0)
}

// disjoint reports whether a function has other pointer parameters and none of them shares memory
// with p.
func (f *flow) disjoint(fn *types.Func, p *types.Var) bool {
	others := 0
	for _, v := range pointersOf(fn) {
		if v != p {
			others++
			if f.targets[v].overlaps(f.targets[p]) {
				return false
			}
		}
	}

	return others > 0
}

// pointersOf returns the receiver and the parameters that are pointers.
func pointersOf(fn *types.Func) (list []*types.Var) {
	if r := fn.Signature().Recv(); r != nil && is[*types.Pointer](r.Type()) {
		list = append(list, r)
	}
	for v := range fn.Signature().Params().Variables() {
		if is[*types.Pointer](v.Type()) {
			list = append(list, v)
		}
	}

	return list
}
