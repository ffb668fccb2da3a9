package sigmap

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/model/units"
)

// addReceived adds a received signal.
func (b *binder) addReceived(l *Link) {
	msg, sig, index := b.findEnds(l, "input", b.inputs)
	if other, ok := b.drivers[index]; ok {
		refuse("the port is driven by %s.%s already", other.Message, other.Signal)
	}
	rx, port := b.rxOf(msg), &b.inputs[index]
	f := b.compileField(msg, sig, index, port)
	low, high := port.Accepted()
	if largest := max(math.Abs(low), math.Abs(high)); math.Abs(f.Factor) > largest && !(sig.Min < sig.Max) {
		refuse("one bit (%s) is %g %q, the input takes up to %g %q; correct the factor in the database, "+
			"or give the range of the signal in the bench: ranges: {%s.%s: [LOWEST, HIGHEST]}",
			b.lineOf(sig), sig.Factor, sig.Unit, largest, port.Unit, msg.Name, sig.Name)
	}
	f.narrow(low, high)
	if !(f.Lo <= f.Hi) {
		refuse("no value of the signal, [%g|%g] %q, is within the port's %g to %g %q",
			sig.Min, sig.Max, sig.Unit, port.Min, port.Max, port.Unit)
	}

	f.When = selectorsOf(msg, sig)
	if msg.J1939 {
		f.Invalid = j1939InvalidCodes(sig)
	}
	b.drivers[index] = *l
	rx.Fields = append(rx.Fields, f)
}

// rxOf returns the entry of msg in Map.Rx and adds it if it is new.
func (b *binder) rxOf(msg *messages.Message) *Rx {
	if b.txIndex(msg.Name) >= 0 {
		refuse("the message is sent too")
	}
	i := slices.IndexFunc(b.m.Rx, func(r Rx) bool { return r.Name == msg.Name })
	if i < 0 {
		i = len(b.m.Rx)
		b.m.Rx = append(b.m.Rx, Rx{
			Name: msg.Name, ID: msg.ID, Len: msg.Len, Size: msg.Len, Long: msg.J1939 && b.sizeOf(msg) > 8,
			Strict: true, FD: msg.IsFD(), Paired: b.isPaired(msg),
			CycleTicks: b.cycleTicks(msg.CycleNs), TimeoutTicks: DefaultTimeout,
		})
		if e := b.excerpts[msg.Name]; e != nil {
			b.m.Rx[i].Excerpt = e.Excerpt
		}
	}

	return &b.m.Rx[i]
}

// isPaired reports whether the database has a message with the number of msg and the other length of
// the identifier.
func (b *binder) isPaired(msg *messages.Message) bool {
	return slices.ContainsFunc(b.db.Messages, func(m messages.Message) bool { return m.ID == msg.ID^can.EFF })
}

// cycleTicks converts a cycle to ticks, at least 1; 0 if ns is 0.
func (b *binder) cycleTicks(ns int64) int64 {
	if ns == 0 {
		return 0
	}
	return max(1, int64(math.RoundToEven(float64(ns)/float64(b.m.PeriodNs))))
}

// j1939InvalidCodes returns the raw values that mean "error" and "not available" by SAE
// J1939-71: 0xFE and above in the highest byte, or the last two values of 2 or 4 bits.
// Values to which the database gives another meaning are excluded.
func j1939InvalidCodes(s *messages.Signal) (list [][2]uint64) {
	f := rawField(s)
	top := f.mask()
	switch {
	case s.Float || s.Signed:
		return nil
	case s.Len%8 == 0:
		list = [][2]uint64{{0xFE << (s.Len - 8), top}}
	case s.Len == 2 || s.Len == 4:
		for raw := top - 1; raw <= top; raw++ {
			if !hasMeaning(s, raw) {
				list = append(list, [2]uint64{raw, raw})
			}
		}
	}

	return list
}

// hasMeaning reports whether the database gives a raw value a text that does not say "no
// value".
func hasMeaning(s *messages.Signal, raw uint64) bool {
	for _, v := range s.Values {
		if uint64(v.Raw) != raw {
			continue
		}
		text := strings.ToLower(v.Text)
		none := []string{
			"error", "avail", "n/a", "sna", "invalid", "reserved", "fault", "don't care", "no action", "take no",
		}
		return !slices.ContainsFunc(none, func(word string) bool { return strings.Contains(text, word) })
	}

	return false
}

