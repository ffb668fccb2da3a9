package model

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// adhesions are the laws of a rail_contact, with their keys.
var adhesions = map[string][]string{
	"gyebroszki":       {"mu0", "A", "v_star", "T_sgn", "peak"},
	"curtius_kniffler": {"T_sgn", "peak"},
	"polach":           {"mu0", "A", "B", "C", "a_ellipse", "b_ellipse", "k_A", "k_S", "v_low"},
}

func railKinds() []kind {
	keys := []string{"radius", "fn", "friction", "way", "law"}
	for _, name := range slices.Sorted(maps.Keys(adhesions)) {
		for _, key := range adhesions[name] {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return []kind{{name: "rail_contact", flanges: []flange{{"a", anyDomain, false}, {"b", translational, false}}, keys: keys, read: readRail}}
}

// rail is what readRail makes of a wheel (flange a) that rolls on a rail under its axle
// (flange b).
type rail struct {
	tyre
	heaviest float64 // largest normal force to be expected, N
	most     float64 // largest friction of the track
	way      *Table  // friction over the position of the axle
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
// 258, 2005. The first two hold a wheel that rolls, or with T_sgn are v_s/T_sgn of their
// largest force while |v_s| < T_sgn.
func readRail(e *element) declared {
	r := rail{tyre: tyre{element: e, road: -1, force: "N"}, most: 1}
	law := r.lawOf()
	r.roller()
	r.load = e.command("fn", "N", "normal force, its load")
	if e.err != nil {
		return declared{}
	}
	e.named["fn"] = reading{signalOf(r.load), "N"}
	if _, most := r.plant.span(r.load); !(most > 0) {
		e.fail(e.fields["fn"].at, "%s: fn %s is never positive; a wheel without load transmits nothing", e.what(), withUnit(most, "N"))
	}
	r.guardZero(r.load)
	r.heaviest = e.plant.largest(r.load)
	r.track()
	r.heaviest *= r.most
	if law == "polach" {
		return r.polach()
	}
	return r.coulombs(law)
}

// heavy pushes f in a law that begins with the grip; its slope grows with the load.
func (r *rail) heavy(l *law, f form, slope float64) {
	r.plant.depends(l, l.arg(f, slope), 0, r.load)
}

// lawOf reads which law it is, and refuses the keys of the others.
func (r *rail) lawOf() string {
	names := slices.Sorted(maps.Keys(adhesions))
	f, ok := r.fields["law"]
	if !ok {
		r.fail(r.at, "%s: rail_contact needs law (%s)", r.what(), strings.Join(names, ", "))
		return ""
	}
	name := r.text(f, r.what()+": law")
	own, ok := adhesions[name]
	if !ok {
		r.fail(f.at, "%s: law: %q is none of %s%s", r.what(), name, strings.Join(names, ", "), didYouMean(name, names))
		return ""
	}
	for _, other := range names {
		for _, key := range adhesions[other] {
			if g, given := r.fields[key]; given && !slices.Contains(own, key) {
				r.fail(g.keyAt, "%s: %s goes with law: %s", r.what(), key, other)
			}
		}
	}
	return name
}

// roller reads the radius of a wheel that turns; one that moves has the speed of its rim.
func (r *rail) roller() {
	radius := 1.0
	a := &r.plant.nodes[r.node("a")]
	if a.domain != translational {
		radius = r.need("radius", "m", "rolling, of the wheel")
	} else if f, given := r.fields["radius"]; given {
		r.fail(f.keyAt, "%s: radius goes with a wheel that turns; %q moves with its rim", r.what(), a.name)
	}
	r.between = row{r.term("b", -1), r.term("a", radius)}
	r.vs, r.v = r.between.speeds(1), rowOf(r.node("b")).speeds(1)
}

// track reads the condition of the track: a factor over time, and rows of position and
// factor along the way.
func (r *rail) track() {
	if r.has("friction") {
		r.road = r.command("friction", "1", "of the track")
		if r.err != nil {
			return
		}
		if _, most := r.plant.span(r.road); !(most > 0) {
			r.fail(r.fields["friction"].at, "%s: friction %g is never positive; such a track holds nothing", r.what(), most)
		}
		r.guardZero(r.road)
		r.most *= r.plant.largest(r.road)
	}
	f, ok := r.fields["way"]
	if !ok || r.err != nil {
		return
	}
	t := r.table(f, "m", "1")
	for i, z := range t.Z {
		if !(z >= 0) {
			r.fail(f.at, "%s: way: factor %g in row %d is negative", r.what(), z, i+1)
		}
	}
	if !(slices.Max(t.Z) > 0) {
		r.fail(f.at, "%s: way: no factor is positive; such a track holds nothing", r.what())
		return
	}
	r.way = &t
	r.most *= slices.Max(t.Z)
	r.guardPoints(stateOf(r.angle(r.node("b"))), t.bends())
}

// grip pushes the normal force times the condition of the track; steep is the largest
// |d value / d grip| of l.
func (r *rail) grip(l *law, steep float64) {
	l.arg(signalOf(r.load), steep*r.most)
	l.push(0).do(Max)
	if r.road >= 0 {
		l.arg(signalOf(r.road), 0)
		l.push(0).do(Max, Mul)
	}
	if r.way != nil {
		r.heavy(l, stateOf(r.angle(r.node("b"))), steep*r.heaviest/r.most*r.way.steepest())
		l.look(*r.way).do(Mul)
	}
}

// falling reads mu0 and A of mu0·((1 - A)·exp(-rate·|v_s|) + A).
func (r *rail) falling() (mu0, A float64) {
	mu0, f := r.number("mu0", "1", "friction at rest")
	if !(mu0 > 0 && mu0 <= 1) {
		r.fail(f.at, "%s: mu0 %g is outside 0 to 1, 0 not included", r.what(), mu0)
	}
	A, f = r.number("A", "1", "friction at high slip over that at rest")
	if !(A > 0 && A <= 1) {
		r.fail(f.at, "%s: A %g is outside 0 to 1, 0 not included", r.what(), A)
	}
	return mu0, A
}

// coulombs is a law with a largest force: a friction element, or with T_sgn a slope up to
// that force.
func (r *rail) coulombs(name string) declared {
	var l law
	steep := 0.0
	r.grip(&l, 1)
	if name == "gyebroszki" {
		mu0, A := r.falling()
		fall := r.need("v_star", "m/s", "slip over which friction falls")
		steep = mu0
		r.heavy(&l, r.vs, mu0*(1-A)/fall*r.heaviest)
		l.do(Abs).times(-1 / fall).do(Exp).times(mu0 * (1 - A)).push(mu0 * A).do(Add)
	} else {
		steep = 7.5/44 + 0.161
		l.push(7.5)
		r.heavy(&l, r.v, 3.6*7.5/(44*44)*r.heaviest)
		l.do(Abs).times(3.6).push(44).do(Add, Div).push(0.161).do(Add)
	}
	l.do(Mul)
	l.slopes[0] *= steep
	creep := r.atLeastZero("T_sgn", "m/s", 0)
	if f, given := r.fields["peak"]; given && creep > 0 {
		r.fail(f.keyAt, "%s: peak goes without T_sgn; a slope has no static friction", r.what())
	}
	peak := r.peak(1)
	if r.err != nil {
		return declared{}
	}
	if creep == 0 {
		return r.pressed(r.rub(Friction{Gain: 1, Peak: peak, Signal: r.addLaw(r.name+".grip", "N", &l)}), r.load, steep*r.most*peak)
	}
	r.heavy(&l, r.vs, steep*r.heaviest/creep)
	l.times(1/creep).push(1).do(Min).push(-1).do(Max, Mul)
	var corner law
	corner.arg(r.vs, 0)
	r.addGuard(corner.do(Abs).push(creep).do(Sub))
	return r.creeps(&l)
}

// creeps exerts a law of the slip.
func (r *rail) creeps(l *law) declared {
	f := signalOf(r.addLaw(r.name+".f", "N", l))
	r.act(r.between, f.scaled(-1))
	return declared{rel: r.between, tau: f, unit: "N"}
}

// part reads a number from 0 to 1, 0 not included.
func (r *rail) part(key string, missing float64) float64 {
	k, f := r.option(key, "1", missing)
	if !(k > 0 && k <= 1) {
		r.fail(f.at, "%s: %s %g is outside 0 to 1, 0 not included", r.what(), key, k)
	}
	return k
}

// polach has the largest slope 2/pi·(k_A + k_S)·G/v_low at rest, where G = 2/3·C·pi·a²·b.
func (r *rail) polach() declared {
	mu0, A := r.falling()
	fall := r.atLeastZero("B", "s/m", 0)
	a, b := r.need("a_ellipse", "m", "half axis of the contact along the rail"), r.need("b_ellipse", "m", "half axis of the contact across the rail")
	G := 2. / 3 * math.Pi * a * a * b * r.need("C", "N/m3", "stiffness of the contact")
	kA, kS := r.part("k_A", 1), r.part("k_S", 0.4)
	low := r.above0("v_low", "m/s", 3)
	if !(kS <= kA) {
		r.fail(r.fields["k_S"].at, "%s: k_S %g is above k_A %g; slip takes more than adhesion then", r.what(), kS, kA)
	}
	if r.err != nil {
		return declared{}
	}
	var l law
	vs := l.arg(r.vs, 2/math.Pi*(kA+kS)*G/low)
	v := l.arg(r.v, 0)
	l.ops = nil
	capacity := &law{}
	r.grip(capacity, mu0)
	r.heavy(capacity, r.vs, mu0*(1-A)*fall*r.heaviest)
	capacity.do(Abs).times(-fall).do(Exp).times(mu0*(1-A)).push(mu0*A).do(Add, Mul)
	limit := l.arg(signalOf(r.addLaw(r.name+".grip", "N", capacity)), 1)
	l.ops = nil
	stretch := func(k float64) { // k·e, with the sign of v_s
		l.again(vs).again(v).do(Abs).push(low).do(Max, Div).times(k * G).again(limit).do(Div)
	}
	stretch(kA)
	l.push(1)
	stretch(kA)
	stretch(kA)
	l.do(Mul, Add, Div)
	stretch(kS)
	l.do(Atan, Add).times(2 / math.Pi).again(limit).do(Mul)
	var corner law
	corner.arg(r.v, 0)
	r.addGuard(corner.do(Abs).push(low).do(Sub))
	return r.creeps(&l)
}
