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
	case *uint64:
		*into = r.Unsigned(f, what, math.MaxUint64)
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
			*into = append(*into, uint32(r.Unsigned(v, what, math.MaxUint32)))
		}
	case *map[uint32]uint64:
		*into = map[uint32]uint64{}
		for _, g := range r.FieldsOf(f, what) {
			id, err := strconv.ParseUint(g.Key, 0, 29)
			if err != nil {
				r.FailAt(g.KeyAt, "%s: %q is not an identifier", what, g.Key)
			}
			(*into)[uint32(id)] = r.Unsigned(g, what, math.MaxUint64)
		}
	case **sigmap.WindowLimits:
		*into = &sigmap.WindowLimits{}
		readTaggedFields(r, f, what, *into, 64)
	default:
		panic("bench: a protection has a key of an unknown type") // a test reads all keys
	}
}

// ReadWaveform reads a waveform in SI: {table: [[t, v], ...], units: [s, bar], period: T}, {sine: {mean:
// M, amplitude: A, frequency: F}} or {formula: F(t), period: T}. unit is the unit of the signal or port.
func ReadWaveform(r *yamlfile.Reader, f yamlfile.Field, what string, unit units.Wanted) *sigmap.Waveform {
	s := r.Section(f, what, "table", "units", "period", "sine", "formula")
	c := &sigmap.Waveform{Period: readNanoseconds(r, s["period"], what+": period", 1e3, 1e15)}
	c.At, c.Value = readTable(r, s["table"], s["units"], what+": table", unit)
	forms := 0
	for _, given := range []bool{len(c.At) > 0, !s["sine"].IsMissing(), !s["formula"].IsMissing()} {
		if given {
			forms++
		}
	}

	switch formula, isFormula := s["formula"]; {
	case forms > 1:
		r.Fail(f, "%s: expected one of table, sine and formula, got several", what)
	case isFormula:
		c = readFormula(r, formula, what+": formula", c.Period, unit)
	case s["sine"].IsMissing():
	case c.Period > 0:
		r.Fail(f, "%s: a sine has no key period; give its frequency", what)
	default:
		c = readSine(r, s["sine"], what+": sine", unit)
	}

	if err := c.Check(); err != nil {
		r.Fail(f, "%s: %v", what, err)
	}

	return c
}

// mostTableTime bounds the times of a table, s, so that they fit nanoseconds.
const mostTableTime = 1e9

// readTable reads rows of time and value: in s and unit, or in the units that the file states.
func readTable(r *yamlfile.Reader, f, stated yamlfile.Field, what string, unit units.Wanted,
) (at []int64, value []float64) {
	columns := []units.Wanted{units.Want("s"), unit}
	if !stated.IsMissing() {
		var err error
		if columns, err = units.SpellColumns(r.Texts(stated, what+": units"), columns...); err != nil {
			r.Fail(stated, "%s: units: %s", what, units.Reason(err))
		}
	}

	r.CheckRows(f, what, 2)
	for _, row := range r.Items(f, what) {
		cells := r.Texts(row, what)
		if len(cells) != 2 {
			r.Fail(row, "%s: a row is [time, value], got %d numbers", what, len(cells))
		}
		var pair [2]float64
		for i, text := range cells {
			var err error
			if pair[i], err = columns[i].Beside(text); err != nil {
				r.Fail(row, "%s: %s", what, QuantityError(text, err))
			}
		}
		if !(math.Abs(pair[0]) < mostTableTime) {
			r.Fail(row, "%s: time %s is not less than %g s", what, cells[0], mostTableTime)
		}
		at, value = append(at, int64(math.RoundToEven(pair[0]*1e9))), append(value, pair[1])
	}

	return at, value
}

// readFormula reads an expression of the time t, s, as a table of 1024 line segments per period.
func readFormula(r *yamlfile.Reader, f yamlfile.Field, what string, period int64, unit units.Wanted) *sigmap.Waveform {
	const segments = 1024
	c := &sigmap.Waveform{Period: period}
	if period == 0 {
		r.Fail(f, "%s: its period is missing (period: 2 s)", what)
	}
	text := r.Scalar(f, what).Text
	for i := range segments + 1 {
		at := int64(math.RoundToEven(float64(period) * float64(i) / segments))
		v, err := units.Evaluate(text, map[string]units.Value{"t": {SI: float64(at) / 1e9, Bare: true}})
		if err == nil {
			v.SI, err = v.Typed(text, unit)
		}
		if err != nil {
			r.Fail(f, "%s: at t = %g s: %s", what, float64(at)/1e9, QuantityError(text, err))
		}
		c.At, c.Value = append(c.At, at), append(c.Value, v.SI)
	}

	return c
}

// readSine reads {mean: M, amplitude: A, frequency: F}.
func readSine(r *yamlfile.Reader, f yamlfile.Field, what string, unit units.Wanted) *sigmap.Waveform {
	s := r.Section(f, what, "mean", "amplitude", "frequency")
	number := func(key string, unit units.Wanted) float64 {
		if s[key].IsMissing() {
			return unit.Zero
		}
		return ReadQuantity(r, s[key], r.Scalar(s[key], what).Text, unit, what+": "+key)
	}

	mean, amplitude := number("mean", unit), number("amplitude", unit.Difference())
	frequency := number("frequency", units.Want("Hz"))
	if !(frequency >= 1e-5 && frequency <= 1e5) {
		r.Fail(f, "%s: a frequency of %g Hz is not between 1e-5 Hz and 1e5 Hz", what, frequency)
	}

	return sigmap.Sine(mean, amplitude, frequency)
}

// ReadQuantity reads a quantity by the rule for typed text and converts it to SI.
func ReadQuantity(r *yamlfile.Reader, f yamlfile.Field, text string, unit units.Wanted, what string) float64 {
	v, err := unit.Typed(text)
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
