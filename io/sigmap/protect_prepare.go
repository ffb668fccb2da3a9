package sigmap

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// protectionCompiler holds the state of NewProtection.
type protectionCompiler struct {
	spec        ProtectionSpec
	f           profile
	m           *messages.Message
	p           Protection
	mode        idMode        // mode of f, or of the specification
	first, last int           // first and last byte covered
	own         messages.Bits // bits of the checksum
}

// checkNumber refuses a number outside lo to hi.
func checkNumber(name string, v, lo, hi int) {
	if v < lo || v > hi {
		refuse("%s %d: %d to %d are possible", name, v, lo, hi)
	}
}

// checkHex refuses a number above limit; its error is hexadecimal.
func checkHex(name string, v, limit uint64) {
	if v > limit {
		refuse("%s 0x%X: 0 to 0x%X are possible", name, v, limit)
	}
}

// setRange sets the range of bytes covered.
func (c *protectionCompiler) setRange() {
	r := c.spec.Range
	if len(r) == 0 {
		r = []int{0, c.m.Len - 1}
	} else if len(r) != 2 || r[0] < 0 || r[0] > r[1] || r[1] >= c.m.Len {
		refuse("range %v: expected the first and the last byte covered, 0 to %d", r, c.m.Len-1)
	}

	c.first, c.last = r[0], r[1]
}

// setLength sets the lengths that a profile with a length field sends and takes, and extends the bytes
// covered to the largest.
func (c *protectionCompiler) setLength() {
	p, size := &c.p, c.last-c.first+1
	if p.Length.N == 0 {
		return
	}
	lo, hi := cmp.Or(c.spec.MinLength, size), cmp.Or(c.spec.MaxLength, size)
	header := int(p.Need) - c.first
	if lo > size || hi < size || lo < header || c.first+hi > 64 {
		refuse("length %d to %d bytes: the smallest is %d to %d, the largest %d to %d", lo, hi,
			header, size, size, 64-c.first)
	}
	p.First, p.Size, p.MinLength, p.MaxLength = uint8(c.first), uint8(size), uint8(lo), uint8(hi)
	c.last = c.first + hi - 1
}

// compilePlaces compiles the places of checksum, counter and nibble.
func (c *protectionCompiler) compilePlaces() {
	given := [...][]string{c.spec.Checksum, c.spec.Counter, c.spec.Nibble, nil, nil}
	own := [...]string{c.f.checksum, c.f.counter, "", c.f.id, c.f.length}
	if c.f.ids == idNibble {
		own[2] = "12|4"
	}
	var taken messages.Bits
	for i, part := range c.p.parts() {
		places := given[i]
		if len(places) == 0 && own[i] != "" {
			at, length, _ := strings.Cut(own[i], "|")
			bit, _ := strconv.Atoi(at)
			places = []string{fmt.Sprintf("%d|%s", bit+8*(c.first+c.spec.Offset), length)}
		}

		inContext(part.name, func() {
			split, at := compileSplit(c.m, places)
			if at.Overlaps(&taken) {
				refuse("its bits overlap another number of the protection")
			}
			if i == 0 {
				c.own = at
			}
			*part.at = split
			taken.Add(&at)
		})
	}

	c.p.Need = uint8(taken.Bytes())
}

// setCounter sets modulus and first value of the counter.
func (c *protectionCompiler) setCounter() {
	p, n := &c.p, c.spec.Modulus
	if p.Counter.N == 0 {
		if c.f.e2e() || c.f.algorithm == NoChecksum || n != 0 || c.spec.Start != nil {
			refuse("counter: no place is given")
		}
		return
	}

	most := int(p.Counter.Mask()) + 1
	if p.Counter.Bits() > 32 {
		refuse("counter: %d bits; 1 to 32 are possible", p.Counter.Bits())
	}
	if c.f.modulus > 0 && n != 0 && n != c.f.modulus {
		refuse("modulus %d: the profile's is %d", n, c.f.modulus)
	}
	n = cmp.Or(c.f.modulus, n, most)
	if n < 2 || n > most {
		refuse("modulus %d: 2 to %d are possible in the counter's %d bits", n, most, p.Counter.Bits())
	}
	start := c.f.start
	if c.spec.Start != nil {
		start = *c.spec.Start
	}
	if start < 0 || start >= n {
		refuse("start %d: the counter runs from 0 to %d", start, n-1)
	}
	p.Modulus, p.Next = uint64(n), uint64(start)
}

