package bench

import (
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"lockstep/io/sigmap"
	"lockstep/model/units"
)

// protect reads one protected group, or a list of them.
func (r *reader) protect(n ast.Node, what string) (list []Protect) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []Protect{r.group(n, what)}
	}
	r.list(n, what, func(n ast.Node) { list = append(list, r.group(n, what)) })
	if len(list) == 0 {
		r.fail(n, "%s: the list is empty", what)
	}
	return list
}

func (r *reader) group(n ast.Node, what string) (p Protect) {
	s := &p.Spec
	key1 := func(name string, read func(n ast.Node, what string)) key {
		return key{name, func(n ast.Node) { read(n, what+": "+name) }}
	}
	words := func(name string, dst *[]string) key {
		return key1(name, func(n ast.Node, what string) { *dst = r.words(n, what) })
	}
	count := func(name string, dst *int) key {
		return key1(name, func(n ast.Node, what string) { *dst = int(r.unsigned(n, what, 1<<16)) })
	}
	optional := func(name string, dst **int) key {
		return key1(name, func(n ast.Node, what string) { v := int(r.unsigned(n, what, 1<<16)); *dst = &v })
	}
	bits := func(name string, dst *uint32) key {
		return key1(name, func(n ast.Node, what string) { *dst = r.unsigned(n, what, math.MaxUint32) })
	}
	flag := func(name string, dst *bool) key {
		return key1(name, func(n ast.Node, what string) { *dst = r.choice(n, what, "true", "false") == "true" })
	}
	numbers := func(name string) key {
		return key1(name, func(n ast.Node, what string) {
			if s.DataIDs != nil {
				r.fail(n, "%s: data_id is given, too: one of data_id and data_ids is meant", what)
			}
			s.DataIDs = r.numbers(n, what)
		})
	}
	r.object(n, what, []key{
		{"profile", func(n ast.Node) { p.At = r.word(n, what+": profile"); s.Profile = p.At.Text }},
		words("counter", &s.Counter), words("checksum", &s.Checksum), count("offset", &s.Offset),
		key1("range", func(n ast.Node, what string) {
			for _, v := range r.numbers(n, what) {
				s.Range = append(s.Range, int(v))
			}
		}),
		words("skip", &s.Skip), flag("reverse", &s.Reverse), numbers("data_ids"), numbers("data_id"), words("nibble", &s.Nibble),
		count("modulus", &s.Modulus), optional("start", &s.Start),
		bits("poly", &s.Poly), bits("init", &s.Init), bits("xor_out", &s.XorOut),
		key1("xor_per_id", func(n ast.Node, what string) {
			s.XorPerID = map[uint32]uint32{}
			for _, e := range r.pairs(n, what) {
				id, err := strconv.ParseUint(e.Key.GetToken().Value, 0, 29)
				if err != nil {
					r.fail(e.Key, "%s: %q is no identifier", what, e.Key.GetToken().Value)
				}
				s.XorPerID[uint32(id)] = r.unsigned(e.Value, what, math.MaxUint32)
			}
		}),
		flag("reflect", &s.Reflect), flag("subtract", &s.Subtract),
		key1("include_id", func(n ast.Node, what string) { s.IncludeID = r.choice(n, what, "none", "bytes", "nibbles") }),
		flag("include_length", &s.IncludeLength),
		count("max_delta", &s.MaxDelta), optional("max_no_new", &s.MaxNoNew), count("sync_counter", &s.SyncCounter),
		key1("window", func(n ast.Node, what string) { s.Window = r.window(n, what) }),
	})
	if p.At.Text == "" {
		r.fail(n, "%s: the profile is missing (profile: e2e-2)", what)
	}
	return p
}

func (r *reader) window(n ast.Node, what string) *sigmap.WindowSpec {
	w := &sigmap.WindowSpec{}
	count := func(name string, dst *int) key {
		return key{name, func(n ast.Node) { *dst = int(r.unsigned(n, what+": "+name, 64)) }}
	}
	r.object(n, what, []key{
		count("window_size", &w.WindowSize), count("min_ok_state_init", &w.MinOkStateInit), count("max_error_state_init", &w.MaxErrorStateInit),
		count("min_ok_state_valid", &w.MinOkStateValid), count("max_error_state_valid", &w.MaxErrorStateValid),
		count("min_ok_state_invalid", &w.MinOkStateInvalid), count("max_error_state_invalid", &w.MaxErrorStateInvalid),
	})
	return w
}

// words reads one value or a list of them.
func (r *reader) words(n ast.Node, what string) (list []string) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []string{r.word(n, what).Text}
	}
	r.list(n, what, func(n ast.Node) { list = append(list, r.word(n, what).Text) })
	return list
}

// unsigned reads a whole number, decimal or 0x, up to hi.
func (r *reader) unsigned(n ast.Node, what string, hi uint64) uint32 {
	w := r.word(n, what)
	v, err := strconv.ParseUint(w.Text, 0, 64)
	if r.err == nil && (err != nil || v > hi) {
		r.fail(n, "%s: %q is not a whole number from 0 to %d (0x%X)", what, w.Text, hi, hi)
	}
	return uint32(v)
}

