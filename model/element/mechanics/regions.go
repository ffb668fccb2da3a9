package mechanics

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

func regionKinds() []element.Kind {
	ends := element.Ends(either)
	list, each := element.AsList.Of, element.NumberList.Of
	limits := func(unit string) parameters {
		return parameters{
			list("borders", unit, "", unbounded, "limits between the regions, increasing"),
			element.Flag("symmetric", "true", "true: both sides are alike, one is written"),
			list("offsets", torque, "computed", unbounded, "value of each region's line at 0"),
		}
	}
	loss := adds{element.LossQuantity}
	stages := slices.Concat(parameters{list("c", stiffness, "", unbounded, "stiffness of each region")},
		limits(angle), parameters{
			each("hysteresis", torque, "0", notNegative, "width of the loop, a number or one of each region"),
			each("d", damping, "0", notNegative, "damping, a number or one of each region"),
			relaxed, begin, element.HeatParameter()})
	return []element.Kind{
		{Name: "affine_spring", Flanges: ends, Read: readAffineSpring, Adds: append(loss, twist...), Parameters: stages},
		{Name: "affine_damper", Flanges: ends, Read: readAffineDamper, Adds: loss,
			Parameters: slices.Concat(parameters{list("d", damping, "", unbounded, "damping of each region")}, limits(speed),
				parameters{element.HeatParameter()})},
		{Name: "dual_mass_flywheel", Flanges: element.Ends(turns), Read: readFlywheel, Adds: append(loss, twist...),
			Parameters: slices.Concat(parameters{
				number("J_primary", "kg.m2", "", positive, "moment of inertia on the side of a"),
				number("J_secondary", "kg.m2", "", positive, "moment of inertia on the side of b"),
			}, stages, parameters{
				number("hysteresis_w2", "N.m.s2/rad2", "0", notNegative, "width of the loop over the square of the speed of a"),
				number("w_max", "rad/s", "700", positive, "largest speed expected, with hysteresis_w2"),
				number("phi_stop", "rad", "none", positive, "deflection at the stops on both sides"),
				number("restitution", "1", "0", element.Share, "0: plastic impact, 1: elastic; with phi_stop"),
			})},
		{Name: "deflection_damper", Flanges: ends, Read: readDeflectionDamper, Adds: append(loss, twist...),
			Parameters: parameters{
				number("d_delta", "N.m.s/rad2|N.s/m2", "", notNegative, "damping per deflection"),
				number("d", damping, "0", notNegative, "damping without deflection"),
				number("phi_range|s_range", angle, "1", positive, "largest deflection expected"),
				relaxed, begin, element.HeatParameter(),
			}},
	}
}

// maxRegions bounds the regions of one element, both sides together.
const maxRegions = 100

// readAffineDamper reads a damper whose torque is affine in regions of its slip (Reiter, ch. 3.1.3).
func readAffineDamper(e *element.Element) element.Declared {
	r := regions{Element: e, torque: e.Per("N.m", "N"), z: e.Per("w_rel", "v_rel")}
	r.read("d")
	r.addSwitch(e.Between.Speeds(1))
	d := e.Resist(network.SignalOf(r.addSignal(e.Per("tau", "f"), r.slopes, r.offsets)))
	return declareLoss(e, d)
}

// readAffineSpring reads a spring whose torque is affine in regions of its deflection (Reiter, ch. 3.1.2).
func readAffineSpring(e *element.Element) element.Declared { return readSpringRegions(e, nil) }

// readSpringRegions reads a spring with regions, with its damping and its friction; friction, unless it is nil,
// returns the signal of the friction torque for that of the regions.
func readSpringRegions(e *element.Element, friction func(byRegion int) int) element.Declared {
	r := regions{Element: e, torque: e.Per("N.m", "N"), z: e.Per("phi_rel", "s_rel")}
	r.read("c")
	d := e.AddTwist(0, r.pull())
	x := network.StateOf(d.Twist)
	r.addSwitch(x)
	d.Tau = e.Resist(network.SignalOf(r.addSignal(e.Per("tau", "f"), r.slopes, r.offsets))).Tau
	d.Energy = r.energy(x)
	var lossy network.Form
	if e.Has("d") {
		lossy = e.Resist(r.damp(d.Twist, r.each("d"))).Tau
	}
	if friction != nil || e.Has("hysteresis") {
		width := make([]float64, len(r.slopes))
		if e.Has("hysteresis") {
			width = r.each("hysteresis")
		}
		for i := range width {
			width[i] /= 2 // the torque lies above the spring's in one direction and below in the other
		}
		loop := r.addSignal("hysteresis", make([]float64, len(width)), width)
		if friction != nil {
			loop = friction(loop)
		}
		lossy = lossy.Plus(e.AddFriction(model.Friction{Gain: 1, Peak: 1, Signal: loop}).Tau)
		d.Friction = true
	}
	if lossy == nil {
		e.Forbid("goes with hysteresis or d", "heat_port")
		return d
	}
	d.Tau = d.Tau.Plus(lossy)
	e.AddLoss(law.Power(lossy, e.Between.Speeds(1)))
	return d
}

