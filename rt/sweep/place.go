package sweep

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"lockstep/model/plantfile"
	"lockstep/model/units"
	"lockstep/rt/virtual"
)

// place is a value in the tree of a file.
type place struct {
	node ast.Node
	put  func(ast.Node)
	of   *plantfile.Draft // nil: not of a plant
}

// write lets a text stand there.
func (p *place) write(text string) {
	old := p.node.GetToken()
	t := &token.Token{Type: token.StringType, Value: text, Origin: text, Position: old.Position}
	p.put(&ast.StringNode{BaseNode: &ast.BaseNode{}, Token: t, Value: text})
}

// tree is a file in which addresses are looked up.
type tree struct {
	prefix   string
	top      ast.Node
	sections []string // that may be left out
	of       *plantfile.Draft
}

func trees(v *virtual.Variation) []tree {
	list := []tree{{"", v.Plant.Top(), []string{"", "parameters.", "elements.", "inputs."}, v.Plant}}
	if v.Bench != nil {
		list = append(list, tree{"bench.", v.Bench, []string{""}, nil})
	}
	if v.Scenario != nil {
		list = append(list, tree{"scenario.", v.Scenario, []string{"", "stimuli."}, nil})
	}
	return list
}

// find looks an address up.
func find(v *virtual.Variation, address word) (*place, error) {
	list := trees(v)
	for i := len(list) - 1; i >= 0; i-- { // the plant, whose prefix is empty, last
		path, ok := strings.CutPrefix(address.text, list[i].prefix)
		if !ok {
			continue
		}
		for _, section := range list[i].sections {
			if p := within(list[i].top, section+path, nil); p != nil {
				p.of = list[i].of
				return p, nil
			}
		}
	}
	var known []string
	for _, t := range list {
		for _, name := range leaves(t.top, "", nil) {
			for _, section := range t.sections {
				if short, ok := strings.CutPrefix(name, section); ok {
					known = append(known, t.prefix+strings.TrimSuffix(short, ".default"))
				}
			}
		}
	}
	return nil, address.errorf("nothing called %s stands in the files%s", address.text, units.Meant(address.text, known))
}

// within follows a path from a node on; put replaces that node. nil: there is no such value.
func within(n ast.Node, path string, put func(ast.Node)) *place {
	if _, ok := scalarText(n); ok && path == "" && put != nil {
		return &place{node: n, put: put}
	}
	if list, ok := n.(*ast.SequenceNode); ok {
		index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(index)
		if !ok || err != nil || path[0] != '[' || i < 0 || i >= len(list.Values) {
			return nil
		}
		return within(list.Values[i], strings.TrimPrefix(rest, "."), func(n ast.Node) { list.Values[i] = n })
	}
	for _, e := range entries(n) {
		key, _ := scalarText(e.Key)
		rest, ok := strings.CutPrefix(path, key)
		if path == "" && key == "default" { // of an input
			rest, ok = "", true
		}
		if !ok || key == "" || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if p := within(e.Value, strings.TrimPrefix(rest, "."), func(n ast.Node) { e.Value = n }); p != nil {
			return p
		}
	}
	return nil
}

func entries(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// leaves are the addresses of all values below a node.
func leaves(n ast.Node, path string, list []string) []string {
	if _, ok := scalarText(n); ok {
		return append(list, path)
	}
	if s, ok := n.(*ast.SequenceNode); ok {
		for i, v := range s.Values {
			list = leaves(v, path+"["+strconv.Itoa(i)+"]", list)
		}
	}
	for _, e := range entries(n) {
		key, _ := scalarText(e.Key)
		list = leaves(e.Value, strings.TrimPrefix(path+"."+key, "."), list)
	}
	return list
}

// fit holds the unit of a parameter against what stands at a place, and returns the one in
// which a bare number counts there; "" where that is not known.
func (p *place) fit(a *axis, at word) (unit string, err error) {
	text, _ := scalarText(p.node)
	if p.of == nil {
		there, err := (word{text: text}).numberUnit()
		if err != nil {
			return "", at.errorf("%s is no number but %q", at.text, text)
		}
		if a.unit != "" && there != "" && a.unit != there {
			if _, err := units.Convert(a.unit, there); err != nil {
				return "", at.errorf("%s: %s; there stands %q", at.text, strings.TrimPrefix(err.Error(), "model: "), text)
			}
		}
		return "", nil
	}
	unit, ok := p.of.Number(p.node)
	if !ok {
		return "", at.errorf("%s is no number but %q", at.text, text)
	}
	if a.unit != "" && a.unit != "degC" {
		if err := p.of.Fits(p.node, a.unit); err != nil {
			return "", at.errorf("%s: %s; there stands %q", at.text, strings.TrimPrefix(err.Error(), "model: "), text)
		}
	}
	return unit, nil
}

// numberUnit is the unit of a number; "" where another calculation stands there.
func (w word) numberUnit() (string, error) {
	_, unit, err := w.number()
	if err != nil && strings.ContainsAny(w.text, "+-*/()") {
		return "", nil
	}
	return unit, err
}
