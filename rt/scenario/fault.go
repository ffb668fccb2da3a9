package scenario

import (
	"slices"
	"strconv"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// faultSpec is a fault as a scenario file or a command has it; resolve makes a fault.Fault of it.
// Its entry also holds
//
//	at     start: "3 s", "tick 600"; "": at once
//	when   conditions of the start: "w1 > 1500 rpm and w4 < 0 rpm"; "": none
//	for    duration: "200 ms", "40 ticks", "5 frames"; "": until cleared
//	seed   seed of random numbers; "": 1
type faultSpec struct {
	*entry
	Name   yamlfile.Scalar // default: target and kind
	target yamlfile.Scalar // a key of faultTargets
	on     yamlfile.Scalar // the target: a port, MESSAGE.SIGNAL, a message, a bus or a friction element
	kind   yamlfile.Scalar // a key of faultKinds
	value  yamlfile.Scalar // argument of the kind; the first value of a mapping
}

// faultKind is a kind of fault.
type faultKind struct {
	key      string // in a scenario file
	kind     fault.Kind
	targets  []fault.Where
	argument argument
}

var (
	valueTargets = []fault.Where{fault.Input, fault.Signal, fault.ReceivedSignal}
	frames       = []fault.Where{fault.SentFrame, fault.ReceivedFrame}
	buses        = []fault.Where{fault.Bus}
	elements     = []fault.Where{element}
)

// element is a friction element; package fault has its input instead.
const element = fault.Where(255)

// faultKinds are all kinds of faults.
var faultKinds = []faultKind{
	{"stuck", fault.Stuck, valueTargets, takesLevel},
	{"hold", fault.Hold, valueTargets, takesNothing},
	{"offset", fault.Offset, valueTargets, takesDifference},
	{"gain", fault.Gain, valueTargets, takesFactor},
	{"noise", fault.Noise, valueTargets, takesSpread},
	{"ramp", fault.Ramp, valueTargets, takesRate},
	{"drift", fault.Drift, valueTargets, takesRate},
	{"floor", fault.Floor, valueTargets, takesLevel},
	{"ceiling", fault.Ceiling, valueTargets, takesLevel},
	{"leak", fault.Leak, valueTargets, takesLeak},
	{"delay", fault.Delay, valueTargets, takesTime},
	{"open", fault.Open, valueTargets, takesNothing},
	{"short", fault.Short, valueTargets, takesRail},
	{"drop", fault.Drop, frames, takesNothing},
	{"delay", fault.DelayFrame, frames, takesTime},
	{"freeze_counter", fault.FreezeCounter, frames, takesNothing},
	{"checksum", fault.ChecksumValue, frames, takesChecksum},
	{"length", fault.WrongLength, frames, takesSize},
	{"duplicate", fault.Duplicate, frames, takesNothing},
	{"burst", fault.Burst, frames, takesCount},
	{"bus_off", fault.BusOff, buses, takesNothing},
	{"does_not_open", fault.Floor, elements, takesCapacity},
	{"does_not_close", fault.Ceiling, elements, takesNothing},
}

// faultTargets are all kinds of targets.
var faultTargets = []struct {
	key   string // in a scenario file
	where []fault.Where
	find  func(h *bench.Handover, name string) (*resolvedTarget, error)
}{
	{"input", valueTargets, findInput},
	{"signal", valueTargets, findSignalTarget},
	{"frame", frames, findFrame},
	{"bus", buses, findBus},
	{"element", elements, findElement},
}

// targetKeys returns the keys of faultTargets.
func targetKeys() (keys []string) {
	for _, t := range faultTargets {
		keys = append(keys, t.key)
	}
	return keys
}

// readFault reads a fault.
func readFault(r *yamlfile.Reader, f yamlfile.Field) *faultSpec {
	parts := map[string][]string{}
	for _, k := range faultKinds {
		parts[k.key] = k.argument.keys
	}
	return newFaultSpec(readEntry(r, f, "fault", faultKeys(), parts))
}

// faultKeys returns the keys of a fault.
func faultKeys() []string {
	keys := slices.Concat([]string{"name", "at", "when", "for", "seed"}, targetKeys())
	for _, k := range faultKinds {
		if !slices.Contains(keys, k.key) { // "delay" is there twice, for values and for frames
			keys = append(keys, k.key)
		}
	}
	return keys
}

// newFaultSpec finds the target and the kind among the keys of a fault.
func newFaultSpec(e *entry) *faultSpec {
	s := &faultSpec{entry: e, Name: e.get("name")}
	once := func(dst *yamlfile.Scalar, f field, group string) {
		if dst.Text != "" {
			s.fail(f.Scalar, "%s and %s: expected one %s", dst.Text, f.key, group)
		}
		*dst = yamlfile.Scalar{Text: f.key, Line: f.Line, Col: f.Col}
	}

	targets, of := targetKeys(), -1
	for _, f := range e.fields {
		if i := slices.Index(targets, f.key); i >= 0 {
			once(&s.target, f, "target")
			s.on, of = f.Scalar, i
		}

		if slices.ContainsFunc(faultKinds, func(k faultKind) bool { return k.key == f.key }) {
			once(&s.kind, f, "kind")
			s.value = f.Scalar
			if parts := e.parts(f.key); len(parts) > 0 {
				s.value = parts[0].Scalar
			}
		}
	}

	switch {
	case of < 0:
		s.fail(s.at, "the target is missing: one of %s", strings.Join(targets, ", "))
	case s.kind.Text == "":
		s.fail(s.at, "%s %s: the kind is missing: one of %s",
			s.target.Text, s.on.Text, strings.Join(kindKeys(faultTargets[of].where...), ", "))
	case s.Name.Text == "all":
		s.fail(s.Name, "name: clear all ends every fault: choose another name")
	}

	if s.Name.Text == "" {
		s.Name = yamlfile.Scalar{Text: s.on.Text + " " + s.kind.Text, Line: s.target.Line, Col: s.target.Col}
	}
	return s
}

// kindKeys returns the keys of the kinds that such targets can have.
func kindKeys(of ...fault.Where) (keys []string) {
	for _, k := range faultKinds {
		if slices.ContainsFunc(k.targets, func(w fault.Where) bool { return slices.Contains(of, w) }) {
			keys = append(keys, k.key)
		}
	}

	return keys
}

// maxArgument is the length limit of one argument of a command, bytes.
const maxArgument = 500

// parseFault reads a fault from the arguments of a command, KEY=VALUE each, or KEY alone if it
// takes no value. Errors give the number of the argument, from 1.
func parseFault(words []string) (*faultSpec, error) {
	r := bench.NewCommandReader("fault")
	var text strings.Builder
	for i, w := range words {
		key, value, given := strings.Cut(w, "=")
		switch {
		case !yamlfile.IsPrintable(w) || key == "" || len(w) > maxArgument:
			return nil, r.Errorf(yamlfile.Scalar{Line: i + 1}, "%.60q is not KEY=VALUE", w)
		case !given:
			value = "true"
		case !strings.HasPrefix(value, "{"):
			value = strconv.Quote(value)
		}

		text.WriteString(strconv.Quote(key) + ": " + value + "\n")
	}

	if len(words) == 0 {
		return nil, r.Errorf(yamlfile.Scalar{Line: 1},
			"the target is missing: KEY=VALUE ... with one of %s", strings.Join(targetKeys(), ", "))
	}

	var s *faultSpec
	err := r.Try(func() { s = readFault(r, yamlfile.Root(r.Document([]byte(text.String())))) })
	return s, err
}

// String formats the fault as arguments that parseFault reads, quoted for the shell.
func (s *faultSpec) String() string {
	kind := s.kind.Text
	var parts []string
	for _, p := range s.parts(kind) {
		parts = append(parts, p.key+": "+strconv.Quote(p.Text))
	}
	slices.Sort(parts)
	words := []string{s.target.Text + "=" + s.on.Text, kind}
	switch value := s.text(kind); {
	case parts != nil:
		words[1] += "={" + strings.Join(parts, ", ") + "}"
	case value != "true":
		words[1] += "=" + value
	}

	for _, key := range []string{"at", "when", "for", "seed"} {
		if text := s.text(key); text != "" {
			words = append(words, key+"="+text)
		}
	}

	for i, w := range words {
		words[i] = QuoteWord(w)
	}
	return strings.Join(words, " ")
}
