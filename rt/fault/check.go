package fault

import (
	"fmt"
	"math"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// Refusal is an error that says why a command is refused. It is a number, since the tick
// refuses commands, too.
type Refusal uint8

const (
	accepted       Refusal = iota
	ErrCommand             // there is no such command
	ErrSlot                // there is no such slot
	ErrTarget              // there is no such bus, message, signal or input
	ErrInputKept           // the plant keeps the input to itself
	ErrInputDriven         // a bus drives the input
	ErrKind                // this kind of fault does not fit the target
	ErrNumber              // a number is not finite, or negative where it must not be
	ErrDelay               // the delay is not 0 to MaxDelay ticks, or 1 to MaxDelay of a frame
	ErrHeld                // more than MaxHeld frames would be held back at once
	ErrRange               // the input has no range for a short circuit
	ErrNoChecksum          // the frame has no checksum
	ErrNoCounter           // the frame has no counter
	ErrOffset              // the offset leaves the checksum as it is
	ErrLength              // a frame cannot have this length, or has it
	ErrBurst               // the burst is not 1 to MaxBurst frames
	ErrDuration            // this target cannot be disturbed for so long
	ErrTrigger             // the trigger is on an input or output that does not exist
)

var reasons = [...]string{
	accepted: "accepted", ErrCommand: "there is no such command", ErrSlot: "there is no such slot",
	ErrTarget: "there is no such bus, message, signal or input", ErrInputKept: "the input is taken by nobody, and the plant keeps it",
	ErrInputDriven: "a bus drives the input", ErrKind: "there is no such fault on this", ErrNumber: "a number is not finite, or below 0 where none can be",
	ErrDelay: fmt.Sprintf("a delay is at most %d ticks, and of a frame at least 1", MaxDelay), ErrHeld: fmt.Sprintf("more than %d frames would be held back at once", MaxHeld),
	ErrRange: "the input has no range: name a value (stuck)", ErrNoChecksum: "the frame has no checksum",
	ErrNoCounter: "the frame has no counter", ErrOffset: "the offset leaves a checksum as it is", ErrLength: "a frame cannot have this length, or has it",
	ErrBurst: fmt.Sprintf("a burst is 1 to %d frames", MaxBurst), ErrDuration: "it cannot last like this", ErrTrigger: "its trigger is on what is not there",
}

func (r Refusal) Error() string { return reasons[r] }

// Check returns why Do would refuse a command, a Refusal.
func (s *Set) Check(c *Command) error {
	if why := s.refuse(c); why != accepted {
		return why
	}
	return nil
}

// refuse is Check. What comes from another process is not believed.
//
//go:nosplit
func (s *Set) refuse(c *Command) Refusal {
	switch c.Op {
	case Put, Clear:
		switch {
		case c.Slot < 0 || c.Slot >= len(s.slots):
			return ErrSlot
		case c.Op == Clear:
			return accepted
		}
		return s.refuseFault(&c.Fault)
	case Drive, Release:
		switch {
		case c.Input < 0 || c.Input >= s.M:
			return ErrTarget
		case s.bus[c.Input]:
			return ErrInputDriven
		case s.Plant == nil:
			return ErrInputKept
		case !finite(c.Value):
			return ErrNumber
		}
		return accepted
	}
	return ErrCommand
}

//go:nosplit
func (s *Set) refuseFault(f *Fault) Refusal {
	if why := s.refusePlace(f); why != accepted {
		return why
	}
	if !finite(f.A) || !finite(f.B) || f.Kind == Leak && f.B < 0 {
		return ErrNumber
	}
	if f.Last < 0 || f.Frames && (f.Where == Input || f.Where == Bus) {
		return ErrDuration
	}
	for i := range f.Start.When {
		c := &f.Start.When[i]
		n := s.M
		if c.Output {
			n = s.P
		}
		if c.Set && (c.Index < 0 || c.Index >= n || !finite(c.Limit)) {
			return ErrTrigger
		}
	}
	switch f.Where {
	case Input, Signal:
		return s.refuseValue(f)
	case SentFrame:
		return s.refuseFrame(f)
	case ReceivedFrame:
		if f.Kind == Drop {
			return accepted
		}
		if f.Kind != DelayFrame {
			return ErrKind
		}
		return held(f.N, s.Maps[f.Bus].Rx[f.Message].CycleTicks)
	}
	if f.Kind != BusOff {
		return ErrKind
	}
	return accepted
}

// refusePlace looks whether there is what f is on.
//
//go:nosplit
func (s *Set) refusePlace(f *Fault) Refusal {
	if f.Where == Input {
		switch {
		case f.Input < 0 || f.Input >= s.M:
			return ErrTarget
		case !s.bus[f.Input] && s.Plant == nil:
			return ErrInputKept
		}
		return accepted
	}
	if f.Where >= wheres || f.Bus < 0 || f.Bus >= len(s.Maps) {
		return ErrTarget
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
		return ErrTarget
	}
	return accepted
}

//go:nosplit
func (s *Set) refuseValue(f *Fault) Refusal {
	switch {
	case f.Kind < Stuck || f.Kind > Short:
		return ErrKind
	case f.Kind == Delay && (f.N < 0 || f.N > MaxDelay):
		return ErrDelay
	case f.Kind == Short && f.N != 0 && f.N != 1:
		return ErrNumber
	case f.Kind == Short && f.Where == Input:
		if f.Input >= len(s.ranges) || !finite(s.ranges[f.Input][f.N]) {
			return ErrRange
		}
	}
	return accepted
}

//go:nosplit
func (s *Set) refuseFrame(f *Fault) Refusal {
	t := &s.Maps[f.Bus].Tx[f.Message]
	counter, sum := t.HasCounter, false
	for i := range t.Protect {
		p := &t.Protect[i]
		counter = counter || p.Modulus > 0
		if mask := p.SumMask(); mask != 0 {
			sum = true
			if f.Kind == ChecksumOffset && uint32(f.N)&mask == 0 {
				return ErrOffset
			}
		}
	}
	switch f.Kind {
	case Drop, Duplicate:
	case FreezeCounter:
		if !counter {
			return ErrNoCounter
		}
	case ChecksumValue, ChecksumFrozen, ChecksumRandom, ChecksumOffset:
		if !sum {
			return ErrNoChecksum
		}
	case WrongLength:
		if f.N == int64(t.Len) || !Length(f.N, t.Flags&can.FlagFDF != 0) {
			return ErrLength
		}
	case DelayFrame:
		if t.Send == sigmap.OnChange {
			return held(f.N, 0)
		}
		return held(f.N, t.CycleTicks)
	case Burst:
		if f.N < 1 || f.N > MaxBurst {
			return ErrBurst
		}
	default:
		return ErrKind
	}
	return accepted
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
func held(n, cycle int64) Refusal {
	switch {
	case n < 1 || n > MaxDelay:
		return ErrDelay
	case cycle > 0 && n > MaxHeld*cycle:
		return ErrHeld
	}
	return accepted
}

//go:nosplit
func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }
