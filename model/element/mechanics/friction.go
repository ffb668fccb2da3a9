package mechanics

import (
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
)

func frictionKinds() []element.Kind {
	grip := []string{"mu", "mu_pos", "cgeo", "peak", "fn", "fn_max", "f_normalized", "area", "pressure", "p0"}
	stribeck := func(tau string) []string {
		return []string{tau + "_pos", "peak", tau + "_Coulomb", tau + "_Stribeck", tau + "_prop", "fexp"}
	}
	return []element.Kind{
		{Name: "clutch", Flanges: element.Ends(network.Rotational), Keys: grip, Read: readClutch},
		{Name: "brake", Flanges: element.OnSupport(network.AnyDomain), Keys: grip, Read: readClutch},
		{Name: "one_way_clutch", Flanges: element.Ends(network.Rotational), Keys: grip, Read: readClutch},
		{Name: "freewheel", Flanges: element.Ends(network.Rotational), Read: readFreewheel},
		{Name: "bearing_friction", Flanges: element.OnSupport(network.Rotational),
			Keys: stribeck("tau"), Read: readBearing},
		{Name: "support_friction", Flanges: element.OnSupport(network.Translational),
			Keys: stribeck("f"), Read: readBearing},
	}
}

// readClutch reads a clutch, brake or freewheel with a clutch beside it. Its torque
// is at most mu·cgeo·fn.
func readClutch(e *element.Element) element.Declared {
	k := model.Friction{Gain: 1}
	mu := readCoefficient(e)
	cgeo := 1.0
	if e.Domain == network.Translational {
		cgeo = e.AtLeastZero("cgeo", "1", 1)
	} else {
		var f syntax.Field
		cgeo, f = e.Number("cgeo", "m", "friction surfaces times mean radius")
		e.NotNegative(cgeo, f, "cgeo", "m")
	}
	oneWay := e.Kind.Name == "one_way_clutch"
	k.Peak, k.OneWay = e.Peak(1), oneWay
	if oneWay && !e.Has("peak") {
		k.Peak = 1 + 1e-4
	}
	var most float64
	k.Gain, k.Offset, most, k.Signal = readNormalForce(e)
	k.Gain *= cgeo
	if oneWay && e.Err == nil {
		k.Floor = 1e-4 * mu.Z[0] * cgeo * most
	}
	if e.Err != nil || len(mu.X) == 1 {
		if e.Err == nil {
			k.Gain *= mu.Z[0]
		}
		return e.AddFriction(k)
	}
	// The capacity depends on the slip: mu(|w_rel|)·cgeo·(fn - offset) is a law.
	var l network.Law
	slip := l.Arg(e.Between.Speeds(1), mu.MaxSlope()*e.Network.MaxAbs(k.Signal))
	l.Do(model.Abs).Look(mu)
	e.Network.SizeSlope(&l, slip, l.Arg(append(network.SignalOf(k.Signal), network.One(-k.Offset)...), 0), k.Signal)
	l.Push(0).Do(model.Max, model.Mul)
	fn := k.Signal
	k.Signal, k.Offset = e.AddLaw(e.Name+".mu_fn", "1", &l), 0
	guardBreakpoints(e, mu, e.Between.Speeds(1))
	return e.PressedBy(e.AddFriction(k), fn, slices.Max(mu.Z)*k.Gain*k.Peak)
}

// guardBreakpoints places a guard on the corners of a table over |f|.
func guardBreakpoints(e *element.Element, t model.Table, f network.Form) {
	points := t.Breakpoints()
	for len(points) > 0 && points[0] <= 0 {
		points = points[1:]
	}
	if len(points) == 0 {
		return
	}
	var g network.Law
	g.Arg(f, 0)
	g.Do(model.Abs).Look(element.GuardTable(points))
	e.AddGuard(&g)
}

// readCoefficient reads mu, or mu_pos: rows of slip and coefficient.
func readCoefficient(e *element.Element) model.Table {
	f, ok := e.Fields["mu_pos"]
	if !ok {
		mu, f := e.Number("mu", "1", "coefficient of friction")
		e.NotNegative(mu, f, "mu", "1")
		return model.Table{X: []float64{0}, Z: []float64{mu}}
	}
	if g, both := e.Fields["mu"]; both {
		e.Fail(g.KeyAt, "%s: mu and mu_pos; one of them is wanted", e.What())
	}
	return readSlipTable(e, f, "1")
}

// readSlipTable reads rows [slip, value] with slip >= 0, the first at 0, values >= 0.
func readSlipTable(e *element.Element, f syntax.Field, unit string) model.Table {
	t := e.Table(f, e.Per("rad/s", "m/s"), unit)
	if e.Err != nil {
		return model.Table{X: []float64{0}, Z: []float64{0}}
	}
	t.Extend = true // as in the Modelica Standard Library
	if t.X[0] != 0 {
		e.Fail(f.At, "%s: %s: the first row is at slip %g; 0 is wanted", e.What(), f.Key, t.X[0])
	}
	for i, z := range t.Z {
		if !(z >= 0) {
			e.Fail(f.At, "%s: %s: value %g in row %d is negative", e.What(), f.Key, z, i+1)
		}
	}
	return t
}

