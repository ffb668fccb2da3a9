package plantfile

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// Load reads a plant file; see the package comment for its form. file names it in
// errors, which read FILE:LINE:COL: model: what is wrong and what would be right.
//
// What follows only from the whole network is checked by package assemble.
func Load(file string, data []byte, kinds []element.Kind) (*network.Plant, error) {
	d, err := Parse(file, data, kinds)
	if err != nil {
		return nil, err
	}
	return d.Load()
}

const (
	maxElements = 2000
	maxPorts    = 1000 // inputs, and outputs
	maxDelay    = 1.0  // s, dead time of an input
)

// loader fills a plant section by section.
type loader struct {
	syntax.Reader
	*element.Plant
	kinds      []element.Kind
	scope      *scope // of what is being read
	globals    map[string]units.Value
	inputs     map[string]int // name -> signal
	assemblies map[string]*definition
	used       map[string]bool // names of the sub-assemblies in the plant
	list       []*entry
	elements   map[string]element.Declared
	nodes      map[string]int
	provided   map[string]int            // signals of elements, by the element's name
	exertions  []exertion                // what elements exert, where that is read as a signal
	asked      map[ast.Node]units.Wanted // where a number was taken, and in which unit
}

func (l *loader) load(top ast.Node) {
	if top == nil {
		l.Fail(network.Pos{Line: 1, Col: 1}, "the file is empty; a plant file starts with plant: NAME")
		return
	}
	const what = "plant file"
	fields := l.Entries(top, syntax.StartOf(top), what)
	l.CheckKeys(fields, what, "plant", "about", "parameters", "inputs", "assemblies", "elements", "outputs", "partition")
	section := map[string]syntax.Field{}
	for _, f := range fields {
		section[f.Key] = f
	}
	if l.Err != nil {
		return
	}
	name, ok := section["plant"]
	l.Network.Name = l.Text(name, "plant")
	if !ok {
		l.Fail(syntax.StartOf(top), "plant file: plant: NAME is missing")
	} else if !units.IsName(strings.ReplaceAll(l.Network.Name, "-", "_"), false) {
		l.Fail(name.At, "plant: %q is not a name (letters, digits, _ and -)", l.Network.Name)
	}
	l.Network.About = strings.TrimSpace(l.Text(section["about"], "about"))
	l.readParameters(section["parameters"])
	l.readInputs(section["inputs"])
	l.readAssemblies(section["assemblies"])
	l.readElements(section["elements"], syntax.StartOf(top))
	l.readOutputs(section["outputs"])
	l.readPartition(section["partition"])
	l.exert()
	for i := range l.Network.Inputs {
		s := l.Network.Signals[i]
		if !s.Read && l.Err == nil {
			l.Fail(s.At, "input %q: nothing reads it; remove it, or name it in an element", l.Network.Inputs[i].Name)
		}
	}
}

// optional returns the entries of a section that may be missing or empty.
func (l *loader) optional(f syntax.Field, what string) []syntax.Field {
	if _, ok := syntax.ScalarText(f.Node); ok && syntax.FoundInstead(f.Node) == ", nothing found" {
		return nil
	}
	return l.Entries(f.Node, f.At, what)
}

func (l *loader) readParameters(f syntax.Field) {
	l.globals = map[string]units.Value{}
	l.scope = &scope{params: l.globals}
	for _, f := range l.optional(f, "parameters") {
		what := fmt.Sprintf("parameter %q", f.Key)
		if !units.IsName(f.Key, false) || f.Key == "pi" {
			l.Fail(f.KeyAt, "%s: not a name for a parameter (letters, digits and _; not pi)", what)
		}
		l.globals[f.Key] = l.parameter(f, what, l.globals)
	}
}

func orderHint(err error) string {
	if _, ok := nameIn(err); ok {
		return "; a parameter may use those above it"
	}
	return ""
}

// explain adds the near name to an error about an unknown one.
func (l *loader) explain(err error) string {
	name, ok := nameIn(err)
	if !ok {
		return err.Error()
	}
	known := slices.Sorted(maps.Keys(l.scope.params))
	for _, in := range l.Network.Inputs {
		known = append(known, in.Name)
	}
	known = append(known, slices.Sorted(maps.Keys(l.provided))...)
	return err.Error() + units.DidYouMean(name, known)
}

func (l *loader) readInputs(f syntax.Field) {
	l.inputs = map[string]int{}
	list := l.optional(f, "inputs")
	if len(list) > maxPorts {
		l.Fail(list[maxPorts].KeyAt, "more than %d inputs", maxPorts)
		return
	}
	for _, f := range list {
		l.readInput(f)
	}
}