// energy returns the energy of the spring at the deflection x: c·x²/2 + o·x + K in a region of the line c·x + o. K
// makes it continuous, and 0 at x = 0.
func (r *regions) energy(x network.Form) *law.Expr {
	n := len(r.slopes)
	twice, K := make([]float64, n), make([]float64, n)
	home := 0 // region of x = 0
	for home < n-1 && r.borders[home] < 0 {
		home++
	}
	step := func(i int) float64 { // of K over border i
		b := r.borders[i]
		return (r.slopes[i]-r.slopes[i+1])*b*b/2 + (r.offsets[i]-r.offsets[i+1])*b
	}
	for i := home; i < n-1; i++ {
		K[i+1] = K[i] + step(i)
	}
	for i := home; i > 0; i-- {
		K[i-1] = K[i] - step(i-1)
	}
	for i, o := range r.offsets {
		twice[i] = 2 * o
	}
	line := network.SignalOf(r.addSignal("line", r.slopes, twice)) // c·x + 2·o
	below := network.SignalOf(r.addSignal("constant", make([]float64, n), K))
	return law.Formula("x*line/2 + below", law.Names{"x": x, "line": line, "below": below}).WithoutSlopes()
}

// readFlywheel reads two masses with stages of arc springs between them, which are regions. The friction of the
// springs on their channel grows with the centrifugal force. Two stops end the deflection.
func readFlywheel(e *element.Element) element.Declared {
	primary, secondary := e.Number("J_primary"), e.Number("J_secondary")
	var centrifugal func(loop int) int
	if k := e.Number("hysteresis_w2"); k > 0 {
		most := e.Number("w_max")
		speed := network.Row{e.Term("a", 1)}.Speeds(1)
		centrifugal = func(loop int) int {
			return e.AddLaw("friction", "N.m", law.Formula("loop + half*w*w", law.Names{"loop": network.SignalOf(loop),
				"half": k / 2, "w": law.Of(speed).Within(-most, most)})).Index()
		}
	} else {
		e.Forbid("goes with hysteresis_w2 above 0", "w_max")
	}
	d := readSpringRegions(e, centrifugal)
	d.Energy = law.Formula("spring + primary + secondary", law.Names{"spring": d.Energy,
		"primary": addInertia(e, "a", primary), "secondary": addInertia(e, "b", secondary)}).WithoutSlopes()
	if !e.Has("phi_stop") {
		e.Forbid("goes with phi_stop", "restitution")
		return d
	}
	stop, rest := e.Number("phi_stop"), e.Number("restitution")
	low := addStop(e, "min", e.Between, model.Gap{State: d.Twist, Sign: 1, Limit: -stop, Restitution: rest})
	high := addStop(e, "max", e.Between, model.Gap{State: d.Twist, Sign: -1, Limit: stop, Restitution: rest})
	d.Tau = d.Tau.Plus(low).Plus(high)
	return d
}

// addInertia adds a moment of inertia to the node of a flange, and returns its energy; 0 at a node that does not move.
func addInertia(e *element.Element, flange string, J float64) *law.Expr {
	i := e.Node(flange)
	if i == network.Ground || e.Network.Nodes[i].Owner == "fixed" {
		return law.Number(0)
	}
	e.Network.Nodes[i].J += J
	return squared(J/2, network.RowOf(i).Speeds(1))
}

// regions reads the boundaries (key borders), slopes and offsets of regions of z, and mirrors those
// that the file gives for |z| only.
type regions struct {
	*element.Element
	z, unit, torque          string
	symmetric                bool
	borders, slopes, offsets []float64
}

// addSwitch makes the switch of the regions of z.
func (r *regions) addSwitch(z network.Form) {
	s := network.Region{At: r.At, Form: z, Switch: model.Switch{Name: r.Name, Borders: r.borders}}
	r.Network.Switches = append(r.Network.Switches, s)
}

// addSignal makes an affine signal of the last switch and returns its index.
func (r *regions) addSignal(name string, slope, offset []float64) int {
	return r.AddSignal(name, network.Signal{Unit: units.Want(r.torque).Unit,
		Affine: &model.Affine{Switch: len(r.Network.Switches) - 1, Slope: slope, Offset: offset}})
}

func (r *regions) read(slope string) {
	r.symmetric, r.unit = r.Flag("symmetric"), r.UnitOf("borders")
	r.borders = r.Numbers("borders")
	at := r.Place("borders")
	before := []float64{}
	if r.symmetric {
		before = append(before, 0)
	}
	for _, b := range r.borders {
		if r.symmetric && !(b > 0) {
			r.Refuse(at, "borders: %s is not positive; they are those of |%s|, or write symmetric: false",
				units.Format(b, r.unit), r.z)
		}
		r.MustIncrease(at, "borders", "they", before, b, r.unit)
		before = append(before, b)
	}

	r.slopes = r.list(slope)
	r.join()
	if r.symmetric {
		r.borders = mirrored(r.borders, -1)
		r.slopes = mirrored(r.slopes[1:], 1, r.slopes[0])
		r.offsets = mirrored(r.offsets[1:], -1, r.offsets[0])
	}

	if len(r.slopes) > maxRegions {
		r.Refuse(r.Place(slope), "%d regions; at most %d are possible", len(r.slopes), maxRegions)
	}
}

