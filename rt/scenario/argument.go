package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/io/sigmap"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// argument is the argument of a kind of fault.
type argument struct {
	keys    []string                            // keys of its value, if that may be a mapping
	resolve func(b *binding, text string) error // sets it in the fault; text is "" for a mapping

	// Values that EveryFault tries: the examples in turn; without examples, a number.
	examples []string
	level    float64 // its place in the range of the target, 0 to 1; 0: see share
	share    float64 // its share of the width of that range

	perSecond bool // of the share
}

// binding is a fault that is being resolved.
type binding struct {
	*faultSpec
	*fault.Fault
	h *bench.Handover
	t *resolvedTarget
}

// setNumber returns a resolve function that sets A to a number.
func setNumber(read func(t *resolvedTarget, text string) (float64, error)) func(*binding, string) error {
	return func(b *binding, text string) (err error) {
		b.A, err = read(b.t, text)
		return err
	}
}

var (
	// "true", or the key alone
	takesNothing = argument{examples: []string{"true"}, resolve: func(b *binding, text string) error {
		if text != "true" {
			return fmt.Errorf("this kind takes no value, got %q: write %s: true", text, b.kind.Text)
		}
		return nil
	}}

	// a value of the target
	takesLevel = argument{level: 0.3, resolve: setNumber((*resolvedTarget).parseLevel)}

	// a value of the target; true: the largest one
	takesCapacity = argument{examples: []string{"true"}, resolve: func(b *binding, text string) (err error) {
		if b.A = b.t.hi; text != "true" {
			b.A, err = b.t.parseLevel(text)
		}
		if math.IsInf(b.A, 0) {
			err = fmt.Errorf("the input has no largest value: give a value (%s: 20 bar)", b.kind.Text)
		}
		return err
	}}

	// in the unit of the target: a difference; a deviation, > 0; a difference per second
	takesDifference = argument{share: 0.05, resolve: setNumber((*resolvedTarget).parseDifference)}
	takesSpread     = argument{share: 0.02, resolve: setNumber((*resolvedTarget).parseDeviation)}
	takesRate       = argument{share: 0.2, perSecond: true, resolve: setNumber((*resolvedTarget).parseRate)}

	// a bare number
	takesFactor = argument{
		examples: []string{"1.1"},
		resolve:  setNumber(func(_ *resolvedTarget, text string) (float64, error) { return readTyped(text, number) }),
	}

	takesLeak = argument{
		keys:     []string{"share", "time"},
		examples: []string{"{share: 30 %, time: 100 ms}"},
		resolve:  (*binding).leak,
	}

	// a time or a number of ticks
	takesTime = argument{examples: []string{"2 ticks"}, resolve: func(b *binding, text string) (err error) {
		b.N, err = parseTicks(b.h, text)
		if err == nil && (b.N < 1 || b.N > fault.MaxDelay) {
			err = fmt.Errorf("%s is %d ticks; 1 to %d are possible", text, b.N, fault.MaxDelay)
		}
		return err
	}}

	takesRail = argument{examples: []string{"ground", "supply"}, resolve: func(b *binding, text string) error {
		switch text {
		case "ground":
		case "supply":
			b.N = 1
		default:
			return fmt.Errorf("%q is neither ground nor supply", text)
		}

		return nil
	}}

	takesChecksum = argument{
		keys:     []string{"value", "offset"},
		examples: []string{"{offset: 1}", "frozen", "random", "{value: 0}"},
		resolve:  (*binding).checksum,
	}

	// bytes
	takesSize = argument{examples: []string{"7", "4", "2", "0", "8", "12", "16"}, resolve: (*binding).size}

	// a number of frames
	takesCount = argument{examples: []string{"3"}, resolve: func(b *binding, text string) (err error) {
		b.N, err = parseWhole(text, 1, fault.MaxBurst)
		return err
	}}
)

