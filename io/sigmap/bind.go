package sigmap

import (
	"errors"
	"fmt"
	"math"

	"lockstep/model"
)

// Spec says which signals go where: the map of a bench file, for one bus.
type Spec struct {
	Receive  []Link
	Send     []Link
	Sendings []Sending
	PeriodNs int64 // the grid, > 0
}

// Link joins a signal and a port.
type Link struct{ Message, Signal, Port string }

// Sending says when a message is sent: at the ticks where the time is PhaseNs
// more than a multiple of CycleNs.
type Sending struct {
	Message string
	CycleNs int64  // a multiple of the period, > 0
	PhaseNs int64  // a multiple of the period, 0 <= phase < cycle
	Counter string // signal that counts the frames, "" for none
}

// SpecError is an error of Bind about one entry of the Spec.
type SpecError struct {
	List  string // "receive", "send" or "sendings"
	Index int    // in that list
	Err   error
}

func (e *SpecError) Error() string { return "sigmap: " + e.Err.Error() }
func (e *SpecError) Unwrap() error { return e.Err }

// Bind finds the signals and ports of spec and compiles the way between them,
// converting units. An error names message, signal, port and units; where it is
// about one entry of spec it is a *SpecError.
func Bind(db *Database, spec Spec, inputs, outputs []model.Port) (*Map, error) {
	if err := db.Check(); err != nil {
		return nil, err
	}
	if !(spec.PeriodNs > 0) {
		return nil, fmt.Errorf("sigmap: period %d ns is not positive", spec.PeriodNs)
	}
	b := &binder{db: db, m: &Map{}, used: map[*Signal]string{}, driven: map[int]string{}}
	for i, s := range spec.Sendings {
		if err := b.sending(s, spec.PeriodNs); err != nil {
			return nil, &SpecError{"sendings", i, fmt.Errorf("message %s: %w", s.Message, err)}
		}
	}
	for i, l := range spec.Receive {
		if err := b.receive(l, inputs); err != nil {
			return nil, &SpecError{"receive", i, fmt.Errorf("signal %s.%s, port %s: %w", l.Message, l.Signal, l.Port, err)}
		}
	}
	for i, l := range spec.Send {
		if err := b.send(l, outputs); err != nil {
			return nil, &SpecError{"send", i, fmt.Errorf("signal %s.%s, port %s: %w", l.Message, l.Signal, l.Port, err)}
		}
	}
	b.m.sortRx()
	return b.m, nil
}

// binder is Bind at work.
type binder struct {
	db     *Database
	m      *Map
	used   map[*Signal]string // what a sent signal carries
	driven map[int]string     // the signal that drives an input
}

// sending adds a sent message.
func (b *binder) sending(s Sending, period int64) error {
	msg, err := b.message(s.Message)
	switch {
	case err != nil:
		return err
	case b.sent(msg.Name) != nil:
		return errors.New("given twice")
	case !(s.CycleNs > 0) || s.CycleNs%period != 0:
		return fmt.Errorf("cycle %g ms is not a positive multiple of the period %g ms", ms(s.CycleNs), ms(period))
	case s.PhaseNs < 0 || s.PhaseNs >= s.CycleNs || s.PhaseNs%period != 0:
		return fmt.Errorf("phase %g ms is not a multiple of the period %g ms from 0 to less than the cycle %g ms",
			ms(s.PhaseNs), ms(period), ms(s.CycleNs))
	}
	t := Tx{
		Name: msg.Name, ID: msg.ID, Len: msg.Len,
		CycleTicks: s.CycleNs / period, PhaseTicks: s.PhaseNs / period,
	}
	if s.Counter != "" {
		sig, err := b.signal(msg, s.Counter)
		if err != nil {
			return fmt.Errorf("counter: %w", err)
		}
		b.used[sig] = "the counter"
		t.HasCounter = true
		t.Counter.place(sig)
		t.Counter.Signed = false
		_, t.Counter.Hi = t.Counter.span()
	}
	b.m.Tx = append(b.m.Tx, t)
	return nil
}

// ends finds the two ends of a link; kind of the ports is for messages.
func (b *binder) ends(l Link, kind string, ports []model.Port) (msg *Message, sig *Signal, index int, err error) {
	if msg, err = b.message(l.Message); err != nil {
		return nil, nil, 0, err
	}
	if sig, err = b.signal(msg, l.Signal); err != nil {
		return nil, nil, 0, err
	}
	index, err = find(l.Port, kind, ports)
	return msg, sig, index, err
}

// receive adds a received signal.
func (b *binder) receive(l Link, inputs []model.Port) error {
	msg, sig, index, err := b.ends(l, "input", inputs)
	if err != nil {
		return err
	}
	if b.sent(msg.Name) != nil {
		return errors.New("the message is sent too")
	}
	if other, ok := b.driven[index]; ok {
		return fmt.Errorf("the port is driven by %s already", other)
	}
	b.driven[index] = msg.Name + "." + sig.Name
	port := &inputs[index]
	f, err := b.field(sig, index, port)
	if err != nil {
		return err
	}
	f.limit(port.Min, port.Max)
	if !(f.Lo <= f.Hi) {
		return fmt.Errorf("no value of the signal, [%g|%g] %q, is within the port's %g to %g %q",
			sig.Min, sig.Max, sig.Unit, port.Min, port.Max, port.Unit)
	}
	rx := b.received(msg)
	rx.Fields = append(rx.Fields, f)
	return nil
}

