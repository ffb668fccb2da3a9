package model

import "math"

func tyreKinds() []kind {
	return []kind{{name: "tyre", flanges: []flange{{"a", rotational, false}, {"b", anyDomain, false}},
		keys: []string{"radius", "fn", "friction", "mu", "peak", "B", "C", "D", "E", "S_h", "S_v", "relaxation", "damping", "v_low", "v_range"}, read: readTyre}}
}

// tyre is what readTyre makes of a wheel (flange a) that rolls on the road under a
// vehicle (flange b): slip speed v_s = radius·w_a - v_b.
type tyre struct {
	*element
	load, road int // signals; road -1: the friction of the road is 1
	vs, v      form
	k          int    // state of the relaxation length
	force      string // unit
}

// readTyre reads a tyre: Coulomb friction (mu), or the magic formula (000 eq. 135 to
// 138).
func readTyre(e *element) declared {
	radius := 1.0
	switch f, given := e.fields["radius"]; {
	case e.domain == translational:
		x, f := e.number("radius", "m", "effective, of the wheel")
		e.positive(x, f, "radius", "m")
		radius = x
	case given:
		e.fail(f.keyAt, "%s: radius goes with a vehicle that moves; %q turns with the wheel", e.what(), e.plant.nodes[e.node("b")].name)
	}
	e.between = row{e.term("b", -1), e.term("a", radius)}
	t := tyre{element: e, load: e.command("fn", "N", "normal force, its load"), road: -1,
		vs: e.between.speeds(1), v: rowOf(e.node("b")).speeds(1), force: e.per("N.m", "N")}
	if e.err != nil {
		return declared{}
	}
	if _, most := t.plant.span(t.load); !(most > 0) {
		e.fail(e.fields["fn"].at, "%s: fn %s is never positive; a tyre without load transmits nothing", e.what(), withUnit(most, "N"))
	}
	if e.has("friction") {
		t.road = e.command("friction", "1", "of the road")
		if e.err != nil {
			return declared{}
		}
		if _, most := t.plant.span(t.road); !(most > 0) {
			e.fail(e.fields["friction"].at, "%s: friction %g is never positive; such a road holds nothing", e.what(), most)
		}
		t.guardZero(t.road)
	}
	if t.road >= 0 || !e.has("mu") { // Coulomb friction alone follows its load itself
		t.guardZero(t.load)
	}
	magic := []string{"B", "C", "D", "E", "S_h", "S_v", "relaxation", "damping", "v_low", "v_range"}
	if !e.has("mu") {
		magic = []string{"peak"}
	}
	for _, key := range magic {
		if f, ok := e.fields[key]; ok {
			e.fail(f.keyAt, "%s: %s and mu: a tyre is Coulomb friction (mu, peak) or the magic formula (B, C, D, E)", e.what(), key)
		}
	}
	if e.has("mu") {
		return t.coulomb()
	}
	f := t.magic()
	e.act(e.between, f.scaled(-1))
	return declared{rel: e.between, tau: f, unit: t.force}
}

// guardZero guards the place where a signal passes zero, below which it counts as zero.
func (t *tyre) guardZero(signal int) {
	if t.err != nil {
		return
	}
	if low, _ := t.plant.span(signal); low < 0 {
		t.guardPoints(signalOf(signal), []float64{0})
	}
}

// coulomb is |force| <= mu·fn·friction.
func (t *tyre) coulomb() declared {
	mu := t.need("mu", "1", "coefficient of friction")
	k := Friction{Gain: mu, Signal: t.load, Peak: t.peak(1)}
	if t.road >= 0 {
		var l law
		l.arg(signalOf(t.load), 0)
		l.push(0).do(Max)
		l.arg(signalOf(t.road), 0)
		l.do(Mul)
		k.Signal = t.addLaw(t.name+".grip", "N", &l)
		return t.pressed(t.rub(k), t.load, mu*k.Peak*t.plant.largest(t.road))
	}
	return t.rub(k)
}

// slip makes the signal of the slip:
//
//	kappa = v_s/max(|v|, v_low) + S_h, or with a relaxation length v_s/max(|v|, |v_s|) + S_h
func (t *tyre) slip(length float64) int {
	unit := t.per("rad/s", "m/s")
	shift, _ := t.option("S_h", "1", 0)
	low := t.above0("v_low", unit, 1)
	var l law
	if length == 0 {
		l.arg(t.vs, 1/low)
		l.arg(t.v, 0)
		l.do(Abs).push(low)
	} else {
		vs := l.arg(t.vs, 1/length)
		l.arg(t.v, 0)
		l.do(Abs).again(vs).do(Abs)
	}
	l.do(Max, Div).push(shift).do(Add)
	return t.addLaw(t.name+".slip", "1", &l)
}

// rolled checks what goes with a relaxation length and returns it, guarding the corners of
// the slip.
func (t *tyre) rolled() (length float64) {
	relaxed := t.has("relaxation")
	for key, with := range map[string]bool{"damping": true, "v_range": true, "v_low": false} {
		if f, ok := t.fields[key]; ok && with != relaxed {
			t.fail(f.keyAt, "%s: %s goes %s relaxation", t.what(), key, map[bool]string{true: "with", false: "without"}[with])
		}
	}
	length = t.atLeastZero("relaxation", t.per("rad", "m"), 0)
	var g law // |v|, and v_low or |v_s|
	g.arg(t.v, 0)
	if g.do(Abs); length == 0 {
		g.push(t.above0("v_low", t.per("rad/s", "m/s"), 1))
	} else {
		g.arg(t.vs, 0)
		g.do(Abs)
	}
	t.addGuard(g.do(Sub))
	return length
}

