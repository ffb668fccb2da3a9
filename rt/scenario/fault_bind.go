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

// resolve resolves a fault: names to indices, quantities to numbers in the unit of the port, times
// to ticks, rounded up to the grid. Errors have the position in the file or the argument's number.
func (s *faultSpec) resolve(h *bench.Handover) fault.Fault {
	t, err := faultTargets[slices.Index(targetKeys(), s.target.Text)].find(h, s.on.Text)
	if err != nil {
		s.fail(s.on, "%w", err)
	}
	t.name = s.target.Text + " " + s.on.Text
	i := slices.IndexFunc(faultKinds, func(k faultKind) bool {
		return k.key == s.kind.Text && slices.Contains(k.targets, t.kindOf())
	})
	if i < 0 {
		keys := kindKeys(t.kindOf())
		s.fail(s.kind, "%s does not fit %s%s; its kinds are %s",
			s.kind.Text, t.name, units.Meant(s.kind.Text, keys), strings.Join(keys, ", "))
	}

	f := t.Fault
	f.Kind, f.Seed = faultKinds[i].kind, 1
	s.checkValue(t, faultKinds[i].argument.resolve(&binding{s, &f, h, t}, s.text(s.kind.Text)))
	if seed := s.get("seed"); seed.Text != "" {
		if f.Seed, err = strconv.ParseUint(seed.Text, 0, 64); err != nil {
			s.fail(seed, "seed: %q is not a whole number from 0 on", seed.Text)
		}
	}

	f.Start.Tick, f.Start.When = s.instant(h, "at"), s.conditions(h, "when")
	if last := s.text("for"); last != "" {
		s.check("for", resolveDuration(h, &f, s, last))
	}
	if err = h.CheckFaults([]fault.Command{{Fault: f}}); err != nil && s.value.Text != "true" {
		err = fmt.Errorf("%s: %w", s.value.Text, err)
	}
	s.checkValue(t, err)

	return f
}

// checkValue ends reading if err is not nil, with the position of the argument.
func (s *faultSpec) checkValue(t *resolvedTarget, err error) {
	if err != nil {
		s.fail(s.value, "%s of %s: %w", s.kind.Text, t.name, err)
	}
}

// resolvedTarget is the target of a fault.
type resolvedTarget struct {
	fault.Fault                   // Where and indices
	element      bool             // a friction element, whose capacity follows the input
	name         string           // for messages
	units.Wanted                  // declared unit of the input, or unit of the signal
	ownUnit      bool             // package fault has values in that unit; otherwise in SI
	lo, hi       float64          // range of values, in the unit of package fault
	slack        float64          // tolerance of the range, in the same unit
	flag         bool             // an input that is 0 or 1
	sig          *messages.Signal // nil: an input, named as a port
	msg          *messages.Message
}

// kindOf returns the kind of target: Where, or element.
func (t *resolvedTarget) kindOf() fault.Where {
	if t.element {
		return element
	}
	return t.Where
}

func findBus(h *bench.Handover, name string) (*resolvedTarget, error) {
	names := h.Bench.BusNames()
	i := slices.Index(names, name)
	if i < 0 {
		return nil, unknownName("bus", name, names)
	}
	return &resolvedTarget{Fault: fault.Fault{Where: fault.Bus, Bus: i}}, nil
}

// unknownName returns an error with the nearest name, or else with the known names.
func unknownName(what, name string, names []string) error {
	if near := units.Meant(name, names); near != "" || len(names) == 0 {
		return fmt.Errorf("there is no %s %.60q%s", what, name, near)
	}
	const most = 12
	list := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Errorf("there is no %s %.60q; there are %s", what, name, list)
}

func findInput(h *bench.Handover, name string) (*resolvedTarget, error) {
	i := bench.PortIndex(h.Tables.Inputs, name)
	if i < 0 {
		return nil, unknownName("input", name, bench.PortNames(h.Tables.Inputs))
	}
	return targetOfInput(h, i), nil
}

func targetOfInput(h *bench.Handover, i int) *resolvedTarget {
	p := &h.Tables.Inputs[i]
	lo, hi := p.Accepted()
	return &resolvedTarget{Fault: fault.Fault{Where: fault.Input, Input: i}, Wanted: p.DeclaredUnit(), lo: lo, hi: hi, flag: p.Flag}
}

// findElement returns the input that the capacity of a friction element follows.
func findElement(h *bench.Handover, name string) (*resolvedTarget, error) {
	i := slices.Index(h.Tables.Frictions, name)
	if i < 0 {
		return nil, unknownName("friction element", name, h.Tables.Frictions)
	}
	in := slices.Index(h.Tables.InputSignal, h.Tables.Friction[i].Signal)
	if in < 0 {
		return nil, fmt.Errorf("the capacity of %s follows no input of the plant: use a fault of an input (input: ...)", name)
	}
	t := targetOfInput(h, in)
	t.element = true
	return t, nil
}

