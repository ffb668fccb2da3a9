package bench

import (
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

// readProtection reads one protected group, or a list of them.
func readProtection(r *yamlfile.Reader, n ast.Node, what string) (list []Protect) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []Protect{readProtectionGroup(r, n, what)}
	}
	r.Sequence(n, what, func(n ast.Node) { list = append(list, readProtectionGroup(r, n, what)) })
	if len(list) == 0 {
		r.Fail(n, "%s: the list is empty", what)
	}
	return list
}

func readProtectionGroup(r *yamlfile.Reader, n ast.Node, what string) (p Protect) {
	s := &p.Spec
	key1 := func(name string, read func(n ast.Node, what string)) yamlfile.Key {
		return yamlfile.Key{Name: name, Read: func(n ast.Node) { read(n, what+": "+name) }}
	}
	words := func(name string, dst *[]string) yamlfile.Key {
		return key1(name, func(n ast.Node, what string) { *dst = r.Texts(n, what) })
	}
	count := func(name string, dst *int) yamlfile.Key {
		return key1(name, func(n ast.Node, what string) { *dst = int(r.Unsigned(n, what, 1<<16)) })
	}
	optional := func(name string, dst **int) yamlfile.Key {
		return key1(name, func(n ast.Node, what string) { v := int(r.Unsigned(n, what, 1<<16)); *dst = &v })
	}
	bits := func(name string, dst *uint32) yamlfile.Key {
		return key1(name, func(n ast.Node, what string) { *dst = r.Unsigned(n, what, math.MaxUint32) })
	}
	flag := func(name string, dst *bool) yamlfile.Key {
		return key1(name, func(n ast.Node, what string) { *dst = r.Choice(n, what, "true", "false") == "true" })
	}
	numbers := func(name string) yamlfile.Key {
		return key1(name, func(n ast.Node, what string) {
			if s.DataIDs != nil {
				r.Fail(n, "%s: data_id is given, too: one of data_id and data_ids is meant", what)
			}
			s.DataIDs = r.UnsignedList(n, what)
		})
	}
	r.Mapping(n, what, []yamlfile.Key{
		{Name: "profile", Read: func(n ast.Node) { p.At = r.Scalar(n, what+": profile"); s.Profile = p.At.Text }},
		words("counter", &s.Counter), words("checksum", &s.Checksum), count("offset", &s.Offset),
		key1("range", func(n ast.Node, what string) {
			for _, v := range r.UnsignedList(n, what) {
				s.Range = append(s.Range, int(v))
			}
		}),
		words("skip", &s.Skip), flag("reverse", &s.Reverse), numbers("data_ids"), numbers("data_id"), words("nibble", &s.Nibble),
		count("modulus", &s.Modulus), optional("start", &s.Start),
		bits("poly", &s.Poly), bits("init", &s.Init), bits("xor_out", &s.XorOut),
		key1("xor_per_id", func(n ast.Node, what string) {
			s.XorPerID = map[uint32]uint32{}
			for _, e := range r.Entries(n, what) {
				id, err := strconv.ParseUint(e.Key.GetToken().Value, 0, 29)
				if err != nil {
					r.Fail(e.Key, "%s: %q is no identifier", what, e.Key.GetToken().Value)
				}
				s.XorPerID[uint32(id)] = r.Unsigned(e.Value, what, math.MaxUint32)
			}
		}),
		flag("reflect", &s.Reflect), flag("subtract", &s.Subtract),
		key1("include_id", func(n ast.Node, what string) { s.IncludeID = r.Choice(n, what, "none", "bytes", "nibbles") }),
		flag("include_length", &s.IncludeLength),
		count("max_delta", &s.MaxDelta), optional("max_no_new", &s.MaxNoNew), count("sync_counter", &s.SyncCounter),
		key1("window", func(n ast.Node, what string) { s.Window = readWindow(r, n, what) }),
	})
	if p.At.Text == "" {
		r.Fail(n, "%s: the profile is missing (profile: e2e-2)", what)
	}
	return p
}

func readWindow(r *yamlfile.Reader, n ast.Node, what string) *messages.WindowSpec {
	w := &messages.WindowSpec{}
	count := func(name string, dst *int) yamlfile.Key {
		return yamlfile.Key{Name: name, Read: func(n ast.Node) { *dst = int(r.Unsigned(n, what+": "+name, 64)) }}
	}
	r.Mapping(n, what, []yamlfile.Key{
		count("window_size", &w.WindowSize), count("min_ok_state_init", &w.MinOkStateInit), count("max_error_state_init", &w.MaxErrorStateInit),
		count("min_ok_state_valid", &w.MinOkStateValid), count("max_error_state_valid", &w.MaxErrorStateValid),
		count("min_ok_state_invalid", &w.MinOkStateInvalid), count("max_error_state_invalid", &w.MaxErrorStateInvalid),
	})
	return w
}

// readValues reads what the signals of a frame carry: SIGNAL: value, {table: [[t, v], ...],
// period: T}, {sine: {mean: M, amplitude: A, frequency: F}} or {formula: F(t), period: T}.
func readValues(r *yamlfile.Reader, n ast.Node, dst *[]Value, what string) {
	for _, e := range r.Entries(n, what) {
		v := Value{Signal: yamlfile.KeyScalar(e)}
		what := what + ": " + v.Signal.Text
		switch e.Value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			v.Course = ReadWaveform(r, e.Value, what, func(n ast.Node, text, what string) float64 { return readBareNumber(r, n, text, what) })
		default:
			v.Text = r.Scalar(e.Value, what).Text
		}
		*dst = append(*dst, v)
	}
}

