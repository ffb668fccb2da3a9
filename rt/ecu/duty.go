package ecu

import (
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"
	"time"

	"github.com/brutella/can"
)

// brakeCycle is how often a unit of a brake sends, and hears the speeds of the wheels.
const brakeCycle = 5 * time.Millisecond

// duty is what the units of brakes have in common: they are awake while the speeds of the
// wheels come, send in cycles, and count.
type duty struct {
	name   string
	speeds string // frame that wakes it
	line   can.Writer
	log    io.Writer
	awake  bool
	start  time.Time
	last   time.Time // latest speeds
	ticks  time.Time

	stops  int
	count  uint8
	counts Counts
}

func (d *duty) counted() *Counts { return &d.counts }

// whole counts a frame, and reports whether it has its length.
func (d *duty) whole(f *can.Frame) bool {
	d.counts.Heard++
	if f.Length != 8 {
		d.counts.Malformed++
	}
	return f.Length == 8
}

// follow takes the counter of a frame, and with it the time, unless the counter may have gone
// round in between.
func (d *duty) follow(c *clock, f *can.Frame, now time.Time) {
	lost := c.missing(f)
	c.gap, c.heard = now.Sub(c.heard) > 15*brakeCycle, now
	d.counts.Lost += int64(lost)
	c.now += float64(1+lost) * brakeCycle.Seconds()
}

// wake notes that speeds have come, and reports whether the unit slept.
func (d *duty) wake(now time.Time) bool {
	d.last = now
	if d.awake {
		return false
	}
	d.awake, d.start, d.ticks = true, now, now
	return true
}

// due begins a cycle: t is the time since the unit woke and dt that since the cycle
// before, s. After a second without speeds the unit sleeps, and none is.
func (d *duty) due(now time.Time) (t, dt float64, ok bool) {
	if d.awake && now.Sub(d.last) > silence {
		fmt.Fprintf(d.log, "%s: no %s for %v, nothing is sent\n", d.name, d.speeds, silence)
		d.awake = false
	}
	if !d.awake {
		d.ticks = now
		return 0, 0, false
	}
	passed := max(1, math.Round(float64(now.Sub(d.ticks))/float64(brakeCycle)))
	d.counts.Missed += int64(passed) - 1
	d.ticks = now
	d.counts.Cycles++
	d.count++
	return now.Sub(d.start).Seconds(), passed * brakeCycle.Seconds(), true
}

// send puts a frame on the bus; one for which there is no room is dropped.
func (d *duty) send(f can.Frame) error {
	err := d.line.WriteFrame(f)
	if errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EAGAIN) {
		d.counts.Dropped++
		return nil
	}
	return err
}
