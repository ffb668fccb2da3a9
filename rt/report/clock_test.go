package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
)

// The clock of the host stays as it is: the differences before the steps are made up.
func TestStepsOfTheClockAreReported(t *testing.T) {
	v := View{Handover: &bench.Handover{ForSupervisors: bench.ForSupervisors{}, Tables: &kernel.Tables{PeriodNs: 5e6}}, Status: new(rt.StatusBlock)}
	var c Clock
	c.Collect(v)
	c.Collect(v)
	if len(c.Steps) != 0 {
		t.Fatalf("steps of a clock that was not set: %v", c.Steps)
	}
	for i, step := range []time.Duration{time.Hour, -time.Hour, 20 * time.Millisecond, time.Millisecond} {
		v.Status.Ticks.Store(uint64(200 * (i + 1)))
		c.offset -= int64(step)
		c.Collect(v)
	}
	want := []ClockStep{{1, 3600}, {2, -3600}, {3, 0.02}}
	if len(c.Steps) != len(want) {
		t.Fatalf("steps %v, want %v", c.Steps, want)
	}
	for i, s := range c.Steps {
		if s.Time != want[i].Time || !(math.Abs(s.Step-want[i].Step) < 0.01) {
			t.Errorf("step %v, want %v", s, want[i])
		}
	}
	var out bytes.Buffer
	(&Report{ClockSteps: c.Steps[:1]}).Text(&out)
	if !strings.Contains(out.String(), "  clock            CLOCK_REALTIME stepped by +3600.000 s at 1.000 s; the grid follows CLOCK_MONOTONIC\n") {
		t.Errorf("no line of the step in\n%s", &out)
	}
}
