package sigmap

import (
	"fmt"
	"math"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/model/units"
)

// layout is a sent message at work.
type layout struct {
	msg   *messages.Message
	taken messages.Bits               // what carries something
	used  map[*messages.Signal]string // and what
	raw   map[string]uint64           // constants by signal
}

// sending adds a sent message.
func (b *binder) sending(s *Sending) error {
	msg, err := b.message(s.Message)
	if err != nil {
		return err
	}
	if b.sent(msg.Name) >= 0 {
		return problemf(ErrTaken, "given twice")
	}
	t := Tx{Name: msg.Name, ID: msg.ID, Len: msg.Len, Send: s.Send, GapTicks: 1, CycleTicks: 1}
	if msg.FD || msg.Len > 8 {
		t.Flags = can.FlagFDF
	}
	if msg.BRS {
		t.Flags |= can.FlagBRS
	}
	if err := b.times(s, &t); err != nil {
		return err
	}
	f := &layout{msg: msg, used: map[*messages.Signal]string{}, raw: map[string]uint64{}}
	if s.Counter != "" {
		sig, err := b.counts(msg, s.Counter)
		if err != nil {
			return fmt.Errorf("counter: %w", err)
		}
		f.take(sig, "the counter")
		t.HasCounter = true
		t.Counter.place(sig)
		t.Counter.Signed = false
		_, t.Counter.Hi = t.Counter.span()
		if len(s.Protect) > 0 && sig.Len > 16 {
			return problemf(ErrKind, "counter: %d bits; beside a protection at most 16 are possible", sig.Len)
		}
	}
	for i, p := range s.Protect {
		if err := f.protect(&t, p); err != nil {
			return &partError{"protect", i, err}
		}
	}
	b.m.Tx, b.frames = append(b.m.Tx, t), append(b.frames, f)
	return nil
}

// counts finds a signal that can count frames.
func (b *binder) counts(msg *messages.Message, name string) (*messages.Signal, error) {
	sig, err := b.signal(msg, name)
	switch {
	case err != nil:
		return nil, err
	case sig.Float || sig.Multiplexor || sig.Under != "":
		return nil, problemf(ErrKind, "signal %s (%s) is a floating-point number, or not in every frame, or says which others are", name, b.where(sig))
	}
	return sig, nil
}

// times sets when t is sent.
func (b *binder) times(s *Sending, t *Tx) error {
	period := b.spec.PeriodNs
	if s.GapNs < 0 || s.GapNs%period != 0 {
		return problemf(ErrTime, "least gap %g ms is not a multiple of the period %g ms", ms(s.GapNs), ms(period))
	}
	if s.GapNs > 0 && s.Send == Cyclic {
		return problemf(ErrSendType, "a least gap is of frames sent on change; this one is sent in its cycle")
	}
	if s.Repeats > 0 && s.Send == Cyclic {
		return problemf(ErrSendType, "repetitions are of frames sent on change; this one is sent in its cycle")
	}
	if s.Repeats < 0 || s.EveryNs < 0 || s.EveryNs%period != 0 {
		return problemf(ErrTime, "%d repetitions every %g ms: not a number, and a multiple of the period %g ms", s.Repeats, ms(s.EveryNs), ms(period))
	}
	t.GapTicks, t.Repeats = max(1, s.GapNs/period), int64(s.Repeats)
	t.EveryTicks = max(t.GapTicks, s.EveryNs/period)
	if s.Send == OnChange {
		if s.CycleNs != 0 || s.PhaseNs > 0 {
			return problemf(ErrSendType, "it is sent on change, and has no cycle or phase")
		}
		return nil
	}
	switch {
	case !(s.CycleNs > 0) || s.CycleNs%period != 0:
		return problemf(ErrTime, "cycle %g ms is not a positive multiple of the period %g ms", ms(s.CycleNs), ms(period))
	case s.PhaseNs == FreePhase:
		t.PhaseTicks = -1
	case s.PhaseNs < 0 || s.PhaseNs >= s.CycleNs || s.PhaseNs%period != 0:
		return problemf(ErrTime, "phase %g ms is not a multiple of the period %g ms from 0 to less than the cycle %g ms",
			ms(s.PhaseNs), ms(period), ms(s.CycleNs))
	default:
		t.PhaseTicks = s.PhaseNs / period
	}
	t.CycleTicks = s.CycleNs / period
	return nil
}

