package rt

import (
	"math"
	"os"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
	"lockstep/sched"
)

// Outputs of integrator.
const (
	outX = iota // m
	outSteps
	outEvents
	outTransitions
	outLag
	outFault
	outputs
)

// integrator is the plant x' = u with x(0) = 0, whose step is exact:
// x(k·h) = h·Σu. It has the outputs that a Watch names.
type integrator struct {
	h       float64 // period, s
	x       float64
	steps   float64
	lag     float64 // reported lag, s
	failsAt float64 // the step at which its state is lost, 0: never
	resets  int
	during  func(step int) // what happens in a step; nil: nothing
	changes []lineFrom     // of the next step, by rising instant
}

// lineFrom is the line that the input follows from an instant on.
type lineFrom struct{ at, value, slope float64 }

func (p *integrator) Change(_ int, at, value, slope float64) {
	p.changes = append(p.changes, lineFrom{at, value, slope})
}

func (p *integrator) Dims() (m, q int) { return 1, outputs }

func (p *integrator) Step(y, u []float64) {
	p.steps++
	if p.during != nil {
		p.during(int(p.steps))
	}
	if p.steps == p.failsAt {
		p.x = math.NaN()
	}
	now := lineFrom{value: u[0]}
	p.changes = append(p.changes, lineFrom{at: p.h})
	for _, c := range p.changes {
		d := c.at - now.at
		p.x += d*now.value + d*d*now.slope/2
		now = c
	}
	p.changes = p.changes[:0]
	y[outX], y[outSteps], y[outEvents], y[outTransitions] = p.x, p.steps, 2*p.steps, 3*p.steps
	y[outLag], y[outFault] = p.lag/p.steps, 0
	if p.x != p.x {
		y[outFault] = 1 + 4 // state 4
	}
}

func (p *integrator) Reset() {
	p.x, p.steps = 0, 0
	p.resets++
}

// unwatched is the Watch of a plant without such outputs.
func unwatched() Watch { return Watch{Events: -1, Transitions: -1, Lag: -1, Fault: -1} }

const period = 5 * time.Millisecond

// database has one command, a state sent at every tick and a slow one sent at
// ticks 1, 5, 9, ...
func database(t testing.TB) *sigmap.Map {
	t.Helper()
	db := &messages.Database{File: "rt_test.dbc", Messages: []messages.Message{
		{Name: "Command", ID: 0x110, Len: 4, Signals: []messages.Signal{
			{Name: "u", Start: 0, Len: 16, Signed: true, Factor: 0.01, Min: -100, Max: 100, Unit: "m/s"},
		}},
		{Name: "State", ID: 0x200, Len: 8, Signals: []messages.Signal{
			{Name: "x", Start: 0, Len: 32, Signed: true, Factor: 1e-6, Min: -1000, Max: 1000, Unit: "m"},
			{Name: "steps", Start: 32, Len: 24, Factor: 1, Unit: "1"},
			{Name: "count", Start: 60, Len: 4, Factor: 1, Min: 0, Max: 15, Unit: "1"},
		}},
		{Name: "Slow", ID: 0x201, Len: 3, Signals: []messages.Signal{
			{Name: "steps", Start: 0, Len: 24, Factor: 1, Unit: "1"},
		}},
	}}
	in := []units.Port{{Name: "u", Unit: "m/s", Min: math.Inf(-1), Max: math.Inf(1)}}
	out := []units.Port{
		{Name: "x", Unit: "m", Min: math.Inf(-1), Max: math.Inf(1)},
		{Name: "steps", Unit: "1", Min: math.Inf(-1), Max: math.Inf(1)},
	}
	m, err := sigmap.Bind(db, sigmap.Spec{
		Receive: []sigmap.Link{{Message: "Command", Signal: "u", Port: "u"}},
		Send: []sigmap.Link{
			{Message: "State", Signal: "x", Port: "x"}, {Message: "State", Signal: "steps", Port: "steps"},
			{Message: "Slow", Signal: "steps", Port: "steps"},
		},
		Sendings: []sigmap.Sending{
			{Message: "State", CycleNs: int64(period), Counter: "count"},
			{Message: "Slow", CycleNs: 4 * int64(period), PhaseNs: int64(period)},
		},
		PeriodNs: int64(period),
	}, in, out)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// bench is an integrator on a bus under virtual time.
type bench struct {
	*Loop
	plant  *integrator
	ticker *sched.Virtual
	unit   *can.Bus // the other end of the bus
	page   *StatusBlock
}

func newBench(t testing.TB, o Overrun, change ...func(*Config, *integrator)) *bench {
	t.Helper()
	b := &bench{
		plant:  &integrator{h: period.Seconds(), lag: 0.004},
		ticker: sched.NewVirtual(period),
		page:   new(StatusBlock),
	}
	target, unit := pair(t)
	b.unit = unit
	cfg := Config{
		Period: period, Overrun: o, Start: []float64{0},
		Watch: Watch{Events: outEvents, Transitions: outTransitions, Lag: outLag, Fault: outFault},
	}
	for _, c := range change {
		c(&cfg, b.plant)
	}
	var err error
	b.Loop, err = New(cfg, b.plant, []*can.Bus{target}, []*sigmap.Map{database(t)}, b.ticker, b.page)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pair returns the two ends of a bus.
func pair(t testing.TB) (target, unit *can.Bus) {
	t.Helper()
	a, b, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	buses := [2]*can.Bus{}
	for i, f := range [...]*os.File{a, b} {
		if buses[i], err = can.Inherit(f); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = buses[i].Close() })
	}
	return buses[0], buses[1]
}

// turn waits for the ticker and ticks, until the run and what follows it is over
// or the given number of wake-ups.
func (b *bench) turn(wakeUps int) {
	for range wakeUps {
		if b.page.Reason.Load() != 0 && b.shutdownTicks <= 0 {
			return
		}
		n := b.ticker.Wait()
		b.Tick(n)
	}
}

// command puts a frame on the bus that asks for u, in m/s.
func (b *bench) command(t testing.TB, u float64) {
	t.Helper()
	raw := int16(math.RoundToEven(u * 100))
	if !b.unit.Send(&can.Frame{ID: 0x110, Len: 4, Data: [64]byte{byte(raw), byte(raw >> 8)}}) {
		t.Fatal("the unit cannot send")
	}
}

// sent holds the frames that the unit has received: steps and counter of each State frame, and the
// steps of each Slow frame.
type sent struct {
	steps, count, slow []int
	x                  []float64
}

func (b *bench) received() (s sent) {
	frames := make([]can.Frame, 1024)
	for _, f := range frames[:b.unit.Recv(frames)] {
		d := f.Data
		switch f.ID {
		case 0x200:
			s.x = append(s.x, 1e-6*float64(int32(uint32(d[0])|uint32(d[1])<<8|uint32(d[2])<<16|uint32(d[3])<<24)))
			s.steps = append(s.steps, int(d[4])|int(d[5])<<8|int(d[6])<<16)
			s.count = append(s.count, int(d[7]>>4))
		case 0x201:
			s.slow = append(s.slow, int(d[0])|int(d[1])<<8|int(d[2])<<16)
		}
	}
	return s
}
