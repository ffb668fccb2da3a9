package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/sigmap"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// resolveArgument sets what a kind takes.
func resolveArgument(h *bench.Handover, f *fault.Fault, s *FaultSpec, t *aim, takes taking) (err error) {
	text := s.Value.Text
	switch takes {
	case takesNothing:
		if text != "true" {
			err = fmt.Errorf("it takes no value, got %q: write %s: true", text, s.Kind.Text)
		}
	case takesLevel:
		f.A, err = t.level(text)
	case takesCapacity:
		if f.A = t.hi; text != "true" {
			f.A, err = t.level(text)
		}
		if math.IsInf(f.A, 0) {
			err = fmt.Errorf("the input has no largest value: name one (%s: 20 bar)", s.Kind.Text)
		}
	case takesDifference:
		f.A, err = t.change(text, "")
	case takesSpread:
		if f.A, err = t.change(text, ""); err == nil && !(f.A > 0) {
			err = fmt.Errorf("the deviation %s is not positive", text)
		}
	case takesRate:
		f.A, err = t.change(text, "/s")
	case takesFactor:
		f.A, err = bare(text, "1")
	case takesLeak:
		err = t.leak(f, s)
	case takesRail:
		switch text {
		case "ground", "supply":
			f.N = map[string]int64{"supply": 1}[text]
		default:
			err = fmt.Errorf("%q is neither ground nor supply", text)
		}
	case takesTime:
		f.N, err = parseDelay(h, t, text)
	default:
		err = resolveFrameArgument(h, f, s, t, takes)
	}
	return err
}

// resolveFrameArgument is argument for what frames only take.
func resolveFrameArgument(h *bench.Handover, f *fault.Fault, s *FaultSpec, t *aim, takes taking) (err error) {
	text := s.Value.Text
	tx := &h.Maps[f.Bus].Tx[f.Message]
	switch takes {
	case takesSize:
		if f.N, err = whole(text, 0, 64); err == nil && !fault.Length(f.N, t.msg.FD) {
			err = fmt.Errorf("no frame of this kind has %d bytes: 0 to 8, or with CAN FD 12, 16, 20, 24, 32, 48, 64", f.N)
		}
		if err == nil && f.N == int64(tx.Len) {
			err = fmt.Errorf("the frame has %d bytes: that is its length", f.N)
		}
	case takesCount:
		f.N, err = whole(text, 1, fault.MaxBurst)
	case takesChecksum:
		bits := checksumBits(tx)
		if bits == 0 {
			return errors.New("the frame has no checksum")
		}
		switch text {
		case "frozen":
			f.Kind = fault.ChecksumFrozen
		case "random":
			f.Kind = fault.ChecksumRandom
		case "value":
			f.N, err = whole(s.More.Text, 0, 1<<bits-1)
		case "offset":
			f.Kind = fault.ChecksumOffset
			f.N, err = whole(s.More.Text, 1, 1<<bits-1)
		default:
			err = fmt.Errorf("%q is none of: {value: 0x00}, frozen, random, {offset: 1}", text)
		}
	}
	return err
}

// checksumBits is the width of the narrowest checksum of a frame; 0: there is none.
func checksumBits(tx *sigmap.Tx) (bits int) {
	for i := range tx.Protect {
		n, split := 0, &tx.Protect[i].Checksum
		for _, p := range split.Part[:split.N] {
			n += int(p.Len)
		}
		if n > 0 && (bits == 0 || n < bits) {
			bits = n
		}
	}
	return bits
}

// whole reads a whole number, decimal or 0x.
func whole(text string, lo, hi int64) (int64, error) {
	v, err := strconv.ParseInt(text, 0, 64)
	if err != nil || v < lo || v > hi {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d (0x%X)", text, lo, hi, hi)
	}
	return v, nil
}

