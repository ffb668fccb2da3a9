package accuracy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/hil_test/rig"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/model/units"
)

// changedPlant is a plant on a grid of 5 ms, with options of the kernel.
type changedPlant struct {
	name string
	opt  kernel.Options
}

// changedPlants has powershift and one plant of each form of the kernel.
var changedPlants = []changedPlant{
	{name: "powershift"}, // precomputed lock sets
	{"powershift", kernel.Options{Scheme: kernel.Papers}},
	{"coupled-clutches", kernel.Options{Form: kernel.Held}},
	{name: "hybrid-spring"},    // regions
	{name: "hybrid-clearance"}, // impacts
	{name: "truck"},            // laws
	{name: "train3"},           // stepped sparse
}

// run runs a check of a plant as a subtest.
func (p changedPlant) run(t *testing.T, commanded bool, check func(*changeable, *testing.T)) {
	t.Run(strings.TrimSpace(fmt.Sprintf("%s %s%s", p.name, p.opt.Scheme, p.opt.Form)), func(t *testing.T) {
		c := newChangeable(t, p, commanded)
		if c.tables[0].Partition != nil { // a plant in two parts keeps its parameters
			return
		}
		if err := c.tables[1].Follows(c.tables[0]); err != nil {
			t.Fatal(err)
		}
		check(c, t)
	})
}

// changeable is a plant whose body has one of two inertias. Its outputs are the speed of the body and all
// states, then those of its file.
type changeable struct {
	name   string
	system [2]*model.System
	tables [2]*kernel.Tables
	grows  float64 // difference of the inertias, kg·m² or kg
	n      int     // states
}

// own is where the outputs of the plant begin: after the speed of the body and the states.
func (c *changeable) own() int { return 1 + c.n }

