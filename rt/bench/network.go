package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/rt/network"
)

// Network is the ignition of a bench.
type Network struct {
	Start  network.State
	Signal yamlfile.Scalar   // sent signal that carries the state, MESSAGE.SIGNAL; "": none
	WakeBy []yamlfile.Scalar // received messages that wake the bench; "any": each of them
	WakeTo network.State
	HoldNs int64
}

// Management is the bench as a node of the network management of a bus.
type Management struct {
	Plan  network.NodePlan  // without indices and times
	Sends yamlfile.Scalar   // the bench's own NM message
	From  []yamlfile.Scalar // those of other nodes

	CycleNs, OffsetNs, RepeatNs, TimeoutNs, WaitNs, ImmediateNs int64
}

// inDefault are the states in which a frame is sent that does not say in.
var inDefault = []string{"ignition", "crank", "run"}

// readNetwork reads the section network.
func readNetwork(r *yamlfile.Reader, f yamlfile.Field) *Network {
	s := r.Section(f, "network", "start", "signal", "wake")
	n := &Network{Start: network.Run, Signal: r.Scalar(s["signal"], "network: signal"), WakeTo: network.Standby, HoldNs: 2e9}
	if start, ok := s["start"]; ok {
		n.Start = readState(r, start, "network: start")
	}
	if message, signal, dot := strings.Cut(n.Signal.Text, "."); n.Signal.Text != "" && (!dot || message == "" || signal == "") {
		r.Fail(s["signal"], "network: signal: %q is not of the form MESSAGE.SIGNAL", n.Signal.Text)
	}
	wake, ok := s["wake"]
	if !ok {
		return n
	}
	w := r.Section(wake, "network: wake", "by", "to", "hold")
	for _, g := range r.OneOrItems(w["by"], "network: wake: by") {
		n.WakeBy = append(n.WakeBy, r.Scalar(g, "network: wake: by"))
	}
	if len(n.WakeBy) == 0 {
		r.Fail(wake, "network: wake: by is missing (by: any, or by: [MESSAGE, 0x123])")
	}
	if to, ok := w["to"]; ok {
		n.WakeTo = readState(r, to, "network: wake: to")
	}
	if hold, ok := w["hold"]; ok {
		n.HoldNs = readNanoseconds(r, hold, "network: wake: hold", 1e6, 3600e9)
	}
	if n.WakeTo == network.Off {
		r.Fail(w["to"], "network: wake: to: off is no state after a wake-up")
	}
	return n
}

// carry gives the signal that carries the state a value of its own in its frame.
func (n *Network) carry(buses []Bus) {
	message, signal, _ := strings.Cut(n.Signal.Text, ".")
	for i := range buses {
		b := &buses[i]
		for j := range b.Frames {
			f := &b.Frames[j]
			if f.Message != message || slices.ContainsFunc(f.Values, func(c sigmap.Constant) bool { return c.Signal == signal }) {
				continue
			}
			b.positions[sigmap.Place{List: sigmap.InSendings, Index: j, Part: "values", Item: len(f.Values)}] = n.Signal
			f.Values = append(f.Values, sigmap.Constant{Signal: signal, Text: "0"})
		}
	}
}

func readState(r *yamlfile.Reader, f yamlfile.Field, what string) network.State {
	s, err := network.ParseState(r.Scalar(f, what).Text)
	if err != nil {
		r.Fail(f, "%s: %v", what, err)
	}
	return s
}

// readStates reads a list of states, or all; without a list it returns those called absent.
func readStates(r *yamlfile.Reader, f yamlfile.Field, what string, absent []string) (in [network.States]bool) {
	list := absent
	if !f.IsMissing() {
		list = r.Texts(f, what)
	}
	if slices.Equal(list, []string{"all"}) {
		list = network.StateNames()
	}
	for _, text := range list {
		s, err := network.ParseState(text)
		if err != nil {
			r.Fail(f, "%s: %v", what, err)
		}
		in[s] = true
	}
	return in
}