// level reads a value that the target itself can have; of a signal a text, too.
func (t *aim) level(text string) (float64, error) {
	if t.sig != nil {
		for _, v := range t.sig.Values {
			if v.Text == text {
				return t.wanted(t.si(t.sig.Value(uint64(v.Raw) & (math.MaxUint64 >> (64 - t.sig.Len))))), nil
			}
		}
	}
	v, err := t.read(text)
	if v = t.wanted(v); err == nil && t.of == fault.Signal && !(v >= t.lo-t.slack && v <= t.hi+t.slack) {
		lo, hi := t.lo, t.hi
		if !t.own {
			lo, hi = t.number(lo), t.number(hi)
		}
		err = fmt.Errorf("%s is beyond what the signal carries, %s", text, bench.WithUnit(fmt.Sprintf("%.9g to %.9g", lo, hi), t.gauge.name))
	}
	return v, err
}

// wanted is a value as package fault wants it.
func (t *aim) wanted(si float64) float64 {
	if t.own {
		return t.number(si)
	}
	return si
}

// change reads a difference of values, or one per something, as package fault wants it.
func (t *aim) change(text, per string) (float64, error) {
	v, err := t.difference(text, per)
	if t.own {
		v /= t.factor
	}
	return v, err
}

func (t *aim) leak(f *fault.Fault, s *FaultSpec) (err error) {
	const form = "{share: 30 %, time: 200 ms}"
	if s.Value.Text == "" || s.More.Text == "" {
		return fmt.Errorf("share and time are wanted: %s", form)
	}
	if f.A, err = bare(s.Value.Text, "1"); err == nil && !(f.A > 0 && f.A <= 1) {
		err = fmt.Errorf("share: %s is not more than 0 and at most 100 %%", s.Value.Text)
	}
	if err == nil {
		if f.B, err = bare(s.More.Text, "s"); err == nil && !(f.B > 0) {
			err = fmt.Errorf("time: %s is not positive", s.More.Text)
		}
	}
	return err
}

// parseDelay reads how long a value or a frame is held back, in ticks.
func parseDelay(h *bench.Handover, t *aim, text string) (int64, error) {
	n, err := parseTicks(h, text)
	switch {
	case err != nil:
		return 0, err
	case n < 1 || n > fault.MaxDelay:
		return 0, fmt.Errorf("%s is %d ticks; 1 to %d are possible", text, n, fault.MaxDelay)
	}
	return n, nil
}

// maxTicks bounds what is counted in ticks.
const maxTicks = 1 << 50

// parseTicks reads "40 ticks" or a time, rounded up to the grid.
func parseTicks(h *bench.Handover, text string) (int64, error) {
	if n, ok := countOf(text, "tick"); ok {
		return n, nil
	}
	s, err := bare(text, "s")
	if err != nil {
		return 0, err
	}
	// A time in decimals is no whole number of ns in binary.
	n := math.Ceil(math.RoundToEven(s*1e9) / float64(h.Tables.PeriodNs))
	if !(n >= 0 && n <= maxTicks) {
		return 0, fmt.Errorf("%s is not from 0 s to %g s", text, float64(maxTicks*h.Tables.PeriodNs)/1e9)
	}
	return int64(n), nil
}

// countOf reads "5 frames", or "1 frame".
func countOf(text, thing string) (int64, bool) {
	number, what, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	return n, err == nil && n >= 0 && n <= maxTicks && strings.TrimSuffix(what, "s") == thing
}

// ParseInstant reads when something is: "3 s" or "tick 600".
func ParseInstant(h *bench.Handover, text string) (int64, error) {
	if number, ok := strings.CutPrefix(text, "tick "); ok {
		n, err := whole(number, 0, maxTicks)
		return n, err
	}
	return parseTicks(h, text)
}

func parseTrigger(h *bench.Handover, s *FaultSpec) (t fault.Trigger, err error) {
	if s.At.Text != "" {
		if t.Tick, err = ParseInstant(h, s.At.Text); err != nil {
			return t, s.Errorf(s.At, "fault: at: %w", err)
		}
	}
	if s.When.Text != "" {
		if t.When, err = ParseConditions(h, s.When.Text); err != nil {
			return t, s.Errorf(s.When, "fault: when: %w", err)
		}
	}
	return t, nil
}

