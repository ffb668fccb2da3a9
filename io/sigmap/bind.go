package sigmap

import (
	"fmt"
	"math"
	"slices"

	"lockstep/io/messages"
	"lockstep/model/units"
)

// Bind finds the signals and ports of spec and compiles the way between them,
// converting units. An error names message, signal, port and units; where it is
// about one entry of spec it is a *SpecError.
func Bind(db *messages.Database, spec Spec, inputs, outputs []units.Port) (*Map, error) {
	if err := db.Check(); err != nil {
		return nil, err
	}
	if !(spec.PeriodNs > 0) {
		return nil, problemf(ErrTime, "sigmap: period %d ns is not positive", spec.PeriodNs)
	}
	b := &binder{db: db, spec: &spec, m: &Map{PeriodNs: spec.PeriodNs}, inputs: inputs, outputs: outputs, driven: map[int]*messages.Message{}}
	for i := range spec.Sendings {
		if err := b.sending(&spec.Sendings[i]); err != nil {
			return nil, specError(InSendings, i, spec.Sendings[i].Message, err)
		}
	}
	for i, l := range spec.Receive {
		if err := b.receive(l); err != nil {
			return nil, linkError(InReceive, i, l, err)
		}
	}
	for i, l := range spec.Send {
		if err := b.send(l); err != nil {
			return nil, linkError(InSend, i, l, err)
		}
	}
	for i := range spec.Sendings {
		if err := b.fill(i); err != nil {
			return nil, specError(InSendings, i, spec.Sendings[i].Message, err)
		}
	}
	for i := range spec.Receptions {
		if err := b.reception(&spec.Receptions[i]); err != nil {
			return nil, specError(InReceptions, i, spec.Receptions[i].Message, err)
		}
	}
	for i := range b.m.Rx {
		b.expect(&b.m.Rx[i])
	}
	b.phases()
	b.m.sortRx()
	return b.m, nil
}

func linkError(list string, index int, l Link, err error) error {
	return &SpecError{List: list, Index: index, Err: fmt.Errorf("signal %s.%s, port %s: %w", l.Message, l.Signal, l.Port, err)}
}

// binder is Bind at work.
type binder struct {
	db              *messages.Database
	spec            *Spec
	m               *Map
	inputs, outputs []units.Port
	driven          map[int]*messages.Message // what drives an input
	frames          []*layout                 // of m.Tx
}

// ends finds the two ends of a link; kind of the ports is for messages.
func (b *binder) ends(l Link, kind string, ports []units.Port) (msg *messages.Message, sig *messages.Signal, index int, err error) {
	if msg, err = b.message(l.Message); err != nil {
		return nil, nil, 0, err
	}
	if sig, err = b.signal(msg, l.Signal); err != nil {
		return nil, nil, 0, err
	}
	index, err = find(l.Port, kind, ports)
	return msg, sig, index, err
}

// field compiles a signal to the unit of port, which is the index-th of its
// kind, with the range of the database.
func (b *binder) field(sig *messages.Signal, index int, port *units.Port) (Field, error) {
	unit, zero, err := scale(sig.Unit, port.Unit)
	if err != nil {
		return Field{}, problemf(ErrUnit, "signal in %q (%s), port in %q: %w", sig.Unit, b.where(sig), port.Unit, err)
	}
	f := Field{Name: sig.Name, Index: index, Factor: sig.Factor * unit, Offset: sig.Offset*unit + zero}
	f.place(sig)
	f.Lo, f.Hi = f.span()
	if sig.Min < sig.Max {
		f.limit(sig.Min*unit+zero, sig.Max*unit+zero)
	}
	if !(f.Lo <= f.Hi) {
		return f, problemf(ErrRange, "%d bits (%s) hold no value of the signal's range [%g|%g] %q",
			sig.Len, b.where(sig), sig.Min, sig.Max, sig.Unit)
	}
	most := math.Max(math.Abs(f.Lo), math.Abs(f.Hi))*math.Abs(f.Factor) + math.Abs(f.Offset)
	if f.Factor == 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		return f, problemf(ErrRange, "(%g,%g) %q (%s) is beyond what a number in %q can be",
			sig.Factor, sig.Offset, sig.Unit, b.where(sig), port.Unit)
	}
	return f, nil
}

