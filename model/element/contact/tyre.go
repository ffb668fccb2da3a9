package contact

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

func tyreKinds() []element.Kind {
	return []element.Kind{{Name: "tyre", Flanges: append(element.Flanges(network.Rotational, "a"), element.Flanges(network.AnyDomain, "b")...),
		Keys: []string{"radius", "fn", "friction", "mu", "peak", "B", "C", "D", "E", "S_h", "S_v", "relaxation", "damping", "v_low", "v_range"}, Read: readTyre}}
}

// tyre is what readTyre makes of a wheel (flange a) that rolls on the road under a
// vehicle (flange b): slip speed v_s = radius·w_a - v_b.
type tyre struct {
	*element.Element
	load, road int // signals; road -1: the friction of the road is 1
	vs, v      network.Form
	k          int    // state of the relaxation length
	force      string // unit
}

// readTyre reads a tyre: Coulomb friction (mu), or the magic formula (000 eq. 135 to
// 138).
func readTyre(e *element.Element) element.Declared {
	radius := 1.0
	switch f, given := e.Fields["radius"]; {
	case e.Domain == network.Translational:
		x, f := e.Number("radius", "m", "effective, of the wheel")
		e.Positive(x, f, "radius", "m")
		radius = x
	case given:
		e.Fail(f.KeyAt, "%s: radius goes with a vehicle that moves; %q turns with the wheel", e.What(), e.Network.Nodes[e.Node("b")].Name)
	}
	e.Between = network.Row{e.Term("b", -1), e.Term("a", radius)}
	t := tyre{Element: e, load: e.NeedWaveform("fn", "N", "normal force, its load"), road: -1,
		vs: e.Between.Speeds(1), v: network.RowOf(e.Node("b")).Speeds(1), force: e.Per("N.m", "N")}
	if e.Err != nil {
		return element.Declared{}
	}
	if _, most := t.Network.Range(t.load); !(most > 0) {
		e.Fail(e.Fields["fn"].At, "%s: fn %s is never positive; a tyre without load transmits nothing", e.What(), units.Format(most, "N"))
	}
	if e.Has("friction") {
		t.road = e.NeedWaveform("friction", "1", "of the road")
		if e.Err != nil {
			return element.Declared{}
		}
		if _, most := t.Network.Range(t.road); !(most > 0) {
			e.Fail(e.Fields["friction"].At, "%s: friction %g is never positive; such a road holds nothing", e.What(), most)
		}
		t.guardZero(t.road)
	}
	if t.road >= 0 || !e.Has("mu") { // Coulomb friction alone follows its load itself
		t.guardZero(t.load)
	}
	magic := []string{"B", "C", "D", "E", "S_h", "S_v", "relaxation", "damping", "v_low", "v_range"}
	if !e.Has("mu") {
		magic = []string{"peak"}
	}
	for _, key := range magic {
		if f, ok := e.Fields[key]; ok {
			e.Fail(f.KeyAt, "%s: %s and mu: a tyre is Coulomb friction (mu, peak) or the magic formula (B, C, D, E)", e.What(), key)
		}
	}
	if e.Has("mu") {
		return t.coulomb()
	}
	f := t.magic()
	e.Exert(e.Between, f.Scaled(-1))
	return element.Declared{Rel: e.Between, Tau: f, Unit: t.force}
}

// guardZero guards the place where a signal passes zero, below which it counts as zero.
func (t *tyre) guardZero(signal int) {
	if t.Err != nil {
		return
	}
	if low, _ := t.Network.Range(signal); low < 0 {
		t.GuardPoints(network.SignalOf(signal), []float64{0})
	}
}

// coulomb is |force| <= mu·fn·friction.
func (t *tyre) coulomb() element.Declared {
	mu := t.Need("mu", "1", "coefficient of friction")
	k := model.Friction{Gain: mu, Signal: t.load, Peak: t.Peak(1)}
	if t.road >= 0 {
		var l network.Law
		l.Arg(network.SignalOf(t.load), 0)
		l.Push(0).Do(model.Max)
		l.Arg(network.SignalOf(t.road), 0)
		l.Do(model.Mul)
		k.Signal = t.AddLaw(t.Name+".grip", "N", &l)
		return t.PressedBy(t.AddFriction(k), t.load, mu*k.Peak*t.Network.MaxAbs(t.road))
	}
	return t.AddFriction(k)
}

