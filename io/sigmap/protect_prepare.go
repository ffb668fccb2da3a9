package sigmap

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// span finds the range of bytes.
func (c *protector) span() error {
	r := c.spec.Range
	c.first, c.last = 0, c.m.Len-1
	switch {
	case len(r) == 0:
	case len(r) != 2 || r[0] < 0 || r[0] > r[1] || r[1] >= c.m.Len:
		return fmt.Errorf("range %v: want the first and the last byte covered, of 0 to %d", r, c.m.Len-1)
	default:
		c.first, c.last = r[0], r[1]
	}
	return nil
}

// place returns the places given, or else the profile's own.
func (c *protector) place(given []string, own string) []string {
	if len(given) > 0 || own == "" {
		return given
	}
	at, length, _ := strings.Cut(own, "|")
	bit, _ := strconv.Atoi(at)
	return []string{fmt.Sprintf("%d|%s", bit+8*(c.first+c.spec.Offset), length)}
}

// places compiles where everything is.
func (c *protector) places() error {
	nibble := ""
	if c.f.ids == IDNibble {
		nibble = "12|4"
	}
	var taken messages.Bits
	for _, what := range []struct {
		name  string
		given []string
		own   string
		to    *Split
	}{
		{"checksum", c.spec.Checksum, c.f.checksum, &c.p.Checksum},
		{"counter", c.spec.Counter, c.f.counter, &c.p.Counter},
		{"nibble", c.spec.Nibble, nibble, &c.p.Nibble},
	} {
		split, at, err := compileSplit(c.m, c.place(what.given, what.own))
		if err != nil {
			return fmt.Errorf("%s: %w", what.name, err)
		}
		if at.Overlaps(&taken) {
			return fmt.Errorf("%s: its bits are the checksum's or the counter's, too", what.name)
		}
		if what.to == &c.p.Checksum {
			c.own = at
		}
		*what.to = split
		taken.Join(&at)
	}
	c.p.Need = uint8(taken.Bytes())
	return nil
}

// length is how many bits s has.
func (s *Split) length() int { return int(s.Part[0].Len) + int(s.Part[1].Len) }

// counter sets what is sent.
func (c *protector) counter() error {
	p := &c.p
	if p.Counter.N == 0 {
		if c.f.e2e() || c.f.algorithm == NoChecksum || c.spec.Modulus != 0 || c.spec.Start != nil {
			return errors.New("counter: no place is given")
		}
		return nil
	}
	most := 1 << p.Counter.length()
	n := c.spec.Modulus
	switch {
	case c.f.modulus > 0 && n != 0 && n != c.f.modulus:
		return fmt.Errorf("modulus %d: the profile's is %d", n, c.f.modulus)
	case c.f.modulus > 0:
		n = c.f.modulus
	case n == 0:
		n = most
	}
	if n < 2 || n > most {
		return fmt.Errorf("modulus %d: 2 to %d are possible in the counter's %d bits", n, most, p.Counter.length())
	}
	start := c.f.start
	if c.spec.Start != nil {
		start = *c.spec.Start
	}
	if start < 0 || start >= n {
		return fmt.Errorf("start %d: the counter runs from 0 to %d", start, n-1)
	}
	p.Modulus, p.Next = uint32(n), uint32(start)
	return nil
}

// ids sets what names the data besides its bits.
func (c *protector) ids() error {
	p, ids := &c.p, c.spec.DataIDs
	p.IDMode = c.f.ids
	if !c.f.e2e() && len(ids) > 0 {
		p.IDMode = IDList
		if p.Counter.N == 0 || len(ids) > 16 {
			return fmt.Errorf("data id: %d of them; up to 16 are possible, chosen by a counter", len(ids))
		}
	}
	want, limit := 1, uint32(0xFFFF)
	switch p.IDMode {
	case NoID:
		return nil
	case IDList:
		limit = 0xFF
		if want = len(ids); c.f.e2e() {
			want = 16
		}
	case IDNibble:
		limit = 1<<(8+c.p.Nibble.length()) - 1
	}
	if len(ids) != want {
		return fmt.Errorf("data id: %d of them are given, the profile has %d", len(ids), want)
	}
	for _, id := range ids {
		if id > limit {
			return fmt.Errorf("data id 0x%X: 0 to 0x%X are possible", id, limit)
		}
	}
	p.DataID = uint16(ids[0])
	if p.IDMode == IDList {
		p.IDCount = uint8(len(ids))
		for i, id := range ids {
			p.DataIDs[i] = uint8(id)
		}
	}
	return nil
}

