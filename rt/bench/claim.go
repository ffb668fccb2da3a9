package bench

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/record"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/sched"
)

// J1939 is what a bench file says of the addresses from which it sends.
type J1939 struct {
	Lost      string // "stop", "safe" or "continue": when another node takes one away
	Addresses []Address
}

// Address is a source address and the NAME that it is claimed for.
type Address struct {
	At      Word
	Address uint8
	Name    j1939.Name
}

func (r *reader) j1939(n ast.Node, what string) *J1939 {
	v := &J1939{Lost: "stop"}
	r.object(n, what, []key{
		{"lost", func(n ast.Node) { v.Lost = r.choice(n, what+": lost", "stop", "safe", "continue") }},
		{"addresses", func(n ast.Node) {
			for _, e := range r.pairs(n, what+": addresses") {
				v.Addresses = append(v.Addresses, r.address(e, what, v.Addresses))
			}
		}},
	})
	if len(v.Addresses) == 0 {
		r.fail(n, "%s: no address is named (addresses: {0x00: {function: engine, identity: 1}})", what)
	}
	return v
}

// address reads ADDRESS: {function, identity, ...}; others are those before it.
func (r *reader) address(e *ast.MappingValueNode, what string, others []Address) Address {
	a := Address{At: keyWord(e)}
	number, err := strconv.ParseUint(a.At.Text, 0, 8)
	if err != nil || number >= j1939.Null {
		r.fail(e.Key, "%s: %q is not an address from 0 to 253 (0x00 to 0xFD)", what, a.At.Text)
	}
	a.Address = uint8(number)
	var f j1939.Fields
	what = fmt.Sprintf("%s: address %s", what, a.At.Text)
	part := func(name string, assign func(int), most int) key {
		return key{name, func(n ast.Node) {
			v := 0
			r.integer(&v, what+": "+name, 0, most)(n)
			assign(v)
		}}
	}
	r.object(e.Value, what, []key{
		{"function", func(n ast.Node) { f.Function = r.function(n, what) }},
		part("identity", func(v int) { f.Identity = uint32(v) }, 1<<21-1),
		part("manufacturer", func(v int) { f.Manufacturer = uint16(v) }, 1<<11-1),
		part("function_instance", func(v int) { f.FunctionInstance = uint8(v) }, 31),
		part("ecu_instance", func(v int) { f.ECUInstance = uint8(v) }, 7),
		part("vehicle_system", func(v int) { f.VehicleSystem = uint8(v) }, 127),
		part("system_instance", func(v int) { f.SystemInstance = uint8(v) }, 15),
		part("industry_group", func(v int) { f.IndustryGroup = uint8(v) }, 7),
	})
	if r.err != nil {
		return a
	}
	a.Name, _ = f.Name() // every part is within its bits
	for _, o := range others {
		switch {
		case o.Address == a.Address:
			r.fail(e.Key, "%s is given twice, at line %d too", what, o.At.Line)
		case o.Name == a.Name:
			r.fail(e.Key, "%s: address %s has the same NAME, %v; give it another identity", what, o.At.Text, o.Name)
		}
	}
	return a
}

// function reads a function of a NAME: a word, or its number.
func (r *reader) function(n ast.Node, what string) uint8 {
	w := r.word(n, what+": function")
	var words []string
	for _, f := range j1939.Functions() {
		if f.Word == w.Text {
			return f.Value
		}
		words = append(words, f.Word)
	}
	v, err := strconv.ParseUint(w.Text, 0, 8)
	if r.err == nil && err != nil {
		r.fail(n, "%s: function: %q is neither a number from 0 to 255 nor one of %s%s", what, w.Text, strings.Join(words, ", "), meant(w.Text, words))
	}
	return uint8(v)
}

