package contact

import (
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// adhesions are the laws of a rail_contact, with their keys.
var adhesions = map[string][]string{
	"gyebroszki":       {"mu0", "A", "v_star", "T_sgn", "peak"},
	"curtius_kniffler": {"T_sgn", "peak"},
	"polach":           {"mu0", "A", "B", "C", "a_ellipse", "b_ellipse", "k_A", "k_S", "v_low"},
}

func railKinds() []element.Kind {
	keys := []string{"radius", "fn", "friction", "way", "law"}
	for _, name := range slices.Sorted(maps.Keys(adhesions)) {
		for _, key := range adhesions[name] {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return []element.Kind{{Name: "rail_contact", Flanges: append(element.Flanges(network.AnyDomain, "a"), element.Flanges(network.Translational, "b")...), Keys: keys, Read: readRail}}
}

// rail is what readRail makes of a wheel (flange a) that rolls on a rail under its axle
// (flange b).
type rail struct {
	tyre
	heaviest float64      // largest normal force to be expected, N
	most     float64      // largest friction of the track
	way      *model.Table // friction over the position of the axle
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
func readRail(e *element.Element) element.Declared {
	r := rail{tyre: tyre{Element: e, road: -1, force: "N"}, most: 1}
	law := r.lawOf()
	r.roller()
	r.load = e.NeedWaveform("fn", "N", "normal force, its load")
	if e.Err != nil {
		return element.Declared{}
	}
	e.Named["fn"] = element.Reading{Form: network.SignalOf(r.load), Unit: "N"}
	if _, most := r.Network.Range(r.load); !(most > 0) {
		e.Fail(e.Fields["fn"].At, "%s: fn %s is never positive; a wheel without load transmits nothing", e.What(), units.Format(most, "N"))
	}
	r.guardZero(r.load)
	r.heaviest = e.Network.MaxAbs(r.load)
	r.track()
	r.heaviest *= r.most
	if law == "polach" {
		return r.polach()
	}
	return r.coulombs(law)
}

// heavy pushes f in a law that begins with the grip; its slope grows with the load.
func (r *rail) heavy(l *network.Law, f network.Form, slope float64) {
	r.Network.SizeSlope(l, l.Arg(f, slope), 0, r.load)
}

// lawOf reads which law it is, and refuses the keys of the others.
func (r *rail) lawOf() string {
	names := slices.Sorted(maps.Keys(adhesions))
	f, ok := r.Fields["law"]
	if !ok {
		r.Fail(r.At, "%s: rail_contact needs law (%s)", r.What(), strings.Join(names, ", "))
		return ""
	}
	name := r.Text(f, r.What()+": law")
	own, ok := adhesions[name]
	if !ok {
		r.Fail(f.At, "%s: law: %q is none of %s%s", r.What(), name, strings.Join(names, ", "), units.DidYouMean(name, names))
		return ""
	}
	for _, other := range names {
		for _, key := range adhesions[other] {
			if g, given := r.Fields[key]; given && !slices.Contains(own, key) {
				r.Fail(g.KeyAt, "%s: %s goes with law: %s", r.What(), key, other)
			}
		}
	}
	return name
}

// roller reads the radius of a wheel that turns; one that moves has the speed of its rim.
func (r *rail) roller() {
	radius := 1.0
	a := &r.Network.Nodes[r.Node("a")]
	if a.Domain != network.Translational {
		radius = r.Need("radius", "m", "rolling, of the wheel")
	} else if f, given := r.Fields["radius"]; given {
		r.Fail(f.KeyAt, "%s: radius goes with a wheel that turns; %q moves with its rim", r.What(), a.Name)
	}
	r.Between = network.Row{r.Term("b", -1), r.Term("a", radius)}
	r.vs, r.v = r.Between.Speeds(1), network.RowOf(r.Node("b")).Speeds(1)
}

// track reads the condition of the track: a factor over time, and rows of position and
// factor along the way.
func (r *rail) track() {
	if r.Has("friction") {
		r.road = r.NeedWaveform("friction", "1", "of the track")
		if r.Err != nil {
			return
		}
		if _, most := r.Network.Range(r.road); !(most > 0) {
			r.Fail(r.Fields["friction"].At, "%s: friction %g is never positive; such a track holds nothing", r.What(), most)
		}
		r.guardZero(r.road)
		r.most *= r.Network.MaxAbs(r.road)
	}
	f, ok := r.Fields["way"]
	if !ok || r.Err != nil {
		return
	}
	t := r.Table(f, "m", "1")
	for i, z := range t.Z {
		if !(z >= 0) {
			r.Fail(f.At, "%s: way: factor %g in row %d is negative", r.What(), z, i+1)
		}
	}
	if !(slices.Max(t.Z) > 0) {
		r.Fail(f.At, "%s: way: no factor is positive; such a track holds nothing", r.What())
		return
	}
	r.way = &t
	r.most *= slices.Max(t.Z)
	r.GuardPoints(network.StateOf(r.Angle(r.Node("b"))), t.Breakpoints())
}

// grip pushes the normal force times the condition of the track; steep is the largest
// |d value / d grip| of l.
func (r *rail) grip(l *network.Law, steep float64) {
	l.Arg(network.SignalOf(r.load), steep*r.most)
	l.Push(0).Do(model.Max)
	if r.road >= 0 {
		l.Arg(network.SignalOf(r.road), 0)
		l.Push(0).Do(model.Max, model.Mul)
	}
	if r.way != nil {
		r.heavy(l, network.StateOf(r.Angle(r.Node("b"))), steep*r.heaviest/r.most*r.way.MaxSlope())
		l.Look(*r.way).Do(model.Mul)
	}
}

// falling reads mu0 and A of mu0·((1 - A)·exp(-rate·|v_s|) + A).
func (r *rail) falling() (mu0, A float64) {
	mu0, f := r.Number("mu0", "1", "friction at rest")
	if !(mu0 > 0 && mu0 <= 1) {
		r.Fail(f.At, "%s: mu0 %g is outside 0 to 1, 0 not included", r.What(), mu0)
	}
	A, f = r.Number("A", "1", "friction at high slip over that at rest")
	if !(A > 0 && A <= 1) {
		r.Fail(f.At, "%s: A %g is outside 0 to 1, 0 not included", r.What(), A)
	}
	return mu0, A
}

// coulombs is a law with a largest force: a friction element, or with T_sgn a slope up to
// that force.
func (r *rail) coulombs(name string) element.Declared {
	var l network.Law
	steep := 0.0
	r.grip(&l, 1)
	if name == "gyebroszki" {
		mu0, A := r.falling()
		fall := r.Need("v_star", "m/s", "slip over which friction falls")
		steep = mu0
		r.heavy(&l, r.vs, mu0*(1-A)/fall*r.heaviest)
		l.Do(model.Abs).Times(-1 / fall).Do(model.Exp).Times(mu0 * (1 - A)).Push(mu0 * A).Do(model.Add)
	} else {
		steep = 7.5/44 + 0.161
		l.Push(7.5)
		r.heavy(&l, r.v, 3.6*7.5/(44*44)*r.heaviest)
		l.Do(model.Abs).Times(3.6).Push(44).Do(model.Add, model.Div).Push(0.161).Do(model.Add)
	}
	l.Do(model.Mul)
	l.Slopes[0] *= steep
	creep := r.AtLeastZero("T_sgn", "m/s", 0)
	if f, given := r.Fields["peak"]; given && creep > 0 {
		r.Fail(f.KeyAt, "%s: peak goes without T_sgn; a slope has no static friction", r.What())
	}
	peak := r.Peak(1)
	if r.Err != nil {
		return element.Declared{}
	}
	if creep == 0 {
		return r.PressedBy(r.AddFriction(model.Friction{Gain: 1, Peak: peak, Signal: r.AddLaw(r.Name+".grip", "N", &l)}), r.load, steep*r.most*peak)
	}
	r.heavy(&l, r.vs, steep*r.heaviest/creep)
	l.Times(1/creep).Push(1).Do(model.Min).Push(-1).Do(model.Max, model.Mul)
	var corner network.Law
	corner.Arg(r.vs, 0)
	r.AddGuard(corner.Do(model.Abs).Push(creep).Do(model.Sub))
	return r.creeps(&l)
}

// creeps exerts a law of the slip.
func (r *rail) creeps(l *network.Law) element.Declared {
	f := network.SignalOf(r.AddLaw(r.Name+".f", "N", l))
	r.Exert(r.Between, f.Scaled(-1))
	return element.Declared{Rel: r.Between, Tau: f, Unit: "N"}
}

// part reads a number from 0 to 1, 0 not included.
func (r *rail) part(key string, missing float64) float64 {
	k, f := r.Option(key, "1", missing)
	if !(k > 0 && k <= 1) {
		r.Fail(f.At, "%s: %s %g is outside 0 to 1, 0 not included", r.What(), key, k)
	}
	return k
}

// polach has the largest slope 2/pi·(k_A + k_S)·G/v_low at rest, where G = 2/3·C·pi·a²·b.
func (r *rail) polach() element.Declared {
	mu0, A := r.falling()
	fall := r.AtLeastZero("B", "s/m", 0)
	a, b := r.Need("a_ellipse", "m", "half axis of the contact along the rail"), r.Need("b_ellipse", "m", "half axis of the contact across the rail")
	G := 2. / 3 * math.Pi * a * a * b * r.Need("C", "N/m3", "stiffness of the contact")
	kA, kS := r.part("k_A", 1), r.part("k_S", 0.4)
	low := r.AboveZero("v_low", "m/s", 3)
	if !(kS <= kA) {
		r.Fail(r.Fields["k_S"].At, "%s: k_S %g is above k_A %g; slip takes more than adhesion then", r.What(), kS, kA)
	}
	if r.Err != nil {
		return element.Declared{}
	}
	var l network.Law
	vs := l.Arg(r.vs, 2/math.Pi*(kA+kS)*G/low)
	v := l.Arg(r.v, 0)
	l.Ops = nil
	capacity := &network.Law{}
	r.grip(capacity, mu0)
	r.heavy(capacity, r.vs, mu0*(1-A)*fall*r.heaviest)
	capacity.Do(model.Abs).Times(-fall).Do(model.Exp).Times(mu0*(1-A)).Push(mu0*A).Do(model.Add, model.Mul)
	limit := l.Arg(network.SignalOf(r.AddLaw(r.Name+".grip", "N", capacity)), 1)
	l.Ops = nil
	stretch := func(k float64) { // k·e, with the sign of v_s
		l.Again(vs).Again(v).Do(model.Abs).Push(low).Do(model.Max, model.Div).Times(k * G).Again(limit).Do(model.Div)
	}
	stretch(kA)
	l.Push(1)
	stretch(kA)
	stretch(kA)
	l.Do(model.Mul, model.Add, model.Div)
	stretch(kS)
	l.Do(model.Atan, model.Add).Times(2 / math.Pi).Again(limit).Do(model.Mul)
	var corner network.Law
	corner.Arg(r.v, 0)
	r.AddGuard(corner.Do(model.Abs).Push(low).Do(model.Sub))
	return r.creeps(&l)
}