// readManagement reads the key nm of a bus. It adds the NM messages to the frames that the bus sends and receives.
func (b *Bus) readManagement(r *yamlfile.Reader, f yamlfile.Field, what string) *Management {
	s := r.Section(f, what, "message", "from", "node", "node_byte", "control_byte", "awake", "cycle", "offset", "repeat", "timeout",
		"wait", "immediate", "immediate_cycle")
	byteAt := func(key string, absent uint8) uint8 {
		switch at := s[key]; {
		case at.IsMissing():
			return absent
		case r.Scalar(at, what+": "+key).Text == "none":
			return network.NoByte
		default:
			return uint8(r.Integer(at, what+": "+key, 0, 63))
		}
	}
	m := &Management{
		Plan: network.NodePlan{
			Awake:  readStates(r, s["awake"], what+": awake", []string{"standby", "ignition", "crank", "run"}),
			IDByte: byteAt("node_byte", 0), ControlByte: byteAt("control_byte", 1),
			Immediate: int64(r.Integer(s["immediate"], what+": immediate", 0, 255)),
		},
		Sends:   r.Scalar(s["message"], what+": message"),
		CycleNs: 100e6, RepeatNs: 1500e6, TimeoutNs: 1000e6, WaitNs: 750e6, ImmediateNs: 20e6,
	}
	for key, read := range map[string]func(f yamlfile.Field){
		"cycle":           func(f yamlfile.Field) { m.CycleNs = readNanoseconds(r, f, what+": cycle", 1, 3600e9) },
		"offset":          func(f yamlfile.Field) { m.OffsetNs = readNanoseconds(r, f, what+": offset", 0, 3600e9) },
		"repeat":          func(f yamlfile.Field) { m.RepeatNs = readNanoseconds(r, f, what+": repeat", 0, 3600e9) },
		"timeout":         func(f yamlfile.Field) { m.TimeoutNs = readNanoseconds(r, f, what+": timeout", 1, 3600e9) },
		"wait":            func(f yamlfile.Field) { m.WaitNs = readNanoseconds(r, f, what+": wait", 1, 3600e9) },
		"immediate_cycle": func(f yamlfile.Field) { m.ImmediateNs = readNanoseconds(r, f, what+": immediate_cycle", 1, 3600e9) },
	} {
		if f, ok := s[key]; ok {
			read(f)
		}
	}
	if m.Sends.Text == "" {
		r.Fail(f, "%s: the bench's own message is missing (message: NM_Bench)", what)
	}
	if s["node"].IsMissing() {
		r.Fail(f, "%s: the node identifier is missing (node: 0x10)", what)
	}
	m.Plan.ID = uint8(r.Unsigned(s["node"], what+": node", 255))
	if m.TimeoutNs <= m.CycleNs {
		r.Fail(f, "%s: the timeout, %g ms, is not longer than the cycle, %g ms", what, float64(m.TimeoutNs)/1e6, float64(m.CycleNs)/1e6)
	}
	if !slices.ContainsFunc(b.Frames, func(f Frame) bool { return f.Message == m.Sends.Text }) {
		b.positions[sigmap.Place{List: sigmap.InSendings, Index: len(b.Frames)}] = m.Sends
		b.Frames = append(b.Frames, Frame{Sent: true, Sending: sigmap.Sending{
			Restbus: true, Message: m.Sends.Text, PhaseNs: sigmap.FreePhase, Repeats: -1, Send: sigmap.OnChange}})
	}
	for _, g := range r.OneOrItems(s["from"], what+": from") {
		from := r.Scalar(g, what+": from")
		m.From = append(m.From, from)
		if !slices.ContainsFunc(b.Messages, func(m sigmap.Reception) bool { return m.Message == from.Text }) {
			b.positions[sigmap.Place{List: sigmap.InReceptions, Index: len(b.Messages)}] = from
			b.Messages = append(b.Messages, sigmap.Reception{Message: from.Text})
		}
	}
	return m
}

