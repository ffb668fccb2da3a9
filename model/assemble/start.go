package assemble

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// initial is the solved start of a plant. The unknowns of places are the positions (angles) of the
// independent nodes, then the states that are no positions and no speeds.
type initial struct {
	*assembly
	places, speeds startSolver
}

// solveStart solves the start conditions of the plant together with its gears. It refuses
// conditions that contradict each other.
func (a *assembly) solveStart() *initial {
	in := &initial{assembly: a}
	a.refuseMixed()
	for _, r := range a.staticForms {
		in.places.add(in.balance(r), network.StartGiven)
	}

	var soft [2][network.StartDefault][]*startEquation // of places and of speeds
	for i := range a.Starts {
		s := &a.Starts[i]
		c, speed := in.condition(s)
		switch {
		case s.Rank == network.StartGiven:
			in.require(c, speed)
		case speed:
			soft[1][s.Rank] = append(soft[1][s.Rank], c)
		default:
			soft[0][s.Rank] = append(soft[0][s.Rank], c)
		}
	}

	for rank := network.StartGuess; rank < network.StartDefault; rank++ {
		for i, solver := range []*startSolver{&in.places, &in.speeds} {
			if err := solver.fitRank(soft[i][rank], rank); err != nil {
				refuseAt(a.Plant, wholeFile, "the springs differ too much in stiffness to find where they start: %v", err)
			}
		}
	}

	in.addDefaults()
	return in
}

// addDefaults lets all that is still open start at 0, in the order of the columns of N, and states at
// their own defaults.
func (in *initial) addDefaults() {
	for j := range in.nodes {
		row := make([]float64, len(in.nodes))
		row[j] = 1
		in.speeds.add(&startEquation{row: row}, network.StartDefault)
		in.places.add(&startEquation{row: in.widened(row)}, network.StartDefault)
	}

	for i, s := range in.Plant.States {
		if s.Along == nil && s.Speed == nil {
			row, _, _, _ := in.ofState(i)
			in.places.add(&startEquation{row: row, value: s.Start}, network.StartDefault)
		}
	}
}

// widened returns a row over the columns of N as a row over the unknowns of places.
func (a *assembly) widened(row []float64) []float64 {
	return append(slices.Clone(row), make([]float64, len(a.Plant.States))...)
}

// ofRow returns the position (angle) or the speed along a row of nodes: the row over the unknowns, a
// constant, and the largest term of the constant.
func (a *assembly) ofRow(r network.Row, speed bool) (row []float64, constant, size float64) {
	if row = a.form(r); speed {
		return row, 0, 0
	}
	for _, t := range r {
		at := a.offsets[t.Node]
		if n := &a.Nodes[t.Node]; n.Owner == "fixed" {
			at = n.Phi0
		}
		constant, size = constant+t.Coef*at, max(size, math.Abs(t.Coef*at))
	}

	return a.widened(row), constant, size
}

// ofState returns a state as ofRow does, and whether it is a speed.
func (a *assembly) ofState(i int) (row []float64, constant, size float64, speed bool) {
	s := &a.Plant.States[i]
	if speed = s.Speed != nil; speed {
		row, constant, size = a.ofRow(s.Speed, true)
		return row, constant, size, true
	}
	row, constant, size = a.ofRow(s.Along, false)
	if s.Along == nil {
		row[len(a.nodes)+i] = 1
		return row, 0, 0, false
	}
	return row, constant + s.Start, max(size, math.Abs(s.Start)), false
}

// condition returns a start condition over the unknowns, and whether it is one of speeds.
func (in *initial) condition(s *network.StartCondition) (c *startEquation, speed bool) {
	c, speed = &startEquation{StartCondition: s}, s.Speed
	constant := 0.0
	if s.State > 0 {
		c.row, constant, c.size, speed = in.ofState(s.State - 1)
	} else {
		c.row, constant, c.size = in.ofRow(s.Row, speed)
	}
	c.value, c.size = s.Value-constant, max(c.size, math.Abs(s.Value))
	c.text = fmt.Sprintf("%s %s of %q", s.Key, units.Format(s.Value, s.Unit), s.Element)
	if s.Preset != "" {
		c.text += " (start " + s.Preset + ")"
	}
	return c, speed
}

