package assemble

import (
	"strings"

	"lockstep/model/network"
)

// Layout is what System makes of the nodes of a plant.
type Layout struct {
	Bodies   []string // nodes with inertia
	Free     int      // degrees of freedom: the first states, the independent speeds
	Held     []string // coordinates of bodies that joints leave no motion
	Carried  []string // points of bodies, and lines between them
	Geared   []string // other massless nodes whose speed follows from gears
	Balanced []string // massless nodes whose speed follows from springs and dampers
	Driven   []string // sources that prescribe a speed; the node they drive is geared to it
}

// LayoutOf returns the Layout of a plant. It fails where System fails to reduce the gears.
func LayoutOf(p *network.Plant) (*Layout, error) {
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
	for i, n := range p.Nodes {
		switch {
		case n.Owner == "fixed":
		case n.Driven > 0:
			l.Driven = append(l.Driven, n.Name)
		case n.J > 0:
			if l.Bodies = append(l.Bodies, n.Name); !independent[i] && largest(b.rows[i]) == 0 {
				l.Held = append(l.Held, n.Name)
			}
		case n.Framed:
			name := n.Name
			if n.Owner == "body" {
				name = name[:strings.LastIndexByte(name, '.')] // of .x and .y
			}
			if k := len(l.Carried); k == 0 || l.Carried[k-1] != name {
				l.Carried = append(l.Carried, name)
			}
		case independent[i]:
			l.Balanced = append(l.Balanced, n.Name)
		default:
			l.Geared = append(l.Geared, n.Name)
		}
	}
	return l, nil
}
