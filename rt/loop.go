package rt

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/checkpoint"
	"lockstep/rt/fault"
	"lockstep/rt/network"
	"lockstep/sched"
)

// Plant is what the loop steps: y are the outputs at the end of one period in which the inputs were
// u. The loop can warm up a plant that has a method Reset.
type Plant interface {
	Step(y, u []float64)
	Dims() (m, p int) // len(u), len(y)
}

// ParameterChanger is a Plant whose parameters change: at grid points known before the run, and by offers
// during the run.
type ParameterChanger interface {
	Changes() (decided int, refused uint64) // number decided so far, those that were refused as bits

	// Offer makes other tables, in a slot of memory that the plant knows, take over at the next step at
	// which they can. Offered reports whether they wait, and why they were refused; 0: they were not.
	Offer(slot int)
	Offered() (waits bool, obstacle int)
}

// Signals moves values between the frames of one bus and the vectors of the plant. It is a
// *sigmap.Map, which works by tables, or code generated for one such map.
type Signals interface {
	Decode(u []float64, f *can.Frame) (int, sigmap.Result)
	Due(i int, tick int64, y []float64, forced bool) bool
	Encode(f *can.Frame, i int, tick int64, y []float64, forced bool) bool
}

// MaxRecv bounds how many frames a tick reads from one bus. A 1 Mbit/s bus of the shortest frames,
// 47 bits, carries 213 in 10 ms. Further frames stay in the kernel's buffer; the kernel counts the
// ones it drops.
const MaxRecv = 256

// Loop is a run: it receives, steps and sends at every point of the grid.
//
// Every function that a tick calls is //go:nosplit: it has no stack check, so the Go scheduler
// finds no place to preempt it. The comment of package kernel says what this demands of the code.
type Loop struct {
	U []float64 // m, inputs of the next step
	Y []float64 // p, outputs of the last step

	cfg    Config
	plant  Plant
	buses  []*can.Bus
	maps   []*sigmap.Map // one per bus
	coders []Signals     // one per bus, of the maps
	timing []Signals     // one per bus, for Due: the maps where a switch-on moves phases, which generated code does not know; else coders
	ticker sched.Ticker
	status *StatusBlock
	grid   sched.Grid // grid of the ticker

	k             int64       // last grid point stepped to
	behind        int64       // grid points passed but not stepped over yet
	reason        Reason      // why the run ended; NotEnded while it runs
	shutdownTicks int64       // grid points after the end at which the safe values are still sent
	safe          bool        // the bus carries the safe values
	urgent        bool        // send all safe frames at the next served point, due or not
	firstRx       []int       // per bus, index in StatusBlock.LastRx of its first message
	firstTx       []int       // per bus, index in StatusBlock.TxCount of its first message
	sentIDs       [][]sentID  // per bus, identifiers of its sent messages
	baseline      []can.Stats // per bus, counts at the first tick
	down          uint64      // sum of can.Stats.Down over the buses at the last tick
	frames        [MaxRecv]can.Frame
	stamps        [MaxRecv]can.Stamp
	frame         can.Frame
	entry         Entry         // ring entry of the frame at hand
	response      responseTimer // frames received and not answered yet
	arrivals      []arrival     // per received message, bus after bus
	wire          []wireClock   // per bus
	departures    []departure   // per sent message, bus after bus
	calls         calls
	supervisor    supervisorWatch
	times         times
	start         usage
	mem           runtime.MemStats

	portFrame PortFrame // scratch
	original  can.Frame // scratch of receiveFrame
	onlyAsked bool      // the frame at hand is sent because of a request alone

	changer ParameterChanger // the plant, where its parameters change; nil: they do not
	changes int              // changes entered in the ring

	checkpointer Checkpointer // the plant; nil: it cannot be copied
	checkpoint   *checkpoint.Plan
	copied       *checkpoint.Memory // for copies of the loop's state; nil: the loop makes none

	inputs *Inputs
	clock  realtimeClock // of the receive stamps, in the tick at hand

	network       *network.Machine // nil: every frame is sent all the time
	networkChange network.Change   // scratch

	disturbance
}

