package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Types of sleeves with teeth: dog clutches and synchronisers, and the interlock of their rails.
func teethKinds() []element.Kind {
	flanges := append(element.Flanges(turns, "a", "b"), element.Flanges(moves, "sleeve")...)
	return []element.Kind{
		{Name: "dog_clutch", Flanges: flanges, Read: readDogClutch,
			Parameters: parameters{
				number("teeth", "1", "", element.AtLeastOne, "number of teeth, a whole number").Within(0, 1000),
				number("radius", "m", "", positive, "mean radius of the teeth").Within(leastRatio, mostRatio),
				number("backlash", "rad", "", positive, "total play of engaged teeth"),
				number("flat", "rad", "0", notNegative, "angle in each pitch at which flats meet"),
				number("chamfer", "m", "", positive, "depth of the chamfers along the stroke, both sides together"),
				number("taper", "rad", "0", notNegative, "back-taper of the flanks, both sides together").Within(0, 0.5),
				number("s_contact", "m", "", unbounded, "stroke at which the tips of the teeth meet"),
				element.Flag("reversed", "false", "true: the teeth engage towards smaller strokes"),
				number("mu", "1", "0", notNegative, "coefficient of friction between the teeth").Within(0, 10),
				number("restitution", "1", "0", element.Share, "0: plastic impact, 1: elastic"),
				rows("detent", "m, N", "none", unbounded, "[stroke, force on the sleeve]"),
				element.HeatParameter(),
			},
			Adds: adds{element.LossQuantity,
				{Key: "phi", Unit: "rad", Meaning: "angle of b against a from the middle of a gap, modulo the pitch"},
				{Key: "f_axial", Unit: "N", Meaning: "force of the teeth on the sleeve"}}},
		{Name: "synchroniser", Owns: true, Itself: turns, Flanges: flanges, Read: readSynchroniser,
			Parameters: parameters{
				number("J", "kg.m2", "0", notNegative, "moment of inertia of the ring; 0: a ring that turns with a"),
				number("teeth", "1", "", element.AtLeastOne, "number of teeth, a whole number").Within(0, 1000),
				number("radius", "m", "", positive, "mean radius of the teeth").Within(leastRatio, mostRatio),
				number("backlash", "rad", "", positive, "total play of the sleeve in the teeth of the ring and of b"),
				number("chamfer", "m", "", positive, "depth of the chamfers along the stroke, both sides together"),
				number("taper", "rad", "0", notNegative, "back-taper of the flanks of b, both sides together").Within(0, 0.5),
				number("index", "rad", "", positive, "angle by which the ring turns against a to either side"),
				number("s_ring", "m", "", unbounded, "stroke at which the tips of sleeve and ring meet"),
				number("s_contact", "m", "", unbounded, "stroke at which the tips of sleeve and b meet"),
				element.Flag("reversed", "false", "true: the teeth engage towards smaller strokes"),
				number("mu", "1", "0", notNegative, "coefficient of friction between the teeth").Within(0, 10),
				number("restitution", "1", "0", element.Share, "0: plastic impact, 1: elastic"),
				rows("detent", "m, N", "none", unbounded, "[stroke, force on the sleeve]; the ring takes its reaction"),
				number("mu_cone", "1", "", positive, "coefficient of friction of the cones").Within(0, 10),
				number("cgeo", "m", "", positive, "number of cones times radius over sine of the cone angle").Within(leastRatio, mostRatio),
				number("peak", "1", "1", element.AtLeastOne, "static over sliding friction of the cones").Within(0, 1e3),
				element.HeatParameter(),
			},
			Adds: adds{element.LossQuantity,
				{Key: "phi", Unit: "rad", Meaning: "angle of b against a from the middle of a gap, modulo the pitch"},
				{Key: "phi_ring", Unit: "rad", Meaning: "angle of the ring against a; 0 where the sleeve passes"},
				{Key: "f_axial", Unit: "N", Meaning: "force of the teeth on the sleeve"},
				{Key: "f_cone", Unit: "N", Meaning: "force that presses the ring on the cone"}}},
		{Name: "interlock", Flanges: element.Flanges(moves, "a", "b"), Read: readInterlock,
			Parameters: parameters{
				number("neutral", "m", "", positive, "play of each rail about its neutral position 0, to either side")}},
	}
}