// message is a message that a bench sends or receives.
type message struct {
	bus  int
	sent bool
	at   int // index in sigmap.Map.Tx if it is sent, else in Rx
	name string
	msg  *messages.Message // entry of the database; nil: not looked up
}

// messagesOf returns the messages that a bench sends or receives.
func messagesOf(h *bench.Handover) (list []message) {
	for b, mp := range h.Maps {
		for i := range mp.Tx {
			list = append(list, message{bus: b, sent: true, at: i, name: mp.Tx[i].Name})
		}
		for i := range mp.Rx {
			list = append(list, message{bus: b, at: i, name: mp.Rx[i].Name})
		}
	}

	return list
}

// findMessage finds a message that the bench sends or receives: "Speeds", or "Speeds on drive".
func findMessage(h *bench.Handover, name string) (m message, err error) {
	name, bus, named := strings.Cut(name, " on ")
	var found []message
	var names []string
	for _, m := range messagesOf(h) {
		if named && h.Bench.Buses[m.bus].Name.Text != bus {
			continue
		}
		if names = append(names, m.name); m.name == name {
			found = append(found, m)
		}
	}

	switch {
	case named && !slices.Contains(h.Bench.BusNames(), bus):
		return m, unknownName("bus", bus, h.Bench.BusNames())
	case len(found) == 0:
		return m, unknownName("message that the bench sends or receives called", name, names)
	case len(found) > 1:
		return m, fmt.Errorf("several buses have a message %s: write %s on %s",
			name, name, h.Bench.Buses[found[0].bus].Name.Text)
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
		return m, nil, unknownName("signal of "+m.msg.Name+" called", second, names)
	}

	return m, sig, nil
}

// portOf returns the port that a signal is bound to; "": none.
func portOf(h *bench.Handover, m message, sig *messages.Signal) string {
	bus := &h.Bench.Buses[m.bus]
	if m.sent {
		return sigmap.PortOf(bus.Send, m.msg.Name, sig.Name)
	}
	return sigmap.PortOf(bus.Receive, m.msg.Name, sig.Name)
}

func findSignalTarget(h *bench.Handover, name string) (*resolvedTarget, error) {
	m, sig, err := findSignal(h, name)
	if err != nil {
		return nil, err
	}
	var fields []sigmap.Field
	t := &resolvedTarget{
		Fault: fault.Fault{Bus: m.bus, Message: m.at}, sig: sig, msg: m.msg, Wanted: units.WantSignal(sig.Unit),
	}
	if m.sent {
		t.Where, fields = fault.Signal, h.Maps[m.bus].Tx[m.at].Fields
	} else {
		t.Where, fields = fault.ReceivedSignal, h.Maps[m.bus].Rx[m.at].Fields
	}

	t.Field = slices.IndexFunc(fields, func(f sigmap.Field) bool { return f.Name == sig.Name })
	part := protectionOf(h, m, sig)
	switch {
	case t.Field >= 0:
	case part != "":
		return nil, fmt.Errorf("signal %s is %s: use a fault of the frame "+
			"(frame: %s, with freeze_counter or checksum)", name, part, m.msg.Name)
	case !m.sent:
		return nil, fmt.Errorf("signal %s is received, and drives no input of the plant", name)
	default:
		return nil, fmt.Errorf("signal %s: no port and no value of the bench drives it (values: {%s: ...})", name, sig.Name)
	}

	f := &fields[t.Field]
	t.ownUnit = f.Index < 0
	if t.lo, t.hi = fault.FieldRange(f); !m.sent {
		t.lo, t.hi = f.BitLimits() // the control unit may send every value
	}
	if !f.Float {
		t.slack = float64(math.Abs(f.Factor) / 2) // half a bit: values are rounded
	}
	return t, nil
}

// protectionOf returns the role of a signal in the protection of its frame, such as "the counter";
// "": none.
func protectionOf(h *bench.Handover, m message, sig *messages.Signal) string {
	if !m.sent {
		return bench.ProtectionOf(sig, h.Maps[m.bus].Rx[m.at].Protect, "")
	}
	for _, f := range h.Bench.Buses[m.bus].Frames {
		if f.Message == m.msg.Name && f.Counter == sig.Name {
			return "the counter"
		}
	}

	return bench.ProtectionOf(sig, h.Maps[m.bus].Tx[m.at].Protect, "")
}

func findFrame(h *bench.Handover, name string) (*resolvedTarget, error) {
	m, err := findMessage(h, name)
	if err != nil {
		return nil, err
	}
	t := &resolvedTarget{Fault: fault.Fault{Where: fault.ReceivedFrame, Bus: m.bus, Message: m.at}, msg: m.msg}
	if m.sent {
		t.Where = fault.SentFrame
	}
	return t, nil
}
