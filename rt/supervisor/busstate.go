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
	"lockstep/rt/report"
	"lockstep/sched"
)

// What the watch over the buses may cost: every hearing it reads at most heard error
// frames of each bus, 1280 per second; what comes beyond is dropped by the kernel and
// counted. Every asking it asks the kernel how the interfaces stand: not every driver
// makes error frames of all it knows, and some may have been lost.
const (
	hearing = 50 * time.Millisecond
	heard   = 64
	asking  = time.Second

	maxLinks   = 256  // changes of interfaces read per hearing
	maxChanges = 1000 // of the buses' states that are kept
)

// busStates follows the buses that are interfaces of this host: how their controllers
// stand, by their error frames and by what the kernel says. It is the supervisor's and
// delays nothing. That a controller is off its bus, the target hears for itself.
type busStates struct {
	report.View
	links *can.Links
	asked time.Time
	stop  chan struct{}
	done  chan struct{} // nil: nobody follows

	mu      sync.Mutex // of what follows, and of what is in the lines, which only follow's goroutine changes
	lines   []*line
	changes []report.BusChange // at most maxChanges
	seen    int                // of changes, by the recorder
}

// line is one of these buses.
type line struct {
	bus      *bench.Bus
	index    int // of it
	filters  []can.Filter
	shared   *can.Bus // the socket of the target
	listener *can.Bus // of error frames; nil while there is no interface
	left     int      // error frames that may still be read in this hearing
	unread   uint64   // those lost by listeners before that one
	errors   can.Errors
	link     can.Link

	stands string           // how it stood at the last change
	since  int64            // when that was, ns on CLOCK_MONOTONIC
	spent  map[string]int64 // how it stood for how long, ns of the run
	tried  int64            // when a restart was, likewise
	told   string           // what became of it
}

// How a bus stands whose interface says nothing of a controller, or is not there.
const (
	busDown = "down"
	busGone = "gone"
)

// stand says how the bus stands.
func (w *line) stand() string {
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

// detail is what is known of how the bus stands.
func (w *line) detail() string {
	text := w.stand()
	if s := w.errors.State; w.link.Gone || !w.link.Up || s == can.Unknown || s == can.Off {
		return text
	}
	if e := &w.errors; e.Counted {
		text += fmt.Sprintf(", %d errors in sending, %d in receiving", e.Tx, e.Rx)
	} else if e.State != can.Active {
		text += map[[2]bool]string{{true, false}: " by what it sends", {false, true}: " by what it receives",
			{true, true}: " by what it sends and receives"}[[2]bool{e.Sends, e.Receives}]
	}
	return text
}

// newBusStates opens what is needed to follow a run's buses.
func newBusStates(r report.View) (*busStates, error) {
	links, err := can.OpenLinks()
	if err != nil {
		return nil, fmt.Errorf("%w: where a service is confined, allow it AF_NETLINK", err)
	}
	return &busStates{View: r, links: links, stop: make(chan struct{})}, nil
}

// add takes in a bus; shared is the supervisor's hold of the target's socket.
func (s *busStates) add(bus int, shared *can.Bus) error {
	b := &s.Handover.Bench.Buses[bus]
	w := &line{bus: b, index: bus, filters: s.Handover.Maps[bus].Filters(), shared: shared, since: sched.Now(), spent: map[string]int64{}}
	s.lines = append(s.lines, w)
	link, err := s.links.Ask(b.Interface.Text)
	if err != nil {
		return err
	}
	if w.listener, err = can.DialErrors(b.Interface.Text); err != nil {
		return err
	}
	w.take(link)
	w.stands = w.stand()
	return nil
}

// follow follows the buses until finish.
func (s *busStates) follow() {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		clock := time.NewTicker(hearing)
		defer clock.Stop()
		for {
			select {
			case <-s.stop:
				s.look(true)
				return
			case now := <-clock.C:
				s.look(now.Sub(s.asked) >= asking)
			}
		}
	}()
}

// finish ends that, and gives up the sockets.
func (s *busStates) finish() {
	if s == nil || s.links == nil {
		return
	}
	close(s.stop)
	if s.done != nil {
		<-s.done
	}
	s.links.Close()
	s.links = nil
	for _, w := range s.lines {
		w.deaf()
	}
}

// look takes in what has happened; ask: the kernel is asked how all stand.
func (s *busStates) look(ask bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.lines {
		w.left = heard
		s.listen(w) // what it has said came before what is known of its interface
	}
	complete := s.links.Changes(maxLinks, func(link can.Link) {
		for _, w := range s.lines {
			if w.concerns(&link) {
				s.take(w, link)
			}
		}
	})
	if ask = ask || !complete; ask {
		s.asked = time.Now()
	}
	for _, w := range s.lines {
		if ask {
			s.ask(w)
		}
		s.recover(w)
	}
}

// concerns says that link is the interface of the bus, or the one that has taken its
// place.
func (w *line) concerns(link *can.Link) bool {
	if w.link.Gone {
		return link.Name == w.bus.Interface.Text
	}
	return link.Index == w.link.Index
}

// take takes in how the interface is now; the error frames that have come are older.
func (s *busStates) take(w *line, link can.Link) {
	s.listen(w)
	w.take(link)
	s.note(w, sched.Now())
}