// checkDataIDs checks the data identifiers and sets their mode.
func (c *protectionCompiler) checkDataIDs() {
	ids, want, limit := c.spec.DataIDs, 1, uint64(0xFFFF)
	switch c.mode = c.f.ids; {
	case c.mode == noID && len(ids) == 0:
		return
	case c.mode == noID && (c.p.Counter.N == 0 || len(ids) > 16):
		refuse("data id: %d of them; up to 16 are possible, chosen by a counter", len(ids))
	case c.mode == noID:
		c.mode, want, limit = idList, len(ids), 0xFF
	case c.mode == idList:
		want, limit = 16, 0xFF
	case c.mode == idNibble:
		limit = c.p.Nibble.Mask()<<8 | 0xFF
	case c.mode == idSent:
		limit = c.p.ID.Mask()
	}

	if len(ids) != want {
		refuse("data id: %d of them are given, the profile has %d", len(ids), want)
	}
	for _, id := range ids {
		checkHex("data id", uint64(id), limit)
	}
}

// setChecksum sets the algorithm and its parameters.
func (c *protectionCompiler) setChecksum() {
	p, s, f := &c.p, &c.spec, &c.f
	if p.Algorithm = f.algorithm; p.Algorithm == NoChecksum {
		return
	}
	p.Width, p.Digit, p.Fold, p.Reflect, p.Subtract = f.width, f.digit, f.fold, s.Reflect || f.reflect, s.Subtract
	p.Init, p.XorOut = s.Init|f.init, s.XorOut|f.xor
	if p.Checksum.N == 0 {
		refuse("checksum: no place is given")
	}
	if !slices.Contains(IncludeIDs(), cmp.Or(s.IncludeID, "none")) {
		refuse("include id: %q is not none, bytes or nibbles", s.IncludeID)
	}
	have, limit := p.Checksum.Bits(), p.Checksum.Mask()
	for id, xor := range s.XorPerID {
		if xor > limit {
			refuse("xor per id: 0x%X of 0x%X: 0 to 0x%X are possible", xor, id, limit)
		}
		if id == c.m.ID&can.MaskEFF {
			p.XorOut = xor
		}
	}

	checkHex("xor out", p.XorOut, limit)
	checkHex("init", p.Init, limit)
	need := map[Fold]int{FoldTSC1: 3, FoldXBR: 4}[f.fold]
	switch poly := s.Poly | f.poly; {
	case have < need:
		refuse("checksum: its place has %d bits, %d are needed", have, need)
	case f.algorithm != CRC:
	case have != int(f.width):
		refuse("checksum: its place has %d bits, the CRC %d", have, f.width)
	case poly == 0 || poly > limit:
		refuse("poly 0x%X: 1 to 0x%X are possible, without the highest bit, which is always set", poly, limit)
	default:
		p.buildTable(poly)
	}
}

// buildTable computes the CRC table for each byte, and reflects Init if Reflect is set.
func (p *Protection) buildTable(poly uint64) {
	reflect := func(v uint64) uint64 { return bits.Reverse64(v) >> (64 - p.Width) }
	if p.Reflect {
		poly, p.Init = reflect(poly), reflect(p.Init)
	}
	for i := range p.Table {
		s := uint64(i)
		if !p.Reflect {
			s <<= p.Width - 8
		}
		for range 8 {
			switch top := uint64(1) << (p.Width - 1); {
			case p.Reflect && s&1 != 0:
				s = s>>1 ^ poly
			case p.Reflect:
				s >>= 1
			case s&top != 0:
				s = s<<1 ^ poly
			default:
				s <<= 1
			}
		}

		p.Table[i] = s & (1<<p.Width - 1)
	}
}

// listTerms lists the input bytes of the checksum in their order.
func (c *protectionCompiler) listTerms() {
	p := &c.p
	if p.Algorithm == NoChecksum {
		return
	}
	data := c.dataTerms()
	if c.spec.IncludeLength {
		p.Terms = append(p.Terms, Term{From: FromLength, Mask: 0xFF})
	}
	c.addIdentifierTerms()
	before, after := c.dataIDTerms()
	p.Terms = slices.Concat(p.Terms, before, data, after)
}

// addIdentifierTerms adds parts of the frame's identifier, the lowest first.
func (c *protectionCompiler) addIdentifierTerms() {
	piece := map[string]uint8{"bytes": 8, "nibbles": 4}[c.spec.IncludeID]
	if c.f.fold != NoFold {
		piece = 8
	}
	size := uint8(16) // bits of the whole bytes that hold 11 bits
	if c.m.ID&can.EFF != 0 {
		size = 32
	}
	for at := uint8(0); piece > 0 && at < size; at += piece {
		c.p.Terms = append(c.p.Terms, Term{From: FromIdentifier, At: at, Mask: 1<<piece - 1})
	}
}

