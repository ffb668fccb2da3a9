// Package assemble owns the step from the network of a plant to its matrices. It eliminates rigid
// gears, solves for massless nodes, orders the signals and finds the initial states. It refuses
// plants with errors that only the whole network shows. It reads no file and discretises nothing.
//
// Reading order: assemble.go (System), prune.go (parts that nothing reads), reduce.go (gears;
// Layout), massless.go (nodes without inertia), start.go (the initial state; StartOf),
// startsolver.go (solver of start conditions), fill.go (the matrices, and the rates of elements),
// sample.go (states that are set at ticks), reaction.go (torques of gears, losses of gears and contacts).
package assemble

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/network"
)

// System eliminates the rigid gears and builds the matrices of a plant.
//
// Let w = N·u (N from the gears), with u = (u₁ of the nodes with inertia, u₂ of massless nodes, u₃
// prescribed). J holds the inertias. f is the sum of all torques along the nodes, linear in the
// speeds, the other states, the signals and the friction torques:
//
//	N₁ᵀ·J·N₁·u₁' = N₁ᵀ·(f - J·N₃·u₃')      0 = N₂ᵀ·f
//
// massless.go solves the second equation for u₂. The states are u₁ and those that the elements
// declare and something reads: twists of springs, u₃, lags, temperatures, angles.
//
// An error names the element and its place in the file.
func System(p *network.Plant) (sys *model.System, err error) {
	defer yamlfile.Catch(&err)
	a := analyseNetwork(p)
	x0 := a.solveStart().state()
	a.computeRates()
	a.solveGearLosses()
	a.solveContactLosses()
	a.orderSignals()
	s := a.ports()
	s.X0 = x0
	a.fill(s)
	a.fillSamples(s)
	a.checkFinite(s)
	return s, nil
}

// analyseNetwork does the steps of System on which the initial state depends.
func analyseNetwork(p *network.Plant) *assembly {
	a := &assembly{Plant: p, basis: reduce(p)}
	a.prune()
	a.countParts()
	a.checkElements()
	a.solveMassless()
	return a
}

// refuseAt refuses a plant at a position in its file; the exported function returns the error.
func refuseAt(p *network.Plant, at network.Pos, format string, args ...any) {
	yamlfile.Origin{File: p.File, Owner: "model"}.Refuse(at, format, args...)
}

// refuse refuses a plant because of an element.
func refuse(p *network.Plant, element string, at network.Pos, format string, args ...any) {
	format = "element %q: " + format
	refuseAt(p, at, format, slices.Insert(args, 0, any(element))...)
}

// wholeFile is the place of an error that no single element causes.
var wholeFile = network.Pos{Line: 1, Col: 1}

// assembly holds the data that the steps of System share. A linear form of the plant is a vector of
// these parts, one after the other: states, signals, friction torques, speeds of massless nodes,
// and the number 1.
type assembly struct {
	*network.Plant
	*basis
	usedParts
	n, m, mc       int             // numbers of states, signals and friction torques
	constant       int             // signal for constants; -1: none
	along          [][]float64     // row of each effort over the columns of N
	values         [][]float64     // torque or force of each effort, as a form
	massless       [][]float64     // u₂ as forms without u₂
	staticForms    [][]float64     // forms of the twists that massless nodes keep at zero
	rates          [][]float64     // x' as forms
	inertia        *mat.Dense      // Nᵀ·J·N
	inverseInertia *mat.Dense      // inverse of the inertia of the free nodes
	tieSolution    *tieElimination // nil until a torque of a gear is read
	gearLoads      [][]float64     // load of each gear loss, as a form
	gearShares     []float64       // share of each gear loss, 0 to 1
	contactLosses  [][]float64     // force of each contact loss, as a form
	signalPlace    []int           // index in System of each used signal
	args           [][][]float64   // arguments of the law of each used signal, as forms
}

