package sigmap

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/messages"
	"lockstep/model/units"
)

// txLayout holds the layout of a sent message during Bind.
type txLayout struct {
	msg      *messages.Message
	excerpt  *excerpt                    // of a message of more than 64 bytes, with msg; else nil
	pages    []page                      // pages of a multiplexed message in the order sent; else one
	reserved messages.Bits               // bits of counters and checksums
	used     map[*messages.Signal]string // use of each signal, for errors
}

// addSending adds a sent message.
func (b *binder) addSending(s *Sending) {
	msg := b.findMessage(s.Message)
	if b.txIndex(msg.Name) >= 0 {
		refuse("given twice")
	}
	t := Tx{Name: msg.Name, ID: b.sendID(msg, s), Len: msg.Len, Send: s.Send}
	switch {
	case msg.J1939 && b.sizeOf(msg) > 8:
		t.Flags = can.FlagLong
		checkLong(b.sizeOf(msg), s, t.ID)
	case msg.IsFD():
		t.Flags = can.FlagFDF
	}
	if msg.BRS {
		t.Flags |= can.FlagBRS
	}
	b.setTiming(s, &t)
	f := &txLayout{msg: msg, excerpt: b.excerpts[msg.Name], used: map[*messages.Signal]string{}}
	f.setPages(s)
	if s.Counter != "" {
		inContext("counter", func() { b.addCounter(s, &t, f) })
	}
	eachItem("protect", s.Protect, func(p *ProtectionSpec) { f.addProtection(&t, *p) })
	b.m.Tx, b.frames = append(b.m.Tx, t), append(b.frames, f)
}

// addCounter makes a signal the frame counter of t.
func (b *binder) addCounter(s *Sending, t *Tx, f *txLayout) {
	sig := b.findSignal(f.msg, s.Counter)
	if sig.Float || f.msg.Selects(sig) || sig.MuxedBy != "" {
		refuse("signal %s (%s) is a floating-point number, a multiplexor, or not in every frame",
			s.Counter, b.lineOf(sig))
	}

	f.markUsed(sig, "the counter")
	t.HasCounter = true
	t.Counter = rawField(sig)
	t.Counter.Signed = false
	_, t.Counter.Hi = t.Counter.rawRange()
}

// setTiming sets cycle, phase and repetitions of t.
func (b *binder) setTiming(s *Sending, t *Tx) {
	period := b.m.PeriodNs
	switch {
	case s.GapNs < 0 || s.GapNs%period != 0:
		refuse("min_gap %g ms is not a multiple of the period %g ms", ms(s.GapNs), ms(period))
	case s.GapNs > 0 && s.Send == Cyclic:
		refuse("min_gap needs a frame sent on change; this one is cyclic")
	case s.Repeats > 0 && s.Send == Cyclic:
		refuse("repetitions need a frame sent on change; this one is cyclic")
	case s.Repeats < 0 || s.EveryNs < 0 || s.EveryNs%period != 0:
		refuse("%d repetitions every %g ms: not a number, and a multiple of the period %g ms",
			s.Repeats, ms(s.EveryNs), ms(period))
	case s.Send == OnChange && (s.CycleNs != 0 || s.PhaseNs > 0):
		refuse("it is sent on change, and has no cycle or phase")
	case s.Send == OnChange:
		t.CycleTicks = 1
	case !(s.CycleNs > 0) || s.CycleNs%period != 0:
		refuse("cycle %g ms is not a positive multiple of the period %g ms", ms(s.CycleNs), ms(period))
	case s.PhaseNs == FreePhase:
		t.CycleTicks, t.PhaseTicks = s.CycleNs/period, -1
	case s.PhaseNs < 0 || s.PhaseNs >= s.CycleNs || s.PhaseNs%period != 0:
		refuse("phase %g ms is not a multiple of the period %g ms from 0 to less than the cycle %g ms",
			ms(s.PhaseNs), ms(period), ms(s.CycleNs))
	default:
		t.CycleTicks, t.PhaseTicks = s.CycleNs/period, s.PhaseNs/period
	}

	t.GapTicks, t.Repeats = max(1, s.GapNs/period), int64(s.Repeats)
	t.EveryTicks = max(t.GapTicks, s.EveryNs/period)
}

// markUsed marks the bits of a signal as used for what, on the pages that have the signal.
func (f *txLayout) markUsed(s *messages.Signal, what string) {
	f.used[s] = what
	bits, _ := s.Bits()
	for i := range f.pages {
		if f.excludedBy(&f.pages[i], s) == nil {
			f.pages[i].taken.Add(&bits)
		}
	}
}

