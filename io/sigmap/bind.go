package sigmap

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"lockstep/io/messages"
	"lockstep/model/units"
)

// Bind resolves the signals and ports of spec and compiles the Map between them, with unit
// conversion. An error names message, signal, port and units; an error about one entry of
// spec is a *SpecError.
func Bind(db *messages.Database, spec Spec, inputs, outputs []units.Port) (*Map, error) {
	if err := db.Check(); err != nil {
		return nil, err
	}
	if !(spec.PeriodNs > 0) {
		return nil, fmt.Errorf("sigmap: period %d ns is not positive", spec.PeriodNs)
	}
	b := &binder{
		db: db, m: &Map{PeriodNs: spec.PeriodNs},
		inputs: inputs, outputs: outputs, drivers: map[int]Link{}, addresses: spec.Addresses,
		spec: &spec, excerpts: map[string]*excerpt{},
	}
	err := try(func() {
		bindEach(InSendings, spec.Sendings, b.addSending)
		bindEach(InReceive, spec.Receive, b.addReceived)
		bindEach(InSend, spec.Send, b.addSent)
		bindEach(InSendings, spec.Sendings, b.fillUnbound) // all signals with a port are bound
		bindEach(InReceptions, spec.Receptions, b.setReception)
		slices.SortFunc(b.m.Rx, func(v, w Rx) int { return cmp.Compare(v.ID, w.ID) })
		b.compilePatterns(spec.Receptions)
	})
	if err != nil {
		return nil, err
	}

	for i := range b.m.Rx {
		r := &b.m.Rx[i]
		if r.TimeoutTicks == DefaultTimeout {
			r.TimeoutTicks = 3 * r.CycleTicks
		}
		r.FirstTicks = max(r.FirstTicks, r.TimeoutTicks)
		r.NextMiss = r.CycleTicks + r.CycleTicks/2 + 1
	}
	b.choosePhases()
	return b.m, nil
}

// binder holds the state of Bind.
type binder struct {
	db              *messages.Database
	m               *Map
	inputs, outputs []units.Port
	drivers         map[int]Link // link that drives an input
	addresses       []uint8      // J1939 addresses of the bench
	frames          []*txLayout  // layouts of m.Tx
	spec            *Spec
	excerpts        map[string]*excerpt // by message, of those in use
}

func (l Link) describe() string {
	return fmt.Sprintf("signal %s.%s, port %s", l.Message, l.Signal, l.Port)
}
func (s Sending) describe() string   { return "message " + s.Message }
func (s Reception) describe() string { return "message " + s.Message }

// findEnds returns message, signal and port index of a link; kind names the ports in errors.
func (b *binder) findEnds(l *Link, kind string, ports []units.Port) (*messages.Message, *messages.Signal, int) {
	msg := b.findMessage(l.Message)
	sig := b.findSignal(msg, l.Signal)
	return msg, sig, findPort(l.Port, kind, ports)
}

// compileField compiles a signal of msg to the unit of port, which has the given index, with the
// range of the database.
func (b *binder) compileField(msg *messages.Message, sig *messages.Signal, index int, port *units.Port) Field {
	unit, zero, err := unitScale(sig.Unit, port.Unit)
	if err != nil {
		refuse("signal in %q (%s), port in %q: %s", sig.Unit, b.lineOf(sig), port.DeclaredUnit().Spelled,
			cmp.Or(stateUnit(sig, msg.Name+"."+sig.Name, port.DeclaredUnit()), units.Reason(err)))
	}
	f := rawField(sig)
	f.Index, f.Factor, f.Offset = index, sig.Factor*unit, sig.Offset*unit+zero
	f.Lo, f.Hi = f.rawRange()
	if sig.Min < sig.Max {
		f.narrow(sig.Min*unit+zero, sig.Max*unit+zero)
	}
	if !(f.Lo <= f.Hi) {
		refuse("%d bits (%s) hold no value of the signal's range [%g|%g] %q; give its range in the bench: ranges: {%s.%s: all}",
			sig.Len, b.lineOf(sig), sig.Min, sig.Max, sig.Unit, msg.Name, sig.Name)
	}

	most := math.Max(math.Abs(f.Lo), math.Abs(f.Hi))*math.Abs(f.Factor) + math.Abs(f.Offset)
	if f.Factor == 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		refuse("(%g,%g) %q (%s) is beyond the largest number in %q; give its range in the bench: ranges: {%s.%s: [LOWEST, HIGHEST]}",
			sig.Factor, sig.Offset, sig.Unit, b.lineOf(sig), port.Unit, msg.Name, sig.Name)
	}

	return f
}

// CheckSignal returns why Bind refuses to bind a signal of msg in a database, whatever its port; nil
// if it does not. The unit of the signal is not checked.
func CheckSignal(db *messages.Database, msg *messages.Message, sig *messages.Signal) error {
	b := binder{db: db}
	return try(func() {
		b.compileField(msg, sig, -1, &units.Port{Unit: sig.Unit, Min: math.Inf(-1), Max: math.Inf(1)})
	})
}

