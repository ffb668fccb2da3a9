package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"lockstep/io/sigmap"
	"lockstep/model/units"
)

// Bus is one CAN bus of a bench.
type Bus struct {
	Name      Word
	Interface Word    // "pair", or the name of a network interface
	Database  Word    // an embedded database, or a file beside the bench file
	BitRate   float64 // bit/s; 0: the file does not say
	DataRate  float64 // of the data phase of CAN FD, bit/s; 0: the file does not say
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
	Message Word
	Rest    bool // of the restbus
	Send    sigmap.SendType
	Sent    bool  // the file says Send; else the database does
	CycleNs int64 // > 0; Prepare checks it against the period; 0: on change only, or of a restbus, as the database says
	PhaseNs int64 // offset of the first one on the grid; sigmap.FreePhase: the file does not say
	GapNs   int64 // least time between two frames that follow a change; 0: the database's
	Repeats int   // frames that follow one that a change brought about; -1: the database's
	Counter Word  // signal that counts frames; "" none
	Values  []Value
	Protect []Protect
}

// Value is what a signal carries that no port drives.
type Value struct {
	Signal Word
	Text   string         // a number, a quantity, or a text of the signal's values
	Course *sigmap.Course // instead
}

// Protect is a protected group of a message.
type Protect struct {
	At   Word // its profile
	Spec sigmap.ProtectionSpec
}

// Message is what a bench says of a message it receives.
type Message struct {
	Message   Word
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
	Signal Word
	Values []string
}

// Link ties one signal to one port of the plant.
type Link struct {
	Message, Signal, Port string
	Word                  // the line itself, for errors
}

func (r *reader) bus(e *ast.MappingValueNode) Bus {
	at := e.Key.GetToken().Position
	b := Bus{Name: keyWord(e)}
	if b.Name.Text = r.title(e.Key, "bus"); r.err != nil {
		return b
	}
	what := fmt.Sprintf("bus %q", b.Name.Text)
	links := func(dst *[]Link, list, form string, receive bool) func(ast.Node) {
		return func(n ast.Node) {
			r.list(n, what+": "+list, func(n ast.Node) { *dst = append(*dst, r.link(n, form, receive)) })
		}
	}
	var rest []Frame
	frames := func(dst *[]Frame, list string, rest bool) func(ast.Node) {
		return func(n ast.Node) {
			for _, f := range r.pairs(n, what+": "+list) {
				*dst = append(*dst, r.frame(f, rest))
			}
		}
	}
	r.object(e.Value, what, []key{
		{"interface", func(n ast.Node) { b.Interface = r.wire(n, what) }},
		{"database", r.name(&b.Database, what+": database")},
		{"units", func(n ast.Node) { r.units(n, &b.Units, what+": units") }},
		{"frames", frames(&b.Frames, "frames", false)},
		{"receive", links(&b.Receive, "receive", "MESSAGE.SIGNAL -> PORT", true)},
		{"send", links(&b.Send, "send", "PORT -> MESSAGE.SIGNAL", false)},
		{"messages", func(n ast.Node) {
			for _, m := range r.pairs(n, what+": messages") {
				b.Messages = append(b.Messages, r.message(m))
			}
		}},
		{"restbus", frames(&rest, "restbus", true)},
		{"bitrate", r.rate(&b.BitRate, what+": bitrate", 1e3, 1e6)},
		{"j1939", func(n ast.Node) { b.J1939 = r.j1939(n, what+": j1939") }},
		{"recover", func(n ast.Node) { b.RestartNs = r.recovery(n, what+": recover") }},
		{"data_bitrate", r.rate(&b.DataRate, what+": data_bitrate", 1e3, 20e6)},
	})
	b.Frames = append(b.Frames, rest...)
	switch {
	case b.Interface.Text == "":
		r.failAt(at, "%s: the interface is missing (interface: vcan0, or pair)", what)
	case b.Database.Text == "":
		r.failAt(at, "%s: the database is missing (database: FILE.dbc)", what)
	}
	return b
}

// recovery reads "wait" or "restart after 200 ms".
func (r *reader) recovery(n ast.Node, what string) int64 {
	w := r.word(n, what)
	after, restart := strings.CutPrefix(w.Text, "restart after ")
	if w.Text == "wait" {
		return 0
	}
	seconds, err := units.Quantity(after, "s", nil)
	if !restart || err != nil || !(seconds >= 0.01 && seconds <= 3600) {
		r.fail(n, "%s: %q is none of: wait, restart after T (T: 10 ms to 3600 s)", what, w.Text)
	}
	return int64(seconds * 1e9)
}

// keyWord is the key of an entry.
func keyWord(e *ast.MappingValueNode) Word {
	at := e.Key.GetToken().Position
	return Word{e.Key.GetToken().Value, at.Line, at.Column}
}

func (r *reader) frame(e *ast.MappingValueNode, rest bool) Frame {
	f := Frame{Message: keyWord(e), Rest: rest, PhaseNs: sigmap.FreePhase, Repeats: -1}
	what := "frame " + f.Message.Text
	r.object(e.Value, what, []key{
		{"cycle", r.nanoseconds(&f.CycleNs, what+": cycle", 1, 3600e9)},
		{"phase", r.nanoseconds(&f.PhaseNs, what+": phase", 0, 3600e9)},
		{"counter", r.name(&f.Counter, what+": counter")},
		{"send", func(n ast.Node) {
			f.Sent = true
			switch r.choice(n, what+": send", "cyclic", "on_change", "both") {
			case "on_change":
				f.Send = sigmap.OnChange
			case "both":
				f.Send = sigmap.Both
			}
		}},
		{"repeat", r.integer(&f.Repeats, what+": repeat", 0, 1000)},
		{"min_gap", r.nanoseconds(&f.GapNs, what+": min_gap", 0, 3600e9)},
		{"values", func(n ast.Node) { r.values(n, &f.Values, what+": values") }},
		{"protect", func(n ast.Node) { f.Protect = r.protect(n, what+": protect") }},
	})
	if f.CycleNs == 0 && f.Send != sigmap.OnChange && !rest {
		r.failAt(e.Key.GetToken().Position, "%s: the cycle is missing (cycle: 10 ms)", what)
	}
	return f
}

