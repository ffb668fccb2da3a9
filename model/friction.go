package model

import (
	"math"
	"slices"
)

func frictionKinds() []kind {
	grip := []string{"mu", "mu_pos", "cgeo", "peak", "fn", "fn_max", "f_normalized", "area", "pressure", "p0"}
	stribeck := func(tau string) []string {
		return []string{tau + "_pos", "peak", tau + "_Coulomb", tau + "_Stribeck", tau + "_prop", "fexp"}
	}
	return []kind{
		{name: "clutch", flanges: ends(rotational), keys: grip, read: readClutch},
		{name: "brake", flanges: onSupport(anyDomain), keys: grip, read: readClutch},
		{name: "one_way_clutch", flanges: ends(rotational), keys: grip, read: readClutch},
		{name: "freewheel", flanges: ends(rotational), read: readFreewheel},
		{name: "bearing_friction", flanges: onSupport(rotational), keys: stribeck("tau"), read: readBearing},
		{name: "support_friction", flanges: onSupport(translational), keys: stribeck("f"), read: readBearing},
	}
}

// rub makes a friction element whose capacity is gain·max(0, v[signal] - offset).
func (e *element) rub(k Friction) declared {
	k.Name = e.name
	k.Translational = len(e.between) > 0 && e.plant.nodes[e.between[0].node].domain == translational
	e.plant.frictions = append(e.plant.frictions, friction{Friction: k, at: e.at, rel: e.between, press: k.Signal, rough: k.Gain * k.Peak})
	tau := frictionOf(len(e.plant.frictions) - 1)
	e.act(e.between, tau.scaled(-1))
	if e.err == nil && math.IsInf(k.Gain, 0) {
		e.fail(e.at, "%s: mu·cgeo·area is not a finite number", e.what())
	}
	return declared{rel: e.between, tau: tau, unit: e.per("N.m", "N"), friction: true}
}

// pressed tells of the friction element d, made last, what presses it, and its torque at
// most for each N of that.
func (e *element) pressed(d declared, fn int, rough float64) declared {
	f := &e.plant.frictions[len(e.plant.frictions)-1]
	f.press, f.rough = fn, rough
	return d
}

func (e *element) peak(missing float64) float64 {
	peak, f := e.option("peak", "1", missing)
	if !(peak >= 1) {
		e.fail(f.at, "%s: peak %g is below 1; it is static over sliding friction", e.what(), peak)
	}
	return peak
}

// readClutch reads a clutch, brake or freewheel with a clutch beside it. Its torque
// is at most mu·cgeo·fn.
func readClutch(e *element) declared {
	k := Friction{Gain: 1}
	mu := readCoefficient(e)
	cgeo := 1.0
	if e.domain == translational {
		cgeo = e.atLeastZero("cgeo", "1", 1)
	} else {
		var f field
		cgeo, f = e.number("cgeo", "m", "friction surfaces times mean radius")
		e.notNegative(cgeo, f, "cgeo", "m")
	}
	oneWay := e.kind.name == "one_way_clutch"
	k.Peak, k.OneWay = e.peak(1), oneWay
	if oneWay && !e.has("peak") {
		k.Peak = 1 + 1e-4
	}
	var most float64
	k.Gain, k.Offset, most, k.Signal = readNormalForce(e)
	k.Gain *= cgeo
	if oneWay && e.err == nil {
		k.Floor = 1e-4 * mu.Z[0] * cgeo * most
	}
	if e.err != nil || len(mu.X) == 1 {
		if e.err == nil {
			k.Gain *= mu.Z[0]
		}
		return e.rub(k)
	}
	// The capacity depends on the slip: mu(|w_rel|)·cgeo·(fn - offset) is a law.
	var l law
	slip := l.arg(e.between.speeds(1), mu.steepest()*e.plant.largest(k.Signal))
	l.do(Abs).look(mu)
	e.plant.depends(&l, slip, l.arg(append(signalOf(k.Signal), one(-k.Offset)...), 0), k.Signal)
	l.push(0).do(Max, Mul)
	fn := k.Signal
	k.Signal, k.Offset = e.addLaw(e.name+".mu_fn", "1", &l), 0
	guardBreakpoints(e, mu, e.between.speeds(1))
	return e.pressed(e.rub(k), fn, slices.Max(mu.Z)*k.Gain*k.Peak)
}

// guardBreakpoints places a guard on the corners of a table over |f|.
func guardBreakpoints(e *element, t Table, f form) {
	points := t.bends()
	for len(points) > 0 && points[0] <= 0 {
		points = points[1:]
	}
	if len(points) == 0 {
		return
	}
	var g law
	g.arg(f, 0)
	g.do(Abs).look(corners(points))
	e.addGuard(&g)
}

// readCoefficient reads mu, or mu_pos: rows of slip and coefficient.
func readCoefficient(e *element) Table {
	f, ok := e.fields["mu_pos"]
	if !ok {
		mu, f := e.number("mu", "1", "coefficient of friction")
		e.notNegative(mu, f, "mu", "1")
		return Table{X: []float64{0}, Z: []float64{mu}}
	}
	if g, both := e.fields["mu"]; both {
		e.fail(g.keyAt, "%s: mu and mu_pos; one of them is wanted", e.what())
	}
	return readSlipTable(e, f, "1")
}