// teeth are the teeth of a sleeve that engage those of another part. Their contacts lie in the plane of
// the tangential position u = radius·phi_rel, from the middle of a gap, and the stroke s.
type teeth struct {
	*element.Element
	name        string      // prefix of the names of the faces
	tangential  network.Row // u'
	stroke      network.Row // s', positive towards engagement
	u           int         // state
	s           network.Form
	side        float64 // of the state of the sleeve: s is side times it
	sleeve      int     // state
	mu          float64
	restitution float64

	contacts     []model.Press  // faces with a part of their force along the stroke, as they press along -s
	along, axial network.Form   // forces of all faces along u' and s'
	loss         *law.Expr      // sliding friction, W; nil: none
	factors      []network.Form // in loss
}

// face adds a face through the point (u0, s0) with the normal (nu, ns), of length 1, that points to the
// side of the free motion. It is a contact without compliance, with friction along the face:
//
//	opening = nu·(u - u0) + ns·(s - s0) >= 0
func (t *teeth) face(name string, nu, ns, u0, s0 float64, while ...model.RegionSet) {
	name = t.name + name
	across := append(t.tangential.Scaled(nu), t.stroke.Scaled(ns)...)
	gap := model.Gap{Sign: 1, Restitution: t.restitution, While: while}
	var opening network.Form
	switch {
	case nu == 0:
		gap.State, gap.Sign, gap.Limit = t.sleeve, ns*t.side, t.side*s0
	case ns == 0:
		gap.State, gap.Sign, gap.Limit = t.u, nu, u0
	default:
		constant := -nu*u0 - ns*s0
		opening = network.StateOf(t.u).Scaled(nu).Plus(t.s.Scaled(ns)).Plus(network.One(constant))
		gap.State = network.Add(&t.Network.States, network.State{Name: t.Name + "." + name, Unit: "m", At: t.At,
			Der: across.Speeds(1), Along: across, Start: constant})
		gap.Yields = t.sleeve
	}
	k := model.Friction{Name: t.Name + "." + name, Gain: 1, Peak: 1, OneWay: true, Gap: &gap,
		Signal: t.AddConstant(name, 0), Translational: true}
	contact := network.Add(&t.Network.Frictions, network.Friction{Friction: k, At: t.At, Rel: across, Opening: opening})
	t.Contacts = append(t.Contacts, contact)
	n := network.FrictionOf(contact).Scaled(-1)
	t.Exert(across, n)
	if ns < 0 {
		t.contacts = append(t.contacts, model.Press{Contact: contact, Per: -ns})
	}
	t.along, t.axial = t.along.Plus(n.Scaled(nu)), t.axial.Plus(n.Scaled(ns))
	if t.mu == 0 {
		return
	}

	along := append(t.tangential.Scaled(-ns), t.stroke.Scaled(nu)...)
	k = model.Friction{Name: t.Name + "." + name + "_friction", Gain: 1, Peak: 1, Signal: k.Signal, Translational: true,
		Face: 1 + contact, Mu: t.mu}
	own := network.Add(&t.Network.Frictions, network.Friction{Friction: k, At: t.At, Rel: along})
	t.Frictions = append(t.Frictions, own)
	f := network.FrictionOf(own)
	t.Exert(along, f.Scaled(-1))
	t.along, t.axial = t.along.Plus(f.Scaled(ns)), t.axial.Plus(f.Scaled(-nu))
	t.rubs(f, along)
}

// rubs adds the power of a friction torque or force at a slip to the loss.
func (t *teeth) rubs(f network.Form, slip network.Row) {
	power := law.Formula("f*slip", law.Names{"f": f, "slip": slip.Speeds(1)})
	if t.loss != nil {
		power = law.Formula("loss + power", law.Names{"loss": t.loss, "power": power})
	}
	t.loss = power
	t.factors = append(t.factors, f, slip.Speeds(1))
}