func (t *resolvedTarget) parseDeviation(text string) (float64, error) {
	v, err := t.parseDifference(text)
	if err == nil && !(v > 0) {
		err = fmt.Errorf("the deviation %s is not positive", text)
	}
	return v, err
}

func (b *binding) leak(string) (err error) {
	share, time := b.text("leak.share"), b.text("leak.time")
	if share == "" || time == "" {
		return errors.New("expected share and time: {share: 30 %, time: 200 ms}")
	}
	if b.A, err = readTyped(share, number); err == nil && !(b.A > 0 && b.A <= 1) {
		err = fmt.Errorf("share: %s is not more than 0 and at most 100 %%", share)
	}
	if err != nil {
		return err
	}
	if b.B, err = readTyped(time, seconds); err == nil && !(b.B > 0) {
		err = fmt.Errorf("time: %s is not positive", time)
	}
	return err
}

func (b *binding) size(text string) (err error) {
	if b.N, err = parseWhole(text, 0, 64); err == nil && !fault.IsFrameLength(b.N, b.t.msg.FD) {
		err = fmt.Errorf("no frame of this kind has %d bytes: 0 to 8, or with CAN FD 12, 16, 20, 24, 32, 48, 64", b.N)
	}
	m, n := b.h.Maps[b.Bus], 0
	if b.Where == fault.ReceivedFrame {
		n = m.Rx[b.Message].Len
	} else {
		n = m.Tx[b.Message].Len
	}
	if b.t.msg.Len > 64 {
		return fmt.Errorf("a message of more than 64 bytes keeps its length: it has %d", b.t.msg.Len)
	}
	if err == nil && b.N == int64(n) {
		err = fmt.Errorf("the frame has %d bytes already", b.N)
	}
	return err
}

func (b *binding) checksum(text string) (err error) {
	m := b.h.Maps[b.Bus]
	var bits int
	if b.Where == fault.ReceivedFrame {
		bits = checksumBits(m.Rx[b.Message].Protect)
	} else {
		bits = checksumBits(m.Tx[b.Message].Protect)
	}
	if bits == 0 {
		return errors.New("the frame has no checksum")
	}
	value, offset := b.text("checksum.value"), b.text("checksum.offset")
	switch {
	case text == "frozen":
		b.Kind = fault.ChecksumFrozen
	case text == "random":
		b.Kind = fault.ChecksumRandom
	case value != "" && offset == "":
		b.N, err = parseWhole(value, 0, 1<<min(bits, 63)-1)
	case offset != "" && value == "":
		b.Kind = fault.ChecksumOffset
		b.N, err = parseWhole(offset, 1, 1<<min(bits, 63)-1)
	default:
		err = fmt.Errorf("%q is not one of: {value: 0x00}, frozen, random, {offset: 1}", text)
	}

	return err
}

// checksumBits returns the width of the narrowest checksum among protections; 0: none.
func checksumBits(list []sigmap.Protection) (bits int) {
	for i := range list {
		n, split := 0, &list[i].Checksum
		for _, p := range split.Part[:split.N] {
			n += int(p.Len)
		}
		if n > 0 && (bits == 0 || n < bits) {
			bits = n
		}
	}

	return bits
}

// parseWhole reads a whole number, decimal or 0x.
func parseWhole(text string, lo, hi int64) (int64, error) {
	v, err := strconv.ParseInt(text, 0, 64)
	if err != nil || v < lo || v > hi {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d (0x%X)", text, lo, hi, hi)
	}
	return v, nil
}

