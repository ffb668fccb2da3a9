package contact

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// adhesions holds the keys of each law of a rail_contact.
var adhesions = map[string][]string{
	"gyebroszki":       {"mu0", "A", "v_star", "T_sgn", "peak"},
	"curtius_kniffler": {"T_sgn", "peak"},
	"polach":           {"mu0", "A", "B", "C", "a_ellipse", "b_ellipse", "k_A", "k_S", "v_low"},
}

// rail is the contact of a wheel (flange a) with a rail under its axle (flange b) during reading.
type rail struct {
	tyre
	most float64   // largest condition of the track, 1
	N    *law.Expr // normal force times the condition of the track
}

// readRail reads the adhesion of a wheel on the rail: with v_s = radius·w_a - v_b, N =
// max(0, fn) times the condition of the track,
//
//	gyebroszki        |f| <= mu(v_s)·N,  mu = mu0·((1 - A)·exp(-|v_s|/v_star) + A)
//	curtius_kniffler  |f| <= mu(v_b)·N,  mu = 7.5/(3.6·|v_b| + 44) + 0.161
//	polach            f = 2/pi·mu·N·(k_A·e/(1 + (k_A·e)²) + atan(k_S·e))·sign(v_s)
//	                  e = 2/3·C·pi·a²·b/(mu·N)·|v_s|/max(|v_b|, v_low),  mu = mu0·((1 - A)·exp(-B·|v_s|) + A)
//
// Gyebroszki, Efficient numerical time-domain simulation of rail vehicles with coupled
// simulator systems, eq. 6.5.1 to 6.5.4; Curtius and Kniffler, Elektrische Bahnen 9, 1944;
// Polach, Creep forces in simulations of traction vehicles running on adhesion limit, Wear
// 258, 2005. The first two are friction elements, which can lock. With T_sgn they are v_s/T_sgn times
// their largest force while |v_s| < T_sgn.
func readRail(e *element.Element) element.Declared {
	r := rail{tyre: tyre{Element: e, road: -1, force: "N"}, most: 1}
	adhesion := e.Word("law")
	for _, other := range slices.Sorted(maps.Keys(adhesions)) {
		for _, key := range adhesions[other] {
			if !slices.Contains(adhesions[adhesion], key) {
				e.Forbid("goes with law: "+other, key)
			}
		}
	}

	radius := 1.0 // a wheel that moves has the speed of its rim
	if a := &e.Network.Nodes[e.Node("a")]; a.Domain != network.Translational {
		radius = e.Number("radius")
	} else {
		e.Forbid(fmt.Sprintf("goes with a wheel that turns; %q moves with its rim", a.Name), "radius")
	}

	r.roll(radius)
	r.load = e.Waveform("fn")
	e.NameForm("fn", network.SignalOf(r.load))
	r.track()
	if adhesion == "polach" {
		return r.polach()
	}
	return r.coulombs(adhesion)
}

// track reads the normal force and the condition of the track: a factor over time, and rows
// [position, factor].
func (r *rail) track() {
	r.readRoad()
	if r.road >= 0 {
		r.most *= r.Network.MaxAbs(r.road)
	}
	r.N = r.pressed()
	if !r.Has("way") {
		return
	}
	t := r.Table("way")
	if !(slices.Max(t.Z) > 0) {
		r.Refuse(r.Place("way"), "way: no factor is positive; such a track holds nothing")
	}
	r.most *= slices.Max(t.Z)
	r.N = law.Formula("N*way(s)", law.Names{"N": r.N, "way": t, "s": network.StateOf(r.Angle(r.Node("b")))})
}

// coulombs makes a law with a largest force: a friction element, or with T_sgn a slope up to that
// force.
func (r *rail) coulombs(name string) element.Declared {
	steep, names := 7.5/44+0.161, law.Names{"N": r.N, "v_s": r.vs, "v": r.v}
	mu, creep := "(7.5/(3.6*abs(v) + 44) + 0.161)", r.Number("T_sgn")
	slip := law.Formula("abs(v_s)", names)
	if creep == 0 { // the reversal of the slip is an event of the friction element
		slip = slip.Plain()
	}
	names["slip"] = slip
	if name == "gyebroszki" {
		steep = r.Number("mu0")
		names["mu0"], names["A"], names["v_star"] = steep, r.Number("A"), r.Number("v_star")
		mu = "mu0*((1 - A)*exp(-1/v_star*slip) + A)"
	}

	if creep == 0 {
		grip := r.AddLaw("grip", "N", law.Formula("N*"+mu, names))
		k := model.Friction{Gain: 1, Peak: r.Number("peak"), Signal: grip.Index()}
		return r.PressedBy(r.AddFriction(k), r.load, steep*r.most*k.Peak)
	}

	r.Forbid("goes without T_sgn; a slope has no static friction", "peak")
	names["T_sgn"] = creep
	return r.Resist(r.AddLaw("f", "N", law.Formula("N*"+mu+"*clamp(v_s/T_sgn, -1, 1)", names)))
}

// polach makes the law of Polach. Its largest slope, at v_s = 0, is 2/pi·(k_A + k_S)·G/v_low with
// G = 2/3·C·pi·a²·b. Along v and the largest force, e·h' and h - e·h' of h(e) = k_A·e/(1 + (k_A·e)²) +
// atan(k_S·e) are at most 3/4 and pi/2.
func (r *rail) polach() element.Declared {
	mu0, a, b := r.Number("mu0"), r.Number("a_ellipse"), r.Number("b_ellipse")
	G := 2. / 3 * math.Pi * a * a * b * r.Number("C")
	kA, kS, low := r.Number("k_A"), r.Number("k_S"), r.Number("v_low")
	if !(kS <= kA) {
		r.Refuse(r.Place("k_S"), "k_S %g is above k_A %g; slip takes more than adhesion then", kS, kA)
	}

	most := mu0 * r.most * r.Network.MaxAbs(r.load)
	grip := r.AddLaw("grip", "N", law.Formula("N*mu0*((1 - A)*exp(-B*abs(v_s)) + A)",
		law.Names{"N": r.N, "v_s": r.vs, "mu0": mu0, "A": r.Number("A"), "B": r.Number("B")}))
	e := law.Formula("G*v_s/max(abs(v), v_low)/grip",
		law.Names{"G": G, "v_s": r.vs, "v": r.v, "v_low": low, "grip": law.Of(grip).Within(0, most)})
	f := law.Formula("2/pi*grip*(k_A*e/(1 + k_A*k_A*e*e) + atan(k_S*e))",
		law.Names{"pi": math.Pi, "grip": law.Of(grip).Within(0, most), "e": e, "k_A": kA, "k_S": kS})
	return r.Resist(r.AddLaw("f", "N", f.WithSlope(r.vs, 2/math.Pi*(kA+kS)*G/low).
		WithSlope(r.v, 2/math.Pi*0.75*most/low).WithSlope(grip, 1)))
}
