package mechanics

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// staticPeak is the static over the sliding friction of Coulomb and Stribeck friction.
const staticPeak = 1.001

func frictionKinds() []element.Kind {
	ends, on := element.Ends, element.OnSupport
	factor, temperature := element.FactorParameters("friction")
	pressed := func(peak string) parameters {
		return parameters{
			number("mu", "1", "0.5", notNegative, "coefficient of friction, without mu_pos").Within(0, 10),
			rows("mu_pos", speed+", 1", "mu", notNegative, "[slip, coefficient], from slip 0 on").Within(0, 10),
			number("cgeo", "m|1", "1", notNegative, "friction surfaces times mean radius|factor").Within(0, 1e6),
			number("peak", "1", peak, element.AtLeastOne, "static over sliding friction").Within(0, 1e3),
			over("fn", "N", "or pressure", unbounded, "normal force"),
			over("f_normalized", "1", "or pressure", unbounded, "normal force over fn_max").Within(0, 1e3),
			number("fn_max", "N", "0", notNegative, "largest normal force; with f_normalized > 0"),
			over("pressure", "Pa", "or fn", unbounded, "pressure on the piston"),
			number("area", "m2", "with pressure", notNegative, "area of the piston"),
			number("p0", "Pa", "0", notNegative, "pressure at which the normal force begins"),
			factor, temperature, element.HeatParameter(),
		}
	}
	loss := adds{element.LossQuantity}
	bearing := parameters{
		rows("tau_pos|f_pos", speed+", "+torque, "or tau_Coulomb|or f_Coulomb", notNegative,
			"[slip, friction], from slip 0 on"),
		number("tau_Coulomb|f_Coulomb", torque, "or tau_pos|or f_pos", notNegative, "Coulomb friction"),
		number("tau_Stribeck|f_Stribeck", torque, "0", notNegative, "Stribeck friction at zero slip"),
		number("fexp", "s/rad|s/m", "with Stribeck", positive, "decay of the Stribeck friction"),
		number("tau_prop|f_prop", damping, "0", notNegative, "viscous friction"),
		number("peak", "1", "1.001 or 1", element.AtLeastOne, "static over sliding friction; 1 with rows").Within(0, 1e3),
		factor, temperature, element.HeatParameter(),
	}
	return []element.Kind{
		{Name: "clutch", Flanges: ends(turns), Parameters: pressed("1"), Read: readClutch, Adds: loss},
		{Name: "brake", Flanges: on(either), Parameters: pressed("1"), Read: readClutch, Adds: loss},
		{Name: "one_way_clutch", Flanges: ends(turns), Parameters: pressed("1.0001"), Read: readClutch, Adds: loss},
		{Name: "freewheel", Flanges: ends(turns), Read: readFreewheel},
		{Name: "bearing_friction", Flanges: on(turns), Parameters: bearing, Read: readBearing, Adds: loss},
		{Name: "support_friction", Flanges: on(moves), Parameters: bearing, Read: readBearing, Adds: loss},
		dragKind(),
	}
}

// readClutch reads a clutch, a brake or a one-way clutch, whose torque is at most mu·cgeo·fn.
func readClutch(e *element.Element) element.Declared {
	mu := readCoefficient(e)
	cgeo := e.Number("cgeo")
	k := model.Friction{Peak: e.Number("peak"), OneWay: e.Kind.Name == "one_way_clutch"}
	var most float64
	k.Gain, k.Offset, most, k.Signal = readNormalForce(e)
	k.Gain *= cgeo
	factor, largestFactor := e.TemperatureFactor()
	if k.OneWay {
		k.Floor = 1e-4 * mu.Z[0] * cgeo * most
	}
	if len(mu.X) == 1 && factor == nil {
		k.Gain *= mu.Z[0]
		return declareLoss(e, e.AddFriction(k))
	}

	// The capacity depends on the slip or a temperature: mu(|w_rel|)·factor_T·cgeo·(fn - offset) is a law.
	fn, highest := k.Signal, network.Largest(mu.Z)
	capacity := law.Formula("mu*max(0, fn)", law.Names{"mu": law.Lookup(mu, slipOf(e)).Within(-highest, highest),
		"fn": network.SignalOf(fn).Plus(network.One(-k.Offset))})
	if factor != nil {
		capacity = law.Formula("factor*capacity", law.Names{"factor": factor, "capacity": capacity})
	}
	k.Signal, k.Offset = e.AddLaw("mu_fn", "1", capacity).Index(), 0
	return declareLoss(e, e.PressedBy(e.AddFriction(k), fn, slices.Max(mu.Z)*largestFactor*k.Gain*k.Peak))
}

// readFactor is TemperatureFactor for an element whose type may lack factor_T.
func readFactor(e *element.Element) (factor *law.Expr, most float64) {
	if !slices.Contains(e.Kind.Keys(), "factor_T") {
		return nil, 1
	}
	return e.TemperatureFactor()
}

// declareLoss declares the loss tau·w_rel of a friction element.
func declareLoss(e *element.Element, d element.Declared) element.Declared {
	e.AddLoss(law.Power(d.Tau, e.Between.Speeds(1)))
	return d
}

