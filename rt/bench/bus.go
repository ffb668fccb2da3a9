package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/network"
)

// Bus is one CAN bus of a bench.
type Bus struct {
	Name      yamlfile.Scalar
	Interface yamlfile.Scalar // "pair", or the name of a network interface
	Database  yamlfile.Scalar // name of an embedded database, or of a file in the folder of the bench file
	BitRate   float64         // nominal bit rate, bit/s; 0: not given
	DataRate  float64         // bit rate of the data phase of CAN FD, bit/s; 0: not given
	Units     []Unit
	Ranges    []Range
	FD        bool    // messages for which the database names no format are CAN FD frames
	Frames    []Frame // sent frames, the restbus last
	Receive   []sigmap.Link
	Send      []sigmap.Link
	Messages  []sigmap.Reception
	Ramps     []Ramp
	J1939     *J1939          // nil: no address is claimed
	Diagnosis yamlfile.Scalar // diagnosis file of the unit on the bus; "": none

	ByWire bool // Interface is a box by wire, and Database the one of its images

	Management *Management // network management; nil: none

	RestartNs int64 // delay after which the supervisor restarts a bus-off controller, ns; 0: no restart

	deviations int // deviations of the database from the format; 0 until the database is read
	positions  map[sigmap.Place]yamlfile.Scalar
}

// Frame is a message that the bench sends. Values that the file leaves to the database are 0,
// or -1 for Repeats; a missing phase is sigmap.FreePhase.
type Frame struct {
	sigmap.Sending
	Sent bool // the file gives Send; false: the database does

	In       [network.States]bool // states of the ignition in which it is sent
	DelayNs  int64                // from the switch-on to its first frame; 0: it keeps its phase
	Switched yamlfile.Scalar      // key of these, if the file has one

	waveforms []waveformField
}

// waveformField is a waveform in the file. Its signal's unit is in the database, which is read later.
type waveformField struct {
	value int // index in Values
	field yamlfile.Field
	what  string
}

// readWaveforms reads the waveforms of the frame, in the units of their signals.
func (f *Frame) readWaveforms(r *yamlfile.Reader, db *messages.Database) {
	for _, w := range f.waveforms {
		c := &f.Values[w.value]
		for _, m := range db.Messages {
			for _, s := range m.Signals {
				if m.Name == f.Message && s.Name == c.Signal { // sigmap.Bind refuses others
					unit := units.WantSignal(s.Unit)
					c.Waveform = ReadWaveform(r, w.field, w.what, unit)
					for i, si := range c.Waveform.Value {
						c.Waveform.Value[i] = unit.FromSI(si)
					}
				}
			}
		}
	}
}

// Deviations returns the number of deviations of the database from the format.
func (b *Bus) Deviations() int { return b.deviations }

