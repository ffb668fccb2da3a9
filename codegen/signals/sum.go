package signals

import (
	"fmt"

	"lockstep/io/sigmap"
)

// sumName is the function of the checksum of protection p of a message.
func sumName(b int, way string, i, p int) string { return fmt.Sprintf("sum%d%s%d_%d", b, way, i, p) }

// sums writes the checksums of a message.
func (w *signalWriter) sums(b int, way string, i int, list []sigmap.Protection) {
	for p := range list {
		if list[p].Algorithm != sigmap.NoChecksum {
			w.line("// %s is the checksum of profile %s.\n//\n//go:nosplit", sumName(b, way, i, p), harmless(list[p].Profile))
			w.line("func %s(data *[64]byte, n byte, id uint32) uint32 {", sumName(b, way, i, p))
			w.sum(&list[p])
			w.line("}\n")
		}
	}
}

// sum is sigmap's Protection.value for one protection.
func (w *signalWriter) sum(p *sigmap.Protection) {
	w.line("s := uint32(0x%X)", p.Init)
	if p.Length {
		w.byte(p, "n")
	}
	for i := range p.IDPieces {
		w.byte(p, fmt.Sprintf("byte(id>>%d)&0x%X", i*p.FrameID, uint64(1)<<p.FrameID-1))
	}
	low, high := fmt.Sprintf("0x%X", p.DataID&0xFF), fmt.Sprintf("0x%X", p.DataID>>8)
	switch p.IDMode {
	case sigmap.IDBoth:
		w.byte(p, low)
		w.byte(p, high)
	case sigmap.IDAlternating:
		w.byte(p, fmt.Sprintf("byte(uint16(0x%X)>>(8*(%s&1)))", p.DataID, splitLoad(&p.Counter)))
	case sigmap.IDLow:
		w.byte(p, low)
	case sigmap.IDNibble:
		w.byte(p, low)
		w.byte(p, "0")
	}
	for _, at := range p.Order[:p.Covered] {
		if p.Mask[at] == 0xFF {
			w.byte(p, fmt.Sprintf("data[%d]", at))
		} else {
			w.byte(p, fmt.Sprintf("data[%d]&0x%X", at, p.Mask[at]))
		}
	}
	switch p.IDMode {
	case sigmap.IDAfter:
		w.byte(p, low)
		w.byte(p, high)
	case sigmap.IDList:
		var ids [16]uint8
		copy(ids[:], p.DataIDs[:p.IDCount])
		w.line("ids := [16]uint8{")
		for _, id := range ids {
			w.line("0x%02X,", id)
		}
		w.line("}")
		w.byte(p, fmt.Sprintf("ids[%s%%%d&15]", splitLoad(&p.Counter), p.IDCount))
	}
	switch p.Fold {
	case sigmap.FoldTSC1:
		w.line("s = (s>>6&3 + s>>3 + s) & 7")
	case sigmap.FoldXBR:
		w.line("s = (s>>4 + s) & 15")
	}
	w.line("return (s ^ 0x%X) & 0x%X", p.XorOut, splitMask(&p.Checksum))
}

// byte writes what a byte does to the sum.
func (w *signalWriter) byte(p *sigmap.Protection, b string) {
	op := "+="
	if p.Subtract {
		op = "-="
	}
	switch {
	case p.Algorithm == sigmap.CRC && p.Reflect:
		w.line("s = uint32(%s[byte(s)^(%s)]) ^ s>>8", w.table(p), b)
	case p.Algorithm == sigmap.CRC && p.Width == 8:
		w.line("s = uint32(%s[byte(s)^(%s)]) ^ s<<8", w.table(p), b)
	case p.Algorithm == sigmap.CRC:
		w.line("s = uint32(%s[byte(s>>%d)^(%s)]) ^ s<<8", w.table(p), p.Width-8, b)
	case p.Algorithm == sigmap.XOR:
		w.line("s ^= uint32(%s)", b)
	case p.Digit == 8:
		w.line("s %s uint32(%s)", op, b)
	default:
		for shift := uint8(0); shift < 8; shift += p.Digit {
			w.line("s %s uint32(%s) >> %d & 0x%X", op, b, shift, uint(1)<<p.Digit-1)
		}
	}
}

// table is the name of the CRC's table.
func (w *signalWriter) table(p *sigmap.Protection) string {
	name, ok := w.tables[p.Table]
	if !ok {
		name = fmt.Sprintf("crc%d", len(w.order))
		w.tables[p.Table] = name
		w.order = append(w.order, p.Table)
	}
	return name
}

// splitLoad is the expression of a number in one or two pieces.
func splitLoad(s *sigmap.Split) string {
	text, shift := "", uint8(0)
	for _, p := range s.Part[:s.N] {
		order := "little"
		if p.Big {
			order = "big"
		}
		part := fmt.Sprintf("uint32(%s((*[8]byte)(data[%d:%d]))>>%d)&0x%X", order, p.At, p.At+8, p.Shift, mask(int(p.Len)))
		if shift > 0 {
			text += fmt.Sprintf(" | (%s)<<%d", part, shift)
		} else {
			text = part
		}
		shift += p.Len
	}
	return "(" + text + ")"
}

func splitMask(s *sigmap.Split) uint64 { return mask(int(s.Part[0].Len) + int(s.Part[1].Len)) }
