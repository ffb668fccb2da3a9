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
	e.between = row{{e.node("b"), -1}, {e.node("a"), radius}}
	t := tyre{element: e, load: e.command("fn", "N", "normal force, its load"), road: -1,
		vs: e.between.speeds(1), v: row{{e.node("b"), 1}}.speeds(1), force: e.per("N.m", "N")}
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

// slip makes the signal of the slip kappa:
//
//	kappa = v_s/max(|v|, v_low) + S_h, or with a relaxation length
//	relaxation·k' = v_s - u·k,  u = max(|v|, |v_s|),  kappa = k + min(damping, relaxation/u)·k' + S_h
//
// At standstill k is the deflection of a spring over the relaxation length and damping
// its damper; at speed both laws are the same.
func (t *tyre) slip() int {
	unit := t.per("rad/s", "m/s")
	shift, _ := t.option("S_h", "1", 0)
	low := t.above0("v_low", unit, 1)
	length := t.atLeastZero("relaxation", t.per("rad", "m"), 0)
	lag := t.atLeastZero("damping", "s", 20e-3)
	var l law
	if length == 0 {
		l.arg(t.vs, 1/low)
		l.arg(t.v, 0)
		l.do(Abs).push(low).do(Max, Div)
	} else {
		vs, v, k := l.arg(t.vs, lag/length), l.arg(t.v, 0), l.arg(stateOf(t.k), 1)
		l.ops = nil
		u := func() *law { return l.again(v).do(Abs).again(vs).do(Abs, Max) }
		l.again(vs)
		u().again(k).do(Mul, Sub).times(lag / length)
		u().times(lag/length).push(1).do(Max, Div).again(k).do(Add)
	}
	l.push(shift).do(Add)
	return t.addLaw(t.name+".slip", "1", &l)
}

// roll checks what slip reads, makes its state and guards its corners.
func (t *tyre) roll() {
	relaxed := t.has("relaxation")
	for key, with := range map[string]bool{"damping": true, "v_range": true, "v_low": false} {
		if f, ok := t.fields[key]; ok && with != relaxed {
			t.fail(f.keyAt, "%s: %s goes %s relaxation", t.what(), key, map[bool]string{true: "with", false: "without"}[with])
		}
	}
	speed := func() (l law) {
		l.arg(t.v, 0)
		l.do(Abs)
		return l
	}
	length := t.atLeastZero("relaxation", t.per("rad", "m"), 0)
	if length == 0 {
		g := speed()
		t.addGuard(g.push(t.above0("v_low", t.per("rad/s", "m/s"), 1)).do(Sub))
		return
	}
	fast := t.above0("v_range", t.per("rad/s", "m/s"), 50)
	t.k = t.addState(state{name: "k", unit: "1"})
	rate, faster := speed(), speed() // |v_s| passes |v|
	vs := rate.arg(t.vs, 1/length)
	rate.do(Abs, Max)
	rate.arg(stateOf(t.k), fast/length)
	rate.do(Mul, Neg).again(vs).do(Add).times(1 / length)
	t.plant.states[t.k].der = signalOf(t.addLaw(t.name+".slip_rate", "1/s", &rate))
	faster.arg(t.vs, 0)
	t.addGuard(faster.do(Abs, Sub))
	if lag := t.atLeastZero("damping", "s", 20e-3); lag > 0 {
		led := speed() // the damper ends
		led.arg(t.vs, 0)
		t.addGuard(led.do(Abs, Max).push(length / lag).do(Sub))
	}
}

// magic is the force at a slip:
//
//	friction·fn·D·sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))) + S_v
//
// with B, C, D and E numbers or tables over fn.
func (t *tyre) magic() form {
	var l law
	t.roll()
	shape := map[string]Table{}
	steep := 1.0
	for _, key := range []string{"B", "C", "D", "E"} {
		m := t.loadTable(key)
		most := 0.0
		for _, z := range m.Z {
			most = max(most, math.Abs(z))
		}
		if key != "E" {
			steep *= most
		}
		shape[key] = m
	}
	shift, _ := t.option("S_v", t.force, 0)
	if t.err != nil {
		return nil
	}
	steep *= t.plant.largest(t.load)
	if t.road >= 0 {
		steep *= t.plant.largest(t.road)
	}
	slip := t.slip()
	t.named["slip"] = reading{signalOf(slip), "1"}
	kappa, fn := l.arg(signalOf(slip), steep), l.arg(signalOf(t.load), 0)
	t.plant.depends(&l, kappa, fn, t.load)
	l.ops = nil
	coefficient := func(key string) {
		if m := shape[key]; len(m.X) > 1 {
			l.again(fn).look(m)
		} else {
			l.push(m.Z[0])
		}
	}
	stretched := func() { // B·kappa
		coefficient("B")
		l.again(kappa).do(Mul)
	}
	stretched()
	coefficient("E")
	stretched()
	stretched()
	l.do(Atan, Sub, Mul, Sub, Atan)
	coefficient("C")
	l.do(Mul, Sin)
	coefficient("D")
	l.do(Mul).again(fn).push(0).do(Max, Mul)
	if t.road >= 0 {
		l.arg(signalOf(t.road), 0)
		l.push(0).do(Max, Mul)
	}
	l.push(shift).do(Add)
	return signalOf(t.addLaw(t.name+"."+t.per("tau", "f"), t.force, &l))
}

// loadTable reads a coefficient: a number, or rows of load and number.
func (t *tyre) loadTable(key string) Table {
	f, ok := t.fields[key]
	if !ok {
		t.fail(t.at, "%s: tyre needs %s (of the magic formula), or mu", t.what(), key)
		return Table{}
	}
	if _, single := scalarText(f.node); single {
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