func readBus(r *yamlfile.Reader, e yamlfile.Field) *Bus {
	b := &Bus{Name: e.KeyScalar(), positions: map[sigmap.Place]yamlfile.Scalar{}}
	b.Name.Text = ReadTitle(r, e.KeyScalar(), "bus")
	what := fmt.Sprintf("bus %q", b.Name.Text)
	s := r.Section(e, what, "interface", "database", "units", "frames", "receive", "send", "messages", "restbus",
		"bitrate", "j1939", "nm", "recover", "data_bitrate", "ranges", "format", "diagnosis", "io")
	if f, ok := s["io"]; ok {
		b.readWire(r, f, what+": io")
		for _, key := range []string{"interface", "database", "format", "bitrate", "data_bitrate", "recover", "restbus", "j1939", "nm", "diagnosis"} {
			if g, ok := s[key]; ok {
				r.FailAt(g.KeyAt, "%s: %s is not possible with io: the bus has no frames, and its database is %s", what, key, b.Database.Text)
			}
		}
	}
	if s["interface"].IsMissing() && !b.ByWire {
		r.FailAt(e.KeyAt, "%s: the interface is missing (interface: vcan0, or pair)", what)
	}
	if s["database"].IsMissing() && !b.ByWire {
		r.FailAt(e.KeyAt, "%s: the database is missing (database: FILE.dbc)", what)
	}
	if !b.ByWire {
		if b.Interface = r.Scalar(s["interface"], what+": interface"); !isInterfaceName(b.Interface.Text) {
			r.Fail(s["interface"], "%s: %q cannot be the name of a CAN interface: %s", what, b.Interface.Text, interfaceForm)
		}
		b.Database = r.Scalar(s["database"], what+": database")
	}
	b.Diagnosis = r.Scalar(s["diagnosis"], what+": diagnosis")
	for _, f := range r.FieldsOf(s["units"], what+": units") {
		u := Unit{f.KeyScalar(), r.Scalar(f, what+": units: "+f.Key).Text}
		if _, err := units.Parse(u.Is); err != nil {
			r.Fail(f, "%s: units: %s", what, units.Reason(err))
		}
		b.Units = append(b.Units, u)
	}

	if format, ok := s["format"]; ok {
		b.FD = r.Choice(format, what+": format", "classic", "fd") == "fd"
	}
	for _, f := range r.FieldsOf(s["ranges"], what+": ranges") {
		v := Range{Of: f.KeyScalar(), Limits: r.Texts(f, what+": ranges: "+f.Key)}
		if len(v.Limits) != 2 && !slices.Equal(v.Limits, []string{allBits}) {
			r.Fail(f, "%s: ranges: %s: expected [LOWEST, HIGHEST], or %s for all values of its bits", what, f.Key, allBits)
		}
		b.Ranges = append(b.Ranges, v)
	}

	for _, list := range []string{"frames", "restbus"} {
		for _, f := range r.FieldsOf(s[list], what+": "+list) {
			b.readFrame(r, f, list == "restbus")
		}
	}

	b.Receive = b.readLinks(r, s["receive"], what, sigmap.InReceive, "MESSAGE.SIGNAL -> PORT")
	b.Send = b.readLinks(r, s["send"], what, sigmap.InSend, "PORT -> MESSAGE.SIGNAL")
	for _, f := range r.FieldsOf(s["messages"], what+": messages") {
		b.readMessage(r, f)
	}
	b.BitRate = readBitRate(r, s["bitrate"], what+": bitrate", 1e3, 1e6)
	b.DataRate = readBitRate(r, s["data_bitrate"], what+": data_bitrate", 1e3, 20e6)
	if f, ok := s["nm"]; ok {
		b.Management = b.readManagement(r, f, what+": nm")
	}
	if f, ok := s["j1939"]; ok {
		b.J1939 = readJ1939(r, f, what+": j1939")
	}
	form := "wait, restart after T (T: 10 ms to 3600 s)"
	_, b.RestartNs = readAction(r, s["recover"], what+": recover", form, []string{"wait"}, []string{"restart"}, 0.01)

	return b
}

func (b *Bus) readFrame(r *yamlfile.Reader, e yamlfile.Field, rest bool) {
	at := sigmap.Place{List: sigmap.InSendings, Index: len(b.Frames)}
	b.positions[at] = e.KeyScalar()
	what := "frame " + e.Key
	s := r.Section(e, what, "cycle", "phase", "counter", "send", "repeat", "min_gap", "values", "mux", "protect",
		"source", "destination", "in", "delay")
	f := Frame{Sending: sigmap.Sending{
		Restbus: rest,
		Message: e.Key, PhaseNs: sigmap.FreePhase, Repeats: -1,
		Source:      readAddressOf(r, s["source"], what+": source", ""),
		Destination: readAddressOf(r, s["destination"], what+": destination", "all"),
		CycleNs:     readNanoseconds(r, s["cycle"], what+": cycle", 1, 3600e9),
		Counter:     r.Scalar(s["counter"], what+": counter").Text,
		GapNs:       readNanoseconds(r, s["min_gap"], what+": min_gap", 0, 3600e9),
		Protect:     b.readProtection(r, s["protect"], at, what+": protect"),
	}}
	f.In = readStates(r, s["in"], what+": in", inDefault)
	f.DelayNs = readNanoseconds(r, s["delay"], what+": delay", 0, 3600e9)
	for _, key := range []string{"in", "delay"} {
		if g, ok := s[key]; ok {
			f.Switched = g.KeyScalar()
		}
	}
	if phase, ok := s["phase"]; ok {
		f.PhaseNs = readNanoseconds(r, phase, what+": phase", 0, 3600e9)
	}
	if send, ok := s["send"]; ok {
		types := map[string]sigmap.SendType{"cyclic": sigmap.Cyclic, "on_change": sigmap.OnChange, "both": sigmap.Both}
		f.Sent, f.Send = true, types[r.Choice(send, what+": send", "cyclic", "on_change", "both")]
	}

	if repeat, ok := s["repeat"]; ok {
		f.Repeats = r.Integer(repeat, what+": repeat", 0, 1000)
	}
	for _, v := range b.readPart(r, s["values"], at, "values", what+": values") {
		c, what := sigmap.Constant{Signal: v.Key}, what+": values: "+v.Key
		if yamlfile.IsMapping(v.Node) {
			f.waveforms = append(f.waveforms, waveformField{len(f.Values), v, what})
		} else {
			c.Text = r.Scalar(v, what).Text
		}
		f.Values = append(f.Values, c)
	}
	if mux, ok := s["mux"]; ok {
		f.Mux = &sigmap.Rotation{Values: r.Texts(mux, what+": mux")}
		if slices.Equal(f.Mux.Values, []string{"all"}) {
			f.Mux.Values = nil
		}
	}
	if f.CycleNs == 0 && f.Send != sigmap.OnChange && !rest && !b.ByWire {
		r.FailAt(e.KeyAt, "%s: the cycle is missing (cycle: 10 ms)", what)
	}
	b.Frames = append(b.Frames, f)
}