// New returns the loop of a plant between buses, with one map per bus; a simulation without buses
// has no maps. It returns an error if the status block has too little room. status comes from
// CreateStatusBlock, MapStatusBlock or new.
func New(cfg Config, p Plant, buses []*can.Bus, maps []*sigmap.Map, tk sched.Ticker, status *StatusBlock) (*Loop, error) {
	m, q := p.Dims()
	l := &Loop{
		U: make([]float64, m), Y: make([]float64, q),
		cfg: cfg, plant: p, buses: buses, maps: maps, ticker: tk, status: status, grid: tk.Grid(),
		baseline: make([]can.Stats, len(buses)),
	}
	rx, tx := 0, 0
	for _, mp := range maps {
		l.coders, l.timing = append(l.coders, mp), append(l.timing, mp)
		l.firstRx, l.firstTx = append(l.firstRx, rx), append(l.firstTx, tx)
		l.sentIDs = append(l.sentIDs, sentIDs(mp, tx))
		rx += len(mp.Rx)
		tx += len(mp.Tx)
	}

	switch {
	case q > MaxOutputs:
		return nil, fmt.Errorf("rt: the plant has %d outputs, the status block has room for %d", q, MaxOutputs)
	case len(buses) > MaxBuses:
		return nil, fmt.Errorf("rt: %d buses, the status block has room for %d", len(buses), MaxBuses)
	case rx > MaxRx:
		return nil, fmt.Errorf("rt: %d messages are received, the status block has room for %d", rx, MaxRx)
	case tx > MaxTx:
		return nil, fmt.Errorf("rt: %d messages are sent, the status block has room for %d", tx, MaxTx)
	}

	if l.cfg.Budget == 0 {
		l.cfg.Budget = cfg.Period / 2
	}
	for i, bus := range buses {
		if cfg.Wires == nil {
			break
		}
		if err := bus.UseWire(cfg.Wires[i], maps[i].LoopFilters(), int64(cfg.Period)); err != nil {
			return nil, err
		}
	}
	driver, _ := p.(fault.Driver)
	l.changer, _ = p.(ParameterChanger)
	var err error
	if l.faults, err = fault.New(cfg.Faults, fault.System{PeriodNs: int64(cfg.Period), M: m, P: q, Maps: maps, Plant: driver}); err != nil {
		return nil, err
	}
	if l.network, err = network.New(cfg.Network, maps); err != nil {
		return nil, err
	}
	changer, ok := p.(Changer)
	if cfg.Inputs.IsTimed() && !ok {
		return nil, errors.New("rt: the kernel in use takes its inputs at the start of a step only: " +
			"use inputs_at: grid without a ramp, or generate it again from this bench")
	}
	l.inputs = NewInputs(cfg.Inputs, maps, int64(cfg.Period), cfg.Start, changer)
	l.wire = make([]wireClock, len(buses))
	l.arrivals, l.departures, l.calls = make([]arrival, rx), make([]departure, tx), newCalls()
	l.times.real, l.times.start, l.times.simulated = len(buses) > 0 && !cfg.Virtual, time.Now(), sinceStart
	l.times.unpaused, l.times.untimed = cfg.Unpaused, cfg.Untimed
	copy(l.U, cfg.Start)
	l.showSending()
	return l, nil
}

// UseCoders replaces the tables of the maps by generated code, one per bus. Call it before the run.
func (l *Loop) UseCoders(coders []Signals) {
	if l.coders = coders; l.network == nil {
		l.timing = coders
	}
}

// Checkpointer is a Plant whose state can be copied: see kernel.Sequence.
type Checkpointer interface {
	ReserveState() []any
	SaveState()
}

// UseCheckpoint makes the loop copy its state to memory when a record starts. Call it before the run. A plant that
// is no Checkpointer makes no copies.
func (l *Loop) UseCheckpoint(m *checkpoint.Memory) {
	c, ok := l.plant.(Checkpointer)
	if !ok {
		return
	}
	p := PlanCheckpoint(c, l.maps, l.inputs, l.faults, l.network, &l.U, &l.Y)
	if m.Use(p) {
		l.checkpointer, l.checkpoint, l.copied = c, p, m
	}
}

// PlanCheckpoint returns the plan of the state that the next ticks of a loop read. A replay makes it of its own parts.
func PlanCheckpoint(plant Checkpointer, maps []*sigmap.Map, inputs *Inputs, faults *fault.Set, n *network.Machine, u, y *[]float64) *checkpoint.Plan {
	list := append(plant.ReserveState(), u, y, inputs, faults)
	if n != nil {
		list = append(list, n)
	}
	for _, m := range maps {
		list = append(list, m)
	}
	return checkpoint.New(list...)
}