// send adds a sent signal.
func (b *binder) send(l Link, outputs []model.Port) error {
	msg, sig, index, err := b.ends(l, "output", outputs)
	if err != nil {
		return err
	}
	t := b.sent(msg.Name)
	if t == nil {
		return errors.New("the message has no cycle: say when it is sent")
	}
	if what, ok := b.used[sig]; ok {
		return fmt.Errorf("the signal carries %s already", what)
	}
	for i := range msg.Signals {
		other := &msg.Signals[i]
		if what, ok := b.used[other]; ok && sig.overlaps(other) {
			return fmt.Errorf("the signal (%s) overlaps %q (%s), which carries %s", b.where(sig), other.Name, b.where(other), what)
		}
	}
	b.used[sig] = "port " + l.Port
	f, err := b.field(sig, index, &outputs[index])
	if err != nil {
		return err
	}
	t.Fields = append(t.Fields, f)
	return nil
}

// field compiles a signal to the unit of port, which is the index-th of its
// kind, with the range of the database.
func (b *binder) field(sig *Signal, index int, port *model.Port) (Field, error) {
	unit, err := model.Convert(sig.Unit, port.Unit)
	if err != nil {
		return Field{}, fmt.Errorf("signal in %q (%s), port in %q: %w", sig.Unit, b.where(sig), port.Unit, err)
	}
	f := Field{Index: index, Factor: sig.Factor * unit, Offset: sig.Offset * unit}
	f.place(sig)
	f.Lo, f.Hi = f.span()
	if sig.Min < sig.Max {
		f.limit(sig.Min*unit, sig.Max*unit)
	}
	if !(f.Lo <= f.Hi) {
		return f, fmt.Errorf("%d bits (%s) hold no value of the signal's range [%g|%g] %q",
			sig.Len, b.where(sig), sig.Min, sig.Max, sig.Unit)
	}
	most := math.Max(math.Abs(f.Lo), math.Abs(f.Hi))*math.Abs(f.Factor) + math.Abs(f.Offset)
	if f.Factor == 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		return f, fmt.Errorf("(%g,%g) %q (%s) is beyond what a number in %q can be",
			sig.Factor, sig.Offset, sig.Unit, b.where(sig), port.Unit)
	}
	return f, nil
}

// limit narrows the raw range to values from lo to hi, in the port's unit.
func (f *Field) limit(lo, hi float64) {
	lo, hi = (lo-f.Offset)/f.Factor, (hi-f.Offset)/f.Factor
	if f.Factor < 0 {
		lo, hi = hi, lo
	}
	f.Lo = math.Max(f.Lo, math.Ceil(lo-slack(lo)))
	f.Hi = math.Min(f.Hi, math.Floor(hi+slack(hi)))
}

// slack is how far beyond a limit a raw value counts as within, bits: the limit
// is written in decimals, and 0.3 is not 3·0.1.
func slack(r float64) float64 { return 1e-6 + 1e-15*math.Abs(r) }

// message finds a message of the database.
func (b *binder) message(name string) (*Message, error) {
	var names []string
	for i := range b.db.Messages {
		if b.db.Messages[i].Name == name {
			return &b.db.Messages[i], nil
		}
		names = append(names, b.db.Messages[i].Name)
	}
	return nil, fmt.Errorf("%s has no message %q; %s", b.db.File, name, nearest(name, names))
}

// signal finds a signal of msg that can be bound.
func (b *binder) signal(msg *Message, name string) (*Signal, error) {
	var names []string
	for i := range msg.Signals {
		s := &msg.Signals[i]
		switch {
		case s.Name != name:
			names = append(names, s.Name)
		case s.Multiplexor || s.Under != "":
			return nil, fmt.Errorf("multiplexed signals (%s) cannot be bound", b.where(s))
		case s.Float:
			return nil, fmt.Errorf("floating-point signals (%s) cannot be bound", b.where(s))
		default:
			return s, nil
		}
	}
	return nil, fmt.Errorf("message %s (%s:%d) has no signal %q; %s",
		msg.Name, b.db.File, msg.Line, name, nearest(name, names))
}

// sent returns the sent message of this name, nil if there is none.
func (b *binder) sent(name string) *Tx {
	for i := range b.m.Tx {
		if b.m.Tx[i].Name == name {
			return &b.m.Tx[i]
		}
	}
	return nil
}

// received returns the entry of msg, a new one at first.
func (b *binder) received(msg *Message) *Rx {
	for i := range b.m.Rx {
		if b.m.Rx[i].Name == msg.Name {
			return &b.m.Rx[i]
		}
	}
	b.m.Rx = append(b.m.Rx, Rx{Name: msg.Name, ID: msg.ID, Len: msg.Len})
	return &b.m.Rx[len(b.m.Rx)-1]
}

// where is the line of s in the database.
func (b *binder) where(s *Signal) string { return fmt.Sprintf("%s:%d", b.db.File, s.Line) }

// find returns the index of the port called name; kind is for the message.
func find(name, kind string, ports []model.Port) (int, error) {
	var names []string
	for i := range ports {
		if ports[i].Name == name {
			return i, nil
		}
		names = append(names, ports[i].Name)
	}
	return 0, fmt.Errorf("the plant has no %s %q; %s", kind, name, nearest(name, names))
}

// ms is a time in milliseconds, for messages.
func ms(ns int64) float64 { return float64(ns) / 1e6 }
