package fault

import (
	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// FilterReceived applies the faults of this tick to frame f, received on a bus. If withheld is true,
// the plant does not get f. Copied is then to be decoded copies times, at most MaxBurst+1: a changed
// frame once, and its repetitions. Frames that a fault delays come by NextDelayed.
//
//go:nosplit
func (s *Set) FilterReceived(b int, f *can.Frame, at can.Stamp) (copies int64, withheld bool) {
	if s.BusIsOff(b) {
		return 0, true
	}
	i := s.Maps[b].Find(f.ID)
	if i < 0 {
		return 0, false
	}
	rx, faults := &s.Maps[b].Rx[i], s.on[ReceivedSignal].n+s.on[ReceivedFrame].n
	if faults == 0 && len(rx.Protect) == 0 { // no counter or checksum to remember
		return 0, false
	}

	c, o := &s.Copied, &s.frame
	*c = *f
	if int(f.Len) >= rx.Len { // else there is nothing to decode
		s.disturbContent(c, f, b, i)
		for j := range rx.Protect {
			if faults > 0 {
				o.right[j%sigmap.MaxGroups] = rx.Protect[j].RightChecksum(&c.Data, int(c.Len), c.ID&can.MaskEFF)
			}
		}
	}
	s.applyFrameFaults(ReceivedFrame, c, b, i)
	switch {
	case o.withhold:
		return 0, true
	case o.holder > 0:
		if h := s.hold(&s.slots[o.holder-1], c, s.tick+o.delay); h != nil {
			h.again, h.stamp = o.again, at
			if at.Soft != 0 { // it has a stamp
				h.stamp.Soft += o.delay * s.PeriodNs
			}
		}
		return 0, true
	case !sameFrame(c, f):
		return o.again + 1, true
	}

	return o.again, false
}

// NextDelayed releases the next received frame of a bus that was withheld until this tick or an
// earlier one, as if it arrived now, 1 + again times; false: none.
//
//go:nosplit
func (s *Set) NextDelayed(b int, f *can.Frame, at *can.Stamp) (again int64, ok bool) {
	h := s.takeHeld(ReceivedFrame, b, s.tick)
	if h == nil {
		return 0, false
	}
	*f, *at = h.frame, h.stamp
	return h.again, true
}

// disturbContent applies the faults on the signals and counters of message i of a bus to c, a copy
// of the frame received. Its checksums are right afterwards if those received are.
//
//go:nosplit
func (s *Set) disturbContent(c, received *can.Frame, b, i int) {
	list, m := s.Maps[b].Rx[i].Protect, &s.messages[s.firstRx[b]+i]
	s.disturbReceivedSignals(c, b, i)
	l := &s.on[ReceivedFrame]
	for j := range l.n {
		if x := &s.slots[l.at[j]]; x.Kind == FreezeCounter && x.isOn(b, i) && m.any {
			setCounts(list, &c.Data, m.counts)
		}
	}

	m.any, m.counts = true, countsOf(list, &c.Data)
	if sameFrame(c, received) {
		return
	}
	n, id := int(c.Len), c.ID&can.MaskEFF
	for j := range list {
		if p := &list[j]; p.Algorithm != sigmap.NoChecksum {
			wrong := p.Checksum.Load(&received.Data) ^ p.RightChecksum(&received.Data, n, id) // bits that are wrong; 0: none
			p.Checksum.Store(&c.Data, p.RightChecksum(&c.Data, n, id)^wrong)
		}
	}
}

// sameFrame reports whether a fault has left a frame as it was. The operator == would call the runtime.
//
//go:nosplit
func sameFrame(a, b *can.Frame) bool {
	same := a.Len == b.Len
	for i := range a.Data {
		same = same && a.Data[i] == b.Data[i]
	}
	return same
}

// disturbReceivedSignals applies the value faults on signals of message i of a bus to its frame f.
//
//go:nosplit
func (s *Set) disturbReceivedSignals(f *can.Frame, b, i int) {
	l := &s.on[ReceivedSignal]
	for j := range l.n {
		x := &s.slots[l.at[j]]
		if !x.isOn(b, i) {
			continue
		}
		d := &s.Maps[b].Rx[i].Fields[x.Field]
		v, ok := d.Get(&f.Data)
		if !ok {
			continue
		}
		lo, hi := FieldRange(d)
		if v = s.disturbed(x, v, lo, hi); x.state != Active {
			continue
		}
		x.count++
		how := sigmap.ForceValue
		if x.Kind == Open {
			how = sigmap.ForceOnes
		}
		d.Put(&f.Data, v, how)
	}
}

// countsOf returns the counters of a frame with these protections, at most 64 bits together.
//
//go:nosplit
func countsOf(list []sigmap.Protection, data *[64]byte) (c uint64) {
	for j := range list {
		p := &list[j]
		c = c<<p.Counter.Bits() | p.Counter.Load(data)
	}
	return c
}

// setCounts is the inverse of countsOf.
//
//go:nosplit
func setCounts(list []sigmap.Protection, data *[64]byte, c uint64) {
	for j := len(list) - 1; j >= 0; j-- {
		p := &list[j]
		p.Counter.Store(data, c&p.Counter.Mask())
		c >>= p.Counter.Bits()
	}
}
