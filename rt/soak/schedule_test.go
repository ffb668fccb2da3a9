package soak

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/scenario"
)

// scheduleOf returns the schedule of an embedded bench and its handover.
func scheduleOf(t *testing.T, name string, k *Soak, longest time.Duration) (*schedule, *bench.Handover) {
	t.Helper()
	b, err := bench.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := k.newSchedule(h, longest)
	if err != nil {
		t.Fatal(err)
	}
	return r, h
}

// faultsOf returns the scenario with one fault of every kind of a round.
func faultsOf(t *testing.T, r *schedule, h *bench.Handover, round int) *scenario.Scenario {
	t.Helper()
	s, err := r.entries[0].plan(round)(h)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFaultsOfASegmentDoNotOverlapAndEndBeforeIt(t *testing.T) {
	for _, longest := range []time.Duration{10 * time.Second, 10 * time.Minute} {
		r, h := scheduleOf(t, "powershift-bench", &Soak{}, longest)
		for round := range 3 {
			s := faultsOf(t, r, h, round)
			end := int64(0)
			for i, f := range s.Plan.Faults {
				if f.Start.Tick <= end || f.Duration < 1 {
					t.Errorf("legs of %v: %s begins at tick %d, the one before ends at %d", longest, s.Faults[i].Name.Text, f.Start.Tick, end)
				}
				end = f.Start.Tick + f.Duration
			}
			if s.Ticks != r.entries[0].ticks || end >= s.Ticks || time.Duration(s.Ticks*h.Tables.PeriodNs) > longest {
				t.Errorf("legs of %v: %d ticks, the schedule has %d, the last fault ends at %d", longest, s.Ticks, r.entries[0].ticks, end)
			}
		}
		if a, b := faultsOf(t, r, h, 0), faultsOf(t, r, h, 1); slices.Equal(a.Source, b.Source) {
			t.Error("the second round has the faults of the first")
		}
		if a, b := faultsOf(t, r, h, 2), faultsOf(t, r, h, 2); !slices.Equal(a.Source, b.Source) {
			t.Error("a round is not the same twice")
		}
	}
}

func TestScheduleAlternatesSegmentsAndFillsTheDuration(t *testing.T) {
	r, h := scheduleOf(t, "powershift-bench", &Soak{}, 2*time.Minute)
	ticks := func(d time.Duration) int64 { return int64(d) / h.Tables.PeriodNs }
	left, names := ticks(20*time.Minute), []string{}
	for n := 1; left > 0; n++ {
		l := r.segment(n, left)
		if l.number != n || l.ticks < 1 || 2*l.ticks > 3*r.longest {
			t.Fatalf("leg %d: %+v of %d", n, l, left)
		}
		if again := r.segment(n, left); again.kind != l.kind || again.ticks != l.ticks {
			t.Fatalf("segment %d differs the second time", n)
		}
		left -= l.ticks
		names = append(names, l.kind)
	}
	want := []string{"plain", "faults", "plain", "scenario powershift-clutch-sticks", "plain", "scenario powershift-off-the-bus", "plain", "faults", "plain"}
	if left != 0 || len(names) < len(want) || !slices.Equal(names[:len(want)], want) {
		t.Errorf("%d ticks left, legs %q, want them to begin with %q", left, names, want)
	}
	if l := r.segment(1, ticks(time.Second)); l.kind != "plain" || l.ticks != ticks(MinDuration) {
		t.Errorf("1 s left: %+v, want a plain segment of MinDuration", l)
	}
}

func TestInvalidSchedulesAreRefused(t *testing.T) {
	_, h := scheduleOf(t, "powershift-bench", &Soak{}, time.Minute)
	for _, c := range []struct {
		k       Soak
		longest time.Duration
		is      func(error) bool
		want    string // said by rotation itself, or a name
	}{
		{Soak{Scenarios: []string{"nosuch"}}, time.Minute, func(err error) bool { return errors.As(err, new(*bench.NotFoundError)) }, "nosuch"},
		{Soak{Scenarios: []string{"powershift"}}, time.Minute, func(err error) bool {
			var other *bench.KindError
			return errors.As(err, &other) && other.File == "powershift" && other.Kind == "plant"
		}, "soak: "},
		{Soak{Scenarios: []string{"wsp-ice"}}, time.Minute, func(err error) bool {
			var at *yamlfile.FileError
			return errors.As(err, &at) && at.File == "wsp-ice.yaml"
		}, `"brake.demand"`},
		{Soak{Scenarios: []string{"powershift-off-the-bus"}, NoFaults: true}, 3 * time.Second, nil, "soak: scenario powershift-off-the-bus lasts 4 s, longer than a leg of 3s: -leg 4s"},
		{Soak{}, time.Second, nil, "soak: legs of 1s are too short for 53 faults one after the other: -leg 1.65s, or -faults=false"},
	} {
		if _, _, err := c.k.newSchedule(h, c.longest); err == nil || c.is != nil && !c.is(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.k, err, c.want)
		}
	}
}
