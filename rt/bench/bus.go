package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

// Bus is one CAN bus of a bench.
type Bus struct {
	Name      yamlfile.Scalar
	Interface yamlfile.Scalar // "pair", or the name of a network interface
	Database  yamlfile.Scalar // an embedded database, or a file beside the bench file
	BitRate   float64         // bit/s; 0: the file does not say
	DataRate  float64         // of the data phase of CAN FD, bit/s; 0: the file does not say
	Units     []Unit
	Frames    []Frame // those of the restbus last
	Receive   []Link
	Send      []Link
	Messages  []Message
	J1939     *J1939 // nil: no address is claimed
	lenient   int    // places of the database that do not keep to the format; known once it is read
	RestartNs int64  // how long after a controller went off the bus the supervisor restarts it, ns; 0: it waits
}

// Frame is a message the bench sends.
type Frame struct {
	Message yamlfile.Scalar
	Rest    bool // of the restbus
	Send    sigmap.SendType
	Sent    bool            // the file says Send; else the database does
	CycleNs int64           // > 0; Prepare checks it against the period; 0: on change only, or of a restbus, as the database says
	PhaseNs int64           // offset of the first one on the grid; sigmap.FreePhase: the file does not say
	GapNs   int64           // least time between two frames that follow a change; 0: the database's
	Repeats int             // frames that follow one that a change brought about; -1: the database's
	Counter yamlfile.Scalar // signal that counts frames; "" none
	Values  []Value
	Protect []Protect
}

// Value is what a signal carries that no port drives.
type Value struct {
	Signal yamlfile.Scalar
	Text   string         // a number, a quantity, or a text of the signal's values
	Course *sigmap.Course // instead
}

// Protect is a protected group of a message.
type Protect struct {
	At   yamlfile.Scalar // its profile
	Spec messages.ProtectionSpec
}

// Message is what a bench says of a message it receives.
type Message struct {
	Message   yamlfile.Scalar
	CycleNs   int64 // 0: as the database says
	TimeoutNs int64 // sigmap.DefaultTimeout: three cycles; 0: none
	FirstNs   int64 // timeout of the first frame, from the start on; 0: as the others
	DLC       int   // bytes; 0: at least those of the message
	Protect   []Protect
	OnTimeout Reaction
	OnError   Reaction
	Invalid   []Invalid
}

// Reaction is what follows when a message is late or wrong.
type Reaction struct {
	Action sigmap.Action
	Values []SafeValue // what inputs take instead
}

// Invalid lists the raw values of a signal that say that it has none.
type Invalid struct {
	Signal yamlfile.Scalar
	Values []string
}

// Link ties one signal to one port of the plant.
type Link struct {
	Message, Signal, Port string
	yamlfile.Scalar       // the line itself, for errors
}

// Deviations counts the places of the database that do not keep to the format.
func (bus *Bus) Deviations() int { return bus.lenient }

func readBus(r *yamlfile.Reader, e *ast.MappingValueNode) Bus {
	at := e.Key.GetToken().Position
	b := Bus{Name: yamlfile.KeyScalar(e)}
	if b.Name.Text = ReadTitle(r, e.Key, "bus"); r.Err != nil {
		return b
	}
	what := fmt.Sprintf("bus %q", b.Name.Text)
	links := func(dst *[]Link, list, form string, receive bool) func(ast.Node) {
		return func(n ast.Node) {
			r.Sequence(n, what+": "+list, func(n ast.Node) { *dst = append(*dst, readLink(r, n, form, receive)) })
		}
	}
	var rest []Frame
	frames := func(dst *[]Frame, list string, rest bool) func(ast.Node) {
		return func(n ast.Node) {
			for _, f := range r.Entries(n, what+": "+list) {
				*dst = append(*dst, readFrame(r, f, rest))
			}
		}
	}
	r.Mapping(e.Value, what, []yamlfile.Key{
		{Name: "interface", Read: func(n ast.Node) { b.Interface = readInterface(r, n, what) }},
		{Name: "database", Read: r.StoreScalar(&b.Database, what+": database")},
		{Name: "units", Read: func(n ast.Node) { readUnits(r, n, &b.Units, what+": units") }},
		{Name: "frames", Read: frames(&b.Frames, "frames", false)},
		{Name: "receive", Read: links(&b.Receive, "receive", "MESSAGE.SIGNAL -> PORT", true)},
		{Name: "send", Read: links(&b.Send, "send", "PORT -> MESSAGE.SIGNAL", false)},
		{Name: "messages", Read: func(n ast.Node) {
			for _, m := range r.Entries(n, what+": messages") {
				b.Messages = append(b.Messages, readMessage(r, m))
			}
		}},
		{Name: "restbus", Read: frames(&rest, "restbus", true)},
		{Name: "bitrate", Read: readBitRate(r, &b.BitRate, what+": bitrate", 1e3, 1e6)},
		{Name: "j1939", Read: func(n ast.Node) { b.J1939 = readJ1939(r, n, what+": j1939") }},
		{Name: "recover", Read: func(n ast.Node) { b.RestartNs = readRecovery(r, n, what+": recover") }},
		{Name: "data_bitrate", Read: readBitRate(r, &b.DataRate, what+": data_bitrate", 1e3, 20e6)},
	})
	b.Frames = append(b.Frames, rest...)
	switch {
	case b.Interface.Text == "":
		r.FailAt(at, "%s: the interface is missing (interface: vcan0, or pair)", what)
	case b.Database.Text == "":
		r.FailAt(at, "%s: the database is missing (database: FILE.dbc)", what)
	}
	return b
}

