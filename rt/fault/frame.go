package fault

import "lockstep/io/can"

// heldFrame is a frame that waits.
type heldFrame struct {
	frame   can.Frame
	stamp   can.Stamp
	due     int64 // tick
	message int
	again   int64 // times that it is sent beyond the first
}

// message is what is known of the frames of a message sent.
type message struct {
	any    bool      // there was one
	counts uint64    // what its counters were, see sigmap.Tx.Counts
	sums   [4]uint32 // the checksums of the last that was sent with its right ones
}

// frameOut is what becomes of the frame at hand.
type frameOut struct {
	found  uint64    // what its counters were before Before,
	counts uint64    // and after it
	sums   [4]uint32 // its right checksums
	wrong  bool      // it has others
	length int64     // 1 + its length; 0: its own
	again  int64     // it is sent so many times beyond the first
	delay  int64     // it is held so many ticks,
	keeper int       // 1 + slot that holds it; 0: none does
	keep   bool      // it is kept from the bus
}

// Off says that a fault keeps the node off a bus.
//
//go:nosplit
func (s *Set) Off(b int) bool {
	l := &s.on[Bus]
	for i := range l.n {
		if s.slots[l.at[i]].Bus == b {
			return true
		}
	}
	return false
}

// Arrived says whether a frame that came in on a bus is withheld from the plant: for
// ever, or until Late gives it back.
//
//go:nosplit
func (s *Set) Arrived(b int, f *can.Frame, at can.Stamp) (withheld bool) {
	if s.Off(b) {
		return true
	}
	l := &s.on[ReceivedFrame]
	for i := range l.n {
		x := &s.slots[l.at[i]]
		if x.Bus != b || s.Maps[b].Rx[x.Message].ID != f.ID || !x.left() {
			continue
		}
		x.count++
		if x.Kind == DelayFrame {
			if h := s.hold(x, f, s.tick+x.N); h != nil {
				h.stamp = at
				if at.Soft != 0 { // the kernel has stamped it
					h.stamp.Soft += x.N * s.PeriodNs
				}
			}
		}
		return true
	}
	return false
}

// Late gives back the next frame received on a bus that was withheld until this tick or
// an earlier one, as if it came now; false: there is none.
//
//go:nosplit
func (s *Set) Late(b int, f *can.Frame, at *can.Stamp) bool {
	x := s.due(ReceivedFrame, b, s.tick)
	if x == nil {
		return false
	}
	h := s.pop(x)
	*f, *at = h.frame, h.stamp
	return true
}

// Before prepares message i of a bus for Encode: its counters.
//
//go:nosplit
func (s *Set) Before(b, i int) {
	t, m := &s.Maps[b].Tx[i], &s.sent[s.first[b]+i]
	s.frame.found = t.Counts()
	l := &s.on[SentFrame]
	for j := range l.n {
		x := &s.slots[l.at[j]]
		if x.isOn(b, i) && x.Kind == FreezeCounter && m.any {
			t.SetCounts(m.counts)
		}
	}
	s.frame.counts = t.Counts()
}

// Refused takes Before back: Encode has made no frame.
//
//go:nosplit
func (s *Set) Refused(b, i int) { s.Maps[b].Tx[i].SetCounts(s.frame.found) }

// Sent does to the frame that Encode has just made of message i of a bus what is to be
// done to it at tick k. It is sent 1 + again times; or it is withheld, for ever or until
// Held gives it back.
//
//go:nosplit
func (s *Set) Sent(f *can.Frame, b, i int, k int64) (again int64, withheld bool) {
	o, m := &s.frame, &s.sent[s.first[b]+i]
	o.wrong, o.length, o.again, o.delay, o.keeper, o.keep = false, 0, 0, 0, 0, s.Off(b)
	t := &s.Maps[b].Tx[i]
	for j := range t.Protect {
		o.sums[j&3] = t.Protect[j].Sum(&f.Data)
	}
	s.countSignals(b, i)
	l := &s.on[SentFrame]
	for j := range l.n {
		if x := &s.slots[l.at[j]]; x.isOn(b, i) {
			x.count++
			s.spoil(int(l.at[j]), f)
		}
	}
	if o.length > 0 { // at last: checksums are where they are
		cut(f, o.length-1)
	}
	m.any, m.counts = true, o.counts
	if !o.wrong {
		m.sums = o.sums
	}
	switch {
	case o.keep:
		return 0, true
	case o.keeper == 0:
		return o.again, false
	}
	if h := s.hold(&s.slots[o.keeper-1], f, k+o.delay); h != nil {
		h.message, h.again = i, o.again
	}
	return 0, true
}

