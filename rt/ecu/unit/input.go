package unit

import (
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// mostMissing is the number of frames missing by the counter up to which a frame is good.
const mostMissing = 3

// StartTime is the time from the start of a unit on in which its inputs may still be missing, s.
const StartTime = 0.5

// Input supervises the frames of one message to the unit: whether they come in time, and whether they are valid.
type Input struct {
	Lost, Invalid uint32        // trouble codes of missing and invalid frames; 0: none
	Timeout       time.Duration // time without a frame after which it is missing

	counter   RollingCounter
	seen      time.Time // last frame; zero: none yet
	good, bad int       // frames since the last Report
	wrong     bool      // the last frame is bad
}

// Seen reports whether a frame has come.
func (i *Input) Seen() bool { return !i.seen.IsZero() }

// Late reports whether frames are missing; without any frame they are.
func (i *Input) Late(now time.Time) bool { return now.Sub(i.seen) > i.Timeout }

// Age returns the time since the last frame.
func (i *Input) Age(now time.Time) time.Duration { return now.Sub(i.seen) }

// Wrong reports whether the last frame was invalid.
func (i *Input) Wrong() bool { return i.wrong }

// Note notes a frame with the number of frames missing before it. A frame after more than three missing ones is
// invalid.
func (i *Input) Note(missing int64, now time.Time) {
	if i.seen, i.wrong = now, missing > mostMissing; i.wrong {
		i.bad++
	} else {
		i.good++
	}
}

// Take notes a frame of AUTOSAR's E2E profile 1A and returns the number of frames missing before it, modulo 15. ok is
// false if the frame is not to be used: its checksum is wrong, or its length.
func (i *Input) Take(f *can.Frame, now time.Time) (missing int64, ok bool) {
	if f.Length != 8 || CRC1A(f) != f.Data[0] {
		i.seen, i.wrong = now, true
		i.bad++
		return 0, false
	}
	missing = i.counter.countMissingOf15(f.Data[1] & 15)
	i.Note(missing, now)
	return missing, true
}

// Report reports late and invalid frames to a fault memory, once per cycle at now; passed is the time since the
// previous cycle. Before the unit has started, no frame is late.
func (i *Input) Report(m *diagnosis.Memory, started bool, now time.Time, passed time.Duration) {
	if started {
		m.Report(i.Lost, i.Late(now), passed)
	}
	if i.good+i.bad > 0 {
		m.Report(i.Invalid, i.bad > 0, passed)
	}
	i.good, i.bad = 0, 0
}

// Seconds converts seconds to a duration, rounded to nanoseconds.
func Seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