// slip makes the signal of the slip:
//
//	kappa = v_s/max(|v|, v_low) + S_h, or with a relaxation length v_s/max(|v|, |v_s|) + S_h
func (t *tyre) slip(length float64) int {
	unit := t.Per("rad/s", "m/s")
	shift, _ := t.Option("S_h", "1", 0)
	low := t.AboveZero("v_low", unit, 1)
	var l network.Law
	if length == 0 {
		l.Arg(t.vs, 1/low)
		l.Arg(t.v, 0)
		l.Do(model.Abs).Push(low)
	} else {
		vs := l.Arg(t.vs, 1/length)
		l.Arg(t.v, 0)
		l.Do(model.Abs).Again(vs).Do(model.Abs)
	}
	l.Do(model.Max, model.Div).Push(shift).Do(model.Add)
	return t.AddLaw(t.Name+".slip", "1", &l)
}

// rolled checks what goes with a relaxation length and returns it, guarding the corners of
// the slip.
func (t *tyre) rolled() (length float64) {
	relaxed := t.Has("relaxation")
	for key, with := range map[string]bool{"damping": true, "v_range": true, "v_low": false} {
		if f, ok := t.Fields[key]; ok && with != relaxed {
			t.Fail(f.KeyAt, "%s: %s goes %s relaxation", t.What(), key, map[bool]string{true: "with", false: "without"}[with])
		}
	}
	length = t.AtLeastZero("relaxation", t.Per("rad", "m"), 0)
	var g network.Law // |v|, and v_low or |v_s|
	g.Arg(t.v, 0)
	if g.Do(model.Abs); length == 0 {
		g.Push(t.AboveZero("v_low", t.Per("rad/s", "m/s"), 1))
	} else {
		g.Arg(t.vs, 0)
		g.Do(model.Abs)
	}
	t.AddGuard(g.Do(model.Sub))
	return length
}

// formula is the magic formula with B, C, D and E numbers or tables over fn, and how steep
// its force is at most.
type formula struct {
	shape    map[string]model.Table
	steepest float64 // per 1 of slip
}

func (t *tyre) formula() formula {
	m := formula{map[string]model.Table{}, 1}
	for _, key := range []string{"B", "C", "D", "E"} {
		table := t.loadTable(key)
		most := 0.0
		for _, z := range table.Z {
			most = max(most, math.Abs(z))
		}
		if key != "E" {
			m.steepest *= most
		}
		m.shape[key] = table
	}
	if t.Err != nil {
		return m
	}
	m.steepest *= t.Network.MaxAbs(t.load)
	if t.road >= 0 {
		m.steepest *= t.Network.MaxAbs(t.road)
	}
	return m
}

// push pushes a coefficient at the load that is argument fn.
func (m *formula) push(l *network.Law, key string, fn int) {
	if table := m.shape[key]; len(table.X) > 1 {
		l.Again(fn).Look(table)
	} else {
		l.Push(table.Z[0])
	}
}

// sine pushes sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))).
func (m *formula) sine(l *network.Law, kappa, fn int) {
	stretched := func() { // B·kappa
		m.push(l, "B", fn)
		l.Again(kappa).Do(model.Mul)
	}
	stretched()
	m.push(l, "E", fn)
	stretched()
	stretched()
	l.Do(model.Atan, model.Sub, model.Mul, model.Sub, model.Atan)
	m.push(l, "C", fn)
	l.Do(model.Mul, model.Sin)
}

// loaded multiplies the top by D·fn·friction.
func (t *tyre) loaded(m *formula, l *network.Law, fn int) {
	m.push(l, "D", fn)
	l.Do(model.Mul).Again(fn).Push(0).Do(model.Max, model.Mul)
	if t.road >= 0 {
		l.Arg(network.SignalOf(t.road), 0)
		l.Push(0).Do(model.Max, model.Mul)
	}
}

// magic is the force at a slip:
//
//	friction·fn·D·sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))) + S_v
func (t *tyre) magic() network.Form {
	length := t.rolled()
	m := t.formula()
	shift, _ := t.Option("S_v", t.force, 0)
	if t.Err != nil {
		return nil
	}
	slip := t.slip(length)
	t.Named["slip"] = element.Reading{Form: network.SignalOf(slip), Unit: "1"}
	var l network.Law
	if length > 0 {
		t.tread(&m, &l, slip, length)
	} else {
		kappa, fn := l.Arg(network.SignalOf(slip), m.steepest), l.Arg(network.SignalOf(t.load), 0)
		l.Ops = nil
		t.Network.SizeSlope(&l, kappa, fn, t.load)
		m.sine(&l, kappa, fn)
		t.loaded(&m, &l, fn)
	}
	l.Push(shift).Do(model.Add)
	return network.SignalOf(t.AddLaw(t.Name+"."+t.Per("tau", "f"), t.force, &l))
}