// readPart returns the items of the key part of the entry at at, and stores their positions.
func (b *Bus) readPart(r *yamlfile.Reader, f yamlfile.Field, at sigmap.Place, part, what string) []yamlfile.Field {
	list := r.FieldsOf(f, what)
	for i, g := range list {
		at.Part, at.Item = part, i
		b.positions[at] = g.KeyScalar()
	}

	return list
}

// readProtection reads one protection or a list of protections of the entry at a place, and stores
// the positions of their profiles. The tags of sigmap.ProtectionSpec name the keys.
func (b *Bus) readProtection(r *yamlfile.Reader, f yamlfile.Field, at sigmap.Place, what string,
) (specs []sigmap.ProtectionSpec) {
	for i, group := range r.OneOrItems(f, what) {
		var spec sigmap.ProtectionSpec
		fields := readTaggedFields(r, group, what, &spec, 1<<32)
		profile := slices.IndexFunc(fields, func(f yamlfile.Field) bool { return f.Key == "profile" })
		if profile < 0 {
			r.Fail(group, "%s: the profile is missing (profile: e2e-2)", what)
		}
		at.Part, at.Item = "protect", i
		b.positions[at] = fields[profile].Scalar(spec.Profile)
		specs = append(specs, spec)
	}

	if len(specs) == 0 {
		r.Fail(f, "%s: the list is empty", what)
	}
	return specs
}

// readLinks reads a list of "MESSAGE.SIGNAL -> PORT", or of "PORT -> MESSAGE.SIGNAL" if sent.
func (b *Bus) readLinks(r *yamlfile.Reader, f yamlfile.Field, what, list, form string) (links []sigmap.Link) {
	for i, item := range r.Items(f, what+": "+list) {
		b.positions[sigmap.Place{List: list, Index: i}] = item.Scalar("")
		text := r.Scalar(item, "link").Text
		from, to, ok := strings.Cut(text, "->")
		wire, port := strings.TrimSpace(from), strings.TrimSpace(to)
		if list == sigmap.InSend {
			wire, port = port, wire
		}
		message, signal, dot := strings.Cut(wire, ".")
		if !ok || !dot || signal == "" || port == "" {
			r.Fail(item, "link %q is not of the form %s", text, form)
		}
		links = append(links, sigmap.Link{Message: message, Signal: signal, Port: port})
	}

	return links
}