// readSlipTable reads rows [slip, value] with slip >= 0, the first at 0, values >= 0.
func readSlipTable(e *element, f field, unit string) Table {
	t := e.table(f, e.per("rad/s", "m/s"), unit)
	if e.err != nil {
		return Table{X: []float64{0}, Z: []float64{0}}
	}
	t.Extend = true // as in the Modelica Standard Library
	if t.X[0] != 0 {
		e.fail(f.at, "%s: %s: the first row is at slip %g; 0 is wanted", e.what(), f.key, t.X[0])
	}
	for i, z := range t.Z {
		if !(z >= 0) {
			e.fail(f.at, "%s: %s: value %g in row %d is negative", e.what(), f.key, z, i+1)
		}
	}
	return t
}

// readNormalForce reads fn, or fn_max·f_normalized, or area·max(0, pressure - p0), as
// gain·max(0, signal - offset); most is fn_max where it is known.
func readNormalForce(e *element) (gain, offset, most float64, signal int) {
	given := 0
	for _, key := range []string{"fn", "f_normalized", "pressure"} {
		if e.has(key) {
			given++
		}
	}
	if given != 1 {
		e.fail(e.at, "%s: %s needs either fn (normal force, N) or area and pressure", e.what(), e.kind.name)
		return
	}
	only := func(with string, keys ...string) {
		for _, key := range keys {
			if f, ok := e.fields[key]; ok {
				e.fail(f.keyAt, "%s: %s goes with %s", e.what(), key, with)
			}
		}
	}
	switch {
	case e.has("fn"):
		only("pressure, not with fn", "area", "p0")
		most = e.atLeastZero("fn_max", "N", 0)
		return 1, 0, most, e.drive(e.fields["fn"], "N")
	case e.has("f_normalized"):
		only("pressure", "area", "p0")
		most = e.need("fn_max", "N", "largest normal force")
		return most, 0, most, e.drive(e.fields["f_normalized"], "1")
	}
	only("fn or f_normalized", "fn_max")
	area, f := e.number("area", "m2", "piston area")
	e.notNegative(area, f, "area", "m2")
	offset = e.atLeastZero("p0", "Pa", 0)
	return area, offset, 0, e.drive(e.fields["pressure"], "Pa")
}

// readFreewheel is w_b >= w_a, and no torque while w_b > w_a.
func readFreewheel(e *element) declared {
	e.plant.signals = append(e.plant.signals, signal{name: e.name + ".fn", at: e.at, source: constant(0), read: true})
	return e.rub(Friction{Signal: len(e.plant.signals) - 1, Gain: 1, Peak: 1, OneWay: true})
}

// readBearing reads the friction of a bearing or support: a table over the speed, or
// Coulomb + Stribeck·exp(-fexp·|w|) + prop·|w|.
func readBearing(e *element) declared {
	name := e.per("tau", "f")
	if f, ok := e.fields[name+"_pos"]; ok {
		for _, key := range []string{"_Coulomb", "_Stribeck", "_prop"} {
			if g, both := e.fields[name+key]; both {
				e.fail(g.keyAt, "%s: %s and %s_pos; one of them is wanted", e.what(), g.key, name)
			}
		}
		t := readSlipTable(e, f, e.per("N.m", "N"))
		k := Friction{Gain: 1, Peak: e.peak(1)}
		if len(t.X) == 1 {
			k.Signal = e.fixedSignal(name, t.Z[0])
			return e.rub(k)
		}
		var l law
		l.arg(e.between.speeds(1), t.steepest())
		l.do(Abs).look(t)
		k.Signal = e.addLaw(e.name+"."+name, e.per("N.m", "N"), &l)
		guardBreakpoints(e, t, e.between.speeds(1))
		return e.rub(k)
	}
	unit := e.per("N.m", "N")
	coulomb, f := e.number(name+"_Coulomb", unit, "Coulomb friction")
	e.notNegative(coulomb, f, name+"_Coulomb", unit)
	extra := e.atLeastZero(name+"_Stribeck", unit, 0)
	prop := e.atLeastZero(name+"_prop", e.per("N.m.s/rad", "N.s/m"), 0)
	k := Friction{Gain: 1, Peak: e.peak(1.001)}
	if extra == 0 {
		k.Signal = e.fixedSignal(name, coulomb)
	} else {
		fexp := e.need("fexp", e.per("s/rad", "s/m"), "decay of the Stribeck effect")
		var l law
		l.arg(e.between.speeds(1), extra*fexp)
		l.do(Abs).times(-fexp).do(Exp).times(extra).push(coulomb).do(Add)
		k.Signal = e.addLaw(e.name+"."+name, unit, &l)
	}
	d := e.rub(k)
	if prop > 0 {
		e.act(e.between, e.between.speeds(-prop))
		d.tau = d.tau.plus(e.between.speeds(prop))
	}
	return d
}

// fixedSignal is a constant of the element as a signal.
func (e *element) fixedSignal(name string, v float64) int {
	e.plant.signals = append(e.plant.signals, signal{name: e.name + "." + name, at: e.at, source: constant(v), read: true})
	return len(e.plant.signals) - 1
}