// profile is the profile of teeth in the plane of u and s.
type profile struct {
	pitch   float64 // m
	play    float64 // half play of engaged teeth, m
	flank   float64 // stroke at which the flanks begin, m
	tip     float64 // stroke of the tips, m
	flat    float64 // half of the flats of a pitch, m
	chamfer float64 // depth of the chamfers, m
	taper   float64 // rad
}

// set makes the regions of a set of regions of a switch.
func set(s int, regions ...int) model.RegionSet {
	r := model.RegionSet{Switch: s}
	for _, i := range regions {
		r.Set |= 1 << i
	}
	return r
}

// addProfile adds the faces of one pitch: flats, chamfers and flanks. The position u wraps in the middle of
// a flat, or at the tip of pointed teeth.
func (t *teeth) addProfile(p profile) {
	addSwitch := func(z network.Form, s model.Switch) int {
		s.Name, s.Inner = t.Name, true
		return network.Add(&t.Network.Switches, network.Region{At: t.At, Form: z, Switch: s})
	}
	depth := addSwitch(t.s, model.Switch{Borders: []float64{p.tip - p.chamfer, p.flank}})
	entry, engaged := set(depth, 1), set(depth, 2)
	half, edge := p.pitch/2, p.pitch/2-p.flat
	place := addSwitch(network.StateOf(t.u), model.Switch{While: []model.RegionSet{set(depth, 1, 2)},
		Wrap: &model.Wrap{State: t.u, Period: p.pitch}, Borders: []float64{-half, -p.play, p.play, half}})
	low, high := set(place, 1), set(place, 3)
	if p.flat > 0 {
		t.Network.Switches[place].Borders = []float64{-half, -edge, -p.play, p.play, edge, half}
		low, high = set(place, 2), set(place, 4)
		t.face("flat", 0, -1, 0, p.tip, entry, set(place, 1, 5))
	}
	width := edge - p.play
	slant := math.Hypot(p.chamfer, width)
	t.face("chamfer_max", -p.chamfer/slant, -width/slant, edge, p.tip, entry, high)
	t.face("chamfer_min", p.chamfer/slant, -width/slant, -edge, p.tip, entry, low)
	t.face("flank_max", -math.Cos(p.taper), math.Sin(p.taper), p.play, p.flank, engaged)
	t.face("flank_min", math.Cos(p.taper), math.Sin(p.taper), -p.play, p.flank, engaged)
}

// interlockPlay is how far beyond its play a rail is out of neutral for the other one: a rail at the end of its play
// is not, m.
const interlockPlay = 1e-9

// readInterlock reads an interlock of two rails: while one is out of neutral, stops hold the other in it.
func readInterlock(e *element.Element) element.Declared {
	play := e.Number("neutral")
	rails := [2]string{"a", "b"}
	var at [2]int // state
	var out [2]model.RegionSet
	for i, rail := range rails {
		at[i] = e.Angle(e.Node(rail))
		border := play + interlockPlay
		out[i] = set(network.Add(&e.Network.Switches, network.Region{At: e.At, Form: network.StateOf(at[i]),
			Switch: model.Switch{Name: e.Name, Inner: true, Borders: []float64{-border, border}}}), 0, 2)
	}
	for i, rail := range rails {
		held := model.Gap{State: at[i], Sign: 1, Limit: -play, While: []model.RegionSet{out[1-i]}}
		addStop(e, rail+"_min", network.RowOf(e.Node(rail)), held)
		held.Sign, held.Limit = -1, play
		addStop(e, rail+"_max", network.RowOf(e.Node(rail)), held)
	}
	return element.Declared{}
}

// readProfile reads the profile of pointed teeth whose tips meet the sleeve at stroke tip.
func (t *teeth) readProfile(tip float64) profile {
	count, radius, play := t.Number("teeth"), t.Number("radius"), t.Number("backlash")
	if count != math.Trunc(count) {
		t.Refuse(t.Place("teeth"), "teeth %g is not a whole number", count)
	}
	if pitch := 2 * math.Pi / count; !(play < pitch) {
		t.Refuse(t.Place("backlash"), "backlash %s is not below the pitch of %g teeth, %s", units.Format(play, "rad"),
			count, units.Format(pitch, "rad"))
	}
	chamfer := t.Number("chamfer")
	return profile{pitch: radius * 2 * math.Pi / count, play: radius * play / 2, chamfer: chamfer, tip: t.side * tip,
		flank: t.side*tip + chamfer}
}

