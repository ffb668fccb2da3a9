package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// ResolveFault resolves a fault: names to indices, quantities to numbers in the unit of the
// port, times to ticks, rounded up to the grid. Errors carry the place of the word.
func ResolveFault(h *bench.Handover, s FaultSpec) (f fault.Fault, err error) {
	t, err := findTarget(h, &s)
	if err != nil {
		return f, err
	}
	i := slices.IndexFunc(faultKinds(), func(k faultKind) bool { return k.word == s.Kind.Text && slices.Contains(k.of, t.of) })
	if i < 0 {
		words := kindWords(t.of)
		return f, s.Errorf(s.Kind, "fault: %s does not fit %s%s; its kinds are %s",
			s.Kind.Text, t.name, units.Meant(s.Kind.Text, words), strings.Join(words, ", "))
	}
	kind := faultKinds()[i]
	f = t.Fault
	f.Kind, f.Seed = kind.kind, 1
	if err := resolveArgument(h, &f, &s, t, kind.takes); err != nil {
		return f, s.Errorf(s.Value, "fault: %s of %s: %w", s.Kind.Text, t.name, err)
	}
	if s.Seed.Text != "" {
		if f.Seed, err = strconv.ParseUint(s.Seed.Text, 0, 64); err != nil {
			return f, s.Errorf(s.Seed, "fault: seed: %q is not a whole number from 0 on", s.Seed.Text)
		}
	}
	if f.Start, err = parseTrigger(h, &s); err != nil {
		return f, err
	}
	if s.For.Text != "" {
		if err := resolveDuration(h, &f, &s); err != nil {
			return f, s.Errorf(s.For, "fault: for: %w", err)
		}
	}
	if err := h.CheckFaults([]fault.Command{{Fault: f}}); err != nil {
		return f, s.Errorf(s.Value, "fault: %s of %s: %w", s.Kind.Text, t.name, err)
	}
	return f, nil
}

// aim is what a fault is of.
type aim struct {
	fault.Fault                  // Where and indices
	of          fault.Where      // Where, or element
	name        string           // for messages
	gauge                        // in which its values are written
	own         bool             // which package fault wants, too; else SI
	lo, hi      float64          // what it can be, as package fault wants it
	slack       float64          // and how far beyond that is still taken
	sig         *messages.Signal // nil: of an input by its port
	msg         *messages.Message
}

func findTarget(h *bench.Handover, s *FaultSpec) (t *aim, err error) {
	switch s.Target.Text {
	case "input":
		t, err = inputTarget(h, s.On.Text)
	case "element":
		t, err = elementTarget(h, s.On.Text)
	case "signal":
		t, err = signalTarget(h, s.On.Text)
	case "frame":
		t, err = frameTarget(h, s.On.Text)
	default:
		names := h.Bench.BusNames()
		i := slices.Index(names, s.On.Text)
		if i < 0 {
			err = unknown("bus", s.On.Text, names)
		}
		t = &aim{Fault: fault.Fault{Where: fault.Bus, Bus: i}, of: fault.Bus}
	}
	if err != nil {
		return nil, s.Errorf(s.On, "fault: %w", err)
	}
	t.name = s.Target.Text + " " + s.On.Text
	return t, nil
}

// unknown says that there is no such thing, which is nearest, or which there are.
func unknown(what, name string, names []string) error {
	if near := units.Meant(name, names); near != "" || len(names) == 0 {
		return fmt.Errorf("there is no %s %q%s", what, name, near)
	}
	const most = 12
	list := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Errorf("there is no %s %q; there are %s", what, name, list)
}

func inputTarget(h *bench.Handover, name string) (*aim, error) {
	i := bench.PortIndex(h.Tables.Inputs, name)
	if i < 0 {
		return nil, unknown("input", name, bench.PortNames(h.Tables.Inputs))
	}
	p := &h.Tables.Inputs[i]
	return &aim{Fault: fault.Fault{Where: fault.Input, Input: i}, of: fault.Input, gauge: gaugeOf(p.Unit), lo: p.Min, hi: p.Max}, nil
}

// elementTarget is the input that a friction element's capacity follows.
func elementTarget(h *bench.Handover, name string) (*aim, error) {
	i := slices.Index(h.Tables.Frictions, name)
	if i < 0 {
		return nil, unknown("friction element", name, h.Tables.Frictions)
	}
	in := slices.Index(h.Tables.InputSignal, h.Tables.Friction[i].Signal)
	if in < 0 {
		return nil, fmt.Errorf("the capacity of %s follows no input: name what it depends on (input: ...)", name)
	}
	t, err := inputTarget(h, h.Tables.Inputs[in].Name)
	if err == nil {
		t.of = element
	}
	return t, err
}

// message is where a bus has a message of this name: "Speeds", or "Speeds on drive".
type message struct {
	bus  int
	sent bool
	at   int // in sigmap.Map.Tx or .Rx
	msg  *messages.Message
}

