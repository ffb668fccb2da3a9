package fault

import (
	"math"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// heldFrame is a frame that a delay fault holds back.
type heldFrame struct {
	frame   can.Frame
	stamp   can.Stamp
	due     int64 // tick of its release
	message int
	again   int64 // number of repetitions
}

// message is the state of a message sent or received.
type message struct {
	any    bool                     // a frame was sent or received
	counts uint64                   // its counters: sigmap.Tx.Counts, or countsOf of a frame received
	sums   [sigmap.MaxGroups]uint64 // checksums of the last frame whose checksums no fault has changed
}

// frameEffects collects the effects of the faults on the frame at hand.
type frameEffects struct {
	found    uint64                   // counters before PrepareCounters
	counts   uint64                   // counters after PrepareCounters
	sums     [sigmap.MaxGroups]uint64 // checksums before faults on checksums
	right    [sigmap.MaxGroups]uint64 // right checksums
	wrong    bool                     // the checksums were changed, or the frame is too short for them
	length   int64                    // 1 + new length, bytes; 0: unchanged
	again    int64                    // number of repetitions
	delay    int64                    // delay, ticks
	holder   int                      // 1 + slot that holds the frame back; 0: none
	withhold bool                     // the frame is kept from the bus, or from the plant
}

// BusIsOff reports whether a fault keeps the node off bus b.
//
//go:nosplit
func (s *Set) BusIsOff(b int) bool {
	l := &s.on[Bus]
	for i := range l.n {
		if s.slots[l.at[i]].Bus == b {
			return true
		}
	}

	return false
}

// PrepareCounters sets the counters of message i of a bus for Encode.
//
//go:nosplit
func (s *Set) PrepareCounters(b, i int) {
	t, m := &s.Maps[b].Tx[i], &s.messages[s.firstTx[b]+i]
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

// RestoreCounters undoes PrepareCounters when Encode made no frame.
//
//go:nosplit
func (s *Set) RestoreCounters(b, i int) { s.Maps[b].Tx[i].SetCounts(s.frame.found) }

// DisturbFrame applies the frame faults of tick k to the frame that Encode has just made of message
// i of a bus. The frame is sent 1 + again times; or it is withheld: dropped, or held until NextHeld
// releases it.
//
//go:nosplit
func (s *Set) DisturbFrame(f *can.Frame, b, i int, k int64) (again int64, withheld bool) {
	o := &s.frame
	s.countSignals(b, i)
	for j := range s.Maps[b].Tx[i].Protect {
		o.right[j%sigmap.MaxGroups] = s.Maps[b].Tx[i].Protect[j].Checksum.Load(&f.Data)
	}
	s.applyFrameFaults(SentFrame, f, b, i)
	m := &s.messages[s.firstTx[b]+i]
	m.any, m.counts = true, o.counts
	switch {
	case o.withhold:
		return 0, true
	case o.holder == 0:
		return o.again, false
	}

	if h := s.hold(&s.slots[o.holder-1], f, k+o.delay); h != nil {
		h.message, h.again = i, o.again
	}
	return 0, true
}

// applyFrameFaults applies the frame faults on message i of a bus, sent or received, to its frame f.
//
//go:nosplit
func (s *Set) applyFrameFaults(w Where, f *can.Frame, b, i int) {
	o, list := &s.frame, s.protection(w, b, i)
	o.wrong, o.length, o.again, o.delay, o.holder, o.withhold = false, 0, 0, 0, 0, s.BusIsOff(b)
	for j := range list {
		o.sums[j%sigmap.MaxGroups] = list[j].Checksum.Load(&f.Data)
		o.wrong = o.wrong || f.Len < list[j].Need
	}
	l := &s.on[w]
	for j := range l.n {
		if x := &s.slots[l.at[j]]; x.isOn(b, i) {
			x.count++
			s.applyToFrame(int(l.at[j]), f)
		}
	}

	if o.length > 0 { // last, because the checksums keep their place
		setLength(f, o.length-1)
	}
	if !o.wrong {
		s.messageOf(w, b, i).sums = o.sums
	}
}

// protection returns the protection of message i of a bus, sent or received.
//
//go:nosplit
func (s *Set) protection(w Where, b, i int) []sigmap.Protection {
	if w == ReceivedFrame {
		return s.Maps[b].Rx[i].Protect
	}
	return s.Maps[b].Tx[i].Protect
}

// messageOf returns the state of message i of a bus, sent or received.
//
//go:nosplit
func (s *Set) messageOf(w Where, b, i int) *message {
	if w == ReceivedFrame {
		return &s.messages[s.firstRx[b]+i]
	}
	return &s.messages[s.firstTx[b]+i]
}

// countSignals counts a frame for the faults on its signals that last for a number of frames.
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

// NextHeld releases the next frame of a bus that was withheld until tick k or an earlier one. It is
// message i, to be sent 1 + again times; false: none.
//
//go:nosplit
func (s *Set) NextHeld(f *can.Frame, b int, k int64) (i int, again int64, ok bool) {
	h := s.takeHeld(SentFrame, b, k)
	if h == nil {
		return 0, 0, false
	}
	*f = h.frame
	return h.message, h.again, true
}

// HasHeld reports whether NextHeld has a frame to release.
//
//go:nosplit
func (s *Set) HasHeld(b int, k int64) bool { return s.dueFault(SentFrame, b, k) != nil }

// isOn reports whether the fault acts on the next frame of message i of a bus.
//
//go:nosplit
func (x *slot) isOn(b, i int) bool { return x.Bus == b && x.Message == i && x.framesLeft() }

// framesLeft reports whether the fault has frames left to disturb.
//
//go:nosplit
func (x *slot) framesLeft() bool { return !x.Frames || x.Duration == 0 || x.count < uint64(x.Duration) }

// applyToFrame applies the fault in a slot to frame f.
//
//go:nosplit
func (s *Set) applyToFrame(slot int, f *can.Frame) {
	x, o := &s.slots[slot], &s.frame
	switch x.Kind {
	case Drop:
		o.withhold = true
	case WrongLength:
		o.length = 1 + x.N
	case DelayFrame:
		o.delay += x.N
		o.holder = 1 + slot
	case Duplicate:
		o.again = min(o.again+1, MaxBurst)
	case Burst:
		o.again = min(o.again+x.N, MaxBurst)
	case ChecksumValue, ChecksumFrozen, ChecksumRandom, ChecksumOffset:
		o.wrong = true
		s.changeChecksums(x, f)
	}
}

// setLength makes f n bytes long, with zeros at its end; a classic frame has at most 8 bytes.
//
//go:nosplit
func setLength(f *can.Frame, n int64) {
	if f.Flags&(can.FlagFDF|can.FlagLong) == 0 {
		n = min(n, 8)
	}
	for j := min(int(n), int(f.Len)); j < len(f.Data); j++ {
		f.Data[j] = 0
	}
	f.Len = uint8(n)
}

// changeChecksums changes the checksums of a frame.
//
//go:nosplit
func (s *Set) changeChecksums(x *slot, f *can.Frame) {
	list := s.protection(x.Where, x.Bus, x.Message)
	for j := range list {
		p := &list[j]
		mask := p.Checksum.Mask()
		if mask == 0 || f.Len < p.Need {
			continue
		}
		sum := uint64(x.N)
		switch x.Kind {
		case ChecksumFrozen:
			sum = s.messageOf(x.Where, x.Bus, x.Message).sums[j%sigmap.MaxGroups]
		case ChecksumOffset:
			sum += p.Checksum.Load(&f.Data)
		case ChecksumRandom: // every other value is equally likely
			sum = x.draw()
			if mask <= math.MaxUint32 {
				sum >>= 32
			}
			if sum %= mask; sum >= s.frame.right[j%sigmap.MaxGroups] {
				sum++
			}
		}

		p.Checksum.Store(&f.Data, sum&mask)
	}
}

// hold holds a frame back until tick due; nil: there is no room, and the frame is dropped. The
// queue stays sorted by due tick, since a second fault may have delayed earlier frames further.
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

// dueFault returns the first fault that holds a frame to be released at tick k; nil: none.
//
//go:nosplit
func (s *Set) dueFault(w Where, b int, k int64) *slot {
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

// takeHeld removes and returns the first frame to be released at tick k; nil: none.
//
//go:nosplit
func (s *Set) takeHeld(w Where, b int, k int64) *heldFrame {
	x := s.dueFault(w, b, k)
	if x == nil {
		return nil
	}
	h := &x.held[x.first%MaxHeld]
	x.first++
	x.n--
	s.waiting--
	return h
}
