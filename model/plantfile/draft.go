package plantfile

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// Draft is a plant file that is parsed, and not read yet: whoever changes values in its
// tree reads it again, without the parsing.
type Draft struct {
	file  string
	top   ast.Node
	kinds []element.Kind
	asked map[ast.Node]units.Wanted
}

// Parse parses a plant file. Errors are as those of Load.
func Parse(file string, data []byte, kinds []element.Kind) (*Draft, error) {
	r := syntax.Reader{File: file}
	top := r.Parse(data)
	if r.Err != nil {
		return nil, r.Err
	}
	return &Draft{file: file, top: top, kinds: kinds}, nil
}

// Top is the tree; nil of an empty file. Scalars in it may be replaced by string nodes with
// the token of the old ones.
func (d *Draft) Top() ast.Node { return d.top }

// Load reads the plant as the tree is now.
func (d *Draft) Load() (*network.Plant, error) {
	d.asked = map[ast.Node]units.Wanted{}
	l := loader{Reader: syntax.Reader{File: d.file}, Plant: &element.Plant{Network: &network.Plant{File: d.file}}, kinds: d.kinds, asked: d.asked}
	l.load(d.top)
	if l.Err != nil {
		return nil, l.Err
	}
	return l.Network, nil
}

// Number tells whether the last Load took a number at n, and the unit of a bare one; ""
// of a parameter, which has that of where it is used.
func (d *Draft) Number(n ast.Node) (unit string, ok bool) {
	want, ok := d.asked[n]
	return want.Spelled, ok
}

// Fits tells whether a number in that unit can stand at n.
func (d *Draft) Fits(n ast.Node, unit string) error {
	want := d.asked[n]
	u, err := units.Parse(unit)
	if err == nil && want.Factor > 0 && u.Dim != want.Dim {
		err = fmt.Errorf("unit %q (%v) does not fit what stands there (%v)", unit, u.Dim, want.Dim)
	}
	return err
}
