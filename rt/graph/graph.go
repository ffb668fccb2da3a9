// Package graph owns the network of a plant as a picture of it needs it: nodes, elements, and which signals
// determine their speeds and torques. It draws nothing: the page does.
package graph

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"lockstep/model/network"
	"lockstep/rt/bench"
)

// Plant is the network of the plant, as a picture of it needs it.
type Plant struct {
	Nodes    []PlantNode    `json:"nodes"`
	Elements []PlantElement `json:"elements"` // in the order of the plant file

	Carried map[string]string `json:"carried,omitempty"` // input of the plant that an output has unchanged, by the output
}

// PlantNode is a part of the plant with one speed: a shaft, a wheel, a mass.
type PlantNode struct {
	Name    string  `json:"name"`
	Type    string  `json:"type,omitempty"`    // type of the element that is the node; "": it has no inertia
	Moves   bool    `json:"moves,omitempty"`   // it moves, m/s; otherwise it turns, rad/s
	Inertia float64 `json:"inertia,omitempty"` // kg·m², or kg
	Speed   []Term  `json:"speed,omitempty"`   // rad/s or m/s; none: the signals do not determine it
}

// PlantElement is an element of the plant file.
type PlantElement struct {
	Name     string        `json:"name"`
	Type     string        `json:"type"`
	Friction bool          `json:"friction,omitempty"` // the signals NAME.mode, NAME.w_rel and NAME.tau are its state
	Flanges  []PlantFlange `json:"flanges"`
}

// PlantFlange is the connection of an element to a node.
type PlantFlange struct {
	Key    string `json:"key,omitempty"`    // of the flange in the plant file; none: the node is the element itself
	Node   int    `json:"node"`             // index into the nodes; -1: the ground
	Torque []Term `json:"torque,omitempty"` // of the element on the node, N·m or N; none: not determined
}

// Term is a part of a sum over signals: Factor times a signal in its unit, or times its rate per second.
type Term struct {
	Signal string  `json:"signal"`
	Factor float64 `json:"factor"`
	Rate   bool    `json:"rate,omitempty"` // the rate of change of the signal counts, not its value
}

// Of reads the network of the plant of a run, and finds which speeds and torques the signals determine.
func Of(h *bench.Handover) (*Plant, error) {
	draft, err := h.Bench.ParsePlant()
	if err != nil {
		return nil, err
	}
	n, err := draft.Load()
	if err != nil {
		return nil, err
	}
	s := newSolver(h, n)
	p := &Plant{Nodes: []PlantNode{}, Elements: []PlantElement{}, Carried: map[string]string{}}
	for i, node := range n.Nodes {
		p.Nodes = append(p.Nodes, PlantNode{Name: node.Name, Type: node.Owner, Moves: node.Domain == network.Translational,
			Inertia: node.J, Speed: s.terms(network.RowOf(i).Speeds(1))})
	}
	for _, e := range n.Elements {
		shown := PlantElement{Name: e.Name, Type: e.Type, Flanges: []PlantFlange{},
			Friction: slices.Contains(h.Tables.Frictions, e.Name)}
		for _, f := range e.Flanges {
			flange := PlantFlange{Key: f.Key, Node: f.Node}
			if f.Key != "" && f.Node != network.Ground {
				if t := torqueOn(n, e.Name, f.Node); len(t) > 0 {
					flange.Torque = s.terms(t)
				}
			}
			shown.Flanges = append(shown.Flanges, flange)
		}
		p.Elements = append(p.Elements, shown)
	}
	for _, o := range n.Outputs {
		if len(o.Form) != 1 || o.Form[0].Kind != network.OfSignal || o.Form[0].Coef != 1 {
			continue
		}
		if input := n.Signals[o.Form[0].Index].Name; bench.PortIndex(h.Tables.Inputs, input) >= 0 {
			p.Carried[o.Name] = input
		}
	}
	return p, nil
}

// torqueOn returns the torque of an element on a node, from its efforts and ties.
func torqueOn(n *network.Plant, element string, node int) (sum network.Form) {
	for _, a := range n.Efforts {
		if c := a.Row.Coef(node); a.Element == element && c != 0 {
			sum = sum.Plus(a.Value.Scaled(c))
		}
	}
	for i, t := range n.Ties {
		if c := t.Row.Coef(node); t.Name == element && c != 0 {
			sum = sum.Plus(network.TieOf(i).Scaled(c))
		}
	}
	return sum
}

// quantity is an unknown of the solver: a measure without its coefficient.
type quantity struct {
	kind  network.MeasureKind
	index int
}

// known is a number that clients know: an output of the plant in SI, or its rate.
type known struct {
	output int // index of the output
	rate   bool
}

// equation says Σ left·quantity = Σ right·known.
type equation struct {
	left  map[quantity]float64
	right map[known]float64
}

// solver expresses quantities of the plant by its outputs: it solves the equations of outputs, ties and
// balances of torques by elimination, as far as they determine something.
type solver struct {
	h      *bench.Handover
	solved map[quantity]*equation // the quantity has the coefficient 1 and is in no other equation
}