// setReception sets timing, protection and reactions of a received message.
func (b *binder) setReception(s *Reception) {
	msg := b.findMessage(s.Message)
	rx := b.rxOf(msg)
	switch {
	case s.CycleNs < 0 || s.TimeoutNs < DefaultTimeout || s.FirstNs < 0:
		refuse("cycle %g ms, timeout %g ms, first %g ms", ms(s.CycleNs), ms(s.TimeoutNs), ms(s.FirstNs))
	case s.FirstNs > 0 && s.TimeoutNs == 0:
		refuse("a timeout of the first frame needs a timeout of the others")
	case s.DLC != 0 && s.DLC != messages.FrameLen(s.DLC):
		refuse("no CAN frame has %d bytes", s.DLC)
	case s.BRS && !rx.FD:
		refuse("brs: the database has a classic message, which has no bit rate switch")
	}

	if s.DLC > 0 && rx.Long {
		refuse("dlc: several frames carry the message")
	}
	if n := b.sizeOf(msg); n > 64 && len(s.Protect) > 0 {
		refuse("it has %d bytes; a protection is possible up to 64", n)
	}
	if s.DLC > 0 {
		rx.Len, rx.Exact, rx.FD = s.DLC, true, rx.FD || s.DLC > 8
	}
	rx.CycleTicks = b.cycleTicks(cmp.Or(s.CycleNs, msg.CycleNs))
	rx.TimeoutTicks = s.TimeoutNs
	if s.TimeoutNs > 0 {
		rx.TimeoutTicks = max(1, s.TimeoutNs/b.m.PeriodNs)
	}
	rx.FirstTicks = s.FirstNs / b.m.PeriodNs
	rx.BRS = s.BRS
	rx.Whole = s.Rule == RangeFrame || s.Rule == RangeDefault && len(s.Protect) > 0
	eachItem("protect", s.Protect, func(spec *ProtectionSpec) {
		p := newProtection(*spec, msg)
		checkGroups(rx.Protect, &p, 0)
		if int(p.Need) > rx.Len {
			refuse("protection %s needs %d bytes, a frame has %d", spec.Profile, p.Need, rx.Len)
		}
		if p.Length.N > 0 && int(p.First+p.Size) == rx.Len && !rx.Exact {
			rx.Len = int(p.First + p.MinLength)
		}
		rx.Protect = append(rx.Protect, p)
	})

	b.compileReaction(&rx.OnTimeout, &s.OnTimeout, "on_timeout", msg)
	b.compileReaction(&rx.OnError, &s.OnError, "on_error", msg)
	switch {
	case s.OnTimeout.Action != Hold && (s.TimeoutNs == 0 || s.TimeoutNs == DefaultTimeout && cmp.Or(s.CycleNs, msg.CycleNs) == 0):
		refuse("on_timeout: the message has no timeout: give one, or a cycle")
	case s.OnError.Action != Hold && len(s.Protect) == 0:
		rx.Protect = []Protection{{Limits: defaultLimits()}}
	}

	eachItem("invalid", s.Invalid, func(v *InvalidSpec) {
		inContext("invalid: signal "+v.Signal, func() { b.setInvalid(rx, msg, v) })
	})
	rx.checkLength(msg)
}

// checkLength refuses bound signals beyond the declared length of the frame.
func (r *Rx) checkLength(msg *messages.Message) {
	for i := range r.Fields {
		needed := []*messages.Signal{msg.Signal(r.Fields[i].Name)}
		for _, s := range msg.Selectors(needed[0]) {
			needed = append(needed, msg.Signal(s.MuxedBy))
		}
		for _, s := range needed {
			bits, _ := s.Bits()
			if bits.Bytes() > r.Len {
				refuse("signal %s is beyond a frame of %d bytes", s.Name, r.Len)
			}
			for j := range r.Protect {
				p := &r.Protect[j]
				if may := byteRange(int(p.First+p.MinLength), int(p.First+p.Size)); may.Overlaps(&bits) {
					refuse("signal %s is beyond the smallest length of protection %s, %d bytes", s.Name, p.Profile, p.MinLength)
				}
			}
		}
	}
}

// byteRange returns the bits of bytes lo to hi-1.
func byteRange(lo, hi int) (bits messages.Bits) {
	for at := lo; at < hi; at++ {
		bits[at/8] |= 0xFF << (at % 8 * 8)
	}
	return bits
}

// compileReaction compiles a reaction to missing or invalid frames of msg.
func (b *binder) compileReaction(r *Reaction, s *ReactionSpec, part string, msg *messages.Message) {
	r.Action = s.Action
	if s.Action == Substitute && len(s.Values) == 0 {
		refuse("%s: substitute names no port", part)
	}
	eachItem(part, s.Values, func(v *PortValue) {
		inContext(part, func() { r.Values = append(r.Values, b.compileSubstitute(v, msg)) })
	})
}

// compileSubstitute compiles the substitute value of an input that msg drives.
func (b *binder) compileSubstitute(v *PortValue, msg *messages.Message) SubstituteValue {
	index := findPort(v.Port, "input", b.inputs)
	port := &b.inputs[index]
	if b.drivers[index].Message != msg.Name {
		refuse("the message does not drive port %s", v.Port)
	}
	unit := port.DeclaredUnit()
	value, err := unit.Typed(v.Text)
	if err != nil {
		refuse("%s: %s", v.Port, units.Reason(err))
	}
	if !(value >= port.Min && value <= port.Max) {
		refuse("port %s takes %s, not %s", v.Port, unit.FormatRange(port.Min, port.Max), v.Text)
	}
	return SubstituteValue{index, value}
}

// setInvalid sets the raw values of a signal that mean "no value".
func (b *binder) setInvalid(rx *Rx, msg *messages.Message, s *InvalidSpec) {
	sig := b.findSignal(msg, s.Signal)
	var list [][2]uint64
	for _, text := range s.Values {
		list = append(list, parseRawRange(sig, text))
	}
	bound := false
	for i := range rx.Fields {
		if f := &rx.Fields[i]; f.Name == s.Signal {
			f.Invalid, bound = list, true
		}
	}

	if !bound {
		refuse("the signal drives no port")
	}
}

// parseRawRange reads a raw value, "255" or "0xFF", a range "250-255", or a value text of the
// signal.
func parseRawRange(s *messages.Signal, text string) (r [2]uint64) {
	f := rawField(s)
	i, near := findByName(s.Values, text, valueText)
	if i >= 0 {
		raw := uint64(s.Values[i].Raw) & f.mask()
		return [2]uint64{raw, raw}
	}

	lo, hi, isRange := strings.Cut(text, "-")
	if !isRange {
		hi = lo
	}
	for i, part := range []string{lo, hi} {
		var err error
		if r[i], err = strconv.ParseUint(strings.TrimSpace(part), 0, 64); err != nil {
			refuse("%q is not a raw value (255) or a range (250-255)%s", text, notAText(s, near))
		}
	}

	if r[0] > r[1] || r[1] > f.mask() {
		refuse("%q: raw values of %d bits are 0 to %d, the lower first", text, s.Len, f.mask())
	}
	return r
}
