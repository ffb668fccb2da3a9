package fault

import (
	"errors"
	"fmt"
	"math"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// reason says why a command is refused.
type reason uint8

const (
	fine reason = iota
	badOp
	badSlot
	badPlace
	badInput
	badDrive
	badKind
	badNumber
	badTicks
	badHeld
	badRange
	badChecksum
	badCounter
	badOffset
	badLength
	badBurst
	badLast
	badTrigger
)

var reasons = [...]string{
	fine: "fine", badOp: "there is no such command", badSlot: "there is no such slot",
	badPlace: "there is no such bus, message, signal or input", badInput: "the input is taken by nobody, and the plant keeps it",
	badDrive: "a bus drives the input", badKind: "there is no such fault on this", badNumber: "a number is not finite, or below 0 where none can be",
	badTicks: fmt.Sprintf("a delay is at most %d ticks, and of a frame at least 1", MaxDelay), badHeld: fmt.Sprintf("more than %d frames would be held back at once", MaxHeld),
	badRange: "the input has no range: name a value (stuck)", badChecksum: "the frame has no checksum",
	badCounter: "the frame has no counter", badOffset: "the offset leaves a checksum as it is", badLength: "a frame cannot have this length, or has it",
	badBurst: fmt.Sprintf("a burst is 1 to %d frames", MaxBurst), badLast: "it cannot last like this", badTrigger: "its trigger is on what is not there",
}

func (r reason) String() string { return reasons[r] }

// Check says why a command cannot be: Do leaves everything as it is.
func (s *Set) Check(c *Command) error {
	if why := s.refuse(c); why != fine {
		return errors.New(why.String())
	}
	return nil
}

// refuse is Check. What comes from another process is not believed.
//
//go:nosplit
func (s *Set) refuse(c *Command) reason {
	switch c.Op {
	case Put, Clear:
		switch {
		case c.Slot < 0 || c.Slot >= len(s.slots):
			return badSlot
		case c.Op == Clear:
			return fine
		}
		return s.refuseFault(&c.Fault)
	case Drive, Release:
		switch {
		case c.Input < 0 || c.Input >= s.M:
			return badPlace
		case s.bus[c.Input]:
			return badDrive
		case s.Plant == nil:
			return badInput
		case !finite(c.Value):
			return badNumber
		}
		return fine
	}
	return badOp
}

//go:nosplit
func (s *Set) refuseFault(f *Fault) reason {
	if why := s.refusePlace(f); why != fine {
		return why
	}
	if !finite(f.A) || !finite(f.B) || f.Kind == Leak && f.B < 0 {
		return badNumber
	}
	if f.Last < 0 || f.Frames && (f.Where == Input || f.Where == Bus) {
		return badLast
	}
	for i := range f.Start.When {
		c := &f.Start.When[i]
		n := s.M
		if c.Output {
			n = s.P
		}
		if c.Set && (c.Index < 0 || c.Index >= n || !finite(c.Limit)) {
			return badTrigger
		}
	}
	switch f.Where {
	case Input, Signal:
		return s.refuseValue(f)
	case SentFrame:
		return s.refuseFrame(f)
	case ReceivedFrame:
		if f.Kind == Drop {
			return fine
		}
		if f.Kind != DelayFrame {
			return badKind
		}
		return held(f.N, s.Maps[f.Bus].Rx[f.Message].CycleTicks)
	}
	if f.Kind != BusOff {
		return badKind
	}
	return fine
}

// refusePlace looks whether there is what f is on.
//
//go:nosplit
func (s *Set) refusePlace(f *Fault) reason {
	if f.Where == Input {
		switch {
		case f.Input < 0 || f.Input >= s.M:
			return badPlace
		case !s.bus[f.Input] && s.Plant == nil:
			return badInput
		}
		return fine
	}
	if f.Where >= wheres || f.Bus < 0 || f.Bus >= len(s.Maps) {
		return badPlace
	}
	m, n := s.Maps[f.Bus], 1
	switch f.Where {
	case Signal, SentFrame:
		n = len(m.Tx)
	case ReceivedFrame:
		n = len(m.Rx)
	}
	if f.Where != Bus && (f.Message < 0 || f.Message >= n) ||
		f.Where == Signal && (f.Field < 0 || f.Field >= len(m.Tx[f.Message].Fields)) {
		return badPlace
	}
	return fine
}

//go:nosplit
func (s *Set) refuseValue(f *Fault) reason {
	switch {
	case f.Kind < Stuck || f.Kind > Short:
		return badKind
	case f.Kind == Delay && (f.N < 0 || f.N > MaxDelay):
		return badTicks
	case f.Kind == Short && f.N != 0 && f.N != 1:
		return badNumber
	case f.Kind == Short && f.Where == Input:
		if f.Input >= len(s.ranges) || !finite(s.ranges[f.Input][f.N]) {
			return badRange
		}
	}
	return fine
}

//go:nosplit
func (s *Set) refuseFrame(f *Fault) reason {
	t := &s.Maps[f.Bus].Tx[f.Message]
	counter, sum := t.HasCounter, false
	for i := range t.Protect {
		p := &t.Protect[i]
		counter = counter || p.Modulus > 0
		if mask := p.SumMask(); mask != 0 {
			sum = true
			if f.Kind == ChecksumOffset && uint32(f.N)&mask == 0 {
				return badOffset
			}
		}
	}
	switch f.Kind {
	case Drop, Duplicate:
	case FreezeCounter:
		if !counter {
			return badCounter
		}
	case ChecksumValue, ChecksumFrozen, ChecksumRandom, ChecksumOffset:
		if !sum {
			return badChecksum
		}
	case WrongLength:
		if f.N == int64(t.Len) || !Length(f.N, t.Flags&can.FlagFDF != 0) {
			return badLength
		}
	case DelayFrame:
		if t.Send == sigmap.OnChange {
			return held(f.N, 0)
		}
		return held(f.N, t.CycleTicks)
	case Burst:
		if f.N < 1 || f.N > MaxBurst {
			return badBurst
		}
	default:
		return badKind
	}
	return fine
}

// Length says that a frame, a classic one or one of CAN FD, can have n bytes.
//
//go:nosplit
func Length(n int64, fd bool) bool {
	switch n {
	case 12, 16, 20, 24, 32, 48, 64:
		return fd
	}
	return n >= 0 && n <= 8
}

// held looks whether frames can be delayed by n ticks that come once in a cycle of
// ticks; 0: nobody knows how often.
//
//go:nosplit
func held(n, cycle int64) reason {
	switch {
	case n < 1 || n > MaxDelay:
		return badTicks
	case cycle > 0 && n > MaxHeld*cycle:
		return badHeld
	}
	return fine
}

//go:nosplit
func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }
