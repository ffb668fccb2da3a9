package soak

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"lockstep/model/plants"
	"lockstep/rt/bench"
	"lockstep/rt/scenario"
)

// leg is a run that is part of a soak. The plant, the grid and the control unit start
// anew with each.
type leg struct {
	number int    // from 1
	kind   string // plainLeg, faultsLeg or "scenario NAME"
	ticks  int64
	plan   func(h *bench.Handover) (*scenario.Scenario, error) // nil: nothing happens in it
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
	file  string                                    // of the scenario
	text  func(h *bench.Handover, round int) []byte // of it, in each round
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

// plan makes the scenario of a round.
func (t *turn) plan(round int) func(h *bench.Handover) (*scenario.Scenario, error) {
	return func(h *bench.Handover) (*scenario.Scenario, error) {
		return scenario.Parse(t.file, t.text(h, round), h)
	}
}

// rotation makes the rotation of a bench: one fault of every kind, then the scenarios. text
// is all that it is made of.
func (k *Soak) rotation(h *bench.Handover, longest time.Duration) (t *rotation, text string, err error) {
	t = &rotation{longest: int64(longest) / h.Tables.PeriodNs, shortest: int64(min(longest, Shortest)) / h.Tables.PeriodNs}
	if kinds := scenario.EveryFault(h, 0); !k.NoFaults && len(kinds) > 0 {
		gap := min(int64(time.Second)/h.Tables.PeriodNs, t.longest/int64(len(kinds)+2))
		if gap < scenario.ShortestFaultGap {
			return nil, "", fmt.Errorf("soak: legs of %v are too short for %d faults one after the other: -leg %v, or -faults=false", longest, len(kinds),
				time.Duration(scenario.ShortestFaultGap*int64(len(kinds)+2)*h.Tables.PeriodNs))
		}

		faults := func(h *bench.Handover, round int) []byte { return faultsText(scenario.EveryFault(h, round), gap) }
		t.turns = append(t.turns, turn{faultsLeg, gap * int64(len(kinds)+2), "faults", faults})
	}

	names := k.Scenarios
	if names == nil {
		names = listedFor(h.Bench.Name)
	}
	for _, name := range names {
		file, data, _, err := bench.ReadKind("soak", name, "scenario")
		if err != nil {
			return nil, "", err
		}
		s, err := scenario.Parse(file, data, h)
		if err != nil {
			return nil, "", err
		}
		ticks := cmp.Or(s.Ticks, t.longest)
		if ticks > t.longest {
			return nil, "", fmt.Errorf("soak: scenario %s lasts %s, longer than a leg of %v: -leg %v",
				name, s.FormatTick(ticks, h), longest, time.Duration(ticks*h.Tables.PeriodNs))
		}

		text += string(data)
		same := func(*bench.Handover, int) []byte { return data }
		t.turns = append(t.turns, turn{"scenario " + s.Name, ticks, file, same})
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
