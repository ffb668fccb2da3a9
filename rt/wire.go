package rt

import (
	"math"

	"lockstep/io/can"
	"lockstep/sched"
)

// wireClock estimates on the kernel's clock when a frame was on the bus. The controller's stamp has
// no delay by the host, but its clock has another origin and rate. The smallest difference of the
// two stamps is the offset of the clocks. It may grow by 1/4096 of the time passed, which is more
// than the drift between two quartz clocks.
type wireClock struct {
	offset int64 // kernel clock minus controller clock, ns
	last   int64 // previous stamp of the kernel, ns since 1970; 0: none yet
}

// maxDelay is the largest delay of a host's stamp, ns; a larger difference means that a clock was
// set.
const maxDelay = 10e6

// busTime returns when the frame with this stamp was on the bus, ns since 1970; 0: unknown.
//
//go:nosplit
func (c *wireClock) busTime(s *can.Stamp) int64 {
	if s.Hard == 0 || s.Soft == 0 {
		return s.Soft
	}
	off := s.Soft - s.Hard
	if most := c.offset + (s.Soft-c.last)>>12; c.last != 0 && off > most && off-most < maxDelay {
		off = most
	}
	c.offset, c.last = off, s.Soft
	return s.Hard + off
}

// realtimeClock is the offset of CLOCK_REALTIME, the clock of receive stamps, against the clock of the
// grid. It is measured in each tick that needs it, because both a step of the clock and its rate change
// it.
type realtimeClock struct {
	measured bool  // the offset is of this tick
	offset   int64 // CLOCK_REALTIME minus CLOCK_MONOTONIC, ns
	before   int64 // offset of the last tick that needed it: that of stamps from before a step of the clock
	now      int64 // instant of the measurement on CLOCK_MONOTONIC, ns
}

// Limits of a measurement of the offset. Its error is half the time between two readings of the grid's
// clock; another reading follows one that took longer than clockReading.
const (
	clockReadings = 4
	clockReading  = 5_000 // ns
)

// measure measures the offset.
//
//go:nosplit
func (c *realtimeClock) measure() {
	if !c.measured {
		c.before = c.offset
	}
	least := int64(math.MaxInt64)
	for range clockReadings {
		first := sched.Now()
		real := sched.Realtime()
		c.now = sched.Now()
		if took := c.now - first; took < least {
			least, c.offset = took, real-first-took/2
		}
		if least <= clockReading {
			break
		}
	}
	c.measured = true
}

// actsFrom returns the instant from which the values of the frame at index at act, ns since grid point
// 0. It is the arrival of the frame, or OnGrid where the arrival is not known. An arrival is after the
// last grid point stepped to and not in the future. A stamp beyond is wrong, or of before a step of the
// clock; the last offset of the clocks may explain it. If not, the values act at the nearest instant.
//
//go:nosplit
func (l *Loop) actsFrom(b, at int) int64 {
	stamp := &l.stamps[at]
	switch {
	case !l.cfg.Inputs.AtArrival || l.frames[at].Flags&can.FlagLong != 0, l.cfg.Virtual && stamp.Soft == 0:
		return OnGrid
	case l.cfg.Virtual:
		return l.boundArrival(stamp.Soft, stamp.Soft, l.ticker.Now())
	}
	arrived := l.wire[b].busTime(stamp)
	if arrived == 0 {
		l.status.InputsUnstamped.Add(1)
		return OnGrid
	}
	if !l.clock.measured || arrived > l.clock.now+l.clock.offset {
		l.clock.measure()
	}
	arrived -= l.grid.Start
	return l.boundArrival(arrived-l.clock.offset, arrived-l.clock.before, l.clock.now-l.grid.Start)
}

// boundArrival returns the first of two estimates of an arrival that is between the last grid point
// stepped to and now, all in ns since grid point 0. If neither is, it counts the frame and returns the
// instant nearest to the first one.
//
//go:nosplit
func (l *Loop) boundArrival(arrival, other, now int64) int64 {
	from := l.k * int64(l.cfg.Period)
	switch {
	case arrival >= from && arrival <= now:
		return arrival
	case other >= from && other <= now:
		return other
	}
	l.status.InputsMoved.Add(1)
	return min(max(arrival, from), max(from, now))
}
