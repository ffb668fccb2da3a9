// Package assemble owns the way from the network of a plant to its system of matrices: rigid gears
// eliminated, massless nodes solved for, signals in order, initial states found. It refuses what
// only the whole network shows to be wrong. It does not read files, and discretises nothing.
//
// Reading order: assemble.go (System), prune.go (what nothing reads), reduce.go (gears),
// massless.go (nodes without inertia), start.go and values.go (initial states and values), fill.go
// (the matrices), reaction.go (torques of gears), contacts.go, losses.go, pace.go (bounds on what
// laws do), layout.go (what became of the nodes).
package assemble

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
	"lockstep/model/network"
)

// System eliminates the rigid gears and builds the matrices of System.
//
// With w = N·u (N from the gears), u = (u₁ of the nodes with inertia, u₂ of massless
// ones, u₃ prescribed), J the inertias, f the sum of all torques along the nodes,
// linear in the speeds, the other states, the signals and the friction torques:
//
//	N₁ᵀ·J·N₁·u₁' = N₁ᵀ·(f - J·N₃·u₃')      0 = N₂ᵀ·f
//
// The second is solved for u₂ (massless.go). States are u₁ and what the elements
// declare and something reads: twists of springs, u₃, lags, temperatures, angles.
//
// An error names the element and the place in the file.
func System(p *network.Plant) (*model.System, error) {
	p = pruned(p)
	b, err := reduce(p)
	if err != nil {
		return nil, err
	}
	x0, err := startState(p, b)
	if err != nil {
		return nil, err
	}
	a := newAssembly(p, b)
	if err := a.check(); err != nil {
		return nil, err
	}
	if err := a.eliminate(); err != nil {
		return nil, err
	}
	if err := a.settle(x0); err != nil {
		return nil, err
	}
	if err := a.motion(); err != nil {
		return nil, err
	}
	if err := a.lose(); err != nil {
		return nil, err
	}
	if err := a.push(); err != nil {
		return nil, err
	}
	if err := a.order(); err != nil {
		return nil, err
	}
	sys := a.ports()
	sys.X0 = x0
	if err := a.fill(sys); err != nil {
		return nil, err
	}
	return sys, a.finite(sys)
}

// assembly holds what the steps of System share. A linear form of everything the
// plant has is a vector of these parts, one after the other: states, signals,
// friction torques, speeds of massless nodes, and the number 1.
type assembly struct {
	*network.Plant
	*basis
	n, m, mc int
	signals  []network.Signal // of the plant, with one more for constants where they are needed
	constant int              // that one; -1: none
	along    [][]float64      // per effort, its row over the columns of N
	values   [][]float64      // per effort, what it exerts
	massless [][]float64      // u₂ as forms without u₂
	statics  [][]float64      // forms of the twists that massless nodes keep at zero
	rates    [][]float64      // x'
	inertia  *mat.Dense       // Nᵀ·J·N
	inverted *mat.Dense       // that of the free nodes, inverted
	loose    *loosening       // nil until a torque of a gear is read
	loads    [][]float64      // of each loss, as a form
	shares   []float64        // of each loss
	pushed   [][]float64      // of each push, as a form
	place    []int            // signal of the file -> signal of the System
}

func newAssembly(p *network.Plant, b *basis) *assembly {
	a := &assembly{Plant: p, basis: b, n: b.free + len(p.States), mc: len(p.Frictions), constant: -1}
	a.signals = append(a.signals, p.Signals...)
	var forms []network.Form
	for _, o := range p.Outputs {
		forms = append(forms, o.Form)
	}
	for _, e := range p.Efforts {
		forms = append(forms, e.Value)
	}
	for _, s := range p.States {
		forms = append(forms, s.Der)
	}
	for _, f := range forms {
		for _, m := range f {
			if m.Kind == network.OfOne && a.constant < 0 {
				a.constant = len(a.signals)
				a.signals = append(a.signals, network.Signal{Name: "one", Source: network.Constant(1)})
			}
		}
	}
	a.m = len(a.signals)
	for _, e := range p.Efforts {
		a.along = append(a.along, a.form(e.Row))
	}
	return a
}

// Begins of the parts of a form.
func (a *assembly) ofSignals() int  { return a.n }
func (a *assembly) ofTorques() int  { return a.n + a.m }
func (a *assembly) ofMassless() int { return a.n + a.m + a.mc }
func (a *assembly) ofOne() int      { return a.n + a.m + a.mc + a.open }

func (a *assembly) zero() []float64 { return make([]float64, a.ofOne()+1) }

// state is the state that is the speed of column j of N; for a massless node it is
// its place in the third part.
func (a *assembly) column(j int) int {
	switch {
	case j < a.free:
		return j
	case j < a.free+a.open:
		return a.ofMassless() + j - a.free
	}
	return a.free + a.Plant.Nodes[a.basis.nodes[j]].Driven - 1
}

// raw is f with massless speeds as unknowns.
func (a *assembly) raw(f network.Form) []float64 {
	out := a.zero()
	size := a.zero()
	add := func(i int, v float64) {
		out[i] += v
		size[i] = max(size[i], math.Abs(v))
	}
	for _, m := range f {
		switch m.Kind {
		case network.OfOne:
			add(a.ofOne(), m.Coef)
		case network.OfSpeed:
			for j, c := range a.rows[m.Index] {
				add(a.column(j), m.Coef*c)
			}
		case network.OfState:
			add(a.free+m.Index, m.Coef)
		case network.OfSignal:
			add(a.ofSignals()+m.Index, m.Coef)
		case network.OfFriction:
			add(a.ofTorques()+m.Index, m.Coef)
		}
	}
	for i, v := range out {
		if math.Abs(v) <= 1e-13*size[i] {
			out[i] = 0 // rounding
		}
	}
	return out
}

