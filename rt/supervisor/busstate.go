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

// Limits of the bus monitoring: at most 1280 error frames of each bus per second; the kernel drops
// and counts the rest. The kernel is also queried, because some drivers send no error frames for
// some states, and error frames may be lost.
const (
	errorInterval  = 50 * time.Millisecond // between two polls
	maxErrorFrames = 64                    // error frames of a bus read per poll
	linkInterval   = time.Second           // between two queries of the kernel

	maxLinks   = 256  // changes of interfaces read per poll
	maxChanges = 1000 // changes of the buses' states kept
)

// busStates follows the states of the buses on interfaces of this host, from error frames and from
// the kernel. It runs in the supervisor and delays no tick. The target receives a bus-off on its
// own socket.
type busStates struct {
	report.View
	links   *can.Links // nil: closed
	queried time.Time  // last query of the kernel
	stop    func()     // ends watch

	mu       sync.Mutex // protects the fields below and the buses; only watch's goroutine changes the buses
	buses    []*watchedBus
	changes  []report.BusChange // at most maxChanges
	recorded int                // changes already returned by events
}

// watchedBus is the state of one bus.
type watchedBus struct {
	bus        *bench.Bus
	filters    []can.Filter // filters of the target's socket
	shared     *can.Bus     // socket of the target
	listener   *can.Bus     // socket for error frames; nil: no interface
	errorsLeft int          // error frames that this poll may still read
	stateNew   bool         // an error frame that this poll has read changed the state
	unread     uint64       // error frames lost by closed listeners
	errors     can.Errors   // state and counts from the error frames
	link       can.Link     // last known state of the interface

	lastState   string           // state since the last change
	since       int64            // time of the last change, ns on CLOCK_MONOTONIC
	spent       map[string]int64 // time in each state during the run, ns
	restartedAt int64            // time of the last restart, ns on CLOCK_MONOTONIC
	lastAction  string           // last action noted; "": none since the last change
}

// States of an interface without a state of its controller.
const (
	busDown = "down"
	busGone = "gone"
)

// currentState returns the present state of the bus.
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

// describe returns the present state of the bus with its error counters.
func (w *watchedBus) describe() string {
	text := w.currentState()
	if s := w.errors.State; w.link.Gone || !w.link.Up || s == can.Unknown || s == can.Off {
		return text
	}
	if e := &w.errors; e.HasCounters {
		text += fmt.Sprintf(", %d transmit errors, %d receive errors", e.Tx, e.Rx)
	} else if e.State != can.Active {
		text += map[[2]bool]string{{true, false}: " from transmit errors", {false, true}: " from receive errors",
			{true, true}: " from transmit and receive errors"}[[2]bool{e.ByTx, e.ByRx}]
	}

	return text
}

// newBusStates opens the netlink sockets that report the states of interfaces.
func newBusStates(r report.View) (*busStates, error) {
	links, err := can.OpenLinks()
	if err != nil {
		return nil, fmt.Errorf("%w: a confined service needs AF_NETLINK (RestrictAddressFamilies)", err)
	}
	return &busStates{View: r, links: links, stop: func() {}}, nil
}