// link reads "MESSAGE.SIGNAL -> PORT", or the other way round for what is sent.
func (r *reader) link(n ast.Node, form string, receive bool) Link {
	l := Link{Word: r.word(n, "link")}
	from, to, ok := strings.Cut(l.Text, "->")
	wire, port := strings.TrimSpace(from), strings.TrimSpace(to)
	if !receive {
		wire, port = port, wire
	}
	l.Port = port
	var dot bool
	if l.Message, l.Signal, dot = strings.Cut(wire, "."); !ok || !dot || l.Signal == "" || l.Port == "" {
		r.fail(n, "link %q is not of the form %s", l.Text, form)
	}
	return l
}

// rate reads a bit rate: "500 kbit/s".
func (r *reader) rate(dst *float64, what string, lo, hi float64) func(ast.Node) {
	return func(n ast.Node) {
		w := r.word(n, what)
		number, unit, _ := strings.Cut(w.Text, " ")
		v, err := strconv.ParseFloat(number, 64)
		v *= map[string]float64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6}[unit]
		if r.err == nil && (err != nil || !(v >= lo && v <= hi)) {
			r.fail(n, "%s: %q is not from %g kbit/s to %g kbit/s (500 kbit/s; also bit/s, Mbit/s)", what, w.Text, lo/1e3, hi/1e3)
		}
		*dst = v
	}
}

// message reads what is expected of a received message.
func (r *reader) message(e *ast.MappingValueNode) Message {
	m := Message{Message: keyWord(e), TimeoutNs: sigmap.DefaultTimeout}
	what := "message " + m.Message.Text
	r.object(e.Value, what, []key{
		{"cycle", r.nanoseconds(&m.CycleNs, what+": cycle", 1, 3600e9)},
		{"timeout", r.nanoseconds(&m.TimeoutNs, what+": timeout", 0, 3600e9)},
		{"first_timeout", r.nanoseconds(&m.FirstNs, what+": first_timeout", 1, 3600e9)},
		{"dlc", r.integer(&m.DLC, what+": dlc", 1, 64)},
		{"protect", func(n ast.Node) { m.Protect = r.protect(n, what+": protect") }},
		{"on_timeout", func(n ast.Node) { r.reaction(n, &m.OnTimeout, what+": on_timeout") }},
		{"on_error", func(n ast.Node) { r.reaction(n, &m.OnError, what+": on_error") }},
		{"invalid", func(n ast.Node) {
			for _, e := range r.pairs(n, what+": invalid") {
				m.Invalid = append(m.Invalid, Invalid{keyWord(e), r.words(e.Value, what+": invalid: "+keyWord(e).Text)})
			}
		}},
	})
	return m
}

// reaction reads hold, safe or {substitute: {PORT: value}}.
func (r *reader) reaction(n ast.Node, dst *Reaction, what string) {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		dst.Action = sigmap.Substitute
		r.object(n, what, []key{{"substitute", func(n ast.Node) {
			for _, e := range r.pairs(n, what+": substitute") {
				dst.Values = append(dst.Values, SafeValue{keyWord(e), r.word(e.Value, what+": "+keyWord(e).Text)})
			}
		}}})
		return
	}
	if r.choice(n, what+" (or {substitute: {PORT: value}})", "hold", "safe") == "safe" {
		dst.Action = sigmap.SafeState
	}
}

// spec is the bus as package sigmap wants it.
func (bus *Bus) spec(db *sigmap.Database, periodNs int64) sigmap.Spec {
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

func (f *Frame) sending(db *sigmap.Database, periodNs int64) sigmap.Sending {
	s := sigmap.Sending{
		Message: f.Message.Text, Send: f.Send, CycleNs: f.CycleNs, PhaseNs: f.PhaseNs, GapNs: f.GapNs,
		Repeats: max(0, f.Repeats), Counter: f.Counter.Text, Protect: specs(f.Protect),
	}
	if i := slices.IndexFunc(db.Messages, func(m sigmap.Message) bool { return m.Name == f.Message.Text }); i >= 0 {
		f.defaults(&s, &db.Messages[i], periodNs)
	}
	for _, v := range f.Values {
		s.Values = append(s.Values, sigmap.Constant{Signal: v.Signal.Text, Text: v.Text, Course: v.Course})
	}
	return s
}

// defaults gives a frame what the file leaves to the database. Its times need not fit
// the grid: they are made longer.
func (f *Frame) defaults(s *sigmap.Sending, msg *sigmap.Message, periodNs int64) {
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

func specs(list []Protect) (specs []sigmap.ProtectionSpec) {
	for i := range list {
		specs = append(specs, list[i].Spec)
	}
	return specs
}

// blame finds the word of the file that an error of Bind is about.
func (bus *Bus) blame(err error) Word {
	var e *sigmap.SpecError
	if !errors.As(err, &e) {
		return bus.Database
	}
	switch e.List {
	case sigmap.InReceive:
		return bus.Receive[e.Index].Word
	case sigmap.InSend:
		return bus.Send[e.Index].Word
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