// resolve is f without massless speeds.
func (a *assembly) resolve(f network.Form) []float64 { return a.substitute(a.raw(f)) }

func (a *assembly) substitute(v []float64) []float64 {
	for j := range a.massless {
		c := v[a.ofMassless()+j]
		v[a.ofMassless()+j] = 0
		addTo(v, c, a.massless[j])
	}
	return v
}

// addTo is dst += c·v.
func addTo(dst []float64, c float64, v []float64) {
	if c == 0 {
		return
	}
	for i, x := range v {
		dst[i] += c * x
	}
}

// check refuses what does nothing, and friction where it cannot be.
func (a *assembly) check() error {
	for i, e := range a.Efforts {
		if len(e.Row) > 0 && largest(a.along[i]) == 0 && !a.isFriction(e.Element) && !a.carried(e.Row) {
			return refuse(a.Plant, e.Element, e.At, "its ends turn together rigidly, it does nothing; remove it")
		}
	}
	for _, k := range a.Frictions {
		f := a.form(k.Rel)
		if largest(f) == 0 {
			return refuse(a.Plant, k.Name, k.At, "its sides turn together rigidly, it can never slip; remove it")
		}
		for j := a.free; j < a.free+a.open; j++ {
			if n := a.Plant.Nodes[a.basis.nodes[j]]; f[j] != 0 {
				return refuse(a.Plant, k.Name, k.At, "it rubs on node %q, which is massless and follows from no gear; "+
					"give that an inertia, or a gear to a node that has one", n.Name)
			}
		}
		moves := false
		for _, c := range f[:a.free] {
			moves = moves || c != 0
		}
		if !moves {
			return refuse(a.Plant, k.Name, k.At, "the speeds of both its sides are prescribed; remove it")
		}
	}
	return nil
}

// carried tells whether joints carry what acts along a row.
func (a *assembly) carried(r network.Row) bool {
	for _, t := range r {
		if n := a.Plant.Nodes[t.Node]; n.Framed && n.Owner != "fixed" && largest(a.rows[t.Node]) == 0 {
			return true
		}
	}
	return false
}

func (a *assembly) isFriction(element string) bool {
	for _, k := range a.Frictions {
		if k.Name == element {
			return true
		}
	}
	return false
}

// motion computes the rates of all states.
func (a *assembly) motion() error {
	k := len(a.basis.nodes)
	a.inertia = mat.NewDense(k, k, nil)
	for q, n := range a.Plant.Nodes {
		for i, u := range a.rows[q] {
			for j, v := range a.rows[q] {
				a.inertia.Set(i, j, a.inertia.At(i, j)+n.J*(u*v))
			}
		}
	}
	var err error
	if a.inverted, err = a.inverse(); err != nil {
		return err
	}
	for _, e := range a.Efforts {
		a.values = append(a.values, a.resolve(e.Value))
	}
	force := make([][]float64, a.free)
	for j := range force {
		force[j] = a.force(j)
		for d := a.free + a.open; d < k; d++ {
			addTo(force[j], -a.inertia.At(j, d), a.resolve(a.driveOf(d)))
		}
	}
	for i := range a.free {
		r := a.zero()
		for j := range a.free {
			addTo(r, a.inverted.At(i, j), force[j])
		}
		a.rates = append(a.rates, r)
	}
	for _, s := range a.States {
		a.rates = append(a.rates, a.resolve(s.Der))
	}
	return nil
}

// driveOf is the rate of prescribed column d.
func (a *assembly) driveOf(d int) network.Form {
	return a.States[a.Plant.Nodes[a.basis.nodes[d]].Driven-1].Der
}

// force is the sum of all torques along column j of N.
func (a *assembly) force(j int) []float64 {
	f := a.zero()
	for i := range a.Efforts {
		addTo(f, a.along[i][j], a.values[i])
	}
	return f
}

// inverse of the inertias of the free nodes. Rows and columns are scaled by powers of
// two, so that inertias of very different size do not look singular.
func (a *assembly) inverse() (*mat.Dense, error) {
	k := a.free
	if k == 0 {
		return nil, errorf(a.Plant, network.Pos{Line: 1, Col: 1}, "every inertia is driven by a speed source; nothing is left to simulate")
	}
	out := mat.NewDense(k, k, nil)
	scale := make([]float64, k)
	for i := range k {
		_, e := math.Frexp(a.inertia.At(i, i))
		scale[i] = math.Ldexp(1, -e/2)
	}
	scaling := func(i, j int, v float64) float64 { return scale[i] * v * scale[j] }
	out.Apply(scaling, a.inertia.Slice(0, k, 0, k))
	if err := out.Inverse(out); err != nil {
		return nil, errorf(a.Plant, network.Pos{Line: 1, Col: 1}, "inertias and gear ratios differ too much in size to be solved together")
	}
	out.Apply(scaling, out)
	return out, nil
}

// finite refuses matrices that overflowed.
func (a *assembly) finite(sys *model.System) error {
	for _, list := range [][]float64{sys.A, sys.B, sys.Bc, sys.W, sys.E, sys.C, sys.D, sys.Dc, sys.X0} {
		for _, v := range list {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return errorf(a.Plant, network.Pos{Line: 1, Col: 1}, "the matrices are not finite; parameters differ too much in size")
			}
		}
	}
	return nil
}
