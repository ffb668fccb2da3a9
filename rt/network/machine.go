package network

import (
	"math"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
)

// never is the first tick of a message that is not sent.
const never = math.MaxInt64

// Topic is what a Change is about.
type Topic uint8

// The topics.
const (
	OfIgnition Topic = iota // Value is a State
	OfNode                  // Value is a Mode of the node on Bus
	OfPower                 // Value is a Supply
)

// Change is a change at the start of a tick.
type Change struct {
	Topic Topic
	Bus   uint8
	Value uint16
}

// Machine is the network of a running bench. A nil Machine lets every frame pass.
//
// Call Apply for each command, then Begin, at each grid point. Call Receive for each frame that reaches the
// plant. The same calls have the same results.
type Machine struct {
	plan  *Plan         `checkpoint:"-"`
	maps  []*sigmap.Map `checkpoint:"-"`
	first []int         // per bus, index in from of its first message
	buses []int         // per bus, index in nodes of its node; -1: none

	state  State
	supply Supply
	from   []int64 // by sent message: first tick at which it is sent; never: not sent
	nodes  []Node

	seen  bool  // a frame that wakes the bench came since the last tick
	woken bool  // a frame has woken the bench, and keeps it awake
	last  int64 // tick of the last such frame

	changes [32]Change
	made    int
	read    int
}

// New returns the machine of a plan, in its start state at tick 0; a nil plan has none.
func New(p *Plan, maps []*sigmap.Map) (*Machine, error) {
	if p == nil {
		return nil, nil
	}
	if err := p.Check(maps); err != nil {
		return nil, err
	}
	m := &Machine{plan: p, maps: maps, from: make([]int64, len(p.Delays)), nodes: make([]Node, len(p.Nodes)), supply: SupplyOn}
	n := 0
	for b, mp := range maps {
		m.first, m.buses = append(m.first, n), append(m.buses, -1)
		n += len(mp.Tx)
		for i := range p.Nodes {
			if p.Nodes[i].Bus == b {
				m.buses[b] = i
			}
		}
	}
	for i := range m.from {
		m.from[i] = never
	}
	m.state = p.Start
	m.ShowState()
	m.note(Change{Topic: OfIgnition, Value: uint16(p.Start)}) // of the first tick
	return m, nil
}

// State returns the state of the ignition.
//
//go:nosplit
func (m *Machine) State() State { return m.state }

// Apply applies a command at the start of tick k. It returns false if the command is about something else.
//
//go:nosplit
func (m *Machine) Apply(c *fault.Command, k int64) bool {
	if m == nil {
		return false
	}
	switch c.Op {
	case fault.SwitchIgnition:
		m.woken = false
		m.enter(State(c.Slot), k)
	case fault.SwitchPower:
		if s := Supply(c.Slot); s != m.supply {
			m.supply = s
			m.note(Change{Topic: OfPower, Value: uint16(s)})
		}
	default:
		return false
	}
	return true
}

// enter enters a state of the ignition at tick k.
//
//go:nosplit
func (m *Machine) enter(s State, k int64) {
	if s == m.state || s >= States {
		return
	}
	m.state = s
	m.note(Change{Topic: OfIgnition, Value: uint16(s)})
	m.ShowState()
	m.openAndClose(k)
}

// ShowState makes the signals of the state carry it. Call it after a checkpoint was loaded, which does not have the
// values of signals.
//
//go:nosplit
func (m *Machine) ShowState() {
	for i := range m.plan.Signals {
		s := &m.plan.Signals[i]
		t := &m.maps[s.Bus].Tx[s.Message]
		w := &t.Waveforms[t.Fields[s.Field].Waveform-1]
		w.Value[0] = s.Values[m.state]
	}
}

// openAndClose starts the messages that are sent from tick k on, each after its delay, and ends those that
// are not.
//
//go:nosplit
func (m *Machine) openAndClose(k int64) {
	for b, mp := range m.maps {
		node := m.buses[b]
		awake := node < 0 || m.nodes[node].Awake()
		for i := range mp.Tx {
			at := m.first[b] + i
			delay := m.plan.Delays[at][m.state]
			switch {
			case delay == Never || !awake:
				m.from[at] = never
			case m.from[at] == never:
				m.from[at] = k + delay
				t := &mp.Tx[i]
				if t.LastDue = 0; delay > 0 {
					t.PhaseTicks = (k + delay) % t.CycleTicks // the cycle begins with its first frame
				}
			}
		}
	}
}