// UseSnapshots stores states of the plant elsewhere than in the plant. Call it before the run.
func (l *Loop) UseSnapshots(r fault.Restorer) { l.faults.Restorer = r }

// Tick serves n grid points, n-1 of which were missed: it receives, then steps and sends point by
// point. It allocates nothing and takes a bounded time. The run has ended when StatusBlock.Reason
// is not 0.
//
// Missed points are stepped after the receive. So under Skip and CatchUp a command that arrived
// during the gap drives the missed points too. With InputPlan.AtArrival and a receive stamp it drives
// them from its arrival on.
//
//go:nosplit
func (l *Loop) Tick(n int64) {
	l.times.begin() // first: the time between these two clock readings counts
	woke := l.ticker.Now()
	if l.reason != NotEnded {
		l.receive() // the values are not needed, but unread frames would be dropped and counted as lost
		l.shutdown(n)
		l.publish()
		return
	}

	first := l.k + l.behind + 1
	if n = l.countMissed(woke, n); l.reason == NotEnded {
		l.calls.beginPoint(l, l.k+1)
	}
	l.clock.measured = false
	l.receive()
	l.times.addPhase(Receive)
	if l.reason == NotEnded {
		l.stepAndSend(n)
	} else {
		l.dropMissed(n)
	}

	l.superviseRun()
	l.publish()
	l.recordTick(woke, first, n)
}

// countMissed counts the missed points and records the wake-up latency of each point passed, at
// most maxOverrun+1 of them. It returns how many points belong to the run: points after the last
// tick asked for are not missed.
//
//go:nosplit
func (l *Loop) countMissed(woke, n int64) int64 {
	before := l.k + l.behind
	if l.cfg.Ticks > 0 {
		n = min(n, l.cfg.Ticks-before)
	}
	for i := range min(n, maxOverrun+1) {
		l.status.Late.Record(woke - l.grid.Due(before+1+i))
	}
	lost := max(0, n-1)
	if lost > 0 {
		l.status.Missed.Store(l.status.Missed.Load() + uint64(lost))
	}
	switch {
	case lost == 0:
	case l.cfg.Overrun.Policy == Stop:
		l.end(MissedTick)
	case l.cfg.Overrun.Policy == Safe:
		l.goSafe(MissedTick)
	case lost > int64(l.cfg.Overrun.Max):
		l.goSafe(MissedLimit)
	}

	return n
}

// stepAndSend steps the plant over the n points passed and those still behind. It sends the frames
// due at the last point, and those of missed points as the policy says. One wake-up steps over
// maxOverrun+1 points at most.
//
//go:nosplit
func (l *Loop) stepAndSend(n int64) {
	l.behind += n
	now := l.k + l.behind
	for i := range maxOverrun + 1 {
		if l.behind == 0 || l.reason != NotEnded {
			break
		}
		if i > 0 { // Tick has begun the first point
			l.calls.beginPoint(l, l.k+1)
		}
		l.behind--
		if l.behind == 0 || i == maxOverrun { // the last point of this wake-up
			l.superviseMessages(l.k + 1)
		}
		l.step()
		l.times.addPhase(Step)
		if l.behind > 0 && l.reason == NotEnded {
			l.send(l.k, l.cfg.Overrun.Policy == CatchUp && !l.safe)
			l.times.addPhase(Send)
		}
	}

	l.send(now, true)
	l.times.addPhase(Send)
	if behind := uint64(l.behind); behind != l.status.Behind.Load() { // a store costs more than a load
		l.status.Behind.Store(behind)
	}
}

// dropMissed passes n points of a run that ended because n-1 of them were missed. The plant's
// frames of these points are not sent; safe values that follow the end go out at once.
//
//go:nosplit
func (l *Loop) dropMissed(n int64) {
	for i := range min(n-1, maxOverrun) {
		l.send(l.k+l.behind+1+i, false)
	}
	if l.shutdownTicks > 0 {
		l.behind += n - 1
		l.shutdown(1)
	}

	l.times.addPhase(Send)
}