// readRecovery reads "wait" or "restart after 200 ms".
func readRecovery(r *yamlfile.Reader, n ast.Node, what string) int64 {
	w := r.Scalar(n, what)
	after, restart := strings.CutPrefix(w.Text, "restart after ")
	if w.Text == "wait" {
		return 0
	}
	seconds, err := units.Quantity(after, "s", nil)
	if !restart || err != nil || !(seconds >= 0.01 && seconds <= 3600) {
		r.Fail(n, "%s: %q is none of: wait, restart after T (T: 10 ms to 3600 s)", what, w.Text)
	}
	return int64(seconds * 1e9)
}

func readFrame(r *yamlfile.Reader, e *ast.MappingValueNode, rest bool) Frame {
	f := Frame{Message: yamlfile.KeyScalar(e), Rest: rest, PhaseNs: sigmap.FreePhase, Repeats: -1}
	what := "frame " + f.Message.Text
	r.Mapping(e.Value, what, []yamlfile.Key{
		{Name: "cycle", Read: readNanoseconds(r, &f.CycleNs, what+": cycle", 1, 3600e9)},
		{Name: "phase", Read: readNanoseconds(r, &f.PhaseNs, what+": phase", 0, 3600e9)},
		{Name: "counter", Read: r.StoreScalar(&f.Counter, what+": counter")},
		{Name: "send", Read: func(n ast.Node) {
			f.Sent = true
			switch r.Choice(n, what+": send", "cyclic", "on_change", "both") {
			case "on_change":
				f.Send = sigmap.OnChange
			case "both":
				f.Send = sigmap.Both
			}
		}},
		{Name: "repeat", Read: r.StoreInteger(&f.Repeats, what+": repeat", 0, 1000)},
		{Name: "min_gap", Read: readNanoseconds(r, &f.GapNs, what+": min_gap", 0, 3600e9)},
		{Name: "values", Read: func(n ast.Node) { readValues(r, n, &f.Values, what+": values") }},
		{Name: "protect", Read: func(n ast.Node) { f.Protect = readProtection(r, n, what+": protect") }},
	})
	if f.CycleNs == 0 && f.Send != sigmap.OnChange && !rest {
		r.FailAt(e.Key.GetToken().Position, "%s: the cycle is missing (cycle: 10 ms)", what)
	}
	return f
}

// readLink reads "MESSAGE.SIGNAL -> PORT", or the other way round for what is sent.
func readLink(r *yamlfile.Reader, n ast.Node, form string, receive bool) Link {
	l := Link{Scalar: r.Scalar(n, "link")}
	from, to, ok := strings.Cut(l.Text, "->")
	wire, port := strings.TrimSpace(from), strings.TrimSpace(to)
	if !receive {
		wire, port = port, wire
	}
	l.Port = port
	var dot bool
	if l.Message, l.Signal, dot = strings.Cut(wire, "."); !ok || !dot || l.Signal == "" || l.Port == "" {
		r.Fail(n, "link %q is not of the form %s", l.Text, form)
	}
	return l
}

// readBitRate reads a bit rate: "500 kbit/s".
func readBitRate(r *yamlfile.Reader, dst *float64, what string, lo, hi float64) func(ast.Node) {
	return func(n ast.Node) {
		w := r.Scalar(n, what)
		number, unit, _ := strings.Cut(w.Text, " ")
		v, err := strconv.ParseFloat(number, 64)
		v *= map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[unit]
		if r.Err == nil && (err != nil || !(v >= lo && v <= hi)) {
			r.Fail(n, "%s: %q is not from %g kbit/s to %g kbit/s (500 kbit/s; also bit/s, Mbit/s)", what, w.Text, lo/1e3, hi/1e3)
		}
		*dst = v
	}
}