// rawField returns a field for the raw bits of s. Its place is right if s lies within 64 bytes.
func rawField(s *messages.Signal) (f Field) {
	at := min(s.Start/8, 56)
	f = Field{
		Name: s.Name, At: uint8(at), Len: uint8(s.Len),
		Big: s.BigEndian, Signed: s.Signed, Float: s.Float, Factor: 1,
	}
	f.Lo, f.Hi = f.rawRange()
	if !s.BigEndian {
		shift := s.Start - 8*at
		f.Shift = uint8(shift)
		f.Ninth = uint8(max(0, shift+s.Len-64))
		return f
	}

	// end is the last bit, counted from the highest bit of the first byte.
	end := 8*(s.Start/8-at) + 7 - s.Start%8 + s.Len - 1
	f.Shift = uint8(max(0, 63-end))
	f.Ninth = uint8(max(0, end-63))
	return f
}

// unitScale returns the conversion between two units: value·factor + zero. Equal units need
// not be known.
func unitScale(from, to string) (factor, zero float64, err error) {
	switch {
	case from == to:
		return 1, 0, nil
	case to == "K" && (from == "degC" || from == "°C"):
		return 1, 273.15, nil
	}

	factor, err = units.Convert(from, to)
	return factor, 0, err
}

// stateUnit returns the advice to state the unit of a signal in the bench if the database has none, or
// one that is not known; "" if it is known. name is the name of the signal; the advised unit is one
// that fits want.
func stateUnit(sig *messages.Signal, name string, want units.Wanted) string {
	if _, err := units.Parse(sig.Unit); err == nil && sig.Unit != "" {
		return ""
	}
	unit := want.Spelled
	if u, err := units.ParseWanted(units.Respell(sig.Unit)); err == nil && u.Dim == want.Dim {
		unit = units.Respell(sig.Unit)
	}

	if sig.Unit == "" {
		return fmt.Sprintf("the database gives no unit; state it in the bench: units: {%s: %s}", name, unit)
	}
	key := sig.Unit
	if !units.IsName(key, false) {
		key = strconv.Quote(key)
	}
	return fmt.Sprintf("%q is not a known unit; state it in the bench: units: {%s: %s}", sig.Unit, key, unit)
}

// narrow reduces the raw range to values from lo to hi, in the port's unit.
func (f *Field) narrow(lo, hi float64) {
	lo, hi = (lo-f.Offset)/f.Factor, (hi-f.Offset)/f.Factor
	if f.Factor < 0 {
		lo, hi = hi, lo
	}
	if f.Float { // a float32 keeps only 24 bits of the limit
		part := 1e-15
		if f.Len == 32 {
			part = 1e-7
		}
		f.Lo, f.Hi = math.Max(f.Lo, lo-part*math.Abs(lo)), math.Min(f.Hi, hi+part*math.Abs(hi))
		return
	}

	f.Lo = math.Max(f.Lo, math.Ceil(lo-tolerance(lo)))
	f.Hi = math.Min(f.Hi, math.Floor(hi+tolerance(hi)))
}

// tolerance is how far, in bits, a raw value may exceed a limit r: limits are decimal
// numbers, and 0.3 is not 3·0.1.
func tolerance(r float64) float64 { return 1e-6 + 1e-15*math.Abs(r) }

// findMessage returns the message of the database called name, or the excerpt of one of more than 64 bytes.
func (b *binder) findMessage(name string) *messages.Message {
	i, near := findByName(b.db.Messages, name, func(m *messages.Message) string { return m.Name })
	if i < 0 {
		refuse("%s has no message %q; %s", b.db.File, name, near)
	}
	if msg := &b.db.Messages[i]; msg.Len > 64 {
		return &b.excerptOf(msg).msg
	}
	return &b.db.Messages[i]
}

// sizeOf returns the length of a message in the database.
func (b *binder) sizeOf(msg *messages.Message) int {
	if e := b.excerpts[msg.Name]; e != nil {
		return e.full.Len
	}
	return msg.Len
}

// findSignal returns the signal of msg called name.
func (b *binder) findSignal(msg *messages.Message, name string) *messages.Signal {
	i, near := findByName(msg.Signals, name, signalName)
	if i < 0 {
		refuse("message %s (%s:%d) has no signal %q; %s", msg.Name, b.db.File, msg.Line, name, near)
	}
	return &msg.Signals[i]
}

// txIndex returns the index of the sent message called name, -1 if there is none.
func (b *binder) txIndex(name string) int {
	return slices.IndexFunc(b.m.Tx, func(t Tx) bool { return t.Name == name })
}

// lineOf returns file and line of s in the database.
func (b *binder) lineOf(s *messages.Signal) string { return fmt.Sprintf("%s:%d", b.db.File, s.Line) }

// findPort returns the index of the port called name; kind names the ports in errors.
func findPort(name, kind string, ports []units.Port) int {
	i, near := findByName(ports, name, func(p *units.Port) string { return p.Name })
	if i < 0 {
		refuse("the plant has no %s %q; %s", kind, name, near)
	}
	return i
}

// ms converts ns to ms, for errors.
func ms(ns int64) float64 { return float64(ns) / 1e6 }
