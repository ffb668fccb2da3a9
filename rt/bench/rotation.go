package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/model/plants"
	"lockstep/rt/fault"
)

// leg is a run that is part of a soak. The plant, the grid and the control unit start
// anew with each.
type leg struct {
	number int    // from 1
	first  bool   // of this start
	kind   string // plainLeg, faultsLeg or "scenario NAME"
	ticks  int64
	plan   func(h *Handover) (*Scenario, error) // nil: nothing happens in it
}

// The kinds of legs besides "scenario NAME".
const (
	plainLeg  = "plain"
	faultsLeg = "faults"
)

// rotation is the order of the legs: plain ones, and between them one after the other
// what happens.
type rotation struct {
	longest  int64 // ticks of a leg
	shortest int64 // of the last one, which may find little left to do
	turns    []turn
}

// turn is what happens in some legs.
type turn struct {
	kind  string
	ticks int64
	plan  func(round int) func(h *Handover) (*Scenario, error)
}

// leg is the one of a number, from 1, of which left ticks remain. What would be left of
// the last one belongs to it.
func (t *rotation) leg(number int, left int64) leg {
	l := leg{number: number, kind: plainLeg, ticks: t.longest}
	if 2*left <= 3*t.longest {
		l.ticks = max(left, t.shortest)
		return l
	}
	if n := len(t.turns); n > 0 && number%2 == 0 {
		turn := &t.turns[(number/2-1)%n]
		l.kind, l.ticks, l.plan = turn.kind, turn.ticks, turn.plan((number/2-1)/n)
	}
	return l
}

// plan makes the rotation of a bench: one fault of every kind, then the scenarios. text
// is all that it is made of.
func (k *Soak) rotation(h *Handover, longest time.Duration) (t *rotation, text string, err error) {
	t = &rotation{longest: int64(longest) / h.Tables.PeriodNs, shortest: int64(min(longest, Shortest)) / h.Tables.PeriodNs}
	if kinds := h.everyFault(0); !k.NoFaults && len(kinds) > 0 {
		gap := min(int64(time.Second)/h.Tables.PeriodNs, t.longest/int64(len(kinds)+2))
		if gap < shortestGap {
			return nil, "", fmt.Errorf("soak: legs of %v are too short for %d faults one after the other: -leg %v, or -faults=false", longest, len(kinds),
				time.Duration(shortestGap*int64(len(kinds)+2)*h.Tables.PeriodNs))
		}
		t.turns = append(t.turns, turn{faultsLeg, gap * int64(len(kinds)+2), func(round int) func(*Handover) (*Scenario, error) {
			return func(h *Handover) (*Scenario, error) {
				return LoadScenario("faults", faultsText(h.everyFault(round), gap), h)
			}
		}})
	}
	names := k.Scenarios
	if names == nil {
		names = listedFor(h.Bench.Name)
	}
	for _, name := range names {
		file, data, err := ReadAny(name)
		if err != nil {
			return nil, "", err
		}
		if what := kind(file, data); what != "scenario" {
			return nil, "", &KindError{file, what, fmt.Errorf("soak: %s is a file of another kind (%s); a scenario begins with scenario: NAME", file, what)}
		}
		s, err := LoadScenario(file, data, h)
		if err != nil {
			return nil, "", err
		}
		ticks := s.Ticks
		if ticks == 0 {
			ticks = t.longest
		}
		if ticks > t.longest {
			return nil, "", fmt.Errorf("soak: scenario %s lasts %s, longer than a leg of %v: -leg %v", name, s.time(ticks, h), longest, time.Duration(ticks*h.Tables.PeriodNs))
		}
		text += string(data)
		t.turns = append(t.turns, turn{"scenario " + s.Name, ticks, func(int) func(*Handover) (*Scenario, error) {
			return func(h *Handover) (*Scenario, error) { return LoadScenario(file, data, h) }
		}})
	}
	return t, text, nil
}

// listedFor are the embedded scenarios whose listing says that they are of a bench.
func listedFor(bench string) (names []string) {
	for _, e := range plants.List() {
		if e.Kind == "scenario" && strings.HasPrefix(e.About, "Scenario of "+bench+":") {
			names = append(names, e.Name)
		}
	}
	return names
}

// shortestGap is how many ticks at least lie between two faults of every kind.
const shortestGap = 6

