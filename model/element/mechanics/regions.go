package mechanics

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// maxRegions bounds the regions of one element, both sides together.
const maxRegions = 100

func regionKinds() []element.Kind {
	deflection := []string{"phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}
	affine := []string{"borders", "symmetric", "offsets"}
	return []element.Kind{
		{Name: "affine_spring", Flanges: element.Ends(network.AnyDomain),
			Keys: slices.Concat([]string{"c", "d"}, affine, []string{"hysteresis"}, deflection), Read: readAffine},
		{Name: "affine_damper", Flanges: element.Ends(network.AnyDomain),
			Keys: slices.Concat([]string{"d"}, affine), Read: readAffine},
		{Name: "deflection_damper", Flanges: element.Ends(network.AnyDomain),
			Keys: slices.Concat([]string{"d", "d_delta", "phi_range", "s_range"}, deflection), Read: readDeflectionDamper},
	}
}

// readAffine reads a spring or damper whose torque is affine in regions of its
// deflection or slip (000 ch. 3.1.2, 3.1.3).
func readAffine(e *element.Element) element.Declared {
	z, zUnit := e.Per("phi_rel", "s_rel"), e.Per("rad", "m")
	slope, slopeUnit := "c", e.Per("N.m/rad", "N/m")
	d := element.Declared{Rel: e.Between, Unit: e.Per("N.m", "N")}
	spring := e.Kind.Name == "affine_spring"
	if !spring {
		z, zUnit = e.Per("w_rel", "v_rel"), e.Per("rad/s", "m/s")
		slope, slopeUnit = "d", e.Per("N.m.s/rad", "N.s/m")
	}
	r := regions{Element: e, z: z, unit: zUnit, torque: d.Unit}
	r.read(slope, slopeUnit)
	s := network.Region{Switch: model.Switch{Name: e.Name, Borders: r.borders}, At: e.At, Form: e.Between.Speeds(1)}
	if spring {
		d.Twist, d.Rest = e.AddTwist(0)
		d.Angle = zUnit
		s.Form = network.StateOf(d.Twist)
	}
	e.Network.Switches = append(e.Network.Switches, s)
	tau := network.SignalOf(addAffine(e, e.Per("tau", "f"), d.Unit, r.slopes, r.offsets))
	e.Exert(e.Between, tau.Scaled(-1))
	d.Tau = tau
	if spring && e.Has("d") && e.Err == nil {
		damping := r.damp(d.Twist, r.each("d", "damping d", e.Per("N.m.s/rad", "N.s/m")))
		e.Exert(e.Between, damping.Scaled(-1))
		d.Tau = d.Tau.Plus(damping)
	}
	if e.Has("hysteresis") && e.Err == nil {
		width := r.each("hysteresis", "width of the loop hysteresis", d.Unit)
		for i := range width {
			width[i] /= 2 // the torque lies above the spring's on one way and below on the other
		}
		ring := e.AddFriction(model.Friction{Gain: 1, Peak: 1, Signal: addAffine(e, "hysteresis", d.Unit, make([]float64, len(width)), width)})
		d.Tau, d.Friction = d.Tau.Plus(ring.Tau), true
	}
	return d
}

// addAffine makes a signal of the element that depends on the last switch.
func addAffine(e *element.Element, name, unit string, slope, offset []float64) int {
	u, _ := units.Parse(unit)
	e.Network.Signals = append(e.Network.Signals, network.Signal{Name: e.Name + "." + name, At: e.At, Unit: u, Read: true,
		Affine: &model.Affine{Switch: len(e.Network.Switches) - 1, Slope: slope, Offset: offset}})
	return len(e.Network.Signals) - 1
}

// regions reads borders, slopes and offsets, and mirrors those that are given for
// |z| only.
type regions struct {
	*element.Element
	z, unit, torque          string
	symmetric                bool
	borders, slopes, offsets []float64
}

func (r *regions) read(slope, slopeUnit string) {
	r.symmetric = !r.Has("symmetric") || r.Flag("symmetric")
	f, ok := r.Fields["borders"]
	if !ok {
		r.Fail(r.At, "%s: %s needs borders (of %s, %s)", r.What(), r.Kind.Name, r.z, r.unit)
	}
	r.borders = r.Numbers(f, r.unit)
	for i, b := range r.borders {
		switch {
		case i > 0 && !(b > r.borders[i-1]):
			r.Fail(f.At, "%s: borders: %s comes after %s; they must increase", r.What(), units.Format(b, r.unit), units.Format(r.borders[i-1], r.unit))
		case r.symmetric && !(b > 0):
			r.Fail(f.At, "%s: borders: %s is not positive; they are those of |%s|, or write symmetric: false", r.What(), units.Format(b, r.unit), r.z)
		}
	}
	if f, ok = r.Fields[slope]; !ok {
		r.Fail(r.At, "%s: %s needs %s (a list, one for each region, %s)", r.What(), r.Kind.Name, slope, slopeUnit)
	}
	r.slopes = r.Numbers(f, slopeUnit)
	r.counts(f, len(r.slopes))
	if r.Err != nil {
		r.borders, r.slopes, r.offsets = nil, []float64{0}, []float64{0}
		return
	}
	r.join()
	if r.symmetric {
		r.borders, r.slopes, r.offsets = mirrored(r.borders, -1), mirrored(r.slopes[1:], 1, r.slopes[0]), mirrored(r.offsets[1:], -1, r.offsets[0])
	}
	if len(r.slopes) > maxRegions {
		r.Fail(f.At, "%s: %d regions; at most %d are possible", r.What(), len(r.slopes), maxRegions)
	}
}

// counts fails unless n values go with the borders.
func (r *regions) counts(f syntax.Field, n int) {
	if n != len(r.borders)+1 && r.Err == nil {
		r.Fail(f.At, "%s: %s has %d values; %d borders make %d regions", r.What(), f.Key, n, len(r.borders), len(r.borders)+1)
	}
}

// join computes the offsets for which the torque is continuous, and 0 at z = 0
// unless they are given; those must be continuous.
func (r *regions) join() {
	home, first := 0, 0.0 // the region whose offset is known
	f, given := r.Fields["offsets"]
	var wanted []float64
	if given {
		wanted = r.Numbers(f, r.torque)
		if r.counts(f, len(wanted)); r.Err == nil {
			first = wanted[0]
		}
		if r.symmetric && first != 0 {
			r.Fail(f.At, "%s: offsets: %s at %s = 0 is a jump; friction beside the spring gives one", r.What(), units.Format(first, r.torque), r.z)
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
	for i := 1; i < len(wanted) && r.Err == nil; i++ {
		b := r.borders[i-1]
		fits := wanted[i-1] + (r.slopes[i-1]-r.slopes[i])*b
		size := math.Abs(wanted[i-1]) + (math.Abs(r.slopes[i-1])+math.Abs(r.slopes[i]))*math.Abs(b)
		if jump := wanted[i] - fits; !(math.Abs(jump) <= 1e-9*size) {
			r.Fail(f.At, "%s: offsets: %s jumps by %s at the border %s; %s is continuous, and what is computed where offsets is left out",
				r.What(), units.Format(wanted[i], r.torque), units.Format(units.DropRounding(jump), r.torque), units.Format(b, r.unit), units.Format(units.DropRounding(fits), r.torque))
		}
	}
}

// each reads what is not negative, one value for all regions or one for each.
func (r *regions) each(key, what, unit string) []float64 {
	f := r.Fields[key]
	if _, one := syntax.ScalarText(f.Node); one {
		v := r.Value(f, unit)
		r.NotNegative(v, f, what, unit)
		return slices.Repeat([]float64{v}, len(r.slopes))
	}
	list := r.Numbers(f, unit)
	for _, v := range list {
		r.NotNegative(v, f, what, unit)
	}
	switch n := len(r.slopes); {
	case r.symmetric && len(list) == n/2+1:
		return mirrored(list[1:], 1, list[0])
	case !r.symmetric && len(list) == n:
		return list
	case r.Err == nil:
		r.Fail(f.At, "%s: %s has %d values; one is wanted, or one for each region", r.What(), key, len(list))
	}
	return slices.Repeat([]float64{0}, len(r.slopes))
}

// damp is d[i]·w_rel, i the region of the twist: a law of the mean of the first and the
// last, and half a step at each border, up beyond it and down before.
func (r *regions) damp(twist int, d []float64) network.Form {
	if slices.Min(d) == slices.Max(d) {
		return r.Between.Speeds(d[0])
	}
	var l network.Law
	l.Push((d[0] + d[len(d)-1]) / 2)
	for i, b := range r.borders {
		var beyond network.Law
		beyond.Arg(network.StateOf(twist).Plus(network.One(-b)), 0)
		l.Side(r.AddGuard(&beyond)).Times((d[i+1] - d[i]) / 2).Do(model.Add)
	}
	l.Arg(r.Between.Speeds(1), slices.Max(d))
	return network.SignalOf(r.AddLaw(r.Name+".damping", r.torque, l.Do(model.Mul)))
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
func readDeflectionDamper(e *element.Element) element.Declared {
	unit := e.Per("N.m.s/rad", "N.s/m")
	d := e.AtLeastZero("d", unit, 0)
	more, f := e.Number("d_delta", e.Per("N.m.s/rad2", "N.s/m2"), "damping per deflection")
	e.NotNegative(more, f, "d_delta", e.Per("N.m.s/rad2", "N.s/m2"))
	most := e.AboveZero(e.Per("phi_range", "s_range"), e.Per("rad", "m"), 1)
	if f, ok := e.Fields[e.Per("s_range", "phi_range")]; ok {
		e.Fail(f.KeyAt, "%s: it is %s; %s is wanted", e.What(), e.Domain, e.Per("phi_range", "s_range"))
	}
	if e.Err != nil {
		return element.Declared{}
	}
	i, rest := e.AddTwist(0)
	var side, l network.Law
	side.Arg(network.StateOf(i), 0)
	g := e.AddGuard(&side)
	l.Arg(network.StateOf(i), 0)
	l.Side(g).Do(model.Mul).Times(more).Push(d).Do(model.Add)
	l.Arg(e.Between.Speeds(1), d+more*most)
	l.Do(model.Mul)
	tau := network.SignalOf(e.AddLaw(e.Name+"."+e.Per("tau", "f"), e.Per("N.m", "N"), &l))
	e.Exert(e.Between, tau.Scaled(-1))
	return element.Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N"), Angle: e.Per("rad", "m"), Twist: i, Rest: rest}
}
