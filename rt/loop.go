package rt

import (
	"fmt"
	"math"
	"runtime"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
	"lockstep/sched"
)

// Plant is what the loop steps: y = outputs at the end of one period in which
// the inputs were u. If it has a method Reset, the loop can warm it up.
type Plant interface {
	Step(y, u []float64)
	Dims() (m, p int) // len(u), len(y)
}

// Signals moves values between the frames of one bus and the vectors of the plant:
// *sigmap.Map by its tables, or code that was made for one map and works on it.
type Signals interface {
	Decode(u []float64, f *can.Frame) (int, sigmap.Result)
	Due(i int, tick int64, y []float64, forced bool) bool
	Encode(f *can.Frame, i int, tick int64, y []float64, forced bool) bool
}

// MaxRecv bounds how many frames a tick reads from one bus. A 1 Mbit/s bus of
// the shortest frames, 47 bits, carries 213 in 10 ms; what is more stays in the
// kernel's buffer, which counts what it drops.
const MaxRecv = 256

// Loop is a run: it receives, steps and sends at every point of the grid.
//
// Every function that a tick calls is //go:nosplit: it has no check of the stack,
// so that the Go scheduler finds no place to take its processor away. See the
// comment in package kernel on what that asks of the code.
type Loop struct {
	U []float64 // m, inputs of the next step
	Y []float64 // p, outputs of the last step

	cfg    Config
	plant  Plant
	buses  []*can.Bus
	maps   []*sigmap.Map // one per bus
	coders []Signals     // likewise, of these maps
	ticker sched.Ticker
	page   *Page
	grid   sched.Grid // of ticker

	k       int64       // last grid point stepped to
	owed    int64       // grid points passed since, not stepped over yet
	reason  Reason      // why the run is over
	left    int64       // grid points for which the safe values are still sent after that
	safe    bool        // the bus carries the safe values
	urgent  bool        // all frames go out with the safe values at the next served point, due or not
	firstRx []int       // per bus, index in Page.LastRx of its first message
	firstTx []int       // per bus, index in Page.TxCount of its first message
	base    []can.Stats // per bus, counts at the first tick
	down    uint64      // can.Stats.Down of all buses at the last tick
	frames  [MaxRecv]can.Frame
	stamps  [MaxRecv]can.Stamp
	frame   can.Frame
	note    note        // of the ring, a frame's
	answers exchange    // frames received and not answered yet
	coming  []arrival   // per received message, bus after bus
	wire    []wireClock // per bus
	going   []departure // per sent message, bus after bus
	calls   calls
	watch   supervision
	times   times
	start   usage
	mem     runtime.MemStats

	disturbance
}

// New returns the loop of a plant between buses, with one map per bus; a
// simulation has none of either. page may be a page of CreatePage, of MapPage or
// a new one.
func New(cfg Config, p Plant, buses []*can.Bus, maps []*sigmap.Map, tk sched.Ticker, page *Page) (*Loop, error) {
	m, q := p.Dims()
	l := &Loop{
		U: make([]float64, m), Y: make([]float64, q),
		cfg: cfg, plant: p, buses: buses, maps: maps, ticker: tk, page: page, grid: tk.Grid(),
		base: make([]can.Stats, len(buses)),
	}
	if err := l.validate(); err != nil {
		return nil, err
	}
	rx, tx := 0, 0
	for _, mp := range maps {
		l.coders = append(l.coders, mp)
		l.firstRx, l.firstTx = append(l.firstRx, rx), append(l.firstTx, tx)
		rx += len(mp.Rx)
		tx += len(mp.Tx)
	}
	switch {
	case rx > MaxRx:
		return nil, fmt.Errorf("rt: %d messages are received, the page follows %d", rx, MaxRx)
	case tx > MaxTx:
		return nil, fmt.Errorf("rt: %d messages are sent, the page follows %d", tx, MaxTx)
	}
	if l.cfg.Budget == 0 {
		l.cfg.Budget = cfg.Period / 2
	}
	driver, _ := p.(fault.Driver)
	var err error
	if l.faults, err = fault.New(cfg.Faults, fault.System{PeriodNs: int64(cfg.Period), M: m, P: q, Maps: maps, Plant: driver}); err != nil {
		return nil, err
	}
	l.wire = make([]wireClock, len(buses))
	l.coming, l.going, l.calls = make([]arrival, rx), make([]departure, tx), newCalls()
	l.times.real = len(buses) > 0 && !cfg.Virtual
	copy(l.U, cfg.Start)
	return l, nil
}