// place sets where the bits of s are; s lies within 64 bytes.
func (f *Field) place(s *messages.Signal) {
	f.Len, f.Big, f.Signed, f.Float = uint8(s.Len), s.BigEndian, s.Signed, s.Float
	at := min(s.Start/8, 56)
	f.At = uint8(at)
	if !s.BigEndian {
		shift := s.Start - 8*at
		f.Shift = uint8(shift)
		f.Ninth = uint8(max(0, shift+s.Len-64))
		return
	}
	// Counted from the highest bit of the first byte, the last bit is end.
	end := 8*(s.Start/8-at) + 7 - s.Start%8 + s.Len - 1
	f.Shift = uint8(max(0, 63-end))
	f.Ninth = uint8(max(0, end-63))
}

// scale is what makes a value in one unit one in another: value·factor + zero. Units
// that are equal need not be known.
func scale(from, to string) (factor, zero float64, err error) {
	switch {
	case from == to:
		return 1, 0, nil
	case to == "K" && (from == "degC" || from == "°C"):
		return 1, 273.15, nil
	}
	factor, err = units.Convert(from, to)
	return factor, 0, err
}

// limit narrows the raw range to values from lo to hi, in the port's unit.
func (f *Field) limit(lo, hi float64) {
	lo, hi = (lo-f.Offset)/f.Factor, (hi-f.Offset)/f.Factor
	if f.Factor < 0 {
		lo, hi = hi, lo
	}
	if f.Float { // a float32 has 24 bits of what the limit is written in
		part := 1e-15
		if f.Len == 32 {
			part = 1e-7
		}
		f.Lo, f.Hi = math.Max(f.Lo, lo-part*math.Abs(lo)), math.Min(f.Hi, hi+part*math.Abs(hi))
		return
	}
	f.Lo = math.Max(f.Lo, math.Ceil(lo-slack(lo)))
	f.Hi = math.Min(f.Hi, math.Floor(hi+slack(hi)))
}

// slack is how far beyond a limit a raw value counts as within, bits: the limit
// is written in decimals, and 0.3 is not 3·0.1.
func slack(r float64) float64 { return 1e-6 + 1e-15*math.Abs(r) }

// message finds a message of the database.
func (b *binder) message(name string) (*messages.Message, error) {
	var names []string
	for i := range b.db.Messages {
		if b.db.Messages[i].Name == name {
			return &b.db.Messages[i], nil
		}
		names = append(names, b.db.Messages[i].Name)
	}
	return nil, problemf(ErrUnknown, "%s has no message %q; %s", b.db.File, name, nearest(name, names))
}

// signal finds a signal of msg.
func (b *binder) signal(msg *messages.Message, name string) (*messages.Signal, error) {
	var names []string
	for i := range msg.Signals {
		s := &msg.Signals[i]
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, problemf(ErrUnknown, "message %s (%s:%d) has no signal %q; %s",
		msg.Name, b.db.File, msg.Line, name, nearest(name, names))
}

// sent returns the index of the sent message of this name, -1 if there is none.
func (b *binder) sent(name string) int {
	return slices.IndexFunc(b.m.Tx, func(t Tx) bool { return t.Name == name })
}

// where is the line of s in the database.
func (b *binder) where(s *messages.Signal) string { return fmt.Sprintf("%s:%d", b.db.File, s.Line) }

// find returns the index of the port called name; kind is for the message.
func find(name, kind string, ports []units.Port) (int, error) {
	var names []string
	for i := range ports {
		if ports[i].Name == name {
			return i, nil
		}
		names = append(names, ports[i].Name)
	}
	return 0, problemf(ErrUnknown, "the plant has no %s %q; %s", kind, name, nearest(name, names))
}

// ms is a time in milliseconds, for messages.
func ms(ns int64) float64 { return float64(ns) / 1e6 }