// addresses checks that each message sent has a source address that is claimed, and
// that each address claimed is that of a message.
func (b *Bench) addresses(bus *Bus, m *sigmap.Map) error {
	if bus.J1939 == nil {
		return nil
	}
	sends := map[uint8]bool{}
	for i := range m.Tx {
		id := j1939.ParseID(m.Tx[i].ID)
		if m.Tx[i].ID&can.EFF == 0 {
			return b.errorf(bus.Frames[i].Message, "bus %q: message %s has 11 bits of identifier: it is none of J1939's", bus.Name.Text, m.Tx[i].Name)
		}
		if bus.J1939.find(id.Source) < 0 {
			return b.errorf(bus.Frames[i].Message, "bus %q: nobody claims 0x%02X, from which message %s is sent; add it to j1939: addresses, or leave j1939 out: nothing is claimed then",
				bus.Name.Text, id.Source, m.Tx[i].Name)
		}
		sends[id.Source] = true
	}
	for _, a := range bus.J1939.Addresses {
		if !sends[a.Address] {
			return b.errorf(a.At, "bus %q: no message is sent from address %s", bus.Name.Text, a.At.Text)
		}
	}
	return nil
}

func (j *J1939) find(address uint8) int {
	for i, a := range j.Addresses {
		if a.Address == address {
			return i
		}
	}
	return -1
}

// What claims take: how often they listen, how many frames they read then, and how long
// a contest before the first tick may last.
const (
	attention  = 20 * time.Millisecond
	hearsay    = 32
	contest    = 5 * time.Second
	maxClaimed = 1000 // of the news that are kept
)

// claims holds the addresses of the buses with a name: it claims them before the first
// tick, on sockets of its own, and defends them until the run is over. A bus without a
// name has no other node that could claim one.
type claims struct {
	r    *run
	wire []*claimed
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex // of what follows, and of the nodes
	news []record.Event
	seen int    // of news, by the recorder
	lost string // the first address that was, and to whom, where the run cannot do without
	over bool   // and the run is to end for it
}

// claimed are the addresses of one bus.
type claimed struct {
	bus   *Bus
	on    *can.Bus
	nodes []j1939.Node
	said  []j1939.State // of each node, in the news
	again []int         // how often each was defended
	queue []can.Frame   // what the bus has not taken yet
	down  uint64        // can.Stats.Down so far
}

// newClaims claims the addresses of a run's buses.
func newClaims(r *run) (*claims, error) {
	c := &claims{r: r, stop: make(chan struct{}), done: make(chan struct{})}
	now := sched.Now()
	for i := range r.bench.Buses {
		bus := &r.bench.Buses[i]
		if bus.J1939 == nil || !named(bus.Interface.Text) {
			continue
		}
		on, err := can.Dial(bus.Interface.Text, j1939.Filters())
		if err != nil {
			c.close()
			return nil, fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		w := &claimed{bus: bus, on: on, said: make([]j1939.State, len(bus.J1939.Addresses)), again: make([]int, len(bus.J1939.Addresses))}
		for _, a := range bus.J1939.Addresses {
			w.nodes = append(w.nodes, j1939.Node{Name: a.Name, Address: a.Address})
		}
		w.begin(now)
		c.wire = append(c.wire, w)
	}
	return c, nil
}

// begin claims all addresses of the bus, anew if need be.
func (w *claimed) begin(now int64) {
	w.queue = w.queue[:0]
	for i := range w.nodes {
		w.queue = append(w.queue, w.nodes[i].Begin(now))
	}
}

// settle waits until each address is held or lost. One that is lost before the first
// tick is an error, unless the bench goes on without.
func (c *claims) settle() error {
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
func (c *claims) follow() {
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
func (c *claims) close() {
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
func (c *claims) finish() {
	if c == nil {
		return
	}
	close(c.stop)
	<-c.done
	c.close()
}

// look takes in what has come, sends what is due, and tells whether an address still
// waits.
func (c *claims) look() (waits bool) {
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

func (w *claimed) hear(f *can.Frame, now int64) {
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
func (c *claims) tell(w *claimed, i int) {
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
		c.news = append(c.news, record.Event{Kind: record.BusState, Tick: int64(c.r.page.Ticks.Load()), Time: sched.Realtime(), Text: text})
	}
}

// yield does what the bench says of a lost address.
func (c *claims) yield(rule, text string) {
	if rule == "continue" || c.lost != "" {
		return
	}
	c.lost, c.over = text, rule == "stop"
	if rule == "safe" {
		c.r.page.Stop.CompareAndSwap(0, rt.StopSafe)
	}
}

// ends says why the run is to end, "" that it is not.
func (c *claims) ends() string {
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
func (c *claims) events() []record.Event {
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
func (c *claims) says() (list []string) {
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