// everyFault is one fault of every kind of every place that the bench has, as the keys
// of a scenario; round by round of another port, message or element. What the bench has
// nothing for is left out.
func (h *Handover) everyFault(round int) (list []string) {
	places := h.faultPlaces()
	for _, k := range faultKinds() {
		for i := range places {
			p := &places[i]
			if !slices.ContainsFunc(k.of, func(w fault.Where) bool { return slices.Contains(p.of, w) }) {
				continue
			}
			for j := range p.names {
				on := p.names[(round+len(list)+j)%len(p.names)]
				if text := h.sample(k, p.target, on, round); text != "" {
					list = append(list, text)
					break
				}
			}
		}
	}
	return list[:min(len(list), fault.Max)]
}

// faultPlace is where faults can be: a word of faultTargets, and what the bench has there.
type faultPlace struct {
	target string
	of     []fault.Where
	names  []string
}

// faultPlaces are all of a bench.
func (h *Handover) faultPlaces() []faultPlace {
	var signals, sent, received []string
	for i, bus := range h.Bench.Buses {
		on := ""
		if len(h.Maps) > 1 {
			on = " on " + bus.Name.Text
		}
		for _, l := range bus.Send {
			signals = append(signals, l.Message+"."+l.Signal+on)
		}
		for j := range h.Maps[i].Tx {
			sent = append(sent, h.Maps[i].Tx[j].Name+on)
		}
		for j := range h.Maps[i].Rx {
			received = append(received, h.Maps[i].Rx[j].Name+on)
		}
	}
	return []faultPlace{
		{"input", []fault.Where{fault.Input}, portNames(h.Tables.Inputs)},
		{"signal", []fault.Where{fault.Signal}, signals},
		{"frame", []fault.Where{fault.SentFrame}, sent},
		{"frame", []fault.Where{fault.ReceivedFrame}, received},
		{"bus", []fault.Where{fault.Bus}, h.Bench.busNames()},
		{"element", []fault.Where{element}, h.Tables.Frictions},
	}
}

// sample is a fault of a kind as the keys of a scenario, with the first of some values
// that is possible; "": there is none.
func (h *Handover) sample(k faultKind, target, on string, round int) string {
	spec := FaultSpec{Target: Word{Text: target}, On: Word{Text: on}}
	t, err := h.target(&spec)
	if err != nil {
		return ""
	}
	for _, value := range t.samples(k.takes, round) {
		text := fmt.Sprintf("%s: %s, %s: %s", target, strconv.Quote(on), k.word, value)
		if _, err := LoadScenario("faults", []byte("scenario: faults\nfaults: [{"+text+"}]\n"), h); err == nil {
			return text
		}
	}
	return ""
}

// samples are values of a fault that may be possible, as a scenario writes them; those
// of a value are parts of the range of the target.
func (t *aim) samples(takes taking, round int) []string {
	number := t.number
	if t.own {
		number = func(v float64) float64 { return v }
	}
	lo, hi := number(t.lo), number(t.hi)
	if span := math.Abs(hi - lo); !(span < 1e9) {
		lo, hi = 0, 1
	}
	part := func(x float64) []string { return []string{fmt.Sprintf("%.6g", x)} }
	turned := func(list ...string) []string { return append(list[round%len(list):], list[:round%len(list)]...) }
	switch takes {
	case takesLevel:
		return part(lo + 0.3*(hi-lo))
	case takesDifference:
		return part(0.05 * (hi - lo))
	case takesSpread:
		return part(0.02 * math.Abs(hi-lo))
	case takesRate:
		return part(0.2 * (hi - lo))
	case takesFactor:
		return []string{"1.1"}
	case takesLeak:
		return []string{"{share: 30 %, time: 100 ms}"}
	case takesTime:
		return []string{"2 ticks"}
	case takesRail:
		return turned("ground", "supply")
	case takesChecksum:
		return turned("{offset: 1}", "frozen", "random", "{value: 0}")
	case takesSize:
		return turned("7", "4", "2", "0", "8", "12", "16")
	case takesCount:
		return []string{"3"}
	}
	return []string{"true"}
}

// faultsText is the scenario in which faults come one after the other, a gap of ticks
// apart, each for a third of it.
func faultsText(list []string, gap int64) []byte {
	out := &strings.Builder{}
	fmt.Fprintf(out, "scenario: %s\nfor: %d ticks\nfaults:\n", faultsLeg, gap*int64(len(list)+2))
	for i, text := range list {
		fmt.Fprintf(out, "  - {name: fault %d, %s, at: tick %d, for: %d ticks}\n", i+1, text, int64(i+1)*gap, gap/3)
	}
	return []byte(out.String())
}