// mostShort is by how much a slip can shorten the relaxation length.
const mostShort = 100

// tread pushes the force of a tread that the slip stretches, up to g, what the formula has
// at it; k is both over the slope of the formula at no slip:
//
//	k' = r·(g - k),  r = min(p, v_range)/relaxation,  p = max(|v|, |v_s|)·kappa/g
//	force = friction·fn·B·C·D·(k + lead·(g - k)) + S_v,  lead = min(1, max(damping·r, 1 - v_range/p))
//
// At standstill k is the deflection of a spring over the relaxation length and damping its
// damper, at speed the force is that of the formula. Beyond its peak a locked wheel has
// stretched the tread no more than the force it bears: it does not throw the car back.
// The tread gives no more than it took, whatever the speed.
func (t *tyre) tread(m *formula, l *network.Law, slip int, length float64) {
	fast := t.AboveZero("v_range", t.Per("rad/s", "m/s"), 50)
	lag := t.AtLeastZero("damping", "s", 20e-3)
	t.k = t.AddState(network.State{Name: "k", Unit: "1"})
	var sine, path, rate network.Law
	kappa, fn := sine.Arg(network.SignalOf(slip), 1), sine.Arg(network.SignalOf(t.load), 0)
	sine.Ops = nil
	m.sine(&sine, kappa, fn)
	m.push(&sine, "B", fn)
	m.push(&sine, "C", fn)
	g := network.SignalOf(t.AddLaw(t.Name+".stretch", "1", sine.Do(model.Mul, model.Div)))

	path.Arg(network.SignalOf(slip), 0)
	path.Do(model.Abs)
	path.Arg(g, 0)
	path.Do(model.Abs, model.Div).Push(1).Do(model.Max).Push(mostShort).Do(model.Min)
	path.Arg(t.v, 0)
	path.Do(model.Abs)
	path.Arg(t.vs, 0)
	p := network.SignalOf(t.AddLaw(t.Name+".path", t.Per("rad/s", "m/s"), path.Do(model.Abs, model.Max, model.Mul)))

	to, k := rate.Arg(g, 1), rate.Arg(network.StateOf(t.k), fast/length)
	rate.Ops = nil
	rate.Again(to).Again(k).Do(model.Sub)
	rate.Arg(p, 0)
	rate.Push(fast).Do(model.Min, model.Mul).Times(1 / length)
	t.Network.States[t.k].Der = network.SignalOf(t.AddLaw(t.Name+".slip_rate", "1/s", &rate))

	k, to, way, load := l.Arg(network.StateOf(t.k), m.steepest), l.Arg(g, m.steepest*lag), l.Arg(p, 0), l.Arg(network.SignalOf(t.load), 0)
	l.Ops = nil
	t.Network.SizeSlope(l, k, load, t.load)
	t.Network.SizeSlope(l, to, load, t.load)
	l.Again(k).Again(to).Again(k).Do(model.Sub)
	l.Again(way).Push(fast).Do(model.Min).Times(lag/length).Push(1).Push(fast).Again(way).Do(model.Div, model.Sub, model.Max).Push(1).Do(model.Min, model.Mul, model.Add)
	m.push(l, "B", load)
	m.push(l, "C", load)
	l.Do(model.Mul, model.Mul)
	t.loaded(m, l, load)
	t.leads(p, fast, length, lag)
}

// leads guards where the lead begins and ends to grow.
func (t *tyre) leads(p network.Form, fast, length, lag float64) {
	corner := func(at float64) {
		var l network.Law
		l.Arg(p, 0)
		t.AddGuard(l.Push(at).Do(model.Sub))
	}
	if lag*fast >= length {
		corner(length / lag)
	} else {
		corner(fast)
	}
}

// loadTable reads a coefficient: a number, or rows of load and number.
func (t *tyre) loadTable(key string) model.Table {
	f, ok := t.Fields[key]
	if !ok {
		t.Fail(t.At, "%s: tyre needs %s (of the magic formula), or mu", t.What(), key)
		return model.Table{}
	}
	if _, single := syntax.ScalarText(f.Node); single {
		v := t.Value(f, "1")
		if key == "B" || key == "D" {
			t.Positive(v, f, key, "1")
		}
		return model.Table{X: []float64{0}, Z: []float64{v}}
	}
	m := t.Table(f, "N", "1")
	for _, z := range m.Z {
		if key == "B" || key == "D" {
			t.Positive(z, f, key, "1")
		}
	}
	t.GuardPoints(network.SignalOf(t.load), m.Breakpoints())
	return m
}
