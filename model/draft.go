package model

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// Draft is a plant file that is parsed, and not read yet: whoever changes values in its
// tree reads it again, without the parsing.
type Draft struct {
	file  string
	top   ast.Node
	kinds []kind
	asked map[ast.Node]wanted
}

// Parse parses a plant file. Errors are as those of Load.
func Parse(file string, data []byte, kinds []kind) (*Draft, error) {
	r := reader{file: file}
	top := r.parse(data)
	if r.err != nil {
		return nil, r.err
	}
	return &Draft{file: file, top: top, kinds: kinds}, nil
}

// Top is the tree; nil of an empty file. Scalars in it may be replaced by string nodes with
// the token of the old ones.
func (d *Draft) Top() ast.Node { return d.top }

// Load reads the plant as the tree is now.
func (d *Draft) Load() (*Plant, error) {
	d.asked = map[ast.Node]wanted{}
	l := loader{reader: reader{file: d.file}, parts: &parts{plant: &Plant{File: d.file}}, kinds: d.kinds, asked: d.asked}
	l.load(d.top)
	if l.err != nil {
		return nil, l.err
	}
	return l.plant, nil
}

// Number tells whether the last Load took a number at n, and the unit of a bare one; ""
// of a parameter, which has that of where it is used.
func (d *Draft) Number(n ast.Node) (unit string, ok bool) {
	want, ok := d.asked[n]
	return want.spelled, ok
}

// Fits tells whether a number in that unit can stand at n.
func (d *Draft) Fits(n ast.Node, unit string) error {
	want := d.asked[n]
	u, err := Units(unit)
	if err == nil && want.Factor > 0 && u.Dim != want.Dim {
		err = fmt.Errorf("unit %q (%v) does not fit what stands there (%v)", unit, u.Dim, want.Dim)
	}
	return err
}
