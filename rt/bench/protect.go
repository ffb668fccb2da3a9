package bench

import (
	"math"
	"reflect"
	"strconv"
	"strings"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

// readTaggedFields reads keys into the struct that into points to; the tags of its fields name the
// keys. most is the largest whole number accepted.
func readTaggedFields(r *yamlfile.Reader, f yamlfile.Field, what string, into any, most uint64,
) []yamlfile.Field {
	v, at := reflect.ValueOf(into).Elem(), map[string]int{}
	var keys []string
	for i := range v.NumField() {
		for key := range strings.SplitSeq(v.Type().Field(i).Tag.Get("key"), ",") {
			keys, at[key] = append(keys, key), i
		}
	}

	fields := r.FieldsOf(f, what)
	r.CheckKeys(fields, what, keys...)
	for _, g := range fields {
		readTagged(r, g, what+": "+g.Key, v.Field(at[g.Key]).Addr().Interface(), most)
	}
	return fields
}

// readTagged reads the value of one key.
func readTagged(r *yamlfile.Reader, f yamlfile.Field, what string, into any, most uint64) {
	switch into := into.(type) {
	case *bool:
		*into = r.Choice(f, what, "true", "false") == "true"
	case *int:
		*into = int(r.Unsigned(f, what, most))
	case **int:
		v := int(r.Unsigned(f, what, most))
		*into = &v
	case *uint32:
		*into = r.Unsigned(f, what, math.MaxUint32)
	case *string:
		if f.Key == "profile" {
			*into = r.Scalar(f, what).Text
		} else {
			*into = r.Choice(f, what, sigmap.IncludeIDs()...)
		}
	case *[]string:
		*into = r.Texts(f, what)
	case *[]int:
		for _, v := range r.OneOrItems(f, what) {
			*into = append(*into, int(r.Unsigned(v, what, math.MaxUint32)))
		}
	case *[]uint32:
		if *into != nil {
			r.Fail(f, "%s: expected one of data_id and data_ids, got both", what)
		}
		for _, v := range r.OneOrItems(f, what) {
			*into = append(*into, r.Unsigned(v, what, math.MaxUint32))
		}
	case *map[uint32]uint32:
		*into = map[uint32]uint32{}
		for _, g := range r.FieldsOf(f, what) {
			id, err := strconv.ParseUint(g.Key, 0, 29)
			if err != nil {
				r.FailAt(g.KeyAt, "%s: %q is not an identifier", what, g.Key)
			}
			(*into)[uint32(id)] = r.Unsigned(g, what, math.MaxUint32)
		}
	case **sigmap.WindowLimits:
		*into = &sigmap.WindowLimits{}
		readTaggedFields(r, f, what, *into, 64)
	default:
		panic("bench: a protection has a key of an unknown type") // a test reads all keys
	}
}

// numberReader reads a number of a waveform; f is its field for errors.
type numberReader func(r *yamlfile.Reader, f yamlfile.Field, text, what string) float64

// ReadWaveform reads a waveform: {table: [[t, v], ...], period: T}, {sine: {mean: M, amplitude: A,
// frequency: F}} or {formula: F(t), period: T}; value reads one number.
func ReadWaveform(r *yamlfile.Reader, f yamlfile.Field, what string, value numberReader) *sigmap.Waveform {
	s := r.Section(f, what, "table", "period", "sine", "formula")
	c := &sigmap.Waveform{Period: readNanoseconds(r, s["period"], what+": period", 1e3, 1e15)}
	table, forms := what+": table", 0
	r.CheckRows(s["table"], table, 2)
	for _, row := range r.Items(s["table"], table) {
		cells := r.Texts(row, table)
		if len(cells) != 2 {
			r.Fail(row, "%s: a row is [time, value], got %d numbers", table, len(cells))
		}
		c.At = append(c.At, int64(math.RoundToEven(ReadQuantity(r, row, cells[0], "s", table)*1e9)))
		c.Value = append(c.Value, value(r, row, cells[1], table))
	}

	for _, given := range []bool{len(c.At) > 0, !s["sine"].IsMissing(), !s["formula"].IsMissing()} {
		if given {
			forms++
		}
	}

	switch formula, isFormula := s["formula"]; {
	case forms > 1:
		r.Fail(f, "%s: expected one of table, sine and formula, got several", what)
	case isFormula:
		c = readFormula(r, formula, what+": formula", c.Period)
	case s["sine"].IsMissing():
	case c.Period > 0:
		r.Fail(f, "%s: a sine has no key period; give its frequency", what)
	default:
		c = readSine(r, s["sine"], what+": sine", value)
	}

	if err := c.Check(); err != nil {
		r.Fail(f, "%s: %v", what, err)
	}

	return c
}

// readFormula reads an expression of the time t, s, as a table of 1024 line segments per period. The
// value is in the unit of the signal or port.
func readFormula(r *yamlfile.Reader, f yamlfile.Field, what string, period int64) *sigmap.Waveform {
	const segments = 1024
	c := &sigmap.Waveform{Period: period}
	if period == 0 {
		r.Fail(f, "%s: its period is missing (period: 2 s)", what)
	}
	text := r.Scalar(f, what).Text
	for i := range segments + 1 {
		at := int64(math.RoundToEven(float64(period) * float64(i) / segments))
		v, err := units.Quantity(text, "1", map[string]float64{"t": float64(at) / 1e9})
		if err != nil {
			r.Fail(f, "%s: at t = %g s: %s", what, float64(at)/1e9, QuantityError(text, err))
		}
		c.At, c.Value = append(c.At, at), append(c.Value, v)
	}

	return c
}

// readSine reads {mean: M, amplitude: A, frequency: F}.
func readSine(r *yamlfile.Reader, f yamlfile.Field, what string, value numberReader) *sigmap.Waveform {
	s := r.Section(f, what, "mean", "amplitude", "frequency")
	number := func(key string, read numberReader) float64 {
		if s[key].IsMissing() {
			return 0
		}
		return read(r, s[key], r.Scalar(s[key], what).Text, what+": "+key)
	}

	mean, amplitude := number("mean", value), number("amplitude", value)
	frequency := number("frequency", func(r *yamlfile.Reader, f yamlfile.Field, text, what string) float64 {
		return ReadQuantity(r, f, text, "Hz", what)
	})
	if !(frequency >= 1e-5 && frequency <= 1e5) {
		r.Fail(f, "%s: a frequency of %g Hz is not between 1e-5 Hz and 1e5 Hz", what, frequency)
	}

	return sigmap.Sine(mean, amplitude, frequency)
}

// readBareNumber reads a number without a unit: the unit of the signal is in its database, which
// is not read yet.
func readBareNumber(r *yamlfile.Reader, f yamlfile.Field, text, what string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		r.Fail(f, "%s: %q is not a bare number, in the signal's unit", what, text)
	}
	return v
}

// ReadQuantity reads a quantity and converts it to an SI unit; a number without a unit is in unit.
func ReadQuantity(r *yamlfile.Reader, f yamlfile.Field, text, unit, what string) float64 {
	v, err := units.Quantity(text, unit, nil)
	if err != nil {
		r.Fail(f, "%s: %s", what, QuantityError(text, err))
	}
	return v
}

// ProtectionOf describes the part of a protection that a signal carries, or returns other.
func ProtectionOf(s *messages.Signal, list []sigmap.Protection, other string) string {
	for i := range list {
		if part := list[i].Carries(s); part != "" {
			return part + " of " + list[i].Profile
		}
	}

	return other
}
