package rt

import "lockstep/io/sigmap"

// departure is what is known of a sent message.
type departure struct {
	again bool  // the bus did not take the last one that was due
	tried int64 // the grid point at which it was tried again
}

// send encodes the frames that are due at grid point k and hands them to their
// bus; those of a lost point are only counted. In the safe state, and when the
// plant has broken, they carry the safe values; where there are none the bus falls
// silent.
//
//go:nosplit
func (l *Loop) send(k int64, served bool) {
	y, urgent := l.Y, false
	if l.safe || l.reason == NonFinite {
		y, urgent = l.cfg.Safe.Values, l.urgent && served
	}
	if y == nil || l.reason == NonFinite && l.left == 0 {
		return
	}
	acts := k == l.k // faults do, but not on the frames of a point that the plant has not reached
	for b, m := range l.maps {
		if !served {
			l.skip(b, k)
			continue
		}
		if acts {
			l.calls.give(l, b, k)
		}
		l.resend(b, k, y, acts)
		for i := range m.Tx {
			d := &l.going[l.firstTx[b]+i]
			if due := l.coders[b].Due(i, k, y, l.forces(acts)); (due || urgent) && d.tried != k {
				d.again = !l.calls.emit(l, b, i, k, y, acts)
			}
		}
	}
	if urgent {
		l.urgent = false
	}
	if served {
		l.answers.answer(&l.page.Response)
	}
}

// forces reports whether faults that act on frames also force values in them: not while the safe
// values are sent.
//
//go:nosplit
func (l *Loop) forces(acts bool) bool { return acts && !l.safe && l.reason != NonFinite }

// skip counts the frames that are due at a lost point.
//
//go:nosplit
func (l *Loop) skip(b int, k int64) {
	m := l.maps[b]
	for i := range m.Tx {
		if !m.Tx[i].Due(k) {
			continue
		}
		l.note.set(k, b, i)
		l.note.fate, l.note.safe = Unsent, l.safe || l.reason == NonFinite
		l.page.TxLost.Store(l.page.TxLost.Load() + 1)
		l.times.late.Unsent.add(l.firstTx[b] + i)
		l.frame.ID, l.frame.Len = m.Tx[i].ID, 0
		l.page.ring.frame(&l.note, &l.frame)
	}
}

// resend tries the frames again, before all others, that the bus did not take when they
// were due: with the values of now, and once; one that has no cycle until it is taken.
//
//go:nosplit
func (l *Loop) resend(b int, k int64, y []float64, acts bool) {
	for i := range l.maps[b].Tx {
		d := &l.going[l.firstTx[b]+i]
		if !d.again {
			continue
		}
		d.again, d.tried = false, k
		due := l.coders[b].Due(i, k, y, l.forces(acts)) // then it is the one of now
		if !due {
			l.page.TxAgain.Store(l.page.TxAgain.Load() + 1)
		}
		taken := l.calls.emit(l, b, i, k, y, acts)
		d.again = !taken && (due || l.maps[b].Tx[i].Send == sigmap.OnChange)
	}
}

// emit sends one frame, on which faults may act; false: the bus does not take it.
//
//go:nosplit
func (l *Loop) emit(b, i int, k int64, y []float64, acts bool) bool {
	m, at := l.maps[b], l.firstTx[b]+i
	l.note.set(k, b, i)
	l.note.fate, l.note.safe = Sent, l.safe || l.reason == NonFinite
	if acts {
		l.calls.before(l.faults, b, i)
	}
	again, made := int64(0), l.coders[b].Encode(&l.frame, i, k, y, l.forces(acts))
	l.page.TxCount[at].Store(m.Tx[i].Counts())
	if !made {
		if acts {
			l.faults.Refused(b, i)
		}
		l.note.fate = Refused
		l.page.TxRefused.Store(l.page.TxRefused.Load() + 1)
		l.page.ring.frame(&l.note, &l.frame)
		return true
	}
	if acts {
		again, l.note.withheld = l.calls.sent(l.faults, &l.frame, b, i, k)
	}
	taken := l.transmit(b, i)
	l.repeat(b, i, again)
	return taken
}

// transmit hands a frame of message i to its bus, unless a fault withholds it; false:
// the bus does not take it.
//
//go:nosplit
func (l *Loop) transmit(b, i int) bool {
	at := l.firstTx[b] + i
	l.note.fate = Sent
	switch {
	case l.note.withheld:
	case l.buses[b].Send(&l.frame):
		l.page.TxFrames.Store(l.page.TxFrames.Load() + 1)
		l.times.late.Sent.add(at)
	default:
		l.note.fate = Dropped
		l.page.TxDrops[at].Store(l.page.TxDrops[at].Load() + 1)
	}
	l.page.ring.frame(&l.note, &l.frame)
	return l.note.fate != Dropped
}
