package sigmap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/messages"
)

// position finds what a place means and the bits it takes: the name of a signal of
// m, or a position as in a DBC, "start|length", which is Intel unless "@0" follows.
func position(m *messages.Message, place string) (s *messages.Signal, at messages.Bits, err error) {
	if s, err = findPlace(m, place); err != nil {
		return nil, at, err
	}
	at, ok := s.Bits()
	if !ok || at.Bytes() > m.Len {
		return nil, at, fmt.Errorf("%s (%d|%d) does not fit the message's %d bytes", place, s.Start, s.Len, m.Len)
	}
	return s, at, nil
}

// findPlace is position without the bits.
func findPlace(m *messages.Message, place string) (*messages.Signal, error) {
	if at, length, ok := strings.Cut(place, "|"); ok {
		length, order, given := strings.Cut(length, "@")
		start, err1 := strconv.Atoi(at)
		size, err2 := strconv.Atoi(length)
		if err := errors.Join(err1, err2); err != nil || given && order != "0" && order != "1" {
			return nil, fmt.Errorf("%q is no position: want start|length, start|length@1 (Intel) or start|length@0 (Motorola)", place)
		}
		return &messages.Signal{Name: place, Start: start, Len: size, BigEndian: order == "0"}, nil
	}
	var names []string
	for i := range m.Signals {
		s := &m.Signals[i]
		if s.Name == place {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, problemf(ErrUnknown, "the message has no signal %q; %s", place, nearest(place, names))
}

// compileSplit compiles a number that is in one or two places of m and returns the bits it
// takes.
func compileSplit(m *messages.Message, places []string) (s Split, taken messages.Bits, err error) {
	if len(places) > len(s.Part) {
		return s, taken, fmt.Errorf("%d places: a number is in one or two, its lower bits in the first", len(places))
	}
	total := 0
	for i, place := range places {
		sig, at, err := position(m, place)
		switch {
		case err != nil:
			return s, taken, err
		case sig.Float:
			return s, taken, fmt.Errorf("signal %s is a floating-point number", place)
		case sig.Under != "":
			return s, taken, fmt.Errorf("signal %s is not in every frame: it is multiplexed by %s", place, sig.Under)
		case at.Overlaps(&taken):
			return s, taken, fmt.Errorf("%s and %s share bits", places[0], place)
		}
		total += sig.Len
		taken.Join(&at)
		var f Field
		f.place(sig)
		s.Part[i] = Piece{f.At, f.Shift, f.Len, f.Big}
		s.N++
	}
	if total > 16 {
		return s, taken, fmt.Errorf("%s: %d bits; 1 to 16 are possible", strings.Join(places, " and "), total)
	}
	return s, taken, nil
}

// Carries says what bits of s are to the protection: its "counter", its "checksum", the
// "data id"; "" nothing.
func (p *Protection) Carries(s *messages.Signal) string {
	at, _ := s.Bits()
	for _, part := range []struct {
		name string
		at   messages.Bits
	}{{"counter", p.Counter.bits()}, {"checksum", p.Checksum.bits()}, {"data id", p.Nibble.bits()}} {
		if part.at.Overlaps(&at) {
			return part.name
		}
	}
	return ""
}