// ReadWaveform reads a value over time; value reads one number of it.
func ReadWaveform(r *yamlfile.Reader, n ast.Node, what string, value func(n ast.Node, text, what string) float64) *sigmap.Course {
	c := &sigmap.Course{}
	var period int64
	var sine *sigmap.Course
	var formula ast.Node
	r.Mapping(n, what, []yamlfile.Key{
		{Name: "table", Read: func(n ast.Node) {
			r.Sequence(n, what+": table", func(n ast.Node) {
				row := r.Texts(n, what+": table")
				if len(row) != 2 {
					r.Fail(n, "%s: table: a row is [time, value], got %d numbers", what, len(row))
					return
				}
				c.At = append(c.At, int64(math.RoundToEven(ReadQuantity(r, n, row[0], "s", what+": table")*1e9)))
				c.Value = append(c.Value, value(n, row[1], what+": table"))
			})
		}},
		{Name: "period", Read: readNanoseconds(r, &period, what+": period", 1e3, 1e15)},
		{Name: "sine", Read: func(n ast.Node) { sine = readSine(r, n, what+": sine", value) }},
		{Name: "formula", Read: func(n ast.Node) { formula = n }},
	})
	switch c.Period = period; {
	case len(c.At) > 0 && (sine != nil || formula != nil) || sine != nil && formula != nil:
		r.Fail(n, "%s: one of a table, a sine and a formula, not two", what)
	case formula != nil:
		c = readFormula(r, formula, what+": formula", period)
	case sine == nil:
	case period > 0:
		r.Fail(n, "%s: a sine has no period: its frequency says it", what)
	default:
		c = sine
	}
	if r.Err == nil {
		if err := c.Check(); err != nil {
			r.Fail(n, "%s: %v", what, err)
		}
	}
	return c
}

// readFormula reads an expression of the time t in seconds, in the unit of what it is for, as
// 1024 lines a period.
func readFormula(r *yamlfile.Reader, n ast.Node, what string, period int64) *sigmap.Course {
	const lines = 1024
	c := &sigmap.Course{Period: period}
	if period == 0 {
		r.Fail(n, "%s: its period is missing (period: 2 s)", what)
	}
	text := r.Scalar(n, what).Text
	for i := range lines + 1 {
		at := int64(math.RoundToEven(float64(period) * float64(i) / lines))
		v, err := units.Quantity(text, "1", map[string]float64{"t": float64(at) / 1e9})
		if err != nil && r.Err == nil {
			r.Fail(n, "%s: at t = %g s: %s", what, float64(at)/1e9, QuantityError(yamlfile.Scalar{Text: text}, err))
		}
		c.At, c.Value = append(c.At, at), append(c.Value, v)
	}
	return c
}

// readSine reads {mean: M, amplitude: A, frequency: F}.
func readSine(r *yamlfile.Reader, n ast.Node, what string, value func(n ast.Node, text, what string) float64) *sigmap.Course {
	mean, amplitude, frequency := 0.0, 0.0, 0.0
	number := func(name string, dst *float64) yamlfile.Key {
		return yamlfile.Key{Name: name, Read: func(n ast.Node) { *dst = value(n, r.Scalar(n, what).Text, what+": "+name) }}
	}
	r.Mapping(n, what, []yamlfile.Key{number("mean", &mean), number("amplitude", &amplitude), {Name: "frequency", Read: func(n ast.Node) {
		frequency = ReadQuantity(r, n, r.Scalar(n, what).Text, "Hz", what+": frequency")
	}}})
	if !(frequency >= 1e-5 && frequency <= 1e5) {
		r.Fail(n, "%s: a frequency of %g Hz is not between 1e-5 Hz and 1e5 Hz", what, frequency)
		return nil
	}
	return sigmap.Sine(mean, amplitude, frequency)
}

// readBareNumber is a number without a unit: which one a signal has stands in its database, which
// is not read yet.
func readBareNumber(r *yamlfile.Reader, n ast.Node, text, what string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if r.Err == nil && (err != nil || math.IsNaN(v) || math.IsInf(v, 0)) {
		r.Fail(n, "%s: %q is not a bare number, in the signal's unit", what, text)
	}
	return v
}

// ReadQuantity reads a quantity in an SI unit; a number without a unit is in it.
func ReadQuantity(r *yamlfile.Reader, n ast.Node, text, unit, what string) float64 {
	v, err := units.Quantity(text, unit, nil)
	if err != nil && r.Err == nil {
		r.Fail(n, "%s: %s", what, QuantityError(yamlfile.Scalar{Text: text}, err))
	}
	return v
}

// ProtectedPart says that a signal is part of a protection, else the other text.
func ProtectedPart(s *messages.Signal, list []sigmap.Protection, other string) string {
	for i := range list {
		if part := list[i].Carries(s); part != "" {
			return part + " of " + list[i].Profile
		}
	}
	return other
}
