package sigmap

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/messages"
	"lockstep/model/units"
)

// parseRaw returns the raw bits for a text: a value text of s, a number or a quantity.
func parseRaw(s *messages.Signal, text string) uint64 {
	f := rawField(s)
	i, near := findByName(s.Values, text, valueText)
	if i >= 0 {
		return uint64(s.Values[i].Raw) & f.mask()
	}
	number, own := strings.CutSuffix(text, " "+s.Unit)
	if own || units.WantSignal(s.Unit).TakesBare() {
		if raw, ok := ParseWhole(s, number); ok {
			return raw
		}
	}
	v, err := parseNumber(s, text)
	if missing := new(units.MissingUnit); errors.As(err, &missing) {
		refuse("%w%s", missing, notAText(s, near))
	}
	if err != nil {
		if _, bad := units.Evaluate(text, nil); bad == nil {
			refuse("%q: %s", text, units.Reason(err))
		}
		refuse("%q is not a number in %q%s", text, s.Unit, notAText(s, near))
	}
	f.Factor, f.Offset = s.Factor, s.Offset
	f.Lo, f.Hi = f.rawRange()
	if s.Min < s.Max {
		f.narrow(s.Min, s.Max)
	}
	raw := (v - s.Offset) / s.Factor
	if !s.Float {
		raw = roundHalfEven(raw)
	}
	if !(raw >= f.Lo && raw <= f.Hi) {
		lo, hi := f.Lo*s.Factor+s.Offset, f.Hi*s.Factor+s.Offset
		refuse("%s is beyond its range, %s", text, formatRange(math.Min(lo, hi), math.Max(lo, hi), s.Unit))
	}

	return f.rawBits(raw)
}

// ParseWhole reads a whole number, as raw bits, for a signal with factor 1 and offset 0: a float64 is
// not exact beyond 2^53. ok is false for other signals and texts, and beyond the signal's range.
func ParseWhole(s *messages.Signal, text string) (raw uint64, ok bool) {
	if s.Float || s.Factor != 1 || s.Offset != 0 {
		return 0, false
	}
	f := rawField(s)
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

	v := f.rawNumber(raw)
	return raw, ok && (!(s.Min < s.Max) || s.Min <= v && v <= s.Max)
}

// parseNumber reads a text as a number in the signal's unit: a number with that unit (known or not) or
// a compatible one, or arithmetic. A signal without a unit takes plain numbers, decimal or 0x.
func parseNumber(s *messages.Signal, text string) (float64, error) {
	unit := units.WantSignal(s.Unit)
	number, own := strings.CutSuffix(text, " "+s.Unit)
	if own || unit.TakesBare() { // no conversion, which could round
		if v, err := strconv.ParseFloat(number, 64); err == nil {
			return v, nil
		}
		if hex, is := strings.CutPrefix(number, "0x"); is {
			if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
				return float64(n), nil
			}
		}
	}

	si, err := unit.Typed(text)
	return unit.FromSI(si), err
}

// notAText continues an error about a value of s; near lists the most similar value texts.
func notAText(s *messages.Signal, near string) string {
	if len(s.Values) == 0 {
		return ""
	}
	return " and none of its texts; " + near
}

// formatRange returns a range as text, without a unit if it has no dimension.
func formatRange(lo, hi float64, unit string) string {
	return units.WithUnit(fmt.Sprintf("%g to %g", lo, hi), unit)
}

// findByName returns the index of the entry of list that is called name, or -1 and up to three
// names that are most similar.
func findByName[T any](list []T, name string, called func(*T) string) (i int, near string) {
	var names []string
	for i := range list {
		if called(&list[i]) == name {
			return i, ""
		}
		names = append(names, called(&list[i]))
	}

	if len(names) == 0 {
		return -1, "there are none"
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(units.Distance(name, a), units.Distance(name, b))
	})
	return -1, "nearest: " + strings.Join(names[:min(3, len(names))], ", ")
}

func signalName(s *messages.Signal) string { return s.Name }
func valueText(v *messages.Value) string   { return v.Text }
