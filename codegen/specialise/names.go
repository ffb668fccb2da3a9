package specialise

import (
	"fmt"
	"go/ast"
	"go/types"
	"strconv"
	"strings"
)

// kinds are what the arrays of the kernel and of its tables have an element for.
var kinds = map[string]string{
	"x": "state", "x1": "state", "xd": "state", "save": "state", "X0": "state",
	"Friction": "friction", "mode": "friction", "before": "friction", "slip": "friction", "slip1": "friction", "tau": "friction", "tau0": "friction",
	"limit": "friction", "drag": "friction", "give": "friction", "rate": "friction", "trial": "friction", "place": "friction", "capNow": "friction",
	"split": "friction", "fresh": "friction", "broken": "friction", "struck": "friction", "shutIn": "friction", "home": "friction", "free": "friction", "left": "friction",
	"Switches": "switch", "region": "switch", "Pulses": "sensor", "pulse": "sensor", "saved": "sensor", "counted": "sensor",
	"Signals": "signal", "input": "signal", "shown": "signal", "Inputs": "input", "Delay": "input",
}

// nameOf is what a person calls element n of a kind; "" where it has no name.
func (s *spec) nameOf(kind string, n int) string {
	t, list := s.plant, []string(nil)
	switch kind {
	case "state":
		list = t.StateName
	case "friction":
		list = t.Frictions
	case "switch":
		for i := range t.Switches {
			list = append(list, t.Switches[i].Name)
		}
	case "sensor":
		for _, p := range t.Pulses {
			list = append(list, t.Outputs[p.Output].Name)
		}
	case "signal":
		list = s.signals
	case "input":
		for _, p := range t.Inputs {
			list = append(list, p.Name)
		}
	}
	if n < 0 || n >= len(list) {
		return ""
	}
	return list[n]
}

// about says in a line which elements the fixed arguments of a function are.
func (s *spec) about(d *ast.FuncDecl, vars map[types.Object]binding) string {
	var parts []string
	for _, p := range d.Type.Params.List {
		for _, n := range p.Names {
			b, ok := vars[s.info.Defs[n]]
			if ok && (b.val.kind == ref || b.val.kind == slice) && b.val.at != nil {
				if what, name := s.owner(b.val.at.full()); name != "" {
					parts = append(parts, fmt.Sprintf("%s is of %s, %s", n.Name, what, name))
				}
			}
			if !ok || b.val.kind != scalar {
				continue
			}
			at, ok := b.val.integer()
			if !ok {
				continue
			}
			if name := s.nameOf(s.kindOf(d.Body, s.info.Defs[n], 3), int(at)); name != "" {
				parts = append(parts, fmt.Sprintf("%s is %d, %s", n.Name, at, name))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Here " + strings.Join(parts, ", and ") + "."
}

// owner is the element that a place belongs to: which one, and its name.
func (s *spec) owner(at string) (what, name string) {
	for _, i := range indexes(at) {
		from := i[0]
		for from > 0 && letter(at[from-1]) {
			from--
		}
		n, err := strconv.Atoi(at[i[0]+1 : i[1]-1])
		kind := kinds[strings.TrimPrefix(at[from:i[0]], "t")] // t are the tables
		if name := s.nameOf(kind, n); err == nil && name != "" {
			return kind + " " + strconv.Itoa(n), name
		}
	}
	return "", ""
}

// kindOf is of what a variable is the index, from what it is the index into.
func (s *spec) kindOf(body ast.Node, obj types.Object, depth int) (kind string) {
	ast.Inspect(body, func(n ast.Node) bool {
		if kind != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.IndexExpr:
			if id, ok := n.Index.(*ast.Ident); ok && s.info.Uses[id] == obj {
				if x, ok := n.X.(*ast.SelectorExpr); ok {
					kind = kinds[x.Sel.Name]
				}
			}
		case *ast.CallExpr:
			kind = s.kindIn(n, obj, depth)
		}
		return true
	})
	return kind
}

// kindIn looks into a function that the variable is passed to.
func (s *spec) kindIn(call *ast.CallExpr, obj types.Object, depth int) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || depth == 0 || s.info.Selections[sel] == nil {
		return ""
	}
	d := s.funcs[s.info.Selections[sel].Obj()]
	if d == nil || d.Body == nil {
		return ""
	}
	var names []*ast.Ident
	for _, p := range d.Type.Params.List {
		names = append(names, p.Names...)
	}
	for i, a := range call.Args {
		if id, ok := a.(*ast.Ident); ok && s.info.Uses[id] == obj && i < len(names) {
			return s.kindOf(d.Body, s.info.Defs[names[i]], depth-1)
		}
	}
	return ""
}

// entitled puts the name of an element above what a turn of a loop makes for it.
func (f *frame) entitled(body ast.Node, vars []ast.Expr, turn func() flow) flow {
	from := len(*f.fn.out)
	end := turn()
	const worth = 4 // statements
	if size((*f.fn.out)[from:]) < worth {
		return end
	}
	for _, e := range vars {
		id, ok := e.(*ast.Ident)
		if !ok || f.info.Defs[id] == nil {
			continue
		}
		b := f.vars[f.info.Defs[id]]
		if b.val == nil {
			continue
		}
		at, ok := b.val.integer()
		if !ok {
			continue
		}
		if name := f.nameOf(f.kindOf(body, f.info.Defs[id], 3), int(at)); name != "" {
			list := append([]*stmt(nil), (*f.fn.out)[:from]...)
			list = append(list, &stmt{kind: comment, text: name})
			*f.fn.out = append(list, (*f.fn.out)[from:]...)
			return end
		}
	}
	return end
}

// listed are the names of the elements of a kind, as far as they fit a line.
func (s *spec) listed(field string) string {
	kind, ok := kinds[field]
	if !ok {
		return ""
	}
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