// readDogClutch reads teeth of a sleeve on a that engage those of b.
func readDogClutch(e *element.Element) element.Declared {
	radius, flat := e.Number("radius"), e.Number("flat")
	t := newTeeth(e, "", e.Between, radius)
	p := t.readProfile(e.Number("s_contact"))
	p.flat, p.taper = radius*flat/2, e.Number("taper")
	if !(p.play+p.flat < p.pitch/2) {
		e.Refuse(e.Place("flat"), "flat %s and backlash leave nothing of the pitch of %s for the chamfers",
			units.Format(flat, "rad"), units.Format(p.pitch/radius, "rad"))
	}
	t.addProfile(p)
	t.addDetent()
	return t.declare(t.axial)
}

// declare declares the quantities of teeth with the force of all teeth on the sleeve, along the stroke.
func (t *teeth) declare(axial network.Form) element.Declared {
	radius := t.Number("radius")
	if t.loss == nil {
		t.loss = law.Number(0)
	}
	for _, f := range t.factors { // as law.Power: a loss acts slowly or not at all
		t.loss = t.loss.WithCombinedSlope(f, 0)
	}
	t.AddLoss(t.loss)
	t.NameForm("phi", network.StateOf(t.u).Scaled(1/radius))
	t.NameForm("f_axial", axial.Scaled(t.side))
	return element.Declared{Rel: t.Between, Tau: t.along.Scaled(-radius), Unit: "N.m", Friction: true}
}

// readSynchroniser reads a ring, its cone on b, and the teeth of b. The ring is a node. The force of the sleeve on the
// ring presses it on the cone.
func readSynchroniser(e *element.Element) element.Declared {
	ring, radius := e.OwnNode, e.Number("radius")
	r := newTeeth(e, "ring_", network.Difference(ring, e.Node("a")), radius)
	p := r.readProfile(e.Number("s_ring"))
	index := radius * e.Number("index")
	if !(p.play < index && index < p.pitch/2) {
		e.Refuse(e.Place("index"), "index %s is not between half the backlash, %s, and half the pitch, %s; there the ring does not block",
			units.Format(index/radius, "rad"), units.Format(p.play/radius, "rad"), units.Format(p.pitch/2/radius, "rad"))
	}
	turn := network.StateOf(r.u).Scaled(1 / radius)
	if e.Network.Nodes[ring].J += e.Number("J"); e.Number("J") > 0 {
		r.addProfile(p)
		addStop(e, "index_min", r.tangential, model.Gap{State: r.u, Sign: 1, Limit: -index, Restitution: r.restitution})
		addStop(e, "index_max", r.tangential, model.Gap{State: r.u, Sign: -1, Limit: index, Restitution: r.restitution})
	} else {
		r.addMasslessRing(p, index)
		turn = network.One(0)
	}

	t := newTeeth(e, "", e.Between, radius)
	t.loss, t.factors = r.loss, r.factors
	p = t.readProfile(e.Number("s_contact"))
	p.taper = e.Number("taper")
	t.addProfile(p)

	pressing := r.axial.Plus(t.addDetent().Scaled(t.side)).Scaled(-1)
	capacity := e.AddLaw("mu_fn", "N", law.Formula("mu_cone*fn", law.Names{"mu_cone": e.Number("mu_cone"), "fn": pressing}))
	rel := network.Difference(e.Node("b"), ring)
	k := model.Friction{Name: e.Name + ".cone", Signal: capacity.Index(), Gain: e.Number("cgeo"), Peak: e.Number("peak")}
	for _, c := range r.contacts {
		k.Presses = append(k.Presses, model.Press{Contact: c.Contact, Per: k.Gain * e.Number("mu_cone") * c.Per})
	}
	own := network.Add(&e.Network.Frictions, network.Friction{Friction: k, At: e.At, Rel: rel,
		Press: k.Signal, PerPress: k.Gain * k.Peak})
	e.Contacts = append(e.Contacts, own) // the contacts press it in their impacts
	cone := network.FrictionOf(own)
	e.Exert(rel, cone.Scaled(-1))
	t.rubs(cone, rel)
	e.NameForm("phi_ring", turn)
	e.NameForm("f_cone", pressing)
	d := t.declare(t.axial.Plus(r.axial))
	d.Energy = squared(e.Number("J")/2, network.RowOf(ring).Speeds(1))
	return d
}

