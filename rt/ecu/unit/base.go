package unit

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// wakeTimeout is the time without the wake-up frame after which a unit falls asleep.
const wakeTimeout = time.Second

// Base is the common part of all control units. A unit sleeps until its wake-up frame comes, sends
// in cycles while the frame keeps coming, and counts frames. A law embeds it.
type Base struct {
	Delay time.Duration // time from wake-up to the first cycle
	Mute  bool          // the unit must not send in cycles

	Server *diagnosis.Server // set by Operation.Serve; nil: the unit has none

	Awake     bool
	LastCycle time.Time // time of the last cycle
	Counter   uint8     // rolling counter of the present cycle, modulo 256
	Counts    Counts

	kind  Type
	line  can.Writer
	log   io.Writer
	start time.Time // time of the wake-up
	last  time.Time // time of the last wake-up frame
}

// Logf writes a line of the unit to its log: the name of the unit, and the formatted text.
func (b *Base) Logf(format string, args ...any) {
	fmt.Fprintf(b.log, b.kind.Name+": "+format+"\n", args...)
}

// CountFrame counts a frame and reports whether it has eight bytes.
func (b *Base) CountFrame(f *can.Frame) bool {
	b.Counts.Received++
	if f.Length != 8 {
		b.Counts.Malformed++
	}
	return f.Length == 8
}

// Wake handles a wake-up frame and reports whether the unit slept.
func (b *Base) Wake(now time.Time) bool {
	b.last = now
	if b.Awake {
		return false
	}
	b.Awake, b.start, b.LastCycle = true, now, now
	return true
}

// KeepAwake has the effect of a wake-up frame on a unit that is awake.
func (b *Base) KeepAwake(now time.Time) { b.last = now }

// Elapsed returns the time from the wake-up to the last cycle, s.
func (b *Base) Elapsed() float64 { return b.LastCycle.Sub(b.start).Seconds() }

// cycle starts a cycle: t is the time since the wake-up, s, dt the time since the previous cycle, s.
// ok is false while the unit sleeps, waits for its delay or is mute.
func (b *Base) cycle(now time.Time) (t, dt float64, ok bool) {
	if b.Awake && now.Sub(b.last) > wakeTimeout {
		b.Logf("no %s for %v, nothing is sent", b.kind.WakeFrame, wakeTimeout)
		b.Awake = false
	}

	if !b.Awake || b.Mute || now.Sub(b.start) < b.Delay {
		b.LastCycle = now
		return 0, 0, false
	}

	passed := max(1, math.Round(float64(now.Sub(b.LastCycle))/float64(b.kind.Period)))
	b.Counts.Missed += int64(passed) - 1
	b.LastCycle = now
	b.Counts.Cycles++
	b.Counter = uint8(b.Counts.Cycles - 1)
	return b.Elapsed(), passed * b.kind.Period.Seconds(), true
}

// Send sends a frame. If the queue of the bus is full, the frame is dropped and counted. Another error of the bus is
// returned.
func (b *Base) Send(f can.Frame) error {
	err := b.line.WriteFrame(f)
	if errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EAGAIN) {
		b.Counts.Dropped++
		return nil
	}

	return err
}

// Counts are the counts of a control unit; its last line begins with them.
type Counts struct {
	Cycles    int64 // cycles sent
	Missed    int64 // cycles missed while the unit was awake
	Dropped   int64 // frames that the bus did not take
	Received  int64 `json:"Heard"` // frames received with an identifier of the unit
	Malformed int64 // packets that are no CAN frame, and frames of a wrong length or checksum
	Lost      int64 // frames missing by their counters, modulo 16
}

const countsFormat = "%d cycles sent, %d missed, %d frames dropped, %d frames received, %d malformed, %d lost by their counters"

func (c Counts) String() string {
	return fmt.Sprintf(countsFormat, c.Cycles, c.Missed, c.Dropped, c.Received, c.Malformed, c.Lost)
}

// ParseCounts reads the counts from the last line of a control unit, "NAME: ...".
func ParseCounts(line string) (c Counts, err error) {
	_, text, _ := strings.Cut(line, ": ")
	if _, err := fmt.Sscanf(text, countsFormat, &c.Cycles, &c.Missed, &c.Dropped, &c.Received, &c.Malformed, &c.Lost); err != nil {
		return Counts{}, fmt.Errorf("ecu: %q is not the last line of a control unit: %w", line, err)
	}
	return c, nil
}