// slipOf returns |w_rel| of a friction element, whose reversal is an event of its own.
func slipOf(e *element.Element) *law.Expr {
	return law.Formula("abs(w)", law.Names{"w": e.Between.Speeds(1)}).Plain().Within(0, math.Inf(1))
}

// readCoefficient reads mu, or mu_pos: rows of slip and coefficient.
func readCoefficient(e *element.Element) model.Table {
	if !e.Has("mu_pos") {
		return element.Constant(e.Number("mu"))
	}
	e.Forbid("and mu_pos; one of them is wanted", "mu")
	return readSlipTable(e, "mu_pos")
}

// readSlipTable reads rows [slip, value] with slip >= 0, the first at 0.
func readSlipTable(e *element.Element, key string) model.Table {
	t := e.Table(key)
	t.Extend = true // as in the Modelica Standard Library
	if f, _ := e.Field(key); t.X[0] != 0 {
		e.Refuse(f.At, "%s: the first row is at slip %g; 0 is wanted", f.Key, t.X[0])
	}
	return t
}

// readNormalForce reads fn, or fn_max·f_normalized, or area·max(0, pressure - p0), and returns it as
// gain·max(0, signal - offset). most is fn_max, 0 if unknown.
func readNormalForce(e *element.Element) (gain, offset, most float64, signal int) {
	given := slices.DeleteFunc([]string{"fn", "f_normalized", "pressure"}, func(key string) bool { return !e.Has(key) })
	if len(given) != 1 {
		e.Refuse(e.At, "%s needs either fn (normal force, N) or area and pressure", e.Kind.Name)
	}
	switch key := given[0]; key {
	case "fn":
		e.Forbid("goes with pressure, not with fn", "area", "p0")
		if e.Kind.Name != "one_way_clutch" {
			e.Forbid("goes with f_normalized", "fn_max")
		}
		return 1, 0, e.NumberOr("fn_max", 0), e.Waveform(key)
	case "f_normalized":
		e.Forbid("goes with pressure", "area", "p0")
		if most = e.Number("fn_max"); !(most > 0) {
			e.Refuse(e.Place("fn_max"), "fn_max %g N is not positive", most)
		}
		return most, 0, most, e.Waveform(key)
	default:
		e.Forbid("goes with fn or f_normalized", "fn_max")
		return e.Number("area"), e.Number("p0"), 0, e.Waveform(key)
	}
}

// readFreewheel reads a freewheel: w_b >= w_a, without torque while w_b > w_a.
func readFreewheel(e *element.Element) element.Declared {
	return e.AddFriction(model.Friction{Signal: e.AddConstant("fn", 0), Gain: 1, Peak: 1, OneWay: true})
}

// readBearing reads the friction of a bearing or support: a table over the speed, or
// Coulomb + Stribeck·exp(-fexp·|w|) + prop·|w|.
func readBearing(e *element.Element) element.Declared {
	name, unit := e.Per("tau", "f"), e.Per("N.m", "N")
	k := model.Friction{Gain: 1}
	factor, _ := e.TemperatureFactor()
	capacity := func(value *law.Expr) int {
		if factor != nil {
			value = law.Formula("factor*value", law.Names{"factor": factor, "value": value})
		}
		return e.AddLaw(name, unit, value).Index()
	}
	if e.Has("tau_pos") {
		e.Forbid("and "+name+"_pos; one of them is wanted", "tau_Coulomb", "tau_Stribeck", "tau_prop", "fexp")
		t := readSlipTable(e, "tau_pos")
		k.Peak = e.NumberOr("peak", 1)
		if len(t.X) == 1 && factor == nil {
			k.Signal = e.AddConstant(name, t.Z[0])
		} else {
			k.Signal = capacity(law.Lookup(t, slipOf(e)))
		}
		return declareLoss(e, e.AddFriction(k))
	}

	coulomb, extra, prop := e.Number("tau_Coulomb"), e.Number("tau_Stribeck"), e.Number("tau_prop")
	k.Peak = e.NumberOr("peak", staticPeak)
	if !e.Has("tau_Stribeck") {
		e.Forbid("goes with "+name+"_Stribeck", "fexp")
	}
	switch {
	case extra > 0:
		k.Signal = capacity(law.Formula("tau_Coulomb + tau_Stribeck*exp(-fexp*w)", law.Names{
			"tau_Coulomb": coulomb, "tau_Stribeck": extra, "fexp": e.Number("fexp"), "w": slipOf(e)}))
	case factor != nil:
		e.NumberOr("fexp", 0) // without effect, but checked
		k.Signal = capacity(law.Number(coulomb))
	default:
		e.NumberOr("fexp", 0)
		k.Signal = e.AddConstant(name, coulomb)
	}

	d := e.AddFriction(k)
	if prop > 0 {
		viscous := e.Between.Speeds(prop)
		if factor != nil {
			viscous = e.AddLaw("viscous", unit, law.Formula("factor*viscous", law.Names{"factor": factor, "viscous": viscous}))
		}
		e.Exert(e.Between, viscous.Scaled(-1))
		d.Tau = d.Tau.Plus(viscous)
	}

	return declareLoss(e, d)
}
