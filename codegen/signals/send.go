package signals

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/sigmap"
)

// identifierBits are the bits of a message's identifier; the bits above are flags.
const identifierBits = 1<<29 - 1

// send writes the methods Due and Encode of a bus.
func (w *signalWriter) send(b int, m *sigmap.Map) {
	w.line("// Due reports whether message i is due at a tick. The map decides for messages on change.\n//\n//go:nosplit")
	w.line("func (b *bus%d) Due(i int, tick int64, y []float64, forced bool) bool {\nswitch i {", b)
	for i := range m.Tx {
		if t := &m.Tx[i]; t.Send == sigmap.Cyclic {
			w.line("case %d: // %s\nreturn %s", i, commentName(t.Name), dueAt(t))
		}
	}

	w.line("}\nreturn b.Map.Due(i, tick, y, forced)\n}\n")
	w.line("// Encode encodes message i. The map encodes a message with a forced value or with NaN.\n//\n//go:nosplit")
	w.line("func (b *bus%d) Encode(f *can.Frame, i int, tick int64, y []float64, forced bool) bool {", b)
	w.line("done := false\nswitch i {")
	for i := range m.Tx {
		if len(m.Tx[i].Pages) == 0 { // the map encodes a message of several pages
			w.line("case %d:\ndone = b.encode%d(f, tick, y, forced)", i, i)
		}
	}
	w.line("}\nreturn done || b.Map.Encode(f, i, tick, y, forced)\n}\n")
	for i := range m.Tx {
		if len(m.Tx[i].Pages) == 0 {
			w.encode(b, i, &m.Tx[i])
		}
		w.sums(b, "tx", i, m.Tx[i].Protect)
	}
}

// dueAt returns the condition that a cyclic message is due at a tick.
func dueAt(t *sigmap.Tx) string {
	if t.CycleTicks == 1 {
		return "true"
	}
	return fmt.Sprintf("tick%%%d == %d", t.CycleTicks, t.PhaseTicks)
}

// encode writes the function that encodes one message.
func (w *signalWriter) encode(b, i int, t *sigmap.Tx) {
	w.line("// encode%d encodes message %s; false: a value is forced or NaN.\n//\n//go:nosplit", i, commentName(t.Name))
	w.line("func (b *bus%d) encode%d(f *can.Frame, tick int64, y []float64, forced bool) bool {", b, i)
	if len(t.Fields) > 0 || t.HasCounter || len(t.Protect) > 0 {
		w.line("t := b.tx[%d]", i)
	}
	if len(t.Fields) > 0 {
		w.line("if forced && t.HasForce() {\nreturn false\n}")
	}
	words := map[string]bool{}
	if slices.ContainsFunc(t.Fields, func(f sigmap.Field) bool { return f.Waveform == 0 }) {
		w.line("v := (*[%d]float64)(y)", len(w.job.Outputs))
	}
	counts := slices.ContainsFunc(t.Fields, func(f sigmap.Field) bool { return !f.Rests })
	if counts {
		w.line("saturated := uint64(0)")
	}
	for k := range t.Fields {
		w.encodeField(t, k, words)
	}
	if counts {
		w.line("b.Saturated += saturated")
	}
	if t.HasCounter {
		w.line("\n// counter")
		w.or(positionOf(&t.Counter), "t.Count", words)
		if t.Counter.Hi < 1<<53 {
			w.line("t.Count++\nif t.Count > %d {\nt.Count = 0\n}", uint64(t.Counter.Hi))
		} else {
			w.line("t.Count++\nif float64(t.Count) > %s {\nt.Count = 0\n}", number(t.Counter.Hi))
		}
	}

	w.frame(t, words)
	for p := range t.Protect {
		w.line("t.Protect[%d].Protect(&f.Data, %d, 0x%X)", p, t.Len, t.ID&identifierBits)
	}
	w.line("return true\n}\n")
}