// balance returns the condition that the forces of springs on massless nodes balance, of a form over
// states.
func (in *initial) balance(form []float64) *startEquation {
	c := &startEquation{row: in.widened(make([]float64, len(in.nodes))), text: "the balance of springs at a massless node"}
	for i := range in.Plant.States {
		if !in.used[i] {
			continue
		}
		v := form[in.freeCount+in.stateOf[i]]
		row, constant, size, _ := in.ofState(i)
		if v != 0 {
			addTo(c.row, v, row)
			c.value -= v * constant
			c.size = max(c.size, math.Abs(v)*size)
		}
	}

	return c
}

// require adds a condition that the file gives, and refuses one that contradicts those before it.
func (in *initial) require(c *startEquation, speed bool) {
	solver := &in.places
	if speed {
		solver = &in.speeds
	}
	parts, _, off := solver.add(c, network.StartGiven)
	if off == 0 {
		return
	}
	var others []string
	for _, other := range solver.sources(parts) {
		if s := other.StartCondition; c.Yields && s != nil && s.Preset != "" {
			return
		}
		others = append(others, other.text)
	}
	by, makes := "the gears and joints", "make"
	if k := len(others); k > 0 {
		by = others[k-1]
		if k > 1 {
			by = strings.Join(others[:k-1], ", ") + " and " + by
		} else {
			makes = "makes"
		}
	}

	what := c.Key + " " + units.Format(c.Value, c.Unit)
	if c.Preset != "" {
		what += " (start " + c.Preset + ")"
	}
	refuse(in.Plant, c.Element, c.At, "%s contradicts %s, which %s it %s", what, by, makes, units.Format(units.DropRounding(c.Value-off), c.Unit))
}

// refuseMixed refuses a distance between a node with a position in the plane and a node of a body
// without one. The second node would be taken to lie at the centre of its body.
func (a *assembly) refuseMixed() {
	for _, t := range a.Ties {
		own := func(x network.Term) bool { return a.Nodes[x.Node].By == t.Name } // a line checks its points by itself
		if !slices.ContainsFunc(t.Row, own) {
			a.refuseMixedRow(t.Row, t.Name, t.At)
		}
	}

	for _, s := range a.states {
		a.refuseMixedRow(s.Along, s.Name[:max(0, strings.LastIndexByte(s.Name, '.'))], s.At)
	}
}

func (a *assembly) refuseMixedRow(r network.Row, element string, at network.Pos) {
	var place, loose *network.Node
	for _, t := range r {
		n := &a.Nodes[t.Node]
		if n.InPlane {
			place = n
		}
		if n.Displaced {
			loose = n
		}
	}

	if place != nil && loose != nil {
		refuse(a.Plant, element, at, "where %q is in the plane is not known, "+
			"but %q is at %s; give x_start and y_start to both bodies or to none",
			loose.Name, place.Name, units.Format(units.DropRounding(place.Phi0), "m"))
	}
}

// along returns the position (angle) or the speed along a row of nodes at the start, and its origin.
// A value that the file gives is returned to the last bit.
func (in *initial) along(r network.Row, speed bool) (v float64, origin string) {
	row, constant, size := in.ofRow(r, speed)
	same := func(s *network.StartCondition) bool {
		return s.State == 0 && s.Speed == speed && slices.Equal(s.Row, r)
	}
	return in.readValue(row, constant, size, speed, same)
}

// ofPlainState returns a state that is no position and no speed at the start, and its origin.
func (in *initial) ofPlainState(i int) (v float64, origin string) {
	row, _, _, _ := in.ofState(i)
	return in.readValue(row, 0, 0, false, func(s *network.StartCondition) bool { return s.State == 1+i })
}

