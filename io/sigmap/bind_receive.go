package sigmap

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/messages"
	"lockstep/model/units"
)

// receive adds a received signal.
func (b *binder) receive(l Link) error {
	msg, sig, index, err := b.ends(l, "input", b.inputs)
	if err != nil {
		return err
	}
	if other, ok := b.driven[index]; ok {
		return problemf(ErrTaken, "the port is driven by %s already", b.driver(other, index))
	}
	rx, err := b.received(msg)
	if err != nil {
		return err
	}
	port := &b.inputs[index]
	f, err := b.field(sig, index, port)
	if err != nil {
		return err
	}
	f.limit(port.Min, port.Max)
	if !(f.Lo <= f.Hi) {
		return problemf(ErrRange, "no value of the signal, [%g|%g] %q, is within the port's %g to %g %q",
			sig.Min, sig.Max, sig.Unit, port.Min, port.Max, port.Unit)
	}
	for at := sig; at.Under != ""; {
		by := msg.Signal(at.Under)
		s := Selector{Ranges: at.Ranges}
		s.At.place(by)
		f.When = append(f.When, s)
		at = by
	}
	if msg.J1939 {
		f.Invalid = codes(sig)
	}
	b.driven[index] = msg
	rx.Fields = append(rx.Fields, f)
	return nil
}

// driver names the signal of msg that drives an input.
func (b *binder) driver(msg *messages.Message, index int) string {
	for _, l := range b.spec.Receive {
		if l.Message == msg.Name && l.Port == b.inputs[index].Name {
			return msg.Name + "." + l.Signal
		}
	}
	return msg.Name
}

// received returns the entry of msg, a new one at first.
func (b *binder) received(msg *messages.Message) (*Rx, error) {
	if b.sent(msg.Name) >= 0 {
		return nil, problemf(ErrTaken, "the message is sent too")
	}
	i := slices.IndexFunc(b.m.Rx, func(r Rx) bool { return r.Name == msg.Name })
	if i < 0 {
		i = len(b.m.Rx)
		b.m.Rx = append(b.m.Rx, Rx{Name: msg.Name, ID: msg.ID, Len: msg.Len, TimeoutTicks: DefaultTimeout})
	}
	return &b.m.Rx[i], nil
}

// codes are the raw values with which SAE J1939-71 says "error" and "not available",
// from 0xFE of the highest byte on, or of two and four bits the last two. A value
// that the database gives another meaning has that one.
func codes(s *messages.Signal) (list [][2]uint64) {
	var f Field
	f.place(s)
	top := f.mask()
	switch {
	case s.Float || s.Signed:
		return nil
	case s.Len%8 == 0:
		list = [][2]uint64{{0xFE << (s.Len - 8), top}}
	case s.Len == 2 || s.Len == 4:
		for raw := top - 1; raw <= top; raw++ {
			if !means(s, raw) {
				list = append(list, [2]uint64{raw, raw})
			}
		}
	}
	return list
}

// means tells whether the database gives a raw value a text that is not about its
// being none.
func means(s *messages.Signal, raw uint64) bool {
	for _, v := range s.Values {
		if uint64(v.Raw) != raw {
			continue
		}
		text := strings.ToLower(v.Text)
		for _, none := range []string{"error", "avail", "n/a", "sna", "invalid", "reserved", "fault", "don't care", "no action", "take no"} {
			if strings.Contains(text, none) {
				return false
			}
		}
		return true
	}
	return false
}

// reception sets what is expected of a received message.
func (b *binder) reception(s *Reception) error {
	msg, err := b.message(s.Message)
	if err != nil {
		return err
	}
	rx, err := b.received(msg)
	switch {
	case err != nil:
		return err
	case s.CycleNs < 0 || s.TimeoutNs < DefaultTimeout || s.FirstNs < 0:
		return problemf(ErrTime, "cycle %g ms, timeout %g ms, first %g ms", ms(s.CycleNs), ms(s.TimeoutNs), ms(s.FirstNs))
	case s.FirstNs > 0 && s.TimeoutNs == 0:
		return problemf(ErrTime, "a timeout of the first frame where there is none of the others")
	case s.DLC != 0 && s.DLC != messages.FrameLen(s.DLC):
		return problemf(ErrLength, "no CAN frame has %d bytes", s.DLC)
	}
	if s.DLC > 0 {
		rx.Len, rx.Exact = s.DLC, true
	}
	rx.CycleTicks = int64(math.RoundToEven(float64(cmp.Or(s.CycleNs, msg.CycleNs)) / float64(b.spec.PeriodNs)))
	if s.CycleNs > 0 {
		rx.CycleTicks = max(1, rx.CycleTicks)
	}
	rx.TimeoutTicks = s.TimeoutNs
	if s.TimeoutNs > 0 {
		rx.TimeoutTicks = max(1, s.TimeoutNs/b.spec.PeriodNs)
	}
	rx.FirstTicks = s.FirstNs / b.spec.PeriodNs
	for i, spec := range s.Protect {
		p, err := newProtection(spec, msg)
		if err != nil {
			return &partError{"protect", i, err}
		}
		if int(p.Need) > rx.Len {
			return &partError{"protect", i, problemf(ErrLength, "protection %s needs %d bytes, a frame has %d", spec.Profile, p.Need, rx.Len)}
		}
		rx.Protect = append(rx.Protect, p)
	}
	if err := b.reaction(&rx.OnTimeout, &s.OnTimeout, "on_timeout", msg); err != nil {
		return err
	}
	if err := b.reaction(&rx.OnError, &s.OnError, "on_error", msg); err != nil {
		return err
	}
	switch {
	case s.OnTimeout.Action != Hold && (s.TimeoutNs == 0 || s.TimeoutNs == DefaultTimeout && cmp.Or(s.CycleNs, msg.CycleNs) == 0):
		return problemf(ErrReaction, "on_timeout: the message has no timeout: give one, or a cycle")
	case s.OnError.Action != Hold && len(s.Protect) == 0:
		return problemf(ErrReaction, "on_error: the message has no protection that could be wrong")
	}
	for i := range s.Invalid {
		if err := b.invalid(rx, msg, &s.Invalid[i]); err != nil {
			return &partError{"invalid", i, fmt.Errorf("invalid: signal %s: %w", s.Invalid[i].Signal, err)}
		}
	}
	return b.fits(rx, msg)
}