// pull returns the least slope beside z = 0.
func (r *regions) pull() float64 {
	least := math.Inf(1)
	for i, slope := range r.slopes {
		if (i == 0 || r.borders[i-1] <= 0) && (i == len(r.borders) || r.borders[i] >= 0) {
			least = min(least, slope)
		}
	}

	return least
}

// list reads one value per region between the boundaries.
func (r *regions) list(key string) []float64 {
	list, n := r.Numbers(key), len(r.borders)
	if len(list) != n+1 {
		r.Refuse(r.Place(key), "%s has %d values; %d borders make %d regions", key, len(list), n, n+1)
	}
	return list
}

// join computes the offsets of a continuous torque, which is 0 at z = 0. It refuses offsets of the
// file that are not continuous.
func (r *regions) join() {
	home, first := 0, 0.0 // the region whose offset is known
	at := r.Place("offsets")
	var wanted []float64
	if r.Has("offsets") {
		wanted = r.list("offsets")
		first = wanted[0]
		if r.symmetric && first != 0 {
			r.Refuse(at, "offsets: %s at %s = 0 is a jump; friction beside the spring gives one",
				units.Format(first, r.torque), r.z)
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

	for i := 1; i < len(wanted); i++ {
		b := r.borders[i-1]
		fits := wanted[i-1] + (r.slopes[i-1]-r.slopes[i])*b
		size := math.Abs(wanted[i-1]) + (math.Abs(r.slopes[i-1])+math.Abs(r.slopes[i]))*math.Abs(b)
		if jump := wanted[i] - fits; !(math.Abs(jump) <= 1e-9*size) {
			r.Refuse(at, "offsets: %s jumps by %s at the border %s; "+
				"%s is continuous, and what is computed where offsets is left out",
				units.Format(wanted[i], r.torque), units.Format(units.DropRounding(jump), r.torque),
				units.Format(b, r.unit), units.Format(units.DropRounding(fits), r.torque))
		}
	}
}

// each reads one value for all regions, or one value per region.
func (r *regions) each(key string) []float64 {
	n := len(r.slopes)
	if r.IsScalar(key) {
		return slices.Repeat([]float64{r.Number(key)}, n)
	}
	list := r.Numbers(key)
	switch {
	case r.symmetric && len(list) == n/2+1:
		return mirrored(list[1:], 1, list[0])
	case r.symmetric || len(list) != n:
		r.Refuse(r.Place(key), "%s has %d values; one is wanted, or one for each region", key, len(list))
	}

	return list
}

// damp returns d[i]·w_rel, where i is the region of the twist. The law adds to the mean of the first
// and the last damping half of each step at a boundary, with the sign of the side of the twist.
func (r *regions) damp(twist int, d []float64) network.Form {
	if slices.Min(d) == slices.Max(d) {
		return r.Between.Speeds(d[0])
	}
	sum := law.Number((d[0] + d[len(d)-1]) / 2)
	for i, b := range r.borders {
		sum = law.Formula("sum + sign(beyond)*step/2", law.Names{"sum": sum, "step": d[i+1] - d[i],
			"beyond": network.StateOf(twist).Plus(network.One(-b))})
	}

	return r.AddLaw("damping", r.torque, law.Formula("d*w", law.Names{"d": sum.Within(slices.Min(d), slices.Max(d)),
		"w": r.Between.Speeds(1)}))
}

// mirrored returns sign·v in reverse order, then middle, then v.
func mirrored(v []float64, sign float64, middle ...float64) []float64 {
	var out []float64
	for _, x := range slices.Backward(v) {
		out = append(out, sign*x)
	}
	return append(append(out, middle...), v...)
}

// readDeflectionDamper is tau = (d + d_delta·|phi_rel - phi_rel0|)·w_rel (Reiter, eq. 38;
// its Coulomb part is a friction element beside it).
func readDeflectionDamper(e *element.Element) element.Declared {
	d, more, most := e.Number("d"), e.Number("d_delta"), e.Number("phi_range")
	out := e.AddTwist(0, 0)
	twist := network.StateOf(out.Twist)
	damping := law.Formula("(d + d_delta*abs(x))*w", law.Names{"d": d, "d_delta": more, "w": e.Between.Speeds(1),
		"x": law.Of(twist).Within(-most, most)}).WithCombinedSlope(twist, 0) // the twist follows w
	out.Tau = e.Resist(e.AddLaw(e.Per("tau", "f"), out.Unit, damping)).Tau
	return declareLoss(e, out)
}
