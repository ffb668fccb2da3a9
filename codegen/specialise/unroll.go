package specialise

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// records reports whether a loop goes through records of the tables, each of which says what
// is to be done: the operations of a program.
func (f *frame) records(st *ast.RangeStmt, x *value) bool {
	if !named(st.Value) || x.kind != slice || !x.at.fixed || x.at.many != nil {
		return false
	}
	_, ok := x.typ.Underlying().(*types.Slice).Elem().Underlying().(*types.Struct)
	return ok
}

// products reports whether a loop goes through the numbers of a sparse matrix, each of which
// adds a product to an element of another vector.
func (f *frame) products(st *ast.RangeStmt, x *value) bool {
	if !named(st.Key) || !named(st.Value) || x.kind != slice || x.at.many != nil || f.isGiven(x.at.cell()+"[*]") || len(st.Body.List) != 1 {
		return false
	}
	a, ok := st.Body.List[0].(*ast.AssignStmt)
	if !ok || a.Tok != token.ADD_ASSIGN {
		return false
	}
	_, ok = a.Lhs[0].(*ast.IndexExpr)
	return ok && isFloat(x.typ.Underlying().(*types.Slice).Elem())
}

// many is how many times as long as others a loop may be that calls a function for each of
// its turns and does little else: such as that of the laws, of which each is another program.
const many = 8

// dispatches reports whether a loop is one.
func (f *frame) dispatches(st *ast.ForStmt) bool {
	if len(st.Body.List) > 1 {
		return false
	}
	calls := false
	ast.Inspect(st.Body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		calls = calls || ok && f.info.Selections[selector(c.Fun)] != nil
		return true
	})
	return calls
}

func selector(e ast.Expr) *ast.SelectorExpr {
	sel, _ := e.(*ast.SelectorExpr)
	return sel
}

// turns is how often a loop is written out at most, whatever is in it.
const turns = 64

// gains reports whether a loop is simpler where its turns are written out.
func (f *frame) gains(st *ast.RangeStmt) bool {
	if named(st.Value) {
		return true
	}
	id, ok := st.Key.(*ast.Ident)
	return ok && f.selects(st.Body, f.info.Defs[id])
}

// selects reports whether a variable says which element is meant: in an index, a call, a
// comparison.
func (f *frame) selects(body ast.Node, obj types.Object) bool {
	found := false
	uses := func(n ast.Node) {
		if n != nil {
			ast.Inspect(n, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && obj != nil && f.info.Uses[id] == obj {
					found = true
				}
				return true
			})
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			uses(n.Index)
		case *ast.SliceExpr:
			uses(n.Low)
			uses(n.High)
		case *ast.CallExpr:
			if !f.info.Types[n.Fun].IsType() {
				for _, a := range n.Args {
					uses(a)
				}
			}
		case *ast.BinaryExpr:
			if precedence[n.Op.String()] == 3 {
				uses(n)
			}
		}
		return true
	})
	return found
}

// turnList follows the statements of a turn. One that goes on early where the tick decides
// has the rest of its turn as the other way.
func (f *frame) turnList(stmts []ast.Stmt) flow {
	for i, st := range stmts {
		c, ok := st.(*ast.IfStmt)
		if !ok || c.Else != nil || !early(c.Body) {
			if end := f.exec(st); end != falls {
				return end
			}
			continue
		}
		if c.Init != nil {
			f.exec(c.Init)
		}
		first, rest := c.Body.List[:len(c.Body.List)-1], stmts[i+1:]
		var nodes []ast.Node
		for _, n := range append(slices.Clone(first), rest...) {
			nodes = append(nodes, n)
		}
		cond := f.eval(c.Cond)
		return f.fork(cond, f.assignedIn(nodes...), func() flow { return f.list(first) }, func() flow { return f.turnList(rest) })
	}
	return falls
}

// early reports whether a block ends with the turn of its loop.
func early(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	last, ok := b.List[len(b.List)-1].(*ast.BranchStmt)
	return ok && last.Tok == token.CONTINUE
}

// vector is how many turns of an elementwise loop may be written out.
const vector = 32

// elementwise reports whether a loop does nothing but a few assignments: operations on vectors.
func elementwise(b *ast.BlockStmt) bool {
	for _, st := range b.List {
		if a, ok := st.(*ast.AssignStmt); !ok || slices.ContainsFunc(a.Rhs, func(e ast.Expr) bool { _, call := e.(*ast.CallExpr); return call }) {
			return false
		}
	}
	return len(b.List) <= 4
}