// Use puts code that was made for the maps, one per bus, in the place of their tables,
// before the run.
func (l *Loop) Use(coders []Signals) error {
	if len(coders) != len(l.maps) {
		return fmt.Errorf("rt: code for %d signal maps, there are %d", len(coders), len(l.maps))
	}
	l.coders = coders
	return nil
}

func (l *Loop) validate() error {
	p := len(l.Y)
	switch {
	case l.cfg.Period <= 0:
		return fmt.Errorf("rt: period %v is not positive", l.cfg.Period)
	case l.ticker.Grid().Period != int64(l.cfg.Period):
		return fmt.Errorf("rt: the ticker's period is %d ns, the loop's %d ns", l.ticker.Grid().Period, int64(l.cfg.Period))
	case l.cfg.Ticks < 0:
		return fmt.Errorf("rt: %d ticks", l.cfg.Ticks)
	case len(l.cfg.Start) != len(l.U):
		return fmt.Errorf("rt: %d start values for the plant's %d inputs", len(l.cfg.Start), len(l.U))
	case p > MaxOutputs:
		return fmt.Errorf("rt: the plant has %d outputs, the page shows %d", p, MaxOutputs)
	case l.cfg.Budget < 0:
		return fmt.Errorf("rt: budget %v of a tick is negative", l.cfg.Budget)
	case l.cfg.Safe.Values != nil && (len(l.cfg.Safe.Values) != p || l.cfg.Safe.Ticks < 1):
		return fmt.Errorf("rt: %d safe values for the plant's %d outputs, for %d grid points", len(l.cfg.Safe.Values), p, l.cfg.Safe.Ticks)
	case len(l.buses) > MaxBuses:
		return fmt.Errorf("rt: %d buses, the page follows %d", len(l.buses), MaxBuses)
	case len(l.maps) != len(l.buses):
		return fmt.Errorf("rt: %d signal maps for %d buses", len(l.maps), len(l.buses))
	}
	for _, i := range [...]int{l.cfg.Watch.Events, l.cfg.Watch.Transitions, l.cfg.Watch.Lag, l.cfg.Watch.Fault} {
		if i < -1 || i >= p {
			return fmt.Errorf("rt: watched output %d of %d: use -1 for none", i, p)
		}
	}
	return l.cfg.Overrun.validate()
}

// Tick serves n grid points, n-1 of which were missed: it receives, then steps
// and sends point by point. It allocates nothing and takes a bounded time. The
// run is over when Page.Reason is not 0.
//
// Lost points are made up for after the receive, so that under Skip and CatchUp
// a command that arrived during the gap drives the lost points too: when in the
// gap it came is not known.
//
//go:nosplit
func (l *Loop) Tick(n int64) {
	l.times.begin() // first: what passes between these two readings of the clock counts
	woke := l.ticker.Now()
	if l.reason != NotEnded {
		l.receive() // nobody needs it, but what stays unread is dropped and counted as lost
		l.farewell(n)
		l.publish()
		return
	}
	first := l.k + l.owed + 1
	if n = l.admit(woke, n); l.reason == NotEnded {
		l.calls.begin(l, l.k+1)
	}
	l.receive()
	l.times.mark(Receive)
	if l.reason == NotEnded {
		l.serve(n)
	} else {
		l.forgo(n)
	}
	l.supervise()
	l.publish()
	l.account(woke, first, n)
}