func (l *loader) readInput(f syntax.Field) {
	what := fmt.Sprintf("input %q", f.Key)
	if !units.IsName(f.Key, true) {
		l.Fail(f.KeyAt, "%s: not a name (letters, digits and _, joined by .)", what)
	}
	if _, taken := l.globals[f.Key]; taken {
		l.Fail(f.KeyAt, "%s: a parameter has the same name", what)
	}
	fields := map[string]syntax.Field{}
	list := l.Entries(f.Node, f.At, what)
	l.CheckKeys(list, what, "unit", "min", "max", "default", "delay")
	for _, f := range list {
		fields[f.Key] = f
	}
	u, ok := fields["unit"]
	unit, err := units.Parse(l.Text(u, what+": unit"))
	if !ok {
		l.Fail(f.KeyAt, "%s: unit is missing; write 1 for a bare number", what)
	} else if err != nil {
		l.Fail(u.At, "%s: %s", what, strings.TrimPrefix(err.Error(), "model: "))
	}
	if l.Err != nil {
		return
	}
	want := units.Wanted{Unit: unit, Spelled: l.Text(u, what)}
	port := units.Port{Name: f.Key, Unit: unit.SI, Min: math.Inf(-1), Max: math.Inf(1)}
	if m, ok := fields["min"]; ok {
		port.Min = l.quantity(m, what+": min", want)
	}
	if m, ok := fields["max"]; ok {
		port.Max = l.quantity(m, what+": max", want)
		if !(port.Min <= port.Max) {
			l.Fail(m.At, "%s: max %s is below min %s", what, want.Format(port.Max), want.Format(port.Min))
		}
	}
	s := network.Signal{Name: f.Key, At: f.KeyAt, Unit: unit, Source: network.Constant(0)}
	l.readDefault(&s, fields["default"], f.KeyAt, port, want)
	delay := 0.0
	if d, ok := fields["delay"]; ok {
		if delay = l.quantity(d, what+": delay", units.Want("s")); !(delay >= 0 && delay <= maxDelay) {
			l.Fail(d.At, "%s: delay %g s is outside 0 to %g s", what, delay, maxDelay)
		}
	}
	for _, v := range [2]float64{port.Min, port.Max} {
		if !math.IsInf(v, 0) {
			s.MaxAbs = max(s.MaxAbs, math.Abs(v))
		}
	}
	l.inputs[f.Key] = len(l.Network.Signals)
	l.Network.Inputs = append(l.Network.Inputs, model.Input{Port: port, Signal: len(l.Network.Signals), Delay: delay})
	l.Network.Signals = append(l.Network.Signals, s)
}

// readDefault reads what an input is while nobody drives it.
func (l *loader) readDefault(s *network.Signal, d syntax.Field, at network.Pos, port units.Port, want units.Wanted) {
	what := fmt.Sprintf("input %q", port.Name)
	if d.Key != "" {
		s.Source = l.waveform(d, what+": default", want, false).Source()
		at = d.At
	}
	if l.Err != nil || len(s.Source.Sum) > 0 {
		return
	}
	for i, v := range s.Source.V {
		if !(v >= port.Min && v <= port.Max) {
			l.Fail(at, "%s: default %s at %g s is outside %s to %s", what,
				want.Format(v), s.Source.T[i], want.Format(port.Min), want.Format(port.Max))
		}
	}
	if low, high := network.SourceRange(s.Source); !(low >= port.Min && high <= port.Max) {
		l.Fail(at, "%s: default reaches %s to %s, outside %s to %s", what,
			want.Format(low), want.Format(high), want.Format(port.Min), want.Format(port.Max))
	}
}

func nameIn(err error) (string, bool) {
	var u *units.UnknownName
	if errors.As(err, &u) {
		return u.Name, true
	}
	return "", false
}

// quantity evaluates a scalar to SI.
func (l *loader) quantity(f syntax.Field, what string, want units.Wanted) float64 {
	l.asked[f.Node] = want
	text := l.Text(f, what)
	if _, ok := syntax.ScalarText(f.Node); !ok {
		return math.NaN()
	}
	switch f.Node.(type) {
	case *ast.NanNode, *ast.InfinityNode:
		l.Fail(f.At, "%s: %s is not a finite number", what, text)
		return math.NaN()
	}
	v, err := units.Evaluate(text, l.scope.params)
	if err != nil {
		l.Fail(f.At, "%s: %s", what, l.explain(err))
		return math.NaN()
	}
	x, err := v.In(want.Unit, want.Spelled)
	if err != nil {
		l.Fail(f.At, "%s: %q: %v", what, text, err)
	}
	return x
}