// countParts counts the parts of a form. Constants get a signal where there are any.
func (a *assembly) countParts() {
	var forms []network.Form
	for _, o := range a.Outputs {
		forms = append(forms, o.Form)
	}
	for _, e := range a.Efforts {
		forms = append(forms, e.Value)
		a.along = append(a.along, a.form(e.Row))
	}

	for _, s := range a.states {
		forms = append(forms, s.Der)
	}
	a.constant = -1
	for _, m := range slices.Concat(forms...) {
		if m.Kind == network.OfOne && a.constant < 0 {
			a.constant = len(a.signals)
			a.signals = append(a.signals, network.Signal{Name: "one", Source: network.Constant(1)})
		}
	}

	a.n, a.m, a.mc = a.freeCount+len(a.states), len(a.signals), len(a.Frictions)
}

// ofSignals and the functions below return the index of the first entry of each part of a form.
func (a *assembly) ofSignals() int  { return a.n }
func (a *assembly) ofTorques() int  { return a.n + a.m }
func (a *assembly) ofMassless() int { return a.n + a.m + a.mc }
func (a *assembly) ofOne() int      { return a.n + a.m + a.mc + a.masslessCount }

// zero returns a form whose entries are all 0.
func (a *assembly) zero() []float64 { return make([]float64, a.ofOne()+1) }

// column returns the index in a form of the speed of column j of N: a state, or a massless speed.
func (a *assembly) column(j int) int {
	switch {
	case j < a.freeCount:
		return j
	case j < a.freeCount+a.masslessCount:
		return a.ofMassless() + j - a.freeCount
	}

	return a.freeCount + a.driveState(j)
}

// driveState returns the state that is the speed of prescribed column j.
func (a *assembly) driveState(j int) int { return a.stateOf[a.Nodes[a.nodes[j]].Driven-1] }

// formSum is a sum of forms; results within rounding count as zero.
type formSum struct{ value, size []float64 }

func (a *assembly) total() formSum { return formSum{a.zero(), a.zero()} }

// add adds v to entry i.
func (t formSum) add(i int, v float64) {
	t.value[i] += v
	t.size[i] = max(t.size[i], math.Abs(v))
}

// rounded returns the sum, with results within rounding set to zero.
func (t formSum) rounded() []float64 {
	for i, v := range t.value {
		if math.Abs(v) <= 1e-13*t.size[i] {
			t.value[i] = 0
		}
	}

	return t.value
}

// rawForm returns f with massless speeds as unknowns.
func (a *assembly) rawForm(f network.Form) []float64 {
	out := a.total()
	for _, m := range f {
		switch m.Kind {
		case network.OfOne:
			out.add(a.ofOne(), m.Coef)
		case network.OfSpeed:
			for j, c := range a.rows[m.Index] {
				if c != 0 {
					out.add(a.column(j), m.Coef*c)
				}
			}
		case network.OfState:
			out.add(a.freeCount+a.stateOf[m.Index], m.Coef)
		case network.OfSignal:
			out.add(a.ofSignals()+a.signalOf[m.Index], m.Coef)
		case network.OfFriction:
			out.add(a.ofTorques()+m.Index, m.Coef)
		}
	}

	return out.rounded()
}

// resolvedForm returns f without massless speeds.
func (a *assembly) resolvedForm(f network.Form) []float64 {
	v := a.rawForm(f)
	for j, speed := range a.massless {
		c := v[a.ofMassless()+j]
		v[a.ofMassless()+j] = 0
		addTo(v, c, speed)
	}

	return v
}

// addTo computes dst += c·v.
func addTo(dst []float64, c float64, v []float64) {
	if c == 0 {
		return
	}
	for i, x := range v {
		dst[i] += c * x
	}
}

