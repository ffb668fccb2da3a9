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
	"lockstep/rt/report"
	"lockstep/sched"
)

// What claims take: how often they listen, how many frames they read then, and how long
// a contest before the first tick may last.
const (
	attention  = 20 * time.Millisecond
	hearsay    = 32
	contest    = 5 * time.Second
	maxClaimed = 1000 // of the news that are kept
)

// addressClaims holds the addresses of the buses with a name: it claims them before the first
// tick, on sockets of its own, and defends them until the run is over. A bus without a
// name has no other node that could claim one.
type addressClaims struct {
	report.View
	wire []*claimedBus
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex // of what follows, and of the nodes
	news []record.Event
	seen int    // of news, by the recorder
	lost string // the first address that was, and to whom, where the run cannot do without
	over bool   // and the run is to end for it
}

// claimedBus are the addresses of one bus.
type claimedBus struct {
	bus   *bench.Bus
	on    *can.Bus
	nodes []j1939.Node
	said  []j1939.State // of each node, in the news
	again []int         // how often each was defended
	queue []can.Frame   // what the bus has not taken yet
	down  uint64        // can.Stats.Down so far
}

// newClaims claims the addresses of a run's buses.
func newClaims(r report.View) (*addressClaims, error) {
	c := &addressClaims{View: r, stop: make(chan struct{}), done: make(chan struct{})}
	for i := range r.Handover.Bench.Buses {
		bus := &r.Handover.Bench.Buses[i]
		if bus.J1939 == nil || !bench.IsHostInterface(bus.Interface.Text) {
			continue
		}
		on, err := can.Dial(bus.Interface.Text, j1939.Filters())
		if err != nil {
			c.close()
			return nil, fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		c.add(bus, on)
	}
	return c, nil
}

// add claims the addresses of a bus on a socket, which is the claims' own.
func (c *addressClaims) add(bus *bench.Bus, on *can.Bus) {
	n := len(bus.J1939.Addresses)
	w := &claimedBus{bus: bus, on: on, said: make([]j1939.State, n), again: make([]int, n)}
	for _, a := range bus.J1939.Addresses {
		w.nodes = append(w.nodes, j1939.Node{Name: a.Name, Address: a.Address})
	}
	w.begin(sched.Now())
	c.wire = append(c.wire, w)
}

// begin claims all addresses of the bus, anew if need be.
func (w *claimedBus) begin(now int64) {
	w.queue = w.queue[:0]
	for i := range w.nodes {
		w.queue = append(w.queue, w.nodes[i].Begin(now))
	}
}

// settle waits until each address is held or lost. One that is lost before the first
// tick is an error, unless the bench goes on without.
func (c *addressClaims) settle() error {
	end := sched.Now() + int64(contest)
	for waits := len(c.wire) > 0; waits; { // 250 ms, and more where others contend
		time.Sleep(attention)
		if waits = c.look(); waits && sched.Now() > end {
			return fmt.Errorf("another node has claimed an address of the bench again and again for %v: %s", contest, strings.Join(c.says(), "; "))
		}
	}
	if c.lost != "" {
		return fmt.Errorf("%s; take that node off the bus, or give the bench another NAME (j1939: addresses)", c.lost)
	}
	return nil
}

// follow defends the addresses until close.
func (c *addressClaims) follow() {
	if c == nil {
		return
	}
	go func() {
		defer close(c.done)
		clock := time.NewTicker(attention)
		defer clock.Stop()
		for {
			select {
			case <-c.stop:
				return
			case <-clock.C:
				c.look()
			}
		}
	}()
}

// close ends that and gives up the sockets.
func (c *addressClaims) close() {
	if c == nil {
		return
	}
	for _, w := range c.wire {
		if w.on != nil {
			w.on.Close()
			w.on = nil
		}
	}
}

// finish ends the defence.
func (c *addressClaims) finish() {
	if c == nil {
		return
	}
	close(c.stop)
	<-c.done
	c.close()
}

// look takes in what has come, sends what is due, and tells whether an address still
// waits.
func (c *addressClaims) look() (waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := sched.Now()
	var frames [hearsay]can.Frame
	for _, w := range c.wire {
		for i := range w.on.Recv(frames[:]) {
			w.hear(&frames[i], now)
		}
		for i := range w.nodes {
			if f, ok := w.nodes[i].Due(now); ok {
				w.queue = append(w.queue, f)
			}
			waits = waits || w.nodes[i].State == j1939.Waiting
			c.tell(w, i)
		}
		if w.on.Stats.Down > w.down { // others may have come while it was away
			w.begin(now)
		}
		for len(w.queue) > 0 && w.on.Send(&w.queue[0]) {
			w.queue = w.queue[1:]
		}
		w.down = w.on.Stats.Down
	}
	return waits
}

func (w *claimedBus) hear(f *can.Frame, now int64) {
	for i := range w.nodes {
		if answer, ok := w.nodes[i].Hear(f, now); ok {
			w.queue = append(w.queue, answer)
			if j1939.ParseID(f.ID).PGN == j1939.PGNClaim {
				w.again[i]++
			}
		}
	}
}

// tell notes what has become of a node.
func (c *addressClaims) tell(w *claimedBus, i int) {
	n := &w.nodes[i]
	if n.State == w.said[i] || n.State == j1939.Waiting {
		return
	}
	w.said[i] = n.State
	text := fmt.Sprintf("address 0x%02X of bus %s ", n.Address, w.bus.Name.Text)
	if n.State == j1939.Lost {
		text += fmt.Sprintf("was lost to NAME %v (%s), ours is %v", n.Rival, n.Rival.About(), n.Name)
		c.yield(w.bus.J1939.Lost, text)
	} else {
		text += fmt.Sprintf("is held for NAME %v (%s)", n.Name, n.Name.About())
	}
	if len(c.news) < maxClaimed {
		c.news = append(c.news, record.Event{Kind: record.BusState, Tick: int64(c.Page.Ticks.Load()), Time: sched.Realtime(), Text: text})
	}
}

// yield does what the bench says of a lost address.
func (c *addressClaims) yield(rule, text string) {
	if rule == "continue" || c.lost != "" {
		return
	}
	c.lost, c.over = text, rule == "stop"
	if rule == "safe" {
		c.Page.Stop.CompareAndSwap(0, rt.StopSafe)
	}
}

// ends says why the run is to end, "" that it is not.
func (c *addressClaims) ends() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		return ""
	}
	return c.lost
}

// events are what the recorder has not written yet.
func (c *addressClaims) events() []record.Event {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.news[c.seen:]
	c.seen = len(c.news)
	return list
}

// says are lines for the report, one for each address.
func (c *addressClaims) says() (list []string) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.wire {
		for i := range w.nodes {
			n := &w.nodes[i]
			text := fmt.Sprintf("%s: 0x%02X %s, %s", w.bus.Name.Text, n.Address, n.State, n.Name.About())
			if n.State == j1939.Lost {
				text += fmt.Sprintf("; NAME %v has it (%s)", n.Rival, n.Rival.About())
			}
			if w.again[i] > 0 {
				text += fmt.Sprintf("; defended %d times", w.again[i])
			}
			list = append(list, text)
		}
	}
	return list
}