// Begin starts tick k.
//
//go:nosplit
func (m *Machine) Begin(k int64) {
	changed := k == 1
	if m.seen {
		m.last = k
	}
	switch {
	case m.seen && m.state == Off:
		m.woken = true
		m.enter(m.plan.Wake.To, k)
	case m.woken && k-m.last >= m.plan.Wake.Hold:
		m.woken = false
		m.enter(Off, k)
	}
	m.seen = false
	for i := range m.nodes {
		n, p := &m.nodes[i], &m.plan.Nodes[i]
		before := n.Mode
		n.Step(p, k, p.Awake[m.state])
		if n.Mode != before {
			changed = true
			m.note(Change{OfNode, uint8(p.Bus), uint16(n.Mode)})
		}
	}
	if changed {
		m.openAndClose(k)
	}
}

// Receive takes a frame of message i of bus b that reaches the plant.
//
//go:nosplit
func (m *Machine) Receive(b, i int, f *can.Frame) {
	if m == nil || i < 0 {
		return
	}
	if len(m.plan.Wake.By) > 0 && m.plan.Wake.By[b][i] {
		m.seen = true
	}
	if n := m.buses[b]; n >= 0 && m.plan.Nodes[n].From[i] {
		control := uint8(0)
		if p := &m.plan.Nodes[n]; p.ControlByte < f.Len && int(p.ControlByte) < len(f.Data) {
			control = f.Data[p.ControlByte]
		}
		m.nodes[n].Receive(control)
	}
}

// Sends reports whether message i of bus b may be sent at tick k. by: the message is one of the network
// management, which alone decides when it is sent.
//
//go:nosplit
func (m *Machine) Sends(b, i int, k int64) (may, by bool) {
	if n := m.buses[b]; n >= 0 && m.plan.Nodes[n].Message == i {
		return m.nodes[n].Sends(k), true
	}
	return k >= m.from[m.first[b]+i], false
}

// First returns the first tick at which message i of bus b is sent without the network management, in the present
// state of the ignition and the network. It is math.MaxInt64 for a message that is not sent, and for an NM message.
//
//go:nosplit
func (m *Machine) First(b, i int) int64 {
	if n := m.buses[b]; n >= 0 && m.plan.Nodes[n].Message == i {
		return never
	}
	return m.from[m.first[b]+i]
}

// Fill completes a frame of message i of bus b that is encoded: an NM message gets its bytes.
//
//go:nosplit
func (m *Machine) Fill(b, i int, f *can.Frame) {
	if m == nil {
		return
	}
	if n := m.buses[b]; n >= 0 && m.plan.Nodes[n].Message == i {
		m.nodes[n].Fill(&m.plan.Nodes[n], f)
	}
}

// Confirm notes that the bus has taken a frame of message i of bus b at tick k.
//
//go:nosplit
func (m *Machine) Confirm(b, i int, k int64) {
	if m == nil {
		return
	}
	if n := m.buses[b]; n >= 0 && m.plan.Nodes[n].Message == i {
		m.nodes[n].Confirm(&m.plan.Nodes[n], k)
	}
}

// note keeps a change for NextChange.
//
//go:nosplit
func (m *Machine) note(c Change) {
	if m.made < len(m.changes) {
		m.changes[m.made] = c
		m.made++
	}
}

// NextChange returns, one by one, the changes since it was last false. Call it until it returns false.
//
//go:nosplit
func (m *Machine) NextChange(c *Change) bool {
	if m.read >= m.made {
		m.made, m.read = 0, 0
		return false
	}
	*c = m.changes[m.read]
	m.read++
	return true
}

// Describe returns the change in words; buses are the names of the buses.
func (c Change) Describe(buses []string) string {
	switch c.Topic {
	case OfIgnition:
		return "ignition " + State(c.Value).String()
	case OfPower:
		return "power " + Supply(c.Value).String()
	}
	return "network of " + buses[c.Bus] + ": " + Mode(c.Value).String()
}
