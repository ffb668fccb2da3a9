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

// segment is one run of a soak. The plant, the grid and the control unit start anew in each.
type segment struct {
	number int    // from 1
	kind   string // plainSegment, faultsSegment or "scenario NAME"
	ticks  int64
	plan   func(h *bench.Handover) (*scenario.Scenario, error) // makes its scenario; nil: none
}

// The kinds of segments besides "scenario NAME".
const (
	plainSegment  = "plain"
	faultsSegment = "faults"
)

// schedule is the order of the segments: odd numbers are plain, even numbers take the entries in
// turn.
type schedule struct {
	longest  int64 // longest segment, ticks
	shortest int64 // shortest last segment, ticks
	entries  []scheduleEntry
}

// scheduleEntry is a kind of segment with a scenario.
type scheduleEntry struct {
	kind  string
	ticks int64
	file  string                                    // name of the scenario in errors
	text  func(h *bench.Handover, round int) []byte // text of the scenario; round counts from 0
}

// segment returns segment number (from 1) of a soak of which left ticks remain. The last segment
// takes a remainder of up to half a segment too.
func (t *schedule) segment(number int, left int64) segment {
	l := segment{number: number, kind: plainSegment, ticks: t.longest}
	if 2*left <= 3*t.longest {
		l.ticks = max(left, t.shortest)
		return l
	}

	if n := len(t.entries); n > 0 && number%2 == 0 {
		e := &t.entries[(number/2-1)%n]
		l.kind, l.ticks, l.plan = e.kind, e.ticks, e.plan((number/2-1)/n)
	}

	return l
}

// plan returns the function that parses the scenario of a round.
func (t *scheduleEntry) plan(round int) func(h *bench.Handover) (*scenario.Scenario, error) {
	return func(h *bench.Handover) (*scenario.Scenario, error) {
		return scenario.Parse(t.file, t.text(h, round), h)
	}
}

// newSchedule returns the schedule of a bench: one fault of every kind, then the scenarios. text is
// the text of all scenario files, from which the state file's digest is made.
func (k *Soak) newSchedule(h *bench.Handover, longest time.Duration) (t *schedule, text string, err error) {
	t = &schedule{longest: int64(longest) / h.Tables.PeriodNs, shortest: int64(min(longest, MinDuration)) / h.Tables.PeriodNs}
	if kinds := scenario.EveryFault(h, 0); !k.NoFaults && len(kinds) > 0 {
		spacing := min(int64(time.Second)/h.Tables.PeriodNs, t.longest/int64(len(kinds)+2))
		if spacing < scenario.MinFaultSpacing {
			return nil, "", fmt.Errorf("soak: legs of %v are too short for %d faults one after the other: -leg %v, or -faults=false", longest, len(kinds),
				time.Duration(scenario.MinFaultSpacing*int64(len(kinds)+2)*h.Tables.PeriodNs))
		}

		faults := func(h *bench.Handover, round int) []byte { return faultsText(scenario.EveryFault(h, round), spacing) }
		t.entries = append(t.entries, scheduleEntry{faultsSegment, spacing * int64(len(kinds)+2), "faults", faults})
	}

	names := k.Scenarios
	if names == nil {
		names = embeddedFor(h.Bench.Name)
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
		t.entries = append(t.entries, scheduleEntry{"scenario " + s.Name, ticks, file, same})
	}

	return t, text, nil
}

// embeddedFor returns the names of the embedded scenarios that are listed as "Scenario of BENCH:".
func embeddedFor(bench string) (names []string) {
	for _, e := range plants.List() {
		if e.Kind == "scenario" && strings.HasPrefix(e.About, "Scenario of "+bench+":") {
			names = append(names, e.Name)
		}
	}

	return names
}

// faultsText returns a scenario with one fault every spacing ticks; each lasts a third of the
// spacing.
func faultsText(list []string, spacing int64) []byte {
	out := &strings.Builder{}
	fmt.Fprintf(out, "scenario: %s\nfor: %d ticks\nfaults:\n", faultsSegment, spacing*int64(len(list)+2))
	for i, text := range list {
		fmt.Fprintf(out, "  - {name: fault %d, %s, at: tick %d, for: %d ticks}\n", i+1, text, int64(i+1)*spacing, spacing/3)
	}
	return []byte(out.String())
}
