package signals

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/sigmap"
)

// receive writes Decode of a bus.
func (w *signalWriter) receive(b int, m *sigmap.Map) {
	w.line("// Decode is that of the map.\n//\n//go:nosplit")
	w.line("func (b *bus%d) Decode(u []float64, f *can.Frame) (int, sigmap.Result) {\nswitch f.ID {", b)
	for i := range m.Rx {
		w.line("case 0x%X:\nreturn %d, b.decode%d(u, f)", m.Rx[i].ID, i, i)
	}
	w.line("}\nreturn -1, sigmap.Unknown\n}\n")
	for i := range m.Rx {
		w.decode(b, i, &m.Rx[i])
		w.sums(b, "rx", i, m.Rx[i].Protect)
	}
}

// decode writes what becomes of the frames of one message.
func (w *signalWriter) decode(b, i int, r *sigmap.Rx) {
	w.line("// decode%d takes message %s.\n//\n//go:nosplit", i, harmless(r.Name))
	w.line("func (b *bus%d) decode%d(u []float64, f *can.Frame) sigmap.Result {\nr := b.rx[%d]", b, i, i)
	w.line("if result := r.CheckFrame(f); result != sigmap.OK {\nreturn result\n}")
	if len(r.Fields) == 0 {
		w.line("return sigmap.OK\n}\n")
		return
	}

	w.loads(r.Fields)
	w.line("v := (*[%d]float64)(u)", len(w.job.Inputs))
	fails := slices.ContainsFunc(r.Fields, func(f sigmap.Field) bool { return canFail(&f) })
	if fails {
		w.line("result := sigmap.OK")
	}
	for k := range r.Fields {
		w.take(&r.Fields[k])
	}
	if fails {
		w.line("if result != sigmap.OK {\nr.Count(result)\n}\nreturn result\n}\n")
		return
	}

	w.line("return sigmap.OK\n}\n")
}

// loads writes the words that fields are in, and their selectors.
func (w *signalWriter) loads(fields []sigmap.Field) {
	words := map[string]bool{}
	add := func(f *sigmap.Field) {
		p := bitPlaceOf(f)
		for _, name := range p.names() {
			words[name] = true
		}
	}

	for k := range fields {
		add(&fields[k])
		for s := range fields[k].When {
			add(&fields[k].When[s].At)
		}
	}

	for word := range 8 {
		for _, big := range []bool{false, true} {
			p := bitPlace{big: big}
			if name := p.name(word); words[name] {
				w.line("%s := %s((*[8]byte)(f.Data[%d:%d]))", name, order(big), 8*word, 8*word+8)
			}
		}
	}
}

// take writes how one signal gets into the inputs.
func (w *signalWriter) take(f *sigmap.Field) {
	p, port := bitPlaceOf(f), &w.job.Inputs[f.Index]
	w.line("\n// %s to %s [%s]", harmless(f.Name), harmless(port.Name), harmless(port.Unit))
	if len(f.When) > 0 {
		var all []string
		for s := range f.When {
			at := bitPlaceOf(&f.When[s].At)
			all = append(all, ranges(at.load(), f.When[s].Ranges))
		}

		w.line("if %s {", strings.Join(all, " && "))
		defer w.line("}")
	}

	raw, before := p.load(), ""
	if len(f.Invalid) > 0 {
		w.line("if raw := %s; %s {", raw, ranges("raw", f.Invalid))
		w.line("if result == sigmap.OK {\nresult = sigmap.Invalid\n}")
		raw, before = "raw", "} else "
	}

	switch x := meaning(f, raw); {
	case !allIn(f):
		w.line("%sif x := %s; x >= %s && x <= %s {", before, x, number(f.Lo), number(f.Hi))
		w.line("v[%d] = %s\n} else {\nresult = sigmap.Range\n}", f.Index, scaled(f, "x"))
	case before != "":
		w.line("} else {\nx := %s\nv[%d] = %s\n}", x, f.Index, scaled(f, "x"))
	default:
		w.line("v[%d] = %s", f.Index, scaled(f, x))
	}
}

// canFail says that a frame can carry no value, or none that is taken.
func canFail(f *sigmap.Field) bool { return len(f.Invalid) > 0 || !allIn(f) }

// allIn says that whatever the bits are, the number is within the field's range.
func allIn(f *sigmap.Field) bool {
	if f.Float || f.Len > 53 {
		return false
	}
	lo, hi := 0.0, math.Ldexp(1, int(f.Len))-1
	if f.Signed {
		lo, hi = -math.Ldexp(1, int(f.Len)-1), math.Ldexp(1, int(f.Len)-1)-1
	}
	return f.Lo <= lo && hi <= f.Hi
}

// ranges is the condition that a raw value is in one of them.
func ranges(raw string, list [][2]uint64) string {
	if len(list) == 0 {
		return "false"
	}
	var any []string
	for _, r := range list {
		if r[0] == r[1] {
			any = append(any, fmt.Sprintf("%s == 0x%X", raw, r[0]))
			continue
		}

		any = append(any, fmt.Sprintf("0x%X <= %s && %s <= 0x%X", r[0], raw, raw, r[1]))
	}

	return "(" + strings.Join(any, " || ") + ")"
}

// meaning is the number that raw bits mean, before the scale.
func meaning(f *sigmap.Field, raw string) string {
	switch {
	case f.Float && f.Len == 32:
		return fmt.Sprintf("float64(math.Float32frombits(uint32(%s)))", raw)
	case f.Float:
		return fmt.Sprintf("math.Float64frombits(%s)", raw)
	case f.Signed && f.Len < 64:
		return fmt.Sprintf("float64(int64((%s)<<%d) >> %d)", raw, 64-f.Len, 64-f.Len)
	case f.Signed || f.Len < 64: // no bit is above the sign
		return fmt.Sprintf("float64(int64(%s))", raw)
	}

	return fmt.Sprintf("float64(%s)", raw)
}

// scaled is a number in the unit of its port. What does nothing to any number is left
// out; a sum with zero makes a zero of minus zero.
func scaled(f *sigmap.Field, x string) string {
	positive := !f.Float && f.Factor > 0x1p-900 // neither minus zero nor underflow
	if f.Factor != 1 {
		x = fmt.Sprintf("%s * %s", x, number(f.Factor))
	}
	if f.Offset != 0 || math.Signbit(f.Offset) || !positive {
		x = fmt.Sprintf("%s + %s", x, number(f.Offset))
	}
	return x
}