// readNormalForce reads fn, or fn_max·f_normalized, or area·max(0, pressure - p0), as
// gain·max(0, signal - offset); most is fn_max where it is known.
func readNormalForce(e *element.Element) (gain, offset, most float64, signal int) {
	given := 0
	for _, key := range []string{"fn", "f_normalized", "pressure"} {
		if e.Has(key) {
			given++
		}
	}
	if given != 1 {
		e.Fail(e.At, "%s: %s needs either fn (normal force, N) or area and pressure", e.What(), e.Kind.Name)
		return
	}
	only := func(with string, keys ...string) {
		for _, key := range keys {
			if f, ok := e.Fields[key]; ok {
				e.Fail(f.KeyAt, "%s: %s goes with %s", e.What(), key, with)
			}
		}
	}
	switch {
	case e.Has("fn"):
		only("pressure, not with fn", "area", "p0")
		most = e.AtLeastZero("fn_max", "N", 0)
		return 1, 0, most, e.Waveform(e.Fields["fn"], "N")
	case e.Has("f_normalized"):
		only("pressure", "area", "p0")
		most = e.Need("fn_max", "N", "largest normal force")
		return most, 0, most, e.Waveform(e.Fields["f_normalized"], "1")
	}
	only("fn or f_normalized", "fn_max")
	area, f := e.Number("area", "m2", "piston area")
	e.NotNegative(area, f, "area", "m2")
	offset = e.AtLeastZero("p0", "Pa", 0)
	return area, offset, 0, e.Waveform(e.Fields["pressure"], "Pa")
}

// readFreewheel is w_b >= w_a, and no torque while w_b > w_a.
func readFreewheel(e *element.Element) element.Declared {
	e.Network.Signals = append(e.Network.Signals, network.Signal{Name: e.Name + ".fn", At: e.At, Source: network.Constant(0), Read: true})
	return e.AddFriction(model.Friction{Signal: len(e.Network.Signals) - 1, Gain: 1, Peak: 1, OneWay: true})
}

// readBearing reads the friction of a bearing or support: a table over the speed, or
// Coulomb + Stribeck·exp(-fexp·|w|) + prop·|w|.
func readBearing(e *element.Element) element.Declared {
	name := e.Per("tau", "f")
	if f, ok := e.Fields[name+"_pos"]; ok {
		for _, key := range []string{"_Coulomb", "_Stribeck", "_prop"} {
			if g, both := e.Fields[name+key]; both {
				e.Fail(g.KeyAt, "%s: %s and %s_pos; one of them is wanted", e.What(), g.Key, name)
			}
		}
		t := readSlipTable(e, f, e.Per("N.m", "N"))
		k := model.Friction{Gain: 1, Peak: e.Peak(1)}
		if len(t.X) == 1 {
			k.Signal = e.AddConstant(name, t.Z[0])
			return e.AddFriction(k)
		}
		var l network.Law
		l.Arg(e.Between.Speeds(1), t.MaxSlope())
		l.Do(model.Abs).Look(t)
		k.Signal = e.AddLaw(e.Name+"."+name, e.Per("N.m", "N"), &l)
		guardBreakpoints(e, t, e.Between.Speeds(1))
		return e.AddFriction(k)
	}
	unit := e.Per("N.m", "N")
	coulomb, f := e.Number(name+"_Coulomb", unit, "Coulomb friction")
	e.NotNegative(coulomb, f, name+"_Coulomb", unit)
	extra := e.AtLeastZero(name+"_Stribeck", unit, 0)
	prop := e.AtLeastZero(name+"_prop", e.Per("N.m.s/rad", "N.s/m"), 0)
	k := model.Friction{Gain: 1, Peak: e.Peak(1.001)}
	if extra == 0 {
		k.Signal = e.AddConstant(name, coulomb)
	} else {
		fexp := e.Need("fexp", e.Per("s/rad", "s/m"), "decay of the Stribeck effect")
		var l network.Law
		l.Arg(e.Between.Speeds(1), extra*fexp)
		l.Do(model.Abs).Times(-fexp).Do(model.Exp).Times(extra).Push(coulomb).Do(model.Add)
		k.Signal = e.AddLaw(e.Name+"."+name, unit, &l)
	}
	d := e.AddFriction(k)
	if prop > 0 {
		e.Exert(e.Between, e.Between.Speeds(-prop))
		d.Tau = d.Tau.Plus(e.Between.Speeds(prop))
	}
	return d
}
