package supervisor

import (
	"fmt"
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

// What claims take: how often they listen, how many frames they read then, and how long
// a contest before the first tick may last.
const (
	claimInterval  = 20 * time.Millisecond
	maxClaimFrames = 32
	claimTimeout   = 5 * time.Second
	maxClaimNews   = 1000 // of the news that are kept
)

// addressClaims holds the addresses of the buses with a name: it claims them before the first
// tick, on sockets of its own, and defends them until the run is over. A bus without a
// name has no other node that could claim one.
type addressClaims struct {
	report.View
	buses []*claimedBus
	stop  func() // ends the defence; nil: there is none

	mu       sync.Mutex // of what follows, and of the nodes
	news     []record.Event
	recorded int    // of news, by the recorder
	lost     string // the first address that was, and to whom, where the run cannot do without
	ends     bool   // and the run is to end for it
}

// claimedBus are the addresses of one bus.
type claimedBus struct {
	bus   *bench.Bus
	on    *can.Bus
	nodes []claimedNode
	queue []can.Frame // what the bus has not taken yet
	down  uint64      // can.Stats.Down so far
}

// claimedNode is one of these addresses.
type claimedNode struct {
	j1939.Node
	reported j1939.State // in the news
	defended int         // how often it was defended
}

// open claims the addresses of a run's buses.
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
		c.add(bus, on)
	}

	return nil
}

// add claims the addresses of a bus on a socket, which is the claims' own.
func (c *addressClaims) add(bus *bench.Bus, on *can.Bus) {
	w := &claimedBus{bus: bus, on: on}
	for _, a := range bus.J1939.Addresses {
		w.nodes = append(w.nodes, claimedNode{Node: j1939.Node{Name: a.Name, Address: a.Address}})
	}
	w.claimAll(sched.Now())
	c.buses = append(c.buses, w)
}

// claimAll claims all addresses of the bus, anew if need be.
func (w *claimedBus) claimAll(now int64) {
	w.queue = w.queue[:0]
	for i := range w.nodes {
		w.queue = append(w.queue, w.nodes[i].Begin(now))
	}
}

// waitClaimed waits until each address is held or lost. One that is lost before the first
// tick is an error, unless the bench goes on without.
func (c *addressClaims) waitClaimed() error {
	end := sched.Now() + int64(claimTimeout)
	for waits := len(c.buses) > 0; waits; { // 250 ms, and more where others contend
		time.Sleep(claimInterval)
		if waits = c.poll(); waits && sched.Now() > end {
			return fmt.Errorf("another node has claimed an address of the bench again and again for %v: %s",
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

// close ends the defence and gives up the sockets.
func (c *addressClaims) close() {
	if c.stop != nil {
		c.stop()
	}
	for _, w := range c.buses {
		w.on.Close() // a second time is no harm
	}
}

// poll takes in what has come, sends what is due, and tells whether an address still
// waits.
func (c *addressClaims) poll() (waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := sched.Now()
	var frames [maxClaimFrames]can.Frame
	for _, w := range c.buses {
		for i := range w.on.Recv(frames[:]) {
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
			if f, ok := w.nodes[n].Poll(now); ok {
				w.queue = append(w.queue, f)
			}
			waits = waits || w.nodes[n].State == j1939.Waiting
			c.noteState(w, &w.nodes[n])
		}

		if w.on.Stats.Down > w.down { // others may have come while it was away
			w.claimAll(now)
		}
		for len(w.queue) > 0 && w.on.Send(&w.queue[0]) {
			w.queue = w.queue[1:]
		}
		w.down = w.on.Stats.Down
	}

	return waits
}

// noteState notes what has become of a node.
func (c *addressClaims) noteState(w *claimedBus, n *claimedNode) {
	if n.State == n.reported || n.State == j1939.Waiting {
		return
	}
	n.reported = n.State
	text := fmt.Sprintf("address 0x%02X of bus %s ", n.Address, w.bus.Name.Text)
	if n.State == j1939.Lost {
		text += fmt.Sprintf("was lost to NAME %v (%s), ours is %v", n.Rival, n.Rival.Describe(), n.Name)
		if rule := w.bus.J1939.Lost; rule != "continue" && c.lost == "" {
			c.lost, c.ends = text, rule == "stop"
			if rule == "safe" {
				c.Status.Stop.CompareAndSwap(0, rt.StopSafe)
			}
		}
	} else {
		text += fmt.Sprintf("is held for NAME %v (%s)", n.Name, n.Name.Describe())
	}

	if len(c.news) < maxClaimNews {
		c.news = append(c.news, record.Event{Kind: record.BusState, Tick: int64(c.Status.Ticks.Load()),
			Time: sched.Realtime(), Text: text})
	}
}

// endReason says why the run is to end, "" that it is not.
func (c *addressClaims) endReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ends {
		return ""
	}
	return c.lost
}

// events are what the recorder has not written yet.
func (c *addressClaims) events() []record.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.news[c.recorded:]
	c.recorded = len(c.news)
	return list
}

// lines are lines for the report, one for each address.
func (c *addressClaims) lines() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.buses {
		for i := range w.nodes {
			n := &w.nodes[i]
			text := fmt.Sprintf("%s: 0x%02X %s, %s", w.bus.Name.Text, n.Address, n.State, n.Name.Describe())
			if n.State == j1939.Lost {
				text += fmt.Sprintf("; NAME %v has it (%s)", n.Rival, n.Rival.Describe())
			}
			if n.defended > 0 {
				text += fmt.Sprintf("; defended %d times", n.defended)
			}
			list = append(list, text)
		}
	}

	return list
}