// formula is the magic formula with B, C, D and E numbers or tables over fn, and how steep
// its force is at most.
type formula struct {
	shape    map[string]Table
	steepest float64 // per 1 of slip
}

func (t *tyre) formula() formula {
	m := formula{map[string]Table{}, 1}
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
	if t.err != nil {
		return m
	}
	m.steepest *= t.plant.largest(t.load)
	if t.road >= 0 {
		m.steepest *= t.plant.largest(t.road)
	}
	return m
}

// push pushes a coefficient at the load that is argument fn.
func (m *formula) push(l *law, key string, fn int) {
	if table := m.shape[key]; len(table.X) > 1 {
		l.again(fn).look(table)
	} else {
		l.push(table.Z[0])
	}
}

// sine pushes sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))).
func (m *formula) sine(l *law, kappa, fn int) {
	stretched := func() { // B·kappa
		m.push(l, "B", fn)
		l.again(kappa).do(Mul)
	}
	stretched()
	m.push(l, "E", fn)
	stretched()
	stretched()
	l.do(Atan, Sub, Mul, Sub, Atan)
	m.push(l, "C", fn)
	l.do(Mul, Sin)
}

// loaded multiplies the top by D·fn·friction.
func (t *tyre) loaded(m *formula, l *law, fn int) {
	m.push(l, "D", fn)
	l.do(Mul).again(fn).push(0).do(Max, Mul)
	if t.road >= 0 {
		l.arg(signalOf(t.road), 0)
		l.push(0).do(Max, Mul)
	}
}

// magic is the force at a slip:
//
//	friction·fn·D·sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))) + S_v
func (t *tyre) magic() form {
	length := t.rolled()
	m := t.formula()
	shift, _ := t.option("S_v", t.force, 0)
	if t.err != nil {
		return nil
	}
	slip := t.slip(length)
	t.named["slip"] = reading{signalOf(slip), "1"}
	var l law
	if length > 0 {
		t.tread(&m, &l, slip, length)
	} else {
		kappa, fn := l.arg(signalOf(slip), m.steepest), l.arg(signalOf(t.load), 0)
		l.ops = nil
		t.plant.depends(&l, kappa, fn, t.load)
		m.sine(&l, kappa, fn)
		t.loaded(&m, &l, fn)
	}
	l.push(shift).do(Add)
	return signalOf(t.addLaw(t.name+"."+t.per("tau", "f"), t.force, &l))
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
func (t *tyre) tread(m *formula, l *law, slip int, length float64) {
	fast := t.above0("v_range", t.per("rad/s", "m/s"), 50)
	lag := t.atLeastZero("damping", "s", 20e-3)
	t.k = t.addState(state{name: "k", unit: "1"})
	var sine, path, rate law
	kappa, fn := sine.arg(signalOf(slip), 1), sine.arg(signalOf(t.load), 0)
	sine.ops = nil
	m.sine(&sine, kappa, fn)
	m.push(&sine, "B", fn)
	m.push(&sine, "C", fn)
	g := signalOf(t.addLaw(t.name+".stretch", "1", sine.do(Mul, Div)))

	path.arg(signalOf(slip), 0)
	path.do(Abs)
	path.arg(g, 0)
	path.do(Abs, Div).push(1).do(Max).push(mostShort).do(Min)
	path.arg(t.v, 0)
	path.do(Abs)
	path.arg(t.vs, 0)
	p := signalOf(t.addLaw(t.name+".path", t.per("rad/s", "m/s"), path.do(Abs, Max, Mul)))

	to, k := rate.arg(g, 1), rate.arg(stateOf(t.k), fast/length)
	rate.ops = nil
	rate.again(to).again(k).do(Sub)
	rate.arg(p, 0)
	rate.push(fast).do(Min, Mul).times(1 / length)
	t.plant.states[t.k].der = signalOf(t.addLaw(t.name+".slip_rate", "1/s", &rate))

	k, to, way, load := l.arg(stateOf(t.k), m.steepest), l.arg(g, m.steepest*lag), l.arg(p, 0), l.arg(signalOf(t.load), 0)
	l.ops = nil
	t.plant.depends(l, k, load, t.load)
	t.plant.depends(l, to, load, t.load)
	l.again(k).again(to).again(k).do(Sub)
	l.again(way).push(fast).do(Min).times(lag/length).push(1).push(fast).again(way).do(Div, Sub, Max).push(1).do(Min, Mul, Add)
	m.push(l, "B", load)
	m.push(l, "C", load)
	l.do(Mul, Mul)
	t.loaded(m, l, load)
	t.leads(p, fast, length, lag)
}

// leads guards where the lead begins and ends to grow.
func (t *tyre) leads(p form, fast, length, lag float64) {
	corner := func(at float64) {
		var l law
		l.arg(p, 0)
		t.addGuard(l.push(at).do(Sub))
	}
	if lag*fast >= length {
		corner(length / lag)
	} else {
		corner(fast)
	}
}

// loadTable reads a coefficient: a number, or rows of load and number.
func (t *tyre) loadTable(key string) Table {
	f, ok := t.fields[key]
	if !ok {
		t.fail(t.at, "%s: tyre needs %s (of the magic formula), or mu", t.what(), key)
		return Table{}
	}
	if _, single := ScalarText(f.node); single {
		v := t.value(f, "1")
		if key == "B" || key == "D" {
			t.positive(v, f, key, "1")
		}
		return Table{X: []float64{0}, Z: []float64{v}}
	}
	m := t.table(f, "N", "1")
	for _, z := range m.Z {
		if key == "B" || key == "D" {
			t.positive(z, f, key, "1")
		}
	}
	t.guardPoints(signalOf(t.load), m.bends())
	return m
}