// readBitRate reads a bit rate: "500 kbit/s".
func readBitRate(r *yamlfile.Reader, f yamlfile.Field, what string, lo, hi float64) float64 {
	w := r.Scalar(f, what)
	number, unit, _ := strings.Cut(w.Text, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err == nil && unit == "" {
		r.Fail(f, "%s: %v", what, &units.MissingUnit{Text: number, Unit: likelyRate(v)})
	}
	v *= map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[unit]
	if err != nil || !(v >= lo && v <= hi) {
		r.Fail(f, "%s: %q is not from %g kbit/s to %g kbit/s (500 kbit/s; also bit/s, Mbit/s)",
			what, w.Text, lo/1e3, hi/1e3)
	}

	return v
}

// likelyRate returns the unit in which people write a bit rate of that number.
func likelyRate(number float64) string {
	switch {
	case number > 20e3:
		return "bit/s"
	case number > 20:
		return "kbit/s"
	}
	return "Mbit/s"
}

// readMessage reads the expectations of a received message.
func (b *Bus) readMessage(r *yamlfile.Reader, e yamlfile.Field) {
	at := sigmap.Place{List: sigmap.InReceptions, Index: len(b.Messages)}
	b.positions[at] = e.KeyScalar()
	what := "message " + e.Key
	s := r.Section(e, what, "cycle", "timeout", "first_timeout", "dlc", "brs", "protect",
		"on_timeout", "on_error", "invalid", "ramp", "from", "destination")
	m := sigmap.Reception{
		Message:     e.Key,
		From:        readAddressOf(r, s["from"], what+": from", "any"),
		Destination: readAddressOf(r, s["destination"], what+": destination", "any"),
		CycleNs:     readNanoseconds(r, s["cycle"], what+": cycle", 1, 3600e9),
		TimeoutNs:   sigmap.DefaultTimeout,
		FirstNs:     readNanoseconds(r, s["first_timeout"], what+": first_timeout", 1, 3600e9),
		DLC:         r.Integer(s["dlc"], what+": dlc", 1, 64),
		Protect:     b.readProtection(r, s["protect"], at, what+": protect"),
		OnTimeout:   b.readReaction(r, s["on_timeout"], at, what),
		OnError:     b.readReaction(r, s["on_error"], at, what),
	}
	if timeout, ok := s["timeout"]; ok {
		m.TimeoutNs = readNanoseconds(r, timeout, what+": timeout", 0, 3600e9)
	}
	if brs, ok := s["brs"]; ok {
		m.BRS = r.Choice(brs, what+": brs", "counted", "required") == "required"
	}
	b.readInvalid(r, s["invalid"], at, what+": invalid", &m)
	if ramp, ok := s["ramp"]; ok {
		b.readRamp(r, ramp, m.Message)
	}
	b.Messages = append(b.Messages, m)
}

// Ramp is a received message between whose frames inputs follow straight lines.
type Ramp struct {
	Message string
	At      yamlfile.Scalar // position of the key
	Ports   []string        // inputs that the message drives
}

// readRamp reads the inputs of a message that are ramped: a list, or all. The links must have been
// read.
func (b *Bus) readRamp(r *yamlfile.Reader, f yamlfile.Field, message string) {
	what := "message " + message + ": ramp"
	ramp := Ramp{Message: message, At: f.KeyScalar()}
	var driven []string
	for _, l := range b.Receive {
		if l.Message == message {
			driven = append(driven, l.Port)
		}
	}
	if len(driven) == 0 {
		r.Fail(f, "%s: the message drives no input", what)
	}

	ramp.Ports = r.Texts(f, what)
	if slices.Equal(ramp.Ports, []string{"all"}) {
		ramp.Ports = driven
	}
	for _, port := range ramp.Ports {
		if !slices.Contains(driven, port) {
			r.Fail(f, "%s: the message does not drive %q%s; it drives %s", what, port, units.Meant(port, driven),
				strings.Join(driven, ", "))
		}
	}
	b.Ramps = append(b.Ramps, ramp)
}

// readInvalid reads what makes the values of a message invalid: frame or signal, {SIGNAL: raw values}, or
// a list of both.
func (b *Bus) readInvalid(r *yamlfile.Reader, f yamlfile.Field, at sigmap.Place, what string, m *sigmap.Reception) {
	rules := map[string]sigmap.RangeRule{"frame": sigmap.RangeFrame, "signal": sigmap.RangeSignal}
	rule, codes := false, false
	for _, item := range r.OneOrItems(f, what) {
		twice := &rule
		if yamlfile.IsMapping(item.Node) {
			twice = &codes
			for _, v := range b.readPart(r, item, at, "invalid", what) {
				spec := sigmap.InvalidSpec{Signal: v.Key, Values: r.Texts(v, what+": "+v.Key)}
				m.Invalid = append(m.Invalid, spec)
			}
		} else {
			m.Rule = rules[r.Choice(item, what+" (or {SIGNAL: raw values})", "frame", "signal")]
		}
		if *twice {
			r.Fail(item, "%s: expected one of frame and signal, and one {SIGNAL: raw values}", what)
		}
		*twice = true
	}
}

// readReaction reads hold, safe or {substitute: {PORT: value}}.
func (b *Bus) readReaction(r *yamlfile.Reader, f yamlfile.Field, at sigmap.Place, what string,
) (spec sigmap.ReactionSpec) {
	what += ": " + f.Key
	if !yamlfile.IsMapping(f.Node) {
		if r.Choice(f, what+" (or {substitute: {PORT: value}})", "hold", "safe") == "safe" {
			spec.Action = sigmap.SafeState
		}
		return spec
	}

	spec.Action = sigmap.Substitute
	values := r.Section(f, what, "substitute")["substitute"]
	for _, v := range b.readPart(r, values, at, f.Key, what+": substitute") {
		spec.Values = append(spec.Values, sigmap.PortValue{Port: v.Key, Text: r.Scalar(v, what+": "+v.Key).Text})
	}

	return spec
}

// spec returns the bus as the input of sigmap.Bind.
func (b *Bus) spec(db *messages.Database, periodNs int64) sigmap.Spec {
	s := sigmap.Spec{PeriodNs: periodNs, Receive: b.Receive, Send: b.Send, Receptions: b.Messages}
	if b.J1939 != nil {
		for _, a := range b.J1939.Addresses {
			s.Addresses = append(s.Addresses, a.Address)
		}
	}
	for i := range b.Frames {
		s.Sendings = append(s.Sendings, b.Frames[i].sending(db, periodNs))
	}
	return s
}

// sending returns the frame completed from the database. Times of the database are rounded up to
// the grid.
func (f *Frame) sending(db *messages.Database, periodNs int64) sigmap.Sending {
	s := f.Sending
	s.Repeats = max(0, s.Repeats)
	i := slices.IndexFunc(db.Messages, func(m messages.Message) bool { return m.Name == f.Message })
	if i < 0 {
		return s
	}
	msg := &db.Messages[i]
	grid := func(ns int64) int64 { return (ns + periodNs - 1) / periodNs * periodNs }
	if !f.Sent {
		s.Send = sendType(msg.SendType)
		if s.Send != sigmap.Cyclic && s.CycleNs == 0 && msg.CycleNs == 0 {
			s.Send = sigmap.OnChange
		} else if s.Send == sigmap.OnChange && (s.CycleNs > 0 || s.PhaseNs > 0) {
			s.Send = sigmap.Cyclic // the file gives the cycle
		}
	}

	if s.CycleNs == 0 && s.Send != sigmap.OnChange {
		s.CycleNs = msg.CycleNs
	}
	if s.Send == sigmap.Cyclic {
		return s
	}
	if s.GapNs == 0 {
		s.GapNs = grid(msg.DelayNs)
	}
	if f.Repeats < 0 {
		s.Repeats = msg.Repeats
	}
	s.EveryNs = grid(msg.FastNs)

	return s
}

// sendType converts GenMsgSendType of a database, in the spellings of various tools; types
// that depend on whether a signal is active count as cyclic.
func sendType(text string) sigmap.SendType {
	switch strings.ToLower(text) {
	case "onchange", "onwrite", "spontaneous", "spontan", "event":
		return sigmap.OnChange
	case "cyclicandonchange", "cyclicandspontaneous", "cyclicandspontan", "cyclicandonwrite", "cyclicandevent":
		return sigmap.Both
	}

	return sigmap.Cyclic
}

// IsHostInterface reports whether an interface is a network interface of this host.
func IsHostInterface(iface string) bool {
	return iface != PairInterface && !strings.HasPrefix(iface, "fd:") && !IsLog(iface) && !can.IsWire(iface)
}

// PairInterface is the interface of a bus between two processes of the run, or of one without a
// process at its other end.
const PairInterface = "pair"

// Unconnected reports whether a bus is a pair without a process at its other end.
func (b *Bench) Unconnected(bus int) bool {
	return b.Buses[bus].Interface.Text == PairInterface && !b.HasUnit(bus)
}

// SetBuses replaces interfaces: "vcan0" if the bench has one bus, else "bus=vcan0".
func (b *Bench) SetBuses(list []string) error {
	names := b.BusNames()
	for _, text := range list {
		name, iface, several := strings.Cut(text, "=")
		if IsLog(text) {
			several = false // the "=" belongs to the file's name
		}
		if !several {
			name, iface = names[0], text
		}
		i := slices.Index(names, name)
		switch {
		case !several && len(names) > 1:
			return fmt.Errorf("run: -bus %s: the bench has %d buses; write -bus %s=%s", text, len(names), name, iface)
		case i < 0 || iface == "":
			return fmt.Errorf("run: -bus %s: write -bus BUS=INTERFACE; the bench's buses are %s",
				text, strings.Join(names, ", "))
		case can.IsWire(iface) != b.Buses[i].ByWire && iface != PairInterface:
			return fmt.Errorf("run: -bus %s: a bus with io can be pair, udp:ADDRESS:PORT or shm:NAME, and no other bus can be by wire", text)
		case can.IsWire(iface) && can.CheckWire(iface) != nil:
			return fmt.Errorf("run: -bus %s: %w", text, can.CheckWire(iface))
		case !can.IsWire(iface) && !isInterfaceName(iface):
			return fmt.Errorf("run: -bus: %q cannot be the name of a CAN interface: %s", iface, interfaceForm)
		}

		b.Buses[i].Interface.Text = can.WireName(iface)
	}

	return nil
}

// BusNames lists the buses in the order of the file.
func (b *Bench) BusNames() []string {
	var names []string
	for _, bus := range b.Buses {
		names = append(names, bus.Name.Text)
	}
	return names
}
