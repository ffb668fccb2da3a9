package supervisor

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// What the watch over the buses may cost: every hearing it reads at most heard error
// frames of each bus, 1280 per second; what comes beyond is dropped by the kernel and
// counted. Every asking it asks the kernel how the interfaces stand: not every driver
// makes error frames of all it knows, and some may have been lost.
const (
	errorInterval  = 50 * time.Millisecond
	maxErrorFrames = 64
	linkInterval   = time.Second

	maxLinks   = 256  // changes of interfaces read per hearing
	maxChanges = 1000 // of the buses' states that are kept
)

// busStates follows the buses that are interfaces of this host: how their controllers
// stand, by their error frames and by what the kernel says. It is the supervisor's and
// delays nothing. That a controller is off its bus, the target hears for itself.
type busStates struct {
	report.View
	links *can.Links // nil: no bus is followed any more
	asked time.Time
	stop  func() // ends follow

	mu       sync.Mutex // of what follows, and of what is in the lines, which only follow's goroutine changes
	buses    []*watchedBus
	changes  []report.BusChange // at most maxChanges
	recorded int                // of changes, by the recorder
}

// watchedBus is one of these buses.
type watchedBus struct {
	bus        *bench.Bus
	filters    []can.Filter
	shared     *can.Bus // the socket of the target
	listener   *can.Bus // of error frames; nil while there is no interface
	errorsLeft int      // error frames that may still be read in this hearing
	unread     uint64   // those lost by listeners before that one
	errors     can.Errors
	link       can.Link

	lastState   string           // how it stood at the last change
	since       int64            // when that was, ns on CLOCK_MONOTONIC
	spent       map[string]int64 // how it stood for how long, ns of the run
	restartedAt int64            // when a restart was, likewise
	lastAction  string           // what became of it
}

// How a bus stands whose interface says nothing of a controller, or is not there.
const (
	busDown = "down"
	busGone = "gone"
)

// currentState says how the bus stands.
func (w *watchedBus) currentState() string {
	switch {
	case w.link.Gone:
		return busGone
	case !w.link.Up:
		return busDown
	case w.errors.State != can.Unknown:
		return w.errors.State.String()
	}

	return report.BusUp
}

// describe is what is known of how the bus stands.
func (w *watchedBus) describe() string {
	text := w.currentState()
	if s := w.errors.State; w.link.Gone || !w.link.Up || s == can.Unknown || s == can.Off {
		return text
	}
	if e := &w.errors; e.HasCounters {
		text += fmt.Sprintf(", %d errors in sending, %d in receiving", e.Tx, e.Rx)
	} else if e.State != can.Active {
		text += map[[2]bool]string{{true, false}: " by what it sends", {false, true}: " by what it receives",
			{true, true}: " by what it sends and receives"}[[2]bool{e.ByTx, e.ByRx}]
	}

	return text
}

// newBusStates opens what is needed to follow a run's buses.
func newBusStates(r report.View) (*busStates, error) {
	links, err := can.OpenLinks()
	if err != nil {
		return nil, fmt.Errorf("%w: where a service is confined, allow it AF_NETLINK", err)
	}
	return &busStates{View: r, links: links, stop: func() {}}, nil
}

// add takes in a bus; shared is the supervisor's hold of the target's socket.
func (s *busStates) add(bus int, shared *can.Bus) error {
	b := &s.Handover.Bench.Buses[bus]
	w := &watchedBus{bus: b, filters: s.Handover.Maps[bus].Filters(), shared: shared, since: sched.Now(),
		spent: map[string]int64{}}
	s.buses = append(s.buses, w)
	link, err := s.links.Query(b.Interface.Text)
	if err != nil {
		return err
	}
	if w.listener, err = can.DialErrors(b.Interface.Text); err != nil {
		return err
	}
	w.setLink(link)
	w.lastState = w.currentState()
	return nil
}

// watch follows the buses until finish.
func (s *busStates) watch() {
	stop := host.Repeat(errorInterval, func(now time.Time) { s.poll(now.Sub(s.asked) >= linkInterval) })
	s.stop = func() {
		stop()
		s.poll(true)
	}
}

// close ends that, and gives up the sockets.
func (s *busStates) close() {
	if s.links == nil {
		return
	}
	s.stop()
	s.links.Close()
	s.links = nil
	for _, w := range s.buses {
		w.closeListener()
	}
}

// poll takes in what has happened; ask: the kernel is asked how all stand.
func (s *busStates) poll(ask bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.buses {
		w.errorsLeft = maxErrorFrames
		s.readErrors(w) // what it has said came before what is known of its interface
	}

	complete := s.links.Changes(maxLinks, func(link can.Link) {
		for _, w := range s.buses {
			if w.matchesLink(&link) {
				s.updateLink(w, link)
			}
		}
	})
	if ask = ask || !complete; ask {
		s.asked = time.Now()
	}
	for _, w := range s.buses {
		if ask {
			s.queryLink(w)
		}
		s.recover(w)
	}
}

// matchesLink says that link is the interface of the bus, or the one that has taken its
// place.
func (w *watchedBus) matchesLink(link *can.Link) bool {
	if w.link.Gone {
		return link.Name == w.bus.Interface.Text
	}
	return link.Index == w.link.Index
}

// updateLink takes in how the interface is now; the error frames that have come are older.
func (s *busStates) updateLink(w *watchedBus, link can.Link) {
	s.readErrors(w)
	w.setLink(link)
	s.noteState(w, sched.Now())
}

