package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Load reads a plant file; see the package comment for its form. file names it in
// errors, which read FILE:LINE:COL: model: what is wrong and what would be right.
//
// What follows only from the whole network is checked by Assemble.
func Load(file string, data []byte, kinds []kind) (*Plant, error) {
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
	reader
	*parts
	kinds      []kind
	scope      *scope // of what is being read
	globals    map[string]value
	inputs     map[string]int // name -> signal
	assemblies map[string]*definition
	used       map[string]bool // names of the sub-assemblies in the plant
	list       []*entry
	elements   map[string]declared
	nodes      map[string]int
	provided   map[string]int      // signals of elements, by the element's name
	exertions  []exertion          // what elements exert, where that is read as a signal
	asked      map[ast.Node]wanted // where a number was taken, and in which unit
}

func (l *loader) load(top ast.Node) {
	if top == nil {
		l.fail(pos{1, 1}, "the file is empty; a plant file starts with plant: NAME")
		return
	}
	const what = "plant file"
	fields := l.entries(top, startOf(top), what)
	l.known(fields, what, "plant", "about", "parameters", "inputs", "assemblies", "elements", "outputs", "partition")
	section := map[string]field{}
	for _, f := range fields {
		section[f.key] = f
	}
	if l.err != nil {
		return
	}
	name, ok := section["plant"]
	l.plant.Name = l.text(name, "plant")
	if !ok {
		l.fail(startOf(top), "plant file: plant: NAME is missing")
	} else if !isName(strings.ReplaceAll(l.plant.Name, "-", "_"), false) {
		l.fail(name.at, "plant: %q is not a name (letters, digits, _ and -)", l.plant.Name)
	}
	l.plant.About = strings.TrimSpace(l.text(section["about"], "about"))
	l.readParameters(section["parameters"])
	l.readInputs(section["inputs"])
	l.readAssemblies(section["assemblies"])
	l.readElements(section["elements"], startOf(top))
	l.readOutputs(section["outputs"])
	l.readPartition(section["partition"])
	l.exert()
	for i := range l.plant.inputs {
		s := l.plant.signals[i]
		if !s.read && l.err == nil {
			l.fail(s.at, "input %q: nothing reads it; remove it, or name it in an element", l.plant.inputs[i].Name)
		}
	}
}

// optional returns the entries of a section that may be missing or empty.
func (l *loader) optional(f field, what string) []field {
	if _, ok := ScalarText(f.node); ok && butFound(f.node) == ", nothing found" {
		return nil
	}
	return l.entries(f.node, f.at, what)
}

func (l *loader) readParameters(f field) {
	l.globals = map[string]value{}
	l.scope = &scope{params: l.globals}
	for _, f := range l.optional(f, "parameters") {
		what := fmt.Sprintf("parameter %q", f.key)
		if !isName(f.key, false) || f.key == "pi" {
			l.fail(f.keyAt, "%s: not a name for a parameter (letters, digits and _; not pi)", what)
		}
		l.globals[f.key] = l.parameter(f, what, l.globals)
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
	for _, in := range l.plant.inputs {
		known = append(known, in.Name)
	}
	known = append(known, slices.Sorted(maps.Keys(l.provided))...)
	return err.Error() + didYouMean(name, known)
}

func (l *loader) readInputs(f field) {
	l.inputs = map[string]int{}
	list := l.optional(f, "inputs")
	if len(list) > maxPorts {
		l.fail(list[maxPorts].keyAt, "more than %d inputs", maxPorts)
		return
	}
	for _, f := range list {
		l.readInput(f)
	}
}

func (l *loader) readInput(f field) {
	what := fmt.Sprintf("input %q", f.key)
	if !isName(f.key, true) {
		l.fail(f.keyAt, "%s: not a name (letters, digits and _, joined by .)", what)
	}
	if _, taken := l.globals[f.key]; taken {
		l.fail(f.keyAt, "%s: a parameter has the same name", what)
	}
	fields := map[string]field{}
	list := l.entries(f.node, f.at, what)
	l.known(list, what, "unit", "min", "max", "default", "delay")
	for _, f := range list {
		fields[f.key] = f
	}
	u, ok := fields["unit"]
	unit, err := Units(l.text(u, what+": unit"))
	if !ok {
		l.fail(f.keyAt, "%s: unit is missing; write 1 for a bare number", what)
	} else if err != nil {
		l.fail(u.at, "%s: %s", what, strings.TrimPrefix(err.Error(), "model: "))
	}
	if l.err != nil {
		return
	}
	want := wanted{unit, l.text(u, what)}
	port := Port{Name: f.key, Unit: unit.SI, Min: math.Inf(-1), Max: math.Inf(1)}
	if m, ok := fields["min"]; ok {
		port.Min = l.quantity(m, what+": min", want)
	}
	if m, ok := fields["max"]; ok {
		port.Max = l.quantity(m, what+": max", want)
		if !(port.Min <= port.Max) {
			l.fail(m.at, "%s: max %s is below min %s", what, want.show(port.Max), want.show(port.Min))
		}
	}
	s := signal{name: f.key, at: f.keyAt, unit: unit, source: constant(0)}
	l.readDefault(&s, fields["default"], f.keyAt, port, want)
	delay := 0.0
	if d, ok := fields["delay"]; ok {
		second, _ := Units("s")
		if delay = l.quantity(d, what+": delay", wanted{second, "s"}); !(delay >= 0 && delay <= maxDelay) {
			l.fail(d.at, "%s: delay %g s is outside 0 to %g s", what, delay, maxDelay)
		}
	}
	for _, v := range [2]float64{port.Min, port.Max} {
		if !math.IsInf(v, 0) {
			s.most = max(s.most, math.Abs(v))
		}
	}
	l.inputs[f.key] = len(l.plant.signals)
	l.plant.inputs = append(l.plant.inputs, Input{Port: port, Signal: len(l.plant.signals), Delay: delay})
	l.plant.signals = append(l.plant.signals, s)
}

// readDefault reads what an input is while nobody drives it.
func (l *loader) readDefault(s *signal, d field, at pos, port Port, want wanted) {
	what := fmt.Sprintf("input %q", port.Name)
	if d.key != "" {
		s.source = l.course(d, what+": default", want, false).source()
		at = d.at
	}
	if l.err != nil || len(s.source.Sum) > 0 {
		return
	}
	for i, v := range s.source.V {
		if !(v >= port.Min && v <= port.Max) {
			l.fail(at, "%s: default %s at %g s is outside %s to %s", what,
				want.show(v), s.source.T[i], want.show(port.Min), want.show(port.Max))
		}
	}
	if low, high := sourceRange(s.source); !(low >= port.Min && high <= port.Max) {
		l.fail(at, "%s: default reaches %s to %s, outside %s to %s", what,
			want.show(low), want.show(high), want.show(port.Min), want.show(port.Max))
	}
}
