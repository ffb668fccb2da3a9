package messages

// maxDepth bounds how many multiplexors a signal can be under.
const maxDepth = 16

// finder finds signals of a message that can be in the same frame and share bits.
type finder struct {
	m      *Message
	byName map[string]*Signal
	bits   []Bits      // of the signals entered so far, which passed check
	chains [][]*Signal // of the same: the signal, its selector, ... as long as they have one
}

func newFinder(m *Message) *finder {
	f := &finder{m: m, byName: map[string]*Signal{}}
	for i := range m.Signals {
		if s := &m.Signals[i]; f.byName[s.Name] == nil {
			f.byName[s.Name] = s
		}
	}
	return f
}

// checkMux tells what is wrong with the multiplexing of s.
func (f *finder) checkMux(s *Signal) error {
	if s.Under == "" {
		if len(s.Ranges) > 0 {
			return problemf(ErrMultiplexor, "it is multiplexed, and the message has no multiplexor (M)")
		}
		return nil
	}
	if len(s.Ranges) == 0 {
		return problemf(ErrSelection, "no value of %q selects it", s.Under)
	}
	for _, r := range s.Ranges {
		if r[0] > r[1] {
			return problemf(ErrSelection, "%d-%d selects nothing", r[0], r[1])
		}
	}
	steps := 0
	for at := s; at.Under != ""; steps++ {
		by := f.byName[at.Under]
		switch {
		case by == nil:
			return problemf(ErrMultiplexor, "its multiplexor %q is no signal of the message", at.Under)
		case !by.Multiplexor || by.Float:
			return problemf(ErrMultiplexor, "its multiplexor %q is none", at.Under)
		case steps == maxDepth:
			return problemf(ErrDepth, "it is multiplexed in a circle, or more than %d deep", maxDepth)
		}
		at = by
	}
	return nil
}

// enter adds s, which passed checkMux, as the next of the signals.
func (f *finder) enter(s *Signal) {
	bits, _ := s.Bits()
	var chain []*Signal
	for at := s; at.Under != ""; at = f.byName[at.Under] {
		chain = append(chain, at)
	}
	f.bits, f.chains = append(f.bits, bits), append(f.chains, chain)
}

// collision returns the first signal before i that shares bits with it and can be
// in the same frame, nil if there is none.
func (f *finder) collision(i int) *Signal {
	for j := range i {
		if f.bits[i].Overlaps(&f.bits[j]) && together(f.chains[i], f.chains[j]) {
			return &f.m.Signals[j]
		}
	}
	return nil
}

// together tells whether the signals of two chains can be in one frame: no
// selector of both must carry two values.
func together(a, b []*Signal) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Under == y.Under && !meet(x.Ranges, y.Ranges) {
				return false
			}
		}
	}
	return true
}

// meet tells whether some value is in both lists.
func meet(a, b [][2]uint64) bool {
	for _, x := range a {
		for _, y := range b {
			if x[0] <= y[1] && y[0] <= x[1] {
				return true
			}
		}
	}
	return false
}