func (w *watchedBus) setLink(link can.Link) {
	w.link = link
	switch {
	case link.Gone || !link.Up:
		w.errors.State, w.errors.HasCounters = can.Unknown, false // it starts anew
	case link.Card && link.State != can.Unknown:
		w.errors.State = link.State
		if link.HasCounters {
			w.errors.HasCounters, w.errors.Tx, w.errors.Rx = true, uint8(min(link.Tx, 255)), uint8(min(link.Rx, 255))
		}
	}
}

// readErrors takes in the error frames that wait.
func (s *busStates) readErrors(w *watchedBus) {
	if w.listener == nil {
		return
	}
	var frames [maxErrorFrames]can.Frame
	var stamps [maxErrorFrames]can.Stamp
	n := w.listener.RecvAt(frames[:w.errorsLeft], stamps[:])
	w.errorsLeft -= n
	behind := sched.Realtime() - sched.Now()
	for i := range frames[:n] {
		if !w.link.Up || !w.errors.Add(&frames[i]) {
			continue // from before it went down
		}
		at := sched.Now()
		if stamps[i].Soft != 0 {
			at = min(at, stamps[i].Soft-behind)
		}
		s.noteState(w, at)
	}
}

// closeListener closes the listener.
func (w *watchedBus) closeListener() {
	if w.listener == nil {
		return
	}
	w.listener.CountDrops()
	w.unread += w.listener.Stats.RxOverflow
	w.listener.Close()
	w.listener = nil
}

// queryLink asks the kernel how a bus stands, and binds its sockets to an interface that has
// been made again.
func (s *busStates) queryLink(w *watchedBus) {
	name := w.bus.Interface.Text
	if !w.link.Gone {
		name = w.link.Name // it may have been called otherwise meanwhile
	}
	var link can.Link
	var err error
	s.unlocked(func() { link, err = s.links.Query(name) })
	switch {
	case err == nil:
		s.updateLink(w, link)
	case errors.Is(err, can.ErrNoInterface):
		s.updateLink(w, can.Link{Gone: true})
	}

	if w.link.Gone || !w.link.Up || w.shared.Bound() {
		return
	}
	w.closeListener()
	s.unlocked(func() {
		if err = w.shared.Rebind(name, w.filters); err == nil {
			w.listener, err = can.DialErrors(name)
		}
	})
	text := "bound to the new interface"
	if err != nil {
		text = err.Error()
	}
	s.noteAction(w, text)
}

// recover restarts a controller that is off its bus, where the bench says so.
func (s *busStates) recover(w *watchedBus) {
	now := sched.Now()
	if w.bus.RestartNs == 0 || w.errors.State != can.Off || now < max(w.since, w.restartedAt)+w.bus.RestartNs {
		return
	}
	w.restartedAt = now
	name := w.bus.Interface.Text
	var err error
	s.unlocked(func() { err = s.links.Restart(w.link) })
	switch {
	case err == nil:
		w.lastAction = ""
		s.noteAction(w, "restarted by the supervisor")
	case errors.Is(err, unix.EBUSY): // it is back already, or its driver does it by itself
	case errors.Is(err, unix.EOPNOTSUPP): // some drivers cannot, and vcan has none
		s.noteAction(w, fmt.Sprintf("%v: sudo ip link set %s down && sudo ip link set %s up", err, name, name))
	default:
		s.noteAction(w, fmt.Sprintf("%v: sudo ip link set %s type can restart", err, name))
	}
}

// unlocked does what may take as long as the kernel's lock of all interfaces is held; who
// shows or records how the buses stand does not wait for it.
func (s *busStates) unlocked(do func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	do()
}

// noteAction notes what was done about a bus, once.
func (s *busStates) noteAction(w *watchedBus, text string) {
	if text != w.lastAction {
		w.lastAction = text
		s.addChange(w, sched.Now(), text)
	}
}

// noteState notes that a bus stands otherwise than before, from an instant on, ns on
// CLOCK_MONOTONIC.
func (s *busStates) noteState(w *watchedBus, at int64) {
	if w.currentState() == w.lastState {
		return
	}
	s.addTime(w, at)
	w.lastState, w.lastAction = w.currentState(), ""
	s.addChange(w, at, w.describe())
}

// addTime adds the time until now to how the bus has stood; what was before the first
// tick, or comes after the last one, is not of the run.
func (s *busStates) addTime(w *watchedBus, now int64) {
	start, period := int64(s.Status.StartNs.Load()), s.Handover.Tables.PeriodNs
	until := now
	if rt.State(s.Status.State.Load()) == rt.Ended {
		until = min(now, start+int64(s.Status.Ticks.Load())*period)
	}
	if start != 0 {
		w.spent[w.lastState] += max(0, until-max(w.since, start))
	}
	w.since = now
}

// addChange keeps a change.
func (s *busStates) addChange(w *watchedBus, at int64, text string) {
	if len(s.changes) == maxChanges {
		return // the counts tell it
	}
	c := report.BusChange{Bus: w.bus.Name.Text, State: w.lastState, Text: fmt.Sprintf("bus %s (%s): %s",
		w.bus.Name.Text, w.bus.Interface.Text, text), Time: at + sched.Realtime() - sched.Now()}
	if start := int64(s.Status.StartNs.Load()); start != 0 && at > start {
		c.Tick = (at - start) / s.Handover.Tables.PeriodNs
		c.At = float64(at-start) / 1e9
	}

	s.changes = append(s.changes, c)
}
