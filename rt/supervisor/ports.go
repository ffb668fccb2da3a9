package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
	"lockstep/rt/host"
	"lockstep/rt/port"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Limits of the ports and of address claiming.
const (
	portInterval   = 5 * time.Millisecond  // between two polls
	portTimeout    = 20 * time.Millisecond // longest wait for a frame, if all buses are interfaces
	maxPortFrames  = 256                   // frames of a bus read per poll
	claimTimeout   = 5 * time.Second       // longest contest for an address before the first tick
	maxClaimEvents = 1000                  // events kept
)

// busPorts has the port of each bus. On an interface it reads a socket of its own: there it claims the
// J1939 addresses of the bench before the first tick, and defends them until the end of the run. A pair
// has no other node that could claim an address: its addresses are held, and the loop passes on the
// frames that are not the plant's. So it is for a log in place of a bus; what the port sends goes nowhere.
type busPorts struct {
	report.View
	shared [rt.MaxBuses]*can.Bus // sockets of the target, to send on a pair; nil: none
	buses  []*busPort

	frames    [maxPortFrames]can.Frame // scratch of poll
	stamps    [maxPortFrames]can.Stamp // scratch of poll
	forwarded rt.PortFrame             // scratch of poll

	stop func() // ends serve; nil: not started

	mu       sync.Mutex // protects the fields below and the nodes
	changes  []record.Event
	recorded int    // changes already returned by events
	lost     string // first lost address under the rules stop and safe; "": none
	ends     bool   // the lost address ends the run
	ended    bool   // the target has ended
}

// busPort is the port of a bus, with the addresses of the bench on it.
type busPort struct {
	index int
	bus   *bench.Bus
	on    *can.Bus
	reads bool // on is a socket of the port; false: the loop passes on the frames
	nodes []claimedNode
	port  *port.Port
	echo  *can.Bus    // receives the frames of the bench that were on the bus; nil: the bus is no interface
	delay *port.Delay // of the plant's frames behind those of the port
	down  uint64      // can.Stats.Down at the last poll

	// An address is lost under the rule stop: only "cannot claim" is still sent. silentAt is the tick.
	silent    bool
	silentAt  uint64
	silentFor error // the end of each job of the tester
}

// claimedNode is one claimed address.
type claimedNode struct {
	j1939.Node
	reported j1939.State // state in the last event
	defended int         // number of defences
}

// open opens the sockets of the buses that need a port and sends the first claims.
func (c *busPorts) open(r report.View) error {
	c.View = r
	for i := range r.Handover.Bench.Buses {
		bus := &r.Handover.Bench.Buses[i]
		switch {
		case !port.IsNeeded(r.Handover, i):
		case !bench.IsHostInterface(bus.Interface.Text):
			if err := c.add(i, c.shared[i], false); err != nil {
				return err
			}
		default:
			filters := j1939.Filters(j1939.PGNClaim, j1939.PGNRequest, j1939.PGNConnection, j1939.PGNPacket)
			s, err := r.Handover.Bench.ReadDiagnosis(i)
			if err != nil {
				return err
			}
			if s != nil {
				filters = append(filters, s.Filters()...)
			}
			on, err := can.Dial(bus.Interface.Text, filters)
			if err != nil {
				return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
			}
			if err := c.add(i, on, true); err != nil {
				return err
			}
			if c.buses[len(c.buses)-1].echo, err = can.Dial(bus.Interface.Text, c.sentFilters(i)); err != nil {
				return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
			}
		}
	}

	return nil
}

// sentFilters returns filters that pass the frames that the target and the port send on a bus.
func (c *busPorts) sentFilters(bus int) []can.Filter {
	m := c.Handover.Maps[bus]
	list := m.LoopFilters()[len(m.Filters()):]
	var sources []uint32
	for i := range m.Tx {
		if a := m.Tx[i].ID & 0xFF; m.Tx[i].ID&can.EFF != 0 && !slices.Contains(sources, a) {
			sources = append(sources, a)
		}
	}
	for _, f := range j1939.Filters(j1939.PGNClaim, j1939.PGNAck, j1939.PGNConnection, j1939.PGNPacket) {
		for _, a := range sources {
			list = append(list, can.Filter{ID: f.ID | a, Mask: f.Mask | 0xFF})
		}
	}
	return list
}