// readMessage reads what is expected of a received message.
func readMessage(r *yamlfile.Reader, e *ast.MappingValueNode) Message {
	m := Message{Message: yamlfile.KeyScalar(e), TimeoutNs: sigmap.DefaultTimeout}
	what := "message " + m.Message.Text
	r.Mapping(e.Value, what, []yamlfile.Key{
		{Name: "cycle", Read: readNanoseconds(r, &m.CycleNs, what+": cycle", 1, 3600e9)},
		{Name: "timeout", Read: readNanoseconds(r, &m.TimeoutNs, what+": timeout", 0, 3600e9)},
		{Name: "first_timeout", Read: readNanoseconds(r, &m.FirstNs, what+": first_timeout", 1, 3600e9)},
		{Name: "dlc", Read: r.StoreInteger(&m.DLC, what+": dlc", 1, 64)},
		{Name: "protect", Read: func(n ast.Node) { m.Protect = readProtection(r, n, what+": protect") }},
		{Name: "on_timeout", Read: func(n ast.Node) { readReaction(r, n, &m.OnTimeout, what+": on_timeout") }},
		{Name: "on_error", Read: func(n ast.Node) { readReaction(r, n, &m.OnError, what+": on_error") }},
		{Name: "invalid", Read: func(n ast.Node) {
			for _, e := range r.Entries(n, what+": invalid") {
				m.Invalid = append(m.Invalid, Invalid{yamlfile.KeyScalar(e), r.Texts(e.Value, what+": invalid: "+yamlfile.KeyScalar(e).Text)})
			}
		}},
	})
	return m
}

// readReaction reads hold, safe or {substitute: {PORT: value}}.
func readReaction(r *yamlfile.Reader, n ast.Node, dst *Reaction, what string) {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		dst.Action = sigmap.Substitute
		r.Mapping(n, what, []yamlfile.Key{{Name: "substitute", Read: func(n ast.Node) {
			for _, e := range r.Entries(n, what+": substitute") {
				dst.Values = append(dst.Values, SafeValue{yamlfile.KeyScalar(e), r.Scalar(e.Value, what+": "+yamlfile.KeyScalar(e).Text)})
			}
		}}})
		return
	}
	if r.Choice(n, what+" (or {substitute: {PORT: value}})", "hold", "safe") == "safe" {
		dst.Action = sigmap.SafeState
	}
}

// spec is the bus as package sigmap wants it.
func (bus *Bus) spec(db *messages.Database, periodNs int64) sigmap.Spec {
	s := sigmap.Spec{PeriodNs: periodNs}
	for _, l := range bus.Receive {
		s.Receive = append(s.Receive, sigmap.Link{Message: l.Message, Signal: l.Signal, Port: l.Port})
	}
	for _, l := range bus.Send {
		s.Send = append(s.Send, sigmap.Link{Message: l.Message, Signal: l.Signal, Port: l.Port})
	}
	for i := range bus.Frames {
		s.Sendings = append(s.Sendings, bus.Frames[i].sending(db, periodNs))
	}
	for i := range bus.Messages {
		s.Receptions = append(s.Receptions, bus.Messages[i].reception())
	}
	return s
}

func (f *Frame) sending(db *messages.Database, periodNs int64) sigmap.Sending {
	s := sigmap.Sending{
		Message: f.Message.Text, Send: f.Send, CycleNs: f.CycleNs, PhaseNs: f.PhaseNs, GapNs: f.GapNs,
		Repeats: max(0, f.Repeats), Counter: f.Counter.Text, Protect: specs(f.Protect),
	}
	if i := slices.IndexFunc(db.Messages, func(m messages.Message) bool { return m.Name == f.Message.Text }); i >= 0 {
		f.defaults(&s, &db.Messages[i], periodNs)
	}
	for _, v := range f.Values {
		s.Values = append(s.Values, sigmap.Constant{Signal: v.Signal.Text, Text: v.Text, Course: v.Course})
	}
	return s
}

// defaults gives a frame what the file leaves to the database. Its times need not fit
// the grid: they are made longer.
func (f *Frame) defaults(s *sigmap.Sending, msg *messages.Message, periodNs int64) {
	grid := func(ns int64) int64 { return (ns + periodNs - 1) / periodNs * periodNs }
	if !f.Sent {
		s.Send = sendType(msg.SendType)
		if s.Send != sigmap.Cyclic && s.CycleNs == 0 && msg.CycleNs == 0 {
			s.Send = sigmap.OnChange
		} else if s.Send == sigmap.OnChange && (s.CycleNs > 0 || s.PhaseNs > 0) {
			s.Send = sigmap.Cyclic // as the file has it, which gives the cycle
		}
	}
	if s.CycleNs == 0 && s.Send != sigmap.OnChange {
		s.CycleNs = msg.CycleNs
	}
	if s.Send == sigmap.Cyclic {
		return
	}
	if s.GapNs == 0 {
		s.GapNs = grid(msg.DelayNs)
	}
	if f.Repeats < 0 {
		s.Repeats = msg.Repeats
	}
	s.EveryNs = grid(msg.FastNs)
}

