package signals

import (
	"fmt"
	"slices"

	"lockstep/io/sigmap"
)

// sumName returns the name of the function that computes the checksum of protection p of a message.
func sumName(b int, direction string, i, p int) string {
	return fmt.Sprintf("sum%d%s%d_%d", b, direction, i, p)
}

// isCompiled reports whether code computes the checksum of a protection. The table does it if the length
// of the data is in the frame and may vary.
func isCompiled(p *sigmap.Protection) bool {
	return p.Algorithm != sigmap.NoChecksum && p.MinLength == p.MaxLength
}

// sums writes the checksum functions of a message.
func (w *signalWriter) sums(b int, direction string, i int, list []sigmap.Protection) {
	for p := range list {
		if isCompiled(&list[p]) {
			w.line("// %s returns the checksum of profile %s.\n//\n//go:nosplit", sumName(b, direction, i, p), commentName(list[p].Profile))
			w.line("func %s(data *[64]byte, n byte, id uint32) uint64 {", sumName(b, direction, i, p))
			w.sum(&list[p])
			w.line("}\n")
		}
	}
}

// sum writes sigmap's Protection.checksum for one protection: the same terms in the same order.
func (w *signalWriter) sum(p *sigmap.Protection) {
	w.line("s := uint64(0x%X)", p.Init)
	if slices.ContainsFunc(p.Terms, func(t sigmap.Term) bool { return t.From == sigmap.FromDataID }) {
		w.line("ids := [16]uint8{")
		for _, id := range p.DataIDs {
			w.line("0x%02X,", id)
		}
		w.line("}")
	}

	for _, t := range p.Terms {
		w.addByte(p, term(p, &t))
	}
	switch p.Fold {
	case sigmap.FoldTSC1:
		w.line("s = (s>>6&3 + s>>3 + s) & 7")
	case sigmap.FoldXBR:
		w.line("s = (s>>4 + s) & 15")
	}

	w.line("return (s ^ 0x%X) & 0x%X", p.XorOut, p.Checksum.Mask())
}

// term returns the expression of a byte that enters the checksum.
func term(p *sigmap.Protection, t *sigmap.Term) string {
	b := ""
	switch t.From {
	case sigmap.FromConstant:
		return fmt.Sprintf("0x%X", t.Mask)
	case sigmap.FromLength:
		b = "n"
	case sigmap.FromIdentifier:
		b = fmt.Sprintf("byte(id>>%d)", t.At)
	case sigmap.FromDataID:
		b = fmt.Sprintf("ids[%s%%%d&15]", splitLoad(&p.Counter), p.IDCount)
	default:
		b = fmt.Sprintf("data[%d]", t.At)
	}

	if t.Mask == 0xFF {
		return b
	}
	return fmt.Sprintf("%s&0x%X", b, t.Mask)
}

// addByte writes the statements that add a byte to the checksum.
func (w *signalWriter) addByte(p *sigmap.Protection, b string) {
	op := "+="
	if p.Subtract {
		op = "-="
	}
	switch {
	case p.Algorithm == sigmap.CRC && p.Reflect:
		w.line("s = %s[byte(s)^(%s)] ^ s>>8", w.table(p), b)
	case p.Algorithm == sigmap.CRC && p.Width == 8:
		w.line("s = %s[byte(s)^(%s)] ^ s<<8", w.table(p), b)
	case p.Algorithm == sigmap.CRC:
		w.line("s = %s[byte(s>>%d)^(%s)] ^ s<<8", w.table(p), p.Width-8, b)
	case p.Algorithm == sigmap.XOR:
		w.line("s ^= uint64(%s)", b)
	case p.Digit == 8:
		w.line("s %s uint64(%s)", op, b)
	default:
		for shift := uint8(0); shift < 8; shift += p.Digit {
			w.line("s %s uint64(%s) >> %d & 0x%X", op, b, shift, uint(1)<<p.Digit-1)
		}
	}
}

// table returns the name of the CRC's table; it adds the table at its first use.
func (w *signalWriter) table(p *sigmap.Protection) string {
	n := slices.Index(w.tables, p.Table)
	if n < 0 {
		n = len(w.tables)
		w.tables = append(w.tables, p.Table)
	}

	return fmt.Sprintf("crc%d", n)
}

// splitLoad returns the expression of a number whose bits are in one or two parts.
func splitLoad(s *sigmap.Split) string {
	text, shift := "", uint8(0)
	for _, p := range s.Part[:s.N] {
		word := fmt.Sprintf("%s((*[8]byte)(data[%d:%d]))", order(p.Big), p.At, p.At+8)
		part := fmt.Sprintf("%s>>%d&0x%X", word, p.Shift, mask(int(p.Len)))
		if shift > 0 {
			text += fmt.Sprintf(" | (%s)<<%d", part, shift)
		} else {
			text = part
		}

		shift += p.Len
	}

	return "(" + text + ")"
}