// networkPlan returns the tables of the network; nil: the bench has none.
func (b *Bench) networkPlan(h *Handover) (*network.Plan, error) {
	if b.Network == nil {
		for i := range b.Buses {
			bus := &b.Buses[i]
			if bus.Management != nil {
				return nil, b.Errorf(bus.Management.Sends, "bus %q: nm needs the ignition of the bench: add network: {start: off}", bus.Name.Text)
			}
			for _, f := range bus.Frames {
				if f.Switched.Text != "" {
					return nil, b.Errorf(f.Switched, "frame %s: %s needs the ignition of the bench: add network: {start: off}", f.Message, f.Switched.Text)
				}
			}
		}
		return nil, nil
	}
	p := &network.Plan{Start: b.Network.Start}
	for i := range b.Buses {
		bus := &b.Buses[i]
		for j := range h.Maps[i].Tx {
			f := &bus.Frames[j]
			var delays [network.States]int64
			for s, in := range f.In {
				if delays[s] = network.Never; in {
					delays[s] = b.ticks(f.DelayNs)
				}
			}
			p.Delays = append(p.Delays, delays)
		}
		if bus.Management != nil {
			n, err := b.nodePlan(i, h.Maps[i])
			if err != nil {
				return nil, err
			}
			p.Nodes = append(p.Nodes, n)
		}
	}
	if err := b.planSignal(p, h); err != nil {
		return nil, err
	}
	return p, b.planWake(p, h.Maps)
}

// ticks returns a time as ticks, rounded up.
func (b *Bench) ticks(ns int64) int64 { return (ns + b.PeriodNs - 1) / b.PeriodNs }

// nodePlan returns the node of a bus.
func (b *Bench) nodePlan(bus int, m *sigmap.Map) (network.NodePlan, error) {
	c := b.Buses[bus].Management
	p := c.Plan
	p.Bus = bus
	p.Message = slices.IndexFunc(m.Tx, func(t sigmap.Tx) bool { return t.Name == c.Sends.Text })
	if err := b.checkNMMessage(c, bus, &m.Tx[p.Message]); err != nil {
		return p, err
	}
	p.From = make([]bool, len(m.Rx))
	for _, from := range c.From {
		i := slices.IndexFunc(m.Rx, func(r sigmap.Rx) bool { return r.Name == from.Text })
		if i < 0 {
			return p, b.Errorf(from, "bus %q: nm: from: the bench does not receive %s", b.Buses[bus].Name.Text, from.Text)
		}
		p.From[i] = true
	}
	p.Cycle, p.Offset, p.Repeat, p.Timeout = b.ticks(c.CycleNs), b.ticks(c.OffsetNs), b.ticks(c.RepeatNs), b.ticks(c.TimeoutNs)
	p.Wait, p.ImmediateCycle = b.ticks(c.WaitNs), b.ticks(c.ImmediateNs)
	p.Timeout = max(p.Timeout, p.Cycle+1)
	return p, nil
}

// checkNMMessage returns an error if the node cannot write its bytes into its message.
func (b *Bench) checkNMMessage(c *Management, bus int, t *sigmap.Tx) error {
	fail := func(form string, args ...any) error {
		return b.Errorf(c.Sends, "bus %q: nm: %s", b.Buses[bus].Name.Text, fmt.Sprintf(form, args...))
	}
	id, control := c.Plan.IDByte, c.Plan.ControlByte
	switch {
	case len(t.Protect) > 0:
		return fail("%s is protected, so nm may not change its bytes: name a message without protect", t.Name)
	case slices.ContainsFunc(t.Fields, func(f sigmap.Field) bool { return f.Index >= 0 }):
		return fail("outputs of the plant drive %s, so nm may not change its bytes: name a message of its own", t.Name)
	case id == control && id != network.NoByte:
		return fail("node_byte and control_byte are both %d: each needs a byte of its own, or none", id)
	}
	for i, at := range []uint8{id, control} {
		if at != network.NoByte && int(at) >= t.Len {
			return fail("%s: %s has %d bytes, counted from 0, and no byte %d", []string{"node_byte", "control_byte"}[i], t.Name, t.Len, at)
		}
	}
	return nil
}