// checksum sets the algorithm.
func (c *protector) checksum() error {
	p, s, f := &c.p, &c.spec, &c.f
	p.Algorithm, p.Width, p.Digit, p.Fold = f.algorithm, f.width, f.digit, f.fold
	p.Init, p.XorOut, p.Reflect, p.Subtract, p.Length = s.Init|f.init, s.XorOut|f.xor, s.Reflect, s.Subtract, s.IncludeLength
	if f.algorithm == NoChecksum {
		return nil
	}
	if p.Checksum.N == 0 {
		return errors.New("checksum: no place is given")
	}
	if err := c.identifier(); err != nil {
		return err
	}
	have := p.Checksum.length()
	limit := uint64(1)<<have - 1
	for id, xor := range s.XorPerID {
		if uint64(xor) > limit {
			return fmt.Errorf("xor per id: 0x%X of 0x%X: 0 to 0x%X are possible", xor, id, limit)
		}
		if id == c.m.ID&can.MaskEFF {
			p.XorOut = xor
		}
	}
	switch poly := s.Poly | f.poly; {
	case uint64(p.XorOut) > limit:
		return fmt.Errorf("xor out 0x%X: 0 to 0x%X are possible", p.XorOut, limit)
	case uint64(p.Init) > limit:
		return fmt.Errorf("init 0x%X: 0 to 0x%X are possible", p.Init, limit)
	case f.algorithm != CRC:
		return c.fold(have)
	case have != int(f.width):
		return fmt.Errorf("checksum: its place has %d bits, the CRC %d", have, f.width)
	case poly == 0 || poly > 1<<f.width-1:
		return fmt.Errorf("poly 0x%X: 1 to 0x%X are possible, without the highest bit, which is always set", poly, 1<<f.width-1)
	default:
		p.table(poly)
	}
	return nil
}

// fold checks that the sum's place holds it.
func (c *protector) fold(have int) error {
	if need := map[Fold]int{FoldTSC1: 3, FoldXBR: 4}[c.f.fold]; have < need {
		return fmt.Errorf("checksum: its place has %d bits, %d are needed", have, need)
	}
	return nil
}

// identifier sets what of the frame's identifier is taken.
func (c *protector) identifier() error {
	p, include := &c.p, c.spec.IncludeID
	size := uint8(2) // bytes of 11 bits
	if c.m.ID&can.EFF != 0 {
		size = 4
	}
	if c.f.fold != NoFold {
		include = "bytes"
	}
	switch include {
	case "", "none":
	case "bytes":
		p.FrameID, p.IDPieces = 8, size
	case "nibbles":
		p.FrameID, p.IDPieces = 4, 2*size
	default:
		return fmt.Errorf("include id: %q is not none, bytes or nibbles", include)
	}
	return nil
}