// countSignals counts a frame for the faults on its signals that last for some.
//
//go:nosplit
func (s *Set) countSignals(b, i int) {
	l := &s.on[Signal]
	for j := range l.n {
		if x := &s.slots[l.at[j]]; x.Frames && x.state == Active && x.isOn(b, i) {
			x.count++
		}
	}
}

// Held gives back the next frame of a bus that was withheld until tick k or an earlier
// one: message i, to be sent 1 + again times; false: there is none.
//
//go:nosplit
func (s *Set) Held(f *can.Frame, b int, k int64) (i int, again int64, ok bool) {
	x := s.due(SentFrame, b, k)
	if x == nil {
		return 0, 0, false
	}
	h := s.pop(x)
	*f = h.frame
	return h.message, h.again, true
}

// Waits says that Held has something to give back.
//
//go:nosplit
func (s *Set) Waits(b int, k int64) bool { return s.due(SentFrame, b, k) != nil }

// isOn says that the fault works on the next frame of message i of a bus.
//
//go:nosplit
func (x *slot) isOn(b, i int) bool { return x.Bus == b && x.Message == i && x.left() }

// left says that there are still frames to disturb.
//
//go:nosplit
func (x *slot) left() bool { return !x.Frames || x.Last == 0 || x.count < uint64(x.Last) }

// spoil is what the fault in a slot does to a frame.
//
//go:nosplit
func (s *Set) spoil(slot int, f *can.Frame) {
	x, o := &s.slots[slot], &s.frame
	switch x.Kind {
	case Drop:
		o.keep = true
	case WrongLength:
		o.length = 1 + x.N
	case DelayFrame:
		o.delay += x.N
		o.keeper = 1 + slot
	case Duplicate:
		o.again = min(o.again+1, MaxBurst)
	case Burst:
		o.again = min(o.again+x.N, MaxBurst)
	case ChecksumValue, ChecksumFrozen, ChecksumRandom, ChecksumOffset:
		o.wrong = true
		s.falsify(x, f)
	}
}

// cut makes f n bytes long.
//
//go:nosplit
func cut(f *can.Frame, n int64) {
	for j := int(n); j < int(f.Len); j++ {
		f.Data[j&63] = 0
	}
	f.Len = uint8(n)
}

// falsify puts other checksums into a frame.
//
//go:nosplit
func (s *Set) falsify(x *slot, f *can.Frame) {
	list := s.Maps[x.Bus].Tx[x.Message].Protect
	for j := range list {
		p := &list[j]
		mask := p.SumMask()
		if mask == 0 {
			continue
		}
		sum := uint32(x.N)
		switch x.Kind {
		case ChecksumFrozen:
			sum = s.sent[s.first[x.Bus]+x.Message].sums[j&3]
		case ChecksumOffset:
			sum += p.Sum(&f.Data)
		case ChecksumRandom: // one of the others, each as likely as any
			if sum = uint32(x.draw() >> 32 % uint64(mask)); sum >= s.frame.sums[j&3] {
				sum++
			}
		}
		p.SetSum(&f.Data, sum&mask)
	}
}

// hold keeps a frame back until it is due; nil: there is no room, and it is dropped.
// Those that are due later, because another fault has delayed them, too, stay behind it.
//
//go:nosplit
func (s *Set) hold(x *slot, f *can.Frame, due int64) *heldFrame {
	if x.n >= MaxHeld {
		return nil
	}
	at := x.first + x.n
	for ; at > x.first && x.held[(at-1)%MaxHeld].due > due; at-- {
		x.held[at%MaxHeld] = x.held[(at-1)%MaxHeld]
	}
	h := &x.held[at%MaxHeld]
	x.n++
	s.waiting++
	h.frame, h.stamp, h.due, h.message, h.again = *f, can.Stamp{}, due, 0, 0
	return h
}

// due is the first fault that holds a frame that is due at tick k; nil: none does.
//
//go:nosplit
func (s *Set) due(w Where, b int, k int64) *slot {
	if s.waiting == 0 {
		return nil
	}
	for i := range s.slots[:s.used] {
		x := &s.slots[i]
		if x.n > 0 && x.Where == w && x.Bus == b && x.held[x.first%MaxHeld].due <= k {
			return x
		}
	}
	return nil
}

// pop takes the frame that x holds and that is due first.
//
//go:nosplit
func (s *Set) pop(x *slot) *heldFrame {
	h := &x.held[x.first%MaxHeld]
	x.first++
	x.n--
	s.waiting--
	return h
}
