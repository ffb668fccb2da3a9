package messages

import "fmt"

// maxDepth limits the nesting of multiplexors.
const maxDepth = 16

// collisionFinder finds signals of a message that share bits and can be in the same frame.
type collisionFinder struct {
	m      *Message
	bits   []Bits      // bits of each signal added
	chains [][]*Signal // Message.Selectors of each signal added
}

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

// add adds the next signal of the message, which must have passed checkMux.
func (f *collisionFinder) add(s *Signal) {
	bits, _ := s.Bits()
	f.bits, f.chains = append(f.bits, bits), append(f.chains, f.m.Selectors(s))
}

// collision returns the first signal before signal i that shares bits with signal i and
// can be in the same frame, nil if there is none.
func (f *collisionFinder) collision(i int) *Signal {
	for j := range i {
		if f.bits[i].Overlaps(&f.bits[j]) && canCoexist(f.chains[i], f.chains[j]) {
			return &f.m.Signals[j]
		}
	}

	return nil
}

// canCoexist reports whether the signals of two chains can be in one frame, that is,
// whether they do not need different values of the same multiplexor.
func canCoexist(a, b []*Signal) bool {
	for _, x := range a {
		for _, y := range b {
			if x.MuxedBy == y.MuxedBy && !intersect(x.Ranges, y.Ranges) {
				return false
			}
		}
	}

	return true
}

// intersect reports whether a value is within both lists of ranges.
func intersect(a, b [][2]uint64) bool {
	for _, x := range a {
		for _, y := range b {
			if x[0] <= y[1] && y[0] <= x[1] {
				return true
			}
		}
	}

	return false
}