// step steps the plant to the next grid point.
//
//go:nosplit
func (l *Loop) step() {
	l.k++
	u := l.calls.advanceInputs(l.inputs, l.k, l.U, l.faults)
	u = l.calls.disturbInputs(l.faults, l.k, u)
	l.plant.Step(l.Y, l.inputs.Command(u, l.faults))
	l.enterChanges()
	l.calls.disturbSignals(l.faults, l.k, l.Y)
	l.status.ring.enterStep(l.k, u, l.Y)
	w := &l.cfg.Watch
	if w.Lag >= 0 && l.Y[w.Lag] > l.status.LagMax() {
		l.status.LagBits.Store(math.Float64bits(l.Y[w.Lag]))
	}
	if w.Fault >= 0 && l.Y[w.Fault] != 0 {
		l.status.BrokenState.Store(uint64(max(0, l.Y[w.Fault]-1)))
		l.end(NonFinite)
	}

	if l.k == l.cfg.Ticks {
		l.end(Done)
	}
}

// enterChanges enters the changes of parameters that the last step has decided.
//
//go:nosplit
func (l *Loop) enterChanges() {
	if l.changer == nil {
		return
	}
	n, refused := l.changer.Changes()
	for ; l.changes < n; l.changes++ {
		if refused>>l.changes&1 == 0 {
			l.status.mail.offer.phase.Store(uint64(l.changes) + 1)
		}
		l.status.ring.enterChange(l.k, int64(l.changes), refused>>l.changes&1)
	}
	if o := &l.status.mail.offer; o.decided.Load() != o.seen {
		l.enterOffer(o)
	}
}

// enterOffer enters the decision on the offered tables, if the last step has made it.
//
//go:nosplit
func (l *Loop) enterOffer(o *offer) {
	waits, obstacle := l.changer.Offered()
	if waits {
		return
	}
	if obstacle == 0 {
		o.active.Store(1 + o.slot)
		o.changes.Store(o.changes.Load() + 1)
	} else {
		o.refusals.Store(o.refusals.Load() + 1)
	}
	o.tick.Store(uint64(l.k))
	o.obstacle.Store(uint64(obstacle))
	l.status.ring.enterChange(l.k, -int64(o.seen), uint64(obstacle))
	o.decided.Store(o.seen)
}

// publishEvery is the number of ticks between two publications of outputs and counters in a simulation without
// buses, where nobody reads them before the end of the run. Nobody reads the tick either where nothing happens
// between two ticks, or their time is not measured.
const publishEvery = 256

// publish writes the outputs and the counters of buses and maps to the status block.
//
//go:nosplit
func (l *Loop) publish() {
	p := l.status
	if len(l.buses) == 0 && l.reason == NotEnded && l.k%publishEvery != 0 {
		if !l.times.unpaused && !l.times.untimed {
			p.Ticks.Store(uint64(l.k))
		}
		return
	}

	var s can.Stats
	var saturated uint64
	for b, bus := range l.buses {
		s.RxOverflow += bus.Stats.RxOverflow - l.baseline[b].RxOverflow
		s.BadSize += bus.Stats.BadSize - l.baseline[b].BadSize
		s.TxDropped += bus.Stats.TxDropped - l.baseline[b].TxDropped
		s.Down += bus.Stats.Down - l.baseline[b].Down
		s.Errors += bus.Stats.Errors - l.baseline[b].Errors
		s.Offs += bus.Stats.Offs // also those before the first tick
		saturated += l.maps[b].Saturated
	}

	l.publishWire()
	p.RxOverflow.Store(s.RxOverflow)
	p.RxBadSize.Store(s.BadSize)
	p.TxDropped.Store(s.TxDropped)
	if s.Down > l.down {
		p.BusDown.Add(1)
		l.reactToLoss(l.cfg.Bus.Action, BusLost)
	}

	l.down = s.Down
	p.BusErrors.Store(s.Errors)
	p.BusOffs.Store(s.Offs)
	p.Saturated.Store(saturated)
	p.InputsMerged.Store(l.inputs.Merged)
	if i := l.cfg.Watch.Events; i >= 0 {
		p.Events.Store(uint64(l.Y[i]) + l.events)
	}
	if i := l.cfg.Watch.Transitions; i >= 0 {
		p.Transitions.Store(uint64(l.Y[i]) + l.transitions)
	}
	p.Ticks.Store(uint64(l.k))
	p.SimNs.Store(uint64(l.k * int64(l.cfg.Period)))
	l.publishMessages()
	l.publishFaults()
	p.publish(l.k, l.Y)
}