// parseLevel reads a value of the target; for a signal, it may be a text of the value table.
func (t *resolvedTarget) parseLevel(text string) (float64, error) {
	raw, isText := t.rawOfText(text)
	v, err := 0.0, error(nil)
	if isText {
		v = t.ToSI(t.sig.Value(raw))
	} else {
		v, err = readTyped(text, t.Wanted)
	}
	v = t.toFault(v)
	if _, whole := t.parseWhole(text, v); whole && v == t.hi/(1-0x1p-53) {
		v = t.hi // the largest number of more than 53 bits is no float64
	}
	if err == nil && !isText && t.sig != nil && !(v >= t.lo-t.slack && v <= t.hi+t.slack) {
		err = fmt.Errorf("%s is outside the range of the signal, %s",
			text, formatRange(t.toSI(t.lo), t.toSI(t.hi), t.Wanted))
	}

	return v, err
}

// rawOfText returns the raw bits that a text of the signal's value table stands for.
func (t *resolvedTarget) rawOfText(text string) (raw uint64, ok bool) {
	if t.sig == nil {
		return 0, false
	}
	for _, v := range t.sig.Values {
		if v.Text == text {
			return uint64(v.Raw) & (math.MaxUint64 >> (64 - t.sig.Len)), true
		}
	}
	return 0, false
}

// toFault converts a value from SI to the unit of package fault.
func (t *resolvedTarget) toFault(si float64) float64 {
	if t.ownUnit {
		return t.FromSI(si)
	}
	return si
}

// toSI converts a value from the unit of package fault to SI.
func (t *resolvedTarget) toSI(v float64) float64 {
	if t.ownUnit {
		return t.ToSI(v)
	}
	return v
}

// parseDifference reads a difference of values in the unit of package fault, parseRate one per
// second.
func (t *resolvedTarget) parseDifference(text string) (float64, error) {
	return t.toFaultScale(readTyped(text, t.Difference()))
}
func (t *resolvedTarget) parseRate(text string) (float64, error) {
	return t.toFaultScale(readRate(text, t.Wanted))
}

func (t *resolvedTarget) toFaultScale(si float64, err error) (float64, error) {
	if t.ownUnit {
		si /= t.Factor
	}
	return si, err
}

// maxTicks is the largest number of ticks that is accepted.
const maxTicks = 1 << 50

// parseTicks reads "40 ticks" or a time, rounded up to the grid.
func parseTicks(h *bench.Handover, text string) (int64, error) {
	if n, ok := parseCount(text, "tick"); ok {
		return n, nil
	}
	s, err := readTyped(text, seconds)
	if err != nil {
		return 0, err
	}
	// A decimal time is not a whole number of ns in binary.
	n := math.Ceil(math.RoundToEven(float64(s*1e9)) / float64(h.Tables.PeriodNs))
	if !(n >= 0 && n <= maxTicks) {
		return 0, fmt.Errorf("%s is not from 0 s to %g s", text, float64(maxTicks*h.Tables.PeriodNs)/1e9)
	}
	return int64(n), nil
}

// parseCount reads "5 frames", or "1 frame".
func parseCount(text, thing string) (int64, bool) {
	number, what, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	return n, err == nil && n >= 0 && n <= maxTicks && strings.TrimSuffix(what, "s") == thing
}

// ParseInstant reads an instant, "3 s" or "tick 600", as a tick.
func ParseInstant(h *bench.Handover, text string) (int64, error) {
	if number, ok := strings.CutPrefix(text, "tick "); ok {
		n, err := parseWhole(number, 0, maxTicks)
		return n, err
	}

	return parseTicks(h, text)
}

// resolveDuration sets the duration of a fault.
func resolveDuration(h *bench.Handover, f *fault.Fault, s *faultSpec, text string) (err error) {
	if f.Duration, f.Frames = parseCount(text, "frame"); !f.Frames {
		f.Duration, err = parseTicks(h, text)
	} else if f.Where == fault.Input || f.Where == fault.Bus {
		err = fmt.Errorf("%s %s has no frames to count: use a time or ticks", s.target.Text, s.on.Text)
	}

	if err == nil && f.Duration < 1 {
		err = fmt.Errorf("%s is not a positive duration; without for, a fault lasts until it is cleared", text)
	}
	return err
}
