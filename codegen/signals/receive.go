package signals

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/sigmap"
)

// receive writes the method Decode of a bus.
func (w *signalWriter) receive(b int, m *sigmap.Map) {
	w.line("// Decode decodes a frame into u and returns the index of its message, -1 for an unknown one.\n//\n//go:nosplit")
	w.line("func (b *bus%d) Decode(u []float64, f *can.Frame) (int, sigmap.Result) {", b)
	for _, g := range m.Groups {
		w.line("switch f.ID%s {", map[bool]string{false: fmt.Sprintf(" & 0x%X", g.Mask)}[g.Mask == math.MaxUint32])
		for _, p := range m.Patterns[g.First:g.End] {
			w.line("case 0x%X:\nreturn %d, b.decode%d(u, f)", p.ID, p.Rx, p.Rx)
		}
		w.line("}")
	}
	w.line("return b.DecodeOther(f)\n}\n")
	for i := range m.Rx {
		w.decode(b, i, &m.Rx[i])
		w.sums(b, "rx", i, m.Rx[i].Protect)
	}
}

// decode writes the function that decodes one message.
func (w *signalWriter) decode(b, i int, r *sigmap.Rx) {
	w.line("// decode%d decodes message %s.\n//\n//go:nosplit", i, commentName(r.Name))
	w.line("func (b *bus%d) decode%d(u []float64, f *can.Frame) sigmap.Result {\nr := b.rx[%d]", b, i, i)
	w.line("if result := r.CheckFrame(f); result != sigmap.OK {\nreturn result\n}")
	if len(r.Fields) == 0 {
		w.line("return r.Finish(sigmap.OK)\n}\n")
		return
	}

	w.loads(r.Fields)
	w.line("v := (*[%d]float64)(u)", len(w.job.Inputs))
	if r.Whole {
		w.rejectOutOfRange(r)
	}
	fails := slices.ContainsFunc(r.Fields, func(f sigmap.Field) bool { return canFail(&f) })
	if fails {
		w.line("result := sigmap.OK")
	}
	for k := range r.Fields {
		w.decodeField(&r.Fields[k])
	}
	result := "sigmap.OK"
	if fails {
		result = "result"
	}
	w.line("return r.Finish(%s)\n}\n", result)
}

// rejectOutOfRange writes the check that rejects a frame with a signal out of its range.
func (w *signalWriter) rejectOutOfRange(r *sigmap.Rx) {
	for k := range r.Fields {
		f := &r.Fields[k]
		if alwaysInRange(f) {
			continue
		}
		p, all := positionOf(f), presence(f)
		if len(f.Invalid) > 0 {
			all = append(all, "!"+ranges("("+p.load()+")", f.Invalid))
		}
		condition := strings.Join(append(all, fmt.Sprintf("!(x >= %s && x <= %s)", number(f.Lo), number(f.Hi))), " && ")
		w.line("if x := %s; %s {\nreturn r.Finish(sigmap.Rejected)\n}", unscaled(f, p.load()), condition)
	}
}

// loads writes the loads of the words that contain the fields and their selectors.
func (w *signalWriter) loads(fields []sigmap.Field) {
	words := map[string]bool{}
	add := func(f *sigmap.Field) {
		p := positionOf(f)
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
			p := bitPosition{big: big}
			if name := p.name(word); words[name] {
				w.line("%s := %s((*[8]byte)(f.Data[%d:%d]))", name, order(big), 8*word, 8*word+8)
			}
		}
	}
}

// decodeField writes the decoding of one signal into an input.
func (w *signalWriter) decodeField(f *sigmap.Field) {
	p, port := positionOf(f), &w.job.Inputs[f.Index]
	w.line("\n// %s to input %s [%s]", commentName(f.Name), commentName(port.Name), commentName(port.Unit))
	if len(f.When) > 0 {
		w.line("if %s {", strings.Join(presence(f), " && "))
		defer w.line("}")
	}

	raw, before := p.load(), ""
	if len(f.Invalid) > 0 {
		w.line("if raw := %s; %s {", raw, ranges("raw", f.Invalid))
		w.line("if result == sigmap.OK {\nresult = sigmap.Invalid\n}")
		raw, before = "raw", "} else "
	}

	switch x := unscaled(f, raw); {
	case !alwaysInRange(f):
		w.line("%sif x := %s; x >= %s && x <= %s {", before, x, number(f.Lo), number(f.Hi))
		w.line("v[%d] = %s\n} else {\nresult = sigmap.Range\n}", f.Index, scaled(f, "x"))
	case before != "":
		w.line("} else {\nx := %s\nv[%d] = %s\n}", x, f.Index, scaled(f, "x"))
	default:
		w.line("v[%d] = %s", f.Index, scaled(f, x))
	}
}

// presence returns the conditions under which a frame contains the field.
func presence(f *sigmap.Field) (all []string) {
	for s := range f.When {
		at := positionOf(&f.When[s].At)
		all = append(all, ranges(at.load(), f.When[s].Ranges))
	}
	return all
}

// canFail reports whether a frame can have an invalid value or one out of range.
func canFail(f *sigmap.Field) bool { return len(f.Invalid) > 0 || !alwaysInRange(f) }

// alwaysInRange reports whether the number is in the field's range for all values of its bits.
func alwaysInRange(f *sigmap.Field) bool {
	if f.Float || f.Len > 53 {
		return false
	}
	lo, hi := 0.0, math.Ldexp(1, int(f.Len))-1
	if f.Signed {
		lo, hi = -math.Ldexp(1, int(f.Len)-1), math.Ldexp(1, int(f.Len)-1)-1
	}
	return f.Lo <= lo && hi <= f.Hi
}

// ranges returns the condition that a raw value is in one of several ranges.
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

// unscaled returns the expression of the number that raw bits stand for, before scaling.
func unscaled(f *sigmap.Field, raw string) string {
	switch {
	case f.Float && f.Len == 32:
		return fmt.Sprintf("float64(math.Float32frombits(uint32(%s)))", raw)
	case f.Float:
		return fmt.Sprintf("math.Float64frombits(%s)", raw)
	case f.Signed && f.Len < 64:
		return fmt.Sprintf("float64(int64((%s)<<%d) >> %d)", raw, 64-f.Len, 64-f.Len)
	case f.Signed || f.Len < 64: // the number fits int64
		return fmt.Sprintf("float64(int64(%s))", raw)
	}

	return fmt.Sprintf("float64(%s)", raw)
}

// scaled returns the expression of a number in the unit of its port, without operations that change
// no number. A sum with 0 changes -0 to 0.
func scaled(f *sigmap.Field, x string) string {
	positive := !f.Float && f.Factor > 0x1p-900 // the product is not -0 and does not underflow
	if f.Factor != 1 {
		x = fmt.Sprintf("%s * %s", x, number(f.Factor))
	}
	if f.Offset != 0 || math.Signbit(f.Offset) || !positive {
		x = fmt.Sprintf("%s + %s", x, number(f.Offset))
	}
	return x
}
