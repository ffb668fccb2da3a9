package model

// Plant is a plant file that was read and checked: a network of nodes and of what
// acts between them. All values are SI.
type Plant struct {
	Name  string
	About string
	File  string

	nodes     []node
	ties      []tie
	states    []state
	efforts   []effort
	frictions []friction
	signals   []signal // the inputs first, in their order
	switches  []region
	guards    []guard
	losses    []loss
	pushes    []push
	inputs    []Input // Signal is an index into signals
	outputs   []output
	pulses    []Pulses   // State is an index into states
	partition *Partition // nil: none
}

// domain is what a node does: it turns or it moves. A speed of either kind is a
// coordinate of the same network.
type domain int

const (
	anyDomain domain = iota
	rotational
	translational
)

func (d domain) String() string {
	return [...]string{"of any kind", "rotational", "translational"}[d]
}

// node is a speed, rad/s or m/s. Without inertia, it follows from the gears, or from
// the springs and dampers at it.
type node struct {
	name   string
	at     pos     // where it is declared, or first used
	owner  string  // the kind that owns it: "inertia", "fixed", ...; "" massless
	domain domain  // anyDomain counts as rotational
	by     string  // the element that fixed the domain
	J      float64 // kg·m² or kg; > 0 for an inertia or mass, else 0
	start  float64 // initial speed
	given  bool    // start was written
	phi0   float64 // initial angle or position
	placed bool    // phi0 was written
	framed bool    // it is of a body, which alone says where it starts
	fixes  bool    // phi0 is a place in the plane,
	loose  bool    // or it leaves out an offset from the centre of a body, of which no place was written
	driven int     // 1 + the state that is its speed; 0: it is not prescribed
	users  []string
}

// tilts tells whether the node is the angle of a body.
func tilts(n *node) bool { return n.framed && n.domain == rotational }

// row is a linear form of the speeds: Σ coef·w[node].
type row []term

type term struct {
	node int // index into Plant.nodes
	coef float64
}

// tie is a rigid connection: row = 0. It exerts a multiplier along row.
type tie struct {
	name  string
	at    pos
	row   row
	gap   float64 // what row is of places (angles) instead of speeds
	joint bool    // it must take a degree of freedom
}

// state is a quantity with der as its rate: the twist of a spring, an angle, a
// temperature, a lag.
type state struct {
	name  string
	unit  string // SI
	at    pos
	der   form
	start float64
	speed row     // start is the speed along these nodes where one of them is given
	along row     // the angles (positions) of these nodes are added to start where they are known
	stays bool    // where none of them is known, start holds; otherwise the state is 0 then
	c     float64 // the stored energy is ½·c·x²
}

// effort is a torque or force: value acts along row, on node n with its coefficient.
type effort struct {
	element string
	at      pos
	row     row
	value   form
}

// friction is a friction element: |tau| <= gain·max(0, v[signal] - offset).
type friction struct {
	Friction
	at    pos
	rel   row     // w_b - w_a
	press int     // signal of its normal force
	rough float64 // torque at most for each N of that; 0: not known
}

// signal is a value over time, in SI: a source, or a law of the plant.
type signal struct {
	name   string
	source Source
	law    *law
	affine *Affine
	course course // as it was written, of an element; nil: not
	unit   Unit
	most   float64 // largest absolute value to be expected; 0: unknown
	linear form    // the same value as a form of signals, where it is one
	at     pos
	read   bool // something depends on it
}

// guard is a place where a law has a corner.
type guard struct {
	name string
	at   pos
	law  law
}

// region is a Switch in the making: z as a form of speeds and states.
type region struct {
	Switch
	at   pos
	form form
}

// output is a port: a linear form of what the plant has.
type output struct {
	Port
	at   pos
	form form
}

// form is a sum of quantities.
type form []measure

// measure is coef times one quantity of the plant; index is into the list that
// kind says.
type measure struct {
	kind  measureKind
	index int
	coef  float64
}

type measureKind int

const (
	ofOne      measureKind = iota // the number 1
	ofSpeed                       // nodes
	ofAccel                       // nodes: the rate of their speed; in outputs and laws only
	ofDrive                       // nodes: what drives a prescribed one; in outputs and laws only
	ofTie                         // ties: the multiplier; in outputs and laws only
	ofLoad                        // losses: the torque into flange a without the gear's own friction; in laws only
	ofShare                       // losses: how much of its friction torque flange a gives; a number, in laws only
	ofPush                        // pushes: the loss of a contact; in laws only
	ofState                       // states
	ofSignal                      // signals
	ofFriction                    // frictions: tau; not in rates
)

// speeds is the row as a form, times scale.
func (r row) speeds(scale float64) form {
	var f form
	for _, t := range r {
		f = append(f, measure{ofSpeed, t.node, scale * t.coef})
	}
	return f
}

// scaled is f times the number k.
func (f form) scaled(k float64) form {
	out := make(form, len(f))
	for i, m := range f {
		out[i] = measure{m.kind, m.index, k * m.coef}
	}
	return out
}

// plus is f + g.
func (f form) plus(g form) form { return append(append(form(nil), f...), g...) }

// The quantities of a plant as forms, with coefficient 1; one is a number.
func one(v float64) form    { return form{{ofOne, 0, v}} }
func accelOf(n int) form    { return form{{ofAccel, n, 1}} }
func driveOf(n int) form    { return form{{ofDrive, n, 1}} }
func tieOf(i int) form      { return form{{ofTie, i, 1}} }
func loadOf(i int) form     { return form{{ofLoad, i, 1}} }
func shareOf(i int) form    { return form{{ofShare, i, 1}} }
func pushOf(i int) form     { return form{{ofPush, i, 1}} }
func stateOf(i int) form    { return form{{ofState, i, 1}} }
func signalOf(i int) form   { return form{{ofSignal, i, 1}} }
func frictionOf(i int) form { return form{{ofFriction, i, 1}} }

// coef is the coefficient of node n.
func (r row) coef(n int) (c float64) {
	for _, t := range r {
		if t.node == n {
			c += t.coef
		}
	}
	return c
}

// termOf is coef·w[n].
func termOf(n int, coef float64) term { return term{n, coef} }

// rowOf is w[n].
func rowOf(n int) row { return row{termOf(n, 1)} }

// difference is w[plus] - w[minus]; ground does not move.
func difference(plus, minus int) row {
	var r row
	if plus != ground {
		r = append(r, term{plus, 1})
	}
	if minus != ground {
		r = append(r, term{minus, -1})
	}
	return r
}

// ground is the node that does not move, where a support is left out.
const ground = -1
