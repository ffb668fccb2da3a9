package messages

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Raw returns the raw value of s in a frame; s must have passed Check. Bits beyond the frame are 0.
func (s *Signal) Raw(data *[64]byte) uint64 { return s.rawIn(data[:]) }

// rawIn is Raw for a message of any length.
func (s *Signal) rawIn(data []byte) (raw uint64) {
	at := s.Start
	for i := range s.Len {
		bit := uint64(0)
		if at/8 < len(data) {
			bit = uint64(data[at/8] >> (at % 8) & 1)
		}
		if s.BigEndian {
			raw = raw<<1 | bit
		} else {
			raw |= bit << i
		}

		at = s.nextBit(at)
	}

	return raw
}

// Value converts a raw value to Unit.
func (s *Signal) Value(raw uint64) float64 { return float64(s.rawNumber(raw)*s.Factor) + s.Offset }

// FormatInitial returns the start value, raw, with all its digits.
func (s *Signal) FormatInitial() string {
	switch {
	case s.InitialRaw != 0 && s.Signed:
		return strconv.FormatInt(s.InitialRaw, 10)
	case s.InitialRaw != 0:
		return strconv.FormatUint(uint64(s.InitialRaw), 10)
	}
	return strconv.FormatFloat(s.Initial, 'g', -1, 64)
}

// rawNumber returns a raw value as a number, before Factor and Offset.
func (s *Signal) rawNumber(raw uint64) float64 {
	switch {
	case s.Float && s.Len == 32:
		return float64(math.Float32frombits(uint32(raw)))
	case s.Float:
		return math.Float64frombits(raw)
	case s.Signed:
		unused := 64 - s.Len
		return float64(int64(raw<<unused) >> unused)
	}

	return float64(raw)
}

// Selectors returns s, its multiplexor, the multiplexor of that multiplexor and so on, but not the
// last one, which is in every frame. Each entry is in a frame only if its own multiplexor has a
// value within the Ranges of the entry. s is a signal of m, which must have passed Check.
func (m *Message) Selectors(s *Signal) (list []*Signal) {
	for ; s.MuxedBy != ""; s = m.Signal(s.MuxedBy) {
		list = append(list, s)
	}
	return list
}

// Selects reports whether s is a multiplexor that selects a signal of m. An M that multiplexes
// nothing is a plain signal.
func (m *Message) Selects(s *Signal) bool {
	return s.Multiplexor && slices.ContainsFunc(m.Signals, func(o Signal) bool { return o.MuxedBy == s.Name })
}

// Present reports whether a frame with this data contains signal s of m; m must have
// passed Check.
func (m *Message) Present(s *Signal, data *[64]byte) bool { return m.PresentIn(s, data[:]) }

// PresentIn is Present for a message of any length.
func (m *Message) PresentIn(s *Signal, data []byte) bool {
	for _, s := range m.Selectors(s) {
		if v := m.Signal(s.MuxedBy).rawIn(data); !intersect(s.Ranges, [][2]uint64{{v, v}}) {
			return false
		}
	}

	return true
}

// Signal returns the signal called name, nil if there is none.
func (m *Message) Signal(name string) *Signal {
	for i := range m.Signals {
		if m.Signals[i].Name == name {
			return &m.Signals[i]
		}
	}

	return nil
}

// maxDepth limits the nesting of multiplexors.
const maxDepth = 16

// checkMux returns an error if the multiplexing of s is not possible.
func (m *Message) checkMux(s *Signal) error {
	if s.MuxedBy == "" {
		if len(s.Ranges) > 0 {
			return fmt.Errorf("the signal is multiplexed, but the message has no multiplexor (M)")
		}
		return nil
	}

	if len(s.Ranges) == 0 {
		return fmt.Errorf("no value of %q selects it", s.MuxedBy)
	}
	for _, r := range s.Ranges {
		if r[0] > r[1] {
			return fmt.Errorf("%d-%d selects nothing", r[0], r[1])
		}
	}

	steps := 0
	for at := s; at.MuxedBy != ""; steps++ {
		by := m.Signal(at.MuxedBy)
		switch {
		case by == nil:
			return fmt.Errorf("the message has no signal %q, its multiplexor", at.MuxedBy)
		case !by.Multiplexor || by.Float:
			return fmt.Errorf("its multiplexor %q is not marked as one (M)", at.MuxedBy)
		case steps == maxDepth:
			return fmt.Errorf("it is multiplexed in a circle, or more than %d levels deep", maxDepth)
		}

		at = by
	}

	return nil
}

// canCoexist reports whether the signals of two chains (Message.Selectors) can be in one frame,
// that is, whether they do not need different values of the same multiplexor.
func canCoexist(a, b []*Signal) bool {
	return !slices.ContainsFunc(a, func(x *Signal) bool {
		return slices.ContainsFunc(b, func(y *Signal) bool {
			return x.MuxedBy == y.MuxedBy && !intersect(x.Ranges, y.Ranges)
		})
	})
}

// intersect reports whether a value is within both lists of ranges.
func intersect(a, b [][2]uint64) bool {
	return slices.ContainsFunc(a, func(x [2]uint64) bool {
		return slices.ContainsFunc(b, func(y [2]uint64) bool { return x[0] <= y[1] && y[0] <= x[1] })
	})
}