// table computes what a byte does to the register, and turns Init around for a
// register that is turned around.
func (p *Protection) table(poly uint32) {
	reflect := func(v uint32) uint32 { return bits.Reverse32(v) >> (32 - p.Width) }
	if p.Reflect {
		poly, p.Init = reflect(poly), reflect(p.Init)
	}
	for i := range p.Table {
		s := uint32(i)
		if !p.Reflect {
			s <<= p.Width - 8
		}
		for range 8 {
			switch top := uint32(1) << (p.Width - 1); {
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
		p.Table[i] = uint16(s & (1<<p.Width - 1))
	}
}

// order lists the bytes that are covered.
func (c *protector) order() error {
	p := &c.p
	if p.Algorithm == NoChecksum {
		return nil
	}
	out := c.own
	for _, place := range c.spec.Skip {
		var bits messages.Bits
		at, err := strconv.Atoi(place)
		switch {
		case err == nil && (at < 0 || at >= c.m.Len):
			return fmt.Errorf("skip: byte %d: the message has bytes 0 to %d", at, c.m.Len-1)
		case err == nil:
			bits[at/8] = 0xFF << (at % 8 * 8)
		default:
			if _, bits, err = position(c.m, place); err != nil {
				return fmt.Errorf("skip: %w", err)
			}
		}
		out.Join(&bits)
	}
	for at := c.first; at <= c.last; at++ {
		if p.Mask[at] = ^byte(out[at/8] >> (at % 8 * 8)); p.Mask[at] != 0 {
			p.Order[p.Covered] = uint8(at)
			p.Covered++
			p.Need = max(p.Need, uint8(at+1))
		}
	}
	if p.Covered == 0 {
		return fmt.Errorf("range: bytes %d to %d hold nothing but the checksum and what is skipped", c.first, c.last)
	}
	if c.spec.Reverse {
		slices.Reverse(p.Order[:p.Covered])
	}
	return nil
}

// sequence sets how received counters are judged.
func (c *protector) sequence() error {
	p, most := &c.p, int(c.p.Modulus)-1
	p.Classic = c.f.classic
	if p.Modulus == 0 {
		if c.spec.MaxDelta != 0 {
			return errors.New("max delta: there is no counter")
		}
		return nil
	}
	delta, stale := c.spec.MaxDelta, most
	if delta == 0 {
		delta = max(1, min(3, most-1))
	}
	if delta < 1 || delta > most {
		return fmt.Errorf("max delta %d: 1 to %d are possible", delta, most)
	}
	if c.spec.MaxNoNew != nil {
		stale = *c.spec.MaxNoNew
	}
	if stale < 0 || stale > most {
		return fmt.Errorf("max no new %d: 0 to %d are possible", stale, most)
	}
	if c.spec.SyncCounter < 0 || c.spec.SyncCounter > most {
		return fmt.Errorf("sync counter %d: 0 to %d are possible", c.spec.SyncCounter, most)
	}
	p.MaxDelta, p.MaxStale, p.SyncInit = uint32(delta), uint32(stale), uint32(c.spec.SyncCounter)
	if c.f.e2e() && !p.Classic {
		p.Seen, p.Last = true, p.Modulus-1
	}
	return nil
}

// window sets the window's limits.
func (c *protector) window() error {
	w := messages.WindowSpec{
		WindowSize:     10,
		MinOkStateInit: 2, MaxErrorStateInit: 2,
		MinOkStateValid: 1, MaxErrorStateValid: 2,
		MinOkStateInvalid: 3, MaxErrorStateInvalid: 2,
	}
	if c.spec.Window != nil {
		w = *c.spec.Window
	}
	c.p.Limits = WindowLimits(w)
	switch {
	case w.WindowSize < 1 || w.WindowSize > 64:
		return fmt.Errorf("window size %d: 1 to 64 are possible", w.WindowSize)
	case !(1 <= w.MinOkStateValid && w.MinOkStateValid <= w.MinOkStateInit && w.MinOkStateInit <= w.MinOkStateInvalid):
		return fmt.Errorf("window: min ok valid %d, init %d, invalid %d: want 1 <= valid <= init <= invalid",
			w.MinOkStateValid, w.MinOkStateInit, w.MinOkStateInvalid)
	case !(w.MaxErrorStateValid >= w.MaxErrorStateInit && w.MaxErrorStateInit >= w.MaxErrorStateInvalid && w.MaxErrorStateInvalid >= 0):
		return fmt.Errorf("window: max error valid %d, init %d, invalid %d: want valid >= init >= invalid >= 0",
			w.MaxErrorStateValid, w.MaxErrorStateInit, w.MaxErrorStateInvalid)
	}
	for _, sum := range []int{w.MinOkStateInit + w.MaxErrorStateInit, w.MinOkStateValid + w.MaxErrorStateValid, w.MinOkStateInvalid + w.MaxErrorStateInvalid} {
		if sum > w.WindowSize {
			return fmt.Errorf("window: min ok + max error is %d in some state, more than the window size %d", sum, w.WindowSize)
		}
	}
	return nil
}
