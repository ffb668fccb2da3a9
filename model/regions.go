package model

import (
	"fmt"
	"math"
	"slices"
)

// maxRegions bounds the regions of one element, both sides together.
const maxRegions = 100

func regionKinds() []kind {
	deflection := []string{"phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}
	affine := []string{"borders", "symmetric", "offsets"}
	return []kind{
		{name: "affine_spring", flanges: ends(anyDomain), keys: slices.Concat([]string{"c", "d"}, affine, []string{"hysteresis"}, deflection), read: readAffine},
		{name: "affine_damper", flanges: ends(anyDomain), keys: slices.Concat([]string{"d"}, affine), read: readAffine},
		{name: "deflection_damper", flanges: ends(anyDomain), keys: slices.Concat([]string{"d", "d_delta", "phi_range", "s_range"}, deflection), read: readDeflectionDamper},
	}
}

// readAffine reads a spring or damper whose torque is affine in regions of its
// deflection or slip (000 ch. 3.1.2, 3.1.3).
func readAffine(e *element) declared {
	z, zUnit := e.per("phi_rel", "s_rel"), e.per("rad", "m")
	slope, slopeUnit := "c", e.per("N.m/rad", "N/m")
	d := declared{rel: e.between, unit: e.per("N.m", "N")}
	spring := e.kind.name == "affine_spring"
	if !spring {
		z, zUnit = e.per("w_rel", "v_rel"), e.per("rad/s", "m/s")
		slope, slopeUnit = "d", e.per("N.m.s/rad", "N.s/m")
	}
	r := regions{element: e, z: z, unit: zUnit, torque: d.unit}
	r.read(slope, slopeUnit)
	s := region{Switch: Switch{Name: e.name, Borders: r.borders}, at: e.at, form: e.between.speeds(1)}
	if spring {
		d.twist, d.rest = e.twist(0)
		d.angle = zUnit
		s.form = stateOf(d.twist)
	}
	e.plant.switches = append(e.plant.switches, s)
	tau := signalOf(addAffine(e, e.per("tau", "f"), d.unit, r.slopes, r.offsets))
	e.act(e.between, tau.scaled(-1))
	d.tau = tau
	if spring && e.has("d") && e.err == nil {
		damping := r.damp(d.twist, r.each("d", "damping d", e.per("N.m.s/rad", "N.s/m")))
		e.act(e.between, damping.scaled(-1))
		d.tau = d.tau.plus(damping)
	}
	if e.has("hysteresis") && e.err == nil {
		width := r.each("hysteresis", "width of the loop hysteresis", d.unit)
		for i := range width {
			width[i] /= 2 // the torque lies above the spring's on one way and below on the other
		}
		ring := e.rub(Friction{Gain: 1, Peak: 1, Signal: addAffine(e, "hysteresis", d.unit, make([]float64, len(width)), width)})
		d.tau, d.friction = d.tau.plus(ring.tau), true
	}
	return d
}

// addAffine makes a signal of the element that depends on the last switch.
func addAffine(e *element, name, unit string, slope, offset []float64) int {
	u, _ := Units(unit)
	e.plant.signals = append(e.plant.signals, signal{name: e.name + "." + name, at: e.at, unit: u, read: true,
		affine: &Affine{Switch: len(e.plant.switches) - 1, Slope: slope, Offset: offset}})
	return len(e.plant.signals) - 1
}

// regions reads borders, slopes and offsets, and mirrors those that are given for
// |z| only.
type regions struct {
	*element
	z, unit, torque          string
	symmetric                bool
	borders, slopes, offsets []float64
}

func (r *regions) read(slope, slopeUnit string) {
	r.symmetric = !r.has("symmetric") || r.flag("symmetric")
	f, ok := r.fields["borders"]
	if !ok {
		r.fail(r.at, "%s: %s needs borders (of %s, %s)", r.what(), r.kind.name, r.z, r.unit)
	}
	r.borders = r.numbers(f, r.unit)
	for i, b := range r.borders {
		switch {
		case i > 0 && !(b > r.borders[i-1]):
			r.fail(f.at, "%s: borders: %s comes after %s; they must increase", r.what(), withUnit(b, r.unit), withUnit(r.borders[i-1], r.unit))
		case r.symmetric && !(b > 0):
			r.fail(f.at, "%s: borders: %s is not positive; they are those of |%s|, or write symmetric: false", r.what(), withUnit(b, r.unit), r.z)
		}
	}
	if f, ok = r.fields[slope]; !ok {
		r.fail(r.at, "%s: %s needs %s (a list, one for each region, %s)", r.what(), r.kind.name, slope, slopeUnit)
	}
	r.slopes = r.numbers(f, slopeUnit)
	r.counts(f, len(r.slopes))
	if r.err != nil {
		r.borders, r.slopes, r.offsets = nil, []float64{0}, []float64{0}
		return
	}
	r.join()
	if r.symmetric {
		r.borders, r.slopes, r.offsets = mirrored(r.borders, -1), mirrored(r.slopes[1:], 1, r.slopes[0]), mirrored(r.offsets[1:], -1, r.offsets[0])
	}
	if len(r.slopes) > maxRegions {
		r.fail(f.at, "%s: %d regions; at most %d are possible", r.what(), len(r.slopes), maxRegions)
	}
}

// counts fails unless n values go with the borders.
func (r *regions) counts(f field, n int) {
	if n != len(r.borders)+1 && r.err == nil {
		r.fail(f.at, "%s: %s has %d values; %d borders make %d regions", r.what(), f.key, n, len(r.borders), len(r.borders)+1)
	}
}

// join computes the offsets for which the torque is continuous, and 0 at z = 0
// unless they are given; those must be continuous.
func (r *regions) join() {
	home, first := 0, 0.0 // the region whose offset is known
	f, given := r.fields["offsets"]
	var wanted []float64
	if given {
		wanted = r.numbers(f, r.torque)
		if r.counts(f, len(wanted)); r.err == nil {
			first = wanted[0]
		}
		if r.symmetric && first != 0 {
			r.fail(f.at, "%s: offsets: %s at %s = 0 is a jump; friction beside the spring gives one", r.what(), withUnit(first, r.torque), r.z)
		}
	} else if !r.symmetric {
		for home < len(r.borders) && r.borders[home] < 0 {
			home++
		}
	}
	r.offsets = make([]float64, len(r.slopes))
	r.offsets[home] = first
	for i := home; i < len(r.borders); i++ {
		r.offsets[i+1] = r.offsets[i] + (r.slopes[i]-r.slopes[i+1])*r.borders[i]
	}
	for i := home; i > 0; i-- {
		r.offsets[i-1] = r.offsets[i] + (r.slopes[i]-r.slopes[i-1])*r.borders[i-1]
	}
	for i := 1; i < len(wanted) && r.err == nil; i++ {
		b := r.borders[i-1]
		fits := wanted[i-1] + (r.slopes[i-1]-r.slopes[i])*b
		size := math.Abs(wanted[i-1]) + (math.Abs(r.slopes[i-1])+math.Abs(r.slopes[i]))*math.Abs(b)
		if jump := wanted[i] - fits; !(math.Abs(jump) <= 1e-9*size) {
			r.fail(f.at, "%s: offsets: %s jumps by %s at the border %s; %s is continuous, and what is computed where offsets is left out",
				r.what(), withUnit(wanted[i], r.torque), withUnit(digits(jump), r.torque), withUnit(b, r.unit), withUnit(digits(fits), r.torque))
		}
	}
}

// digits drops what is rounding in a difference.
func digits(v float64) float64 {
	out := v
	if _, err := fmt.Sscan(fmt.Sprintf("%.9g", v), &out); err != nil {
		return v
	}
	return out
}

// each reads what is not negative, one value for all regions or one for each.
func (r *regions) each(key, what, unit string) []float64 {
	f := r.fields[key]
	if _, one := ScalarText(f.node); one {
		v := r.value(f, unit)
		r.notNegative(v, f, what, unit)
		return slices.Repeat([]float64{v}, len(r.slopes))
	}
	list := r.numbers(f, unit)
	for _, v := range list {
		r.notNegative(v, f, what, unit)
	}
	switch n := len(r.slopes); {
	case r.symmetric && len(list) == n/2+1:
		return mirrored(list[1:], 1, list[0])
	case !r.symmetric && len(list) == n:
		return list
	case r.err == nil:
		r.fail(f.at, "%s: %s has %d values; one is wanted, or one for each region", r.what(), key, len(list))
	}
	return slices.Repeat([]float64{0}, len(r.slopes))
}

// damp is d[i]·w_rel, i the region of the twist: a law of the mean of the first and the
// last, and half a step at each border, up beyond it and down before.
func (r *regions) damp(twist int, d []float64) form {
	if slices.Min(d) == slices.Max(d) {
		return r.between.speeds(d[0])
	}
	var l law
	l.push((d[0] + d[len(d)-1]) / 2)
	for i, b := range r.borders {
		var beyond law
		beyond.arg(stateOf(twist).plus(one(-b)), 0)
		l.side(r.addGuard(&beyond)).times((d[i+1] - d[i]) / 2).do(Add)
	}
	l.arg(r.between.speeds(1), slices.Max(d))
	return signalOf(r.addLaw(r.name+".damping", r.torque, l.do(Mul)))
}

// numbers reads a list.
func (e *element) numbers(f field, unit string) []float64 {
	what := e.what() + ": " + f.key
	u, _ := Units(unit)
	var list []float64
	for _, n := range e.items(f.node, f.at, what) {
		list = append(list, e.quantity(field{at: startOf(n), node: n}, what, wanted{u, unit}))
	}
	return list
}

// mirrored is sign·v backwards, middle, v.
func mirrored(v []float64, sign float64, middle ...float64) []float64 {
	var out []float64
	for _, x := range slices.Backward(v) {
		out = append(out, sign*x)
	}
	return append(append(out, middle...), v...)
}

// readDeflectionDamper is tau = (d + d_delta·|phi_rel - phi_rel0|)·w_rel (000 eq. 38;
// its Coulomb part is a friction element beside it).
func readDeflectionDamper(e *element) declared {
	unit := e.per("N.m.s/rad", "N.s/m")
	d := e.atLeastZero("d", unit, 0)
	more, f := e.number("d_delta", e.per("N.m.s/rad2", "N.s/m2"), "damping per deflection")
	e.notNegative(more, f, "d_delta", e.per("N.m.s/rad2", "N.s/m2"))
	most := e.above0(e.per("phi_range", "s_range"), e.per("rad", "m"), 1)
	if f, ok := e.fields[e.per("s_range", "phi_range")]; ok {
		e.fail(f.keyAt, "%s: it is %s; %s is wanted", e.what(), e.domain, e.per("phi_range", "s_range"))
	}
	if e.err != nil {
		return declared{}
	}
	i, rest := e.twist(0)
	var side, l law
	side.arg(stateOf(i), 0)
	g := e.addGuard(&side)
	l.arg(stateOf(i), 0)
	l.side(g).do(Mul).times(more).push(d).do(Add)
	l.arg(e.between.speeds(1), d+more*most)
	l.do(Mul)
	tau := signalOf(e.addLaw(e.name+"."+e.per("tau", "f"), e.per("N.m", "N"), &l))
	e.act(e.between, tau.scaled(-1))
	return declared{rel: e.between, tau: tau, unit: e.per("N.m", "N"), angle: e.per("rad", "m"), twist: i, rest: rest}
}