// findMessage finds a message that the bench sends or receives.
func findMessage(h *bench.Handover, name string) (m message, err error) {
	name, bus, named := strings.Cut(name, " on ")
	var found []message
	var names []string
	for b, mp := range h.Maps {
		if named && h.Bench.Buses[b].Name.Text != bus {
			continue
		}
		for i := range mp.Tx {
			if names = append(names, mp.Tx[i].Name); mp.Tx[i].Name == name {
				found = append(found, message{bus: b, sent: true, at: i})
			}
		}
		for i := range mp.Rx {
			if names = append(names, mp.Rx[i].Name); mp.Rx[i].Name == name {
				found = append(found, message{bus: b, at: i})
			}
		}
	}
	switch {
	case named && !slices.Contains(h.Bench.BusNames(), bus):
		return m, unknown("bus", bus, h.Bench.BusNames())
	case len(found) == 0:
		return m, unknown("message that the bench sends or receives called", name, names)
	case len(found) > 1:
		return m, fmt.Errorf("several buses have a message %s: write %s on %s", name, name, h.Bench.Buses[found[0].bus].Name.Text)
	}
	m = found[0]
	db, err := h.Database(m.bus)
	if err != nil {
		return m, err
	}
	i := slices.IndexFunc(db.Messages, func(e messages.Message) bool { return e.Name == name })
	m.msg = &db.Messages[i]
	return m, nil
}

// findSignal finds MESSAGE.SIGNAL, or MESSAGE.SIGNAL on BUS.
func findSignal(h *bench.Handover, name string) (m message, sig *messages.Signal, err error) {
	text, rest, on := strings.Cut(name, " on ")
	first, second, dot := strings.Cut(text, ".")
	if !dot || first == "" || second == "" {
		return m, nil, fmt.Errorf("%q is not of the form MESSAGE.SIGNAL", name)
	}
	if on {
		first += " on " + rest
	}
	if m, err = findMessage(h, first); err != nil {
		return m, nil, err
	}
	if sig = m.msg.Signal(second); sig == nil {
		var names []string
		for i := range m.msg.Signals {
			names = append(names, m.msg.Signals[i].Name)
		}
		return m, nil, unknown("signal of "+m.msg.Name+" called", second, names)
	}
	return m, sig, nil
}

// boundPort is the one that a link ties a signal to; "" none does.
func boundPort(h *bench.Handover, m message, sig *messages.Signal) string {
	bus := &h.Bench.Buses[m.bus]
	for _, l := range map[bool][]bench.Link{true: bus.Send, false: bus.Receive}[m.sent] {
		if l.Message == m.msg.Name && l.Signal == sig.Name {
			return l.Port
		}
	}
	return ""
}

func signalTarget(h *bench.Handover, name string) (*aim, error) {
	m, sig, err := findSignal(h, name)
	if err != nil {
		return nil, err
	}
	port := boundPort(h, m, sig)
	if !m.sent {
		if port == "" {
			return nil, fmt.Errorf("signal %s is received, and drives no input of the plant", name)
		}
		t, err := inputTarget(h, port)
		if err == nil {
			t.sig, t.gauge = sig, gaugeOf(sig.Unit)
		}
		return t, err
	}
	tx := &h.Maps[m.bus].Tx[m.at]
	i := slices.IndexFunc(tx.Fields, func(f sigmap.Field) bool { return f.Name == sig.Name })
	if i < 0 {
		if part := guardsOf(h, m, sig); part != "" {
			return nil, fmt.Errorf("signal %s is %s: what disturbs it is of the frame (frame: %s, with freeze_counter or checksum)", name, part, m.msg.Name)
		}
		return nil, fmt.Errorf("signal %s: no port and no value of the bench drives it (values: {%s: ...})", name, sig.Name)
	}
	f := &tx.Fields[i]
	t := &aim{
		Fault: fault.Fault{Where: fault.Signal, Bus: m.bus, Message: m.at, Field: i},
		of:    fault.Signal, sig: sig, msg: m.msg, gauge: gaugeOf(sig.Unit), own: f.Index < 0,
	}
	a, b := f.Lo*f.Factor+f.Offset, f.Hi*f.Factor+f.Offset
	t.lo, t.hi = math.Min(a, b), math.Max(a, b)
	if !f.Float {
		t.slack = math.Abs(f.Factor) / 2 // half a bit: it is rounded
	}
	return t, nil
}

// guardsOf says what a signal is of the frame that carries it, a counter or a checksum; ""
// neither.
func guardsOf(h *bench.Handover, m message, sig *messages.Signal) string {
	for _, f := range h.Bench.Buses[m.bus].Frames {
		if f.Message.Text == m.msg.Name && f.Counter.Text == sig.Name {
			return "the counter"
		}
	}
	return bench.ProtectedPart(sig, h.Maps[m.bus].Tx[m.at].Protect, "")
}

func frameTarget(h *bench.Handover, name string) (*aim, error) {
	m, err := findMessage(h, name)
	if err != nil {
		return nil, err
	}
	t := &aim{Fault: fault.Fault{Where: fault.ReceivedFrame, Bus: m.bus, Message: m.at}, of: fault.ReceivedFrame, msg: m.msg}
	if m.sent {
		t.Where, t.of = fault.SentFrame, fault.SentFrame
	}
	return t, nil
}