// newChangeable prepares a plant as it is, and with one body a tenth heavier: that with the most energy in the first
// 2 s. commanded says whether all inputs come from u, else from the plant's own waveforms.
func newChangeable(t *testing.T, plant changedPlant, commanded bool) *changeable {
	t.Helper()
	c, opt := &changeable{name: plant.name}, plant.opt
	opt.Period = 5 * time.Millisecond
	p := loadNetwork(t, plant.name)
	var bodies []int
	for i, n := range p.Nodes {
		if n.J > 0 && n.Owner != "fixed" && n.Driven == 0 {
			showSpeed(p, i, len(bodies))
			bodies = append(bodies, i)
		}
	}
	r, err := rig.New(assembled(t, p), opt, false)
	if err != nil {
		t.Fatal(err)
	}
	energies := make([]float64, len(bodies))
	for range 400 {
		r.Step(r.Y, r.U)
		for i, b := range bodies {
			energies[i] += p.Nodes[b].J * r.Y[i] * r.Y[i]
		}
	}
	body := bodies[slices.Index(energies, slices.Max(energies))]
	for i, factor := range []float64{1, 1.1} {
		p := loadNetwork(t, plant.name)
		c.grows = 0.1 * p.Nodes[body].J
		p.Nodes[body].J *= factor
		showSpeed(p, body, 0)
		sys := assembled(t, p)
		c.n = len(sys.States)
		showStates(sys)
		c.system[i] = sys
		opt.Driven = slices.Repeat([]bool{commanded}, len(sys.Inputs))
		if c.tables[i], err = kernel.Prepare(sys, opt); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func loadNetwork(t *testing.T, name string) *network.Plant {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load(name, data, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func assembled(t *testing.T, p *network.Plant) *model.System {
	t.Helper()
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// showSpeed makes the speed of a node output i.
func showSpeed(p *network.Plant, node, i int) {
	port := units.Port{Name: fmt.Sprintf("speed of node %d", node), Unit: "1", Min: math.Inf(-1), Max: math.Inf(1)}
	p.Outputs = slices.Insert(p.Outputs, i, network.Output{Port: port, Form: network.RowOf(node).Speeds(1)})
	for i := range p.Pulses {
		p.Pulses[i].Output++
	}
}

// showStates makes the states of a system its outputs 1 to n.
func showStates(sys *model.System) {
	n, m, mc := len(sys.States), len(sys.Signals), len(sys.Frictions)
	identity := make([]float64, n*n)
	ports := make([]units.Port, n)
	for i := range n {
		identity[i*n+i] = 1
		ports[i] = units.Port{Name: fmt.Sprintf("state %d", i), Unit: "1", Min: math.Inf(-1), Max: math.Inf(1)}
	}
	sys.Outputs = slices.Insert(sys.Outputs, 1, ports...)
	sys.C = slices.Insert(sys.C, n, identity...)
	sys.D = slices.Insert(sys.D, m, make([]float64, n*m)...)
	sys.Dc = slices.Insert(sys.Dc, mc, make([]float64, n*mc)...)
	for i := range sys.Pulses {
		sys.Pulses[i].Output += n
	}
}

// energy returns the energy of a state by the matrix of the assembled plant, ½·xᵀ·E·x, and the sum of the sizes of its
// terms.
func energy(e, x []float64) (sum, size float64) {
	for i := range x {
		for j := range x {
			term := 0.5 * x[i] * e[i*len(x)+j] * x[j]
			sum, size = sum+term, size+math.Abs(term)
		}
	}
	return sum, size
}

// checkEnergySteps changes the inertia of a body 1000 times at random ticks. Every state keeps its bits, so the
// energy jumps by half the difference of the inertias times the square of the speed of the body.
func (c *changeable) checkEnergySteps(t *testing.T) {
	const changes = 1000
	random := rand.New(rand.NewPCG(24, uint64(len(c.name))))
	s := []*kernel.Kernel{kernel.New(c.tables[0]), kernel.New(c.tables[1])}
	y, after := make([]float64, len(c.tables[0].Outputs)), make([]float64, len(c.tables[0].Outputs))
	active, waits, moving := 0, 0, 0
	var memory [2]runtime.MemStats
	runtime.ReadMemStats(&memory[0])
	for i := range changes {
		for range 1 + random.IntN(7) {
			s[active].Step(y, c.tables[0].Start)
		}
		for took := false; !took; waits++ {
			if took = s[1-active].TakeOver(s[active], c.tables[0].Start); !took {
				s[active].Step(y, c.tables[0].Start)
			}
			if waits > 100*changes {
				t.Fatalf("change %d waits for ever", i)
			}
		}
		s[1-active].Output(after)
		x := y[1:c.own()]
		for j, v := range x {
			if !scalar.EqualWithinAbsOrRel(v, after[1+j], 1e-15, 1e-12) { // a contact that is closed is set on its stop
				t.Fatalf("change %d: state %s is %.17g, before the change %.17g", i, c.system[0].States[j].Name, after[1+j], v)
			}
		}
		before, size := energy(c.system[active].E, x)
		now, _ := energy(c.system[1-active].E, after[1:c.own()])
		want := 0.5 * c.grows * y[0] * y[0]
		if active == 1 {
			want = -want
		}
		if !scalar.EqualWithinAbs(now-before, want, 1e-12*size) {
			t.Fatalf("change %d: the energy jumps by %.12g J from %.12g J, want %.12g J", i, now-before, before, want)
		}
		if !scalar.EqualWithinAbs(want, 0, 1e-9*size) {
			moving++
		}
		active = 1 - active
	}
	runtime.ReadMemStats(&memory[1])
	if n := memory[1].Mallocs - memory[0].Mallocs; n > changes/10 { // the runtime allocates now and then
		t.Errorf("%d changes have allocated %d times", changes, n)
	}
	t.Logf("%s: %d changes, %d with energy, %d offers", c.name, changes, moving, waits)
	if moving < changes/10 {
		t.Errorf("%d of %d changes of the energy", moving, changes)
	}
}

func TestThousandChangesOfAnInertiaChangeTheEnergyByItsClosedForm(t *testing.T) {
	for _, p := range changedPlants {
		p.run(t, false, (*changeable).checkEnergySteps)
	}
}

// checkFreshStart changes the inertia of a body under motion. A kernel that has had another life continues bit for
// bit as a new one does, and a fresh start in the carried state has the same outputs within rounding: it sets the
// residual slip of locked elements to zero, which a change keeps.
func (c *changeable) checkFreshStart(t *testing.T) {
	const ticks, held, compared = 600, 60, 200
	before, changed, other := kernel.New(c.tables[0]), kernel.New(c.tables[1]), kernel.New(c.tables[1])
	y, second := make([]float64, len(c.tables[0].Outputs)), make([]float64, len(c.tables[0].Outputs))
	u := slices.Clone(c.tables[0].Start)
	for k := range ticks {
		for i, in := range c.system[0].Inputs { // at last constant, as the history of a fresh start is
			u[i] = kernel.SourceAt(&c.system[0].Signals[in.Signal].Source, 0.005*float64(min(k, ticks-held)))
		}
		before.Step(y, u)
		changed.Step(second, u)
	}
	if !changed.TakeOver(before, u) || !other.TakeOver(before, u) {
		t.Fatal("the change waits")
	}
	tables := *c.tables[1]
	tables.X0, tables.Start = slices.Clone(y[1:c.own()]), slices.Clone(u)
	started, fresh := kernel.New(&tables), make([]float64, len(y))
	shown := len(c.system[0].Outputs) + 3*tables.Mc // the rest are regions, and counts since the start
	counted := func(i int) bool {
		return slices.ContainsFunc(tables.Pulses, func(p model.Pulses) bool { return i >= p.Output && i <= p.Output+2 })
	}
	worst := 0.0
	for k := range compared {
		changed.Step(y, u)
		other.Step(second, u)
		started.Step(fresh, u)
		for i, v := range y {
			if math.Float64bits(v) != math.Float64bits(second[i]) {
				t.Fatalf("tick %d: %s is %.17g, in a new kernel %.17g", k+1, tables.Outputs[i].Name, v, second[i])
			}
			if d := math.Abs(v-fresh[i]) / max(1, math.Abs(v)); i < shown && !counted(i) {
				worst = max(worst, d)
				if !(d <= 1e-8) {
					t.Fatalf("tick %d: %s is %.12g after the change, %.12g after a fresh start", k+1, tables.Outputs[i].Name, v, fresh[i])
				}
			}
		}
	}
	t.Logf("%s: largest difference to a fresh start %.2g", c.name, worst)
}

func TestChangeUnderMotionContinuesAsAFreshStartInItsState(t *testing.T) {
	for _, p := range changedPlants {
		p.run(t, true, (*changeable).checkFreshStart)
	}
}