// checkElements refuses elements without effect, and friction elements at places where they cannot
// work.
func (a *assembly) checkElements() {
	for i, e := range a.Efforts {
		isFriction := slices.ContainsFunc(a.Frictions, func(k network.Friction) bool { return k.Name == e.Element })
		if len(e.Row) > 0 && network.Largest(a.along[i]) == 0 && !isFriction && !a.carriedByJoints(e.Row) {
			refuse(a.Plant, e.Element, e.At, "its ends turn together rigidly, it does nothing; remove it")
		}
	}

	for _, k := range a.Frictions {
		f := a.form(k.Rel)
		if network.Largest(f) == 0 {
			refuse(a.Plant, k.Name, k.At, "its sides turn together rigidly, it can never slip; remove it")
		}
		for j := range a.masslessCount {
			if f[a.freeCount+j] != 0 {
				refuse(a.Plant, k.Name, k.At, "it rubs on massless node %q, whose speed no gear determines; "+
					"give the node an inertia, or a gear to a node with inertia", a.masslessNode(j).Name)
			}
		}

		if network.Largest(f[:a.freeCount]) == 0 {
			refuse(a.Plant, k.Name, k.At, "the speeds of both its sides are prescribed; remove it")
		}
	}
}

// carriedByJoints reports whether joints carry the force along a row.
func (a *assembly) carriedByJoints(r network.Row) bool {
	return slices.ContainsFunc(r, func(t network.Term) bool {
		n := &a.Nodes[t.Node]
		return n.OfBody && n.Owner != "fixed" && network.Largest(a.rows[t.Node]) == 0
	})
}

// computeRates computes the rates of all states.
func (a *assembly) computeRates() {
	k := len(a.nodes)
	a.inertia = mat.NewDense(k, k, nil)
	for q, n := range a.Nodes {
		for i, u := range a.rows[q] {
			if u == 0 {
				continue
			}
			for j, v := range a.rows[q] {
				a.inertia.Set(i, j, a.inertia.At(i, j)+n.J*(u*v))
			}
		}
	}

	a.invertInertia()
	for _, e := range a.Efforts {
		a.values = append(a.values, a.resolvedForm(e.Value))
	}
	force := make([][]float64, a.freeCount)
	for j := range force {
		force[j] = a.force(j)
		for d := a.freeCount + a.masslessCount; d < k; d++ {
			addTo(force[j], -a.inertia.At(j, d), a.resolvedForm(a.states[a.driveState(d)].Der))
		}
	}

	for i := range a.freeCount {
		r := a.zero()
		for j := range a.freeCount {
			addTo(r, a.inverseInertia.At(i, j), force[j])
		}
		a.rates = append(a.rates, r)
	}

	for _, s := range a.states {
		a.rates = append(a.rates, a.resolvedForm(s.Der))
	}
}

// force returns the sum of all torques along column j of N, as a form.
func (a *assembly) force(j int) []float64 {
	f := a.zero()
	for i := range a.Efforts {
		addTo(f, a.along[i][j], a.values[i])
	}
	return f
}

// invertInertia inverts the inertias of the free nodes. Rows and columns are scaled by powers of
// two, so that inertias of very different size do not look singular.
func (a *assembly) invertInertia() {
	k := a.freeCount
	if k == 0 {
		refuseAt(a.Plant, wholeFile, "every inertia is driven by a speed source; nothing is left to simulate")
	}
	a.inverseInertia = mat.NewDense(k, k, nil)
	scale := make([]float64, k)
	for i := range k {
		_, e := math.Frexp(a.inertia.At(i, i))
		scale[i] = math.Ldexp(1, -e/2)
	}

	scaling := func(i, j int, v float64) float64 { return scale[i] * v * scale[j] }
	a.inverseInertia.Apply(scaling, a.inertia.Slice(0, k, 0, k))
	if err := a.inverseInertia.Inverse(a.inverseInertia); err != nil {
		refuseAt(a.Plant, wholeFile, "inertias and gear ratios differ too much in size to be solved together")
	}
	a.inverseInertia.Apply(scaling, a.inverseInertia)
}

// checkFinite refuses matrices that overflowed.
func (a *assembly) checkFinite(sys *model.System) {
	for _, matrix := range [][]float64{sys.A, sys.B, sys.Bc, sys.W, sys.E, sys.C, sys.D, sys.Dc, sys.X0} {
		for _, v := range matrix {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				refuseAt(a.Plant, wholeFile, "the matrices are not finite; parameters differ too much in size")
			}
		}
	}
}