// take notes what a signal carries.
func (f *layout) take(s *messages.Signal, what string) {
	f.used[s] = what
	bits, _ := s.Bits()
	f.taken.Join(&bits)
}

// protect adds a protection.
func (f *layout) protect(t *Tx, spec messages.ProtectionSpec) error {
	p, err := newProtection(spec, f.msg)
	if err != nil {
		return err
	}
	if n := len(t.Protect); n+1 > maxGroups || t.HasCounter && n+2 > maxGroups {
		return problemf(ErrProtection, "a frame has at most %d counters", maxGroups)
	}
	for _, split := range []*Split{&p.Counter, &p.Checksum, &p.Nibble} {
		bits := split.bits()
		if bits.Overlaps(&f.taken) {
			return problemf(ErrTaken, "protection %s: its bits carry something already", spec.Profile)
		}
		f.taken.Join(&bits)
	}
	t.Protect = append(t.Protect, p)
	return nil
}

// bits are where s is.
func (s *Split) bits() (bits messages.Bits) {
	for _, p := range s.Part[:s.N] {
		for i := range int(p.Len) {
			at := int(p.Shift) + i
			if p.Big { // counted from the last byte's lowest
				at = 8*(7-at/8) + at%8
			}
			at += 8 * int(p.At)
			bits[at/64] |= 1 << (at % 64)
		}
	}
	return bits
}

// send adds a sent signal.
func (b *binder) send(l Link) error {
	msg, sig, index, err := b.ends(l, "output", b.outputs)
	if err != nil {
		return err
	}
	i := b.sent(msg.Name)
	if i < 0 {
		return problemf(ErrSendType, "the message has no cycle: say when it is sent")
	}
	if sig.Multiplexor {
		return problemf(ErrKind, "the signal (%s) says which others are in the frame: give it a constant value", b.where(sig))
	}
	if err := b.free(b.frames[i], sig); err != nil {
		return err
	}
	f, err := b.field(sig, index, &b.outputs[index])
	if err != nil {
		return err
	}
	beyond := b.outputs[index].Beyond
	if f.Wraps, f.Rests = beyond == units.Wraps, beyond == units.Rests; f.Wraps && f.Float {
		return problemf(ErrKind, "the port is a count, and the signal (%s) a floating-point number, which does not count on beyond its digits; take one of whole numbers", b.where(sig))
	}
	b.frames[i].take(sig, "port "+l.Port)
	b.m.Tx[i].Fields = append(b.m.Tx[i].Fields, f)
	return nil
}

// free tells whether the bits of sig are.
func (b *binder) free(f *layout, sig *messages.Signal) error {
	if what, ok := f.used[sig]; ok {
		return problemf(ErrTaken, "the signal carries %s already", what)
	}
	for i := range f.msg.Signals {
		other := &f.msg.Signals[i]
		if what, ok := f.used[other]; ok && sig.Overlaps(other) {
			return problemf(ErrTaken, "the signal (%s) overlaps %q (%s), which carries %s", b.where(sig), other.Name, b.where(other), what)
		}
	}
	if bits, _ := sig.Bits(); bits.Overlaps(&f.taken) {
		return problemf(ErrTaken, "the signal (%s) is where the protection of the frame is", b.where(sig))
	}
	return nil
}

// fill gives the signals of a sent message that no port drives their values.
func (b *binder) fill(i int) error {
	s, t, f := &b.spec.Sendings[i], &b.m.Tx[i], b.frames[i]
	for k := range s.Values {
		if err := b.constant(t, f, &s.Values[k]); err != nil {
			return &partError{"values", k, fmt.Errorf("signal %s: %w", s.Values[k].Signal, err)}
		}
	}
	for k := range f.msg.Signals {
		sig := &f.msg.Signals[k]
		if _, ok := f.used[sig]; ok {
			if sel := f.absent(sig); sel != nil {
				return problemf(ErrMultiplexor, "signal %s is in a frame only if %s (%s) is %v: give %s a constant value (values: {%s: %d})",
					sig.Name, sel.Under, b.where(sig), ranges(sel), sel.Under, sel.Under, sel.Ranges[0][0])
			}
		}
	}
	b.rest(t, f)
	return nil
}

