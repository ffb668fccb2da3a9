package fault

import (
	"errors"
	"fmt"
	"math"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// Reasons to refuse a command. The tick refuses commands too, so the errors are made in advance.
var (
	errCommand      = errors.New("unknown command")
	errNoRestorer   = errors.New("the kernel stores no state of the plant")
	errSlot         = errors.New("slot does not exist")
	errTarget       = errors.New("bus, message, signal or input does not exist")
	errInputKept    = errors.New("nothing drives the input, and the plant cannot release it")
	errInputDriven  = errors.New("a bus drives the input")
	errSignalDriven = errors.New("an output drives the signal")
	errKind         = errors.New("this target has no fault of this kind")
	errNumber       = errors.New("a number is not finite, or is negative where it must not be")
	errGain         = fmt.Errorf("a gain is -%d to %d", MaxGain, MaxGain)
	errBeyond       = fmt.Errorf("the value leaves the range of the target by more than %d widths of the range, or exceeds %g SI without a range",
		MaxWidths, float64(MaxValue))
	errDelay      = fmt.Errorf("a delay is at most %d ticks, and of a frame at least 1", MaxDelay)
	errHeld       = fmt.Errorf("more than %d frames would be held back at once", MaxHeld)
	errRange      = errors.New("the input has no range: use a value (stuck)")
	errNoChecksum = errors.New("the frame has no checksum")
	errNoCounter  = errors.New("the frame has no counter")
	errOffset     = errors.New("the offset leaves a checksum as it is")
	errLength     = errors.New("the length is invalid, or is the frame's own")
	errExcerpt    = errors.New("a message of more than 64 bytes keeps its length")
	errBurst      = fmt.Errorf("a burst is 1 to %d frames", MaxBurst)
	errDuration   = errors.New("the duration is negative, or counts frames of a target without frames")
	errTrigger    = errors.New("a condition names an input or output that does not exist, or a limit that is not finite")
)

// Check returns why Apply would refuse a command. It checks everything, because commands come from
// another process.
//
//go:nosplit
func (s *Set) Check(c *Command) error {
	switch c.Op {
	case Put, Clear:
		if c.Slot < 0 || c.Slot >= len(s.slots) {
			return errSlot
		}
		if c.Op == Put {
			return s.checkFault(&c.Fault)
		}
	case Drive, Release:
		return s.checkDrive(c)
	case ReleaseAll, StartRecord, EndRecord:
	case SwitchIgnition, SwitchPower:
		if c.Slot < 0 || c.Slot > math.MaxUint16 {
			return errSlot
		}
	case TakeSnapshot, Restore, DropSnapshot:
		switch {
		case s.Restorer == nil:
			return errNoRestorer
		case c.Slot < 0 && (c.Op != Restore || c.Slot != -1) || c.Slot >= MaxSnapshots:
			return errSlot
		}
	default:
		return errCommand
	}

	return nil
}

// checkDrive returns why a live value, or its end, is refused.
//
//go:nosplit
func (s *Set) checkDrive(c *Command) error {
	var least, most float64
	switch f := &c.Fault; f.Where {
	case Input:
		switch {
		case c.Input < 0 || c.Input >= s.M:
			return errTarget
		case s.inputs[c.Input].bus:
			return errInputDriven
		case s.Plant == nil:
			return errInputKept
		}
		least, most = Limits(s.inputRange(c.Input))
	case Signal:
		if err := s.checkTarget(f); err != nil {
			return err
		}
		if s.waveform(f) == nil {
			return errSignalDriven
		}
		least, most = s.limits(f)
	default:
		return errTarget
	}

	switch {
	case !finite(c.Value):
		return errNumber
	case c.Op == Drive && !(c.Value >= least && c.Value <= most):
		return errBeyond
	}
	return nil
}

// waveform returns the waveform of a signal sent, the target of f; nil: an output drives the signal.
//
//go:nosplit
func (s *Set) waveform(f *Fault) *sigmap.Waveform {
	t := &s.Maps[f.Bus].Tx[f.Message]
	if n := t.Fields[f.Field].Waveform; n > 0 {
		return &t.Waveforms[n-1]
	}
	return nil
}

// checkFault returns why a fault is refused.
//
//go:nosplit
func (s *Set) checkFault(f *Fault) error {
	if err := s.checkTarget(f); err != nil {
		return err
	}
	switch {
	case !f.Kind.fits(f.Where):
		return errKind
	case !finite(f.A) || !finite(f.B) || f.Kind == Leak && !(f.A >= 0 && f.A <= 1 && f.B >= 0):
		return errNumber
	case f.Duration < 0 || f.Frames && (f.Where == Input || f.Where == Bus):
		return errDuration
	}

	for i := range f.Start.When {
		c := &f.Start.When[i]
		n := s.M
		if c.Output {
			n = s.P
		}
		if c.Set && (c.Index < 0 || c.Index >= n || !finite(c.Limit)) {
			return errTrigger
		}
	}

	switch f.Where {
	case Input, Signal, ReceivedSignal:
		return s.checkValue(f)
	case SentFrame:
		t := &s.Maps[f.Bus].Tx[f.Message]
		cycle := t.CycleTicks
		if t.Send == sigmap.OnChange {
			cycle = 0
		}
		return checkFrame(f, t.Protect, frameFacts{t.Excerpt.Size(t.Len), t.Flags&(can.FlagFDF|can.FlagLong) != 0, cycle, t.HasCounter})
	case ReceivedFrame:
		r := &s.Maps[f.Bus].Rx[f.Message]
		return checkFrame(f, r.Protect, frameFacts{r.Excerpt.Size(r.Len), r.FD || r.Len > 8, r.CycleTicks, false})
	}

	return nil
}

// fits reports whether a target can have a fault of kind k.
//
//go:nosplit
func (k Kind) fits(w Where) bool {
	switch {
	case k == None || k >= kinds:
		return false
	case k <= Short:
		return w == Input || w == Signal || w == ReceivedSignal
	case k == BusOff:
		return w == Bus
	}

	return w == SentFrame || w == ReceivedFrame
}

// checkTarget checks that the target of f exists.
//
//go:nosplit
func (s *Set) checkTarget(f *Fault) error {
	if f.Where == Input {
		switch {
		case f.Input < 0 || f.Input >= s.M:
			return errTarget
		case !s.inputs[f.Input].bus && s.Plant == nil:
			return errInputKept
		}

		return nil
	}

	if f.Where >= wheres || f.Bus < 0 || f.Bus >= len(s.Maps) {
		return errTarget
	}
	m, n := s.Maps[f.Bus], 1
	switch f.Where {
	case Signal, SentFrame:
		n = len(m.Tx)
	case ReceivedFrame, ReceivedSignal:
		n = len(m.Rx)
	}

	if f.Where == Bus {
		return nil
	}
	if f.Message < 0 || f.Message >= n {
		return errTarget
	}
	switch f.Where {
	case Signal:
		n = len(m.Tx[f.Message].Fields)
	case ReceivedSignal:
		n = len(m.Rx[f.Message].Fields)
	default:
		return nil
	}

	if f.Field < 0 || f.Field >= n {
		return errTarget
	}
	return nil
}

// limits returns the Limits of the input or signal of a fault.
//
//go:nosplit
func (s *Set) limits(f *Fault) (least, most float64) {
	switch f.Where {
	case Input:
		return Limits(s.inputRange(f.Input))
	case ReceivedSignal:
		return Limits(FieldRange(&s.Maps[f.Bus].Rx[f.Message].Fields[f.Field]))
	}
	return Limits(FieldRange(&s.Maps[f.Bus].Tx[f.Message].Fields[f.Field]))
}

// checkValue returns why a fault of a value is refused.
//
//go:nosplit
func (s *Set) checkValue(f *Fault) error {
	least, most := s.limits(f)
	switch f.Kind {
	case Stuck, Floor, Ceiling:
		if !(f.A >= least && f.A <= most) {
			return errBeyond
		}
	case Offset, Noise:
		if !(math.Abs(f.A) <= most-least) {
			return errBeyond
		}
	case Ramp, Drift:
		if !(float64(math.Abs(f.A)*s.h) <= most-least) {
			return errBeyond
		}
	case Gain:
		if !(math.Abs(f.A) <= MaxGain) {
			return errGain
		}
	}

	switch {
	case f.Kind == Delay && (f.N < 0 || f.N > MaxDelay):
		return errDelay
	case f.Kind == Short && f.N != 0 && f.N != 1:
		return errNumber
	case f.Kind == Short && f.Where == Input:
		if f.Input >= len(s.ranges) || !finite(s.ranges[f.Input][f.N]) {
			return errRange
		}
	}

	return nil
}

// frameFacts describes a message sent or received.
type frameFacts struct {
	length  int   // bytes
	fd      bool  // a CAN FD frame, or a message of several frames
	cycle   int64 // ticks; 0: none
	counter bool  // it has a counter besides its protections
}

// checkFrame returns why a fault of a frame with these protections is refused.
//
//go:nosplit
func checkFrame(f *Fault, list []sigmap.Protection, t frameFacts) error {
	counter, sum := t.counter, false
	for i := range list {
		p := &list[i]
		counter = counter || p.Modulus > 0
		if mask := p.Checksum.Mask(); mask != 0 {
			sum = true
			if f.Kind == ChecksumOffset && uint64(f.N)&mask == 0 {
				return errOffset
			}
		}
	}

	switch f.Kind {
	case FreezeCounter:
		if !counter {
			return errNoCounter
		}
	case ChecksumValue, ChecksumFrozen, ChecksumRandom, ChecksumOffset:
		if !sum {
			return errNoChecksum
		}
	case WrongLength:
		if t.length > 64 {
			return errExcerpt
		}
		if f.N == int64(t.length) || !IsFrameLength(f.N, t.fd) {
			return errLength
		}
	case DelayFrame:
		return checkHeld(f.N, t.cycle)
	case Burst:
		if f.N < 1 || f.N > MaxBurst {
			return errBurst
		}
	}

	return nil
}

// IsFrameLength reports whether a CAN frame, or CAN FD frame if fd is true, can have n bytes.
//
//go:nosplit
func IsFrameLength(n int64, fd bool) bool {
	switch n {
	case 12, 16, 20, 24, 32, 48, 64:
		return fd
	}

	return n >= 0 && n <= 8
}

// checkHeld checks that frames with a cycle of so many ticks can be delayed by n ticks; cycle 0:
// unknown.
//
//go:nosplit
func checkHeld(n, cycle int64) error {
	switch {
	case n < 1 || n > MaxDelay:
		return errDelay
	case cycle > 0 && n > MaxHeld*cycle:
		return errHeld
	}

	return nil
}

//go:nosplit
func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }
