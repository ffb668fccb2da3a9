package sigmap

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/io/messages"
	"lockstep/model/units"
)

// parseRaw returns the raw bits of a text: one of Values, or a number or quantity.
func parseRaw(s *messages.Signal, text string) (uint64, error) {
	var f Field
	f.place(s)
	var texts []string
	for _, v := range s.Values {
		if v.Text == text {
			return uint64(v.Raw) & f.mask(), nil
		}
		texts = append(texts, v.Text)
	}
	if raw, ok := parseCount(s, text); ok {
		return raw, nil
	}
	v, err := parseNumber(s, text)
	if err != nil {
		if len(texts) > 0 {
			return 0, problemf(ErrValue, "%q is no number in %q and none of its texts; %s", text, s.Unit, nearest(text, texts))
		}
		return 0, problemf(ErrValue, "%q is no number in %q", text, s.Unit)
	}
	f.Factor, f.Offset = s.Factor, s.Offset
	f.Lo, f.Hi = f.span()
	if s.Min < s.Max {
		f.limit(s.Min, s.Max)
	}
	raw := (v - s.Offset) / s.Factor
	if !s.Float {
		raw = whole(raw)
	}
	if !(raw >= f.Lo && raw <= f.Hi) {
		lo, hi := f.Lo*s.Factor+s.Offset, f.Hi*s.Factor+s.Offset
		return 0, problemf(ErrRange, "%s is beyond its range, %s", text, between(math.Min(lo, hi), math.Max(lo, hi), s.Unit))
	}
	return f.bits(raw), nil
}

// parseCount reads a whole number where the raw value is the value: a float64 does not hold all
// of those beyond 2^53. ok is false for all else, and beyond the signal's range.
func parseCount(s *messages.Signal, text string) (raw uint64, ok bool) {
	if s.Float || s.Factor != 1 || s.Offset != 0 {
		return 0, false
	}
	var f Field
	f.place(s)
	digits, base := text, 10
	if hex, is := strings.CutPrefix(text, "0x"); is {
		digits, base = hex, 16
	}
	if s.Signed {
		n, err := strconv.ParseInt(digits, base, 64)
		raw = uint64(n) & f.mask()
		ok = err == nil && int64(raw<<(64-s.Len))>>(64-s.Len) == n
	} else {
		n, err := strconv.ParseUint(digits, base, 64)
		raw, ok = n, err == nil && n <= f.mask()
	}
	v := f.number(raw)
	return raw, ok && (!(s.Min < s.Max) || s.Min <= v && v <= s.Max)
}

// parseNumber reads a text as a number in the signal's unit: a bare one, decimal or 0x, one with
// just that unit, which need not be a known one, or with another that fits, or arithmetic.
func parseNumber(s *messages.Signal, text string) (float64, error) {
	text = strings.TrimSuffix(text, " "+s.Unit)
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, nil
	}
	if hex, is := strings.CutPrefix(text, "0x"); is {
		if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return float64(n), nil
		}
	}
	v, err := units.Quantity(text, s.Unit, nil)
	if err != nil {
		return 0, err
	}
	unit, err := units.Parse(s.Unit)
	return v / unit.Factor, err
}

// between is the text of a range; one without a dimension has no unit.
func between(lo, hi float64, unit string) string {
	text := fmt.Sprintf("%g to %g", lo, hi)
	if unit == "" || unit == "1" {
		return text
	}
	return text + " " + unit
}
