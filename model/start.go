package model

import (
	"math"
	"strings"
)

// startState returns the initial state, after checking that the speeds given for
// dependent nodes agree with the gears.
func startState(p *Plant, b *basis) ([]float64, error) {
	x := make([]float64, b.free, b.free+len(p.states))
	u := make([]float64, len(b.nodes))
	for j, n := range b.nodes {
		u[j] = p.nodes[n].start
		if d := p.nodes[n].driven; d > 0 {
			u[j] = driveStart(p, d-1)
		}
		if j < b.free {
			x[j] = u[j]
		}
	}
	for i, n := range p.nodes {
		w, size, known := 0.0, math.Abs(n.start), true
		for j, c := range b.rows[i] {
			w += c * u[j]
			size = max(size, math.Abs(c*u[j]))
			known = known && (c == 0 || j < b.free || j >= b.free+b.open)
		}
		if n.given && known && !(math.Abs(w-n.start) <= 1e-9*size) {
			key := "w_start"
			if n.domain == translational {
				key = "v_start"
			}
			return nil, refuse(p, n.name, n.at, "%s %.9g %s contradicts the gears, which make it %.9g %s", key, n.start, n.speedUnit(), w, n.speedUnit())
		}
	}
	places, placed := places(p, b)
	for i, s := range p.states {
		if err := refuseMixed(p, &s); err != nil {
			return nil, err
		}
		v, any := s.start, false
		for _, t := range s.along {
			v += t.coef * places[t.node]
			any = any || placed[t.node]
		}
		if s.along != nil && !any && !s.stays {
			v = 0
		}
		if s.speed != nil {
			v = driveStart(p, i)
		}
		x = append(x, v)
	}
	return x, nil
}

// refuseMixed refuses a distance between a place in the plane and a node that is a displacement
// and would be taken for one at the centre of its body.
func refuseMixed(p *Plant, s *state) error {
	var place, loose *node
	for _, t := range s.along {
		n := &p.nodes[t.node]
		if n.fixes {
			place = n
		}
		if n.loose {
			loose = n
		}
	}
	if place == nil || loose == nil {
		return nil
	}
	return refuse(p, s.name[:strings.LastIndexByte(s.name, '.')], s.at,
		"where %q is in the plane is not known, but %q is at %s; give x_start and y_start to both bodies or to none",
		loose.name, place.name, withUnit(digits(place.phi0), "m"))
}

// driveStart is the initial speed of a prescribed node: a filtered one begins where
// the flange does, if that is given.
func driveStart(p *Plant, i int) float64 {
	s := &p.states[i]
	v, given := 0.0, false
	for _, t := range s.speed {
		v += t.coef * p.nodes[t.node].start
		given = given || p.nodes[t.node].given
	}
	if given {
		return v
	}
	return s.start
}

// places are the initial angles (positions) of the nodes: as written, or through the
// gears from those that are.
func places(p *Plant, b *basis) (at []float64, placed []bool) {
	for i := range p.nodes {
		v, any := placeOf(p, b, i)
		at, placed = append(at, v), append(placed, any)
	}
	return at, placed
}

// placeOf is where node i starts, and whether that follows from what was written. Nothing
// but its own starts places a body: two places in a joint tell by how much they are apart,
// not how far a body has turned.
func placeOf(p *Plant, b *basis, i int) (at float64, placed bool) {
	n := &p.nodes[i]
	if n.placed || n.framed {
		return n.phi0, n.placed
	}
	at = n.phi0
	for j, c := range b.rows[i] {
		if from := &p.nodes[b.nodes[j]]; b.nodes[j] != i && c != 0 {
			at += c * from.phi0
			placed = placed || from.placed
		}
	}
	if placed {
		at += b.gaps[i]
	}
	return at, placed
}
