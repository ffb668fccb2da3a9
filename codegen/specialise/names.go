package specialise

import (
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fields are the fields of the kernel and its tables that have an entry for each element of a kind.
var fields = map[string]string{
	"state": "x x1 xd savedX X0",
	"friction": `Friction mode modesBefore slip slip1 tau tau0 limit kinetic applied unlockedAccel trialTau atBound
		capNow idleShare leavingZero present brokeAway impacts heldClosed bitOf freeAccel residualAccel lockTorque`,
	"switch": "Switches region followed",
	"sensor": "Pulses pulse savedPulse publishedCount",
	"signal": "Signals input published",
	"input":  "Inputs Delay",
}

// elementOf returns the kind of element for which a field has entries; "" for none.
func elementOf(field string) string {
	for kind, list := range fields {
		if slices.Contains(strings.Fields(list), field) {
			return kind
		}
	}

	return ""
}

// elements returns the names of the elements of each kind.
func elements(j *Plant) map[string][]string {
	t := j.Tables
	of := map[string][]string{"state": t.StateName, "friction": t.Frictions, "signal": j.Signals}
	for i := range t.Switches {
		of["switch"] = append(of["switch"], t.Switches[i].Name)
	}
	for _, p := range t.Pulses {
		of["sensor"] = append(of["sensor"], t.Outputs[p.Output].Name)
	}
	for _, p := range t.Inputs {
		of["input"] = append(of["input"], p.Name)
	}
	return of
}

// nameOf returns the name of element n of a kind; "" where it has no name.
func (s *spec) nameOf(kind string, n int) string {
	if list := s.elements[kind]; n >= 0 && n < len(list) {
		return list[n]
	}
	return ""
}

// elementAt returns the element whose index is the known value of a variable, and its name; ""
// where the variable is not such an index.
func (f *frame) elementAt(body ast.Node, id *ast.Ident) (n int64, name string) {
	obj := f.info.Defs[id]
	b, ok := f.vars[obj]
	if !ok {
		return 0, ""
	}
	if n, ok = b.val.integer(); ok {
		name = f.nameOf(f.kindOf(body, obj, 3), int(n))
	}
	return n, name
}

// describeArguments returns a line that names the elements selected by the fixed arguments of a
// function.
func (f *frame) describeArguments(d *ast.FuncDecl) string {
	var parts []string
	for _, n := range names(d.Type.Params) {
		if b := f.vars[f.info.Defs[n]]; b.val.at != nil {
			if what, name := f.owner(b.val.at.full()); name != "" {
				parts = append(parts, fmt.Sprintf("%s is of %s, %s", n.Name, what, name))
			}
		}

		if at, name := f.elementAt(d.Body, n); name != "" {
			parts = append(parts, fmt.Sprintf("%s is %d, %s", n.Name, at, name))
		}
	}

	if parts == nil {
		return ""
	}
	return "Here " + strings.Join(parts, ", and ") + "."
}

// lazyRegexp returns a function that compiles a regular expression at its first call: letters of all
// scripts take 60 kB each, and a target, which generates nothing, would lock them.
func lazyRegexp(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// arrays matches an element of an array in a text.
var arrays = lazyRegexp(`([\pL_]+)\[(\d+)\]`)

// owner returns the element to which a place belongs: its kind and number, and its name.
func (s *spec) owner(at string) (what, name string) {
	for _, m := range arrays().FindAllStringSubmatch(at, -1) {
		n, err := strconv.Atoi(m[2])
		kind := elementOf(strings.TrimPrefix(m[1], "t")) // t are the tables
		if name := s.nameOf(kind, n); err == nil && name != "" {
			return kind + " " + m[2], name
		}
	}

	return "", ""
}

// kindOf returns the kind of element that a variable indexes, from the arrays that it indexes.
func (s *spec) kindOf(body ast.Node, obj types.Object, depth int) (kind string) {
	ast.Inspect(body, func(n ast.Node) bool {
		if kind != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.IndexExpr:
			if id, ok := n.Index.(*ast.Ident); ok && s.info.Uses[id] == obj {
				if x, ok := n.X.(*ast.SelectorExpr); ok {
					kind = elementOf(x.Sel.Name)
				}
			}
		case *ast.CallExpr:
			kind = s.kindIn(n, obj, depth)
		}

		return true
	})
	return kind
}

// kindIn is kindOf in a function to which the variable is passed.
func (s *spec) kindIn(call *ast.CallExpr, obj types.Object, depth int) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || depth == 0 || s.info.Selections[sel] == nil {
		return ""
	}
	d := s.funcs[s.info.Selections[sel].Obj()]
	if d == nil || d.Body == nil {
		return ""
	}
	params := names(d.Type.Params)
	for i, a := range call.Args {
		if id, ok := a.(*ast.Ident); ok && s.info.Uses[id] == obj {
			return s.kindOf(d.Body, s.info.Defs[params[i]], depth-1)
		}
	}

	return ""
}

// withElementComment follows an iteration of a loop and puts the name of its element above the
// generated statements.
func (f *frame) withElementComment(body ast.Node, vars []ast.Expr, follow func() flow) flow {
	from := len(*f.fn.out)
	end := follow()
	const minStatements = 4 // fewer statements get no comment
	if size((*f.fn.out)[from:]) < minStatements {
		return end
	}
	for _, e := range vars {
		id, ok := e.(*ast.Ident)
		if !ok {
			continue
		}
		if _, name := f.elementAt(body, id); name != "" {
			*f.fn.out = slices.Insert(*f.fn.out, from, &stmt{kind: comment, text: name})
			return end
		}
	}

	return end
}

// elementList returns the names of the elements of a kind, as many as fit a line.
func (s *spec) elementList(field string) string {
	kind := elementOf(field)
	var names []string
	size := 0
	for i := 0; s.nameOf(kind, i) != "" || kind == "signal" && i < s.plant.M; i++ {
		name := s.nameOf(kind, i)
		if name == "" {
			name = "-"
		}
		if size += len(name) + 2; size > 160 {
			return strings.Join(append(names, "..."), ", ")
		}
		names = append(names, name)
	}

	return strings.Join(names, ", ")
}
