package law

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"strconv"

	"lockstep/model"
	"lockstep/model/network"
)

// Names gives the meaning of names in a formula: a number, a quantity of the plant (network.Form), an
// expression, or a table, which is used as a function. A number has the name of its key in the plant
// file, so that an error can name it.
type Names map[string]any

// functions are the functions of formulas by name.
var functions = map[string]operation{
	"abs": abs, "sign": sign, "min": minimum, "max": maximum, "sqrt": sqrt, "exp": exp, "atan": atan, "sin": sin,
	"cos": cos, "where": choose, "latch": latch,
}

// operators are the operators of formulas.
var operators = map[token.Token]operation{token.ADD: add, token.SUB: sub, token.MUL: mul, token.QUO: div}

// Formula returns the expression of a text as in a textbook: numbers, names, + - * / and parentheses,
// tables, and the functions abs, sign, min, max, sqrt, exp, atan, sin, cos and
//
//	clamp(x, low, high)   x between two numbers
//	where(c, a, b)        a where c >= 0, otherwise b
//	latch(x, m)           the sign of x, which changes only where x is beyond m on the other side
//
// A quotient by 0 is 0, and a root of a negative number is 0. The text is part of an element type: a
// mistake in it panics.
func Formula(text string, names Names) *Expr {
	tree, err := parser.ParseExpr(text)
	if err != nil {
		panic(fmt.Sprintf("law: %s: %v", text, err))
	}
	f := formula{text, names}
	x := *f.expr(tree)
	x.names = map[string]float64{}
	for name, is := range names {
		switch is := is.(type) {
		case float64:
			x.names[name] = is
		case *Expr:
			if is != nil {
				maps.Copy(x.names, is.names)
			}
		}
	}
	return &x
}

type formula struct {
	text  string
	names Names
}

// expr returns the expression of a part of the text.
func (f formula) expr(part ast.Expr) *Expr {
	switch part := part.(type) {
	case *ast.ParenExpr:
		return f.expr(part.X)
	case *ast.BasicLit:
		if v, err := strconv.ParseFloat(part.Value, 64); err == nil {
			return Number(v)
		}
	case *ast.Ident:
		return f.named(part.Name)
	case *ast.UnaryExpr:
		if part.Op == token.SUB {
			return apply(neg, f.expr(part.X))
		}
	case *ast.BinaryExpr:
		if op, ok := operators[part.Op]; ok {
			return apply(op, f.expr(part.X), f.expr(part.Y))
		}
	case *ast.CallExpr:
		if name, ok := part.Fun.(*ast.Ident); ok {
			var args []*Expr
			for _, a := range part.Args {
				args = append(args, f.expr(a))
			}
			return f.call(name.Name, args)
		}
	}
	panic(fmt.Sprintf("law: %s: not an expression at column %d", f.text, part.Pos()))
}

// named returns the expression of a name.
func (f formula) named(name string) *Expr {
	switch is := f.names[name].(type) {
	case float64:
		return Number(is)
	case network.Form:
		return Of(is)
	case *Expr:
		return is
	}
	panic(fmt.Sprintf("law: %s: nothing has the name %q", f.text, name))
}

// call returns the value of a function or a table.
func (f formula) call(name string, args []*Expr) *Expr {
	if t, ok := f.names[name].(model.Table); ok {
		if len(t.Y) > 0 {
			return &Expr{op: lookup2, table: t, args: args, bounds: everything}
		}
		return Lookup(t, args[0])
	}
	if name == "clamp" {
		ends := []float64{args[1].value, args[2].value}
		return Lookup(model.Table{X: ends, Z: ends}, args[0])
	}
	op, ok := functions[name]
	if !ok {
		panic(fmt.Sprintf("law: %s: nothing has the name %q", f.text, name))
	}
	x := apply(op, args[:min(len(args), operands(op))]...)
	if op == minimum || op == maximum { // of any number of operands
		for _, a := range args[2:] {
			x = apply(op, x, a)
		}
	}
	return x
}

// operands returns the number of operands of an operation.
func operands(op operation) int {
	switch op {
	case add, sub, mul, div, minimum, maximum, lookup2, latch:
		return 2
	case choose:
		return 3
	}
	return 1
}