// add adds a bus; shared is the supervisor's descriptor of the target's socket.
func (s *busStates) add(bus int, shared *can.Bus) error {
	b := &s.Handover.Bench.Buses[bus]
	w := &watchedBus{bus: b, filters: s.Handover.Maps[bus].LoopFilters(), shared: shared, since: sched.Now(),
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

// watch starts to follow the buses; close ends it.
func (s *busStates) watch() {
	stop := host.Repeat(errorInterval, func(now time.Time) { s.poll(now.Sub(s.queried) >= linkInterval) })
	s.stop = func() {
		stop()
		s.poll(true)
	}
}

// close ends watch after a last poll, and closes the sockets.
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

// poll reads the error frames and the changes of interfaces. With query, or after lost changes,
// it also queries the kernel.
func (s *busStates) poll(query bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.buses {
		w.errorsLeft, w.stateNew = maxErrorFrames, false
		s.readErrors(w) // before the changes of the interface, which are newer
	}

	complete := s.links.Changes(maxLinks, func(link can.Link) {
		for _, w := range s.buses {
			if w.matchesLink(&link) {
				s.updateLink(w, link)
			}
		}
	})
	if query = query || !complete; query {
		s.queried = time.Now()
	}
	for _, w := range s.buses {
		if query {
			s.queryLink(w)
		}
		s.recover(w)
	}
}

// matchesLink reports whether link is the interface of the bus or its replacement.
func (w *watchedBus) matchesLink(link *can.Link) bool {
	if w.link.Gone {
		return link.Name == w.bus.Interface.Text
	}
	return link.Index == w.link.Index
}

// updateLink stores a state of the interface, after the error frames that came before it. If such a
// frame changed the state of the controller, that state stays until the next poll: the frame may be
// newer than link.
func (s *busStates) updateLink(w *watchedBus, link can.Link) {
	s.readErrors(w)
	if w.stateNew && w.link.Up && link.Up {
		link.State = can.Unknown
	}
	w.setLink(link)
	s.noteState(w, sched.Now())
}

func (w *watchedBus) setLink(link can.Link) {
	w.link = link
	switch {
	case link.Gone || !link.Up:
		w.errors.State, w.errors.HasCounters = can.Unknown, false // the controller starts anew
	case link.Card && link.State != can.Unknown:
		w.errors.State = link.State
		if link.HasCounters {
			w.errors.HasCounters, w.errors.Tx, w.errors.Rx = true, uint8(min(link.Tx, 255)), uint8(min(link.Rx, 255))
		}
	}
}

// readErrors reads the pending error frames.
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
		at := sched.Now()
		if stamps[i].Soft != 0 {
			at = min(at, stamps[i].Soft-behind)
		}
		s.addError(w, &frames[i], at)
	}
}

// addError counts an error frame of the given time, ns on CLOCK_MONOTONIC.
func (s *busStates) addError(w *watchedBus, f *can.Frame, at int64) {
	before := w.errors.State
	if !w.link.Up || !w.errors.Add(f) {
		return // from before the interface went down
	}
	w.stateNew = w.stateNew || w.errors.State != before
	s.noteState(w, at)
}

// closeListener closes the listener and keeps its count of lost frames.
func (w *watchedBus) closeListener() {
	if w.listener == nil {
		return
	}
	w.listener.CountDrops()
	w.unread += w.listener.Stats.RxOverflow
	w.listener.Close()
	w.listener = nil
}

// queryLink queries the kernel for the state of an interface. It binds the sockets of the bus to an
// interface that was created again.
func (s *busStates) queryLink(w *watchedBus) {
	name := w.bus.Interface.Text
	if !w.link.Gone {
		name = w.link.Name // the interface may have been renamed
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

// recover restarts a bus-off controller after the time that the bench file gives for it.
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
	case errors.Is(err, unix.EBUSY): // already restarted, or the driver restarts it
	case errors.Is(err, unix.EOPNOTSUPP): // vcan and some drivers
		s.noteAction(w, fmt.Sprintf("%v: sudo ip link set %s down && sudo ip link set %s up", err, name, name))
	default:
		s.noteAction(w, fmt.Sprintf("%v: sudo ip link set %s type can restart", err, name))
	}
}

// unlocked calls do without the mutex. do may wait for the kernel's lock of all interfaces; the
// status line and the recorder do not wait with it.
func (s *busStates) unlocked(do func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	do()
}

// noteAction adds an action on a bus to the changes, without repeating the last one.
func (s *busStates) noteAction(w *watchedBus, text string) {
	if text != w.lastAction {
		w.lastAction = text
		s.addChange(w, sched.Now(), text)
	}
}

// noteState adds a change of state to the changes if the state differs from the last one. at is the
// time of the change, ns on CLOCK_MONOTONIC.
func (s *busStates) noteState(w *watchedBus, at int64) {
	if w.currentState() == w.lastState {
		return
	}
	s.addTime(w, at)
	w.lastState, w.lastAction = w.currentState(), ""
	s.addChange(w, at, w.describe())
}

// addTime adds the time since the last change to the last state. Only the time from the first tick
// to the last counts.
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

// addChange keeps a change, up to maxChanges.
func (s *busStates) addChange(w *watchedBus, at int64, text string) {
	if len(s.changes) == maxChanges {
		return // the counts still include the change
	}
	c := report.BusChange{Bus: w.bus.Name.Text, State: w.lastState, Text: fmt.Sprintf("bus %s (%s): %s",
		w.bus.Name.Text, w.bus.Interface.Text, text), Time: at + sched.Realtime() - sched.Now()}
	if start := int64(s.Status.StartNs.Load()); start != 0 && at > start {
		c.Tick = (at - start) / s.Handover.Tables.PeriodNs
		c.At = float64(at-start) / 1e9
	}

	s.changes = append(s.changes, c)
}
