package bench

import (
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/sigmap"
	"lockstep/model"
)

// protect reads one protected group, or a list of them.
func (r *reader) protect(n ast.Node, what string) (list []Protect) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		return []Protect{r.group(n, what)}
	}
	r.list(n, what, func(n ast.Node) { list = append(list, r.group(n, what)) })
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
		return key1(name, func(n ast.Node, what string) { s.DataIDs = r.numbers(n, what) })
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
// period: T} or {sine: {mean: M, amplitude: A, frequency: F}}.
func (r *reader) values(n ast.Node, dst *[]Value, what string) {
	for _, e := range r.pairs(n, what) {
		v := Value{Signal: keyWord(e)}
		what := what + ": " + v.Signal.Text
		switch e.Value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			v.Course = r.course(e.Value, what)
		default:
			v.Text = r.word(e.Value, what).Text
		}
		*dst = append(*dst, v)
	}
}

func (r *reader) course(n ast.Node, what string) *sigmap.Course {
	c := &sigmap.Course{}
	r.object(n, what, []key{
		{"table", func(n ast.Node) {
			r.list(n, what+": table", func(n ast.Node) {
				row := r.words(n, what+": table")
				if len(row) != 2 {
					r.fail(n, "%s: table: a row is [time, value], got %d numbers", what, len(row))
					return
				}
				c.At = append(c.At, int64(math.RoundToEven(r.number(n, row[0], "s", what+": table")*1e9)))
				c.Value = append(c.Value, r.number(n, row[1], "1", what+": table"))
			})
		}},
		{"period", r.nanoseconds(&c.Period, what+": period", 1e3, 1e15)},
		{"sine", func(n ast.Node) {
			mean, amplitude, frequency := 0.0, 0.0, 0.0
			number := func(name, unit string, dst *float64) key {
				return key{name, func(n ast.Node) { *dst = r.number(n, r.word(n, what).Text, unit, what+": sine: "+name) }}
			}
			r.object(n, what+": sine", []key{number("mean", "1", &mean), number("amplitude", "1", &amplitude), number("frequency", "Hz", &frequency)})
			if !(frequency >= 1e-5 && frequency <= 1e5) {
				r.fail(n, "%s: sine: a frequency of %g Hz is not between 1e-5 Hz and 1e5 Hz", what, frequency)
				return
			}
			*c = *sigmap.Sine(mean, amplitude, frequency)
		}},
	})
	if r.err == nil {
		if err := c.Check(); err != nil {
			r.fail(n, "%s: %v", what, err)
		}
	}
	return c
}

// number is a quantity in a unit.
func (r *reader) number(n ast.Node, text, unit, what string) float64 {
	v, err := model.Quantity(text, unit, nil)
	if err != nil && r.err == nil {
		r.fail(n, "%s: %s", what, wrong(Word{Text: text}, err))
	}
	return v
}