// checkGroups checks that a frame with these protections can take a further one: the faults of package
// fault keep all counters of a frame in 64 bits. others is the length of counters without protection.
func checkGroups(list []Protection, next *Protection, others int) {
	counts := next.Counter.Bits() + others
	for i := range list {
		counts += list[i].Counter.Bits()
	}
	switch {
	case len(list) == MaxGroups:
		refuse("a frame has at most %d protections", MaxGroups)
	case counts > 64:
		refuse("the counters of the frame have %d bits; together at most 64 are possible", counts)
	}
}

// addProtection adds a protection.
func (f *txLayout) addProtection(t *Tx, spec ProtectionSpec) {
	p := newProtection(spec, f.msg)
	checkGroups(t.Protect, &p, int(t.Counter.Len))
	for _, part := range p.parts() {
		bits := part.at.bits()
		for i := range f.pages {
			if bits.Overlaps(&f.pages[i].taken) {
				refuse("protection %s: its bits are in use already", spec.Profile)
			}
			f.pages[i].taken.Add(&bits)
		}
		f.reserved.Add(&bits)
	}

	t.Protect = append(t.Protect, p)
}

// addSent adds a sent signal.
func (b *binder) addSent(l *Link) {
	msg, sig, index := b.findEnds(l, "output", b.outputs)
	i := b.txIndex(msg.Name)
	if i < 0 {
		refuse("the message has no cycle: give it an entry in frames")
	}
	if msg.Selects(sig) {
		refuse("the signal (%s) is a multiplexor: give it a constant value, or send every page (mux: all)", b.lineOf(sig))
	}
	b.checkFree(b.frames[i], sig)
	f := b.compileField(msg, sig, index, &b.outputs[index])
	f.When = b.frames[i].selectors(sig)
	beyond := b.outputs[index].Beyond
	if f.Wraps, f.Rests = beyond == units.Wraps, beyond == units.Rests; f.Wraps && f.Float {
		refuse("the port is a count, and the signal (%s) a floating-point number, "+
			"which is not exact for large counts; use an integer signal", b.lineOf(sig))
	}

	b.frames[i].markUsed(sig, "port "+l.Port)
	b.m.Tx[i].Fields = append(b.m.Tx[i].Fields, f)
}

// checkFree refuses sig if its bits are in use.
func (b *binder) checkFree(f *txLayout, sig *messages.Signal) {
	if what, ok := f.used[sig]; ok {
		refuse("the signal carries %s already", what)
	}
	bits, _ := sig.Bits()
	for i := range f.msg.Signals {
		other := &f.msg.Signals[i]
		taken, _ := other.Bits()
		if what, ok := f.used[other]; ok && bits.Overlaps(&taken) && f.haveCommonPage(sig, other) {
			refuse("the signal (%s) overlaps %q (%s), which carries %s",
				b.lineOf(sig), other.Name, b.lineOf(other), what)
		}
	}

	if bits.Overlaps(&f.reserved) {
		refuse("the signal (%s) overlaps the protection of the frame", b.lineOf(sig))
	}
}

// fillUnbound sets the values of signals of a sent message that no port drives.
func (b *binder) fillUnbound(s *Sending) {
	i := b.txIndex(s.Message)
	t, f := &b.m.Tx[i], b.frames[i]
	eachItem("values", s.Values, func(c *Constant) {
		inContext("signal "+c.Signal, func() { b.addConstant(t, f, c) })
	})
	for k := range f.msg.Signals {
		sig := &f.msg.Signals[k]
		sel := f.excludedFromAll(sig)
		if _, ok := f.used[sig]; ok && sel != nil {
			refuse("signal %s is in a frame only if %s (%s) is %v: give %s a constant value (values: {%s: %d}), or send every page (mux: all)",
				sig.Name, sel.MuxedBy, b.lineOf(sig), formatRanges(sel), sel.MuxedBy, sel.MuxedBy, sel.Ranges[0][0])
		}
	}

	b.fillRest(t, f, s.Restbus)
}

