package scenario

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// FaultSpec is a fault as a scenario file or a command writes it; ResolveFault
// makes a fault.Fault of it.
type FaultSpec struct {
	Name   yamlfile.Scalar // [the target and the kind]
	Target yamlfile.Scalar // what On is: input, signal, frame, bus or element
	On     yamlfile.Scalar // a port, MESSAGE.SIGNAL, a message, a bus or a friction element
	Kind   yamlfile.Scalar // a word of faultKinds
	Value  yamlfile.Scalar // of the kind, or how it is done: "frozen" of a checksum; "" there is none
	More   yamlfile.Scalar // a second one: the time of a leak, the number of a checksum
	At     yamlfile.Scalar // when it starts: "3 s", "tick 600"; "" at once
	When   yamlfile.Scalar // or under which conditions: "w1 > 1500 rpm and w4 < 0 rpm"; "" under any
	For    yamlfile.Scalar // how long: "200 ms", "40 ticks", "5 frames"; "" until cleared
	Seed   yamlfile.Scalar // of what is random; "" 1
	yamlfile.Origin
}

// faultKind is a kind of faults: the key that asks for it, what it can be of, and what
// it takes.
type faultKind struct {
	word  string
	kind  fault.Kind
	of    []fault.Where
	takes taking
}

// taking says what the value of a kind is.
type taking uint8

const (
	takesNothing    taking = iota // "true", or the word alone
	takesLevel                    // a value of the target
	takesDifference               // in the unit of the target
	takesSpread                   // the same, > 0
	takesRate                     // in the unit of the target per second
	takesFactor                   // a bare number
	takesLeak                     // {share: 30 %, time: 200 ms}
	takesTime                     // a time or a number of ticks
	takesRail                     // ground or supply
	takesChecksum                 // frozen, random, {value: 0x00} or {offset: 1}
	takesSize                     // bytes
	takesCount                    // of frames
	takesCapacity                 // a value of the target, or nothing: the largest one
)

var (
	ofValues   = []fault.Where{fault.Input, fault.Signal}
	ofSent     = []fault.Where{fault.SentFrame}
	ofFrames   = []fault.Where{fault.SentFrame, fault.ReceivedFrame}
	ofElements = []fault.Where{element}
)

// element is the target of a fault that package fault knows as its input.
const element = fault.Where(255)

// faultKinds lists every kind there is.
func faultKinds() []faultKind {
	return []faultKind{
		{"stuck", fault.Stuck, ofValues, takesLevel},
		{"hold", fault.Hold, ofValues, takesNothing},
		{"offset", fault.Offset, ofValues, takesDifference},
		{"gain", fault.Gain, ofValues, takesFactor},
		{"noise", fault.Noise, ofValues, takesSpread},
		{"ramp", fault.Ramp, ofValues, takesRate},
		{"drift", fault.Drift, ofValues, takesRate},
		{"floor", fault.Floor, ofValues, takesLevel},
		{"ceiling", fault.Ceiling, ofValues, takesLevel},
		{"leak", fault.Leak, ofValues, takesLeak},
		{"delay", fault.Delay, ofValues, takesTime},
		{"open", fault.Open, ofValues, takesNothing},
		{"short", fault.Short, ofValues, takesRail},
		{"drop", fault.Drop, ofFrames, takesNothing},
		{"delay", fault.DelayFrame, ofFrames, takesTime},
		{"freeze_counter", fault.FreezeCounter, ofSent, takesNothing},
		{"checksum", fault.ChecksumValue, ofSent, takesChecksum},
		{"length", fault.WrongLength, ofSent, takesSize},
		{"duplicate", fault.Duplicate, ofSent, takesNothing},
		{"burst", fault.Burst, ofSent, takesCount},
		{"bus_off", fault.BusOff, []fault.Where{fault.Bus}, takesNothing},
		{"does_not_open", fault.Floor, ofElements, takesCapacity},
		{"does_not_close", fault.Ceiling, ofElements, takesNothing},
	}
}

// faultTargets are the keys that say what a fault is of, faultPlaces what each can be.
var (
	faultTargets = []string{"input", "signal", "frame", "bus", "element"}
	faultPlaces  = [][]fault.Where{ofValues, ofValues, ofFrames, {fault.Bus}, ofElements}
)