// encodeField writes the encoding of one signal into the words of the frame.
func (w *signalWriter) encodeField(t *sigmap.Tx, k int, words map[string]bool) {
	f := &t.Fields[k]
	from := fmt.Sprintf("v[%d]", f.Index)
	if f.Waveform > 0 {
		from = fmt.Sprintf("t.Waveforms[%d].Eval(tick*b.PeriodNs)", f.Waveform-1)
		w.line("\n// %s from a waveform", commentName(f.Name))
	} else {
		port := &w.job.Outputs[f.Index]
		w.line("\n// %s from output %s [%s]", commentName(f.Name), commentName(port.Name), commentName(port.Unit))
	}

	if f.Offset != 0 || math.Signbit(f.Offset) {
		from = fmt.Sprintf("(%s - %s)", from, number(f.Offset))
	}
	if f.Factor != 1 {
		from = fmt.Sprintf("%s / %s", from, number(f.Factor))
	}
	if !f.Float {
		from = fmt.Sprintf("whole(%s)", from)
	}
	lo, hi := number(f.Lo), number(f.Hi)
	if f.Wraps {
		from = fmt.Sprintf("wrapped(%s, %s, %s)", from, lo, hi)
	}
	x := fmt.Sprintf("x%d", k)
	count := "\nsaturated++"
	if f.Rests {
		count = ""
	}
	w.line("%s := %s\nswitch {", x, from)
	w.line("case %s < %s:\n%s = %s%s", x, lo, x, lo, count)
	w.line("case %s > %s:\n%s = %s%s", x, hi, x, hi, count)
	w.line("case %s != %s:\nreturn false // NaN\n}", x, x)
	raw := rawOf(f, x)
	if t.Send != sigmap.Cyclic {
		w.line("raw%d := %s\nt.Fields[%d].Sent = raw%d", k, raw, k, k)
		raw = fmt.Sprintf("raw%d", k)
	}

	w.or(positionOf(f), raw, words)
}

// or writes the statements that add raw bits to the words.
func (w *signalWriter) or(p bitPosition, raw string, words map[string]bool) {
	low := raw
	if p.shift > 0 {
		low = fmt.Sprintf("(%s) << %d", raw, p.shift)
	}
	for i, name := range p.names() {
		op := ":="
		if words[name] {
			op = "|="
		}
		words[name] = true
		w.line("%s %s %s", name, op, [...]string{low, fmt.Sprintf("(%s) >> %d", raw, 64-p.shift)}[i])
	}
}

// rawOf returns the expression of the raw bits of a number in the field's range.
func rawOf(f *sigmap.Field, x string) string {
	switch {
	case f.Float && f.Len == 32:
		return fmt.Sprintf("uint64(math.Float32bits(float32(%s)))", x)
	case f.Float:
		return fmt.Sprintf("math.Float64bits(%s)", x)
	case f.Signed && f.Len < 64:
		return fmt.Sprintf("uint64(int64(%s)) & 0x%X", x, mask(int(f.Len)))
	case f.Signed || f.Len < 64 && f.Lo >= 0: // the number fits int64
		return fmt.Sprintf("uint64(int64(%s))", x)
	}

	return fmt.Sprintf("uint64(%s)", x)
}

// frame writes the assignment of the words and of the constant parts of the frame.
func (w *signalWriter) frame(t *sigmap.Tx, words map[string]bool) {
	w.line("\nf.ID, f.Len, f.Flags, f.Res0, f.Res1 = 0x%X, %d, 0x%X, 0, 0\nf.Data = [64]byte{}", t.ID, t.Len, t.Flags)
	for word := range 8 {
		base := binary.LittleEndian.Uint64(t.Base[8*word:])
		var parts []string
		if base != 0 {
			parts = append(parts, fmt.Sprintf("0x%X", base))
		}
		if name := fmt.Sprintf("l%d", word); words[name] {
			parts = append(parts, name)
		}
		if name := fmt.Sprintf("b%d", word); words[name] {
			parts = append(parts, "bits.ReverseBytes64("+name+")")
		}
		if parts != nil {
			text := strings.Join(parts, " | ")
			w.line("binary.LittleEndian.PutUint64(f.Data[%d:%d], %s)", 8*word, 8*word+8, text)
		}
	}
}