// addConstant gives a signal a constant value or a waveform.
func (b *binder) addConstant(t *Tx, f *txLayout, c *Constant) {
	sig := b.findSignal(f.msg, c.Signal)
	b.checkFree(f, sig)
	if c.Waveform == nil {
		raw := parseRaw(sig, c.Text)
		f.markUsed(sig, "a constant")
		if f.msg.Selects(sig) || !b.addConstantField(t, f, sig, raw) {
			f.setBase(sig, raw)
		}
		return
	}

	if f.msg.Selects(sig) {
		refuse("the signal is a multiplexor: expected a constant, got a waveform")
	}
	if err := c.Waveform.Check(); err != nil {
		refuse("%w", err)
	}
	field := b.compileField(f.msg, sig, -1, &units.Port{Unit: sig.Unit, Min: math.Inf(-1), Max: math.Inf(1)})
	for i, v := range c.Waveform.Value {
		if raw := (v - field.Offset) / field.Factor; !(raw >= field.Lo-0.5 && raw <= field.Hi+0.5) {
			refuse("point %d of its waveform, %g %s, is beyond the signal's range", i+1, v, sig.Unit)
		}
	}

	f.markUsed(sig, "a waveform")
	t.Waveforms = append(t.Waveforms, *c.Waveform)
	field.Waveform, field.When = len(t.Waveforms), f.selectors(sig)
	t.Fields = append(t.Fields, field)
}

// addConstantField makes a constant a field with a waveform of one point, so that faults and
// live commands can change it. It returns false for bits that are no number; the caller then puts
// them into Tx.Base.
func (b *binder) addConstantField(t *Tx, f *txLayout, sig *messages.Signal, raw uint64) bool {
	d := rawField(sig)
	d.When = f.selectors(sig)
	d.Index, d.Waveform, d.Factor, d.Offset = -1, len(t.Waveforms)+1, sig.Factor, sig.Offset
	d.Lo, d.Hi = d.rawRange()
	v := min(max(d.rawNumber(raw), d.Lo), d.Hi)*d.Factor + d.Offset
	whole := !sig.Float && sig.Len > 53
	t.Waveforms = append(t.Waveforms, Waveform{At: []int64{0}, Value: []float64{v}, Whole: whole, Raw: raw})
	t.Fields = append(t.Fields, d)
	if got, ok := (&Map{}).rawValue(t, &d, 0, nil, false); ok && got == raw&d.mask() {
		return true
	}
	t.Waveforms, t.Fields = t.Waveforms[:len(t.Waveforms)-1], t.Fields[:len(t.Fields)-1]
	return false
}

// fillRest fills unused bits: with start values, and in a J1939 message with ones. In a message of
// the restbus all signals become fields. Then it sets the data of the frame, or of each of its pages.
func (b *binder) fillRest(t *Tx, f *txLayout, restbus bool) {
	if restbus {
		b.addRestbusFields(t, f)
	}
	for i := range f.pages {
		p := &f.pages[i]
		f.fillStartValues(p, false)
		if f.excerpt != nil {
			t.Excerpt = Excerpt{f.excerpt.At, f.excerpt.rest(p)}
		}
		for at := range 8 * t.Len {
			switch {
			case !f.msg.J1939 || p.taken[at/64]>>(at%64)&1 == 1:
			case f.excerpt != nil:
				p.base[at/8] |= t.Excerpt.Rest[t.Excerpt.At[at/8]] & (1 << (at % 8))
			default:
				p.base[at/8] |= 1 << (at % 8)
			}
		}
		t.Pages = append(t.Pages, p.base)
	}
	if t.Base = t.Pages[0]; len(t.Pages) == 1 {
		t.Pages = nil
	}
}

// addRestbusFields makes the unused signals of a message fields, those with a start value first, so that
// a stimulus can set them. A multiplexor keeps its value.
func (b *binder) addRestbusFields(t *Tx, f *txLayout) {
	for i := range f.pages {
		f.fillStartValues(&f.pages[i], true)
	}
	for _, initial := range []bool{true, false} {
		for i := range f.msg.Signals {
			sig := &f.msg.Signals[i]
			_, used := f.used[sig]
			if used || sig.HasInitial != initial || f.msg.Selects(sig) || f.excludedFromAll(sig) != nil || f.isTaken(sig) {
				continue
			}
			raw := uint64(0)
			switch at := rawField(sig); {
			case initial:
				raw = initialRaw(sig)
			case f.msg.J1939:
				raw = at.mask()
			}
			if b.addConstantField(t, f, sig, raw) {
				f.markUsed(sig, "its default")
			}
		}
	}
}

// isTaken reports whether bits of a signal are in use on a page that has it.
func (f *txLayout) isTaken(sig *messages.Signal) bool {
	bits, _ := sig.Bits()
	for i := range f.pages {
		if f.excludedBy(&f.pages[i], sig) == nil && bits.Overlaps(&f.pages[i].taken) {
			return true
		}
	}
	return false
}