// readFault reads one fault.
func readFault(r *yamlfile.Reader, n ast.Node) FaultSpec {
	s := FaultSpec{Origin: r.Origin}
	once := func(dst *yamlfile.Scalar, e yamlfile.Scalar, group string) {
		if dst.Text != "" && r.Err == nil {
			r.Err = r.Errorf(e, "fault: %s and %s: one %s is wanted", dst.Text, e.Text, group)
		}
		*dst = e
	}
	known := []yamlfile.Key{
		{Name: "name", Read: func(n ast.Node) { s.Name = yamlfile.ScalarAt(n, bench.ReadTitle(r, n, "fault: name")) }},
		{Name: "at", Read: r.StoreScalar(&s.At, "fault: at")},
		{Name: "when", Read: r.StoreScalar(&s.When, "fault: when")},
		{Name: "for", Read: r.StoreScalar(&s.For, "fault: for")},
		{Name: "seed", Read: r.StoreScalar(&s.Seed, "fault: seed")},
	}
	for _, t := range faultTargets {
		known = append(known, yamlfile.Key{Name: t, Read: func(n ast.Node) {
			once(&s.Target, yamlfile.ScalarAt(n, t), "target")
			s.On = r.Scalar(n, "fault: "+t)
		}})
	}
	for _, k := range faultKinds() {
		if !slices.ContainsFunc(known, func(e yamlfile.Key) bool { return e.Name == k.word }) {
			known = append(known, yamlfile.Key{Name: k.word, Read: func(n ast.Node) {
				once(&s.Kind, yamlfile.ScalarAt(n, k.word), "kind")
				readArgument(r, n, &s, k.takes)
			}})
		}
	}
	r.Mapping(n, "fault", known)
	switch {
	case s.Target.Text == "":
		r.Fail(n, "fault: what it is of is missing: one of %s", strings.Join(faultTargets, ", "))
	case s.Kind.Text == "":
		r.Fail(n, "fault: of %s %s: its kind is missing: one of %s", s.Target.Text, s.On.Text, strings.Join(kindWords(faultPlaces[slices.Index(faultTargets, s.Target.Text)]...), ", "))
	}
	if s.Name.Text == "" {
		s.Name = yamlfile.Scalar{Text: s.On.Text + " " + s.Kind.Text, Line: s.Target.Line, Col: s.Target.Col}
	}
	return s
}

// readArgument reads the value of a kind.
func readArgument(r *yamlfile.Reader, n ast.Node, s *FaultSpec, takes taking) {
	what := "fault: " + s.Kind.Text
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		s.Value = r.Scalar(n, what)
		return
	}
	number := func(key string) func(n ast.Node) {
		return func(n ast.Node) {
			s.Value, s.More = yamlfile.ScalarAt(n, key), r.Scalar(n, what+": "+key)
		}
	}
	switch takes {
	case takesLeak:
		r.Mapping(n, what, []yamlfile.Key{{Name: "share", Read: r.StoreScalar(&s.Value, what+": share")}, {Name: "time", Read: r.StoreScalar(&s.More, what+": time")}})
	case takesChecksum:
		r.Mapping(n, what, []yamlfile.Key{{Name: "value", Read: number("value")}, {Name: "offset", Read: number("offset")}})
	default:
		r.Fail(n, "%s: one value is wanted here, got a mapping", what)
	}
}

// kindWords are the kinds that such targets can have.
func kindWords(of ...fault.Where) (words []string) {
	for _, k := range faultKinds() {
		if slices.ContainsFunc(k.of, func(w fault.Where) bool { return slices.Contains(of, w) }) {
			words = append(words, k.word)
		}
	}
	return words
}

// maxWord bounds a word of a command, bytes.
const maxWord = 500

// ParseFault reads a fault from the words of a command, KEY=VALUE each, or a KEY alone
// where it takes no value. Errors name the word by its number, from 1.
func ParseFault(words []string) (FaultSpec, error) {
	r := bench.NewReader(bench.CommandOrigin("fault"))
	var text strings.Builder
	for i, w := range words {
		key, value, given := strings.Cut(w, "=")
		switch {
		case !yamlfile.IsPrintable(w) || key == "" || len(w) > maxWord:
			return FaultSpec{}, r.Errorf(yamlfile.Scalar{Line: i + 1}, "%.60q is not KEY=VALUE", w)
		case !given:
			value = "true"
		case !strings.HasPrefix(value, "{"):
			value = strconv.Quote(value)
		}
		text.WriteString(strconv.Quote(key) + ": " + value + "\n")
	}
	if len(words) == 0 {
		return FaultSpec{}, r.Errorf(yamlfile.Scalar{Line: 1}, "what it is of is missing: KEY=VALUE ... with one of %s", strings.Join(faultTargets, ", "))
	}
	n := r.Document([]byte(text.String()))
	if n == nil {
		return FaultSpec{}, r.Err
	}
	s := readFault(r, n)
	return s, r.Err
}

// String is the fault in words that ParseFault reads, as the shell quotes them.
func (s *FaultSpec) String() string {
	value := s.Value.Text
	switch {
	case s.Kind.Text == "leak":
		value = "{share: " + strconv.Quote(value) + ", time: " + strconv.Quote(s.More.Text) + "}"
	case s.More.Text != "":
		value = "{" + value + ": " + strconv.Quote(s.More.Text) + "}"
	}
	words := []string{s.Target.Text + "=" + s.On.Text, s.Kind.Text + "=" + value}
	if value == "true" {
		words[1] = s.Kind.Text
	}
	for _, w := range []struct{ key, text string }{
		{"at", s.At.Text}, {"when", s.When.Text}, {"for", s.For.Text}, {"seed", s.Seed.Text},
	} {
		if w.text != "" {
			words = append(words, w.key+"="+w.text)
		}
	}
	for i, w := range words {
		words[i] = QuoteWord(w)
	}
	return strings.Join(words, " ")
}