// readValue returns the value of a row over the unknowns plus a constant, and its origin. same reports
// whether a start condition is one of this value.
func (in *initial) readValue(row []float64, constant, size float64, speed bool,
	same func(*network.StartCondition) bool) (v float64, origin string) {
	solver := &in.places
	if speed {
		solver = &in.speeds
	}
	v, largest, rank := solver.value(row)
	size = max(size, largest)
	if v += constant; math.Abs(v) <= startRound*size {
		v = 0
	}

	var by *network.StartCondition
	for i := range in.Starts {
		s := &in.Starts[i]
		if same(s) && math.Abs(s.Value-v) <= agreeWithin(s, size) && (by == nil || s.Rank < by.Rank) {
			by = s
		}
	}

	origin = [...]string{"solved", "guess", "springs relaxed", "default", "default"}[rank]
	if by != nil {
		v = by.Value
		if by.Rank == network.StartGiven {
			origin = fmt.Sprintf("%s of %s", by.Key, by.Element)
			if by.Preset != "" {
				origin = "start " + by.Preset
			}
		}
	}
	return v, origin
}

// stateValue returns state i of the plant at the start, and its origin.
func (in *initial) stateValue(i int) (v float64, origin string) {
	switch s := &in.Plant.States[i]; {
	case s.Speed != nil:
		return in.along(s.Speed, true)
	case s.Along == nil:
		return in.ofPlainState(i)
	default:
		v, origin = in.along(s.Along, false)
		return s.Start + v, origin
	}
}

// state returns the initial state of the System.
func (in *initial) state() (x []float64) {
	for _, n := range in.nodes[:in.freeCount] {
		v, _ := in.along(network.RowOf(n), true)
		x = append(x, v)
	}
	for i := range in.Plant.States {
		if in.used[i] {
			v, _ := in.stateValue(i)
			x = append(x, v)
		}
	}

	return x
}

// StartValue is a value at the start of a plant: a position, angle or speed of a node with inertia, or a
// state.
type StartValue struct {
	Name   string
	Value  float64
	Unit   string // SI
	Origin string // start key and its element, "solved", "springs relaxed", "guess" or "default"
}

// StartOf returns the start of a plant: its nodes with inertia, then its states. It fails where
// System fails to find the initial state.
func StartOf(p *network.Plant) (list []StartValue, err error) {
	defer yamlfile.Catch(&err)
	in := analyseNetwork(p).solveStart()
	known := map[string]bool{}
	add := func(name, unit string, v float64, origin string) {
		if !known[name] {
			known[name] = true
			list = append(list, StartValue{name, v, unit, origin})
		}
	}

	for i, n := range in.Nodes {
		if n.J > 0 {
			at, origin := in.along(network.RowOf(i), false)
			add(n.Name+n.Domain.Per(".phi", ".s"), n.AngleUnit(), at, origin)
			v, origin := in.along(network.RowOf(i), true)
			add(n.Name+n.Domain.Per(".w", ".v"), n.SpeedUnit(), v, origin)
		}
	}

	for i, s := range in.Plant.States {
		if in.used[i] {
			v, origin := in.stateValue(i)
			add(s.Name, s.Unit, v, origin)
		}
	}

	return list, nil
}

// startSignals returns the signals at the start of the plant, by their index: sources at their
// largest value, laws without friction torques. laws holds the laws among them.
func startSignals(sys *model.System, laws []*network.Law) []float64 {
	v := make([]float64, len(sys.Signals))
	for j := range v {
		switch s := &sys.Signals[j]; {
		case s.Law != nil:
			v[j], _ = laws[j].At(argumentsAt(s.Law, sys.X0, v))
		case s.Affine != nil:
			z, r := sys.Switches[s.Affine.Switch].At(sys.X0)
			v[j] = s.Affine.Slope[r]*z + s.Affine.Offset[r]
		default:
			if low, high := network.SourceRange(s.Source); high >= low {
				v[j] = high
				if -low > high {
					v[j] = low
				}
			}
		}
	}

	return v
}

// argumentsAt returns the arguments of a law in state x with the signals v.
func argumentsAt(p *model.Program, x, v []float64) (args []float64) {
	for i := range p.Args {
		args = append(args, functionalAt(&p.Args[i], x, v))
	}
	return args
}

// functionalAt returns the value of a functional in state x with the signals v.
func functionalAt(f *model.Functional, x, v []float64) float64 {
	sum := f.Const
	for i, c := range f.Row {
		sum += c * x[i]
	}
	for i, j := range f.Signal {
		sum += f.Coef[i] * v[j]
	}
	return sum
}
