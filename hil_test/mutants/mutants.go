package mutants

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one change of a source file.
type Mutant struct {
	File string // path from the root of the repository
	Func string // function that contains the change; "": none
	Line string // line on which the change begins
	From int    // first byte replaced
	To   int    // byte after the last one replaced
	Old  string
	New  string
	Nth  int // number among the changes of the file that read alike, from 1
}

// String names the mutant, without the number of its line.
func (m *Mutant) String() string {
	name := fmt.Sprintf("%s: %s: %s: %s -> %s", m.File, m.Func, m.Line, oneLine(m.Old), oneLine(m.New))
	if m.Nth > 1 {
		name += fmt.Sprintf(" (%d)", m.Nth)
	}
	return name
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Apply returns the source with the change.
func (m *Mutant) Apply(source []byte) []byte {
	return slices.Concat(source[:m.From], []byte(m.New), source[m.To:])
}

// swapped holds the operator in place of another.
var swapped = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.INC: token.DEC, token.DEC: token.INC, token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.OR_ASSIGN: token.AND_ASSIGN, token.AND_ASSIGN: token.OR_ASSIGN,
}

// List returns the mutants of the source files of a package, in the order of the sources.
func List(root, folder string, files []string) (list []Mutant, err error) {
	for _, name := range files {
		path := filepath.Join(folder, name)
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c := collector{path: path, source: source, offset: func(p token.Pos) int { return set.Position(p).Offset }}
		for _, d := range file.Decls {
			c.function = ""
			if f, ok := d.(*ast.FuncDecl); ok {
				c.function = f.Name.Name
			}
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				continue
			}
			ast.Inspect(d, c.visit)
		}

		alike := map[string]int{}
		for i := range c.list {
			m := &c.list[i]
			name := m.String()
			alike[name]++
			m.Nth = alike[name]
		}
		list = append(list, c.list...)
	}

	return list, nil
}

// collector collects the mutants of a file.
type collector struct {
	path, function string
	source         []byte
	offset         func(token.Pos) int
	list           []Mutant
}

func (c *collector) add(from, to token.Pos, replace string) {
	c.addAt(c.offset(from), c.offset(to), replace)
}

func (c *collector) addAt(from, to int, replace string) {
	begin := bytes.LastIndexByte(c.source[:from], '\n') + 1
	line, _, _ := bytes.Cut(c.source[begin:], []byte("\n"))
	c.list = append(c.list, Mutant{
		File: c.path, Func: c.function, Line: oneLine(string(line)), From: from, To: to, Old: string(c.source[from:to]), New: replace,
	})
}

// swap adds the mutant of an operator at a position, with the expression around it as the context.
func (c *collector) swap(n ast.Node, at token.Pos, op token.Token) {
	if other, ok := swapped[op]; ok {
		from, to, i := c.offset(n.Pos()), c.offset(n.End()), c.offset(at)
		text := string(c.source[from:i]) + other.String() + string(c.source[i+len(op.String()):to])
		c.addAt(from, to, text)
	}
}

func (c *collector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return !changesProcess(n)
	case *ast.ImportSpec, *ast.Field: // of a field: the tag, or the length of an array
		_, field := n.(*ast.Field)
		return field && n.(*ast.Field).Tag == nil
	case *ast.BinaryExpr:
		c.swap(n, n.OpPos, n.Op)
	case *ast.BasicLit:
		if n.Kind == token.INT || n.Kind == token.FLOAT {
			c.add(n.Pos(), n.End(), "("+n.Value+" + 1)")
		}
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			c.add(n.Pos(), n.End(), map[string]string{"true": "false", "false": "true"}[n.Name])
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			c.add(n.Pos(), n.End(), string(c.source[c.offset(n.X.Pos()):c.offset(n.X.End())]))
		}
	case *ast.IncDecStmt:
		c.swap(n, n.TokPos, n.Tok)
		c.add(n.Pos(), n.End(), "")
	case *ast.ExprStmt:
		c.add(n.Pos(), n.End(), "")
	case *ast.AssignStmt:
		c.swap(n, n.TokPos, n.Tok)
		if n.Tok == token.ASSIGN && len(n.Lhs) == len(n.Rhs) { // the values stay in use
			blank := strings.TrimSuffix(strings.Repeat("_, ", len(n.Lhs)), ", ")
			values := string(c.source[c.offset(n.TokPos):c.offset(n.End())])
			if x, ok := n.Lhs[0].(*ast.Ident); !ok || x.Name != "_" {
				c.add(n.Pos(), n.End(), blank+" "+values)
			}
		}
	}

	return true
}

// changesProcess reports whether a call names a process or a thread by its number. A changed number
// would give another process of the host a policy, CPUs or a signal.
func changesProcess(n *ast.CallExpr) bool {
	f, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := f.X.(*ast.Ident)
	return ok && p.Name == "unix" && (strings.HasPrefix(f.Sel.Name, "SchedSet") || strings.Contains(f.Sel.Name, "kill") ||
		strings.Contains(f.Sel.Name, "Kill") || strings.HasPrefix(f.Sel.Name, "RawSyscall"))
}
