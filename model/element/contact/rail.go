package contact

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
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
	heaviest float64      // largest normal force expected, N
	most     float64      // largest condition of the track, 1
	way      *model.Table // condition of the track over the position of the axle; nil: 1
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
	law := e.Word("law")
	for _, other := range slices.Sorted(maps.Keys(adhesions)) {
		for _, key := range adhesions[other] {
			if !slices.Contains(adhesions[law], key) {
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
	r.addZeroBreakpoint(r.load)
	r.heaviest = e.Network.MaxAbs(r.load)
	r.track()
	r.heaviest *= r.most
	if law == "polach" {
		return r.polach()
	}
	return r.coulombs(law)
}

// readSized pushes f in a law that begins with pushLoad; the slope along f grows with the load.
func (r *rail) readSized(l *network.Law, f network.Form, slope float64) *network.Law {
	i := l.Read(f, slope)
	r.Network.SizeSlope(l, i, 0, r.load)
	return l.Again(i)
}

// track reads the condition of the track: a factor over time, and rows [position, factor].
func (r *rail) track() {
	r.readRoad()
	if r.road >= 0 {
		r.most *= r.Network.MaxAbs(r.road)
	}
	if !r.Has("way") {
		return
	}
	t := r.Table("way")
	if !(slices.Max(t.Z) > 0) {
		r.Refuse(r.Place("way"), "way: no factor is positive; such a track holds nothing")
	}
	r.way = &t
	r.most *= slices.Max(t.Z)
	r.AddBreakpoints(network.StateOf(r.Angle(r.Node("b"))), t.Breakpoints())
}

// pushLoad begins a law with the normal force times the condition of the track; steep is the largest
// slope of the law along that product.
func (r *rail) pushLoad(steep float64) *network.Law {
	l := network.LawOf(network.SignalOf(r.load), steep*r.most).Push(0).Do(model.Max)
	r.pushRoad(l)
	if r.way != nil {
		slope := steep * r.heaviest / r.most * r.way.MaxSlope()
		r.readSized(l, network.StateOf(r.Angle(r.Node("b"))), slope).Look(*r.way).Do(model.Mul)
	}

	return l
}

// pushFalling replaces the top, v_s, by mu0·((1 - A)·exp(-rate·|v_s|) + A).
func (r *rail) pushFalling(l *network.Law, mu0, A, rate float64) *network.Law {
	return l.Do(model.Abs).Times(-rate).Do(model.Exp).Times(mu0 * (1 - A)).Push(mu0 * A).Do(model.Add)
}

// coulombs makes a law with a largest force: a friction element, or with T_sgn a slope up to that
// force.
func (r *rail) coulombs(name string) element.Declared {
	steep, l := 0.0, r.pushLoad(1)
	if name == "gyebroszki" {
		mu0, A, fall := r.Number("mu0"), r.Number("A"), r.Number("v_star")
		steep = mu0
		r.pushFalling(r.readSized(l, r.vs, mu0*(1-A)/fall*r.heaviest), mu0, A, 1/fall)
	} else {
		steep = 7.5/44 + 0.161
		r.readSized(l.Push(7.5), r.v, 3.6*7.5/(44*44)*r.heaviest)
		l.Do(model.Abs).Times(3.6).Push(44).Do(model.Add, model.Div).Push(0.161).Do(model.Add)
	}

	l.Do(model.Mul)
	l.Slopes[0] *= steep
	creep := r.Number("T_sgn")
	if creep == 0 {
		k := model.Friction{Gain: 1, Peak: r.Number("peak"), Signal: r.AddProgram("grip", "N", l).Index()}
		return r.PressedBy(r.AddFriction(k), r.load, steep*r.most*k.Peak)
	}

	r.Forbid("goes without T_sgn; a slope has no static friction", "peak")
	r.readSized(l, r.vs, steep*r.heaviest/creep)
	l.Times(1/creep).Push(1).Do(model.Min).Push(-1).Do(model.Max, model.Mul)
	r.AddIndicator(network.LawOf(r.vs, 0).Do(model.Abs).Push(creep).Do(model.Sub))
	return r.Resist(r.AddProgram("f", "N", l))
}

// polach makes the law of Polach. Its largest slope, at v_s = 0, is 2/pi·(k_A + k_S)·G/v_low with
// G = 2/3·C·pi·a²·b.
func (r *rail) polach() element.Declared {
	mu0, A, fall := r.Number("mu0"), r.Number("A"), r.Number("B")
	a, b := r.Number("a_ellipse"), r.Number("b_ellipse")
	G := 2. / 3 * math.Pi * a * a * b * r.Number("C")
	kA, kS, low := r.Number("k_A"), r.Number("k_S"), r.Number("v_low")
	if !(kS <= kA) {
		r.Refuse(r.Place("k_S"), "k_S %g is above k_A %g; slip takes more than adhesion then", kS, kA)
	}

	capacity := r.pushLoad(mu0)
	r.pushFalling(r.readSized(capacity, r.vs, mu0*(1-A)*fall*r.heaviest), mu0, A, fall).Do(model.Mul)
	var l network.Law
	vs := l.Read(r.vs, 2/math.Pi*(kA+kS)*G/low)
	v := l.Read(r.v, 0)
	limit := l.Read(r.AddProgram("grip", "N", capacity), 1)
	stretch := func(k float64) *network.Law { // k·e, with the sign of v_s
		l.Again(vs).Again(v).Do(model.Abs).Push(low).Do(model.Max, model.Div)
		return l.Times(k * G).Again(limit).Do(model.Div)
	}

	stretch(kA).Push(1)
	stretch(kA)
	stretch(kA).Do(model.Mul, model.Add, model.Div)
	stretch(kS).Do(model.Atan, model.Add).Times(2 / math.Pi).Again(limit).Do(model.Mul)
	r.AddIndicator(network.LawOf(r.v, 0).Do(model.Abs).Push(low).Do(model.Sub))
	return r.Resist(r.AddProgram("f", "N", &l))
}