// constant gives a signal a constant value or a course.
func (b *binder) constant(t *Tx, f *layout, c *Constant) error {
	sig, err := b.signal(f.msg, c.Signal)
	if err != nil {
		return err
	}
	if err := b.free(f, sig); err != nil {
		return err
	}
	if c.Course == nil {
		raw, err := parseRaw(sig, c.Text)
		if err != nil {
			return err
		}
		f.take(sig, "a constant")
		if !b.reach(t, sig, raw) {
			f.put(t, sig, raw)
		}
		return nil
	}
	if sig.Multiplexor {
		return problemf(ErrKind, "it says which signals are in the frame: a constant is wanted")
	}
	if err := c.Course.Check(); err != nil {
		return err
	}
	field, err := b.field(sig, -1, &units.Port{Unit: sig.Unit, Min: math.Inf(-1), Max: math.Inf(1)})
	if err != nil {
		return err
	}
	for i, v := range c.Course.Value {
		if raw := (v - field.Offset) / field.Factor; !(raw >= field.Lo-0.5 && raw <= field.Hi+0.5) {
			return problemf(ErrRange, "point %d of its course, %g %s, is beyond what it can carry", i+1, v, sig.Unit)
		}
	}
	f.take(sig, "a course")
	t.Courses = append(t.Courses, *c.Course)
	field.Course = len(t.Courses)
	t.Fields = append(t.Fields, field)
	return nil
}

// reach makes a constant a field with a course of one point, so that what changes
// values while running finds it; false: the number is no exact one, or says which
// signals are in the frame, and the bits stay in every frame as they are.
func (b *binder) reach(t *Tx, sig *messages.Signal, raw uint64) bool {
	d := Field{Name: sig.Name, Index: -1, Course: len(t.Courses) + 1, Factor: sig.Factor, Offset: sig.Offset}
	d.place(sig)
	d.Lo, d.Hi = d.span()
	v := d.number(raw)*d.Factor + d.Offset
	if sig.Multiplexor || math.IsNaN(v) || math.IsInf(v, 0) {
		return false
	}
	t.Courses, t.Fields = append(t.Courses, Course{At: []int64{0}, Value: []float64{v}}), append(t.Fields, d)
	if got, ok := (&Map{}).raw(t, &d, 0, nil, false); ok && got == raw&d.mask() {
		return true
	}
	t.Courses, t.Fields = t.Courses[:len(t.Courses)-1], t.Fields[:len(t.Fields)-1]
	return false
}

// put makes raw bits part of what the frame always carries.
func (f *layout) put(t *Tx, sig *messages.Signal, raw uint64) {
	var at Field
	at.place(sig)
	at.store(&t.Base, raw&at.mask())
	f.raw[sig.Name] = raw & at.mask()
}

// absent returns the signal of sig's chain of multiplexors that keeps it out of the
// frame; nil: it is in it.
func (f *layout) absent(sig *messages.Signal) *messages.Signal {
	for sig.Under != "" {
		raw, given := f.raw[sig.Under]
		if !given || !within(sig.Ranges, raw) {
			return sig
		}
		sig = f.msg.Signal(sig.Under)
	}
	return nil
}

// rest fills what carries nothing yet: start values, and ones in a J1939 message.
func (b *binder) rest(t *Tx, f *layout) {
	for i := range f.msg.Signals { // a signal stands after its multiplexor only mostly
		for k := range f.msg.Signals[:i+1] {
			sig := &f.msg.Signals[k]
			bits, _ := sig.Bits()
			if _, ok := f.used[sig]; ok || !sig.HasInitial || bits.Overlaps(&f.taken) || f.absent(sig) != nil {
				continue
			}
			f.take(sig, "its start value")
			f.put(t, sig, initialRaw(sig))
		}
	}
	if !f.msg.J1939 {
		return
	}
	for at := range 8 * t.Len {
		if f.taken[at/64]>>(at%64)&1 == 0 {
			t.Base[at/8] |= 1 << (at % 8)
		}
	}
}

// initialRaw is the start value as raw bits, within what they hold.
func initialRaw(s *messages.Signal) uint64 {
	var f Field
	f.place(s)
	lo, hi := f.span()
	v := s.Initial
	if !s.Float {
		v = whole(v)
	}
	return f.bits(min(max(v, lo), hi))
}

// ranges are those of a multiplexed signal, for messages.
func ranges(s *messages.Signal) string {
	text := ""
	for i, r := range s.Ranges {
		if i > 0 {
			text += ", "
		}
		if text += fmt.Sprint(r[0]); r[1] > r[0] {
			text += fmt.Sprintf("-%d", r[1])
		}
	}
	return text
}
