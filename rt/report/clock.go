package report

import (
	"fmt"
	"time"

	"lockstep/sched"
)

// clockStep is the smallest step of CLOCK_REALTIME that is noted. Both clocks follow NTP at the same
// rate, so their difference changes by steps only.
const clockStep = 10 * time.Millisecond

// maxClockSteps bounds the steps of the clock that a report lists.
const maxClockSteps = 1000

// ClockOffset returns CLOCK_REALTIME minus the clock of the grid, ns.
func ClockOffset() (offset int64) {
	for range 10 { // again if another thread ran between the readings
		before := sched.Now()
		now := sched.Realtime()
		after := sched.Now()
		offset = now - (before+after)/2
		if after-before < int64(clockStep)/10 {
			break
		}
	}
	return offset
}

// StepOfClock returns by how much CLOCK_REALTIME was stepped since ClockOffset returned offset, ns; 0:
// it was not.
func StepOfClock(offset int64) int64 {
	step := ClockOffset() - offset
	if time.Duration(step).Abs() < clockStep {
		return 0
	}
	return step
}

// ClockStep is a step of CLOCK_REALTIME during a run.
type ClockStep struct {
	Time float64 `json:"time_s"` // simulated time at which the supervisor noticed the step, s
	Step float64 `json:"step_s"` // s
}

// String describes the step.
func (s ClockStep) String() string {
	return fmt.Sprintf("CLOCK_REALTIME stepped by %+.3f s at %.3f s; the grid follows CLOCK_MONOTONIC", s.Step, s.Time)
}

// Clock collects the steps of CLOCK_REALTIME in the supervisor.
type Clock struct {
	Steps  []ClockStep // the first 1000
	offset int64       // ns
	begun  bool
}

// Collect notes a step since the last call.
func (c *Clock) Collect(v View) {
	if !c.begun {
		c.begun, c.offset = true, ClockOffset()
		return
	}
	step := StepOfClock(c.offset)
	c.offset += step
	if step != 0 && len(c.Steps) < maxClockSteps {
		at := float64(int64(v.Status.Ticks.Load())*v.Handover.Tables.PeriodNs) / 1e9
		c.Steps = append(c.Steps, ClockStep{Time: at, Step: float64(step) / 1e9})
	}
}
