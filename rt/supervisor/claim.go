package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Limits of address claiming.
const (
	claimInterval  = 20 * time.Millisecond // between two polls
	maxClaimFrames = 32                    // frames of a bus read per poll
	claimTimeout   = 5 * time.Second       // longest contest for an address before the first tick
	maxClaimEvents = 1000                  // events kept
)

// addressClaims claims the J1939 addresses of the bench before the first tick, on sockets of its
// own, and defends them until the end of the run. It covers only buses on interfaces; a pair or a
// log has no other node that could claim an address.
type addressClaims struct {
	report.View
	buses []*claimedBus
	stop  func() // ends defend; nil: not started

	mu       sync.Mutex // protects the fields below and the nodes
	changes  []record.Event
	recorded int    // changes already returned by events
	lost     string // first lost address under the rules stop and safe; "": none
	ends     bool   // the lost address ends the run
	ended    bool   // the target has ended
}

// claimedBus is a bus with claimed addresses.
type claimedBus struct {
	index int
	bus   *bench.Bus
	on    *can.Bus
	nodes []claimedNode
	queue []can.Frame // frames that the bus has not taken yet
	down  uint64      // can.Stats.Down at the last poll

	// An address is lost under the rule stop: only "cannot claim" is still sent. silentAt is the tick.
	silent   bool
	silentAt uint64
}

// claimedNode is one claimed address.
type claimedNode struct {
	j1939.Node
	reported j1939.State // state in the last event
	defended int         // number of defences
}

// open opens the sockets of the buses with addresses and sends the first claims.
func (c *addressClaims) open(r report.View) error {
	c.View = r
	for i := range r.Handover.Bench.Buses {
		bus := &r.Handover.Bench.Buses[i]
		if bus.J1939 == nil || !bench.IsHostInterface(bus.Interface.Text) {
			continue
		}
		on, err := can.Dial(bus.Interface.Text, j1939.Filters())
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		c.add(i, bus, on)
	}

	return nil
}

// add claims the addresses of a bus on a socket, which addressClaims closes.
func (c *addressClaims) add(index int, bus *bench.Bus, on *can.Bus) {
	w := &claimedBus{index: index, bus: bus, on: on}
	for _, a := range bus.J1939.Addresses {
		w.nodes = append(w.nodes, claimedNode{Node: j1939.Node{Name: a.Name, Address: a.Address}})
	}
	w.claimAll(sched.Now())
	c.buses = append(c.buses, w)
}

// claimAll queues a claim of each address of the bus.
func (w *claimedBus) claimAll(now int64) {
	w.queue = w.queue[:0]
	for i := range w.nodes {
		w.queue = append(w.queue, w.nodes[i].Begin(now))
	}
}

// waitClaimed waits until each address is held or lost. A lost address is an error, unless the rule
// of the bus is continue.
func (c *addressClaims) waitClaimed() error {
	end := sched.Now() + int64(claimTimeout)
	for waits := len(c.buses) > 0; waits; { // 250 ms; longer if another node contends
		time.Sleep(claimInterval)
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

// defend defends the addresses until close.
func (c *addressClaims) defend() {
	c.stop = host.Repeat(claimInterval, func(time.Time) { c.poll() })
}

// close ends defend, sends each "cannot claim" that is due and closes the sockets. The target has ended.
func (c *addressClaims) close() {
	if c.stop != nil {
		c.stop()
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	for end := sched.Now() + j1939.CannotClaimDelay + int64(claimInterval); c.isPending() && sched.Now() < end; {
		time.Sleep(claimInterval)
		c.poll()
	}
	for _, w := range c.buses {
		w.on.Close() // may be called twice
	}
}

// isPending reports whether a "cannot claim" is still to be sent on an open socket.
func (c *addressClaims) isPending() bool {
	return slices.ContainsFunc(c.buses, func(w *claimedBus) bool {
		return w.on.Fd() >= 0 && (len(w.queue) > 0 || slices.ContainsFunc(w.nodes, func(n claimedNode) bool { return n.IsPending() }))
	})
}

// mayYield reports whether the bus carries no more frames of the target, so that "cannot claim" is the
// last frame. Under other rules than stop the target goes on.
func (c *addressClaims) mayYield(w *claimedBus) bool {
	const ticks = 2 // the target may have been sending
	s := c.Status
	return !w.silent || s.StartNs.Load() == 0 || rt.State(s.State.Load()) == rt.Ended ||
		s.Ticks.Load() >= w.silentAt+ticks || c.ended
}

// poll reads the received frames and sends the due ones. It reports whether an address still waits
// for the end of its claim.
func (c *addressClaims) poll() (waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := sched.Now()
	var frames [maxClaimFrames]can.Frame
	for _, w := range c.buses {
		for i := range w.on.Recv(frames[:]) {
			if w.silent {
				continue
			}
			for n := range w.nodes {
				if answer, ok := w.nodes[n].Receive(&frames[i], now); ok {
					w.queue = append(w.queue, answer)
					if j1939.ParseID(frames[i].ID).PGN == j1939.PGNClaim {
						w.nodes[n].defended++
					}
				}
			}
		}

		for n := range w.nodes {
			c.noteState(w, &w.nodes[n])
			if w.nodes[n].State == j1939.Lost && !c.mayYield(w) {
				continue
			}
			if f, ok := w.nodes[n].Poll(now); ok {
				w.queue = append(w.queue, f)
			}
			waits = waits || w.nodes[n].State == j1939.Waiting
			c.noteState(w, &w.nodes[n])
		}

		if w.on.Stats.Down > w.down && !w.silent { // nodes may have joined while the bus was down
			w.claimAll(now)
		}
		for len(w.queue) > 0 && w.on.Send(&w.queue[0]) {
			w.queue = w.queue[1:]
		}
		w.down = w.on.Stats.Down
	}

	return waits
}

// noteState adds an event for a node whose address was held or lost, and follows the rule of the
// bus for a lost one.
func (c *addressClaims) noteState(w *claimedBus, n *claimedNode) {
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
			w.silent, w.silentAt, w.queue = true, c.Status.Ticks.Load(), nil
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
func (c *addressClaims) endReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ends {
		return ""
	}
	return c.lost
}

// events returns the events since the last call.
func (c *addressClaims) events() []record.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.changes[c.recorded:]
	c.recorded = len(c.changes)
	return list
}

// lines returns a line of the report for each address.
func (c *addressClaims) lines() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.buses {
		for i := range w.nodes {
			n := &w.nodes[i]
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