// planSignal finds the signal that carries the state. Texts of the database that name the states give its values;
// otherwise they are 0 to 4.
func (b *Bench) planSignal(p *network.Plan, h *Handover) error {
	at := b.Network.Signal
	if at.Text == "" {
		return nil
	}
	message, signal, _ := strings.Cut(at.Text, ".")
	for i, m := range h.Maps {
		j := slices.IndexFunc(m.Tx, func(t sigmap.Tx) bool { return t.Name == message })
		if j < 0 {
			continue
		}
		k := slices.IndexFunc(m.Tx[j].Fields, func(f sigmap.Field) bool { return f.Name == signal })
		if k < 0 || m.Tx[j].Fields[k].Waveform == 0 {
			return b.Errorf(at, "network: signal: %s has no signal %s with a value of its own: name one that no output drives", message, signal)
		}
		db, err := h.Database(i)
		if err != nil {
			return err
		}
		s := network.Signal{Bus: i, Message: j, Field: k}
		d := &m.Tx[j].Fields[k]
		for state := range s.Values {
			raw := float64(state)
			for _, v := range valuesOf(db, message, signal) {
				if strings.EqualFold(v.Text, network.State(state).String()) {
					raw = float64(v.Raw)
				}
			}
			s.Values[state] = raw*d.Factor + d.Offset
			if !(raw >= d.Lo && raw <= d.Hi) {
				return b.Errorf(at, "network: signal: %s: the raw value %g of the state %s does not fit the signal", at.Text, raw, network.State(state))
			}
		}
		p.Signals = append(p.Signals, s)
	}
	if len(p.Signals) == 0 {
		return b.Errorf(at, "network: signal: the bench sends no message %s", message)
	}
	return nil
}

// valuesOf returns the texts of a signal.
func valuesOf(db *messages.Database, message, signal string) []messages.Value {
	for _, m := range db.Messages {
		for _, s := range m.Signals {
			if m.Name == message && s.Name == signal {
				return s.Values
			}
		}
	}
	return nil
}

// planWake finds the messages that wake the bench: a name, an identifier, or any.
func (b *Bench) planWake(p *network.Plan, maps []*sigmap.Map) error {
	p.Wake = network.Wake{To: b.Network.WakeTo, Hold: b.ticks(b.Network.HoldNs)}
	for _, by := range b.Network.WakeBy {
		if p.Wake.By == nil {
			for _, m := range maps {
				p.Wake.By = append(p.Wake.By, make([]bool, len(m.Rx)))
			}
		}
		id, err := strconv.ParseUint(by.Text, 0, 32)
		found := false
		for i, m := range maps {
			for j := range m.Rx {
				if by.Text == "any" || m.Rx[j].Name == by.Text || err == nil && uint64(m.Rx[j].ID&^(1<<31)) == id {
					p.Wake.By[i][j], found = true, true
				}
			}
		}
		if !found {
			return b.Errorf(by, "network: wake: by: the bench receives no message %s; name one, add it to messages, or write any", by.Text)
		}
	}
	return nil
}

// StatesOf returns the states of the ignition in which a frame is sent, in words.
func (f *Frame) StatesOf() string {
	var list []string
	for s, in := range f.In {
		if in {
			list = append(list, network.State(s).String())
		}
	}
	if len(list) == network.States {
		return "every state"
	}
	return strings.Join(list, ", ")
}

// Describe returns the section in words.
func (n *Network) Describe() string {
	text := fmt.Sprintf("starts in %s", n.Start)
	if n.Signal.Text != "" {
		text += ", carried by " + n.Signal.Text
	}
	return text
}