// sendType is what a database's GenMsgSendType means, in the words of various tools;
// those that depend on whether a signal is active are sent in their cycle.
func sendType(text string) sigmap.SendType {
	switch strings.ToLower(text) {
	case "onchange", "onwrite", "spontaneous", "spontan", "event":
		return sigmap.OnChange
	case "cyclicandonchange", "cyclicandspontaneous", "cyclicandspontan", "cyclicandonwrite", "cyclicandevent":
		return sigmap.Both
	}
	return sigmap.Cyclic
}

func (m *Message) reception() sigmap.Reception {
	r := sigmap.Reception{
		Message: m.Message.Text, CycleNs: m.CycleNs, TimeoutNs: m.TimeoutNs, FirstNs: m.FirstNs, DLC: m.DLC, Protect: specs(m.Protect),
		OnTimeout: m.OnTimeout.spec(), OnError: m.OnError.spec(),
	}
	for _, v := range m.Invalid {
		r.Invalid = append(r.Invalid, sigmap.InvalidSpec{Signal: v.Signal.Text, Values: v.Values})
	}
	return r
}

func (r *Reaction) spec() sigmap.ReactionSpec {
	s := sigmap.ReactionSpec{Action: r.Action}
	for _, v := range r.Values {
		s.Values = append(s.Values, sigmap.PortValue{Port: v.Port.Text, Text: v.Value.Text})
	}
	return s
}

func specs(list []Protect) (specs []messages.ProtectionSpec) {
	for i := range list {
		specs = append(specs, list[i].Spec)
	}
	return specs
}

// blame finds the word of the file that an error of Bind is about.
func (bus *Bus) blame(err error) yamlfile.Scalar {
	var e *sigmap.SpecError
	if !errors.As(err, &e) {
		return bus.Database
	}
	switch e.List {
	case sigmap.InReceive:
		return bus.Receive[e.Index].Scalar
	case sigmap.InSend:
		return bus.Send[e.Index].Scalar
	case sigmap.InSendings:
		f := &bus.Frames[e.Index]
		switch e.Part {
		case "values":
			return f.Values[e.Item].Signal
		case "protect":
			return f.Protect[e.Item].At
		}
		return f.Message
	}
	m := &bus.Messages[e.Index]
	switch e.Part {
	case "protect":
		return m.Protect[e.Item].At
	case "invalid":
		return m.Invalid[e.Item].Signal
	case "on_timeout":
		return m.OnTimeout.Values[e.Item].Port
	case "on_error":
		return m.OnError.Values[e.Item].Port
	}
	return m.Message
}

// IsHostInterface says that an interface is one of this host.
func IsHostInterface(iface string) bool {
	return iface != PairInterface && !strings.HasPrefix(iface, "fd:") && !strings.HasPrefix(iface, LogPrefix)
}

// LogPrefix begins an interface that is a log, "file:drive.log", or one channel of a log,
// "file:drive.log@can1".
const LogPrefix = "file:"

// PairInterface is the interface of a bus that lives between two processes of the run.
const PairInterface = "pair"

// SetBuses replaces interfaces: "vcan0" where the bench has one bus, else
// "bus=vcan0".
func (b *Bench) SetBuses(list []string) error {
	for _, text := range list {
		name, iface, several := strings.Cut(text, "=")
		if strings.HasPrefix(text, LogPrefix) {
			several = false // the "=" is of the file's name
		}
		if !several {
			name, iface = b.Buses[0].Name.Text, text
		}
		i := slices.IndexFunc(b.Buses, func(bus Bus) bool { return bus.Name.Text == name })
		switch {
		case !several && len(b.Buses) > 1:
			return fmt.Errorf("run: -bus %s: the bench has %d buses; write -bus %s=%s", text, len(b.Buses), name, iface)
		case i < 0 || iface == "":
			return fmt.Errorf("run: -bus %s: write -bus BUS=INTERFACE; the bench's buses are %s", text, strings.Join(b.BusNames(), ", "))
		case !wire(iface):
			return fmt.Errorf("run: -bus: %q cannot be the name of a CAN interface: %s", iface, wires)
		}
		b.Buses[i].Interface.Text = iface
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