// fits sees to it that the bound signals are in a frame of the length declared.
func (b *binder) fits(rx *Rx, msg *messages.Message) error {
	for _, l := range b.spec.Receive {
		if l.Message != msg.Name {
			continue
		}
		sig := msg.Signal(l.Signal)
		for at := sig; ; at = msg.Signal(at.Under) {
			if bits, _ := at.Bits(); bits.Bytes() > rx.Len {
				return problemf(ErrLength, "signal %s is beyond a frame of %d bytes", at.Name, rx.Len)
			}
			if at.Under == "" {
				break
			}
		}
	}
	return nil
}

// reaction compiles what follows when msg is not to be relied upon.
func (b *binder) reaction(r *Reaction, s *ReactionSpec, part string, msg *messages.Message) error {
	r.Action = s.Action
	if s.Action == Substitute && len(s.Values) == 0 {
		return problemf(ErrReaction, "%s: substitute names no port", part)
	}
	for i, v := range s.Values {
		index, err := find(v.Port, "input", b.inputs)
		if err == nil && b.driven[index] != msg {
			err = problemf(ErrReaction, "the message does not drive port %s", v.Port)
		}
		value := 0.0
		if err == nil {
			if value, err = units.Quantity(v.Text, b.inputs[index].Unit, nil); err != nil {
				err = &problem{ErrUnit, err}
			}
		}
		if err == nil && !(value >= b.inputs[index].Min && value <= b.inputs[index].Max) {
			err = problemf(ErrRange, "port %s takes %s, not %s", v.Port, between(b.inputs[index].Min, b.inputs[index].Max, b.inputs[index].Unit), v.Text)
		}
		if err != nil {
			return &partError{part, i, fmt.Errorf("%s: %w", part, err)}
		}
		r.Values = append(r.Values, SubstituteValue{index, value})
	}
	return nil
}

// invalid sets the raw values of a signal that are none.
func (b *binder) invalid(rx *Rx, msg *messages.Message, s *InvalidSpec) error {
	sig, err := b.signal(msg, s.Signal)
	if err != nil {
		return err
	}
	var list [][2]uint64
	for _, text := range s.Values {
		r, err := parseRawRange(sig, text)
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	bound := false
	for _, l := range b.spec.Receive {
		if l.Message != msg.Name || l.Signal != s.Signal {
			continue
		}
		for j := range rx.Fields {
			if b.inputs[rx.Fields[j].Index].Name == l.Port {
				rx.Fields[j].Invalid, bound = list, true
			}
		}
	}
	if !bound {
		return problemf(ErrUnknown, "no port is driven by it")
	}
	return nil
}

// parseRawRange reads a raw value, "255" or "0xFF", a range of them, "250-255", or a text of
// the signal's values.
func parseRawRange(s *messages.Signal, text string) (r [2]uint64, err error) {
	var f Field
	f.place(s)
	var texts []string
	for _, v := range s.Values {
		if v.Text == text {
			raw := uint64(v.Raw) & f.mask()
			return [2]uint64{raw, raw}, nil
		}
		texts = append(texts, v.Text)
	}
	lo, hi, isRange := strings.Cut(text, "-")
	if !isRange {
		hi = lo
	}
	for i, part := range []string{lo, hi} {
		if r[i], err = strconv.ParseUint(strings.TrimSpace(part), 0, 64); err != nil {
			if len(texts) > 0 {
				return r, problemf(ErrValue, "%q is no raw value (255), no range (250-255) and none of its texts; %s", text, nearest(text, texts))
			}
			return r, problemf(ErrValue, "%q is no raw value (255) or range of them (250-255)", text)
		}
	}
	if r[0] > r[1] || r[1] > f.mask() {
		return r, problemf(ErrRange, "%q: raw values of %d bits are 0 to %d, the lower first", text, s.Len, f.mask())
	}
	return r, nil
}

// expect completes what is known of a received message by the database.
func (b *binder) expect(rx *Rx) {
	i := slices.IndexFunc(b.db.Messages, func(m messages.Message) bool { return m.ID == rx.ID })
	if rx.CycleTicks == 0 {
		rx.CycleTicks = int64(math.RoundToEven(float64(b.db.Messages[i].CycleNs) / float64(b.spec.PeriodNs)))
		if b.db.Messages[i].CycleNs > 0 {
			rx.CycleTicks = max(1, rx.CycleTicks)
		}
	}
	if rx.TimeoutTicks == DefaultTimeout {
		rx.TimeoutTicks = 3 * rx.CycleTicks
	}
	rx.FirstTicks = max(rx.FirstTicks, rx.TimeoutTicks)
	rx.NextNo = rx.CycleTicks + rx.CycleTicks/2 + 1
}