// numbers reads one such number or a list of them.
func (r *reader) numbers(n ast.Node, what string) (list []uint32) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []uint32{r.unsigned(n, what, math.MaxUint32)}
	}
	r.list(n, what, func(n ast.Node) { list = append(list, r.unsigned(n, what, math.MaxUint32)) })
	return list
}

// values reads what the signals of a frame carry: SIGNAL: value, {table: [[t, v], ...],
// period: T}, {sine: {mean: M, amplitude: A, frequency: F}} or {formula: F(t), period: T}.
func (r *reader) values(n ast.Node, dst *[]Value, what string) {
	for _, e := range r.pairs(n, what) {
		v := Value{Signal: keyWord(e)}
		what := what + ": " + v.Signal.Text
		switch e.Value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			v.Course = r.course(e.Value, what, r.bare)
		default:
			v.Text = r.word(e.Value, what).Text
		}
		*dst = append(*dst, v)
	}
}

// course reads what follows a value over time; value reads a number of it.
func (r *reader) course(n ast.Node, what string, value func(n ast.Node, text, what string) float64) *sigmap.Course {
	c := &sigmap.Course{}
	var period int64
	var sine *sigmap.Course
	var formula ast.Node
	r.object(n, what, []key{
		{"table", func(n ast.Node) {
			r.list(n, what+": table", func(n ast.Node) {
				row := r.words(n, what+": table")
				if len(row) != 2 {
					r.fail(n, "%s: table: a row is [time, value], got %d numbers", what, len(row))
					return
				}
				c.At = append(c.At, int64(math.RoundToEven(r.number(n, row[0], "s", what+": table")*1e9)))
				c.Value = append(c.Value, value(n, row[1], what+": table"))
			})
		}},
		{"period", r.nanoseconds(&period, what+": period", 1e3, 1e15)},
		{"sine", func(n ast.Node) { sine = r.sine(n, what+": sine", value) }},
		{"formula", func(n ast.Node) { formula = n }},
	})
	switch c.Period = period; {
	case len(c.At) > 0 && (sine != nil || formula != nil) || sine != nil && formula != nil:
		r.fail(n, "%s: one of a table, a sine and a formula, not two", what)
	case formula != nil:
		c = r.formula(formula, what+": formula", period)
	case sine == nil:
	case period > 0:
		r.fail(n, "%s: a sine has no period: its frequency says it", what)
	default:
		c = sine
	}
	if r.err == nil {
		if err := c.Check(); err != nil {
			r.fail(n, "%s: %v", what, err)
		}
	}
	return c
}

// formula reads an expression of the time t in seconds, in the unit of what it is for, as
// 1024 lines a period.
func (r *reader) formula(n ast.Node, what string, period int64) *sigmap.Course {
	const lines = 1024
	c := &sigmap.Course{Period: period}
	if period == 0 {
		r.fail(n, "%s: its period is missing (period: 2 s)", what)
	}
	text := r.word(n, what).Text
	for i := range lines + 1 {
		at := int64(math.RoundToEven(float64(period) * float64(i) / lines))
		v, err := units.Quantity(text, "1", map[string]float64{"t": float64(at) / 1e9})
		if err != nil && r.err == nil {
			r.fail(n, "%s: at t = %g s: %s", what, float64(at)/1e9, wrong(Word{Text: text}, err))
		}
		c.At, c.Value = append(c.At, at), append(c.Value, v)
	}
	return c
}

// sine reads {mean: M, amplitude: A, frequency: F}.
func (r *reader) sine(n ast.Node, what string, value func(n ast.Node, text, what string) float64) *sigmap.Course {
	mean, amplitude, frequency := 0.0, 0.0, 0.0
	number := func(name string, dst *float64) key {
		return key{name, func(n ast.Node) { *dst = value(n, r.word(n, what).Text, what+": "+name) }}
	}
	r.object(n, what, []key{number("mean", &mean), number("amplitude", &amplitude), {"frequency", func(n ast.Node) {
		frequency = r.number(n, r.word(n, what).Text, "Hz", what+": frequency")
	}}})
	if !(frequency >= 1e-5 && frequency <= 1e5) {
		r.fail(n, "%s: a frequency of %g Hz is not between 1e-5 Hz and 1e5 Hz", what, frequency)
		return nil
	}
	return sigmap.Sine(mean, amplitude, frequency)
}

// bare is a number without a unit: which one a signal has stands in its database, which
// is not read yet.
func (r *reader) bare(n ast.Node, text, what string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if r.err == nil && (err != nil || math.IsNaN(v) || math.IsInf(v, 0)) {
		r.fail(n, "%s: %q is not a bare number, in the signal's unit", what, text)
	}
	return v
}

// number is a quantity in a unit.
func (r *reader) number(n ast.Node, text, unit, what string) float64 {
	v, err := units.Quantity(text, unit, nil)
	if err != nil && r.err == nil {
		r.fail(n, "%s: %s", what, wrong(Word{Text: text}, err))
	}
	return v
}