// admit counts the missed points and the lateness of each point passed, at most
// maxOverrun+1 of them, and returns how many of them belong to the run: points
// after the last tick asked for are not missed.
//
//go:nosplit
func (l *Loop) admit(woke, n int64) int64 {
	before := l.k + l.owed
	if l.cfg.Ticks > 0 {
		n = min(n, l.cfg.Ticks-before)
	}
	for i := range min(n, maxOverrun+1) {
		l.page.Late.Record(woke - l.grid.Due(before+1+i))
	}
	lost := max(0, n-1)
	l.page.Missed.Store(l.page.Missed.Load() + uint64(lost))
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

// serve steps the plant over the n points passed, and those still owed, and sends
// the frames due at the last one; those of the lost ones as the policy says. A
// wake-up steps over maxOverrun points at most.
//
//go:nosplit
func (l *Loop) serve(n int64) {
	l.owed += n
	now := l.k + l.owed
	for i := range maxOverrun + 1 {
		if l.owed == 0 || l.reason != NotEnded {
			break
		}
		if i > 0 { // Tick has begun the first one
			l.calls.begin(l, l.k+1)
		}
		l.owed--
		if l.owed == 0 || i == maxOverrun { // the last of this wake-up
			l.judge(l.k + 1)
		}
		l.step()
		l.times.mark(Step)
		if l.owed > 0 && l.reason == NotEnded {
			l.send(l.k, l.cfg.Overrun.Policy == CatchUp && !l.safe)
			l.times.mark(Send)
		}
	}
	l.send(now, true)
	l.times.mark(Send)
	l.page.Behind.Store(uint64(l.owed))
}

// forgo passes n points of a run that has ended because n-1 of them were lost: the
// plant sends nothing at any of them, and what follows the end goes out at once.
//
//go:nosplit
func (l *Loop) forgo(n int64) {
	for i := range min(n-1, maxOverrun) {
		l.send(l.k+l.owed+1+i, false)
	}
	if l.left > 0 {
		l.owed += n - 1
		l.farewell(1)
	}
	l.times.mark(Send)
}

// step takes the plant to the next grid point.
//
//go:nosplit
func (l *Loop) step() {
	l.k++
	u := l.calls.inputs(l.faults, l.k, l.U)
	l.plant.Step(l.Y, u)
	l.calls.signals(l.faults, l.k, l.Y)
	l.page.ring.step(l.k, u, l.Y)
	w := &l.cfg.Watch
	if w.Lag >= 0 && l.Y[w.Lag] > l.page.LagMax() {
		l.page.LagBits.Store(math.Float64bits(l.Y[w.Lag]))
	}
	if w.Fault >= 0 && l.Y[w.Fault] != 0 {
		l.page.BrokenState.Store(uint64(max(0, l.Y[w.Fault]-1)))
		l.end(NonFinite)
	}
	if l.k == l.cfg.Ticks {
		l.end(Done)
	}
}

// publish writes the counters that others keep, and the outputs, to the page.
//
//go:nosplit
func (l *Loop) publish() {
	var s can.Stats
	var saturated uint64
	for b, bus := range l.buses {
		s.RxOverflow += bus.Stats.RxOverflow - l.base[b].RxOverflow
		s.BadSize += bus.Stats.BadSize - l.base[b].BadSize
		s.TxDropped += bus.Stats.TxDropped - l.base[b].TxDropped
		s.Down += bus.Stats.Down - l.base[b].Down
		s.Errors += bus.Stats.Errors - l.base[b].Errors
		s.Offs += bus.Stats.Offs // before the first tick, too
		saturated += l.maps[b].Saturated
	}
	p := l.page
	p.RxOverflow.Store(s.RxOverflow)
	p.RxBadSize.Store(s.BadSize)
	p.TxDropped.Store(s.TxDropped)
	if s.Down > l.down {
		p.BusDown.Add(1)
		l.lost(l.cfg.Bus.Action, BusLost)
	}
	l.down = s.Down
	p.BusErrors.Store(s.Errors)
	p.BusOffs.Store(s.Offs)
	p.Saturated.Store(saturated)
	if i := l.cfg.Watch.Events; i >= 0 {
		p.Events.Store(uint64(l.Y[i]))
	}
	if i := l.cfg.Watch.Transitions; i >= 0 {
		p.Transitions.Store(uint64(l.Y[i]))
	}
	p.Ticks.Store(uint64(l.k))
	p.SimNs.Store(uint64(l.k * int64(l.cfg.Period)))
	l.publishMessages()
	l.publishFaults()
	p.publish(l.k, l.Y)
}