// Of a ring without mass: the slip of the cone below which it lets the sleeve pass, rad/s, and the stroke behind its
// tips from which on the sleeve has passed, m.
const (
	ringRelease = 1e-8
	ringPassed  = 1e-6
)

// addMasslessRing adds a ring that lies at a stop while the cone slips, and gives way at once when it does not: a face
// across the stroke at the place where the chamfers meet at the stop.
func (t *teeth) addMasslessRing(p profile, index float64) {
	e := t.Element
	e.Tie(network.TermOf(e.OwnNode, 1), network.TermOf(e.Node("a"), -1))
	width, share, mu := p.pitch/2-p.play, 1/t.Number("radius"), t.mu
	t.mu = 0 // the ring does not turn against the sleeve
	torque := t.Number("mu_cone") * t.Number("cgeo") * share
	if least := (p.chamfer - mu*width) / (width + mu*p.chamfer); !(torque > least) {
		e.Refuse(e.Place("cgeo"), "the torque of the cone is %.3g times the index torque of the chamfers; a ring without mass must block: raise cgeo or mu_cone",
			torque/max(least, 1e-9))
	}
	at := p.tip + p.chamfer*(p.pitch/2-index)/width
	add := func(z network.Form, borders ...float64) int {
		return network.Add(&t.Network.Switches, network.Region{At: t.At, Form: z,
			Switch: model.Switch{Name: t.Name, Inner: true, Borders: borders}})
	}
	slip := network.Difference(e.Node("b"), e.Node("a")).Speeds(1)
	t.face("block", 0, -1, 0, at, set(add(t.s, at+ringPassed), 0), set(add(slip, -ringRelease, ringRelease), 0, 2))
}

// newTeeth makes the position of teeth between a sleeve and another part that turns by rel against it.
func newTeeth(e *element.Element, name string, rel network.Row, radius float64) *teeth {
	t := &teeth{Element: e, name: name, tangential: rel.Scaled(radius), side: 1, mu: e.Number("mu"),
		restitution: e.Number("restitution")}
	if e.Flag("reversed") {
		t.side = -1
	}
	t.sleeve = e.Angle(e.Node("sleeve"))
	t.s, t.stroke = network.StateOf(t.sleeve).Scaled(t.side), network.RowOf(e.Node("sleeve")).Scaled(t.side)
	t.u = network.Add(&e.Network.States, network.State{Name: e.Name + "." + name + "u", Unit: "m", At: e.At,
		Der: t.tangential.Speeds(1), Along: t.tangential})
	return t
}

// addDetent adds the force of a detent on the sleeve, straight between its rows and constant outside, and
// returns it.
func (t *teeth) addDetent() network.Form {
	if !t.Has("detent") {
		return nil
	}
	table := t.Table("detent")
	n := len(table.X)
	a := model.Affine{Slope: make([]float64, n+1), Offset: make([]float64, n+1)}
	for i := range n + 1 {
		if i > 0 && i < n {
			a.Slope[i] = (table.Z[i] - table.Z[i-1]) / (table.X[i] - table.X[i-1])
		}
		j := min(i, n-1)
		a.Offset[i] = table.Z[j] - a.Slope[i]*table.X[j]
	}
	a.Switch = network.Add(&t.Network.Switches, network.Region{At: t.At, Form: network.StateOf(t.sleeve),
		Switch: model.Switch{Name: t.Name, Borders: table.X, Inner: true}})
	f := network.SignalOf(t.AddSignal("detent", network.Signal{Unit: units.Want("N").Unit, Affine: &a}))
	t.Exert(network.RowOf(t.Node("sleeve")), f)
	return f
}