// dataIDTerms returns the terms of the data identifiers before and after the data.
func (c *protectionCompiler) dataIDTerms() (before, after []Term) {
	if c.mode == noID {
		return nil, nil
	}
	p, ids := &c.p, c.spec.DataIDs
	p.DataID = ids[0]
	low, high := Term{From: FromConstant, Mask: uint8(ids[0])}, Term{From: FromConstant, Mask: uint8(ids[0] >> 8)}
	byCounter := []Term{{From: FromDataID, Mask: 0xFF}}
	choose := func(ids ...uint32) {
		p.IDCount = uint8(len(ids))
		for i, id := range ids {
			p.DataIDs[i] = uint8(id)
		}
	}

	switch c.mode {
	case idBoth:
		return []Term{low, high}, nil
	case idAlternating:
		choose(ids[0], ids[0]>>8)
		return byCounter, nil
	case idLow:
		return []Term{low}, nil
	case idNibble:
		return []Term{low, {From: FromConstant}}, nil
	case idAfter:
		return nil, []Term{low, high}
	case idAfterHigh:
		return nil, []Term{high, low}
	case idSent: // it is among the data
		return nil, nil
	case idList:
		choose(ids...)
		return nil, byCounter
	}

	panic("sigmap: a profile whose data identifier is not in its checksum")
}

// dataTerms lists the data bytes covered.
func (c *protectionCompiler) dataTerms() (list []Term) {
	out := c.own
	for _, place := range c.spec.Skip {
		var bits messages.Bits
		at, err := strconv.Atoi(place)
		switch {
		case err == nil && (at < 0 || at >= c.m.Len):
			refuse("skip: byte %d: the message has bytes 0 to %d", at, c.m.Len-1)
		case err == nil:
			bits[at/8] = 0xFF << (at % 8 * 8)
		default:
			inContext("skip", func() { _, bits = findPosition(c.m, place) })
		}

		out.Add(&bits)
	}

	for at := c.first; at <= c.last; at++ {
		if mask := ^byte(out[at/8] >> (at % 8 * 8)); mask != 0 {
			list = append(list, Term{From: FromData, At: uint8(at), Mask: mask})
			if c.p.Length.N == 0 {
				c.p.Need = max(c.p.Need, uint8(at+1))
			}
		}
	}

	if len(list) == 0 {
		refuse("range: bytes %d to %d hold only the checksum and skipped bits", c.first, c.last)
	}
	if c.spec.Reverse {
		slices.Reverse(list)
	}

	return list
}

// setSequence sets the limits for received counters.
func (c *protectionCompiler) setSequence() {
	p, s, most := &c.p, &c.spec, int(c.p.Modulus)-1
	p.Classic = c.f.classic
	if p.Modulus == 0 {
		if s.MaxDelta != 0 {
			refuse("max delta: there is no counter")
		}
		return
	}

	delta, stale := cmp.Or(s.MaxDelta, max(1, min(3, most-1))), most
	if s.MaxNoNew != nil {
		stale = *s.MaxNoNew
	}
	p.MaxDelta, p.MaxStale, p.SyncInit = uint64(delta), uint64(stale), uint64(s.SyncCounter)
	if c.f.e2e() && !p.Classic {
		p.Seen, p.Last = true, p.Modulus-1
	}
	checkNumber("max delta", delta, 1, most)
	checkNumber("max no new", stale, 0, most)
	checkNumber("sync counter", s.SyncCounter, 0, most)
}

// defaultLimits returns the limits of a window that the specification does not give.
func defaultLimits() WindowLimits {
	return WindowLimits{
		WindowSize:     10,
		MinOkStateInit: 2, MaxErrorStateInit: 2,
		MinOkStateValid: 1, MaxErrorStateValid: 2,
		MinOkStateInvalid: 3, MaxErrorStateInvalid: 2,
	}
}

// setWindow sets the window's limits.
func (c *protectionCompiler) setWindow() {
	w := defaultLimits()
	if c.spec.Window != nil {
		w = *c.spec.Window
	}
	c.p.Limits = w
	checkNumber("window size", w.WindowSize, 1, 64)
	ok := []int{1, w.MinOkStateValid, w.MinOkStateInit, w.MinOkStateInvalid}
	wrong := []int{0, w.MaxErrorStateInvalid, w.MaxErrorStateInit, w.MaxErrorStateValid}
	if !slices.IsSorted(ok) {
		refuse("window: min ok valid %d, init %d, invalid %d: expected 1 <= valid <= init <= invalid",
			ok[1], ok[2], ok[3])
	}

	if !slices.IsSorted(wrong) {
		refuse("window: max error valid %d, init %d, invalid %d: expected valid >= init >= invalid >= 0",
			wrong[3], wrong[2], wrong[1])
	}

	sums := [...]int{
		w.MinOkStateInit + w.MaxErrorStateInit,
		w.MinOkStateValid + w.MaxErrorStateValid,
		w.MinOkStateInvalid + w.MaxErrorStateInvalid,
	}
	for _, sum := range sums {
		if sum > w.WindowSize {
			refuse("window: min ok + max error is %d in some state, more than the window size %d", sum, w.WindowSize)
		}
	}
}