// fillStartValues gives unused signals of a page their start values; with selectors, only multiplexors.
func (f *txLayout) fillStartValues(p *page, selectors bool) {
	for i := range f.msg.Signals { // repeat: a signal may stand before its multiplexor
		for k := range f.msg.Signals[:i+1] {
			sig := &f.msg.Signals[k]
			bits, _ := sig.Bits()
			_, used := f.used[sig]
			if used || !sig.HasInitial || selectors && !f.msg.Selects(sig) || bits.Overlaps(&p.taken) || f.excludedBy(p, sig) != nil {
				continue
			}
			p.taken.Add(&bits)
			p.set(sig, initialRaw(sig))
		}
	}
}

// initialRaw returns the start value as raw bits, limited to their range.
func initialRaw(s *messages.Signal) uint64 {
	f := rawField(s)
	if s.InitialRaw != 0 && !s.Float && s.Len > 53 {
		if s.Signed {
			most := int64(1)<<(s.Len-1) - 1
			return uint64(min(max(s.InitialRaw, -most-1), most)) & f.mask()
		}
		return min(uint64(s.InitialRaw), f.mask())
	}
	v := s.Initial
	if !s.Float {
		v = roundHalfEven(v)
	}
	return f.rawBits(min(max(v, f.Lo), f.Hi))
}

// formatRanges formats the Ranges of a multiplexed signal, for errors.
func formatRanges(s *messages.Signal) string {
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

// phaseWindow is the number of ticks that choosePhases considers.
const phaseWindow = 1 << 14

// choosePhases sets the phases left to Bind, for the shortest cycles first. It takes the
// phase with the least peak load among the ticks of the frame, the first of equal ones.
func (b *binder) choosePhases() {
	var load [phaseWindow]int // load of each tick, bits
	put := func(t *Tx) {
		for k := t.PhaseTicks; k < phaseWindow; k += t.CycleTicks {
			load[k] += t.MaxBits()
		}
	}

	var free []*Tx
	for i := range b.m.Tx {
		switch t := &b.m.Tx[i]; {
		case t.PhaseTicks < 0:
			free = append(free, t)
		case t.Send != OnChange:
			put(t)
		}
	}

	slices.SortStableFunc(free, func(x, y *Tx) int { return cmp.Compare(x.CycleTicks, y.CycleTicks) })
	for _, t := range free {
		least := 0
		for p := range min(t.CycleTicks, phaseWindow) {
			most := 0
			for k := p; k < phaseWindow; k += t.CycleTicks {
				most = max(most, load[k])
			}
			if p == 0 || most < least {
				t.PhaseTicks, least = p, most
			}
		}

		put(t)
	}
}

// BusFrames returns how many frames the bus carries for one frame of t: of a message of several frames,
// its announcement and its packets.
func (t *Tx) BusFrames() int {
	if t.Flags&can.FlagLong == 0 {
		return 1
	}
	return 1 + j1939.Packets(t.Excerpt.Size(t.Len))
}

// MaxBits returns the longest duration of a frame of t on the bus, in bit times; of a message of several
// frames, that of all its packets and of its announcement. For a
// classic frame of s bytes g + 8s + 13 + (g+8s-1)/4 with g = 34 or 54 (Davis et al.,
// Real-Time Systems 35, 2007, eq. 1); for a CAN FD frame the sum of MaxBitsFD.
func (t *Tx) MaxBits() int {
	if t.Flags&can.FlagFDF != 0 {
		slow, fast := t.MaxBitsFD()
		return slow + fast
	}

	if t.Flags&can.FlagLong != 0 {
		packet := Tx{ID: t.ID, Len: 8}
		return t.BusFrames() * packet.MaxBits()
	}

	g := 34
	if t.ID&can.EFF != 0 {
		g = 54
	}
	return g + 8*t.Len + 13 + (g+8*t.Len-1)/4
}

// MaxBitsFD returns the longest duration of a CAN FD frame in bits at the nominal rate and,
// from its BRS bit to the end of its checksum, in bits at the data rate: ISO 11898-1:2015.
// Head and data have a stuff bit after the first five bits and after each four more, none
// at their end. The stuff count and the checksum of 17 or 21 bits have fixed stuff bits.
// The end of the frame and the interframe space have 13 bits.
func (t *Tx) MaxBitsFD() (slow, fast int) {
	head := 17 // SOF, 11 of the identifier, RRS, IDE, FDF, res, BRS
	if t.ID&can.EFF != 0 {
		head = 36 // and SRR, 18 more
	}
	crc, fixed := 17, 6 // fixed stuff bits: before the stuff count, then after each 4 bits
	if t.Len > 16 {
		crc, fixed = 21, 7
	}
	slow = head + (head-1)/4 + 13
	data := 1 + 4 + 8*t.Len // ESI, DLC
	fast = data + (head+data-2)/4 - (head-1)/4 + 4 + crc + fixed
	return slow, fast
}
