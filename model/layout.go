package model

import "strings"

// Layout says what Assemble makes of the nodes of a plant.
type Layout struct {
	Bodies   []string // nodes with inertia
	Free     int      // degrees of freedom: the first states, the independent speeds
	Held     []string // coordinates of bodies that joints leave no motion
	Carried  []string // points of bodies, and lines between them
	Geared   []string // other massless nodes whose speed follows from gears
	Balanced []string // massless nodes whose speed follows from springs and dampers
	Driven   []string // sources that prescribe a speed; the node they drive is geared to it
}

// LayoutOf returns it; it fails where Assemble fails to reduce the gears.
func LayoutOf(p *Plant) (*Layout, error) {
	p = pruned(p)
	b, err := reduce(p)
	if err != nil {
		return nil, err
	}
	l := &Layout{Free: b.free}
	independent := map[int]bool{}
	for _, n := range b.nodes {
		independent[n] = true
	}
	for i, n := range p.nodes {
		switch {
		case n.owner == "fixed":
		case n.driven > 0:
			l.Driven = append(l.Driven, n.name)
		case n.J > 0:
			if l.Bodies = append(l.Bodies, n.name); !independent[i] && largest(b.rows[i]) == 0 {
				l.Held = append(l.Held, n.name)
			}
		case n.framed:
			name := n.name
			if n.owner == "body" {
				name = name[:strings.LastIndexByte(name, '.')] // of .x and .y
			}
			if k := len(l.Carried); k == 0 || l.Carried[k-1] != name {
				l.Carried = append(l.Carried, name)
			}
		case independent[i]:
			l.Balanced = append(l.Balanced, n.name)
		default:
			l.Geared = append(l.Geared, n.name)
		}
	}
	return l, nil
}