func newSolver(h *bench.Handover, n *network.Plant) *solver {
	s := &solver{h: h, solved: map[quantity]*equation{}}
	output := func(form network.Form, name string) {
		if i := bench.PortIndex(h.Tables.Outputs, name); i >= 0 {
			s.add(form, map[known]float64{{i, false}: 1})
		}
	}
	for _, o := range n.Outputs {
		output(o.Form, o.Name)
	}
	for i, f := range n.Frictions {
		output(network.FrictionOf(i), f.Name+".tau")
		output(f.Rel.Speeds(1), f.Name+".w_rel")
	}
	for _, t := range n.Ties {
		s.add(t.Row.Speeds(1), nil)
	}
	for i := range n.Nodes {
		if n.Nodes[i].Owner == "fixed" {
			s.add(network.RowOf(i).Speeds(1), nil)
		}
	}
	for i, signal := range n.Signals {
		if signal.Linear != nil {
			s.add(network.SignalOf(i).Plus(signal.Linear.Scaled(-1)), nil)
		}
	}
	for _, massless := range []bool{true, false} { // an equation without rates is exact
		for i := range n.Nodes {
			if massless == (n.Nodes[i].J == 0) {
				s.addBalance(n, i)
			}
		}
	}
	return s
}

// addBalance adds the balance of torques at a node. Its acceleration is the rate of its speed, which clients
// compute from the samples.
func (s *solver) addBalance(n *network.Plant, node int) {
	v := &n.Nodes[node]
	loses := func(at network.Row) bool { return at.Coef(node) != 0 }
	switch {
	case v.OfBody, v.Owner == "fixed", v.Driven > 0, len(n.GearLosses) > 0,
		slices.ContainsFunc(n.ContactLosses, func(c network.ContactLoss) bool { return loses(c.Rel) }):
		return
	}
	var sum network.Form
	for _, a := range n.Efforts {
		if c := a.Row.Coef(node); c != 0 {
			sum = sum.Plus(a.Value.Scaled(c))
		}
	}
	for i, t := range n.Ties {
		if c := t.Row.Coef(node); c != 0 {
			sum = sum.Plus(network.TieOf(i).Scaled(c))
		}
	}
	if v.J == 0 {
		s.add(sum, nil)
		return
	}
	speed := s.reduce(network.RowOf(node).Speeds(1), nil)
	if len(speed.left) > 0 {
		return // the speed is not known
	}
	rates := map[known]float64{}
	for k, c := range speed.right { // left = 0 - right: see reduce
		if k.rate {
			return
		}
		rates[known{k.output, true}] = -float64(v.J * c)
	}
	s.add(sum, rates)
}

// reduce returns the equation form = right with the solved quantities replaced.
func (s *solver) reduce(form network.Form, right map[known]float64) *equation {
	e := &equation{map[quantity]float64{}, maps.Clone(right)}
	if e.right == nil {
		e.right = map[known]float64{}
	}
	for _, m := range form {
		e.left[quantity{m.Kind, m.Index}] += m.Coef
	}
	for _, q := range slices.Collect(maps.Keys(e.left)) {
		if by := s.solved[q]; by != nil {
			e.subtract(by, e.left[q], q)
		}
	}
	maps.DeleteFunc(e.left, func(_ quantity, c float64) bool { return c == 0 })
	return e
}

// subtract subtracts c times an equation, in which q has the coefficient 1.
func (e *equation) subtract(by *equation, c float64, q quantity) {
	for p, v := range by.left {
		e.left[p] -= float64(c * v)
		if math.Abs(e.left[p]) < 1e-9*math.Abs(c*v) {
			delete(e.left, p)
		}
	}
	for k, v := range by.right {
		e.right[k] -= float64(c * v)
		if math.Abs(e.right[k]) < 1e-9*math.Abs(c*v) {
			delete(e.right, k)
		}
	}
	delete(e.left, q)
}

// add adds the equation form = right. An equation that follows from the earlier ones changes nothing.
func (s *solver) add(form network.Form, right map[known]float64) {
	e := s.reduce(form, right)
	if len(e.left) == 0 {
		return
	}
	order := func(a, b quantity) int {
		larger := cmp.Compare(math.Abs(e.left[b]), math.Abs(e.left[a]))
		return cmp.Or(larger, cmp.Compare(a.kind, b.kind), cmp.Compare(a.index, b.index))
	}
	pivot := slices.MinFunc(slices.Collect(maps.Keys(e.left)), order)
	scale := 1 / e.left[pivot]
	for q := range e.left {
		e.left[q] *= scale
	}
	for k := range e.right {
		e.right[k] *= scale
	}
	e.left[pivot] = 1
	for _, other := range s.solved {
		if c := other.left[pivot]; c != 0 {
			other.subtract(e, c, pivot)
		}
	}
	s.solved[pivot] = e
}

// terms returns form as a sum over the outputs in their declared units; nil: they do not determine it.
func (s *solver) terms(form network.Form) (list []Term) {
	e := s.reduce(form, nil)
	if len(e.left) > 0 {
		return nil
	}
	list = []Term{}
	order := func(a, b known) int { return cmp.Compare(a.output, b.output) }
	for _, k := range slices.SortedFunc(maps.Keys(e.right), order) {
		port := &s.h.Tables.Outputs[k.output]
		list = append(list, Term{port.Name, -float64(e.right[k] * port.DeclaredUnit().Factor), k.rate})
	}
	return list
}