// resolveDuration sets how long a fault is active.
func resolveDuration(h *bench.Handover, f *fault.Fault, s *FaultSpec) (err error) {
	if f.Last, f.Frames = countOf(s.For.Text, "frame"); !f.Frames {
		f.Last, err = parseTicks(h, s.For.Text)
	} else if f.Where == fault.Input || f.Where == fault.Bus {
		err = fmt.Errorf("%s %s has no frames of its own to count: name a time or ticks", s.Target.Text, s.On.Text)
	}
	if err == nil && f.Last < 1 {
		err = fmt.Errorf("%s is not more than nothing; without it a fault is there until it is cleared", s.For.Text)
	}
	return err
}

// ParseConditions reads "w1 > 1500 rpm", or two of these joined by " and ".
func ParseConditions(h *bench.Handover, text string) (list [2]fault.Condition, err error) {
	parts := strings.Split(text, " and ")
	if len(parts) > len(list) {
		return list, fmt.Errorf("%q has %d conditions; at most %d are possible", text, len(parts), len(list))
	}
	for i, p := range parts {
		at := strings.IndexAny(p, "<>")
		if at < 0 {
			return list, fmt.Errorf("%q is not of the form PORT > VALUE or PORT < VALUE", p)
		}
		limit := strings.TrimSpace(p[at+1:])
		if strings.HasPrefix(limit, "=") {
			return list, fmt.Errorf("%q: only > and < are compared", p)
		}
		v, err := findValue(h, strings.TrimSpace(p[:at]))
		if err != nil {
			return list, err
		}
		c := fault.Condition{Set: true, Output: v.output, Above: p[at] == '>', Index: v.index}
		if c.Limit, err = v.read(limit); err != nil {
			return list, fmt.Errorf("%s: %w", v.port, err)
		}
		list[i] = c
	}
	return list, nil
}

// checkVisible refuses an input that moves by itself: the loop has the values that it gives to
// the plant, not those that the plant has of its own.
func checkVisible(h *bench.Handover, input int) error {
	name := h.Tables.Inputs[input].Name
	does := bench.DescribeSource(&h.Tables.Signals[h.Tables.InputSignal[input]].Source, "")
	if !strings.HasPrefix(does, "follows") || drivenBy(h, name) != "" ||
		slices.ContainsFunc(h.Loop.Faults.Stimuli, func(s fault.Stimulus) bool { return s.Input == input }) {
		return nil
	}
	return fmt.Errorf("input %s %s, which is not seen outside of the plant: give it a course (stimuli: {%s: ...}) or name an output", name, does, name)
}

// value is an input or output of the plant, named as a port or by the signal that is
// bound to it.
type value struct {
	port   string // as it was named
	gauge         // in which its values are written
	output bool   // entry of y; else of u
	index  int
}

func findValue(h *bench.Handover, name string) (v value, err error) {
	v.port = name
	outputs, inputs := h.Tables.Outputs, h.Tables.Inputs
	if v.index = bench.PortIndex(outputs, name); v.index >= 0 {
		v.output, v.gauge = true, gaugeOf(outputs[v.index].Unit)
		return v, nil
	}
	if v.index = bench.PortIndex(inputs, name); v.index >= 0 {
		v.gauge = gaugeOf(inputs[v.index].Unit)
		return v, checkVisible(h, v.index)
	}
	m, sig, err := findSignal(h, name)
	if err != nil && m.msg == nil { // nor is there such a message
		return v, unknown("input, output or bound signal", name, append(bench.PortNames(outputs), bench.PortNames(inputs)...))
	}
	if err != nil {
		return v, err
	}
	port := boundPort(h, m, sig)
	if port == "" {
		return v, fmt.Errorf("signal %s is bound to no port", name)
	}
	v, err = findValue(h, port)
	v.port, v.gauge = name, gaugeOf(sig.Unit)
	return v, err
}
