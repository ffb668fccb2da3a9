package plantfile

import (
	"fmt"
	"math"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

func single(s model.Source) network.Waveform { return network.Waveform{{{Leaf: s, Signal: -1}}} }

// Bounds of a sum of products.
const (
	maxTerms   = 64
	maxFactors = 8
	maxUnroll  = 1000 // periods of a pulse that ends
)

// waveformKeys are the ways to write a value over time.
var waveformKeys = []string{"constant", "table", "step", "ramp", "sine", "pulse", "trapezoid", "sum", "product"}

// waveform reads a value over time. With named, names of inputs and of signals of
// elements are accepted.
func (l *loader) waveform(f syntax.Field, what string, want units.Wanted, named bool) network.Waveform {
	if text, ok := syntax.ScalarText(f.Node); ok && named {
		if c, ok := l.namedWaveform(f, text, what, want); ok {
			return c
		}
	}
	if _, ok := f.Node.(ast.MapNode); !ok {
		return single(network.Constant(l.quantity(f, what, want)))
	}
	fields := l.Entries(f.Node, f.At, what)
	l.CheckKeys(fields, what, append(waveformKeys, "held", "period", "startTime")...)
	var main syntax.Field
	for _, g := range fields {
		if slices.Index(waveformKeys, g.Key) < 0 {
			continue
		}
		if main.Key != "" {
			l.Fail(g.KeyAt, "%s: %s and %s in one value; write a sum", what, main.Key, g.Key)
		}
		main = g
	}
	if main.Key == "" {
		l.Fail(f.At, "%s: empty; a value or {table: [[t, v], ...]} is wanted", what)
		return single(network.Constant(0))
	}
	what += ": " + main.Key
	for _, g := range fields {
		if g.Key != main.Key && main.Key != "table" {
			l.Fail(g.KeyAt, "%s: %s goes with table", what, g.Key)
		}
	}
	if l.Err != nil {
		return single(network.Constant(0))
	}
	switch main.Key {
	case "sum":
		return l.sumWaveforms(main, what, want, named)
	case "product":
		return l.multiplyWaveforms(main, what, want, named)
	case "constant":
		return single(network.Constant(l.quantity(main, what, want)))
	case "table":
		return single(l.tableSource(main, fields, what, want))
	}
	return single(l.shape(main, what, want))
}

// namedWaveform resolves a name: a signal of the enclosing assembly, of an element, or
// an input.
func (l *loader) namedWaveform(f syntax.Field, name, what string, want units.Wanted) (network.Waveform, bool) {
	if b, ok := l.scope.signals[name]; ok {
		inside, element := l.scope, l.Reader.Element
		l.scope, l.Reader.Element = b.scope, b.element
		c := l.waveform(b.field, b.what, want, true)
		l.scope, l.Reader.Element = inside, element
		return c, true
	}
	i, kind := l.signalNamed(name)
	if i < 0 {
		return nil, false
	}
	s := &l.Network.Signals[i]
	s.Read = true
	if s.At == (network.Pos{}) {
		s.At = f.At // of an element that may be read later
	}
	if s.Unit.Dim != want.Dim {
		l.Fail(f.At, "%s: %s %q is in %s; %s is wanted", what, kind, name, s.Unit.SI, want.Spelled)
	}
	return network.Waveform{{{Leaf: model.Source{}, Signal: i}}}, true
}

// signalNamed is the signal of an element in the scope, an input, or what an element
// exerts; -1 if there is none.
func (l *loader) signalNamed(name string) (i int, kind string) {
	for _, full := range []string{l.scope.prefix + name, name} {
		if i, ok := l.provided[full]; ok {
			return i, "signal"
		}
	}
	if i, ok := l.inputs[name]; ok {
		return i, "input"
	}
	for _, full := range []string{l.scope.prefix + name, name} {
		if i := l.exertion(full); i >= 0 {
			return i, "signal"
		}
	}
	return -1, ""
}

func (l *loader) sumWaveforms(f syntax.Field, what string, want units.Wanted, named bool) network.Waveform {
	var all network.Waveform
	for _, n := range l.Items(f.Node, f.At, what) {
		all = append(all, l.waveform(syntax.Field{At: syntax.StartOf(n), Node: n}, what, want, named)...)
		if len(all) > maxTerms {
			l.Fail(f.At, "%s: more than %d terms", what, maxTerms)
			return all
		}
	}
	if len(all) == 0 {
		l.Fail(f.At, "%s: empty; values to add are wanted", what)
	}
	return all
}

// multiplyWaveforms multiplies out. Signals and inputs have their units, the first factor
// what is left of the wanted one, the others are numbers.
func (l *loader) multiplyWaveforms(f syntax.Field, what string, want units.Wanted, named bool) network.Waveform {
	all := network.Waveform{{}}
	number, _ := units.Parse("1")
	items := l.Items(f.Node, f.At, what)
	in := make([]units.Wanted, len(items))
	for i, n := range items {
		in[i] = units.Want("1")
		text, _ := syntax.ScalarText(n)
		if s, _ := l.signalNamed(text); i > 0 && named && s >= 0 {
			u := l.Network.Signals[s].Unit
			in[i] = units.Wanted{Unit: u, Spelled: u.SI}
			if u.Dim != number.Dim {
				for d := range want.Dim {
					want.Dim[d] -= u.Dim[d]
				}
				want.Factor, want.Spelled = 1, want.Dim.String()
			}
		}
	}
	for i, n := range items {
		if i == 0 {
			in[0] = want
		}
		c := l.waveform(syntax.Field{At: syntax.StartOf(n), Node: n}, what, in[i], named)
		if len(all)*len(c) > maxTerms || len(all[0])+len(c[0]) > maxFactors {
			l.Fail(f.At, "%s: more than %d terms or %d factors when multiplied out", what, maxTerms, maxFactors)
			return all
		}
		var next network.Waveform
		for _, a := range all {
			for _, b := range c {
				next = append(next, append(append([]network.Factor(nil), a...), b...))
			}
		}
		all = next
	}
	if len(all[0]) == 0 {
		l.Fail(f.At, "%s: empty; values to multiply are wanted", what)
		return single(network.Constant(0))
	}
	return all
}

// signal reads what drives an element: the name of an input or signal, a source of
// its own, or sums and products of these. It returns an index into the signals of the network.
func (l *loader) signal(f syntax.Field, what, name string, want units.Wanted) int {
	c := l.waveform(f, what, want, true)
	if len(c) == 1 && len(c[0]) == 1 && c[0][0].Signal >= 0 {
		return c[0][0].Signal
	}
	s := network.Signal{Name: name, At: f.At, Unit: want.Unit, Read: true, Waveform: c}
	add := func(s network.Signal) int {
		l.Network.Signals = append(l.Network.Signals, s)
		return len(l.Network.Signals) - 1
	}
	reads := false
	for _, term := range c {
		for _, f := range term {
			reads = reads || f.Signal >= 0
		}
	}
	if !reads {
		s.Source = c.Source()
		return add(s)
	}
	s.Law, s.Linear = l.mixed(c, s), c.Linear()
	return add(s)
}

// mixed is the law of a waveform that reads signals; its sources become signals of
// their own.
func (l *loader) mixed(c network.Waveform, s network.Signal) *network.Law {
	var m network.Law
	for i, term := range c {
		var pure []network.Factor
		n := 0
		for k, f := range term {
			if f.Signal < 0 {
				pure = append(pure, f)
				continue
			}
			m.Arg(network.SignalOf(f.Signal), l.others(term, k))
			if n++; n > 1 {
				m.Do(model.Mul)
			}
		}
		depend(l.Network, &m, term, n)
		if len(pure) > 0 {
			part := network.Signal{Name: fmt.Sprintf("%s.%d", s.Name, i+1), At: s.At, Read: true, Source: network.Waveform{pure}.Source()}
			l.Network.Signals = append(l.Network.Signals, part)
			m.Arg(network.SignalOf(len(l.Network.Signals)-1), 0)
			if n > 0 {
				m.Do(model.Mul)
			}
		}
		if i > 0 {
			m.Do(model.Add)
		}
	}
	return &m
}

// others bounds the product of all factors of a term but the k-th.
func (l *loader) others(term []network.Factor, k int) float64 {
	p := 1.0
	for i, f := range term {
		if i == k {
			continue
		}
		if f.Signal >= 0 {
			p *= l.Network.MaxAbs(f.Signal)
			continue
		}
		low, high := network.SourceRange(f.Leaf)
		p *= max(math.Abs(low), math.Abs(high))
	}
	return p
}

// tableSource reads table: [[t, v], ...] with held, period and startTime beside it.
func (l *loader) tableSource(f syntax.Field, beside []syntax.Field, what string, want units.Wanted) model.Source {
	var s model.Source
	for _, n := range l.Items(f.Node, f.At, what) {
		at := syntax.StartOf(n)
		pair := l.Items(n, at, what+": row")
		if len(pair) != 2 {
			l.Fail(at, "%s: row of %d values; [time, value] is wanted", what, len(pair))
			return network.Constant(0)
		}
		t := l.quantity(syntax.Field{At: syntax.StartOf(pair[0]), Node: pair[0]}, what+": time", units.Want("s"))
		v := l.quantity(syntax.Field{At: syntax.StartOf(pair[1]), Node: pair[1]}, what+": value", want)
		if k := len(s.T); k > 0 && !(t >= s.T[k-1]) {
			l.Fail(at, "%s: time %g s comes after %g s; times must not decrease", what, t, s.T[k-1])
		}
		s.T, s.V = append(s.T, t), append(s.V, v)
		if l.Err != nil {
			return network.Constant(0)
		}
	}
	if len(s.T) == 0 {
		l.Fail(f.At, "%s: empty; at least one row [time, value] is wanted", what)
		return network.Constant(0)
	}
	for _, g := range beside {
		switch g.Key {
		case "held":
			text := l.Text(g, what+": held")
			if s.Held = text == "true"; text != "true" && text != "false" {
				l.Fail(g.At, "%s: held: %q is neither true nor false", what, text)
			}
		case "period":
			s.Period = l.quantity(g, what+": period", units.Want("s"))
			if last := s.T[len(s.T)-1]; !(s.Period > 0 && s.Period >= last && s.T[0] >= 0) {
				l.Fail(g.At, "%s: period %g s does not hold the table, %g s to %g s", what, s.Period, s.T[0], last)
			}
		case "startTime":
			s.Start = l.quantity(g, what+": startTime", units.Want("s"))
		}
	}
	if s.Start != 0 && s.Period == 0 {
		for i := range s.T {
			s.T[i] += s.Start
		}
		s.Start = 0
	}
	return s
}

// depend notes that of a term whose last n arguments are its signals each slope grows with
// the size of the others.
func depend(p *network.Plant, l *network.Law, term []network.Factor, n int) {
	first, k := len(l.Args)-n, 0
	for _, f := range term {
		if f.Signal < 0 {
			continue
		}
		for i := range n {
			if i != k {
				p.SizeSlope(l, first+i, first+k, f.Signal)
			}
		}
		k++
	}
}