// add makes the port of a bus on a socket, which busPorts closes. On a socket that it reads it claims the
// addresses of the bus.
func (c *busPorts) add(index int, on *can.Bus, reads bool) error {
	w := &busPort{index: index, bus: &c.Handover.Bench.Buses[index], on: on, reads: reads}
	var err error
	if w.port, err = port.New(c.Handover, c.Status, index); err != nil {
		return err
	}
	if t := c.Handover.Tables; t != nil {
		w.delay = port.NewDelay(c.Handover.Maps[index], w.port.Phases(), t.PeriodNs, w.bus.BitRate)
	}
	w.port.Stamp = sched.Realtime
	if w.bus.J1939 != nil {
		for _, a := range w.bus.J1939.Addresses {
			n := claimedNode{Node: j1939.Node{Name: a.Name, Address: a.Address}}
			if !reads {
				n.State, n.reported = j1939.Held, j1939.Held
			}
			w.nodes = append(w.nodes, n)
		}
	}
	if reads {
		w.claimAll(sched.Now())
	}
	c.buses = append(c.buses, w)
	return nil
}

// claimAll queues a claim of each address of the bus. The tester claims its own, unless it is one of them.
func (w *busPort) claimAll(now int64) {
	w.port.DropQueue()
	for i := range w.nodes {
		w.port.Queue(w.nodes[i].Begin(now), now)
	}
	if t := w.port.Tester; t != nil && !slices.ContainsFunc(w.nodes, func(n claimedNode) bool { return t.Owns(n.Address) }) {
		t.Claim(now)
	}
}

// owns reports whether the bench holds an address.
func (w *busPort) owns(address uint8) bool {
	return slices.ContainsFunc(w.nodes, func(n claimedNode) bool { return n.Address == address && n.State == j1939.Held })
}

// receive processes a frame of the bus.
func (w *busPort) receive(f *can.Frame, now int64) {
	if w.silent {
		return
	}
	for n := range w.nodes {
		if answer, ok := w.nodes[n].Receive(f, now); ok {
			w.port.Queue(answer, now)
			if j1939.ParseID(f.ID).PGN == j1939.PGNClaim {
				w.nodes[n].defended++
			}
		}
	}
	w.port.Receive(f, now, w.owns)
}

// waitClaimed waits until each address is held or lost. A lost address is an error, unless the rule
// of the bus is continue.
func (c *busPorts) waitClaimed() error {
	end := sched.Now() + int64(claimTimeout)
	for waits := len(c.buses) > 0; waits; { // 250 ms; longer if another node contends
		time.Sleep(portInterval)
		if waits = c.poll(); waits && sched.Now() > end {
			return fmt.Errorf("another node has contested an address of the bench for %v: %s",
				claimTimeout, strings.Join(c.lines(), "; "))
		}
	}

	if c.lost != "" {
		return fmt.Errorf("%s; take that node off the bus, or give the bench another NAME (j1939: addresses)", c.lost)
	}
	return nil
}

// serve serves the ports until close.
func (c *busPorts) serve() {
	if len(c.buses) == 0 {
		return
	}
	var fds []unix.PollFd
	for _, w := range c.buses {
		if w.reads {
			fds = append(fds, unix.PollFd{Fd: int32(w.on.Fd()), Events: unix.POLLIN})
		}
	}
	c.stop = host.Repeat(portInterval, func(time.Time) {
		if len(fds) > 0 && len(fds) == len(c.buses) {
			_, _ = unix.Poll(fds, int(portTimeout.Milliseconds())) // on an error the next call reads all the same
		}
		c.poll()
	})
}

