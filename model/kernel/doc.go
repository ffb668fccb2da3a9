// Package kernel puts an assembled plant on a grid: it discretises, precomputes
// every lock state and steps.
//
// It owns the numbers of the tick and nothing else: no file, no name, no clock.
// Prepare may fail and allocates; Step does neither, and every loop in it has a
// bound that Prepare fixed.
//
// # Files, in reading order
//
// The tables, before the run:
//
//	prepare.go         Options, Tables, Prepare: what a kernel is made of
//	region.go          switches: regions, their combinations, slopes and borders
//	source.go          sources over time, their values and corners; signals of a piece
//	modes.go           dense plants: length of a piece, modes, projection, discretisation
//	steepness.go       how fast laws can follow the motion that they cause
//	net.go             sparse plants: Net, the blocks of friction elements
//	netprep.go         choice of dense or sparse, and the tables of a sparse plant
//	netspeed.go        eigenvalue bounds of a sparse plant
//	partition.go       plants in two parts: their tables
//	errors.go          errors that say which element, option or period
//	bounds.go          what a plant costs, for check and for tests
//	matrix.go          dense and sparse products
//
// A tick:
//
//	kernel.go          Kernel, New, Reset, Step, Output; events and the outputs
//	calls.go           the indirect calls of the tick, by phase, and why they are
//	step.go            travel: pieces up to the grid time; modes at the start of one; events
//	piece.go           the state over a piece as a polynomial; capacities, torques
//	law.go             laws: values, agreement with the motion over a piece
//	netpiece.go        the polynomial of a sparse plant
//	netlaw.go          laws of a sparse plant
//	moment.go          the state kept while the plant goes ahead to publish
//
// Where an event is:
//
//	suspect.go         whether a piece can hold an event; the first one in it
//	root.go            roots of the polynomials
//	guard.go           guards: where laws have corners
//	hunt.go            how closely laws must agree while an event is located
//	leap.go            a stride that is taken whatever happens in it
//
// What holds after an event:
//
//	resolve.go         which elements lock, slip or idle, block by block
//	balance.go         the linear complementarity problem behind that
//	lockset.go         the modes of a lock set: precomputed, or factorised in the tick
//	netlock.go         locks of a sparse plant
//	gap.go             clearances: closing, impacts, opening
//
// Beside the motion:
//
//	pulses.go          edges of wheel-speed sensors
//	partitionstep.go   the step in two parts
//	partitionpulses.go edges in that step
//	elementary.go      sin, cos, exp, atan without growing the stack
//	text.go            the source of the tick, for package codegen/specialise
//
// # The step
//
// A plant is x' = A·x + B·v + Bc·tau with friction torques tau (package model).
// The friction elements that are stuck form the lock set kappa. For each of the
// 2^mc lock sets Prepare projects the plant on W_kappa·x' = 0 and discretises
// the result exactly, so a locked element stays locked, does no work, and
// nothing is approximated while a mode lasts (form "projected"). Lock sets that
// do not fit in memory are factorised in the tick, at a bounded cost. The form
// "held" is the papers' own: one Phi for all lock states, the lock torque held
// over the step (000 eq. 3 to 9), parts of a step by linear interpolation
// (000 eq. 14); it is refused with a clearance, whose contact chatters in it.
//
// A tick is walked in pieces, at most one delta long, where delta times the
// fastest eigenvalue is at most one. A piece ends early at a corner of a source,
// at a command, and at an event: a slip that reaches zero, a lock torque that
// reaches the capacity. Whether a piece can hold an event is seen at its ends and
// slopes; where it lies is found on the Taylor polynomial of the state in that
// piece (degree fixed by Prepare), whose value is exact to rounding. At the event
// each element makes at most one transition (002, figures 6 and 7): a slip that
// reaches zero sticks if the capacity holds it and otherwise passes through, so
// it never transmits more than its capacity.
//
// Which elements at rest stick and which slip is a linear complementarity problem
// per instant, solved by pivoting on their slip accelerations alone. Where more
// elements stick than there are directions, independent ones with the largest
// reserve carry the load and are kappa; the others idle: each gives a constant
// part of its capacity. As long as there is an admissible split nothing breaks.
//
// The scheme "papers" ends the tick at the first event: the rest is owed in the
// lag buffer and the next steps are stretched until the plant is back on the
// grid (000 ch. 2.2.4, 3.2.4). The scheme "complete" goes on after the event and
// falls into the same buffer only when its budget is spent. A tick after which the
// lag could pass its bound does not end before the grid time. While lag > 0 the
// outputs are the prediction for the grid time: the plant goes there as such a tick
// would, is looked at, and comes back.
//
// # Beyond the budget
//
// On its way to the grid time a tick finds a bounded number of events, for each period
// that it spans. In what is then left, events less than a stride (a 64th of the period,
// or of a piece a quarter) behind the start of a piece are not told apart: the stride
// is taken as one, in the modes of its start, with this care. A gap that would close in
// it is held as it is: both sides go on together from the start, a plastic impact a
// little early. A slip that passes zero is braked once more for the time behind that,
// within its capacity. A spring that passes a border gets an impulse for the work that
// its old slope did wrong. So no gap overlaps, momentum is kept, and what a piece may
// make of energy is what friction moves a body past its rest in a stride; a slip or a
// border is up to a stride late. Events at one instant without end are taken alike.
//
// # Regions
//
// A switch of the plant (a spring or damper that is affine in regions) selects the
// slopes in A and the offsets in v. The combination of regions r beside the lock set
// kappa selects the mode: A_r = A + sum of slope·B_j·row, exact while no border is
// passed; a border is an event like the others, found on the polynomial of the level.
// The torque is continuous there, so nothing else happens. Regions of equal slopes,
// such as both sides of a symmetric spring, share their matrices. Modes are
// precomputed for every combination and lock set where they fit; otherwise the slopes
// are added and the locks factorised in the tick, at a bounded cost and in the same
// digits.
//
// # Long plants
//
// A train of twenty cars has 600 states of which each acts on a few others. Where dense
// matrices would cost twice as much or more, and where there are more than 64 friction
// elements, a plant is stepped sparse (Net): every piece on its Taylor polynomial, with
// A of the entries that are not 0. The friction elements fall into blocks that act on
// each other at once, such as the brakes of one bogie; kappa has a word for each, and
// locks are factorised, balanced and settled block by block. A lock set is no matrix
// then: each derivative finds the torques of its locks. The torques are part of the
// polynomial, and guards are sought on those of what they read.
//
// Laws begin a piece as they ended the one before, and what a round changes is added to
// the polynomial, to a degree that falls with its size; a round is Newton's method for
// what a law has in its own motion, and the secant for a torque that laws read and act on
// at once (netlaw.go). The motion is that of the dense form within 1e-11 of its range for
// a rail car, 3e-8 for three of them with couplers. One event makes all of the plant begin
// a piece anew. What is beyond it is thrown away, so it is hunted with as few rounds as its
// place needs, none where it is near (hunt), on a polynomial of as few terms; and a tick
// locates few of them, the fewer the longer the plant (Options.EventBudget). The others happen at the end of their piece,
// momentum kept, since a stride is a piece there, which makes more energy of them than
// short strides do: with one located per tick, three cars move by 2e-6 of their range and
// their wheels by 5e-4. Cost and memory grow with the length of the plant.
//
// # Gaps
//
// One side of a clearance is a friction element that exists while the gap is closed: a
// freewheel without friction, so contact, its force and its end are those of a lock.
// While the gap is open it has no torque, and its closing is an event: the impact turns
// the slip by an impulse Bc_i·p, and p that of the free plant, W_i·x+ = -e·W_i·x. Closed
// gaps and freewheels take it on one after the other, the fastest first (equal balls in
// a row hand an elastic blow on to the last); those that close against each other at one
// instant take it at once, so what is symmetric stays so. Locks break under it. A rebound
// too slow or too short to be seen ends in contact, and after many of a gap in a tick one
// shorter than a stride; so do those of an instant beyond a bound: all that still closes
// then goes on together, momentum kept.
// A closed gap is exactly 0; the root that it has there is divided out of the polynomial
// on which the next one is sought.
//
// # Pulses
//
// A wheel-speed sensor counts the edges that its angle passes. They are sought on the
// polynomial of each piece that is taken, which is expanded for it only where an edge is
// near, and change nothing of the motion. The angle goes one way between the roots of its
// slope; there the number of edges follows from its ends, and the instants of the last two
// are looked for: at most two roots for each turn of the wheel's direction, whatever its
// speed. In the form "held" the polynomial is the papers' line, and so are the instants.
//
// # Laws
//
// Some signals are laws of the state (an engine map, a converter, a backlash).
// Over a piece each is the parabola through its values at three points, brought
// in line with the motion it causes by a bounded number of iterations; pieces are
// then at most half as long as the time in which a law can follow that motion.
// Where laws do not settle, since something that they read has grown beyond what is known
// of it, a piece is halved, up to five times; what does not settle then is counted.
// Where a law has a corner the plant has a guard: the piece ends there too.
//
// # In two parts
//
// A plant with a Partition has no pieces and no events: partition.go tells the parts
// apart, partitionstep.go steps them. Signals, laws, locks and what is published are those
// of the other step. The states of the latent part are carried over the period by Phi,
// Omega0 and Omega1 of that part alone, with what the active part, laws, friction and
// sources exert on it as external forces; those of the active part by Runge and Kutta with
// the locks as they are at the start of a micro step. Friction that acts on the latent
// part alone follows at the same instants, on the straight line that the latent part is
// there. Such a plant is stepped dense, however long it is. Its pulses are counted on the
// cubics of partitionpulses.go.
//
// # The tick keeps its processor
//
// Every function that Step reaches is marked //go:nosplit: the scheduler of Go
// preempts a goroutine where a function may grow the stack, and at any instruction
// of one that is not marked so. A function added to the tick gets the mark, calls
// nothing of the runtime but memmove and memclr, nothing of package math that is
// no instruction (elementary.go has the others), appends nothing, stores no
// pointer. hil_test/cost/tick_code_test.go disassembles the command and names the
// chain of calls that breaks this.
//
// The linker allows such a chain about 800 bytes of stack and refuses to link a
// longer one; the indirect calls of calls.go start it anew. All of a tick must
// fit in 16 KB, which the same test adds up, without recursion: the loop grows its
// stack to 64 KB before the first tick. A build without inlining (-gcflags=-l)
// takes more than the linker allows.
//
// # Symbols
//
// This table is the only place where they are defined. Matrices are row-major.
//
//	symbol  Go        shape    unit        meaning                                source
//	x       x         n        rad/s, rad  state                                  model
//	v       -         m        per signal  sources and commands                   model
//	tau     tau       mc       N·m         friction torques                       model
//	w       w0 w1 w2  m+mc     -           (v, sliding tau) over a piece:         -
//	                                       w0 + w1·theta + w2·theta²
//	theta   theta     -        1           place in a piece, 0 to 1               -
//	h       h         -        s           period of the grid                     -
//	delta   delta     -        s           longest piece, h/2^k                   -
//	Phi     Phi       n×n      -           state transition of one piece          Van Loan 1978
//	Gamma   G0 G1 G2  n×(m+mc) -           effect of w0, w1, w2 over one piece    003 Omega0, Omega1
//	kappa   kappa     mc bits  -           which elements are stuck and carry,    000 eq. 4 (print inverts it)
//	                                       a word per block
//	r       region    switches -           regions; base is their combination     000 eq. 36
//	T, U    T U       mc×n ..  -           lock torques: tau = T·x + U·w          000 eq. 7, 8 (Xi)
//	P       P         n×n      -           projection on W_kappa·x = 0            -
//	eta     eta       -        1           part of the step up to the first event 000 eq. 16
//	lag     lag       s        s           grid time minus plant time             000 ch. 3.2.4
package kernel