func (w *line) take(link can.Link) {
	w.link = link
	switch {
	case link.Gone || !link.Up:
		w.errors.State, w.errors.Counted = can.Unknown, false // it starts anew
	case link.Card && link.State != can.Unknown:
		w.errors.State = link.State
		if link.Counted {
			w.errors.Counted, w.errors.Tx, w.errors.Rx = true, uint8(min(link.Tx, 255)), uint8(min(link.Rx, 255))
		}
	}
}

// listen takes in the error frames that wait.
func (s *busStates) listen(w *line) {
	if w.listener == nil {
		return
	}
	var frames [heard]can.Frame
	var stamps [heard]can.Stamp
	n := w.listener.RecvAt(frames[:w.left], stamps[:])
	w.left -= n
	behind := sched.Realtime() - sched.Now()
	for i := range frames[:n] {
		if !w.link.Up || !w.errors.Add(&frames[i]) {
			continue // from before it went down
		}
		at := sched.Now()
		if stamps[i].Soft != 0 {
			at = min(at, stamps[i].Soft-behind)
		}
		s.note(w, at)
	}
}

// deaf closes the listener.
func (w *line) deaf() {
	if w.listener == nil {
		return
	}
	w.listener.Settle()
	w.unread += w.listener.Stats.RxOverflow
	w.listener.Close()
	w.listener = nil
}

// ask asks the kernel how a bus stands, and binds its sockets to an interface that has
// been made again.
func (s *busStates) ask(w *line) {
	name := w.bus.Interface.Text
	if !w.link.Gone {
		name = w.link.Name // it may have been called otherwise meanwhile
	}
	var link can.Link
	var err error
	s.apart(func() { link, err = s.links.Ask(name) })
	switch {
	case err == nil:
		s.take(w, link)
	case errors.Is(err, can.ErrNoInterface):
		s.take(w, can.Link{Gone: true})
	}
	if w.link.Gone || !w.link.Up || w.shared.Bound() {
		return
	}
	w.deaf()
	s.apart(func() {
		if err = w.shared.Rebind(name, w.filters); err == nil {
			w.listener, err = can.DialErrors(name)
		}
	})
	text := "bound to the new interface"
	if err != nil {
		text = err.Error()
	}
	s.tell(w, text)
}

// recover restarts a controller that is off its bus, where the bench says so.
func (s *busStates) recover(w *line) {
	now := sched.Now()
	if w.bus.RestartNs == 0 || w.errors.State != can.Off || now < max(w.since, w.tried)+w.bus.RestartNs {
		return
	}
	w.tried = now
	name := w.bus.Interface.Text
	var err error
	s.apart(func() { err = s.links.Restart(w.link) })
	switch {
	case err == nil:
		w.told = ""
		s.tell(w, "restarted by the supervisor")
	case errors.Is(err, unix.EBUSY): // it is back already, or its driver does it by itself
	case errors.Is(err, unix.EOPNOTSUPP): // some drivers cannot, and vcan has none
		s.tell(w, fmt.Sprintf("%v: sudo ip link set %s down && sudo ip link set %s up", err, name, name))
	default:
		s.tell(w, fmt.Sprintf("%v: sudo ip link set %s type can restart", err, name))
	}
}

// apart does what may take as long as the kernel's lock of all interfaces is held; who
// shows or records how the buses stand does not wait for it.
func (s *busStates) apart(do func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	do()
}

// tell notes what was done about a bus, once.
func (s *busStates) tell(w *line, text string) {
	if text != w.told {
		w.told = text
		s.keep(w, sched.Now(), text)
	}
}

// note notes that a bus stands otherwise than before, from an instant on, ns on
// CLOCK_MONOTONIC.
func (s *busStates) note(w *line, at int64) {
	if w.stand() == w.stands {
		return
	}
	s.account(w, at)
	w.stands, w.told = w.stand(), ""
	s.keep(w, at, w.detail())
}

// account adds the time until now to how the bus has stood; what was before the first
// tick, or comes after the last one, is not of the run.
func (s *busStates) account(w *line, now int64) {
	start, period := int64(s.Page.StartNs.Load()), s.Handover.Tables.PeriodNs
	until := now
	if rt.State(s.Page.State.Load()) == rt.Ended {
		until = min(now, start+int64(s.Page.Ticks.Load())*period)
	}
	if start != 0 {
		w.spent[w.stands] += max(0, until-max(w.since, start))
	}
	w.since = now
}

// keep keeps a change.
func (s *busStates) keep(w *line, at int64, text string) {
	if len(s.changes) == maxChanges {
		return // the counts tell it
	}
	c := report.BusChange{Bus: w.bus.Name.Text, State: w.stands, Text: fmt.Sprintf("bus %s (%s): %s", w.bus.Name.Text, w.bus.Interface.Text, text), Time: at + sched.Realtime() - sched.Now()}
	if start := int64(s.Page.StartNs.Load()); start != 0 && at > start {
		c.Tick = (at - start) / s.Handover.Tables.PeriodNs
		c.At = float64(at-start) / 1e9
	}
	s.changes = append(s.changes, c)
}

// follows are the buses that it follows, as bits.
func (s *busStates) follows() (set uint64) {
	if s == nil {
		return 0
	}
	for _, w := range s.lines {
		set |= 1 << w.index
	}
	return set
}