// close ends serve, sends each "cannot claim" that is due and closes the sockets. The target has ended.
func (c *busPorts) close() {
	if c.stop != nil {
		c.stop()
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	for end := sched.Now() + j1939.CannotClaimDelay + int64(portInterval); c.isPending() && sched.Now() < end; {
		time.Sleep(portInterval)
		c.poll()
	}
	for _, w := range c.buses {
		w.on.Close() // may be called twice
		if w.echo != nil {
			w.echo.Close()
		}
	}
	for _, b := range c.shared {
		if b != nil {
			b.Close()
		}
	}
}

// isPending reports whether a "cannot claim" is still to be sent on an open socket.
func (c *busPorts) isPending() bool {
	return slices.ContainsFunc(c.buses, func(w *busPort) bool {
		return w.reads && w.on.Fd() >= 0 && (w.port.Queued() > 0 || slices.ContainsFunc(w.nodes, func(n claimedNode) bool { return n.IsPending() }))
	})
}

// mayYield reports whether the bus carries no more frames of the target, so that "cannot claim" is the
// last frame. Under other rules than stop the target goes on.
func (c *busPorts) mayYield(w *busPort) bool {
	const ticks = 2 // the target may have been sending
	s := c.Status
	return !w.silent || s.StartNs.Load() == 0 || rt.State(s.State.Load()) == rt.Ended ||
		s.Ticks.Load() >= w.silentAt+ticks || c.ended
}

// poll reads the received frames and sends the due ones. It reports whether an address still waits
// for the end of its claim.
func (c *busPorts) poll() (waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := sched.Now()
	c.receiveForwarded(now)
	for _, w := range c.buses {
		if w.reads {
			for i := range w.on.Recv(c.frames[:]) {
				w.receive(&c.frames[i], now)
			}
		}

		for n := range w.nodes {
			c.noteState(w, &w.nodes[n])
		}
		w.flush(now)
		for n := range w.nodes {
			if w.nodes[n].State == j1939.Lost && !c.mayYield(w) {
				continue
			}
			if f, ok := w.nodes[n].Poll(now); ok {
				w.port.Queue(f, now)
			}
			waits = waits || w.nodes[n].State == j1939.Waiting
			c.noteState(w, &w.nodes[n])
		}

		if w.reads && w.on.Stats.Down > w.down && !w.silent { // nodes may have joined while the bus was down
			w.claimAll(now)
		}
		if w.silent {
			w.port.SilenceTester(now, w.silentFor)
		} else {
			w.port.Poll(now)
		}
		w.flush(now)
		w.down = w.on.Stats.Down
		c.measureDelay(w)
	}

	return waits
}

// measureDelay reads the frames of the bench that were on an interface.
func (c *busPorts) measureDelay(w *busPort) {
	start := int64(c.Status.StartNs.Load())
	if w.echo == nil || start == 0 {
		return
	}
	n := w.echo.RecvAt(c.frames[:], c.stamps[:])
	offset := sched.Realtime() - sched.Now()
	for i := range n {
		if at := c.stamps[i].Soft - offset - start; c.stamps[i].Soft != 0 && at >= 0 {
			w.delay.Note(&c.frames[i], at)
		}
	}
}

// flush sends the frames of the port. An address that is claimed is not held before its claim has been on the
// bus for the time to contest it, however late the bus takes the claim.
func (w *busPort) flush(now int64) {
	if w.port.Flush(now, w.on.Send) == 0 && w.port.Queued() == 0 {
		return
	}
	for i := range w.nodes {
		w.nodes[i].NoteSent(sched.Now())
	}
}

// receiveForwarded processes the frames that the loop has passed on.
func (c *busPorts) receiveForwarded(now int64) {
	for range maxPortFrames {
		if !c.Status.NextPortFrame(&c.forwarded) {
			return
		}
		i := slices.IndexFunc(c.buses, func(w *busPort) bool { return w.index == int(c.forwarded.Bus) })
		f := &c.forwarded.Frame
		switch {
		case i < 0 || c.buses[i].silent:
		case f.Flags&can.FlagLong != 0:
			c.buses[i].port.SendLong(&c.forwarded, now)
		case !c.buses[i].reads:
			c.buses[i].receive(f, now)
		}
	}
}

// sent returns the frames that the ports have sent since the last call.
func (c *busPorts) sent() (list []port.Sent) {
	for _, w := range c.buses {
		list = append(list, w.port.TakeSent()...)
	}
	return list
}

// outcomes returns the outcomes of the diagnosis since the last call.
func (c *busPorts) outcomes() (list []diagnosis.Result) {
	for _, w := range c.buses {
		list = append(list, w.port.TakeOutcomes()...)
	}
	return list
}

// useAgenda gives the ports what a scenario asks of the units.
func (c *busPorts) useAgenda(a *diagnosis.Agenda) {
	for _, w := range c.buses {
		w.port.UseAgenda(a)
	}
}

// desk returns who takes the commands of the diagnosis.
func (c *busPorts) desk() *diagnosis.Desk {
	d := &diagnosis.Desk{}
	for _, w := range c.buses {
		d.Buses, d.Testers = append(d.Buses, w.bus.Name.Text), append(d.Testers, w.port.Tester)
	}
	return d
}

// noteState adds an event for a node whose address was held or lost, and follows the rule of the
// bus for a lost one.
func (c *busPorts) noteState(w *busPort, n *claimedNode) {
	if n.State == n.reported || n.State == j1939.Waiting {
		return
	}
	n.reported = n.State
	text := fmt.Sprintf("address 0x%02X of bus %s ", n.Address, w.bus.Name.Text)
	if n.State == j1939.Lost {
		text += fmt.Sprintf("was lost to NAME %v (%s); the bench has NAME %v", n.Rival, n.Rival.Describe(), n.Name)
		rule := w.bus.J1939.Lost
		if rule != "continue" && c.lost == "" {
			c.lost, c.ends = text, rule == "stop"
		}
		switch rule {
		case "stop":
			c.Status.Muted.Or(1 << w.index)
			w.silent, w.silentAt = true, c.Status.Ticks.Load()
			w.silentFor = fmt.Errorf("the bench sends nothing more on bus %s: %s", w.bus.Name.Text, text)
			w.port.DropQueue()
		case "safe":
			c.Status.Stop.CompareAndSwap(0, rt.StopSafe)
		}
	} else {
		text += fmt.Sprintf("is held for NAME %v (%s)", n.Name, n.Name.Describe())
	}

	if len(c.changes) < maxClaimEvents {
		c.changes = append(c.changes, record.Event{Kind: record.BusState, Tick: int64(c.Status.Ticks.Load()),
			Time: sched.Realtime(), Text: text})
	}
}

// endReason returns the lost address that ends the run; "" if none does.
func (c *busPorts) endReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ends {
		return ""
	}
	return c.lost
}

// events returns the events since the last call.
func (c *busPorts) events() []record.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.changes[c.recorded:]
	c.recorded = len(c.changes)
	return list
}

// counts returns a line of the report for each port that has worked.
func (c *busPorts) counts() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.buses {
		counts := w.port.Counts()
		if w.delay != nil {
			counts.Delay = w.delay.Counts
		}
		if text := counts.String(); text != "" {
			list = append(list, w.bus.Name.Text+": "+text)
		}
	}
	return list
}

// lines returns a line of the report for each address.
func (c *busPorts) lines() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.buses {
		for i := range w.nodes {
			n := &w.nodes[i]
			if !w.reads {
				continue
			}
			text := fmt.Sprintf("%s: 0x%02X %s, %s", w.bus.Name.Text, n.Address, n.State, n.Name.Describe())
			if n.State == j1939.Lost {
				text += fmt.Sprintf("; held by NAME %v (%s)", n.Rival, n.Rival.Describe())
			}
			if n.defended > 0 {
				text += fmt.Sprintf("; defended %d times", n.defended)
			}
			list = append(list, text)
		}
	}

	return list
}
