package bench

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/wire"
	"lockstep/io/yamlfile"
	"lockstep/rt/ecu"
)

// readWire reads "{udp: 192.0.2.7:5005}" or "{shm: brake-box}" as the interface of the bus.
func (b *Bus) readWire(r *yamlfile.Reader, f yamlfile.Field, what string) {
	fields := r.FieldsOf(f, what)
	r.CheckKeys(fields, what, "udp", "shm")
	if len(fields) != 1 {
		r.Fail(f, "%s: expected {udp: ADDRESS:PORT} of a box, or {shm: NAME} of a file in /dev/shm", what)
	}
	b.Interface = r.Scalar(fields[0], what+": "+fields[0].Key)
	b.Interface.Text = fields[0].Key + ":" + b.Interface.Text
	if err := can.CheckWire(b.Interface.Text); err != nil {
		r.Fail(fields[0], "%s: %s: %v", what, fields[0].Key, err)
	}
	b.Interface.Text = can.WireName(b.Interface.Text)
	b.Database, b.ByWire = f.Scalar(wire.Database), true
}

// completeWires lets each bus by wire send, once per tick, the messages whose signals have a port or a value, and
// checks that its tone wheels can have edges.
func (b *Bench) completeWires(r *yamlfile.Reader) {
	for i := range b.Buses {
		if bus := &b.Buses[i]; bus.ByWire {
			bus.completeWire(r, b.PeriodNs)
		}
	}
}

func (b *Bus) completeWire(r *yamlfile.Reader, periodNs int64) {
	for j, l := range b.Send {
		if !slices.ContainsFunc(b.Frames, func(f Frame) bool { return f.Message == l.Message }) {
			b.positions[sigmap.Place{List: sigmap.InSendings, Index: len(b.Frames)}] = b.positions[sigmap.Place{List: sigmap.InSend, Index: j}]
			f := Frame{Sending: sigmap.Sending{Message: l.Message, PhaseNs: sigmap.FreePhase, Repeats: -1}}
			f.In = readStates(r, yamlfile.Field{}, "in", inDefault)
			b.Frames = append(b.Frames, f)
		}
	}
	for j := range b.Frames {
		f := &b.Frames[j]
		if f.CycleNs == 0 && f.Send != sigmap.OnChange {
			f.CycleNs = periodNs
		}
		at := b.positions[sigmap.Place{List: sigmap.InSendings, Index: j}].At()
		switch isWheel := strings.HasPrefix(f.Message, "Wheel"); {
		case isWheel && !b.gives(f, "teeth"):
			r.FailAt(at, "frame %s: the number of teeth is missing (frames: {%s: {values: {teeth: 48}}})", f.Message, f.Message)
		case isWheel && slices.ContainsFunc(f.Values, func(c sigmap.Constant) bool { return c.Signal == "teeth" && c.Text == "0" }):
			r.FailAt(at, "frame %s: teeth is 0: a tone wheel has at least 1 tooth", f.Message)
		case isWheel && (!b.gives(f, "angle") || !b.gives(f, "speed")):
			r.FailAt(at, "frame %s: a tone wheel needs its angle and its speed (send: PORT -> %s.angle, PORT -> %s.speed)", f.Message, f.Message, f.Message)
		case isWheel:
			b.giveHealthySensor(f)
		}
	}
}

// giveHealthySensor gives values to the signals of a tone wheel on which faults act: a fault needs a signal that is
// driven.
func (b *Bus) giveHealthySensor(f *Frame) {
	for _, c := range []sigmap.Constant{
		{Signal: "state", Text: "1"}, {Signal: "missing", Text: "0"}, {Signal: "weak", Text: "0"}, {Signal: "field", Text: "7"},
		{Signal: "source", Text: strings.TrimPrefix(f.Message, "Wheel")}, {Signal: "reversed", Text: "0"},
	} {
		if !b.gives(f, c.Signal) {
			f.Values = append(f.Values, c)
		}
	}
}

// limitMissing limits the number of the missing tooth of each tone wheel to its teeth.
func (b *Bus) limitMissing(db *messages.Database) {
	for i := range b.Frames {
		f := &b.Frames[i]
		at := slices.IndexFunc(f.Values, func(c sigmap.Constant) bool { return c.Signal == "teeth" })
		if !b.ByWire || at < 0 {
			continue
		}
		teeth, err := strconv.ParseUint(f.Values[at].Text, 10, 16)
		for j := range db.Messages {
			if m := &db.Messages[j]; m.Name == f.Message && err == nil {
				k := slices.IndexFunc(m.Signals, func(s messages.Signal) bool { return s.Name == "missing" })
				m.Signals[k].Max = float64(teeth)
			}
		}
	}
}

// gives reports whether a signal of a frame has a port or a value.
func (b *Bus) gives(f *Frame, signal string) bool {
	return slices.ContainsFunc(b.Send, func(l sigmap.Link) bool { return l.Message == f.Message && l.Signal == signal }) ||
		slices.ContainsFunc(f.Values, func(c sigmap.Constant) bool { return c.Signal == signal })
}

// wires returns the names of the buses by wire, for rt.Config.
func (b *Bench) wires() []string {
	list, any := make([]string, len(b.Buses)), false
	for i := range b.Buses {
		if name := b.Buses[i].Interface.Text; can.IsWire(name) {
			list[i], any = name, true
		}
	}
	if !any {
		return nil
	}
	return list
}

// VirtualBox returns the address of the virtual box, ADDRESS:PORT, in real time: the control unit's process has it where
// the first box by wire is on this host, like 127.0.0.1:5005. "": there is none.
func (b *Bench) VirtualBox() string {
	i := slices.IndexFunc(b.Buses, func(bus Bus) bool { return bus.ByWire })
	if i < 0 || b.Program != nil || !ecu.HasWires(b.Unit.Text) {
		return ""
	}
	text, _ := strings.CutPrefix(b.Buses[i].Interface.Text, "udp:")
	if at, err := netip.ParseAddrPort(text); err != nil || !at.Addr().IsLoopback() {
		return ""
	}
	return text
}

// CheckWires returns an error if the virtual control unit of a bench by wire would run in real time without a box.
func (b *Bench) CheckWires() error {
	wired := slices.IndexFunc(b.Buses, func(bus Bus) bool { return bus.ByWire })
	unit := slices.IndexFunc(b.Buses, func(bus Bus) bool { return bus.Interface.Text == PairInterface && !bus.ByWire })
	if wired < 0 || unit < 0 || b.Unit.Text == "" || b.Program != nil || b.VirtualBox() != "" {
		return nil
	}
	box, bus := b.Buses[wired].Name.Text, b.Buses[unit].Name.Text
	if ecu.HasWires(b.Unit.Text) {
		return b.Errorf(b.Unit, "control_unit: the virtual unit %s needs a box on this host (-bus %s=udp:127.0.0.1:5005); connect yours with -bus %s=can0",
			b.Unit.Text, box, bus)
	}
	return b.Errorf(b.Unit, "control_unit: %s has no wires: connect yours (-bus %s=can0 -bus %s=udp:ADDRESS:PORT), or use lockstep sim",
		b.Unit.Text, bus, box)
}
