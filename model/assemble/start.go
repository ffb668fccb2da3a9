package assemble

import (
	"math"
	"strings"

	"lockstep/model/network"
	"lockstep/model/units"
)

// startState returns the initial state, after checking that the speeds given for
// dependent nodes agree with the gears.
func startState(p *network.Plant, b *basis) ([]float64, error) {
	x := make([]float64, b.free, b.free+len(p.States))
	u := make([]float64, len(b.nodes))
	for j, n := range b.nodes {
		u[j] = p.Nodes[n].Start
		if d := p.Nodes[n].Driven; d > 0 {
			u[j] = driveStart(p, d-1)
		}
		if j < b.free {
			x[j] = u[j]
		}
	}
	for i, n := range p.Nodes {
		w, size, known := 0.0, math.Abs(n.Start), true
		for j, c := range b.rows[i] {
			w += c * u[j]
			size = max(size, math.Abs(c*u[j]))
			known = known && (c == 0 || j < b.free || j >= b.free+b.open)
		}
		if n.Given && known && !(math.Abs(w-n.Start) <= 1e-9*size) {
			key := "w_start"
			if n.Domain == network.Translational {
				key = "v_start"
			}
			return nil, refuse(p, n.Name, n.At, "%s %.9g %s contradicts the gears, which make it %.9g %s", key, n.Start, n.SpeedUnit(), w, n.SpeedUnit())
		}
	}
	places, placed := places(p, b)
	for i, s := range p.States {
		if err := refuseMixed(p, &s); err != nil {
			return nil, err
		}
		v, any := s.Start, false
		for _, t := range s.Along {
			v += t.Coef * places[t.Node]
			any = any || placed[t.Node]
		}
		if s.Along != nil && !any && !s.Stays {
			v = 0
		}
		if s.Speed != nil {
			v = driveStart(p, i)
		}
		x = append(x, v)
	}
	return x, nil
}

// refuseMixed refuses a distance between a place in the plane and a node that is a displacement
// and would be taken for one at the centre of its body.
func refuseMixed(p *network.Plant, s *network.State) error {
	var place, loose *network.Node
	for _, t := range s.Along {
		n := &p.Nodes[t.Node]
		if n.Fixes {
			place = n
		}
		if n.Loose {
			loose = n
		}
	}
	if place == nil || loose == nil {
		return nil
	}
	return refuse(p, s.Name[:strings.LastIndexByte(s.Name, '.')], s.At,
		"where %q is in the plane is not known, but %q is at %s; give x_start and y_start to both bodies or to none",
		loose.Name, place.Name, units.Format(units.DropRounding(place.Phi0), "m"))
}

// driveStart is the initial speed of a prescribed node: a filtered one begins where
// the flange does, if that is given.
func driveStart(p *network.Plant, i int) float64 {
	s := &p.States[i]
	v, given := 0.0, false
	for _, t := range s.Speed {
		v += t.Coef * p.Nodes[t.Node].Start
		given = given || p.Nodes[t.Node].Given
	}
	if given {
		return v
	}
	return s.Start
}

// places are the initial angles (positions) of the nodes: as written, or through the
// gears from those that are.
func places(p *network.Plant, b *basis) (at []float64, placed []bool) {
	for i := range p.Nodes {
		v, any := placeOf(p, b, i)
		at, placed = append(at, v), append(placed, any)
	}
	return at, placed
}

// placeOf is where node i starts, and whether that follows from what was written. Nothing
// but its own starts places a body: two places in a joint tell by how much they are apart,
// not how far a body has turned.
func placeOf(p *network.Plant, b *basis, i int) (at float64, placed bool) {
	n := &p.Nodes[i]
	if n.Placed || n.Framed {
		return n.Phi0, n.Placed
	}
	at = n.Phi0
	for j, c := range b.rows[i] {
		if from := &p.Nodes[b.nodes[j]]; b.nodes[j] != i && c != 0 {
			at += c * from.Phi0
			placed = placed || from.Placed
		}
	}
	if placed {
		at += b.gaps[i]
	}
	return at, placed
}
