package scenario

import (
	"slices"
	"strconv"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// faultSpec is a fault as a scenario file or a command writes it; resolve
// makes a fault.Fault of it. Its entry has as well
//
//	at     when it starts: "3 s", "tick 600"; "" at once
//	when   or under which conditions: "w1 > 1500 rpm and w4 < 0 rpm"; "" under any
//	for    how long: "200 ms", "40 ticks", "5 frames"; "" until cleared
//	seed   of what is random; "" 1
type faultSpec struct {
	*entry
	Name   yamlfile.Scalar // [the target and the kind]
	target yamlfile.Scalar // what on is: a word of faultTargets
	on     yamlfile.Scalar // a port, MESSAGE.SIGNAL, a message, a bus or a friction element
	kind   yamlfile.Scalar // a word of faultKinds
	value  yamlfile.Scalar // of the kind; of a mapping the first one in it
}

// faultKind is a kind of faults: the key that asks for it, what it can be of, and what
// it takes.
type faultKind struct {
	word  string
	kind  fault.Kind
	of    []fault.Where
	takes argument
}

var (
	ofValues   = []fault.Where{fault.Input, fault.Signal}
	ofSent     = []fault.Where{fault.SentFrame}
	ofFrames   = []fault.Where{fault.SentFrame, fault.ReceivedFrame}
	ofBuses    = []fault.Where{fault.Bus}
	ofElements = []fault.Where{element}
)

// element is the target of a fault that package fault knows as its input.
const element = fault.Where(255)

// faultKinds lists every kind there is.
var faultKinds = []faultKind{
	{"stuck", fault.Stuck, ofValues, takesLevel},
	{"hold", fault.Hold, ofValues, noArgument},
	{"offset", fault.Offset, ofValues, takesDifference},
	{"gain", fault.Gain, ofValues, takesFactor},
	{"noise", fault.Noise, ofValues, takesSpread},
	{"ramp", fault.Ramp, ofValues, takesRate},
	{"drift", fault.Drift, ofValues, takesRate},
	{"floor", fault.Floor, ofValues, takesLevel},
	{"ceiling", fault.Ceiling, ofValues, takesLevel},
	{"leak", fault.Leak, ofValues, takesLeak},
	{"delay", fault.Delay, ofValues, takesTime},
	{"open", fault.Open, ofValues, noArgument},
	{"short", fault.Short, ofValues, takesRail},
	{"drop", fault.Drop, ofFrames, noArgument},
	{"delay", fault.DelayFrame, ofFrames, takesTime},
	{"freeze_counter", fault.FreezeCounter, ofSent, noArgument},
	{"checksum", fault.ChecksumValue, ofSent, takesChecksum},
	{"length", fault.WrongLength, ofSent, takesSize},
	{"duplicate", fault.Duplicate, ofSent, noArgument},
	{"burst", fault.Burst, ofSent, takesCount},
	{"bus_off", fault.BusOff, ofBuses, noArgument},
	{"does_not_open", fault.Floor, ofElements, takesCapacity},
	{"does_not_close", fault.Ceiling, ofElements, noArgument},
}

// faultTargets lists what a fault can be of.
var faultTargets = []struct {
	word string // the key that says so
	of   []fault.Where
	find func(h *bench.Handover, name string) (*resolvedTarget, error)
}{
	{"input", ofValues, findInput},
	{"signal", ofValues, findSignalTarget},
	{"frame", ofFrames, findFrame},
	{"bus", ofBuses, findBus},
	{"element", ofElements, findElement},
}

// targetWords are the keys that say what a fault is of.
func targetWords() (words []string) {
	for _, t := range faultTargets {
		words = append(words, t.word)
	}
	return words
}

// readFault reads one fault.
func readFault(r *yamlfile.Reader, f yamlfile.Field) *faultSpec {
	keys := slices.Concat([]string{"name", "at", "when", "for", "seed"}, targetWords())
	parts := map[string][]string{}
	for _, k := range faultKinds {
		if !slices.Contains(keys, k.word) { // "delay" is of values and of frames
			keys = append(keys, k.word)
		}
		parts[k.word] = k.takes.keys
	}

	return newFaultSpec(readEntry(r, f, "fault", keys, parts))
}

// newFaultSpec finds target and kind among the keys of a fault.
func newFaultSpec(e *entry) *faultSpec {
	s := &faultSpec{entry: e, Name: e.get("name")}
	once := func(dst *yamlfile.Scalar, f field, group string) {
		if dst.Text != "" {
			s.fail(f.Scalar, "%s and %s: one %s is wanted", dst.Text, f.key, group)
		}
		*dst = yamlfile.Scalar{Text: f.key, Line: f.Line, Col: f.Col}
	}

	targets, of := targetWords(), -1
	for _, f := range e.fields {
		if i := slices.Index(targets, f.key); i >= 0 {
			once(&s.target, f, "target")
			s.on, of = f.Scalar, i
		}

		if slices.ContainsFunc(faultKinds, func(k faultKind) bool { return k.word == f.key }) {
			once(&s.kind, f, "kind")
			s.value = f.Scalar
			if parts := e.parts(f.key); len(parts) > 0 {
				s.value = parts[0].Scalar
			}
		}
	}

	switch {
	case of < 0:
		s.fail(s.at, "what it is of is missing: one of %s", strings.Join(targets, ", "))
	case s.kind.Text == "":
		s.fail(s.at, "of %s %s: its kind is missing: one of %s",
			s.target.Text, s.on.Text, strings.Join(kindWords(faultTargets[of].of...), ", "))
	}

	if s.Name.Text == "" {
		s.Name = yamlfile.Scalar{Text: s.on.Text + " " + s.kind.Text, Line: s.target.Line, Col: s.target.Col}
	}
	return s
}

// kindWords are the kinds that such targets can have.
func kindWords(of ...fault.Where) (words []string) {
	for _, k := range faultKinds {
		if slices.ContainsFunc(k.of, func(w fault.Where) bool { return slices.Contains(of, w) }) {
			words = append(words, k.word)
		}
	}

	return words
}

// maxWord bounds a word of a command, bytes.
const maxWord = 500

// parseFault reads a fault from the words of a command, KEY=VALUE each, or a KEY alone
// where it takes no value. Errors name the word by its number, from 1.
func parseFault(words []string) (*faultSpec, error) {
	r := bench.NewCommandReader("fault")
	var text strings.Builder
	for i, w := range words {
		key, value, given := strings.Cut(w, "=")
		switch {
		case !yamlfile.IsPrintable(w) || key == "" || len(w) > maxWord:
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
			"what it is of is missing: KEY=VALUE ... with one of %s", strings.Join(targetWords(), ", "))
	}

	var s *faultSpec
	err := r.Try(func() { s = readFault(r, yamlfile.Root(r.Document([]byte(text.String())))) })
	return s, err
}

// String is the fault in words that parseFault reads, as the shell quotes them.
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
