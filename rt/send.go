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
	l.acts = k == l.k // the frames of a point that the plant has not reached are as they should be
	for b, m := range l.maps {
		if !served {
			l.skip(b, k)
			continue
		}
		m.Forced = l.acts && !l.safe && l.reason != NonFinite
		if l.acts {
			l.joint.give(l, b, k)
		}
		l.resend(b, k, y)
		for i := range m.Tx {
			d := &l.going[l.firstTx[b]+i]
			if due := l.coders[b].Due(i, k, y); (due || urgent) && d.tried != k {
				d.again = !l.joint.emit(l, b, i, k, y)
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
func (l *Loop) resend(b int, k int64, y []float64) {
	for i := range l.maps[b].Tx {
		d := &l.going[l.firstTx[b]+i]
		if !d.again {
			continue
		}
		d.again, d.tried = false, k
		due := l.coders[b].Due(i, k, y) // then it is the one of now
		if !due {
			l.page.TxAgain.Store(l.page.TxAgain.Load() + 1)
		}
		taken := l.joint.emit(l, b, i, k, y)
		d.again = !taken && (due || l.maps[b].Tx[i].Send == sigmap.OnChange)
	}
}

// emit sends one frame; false: the bus does not take it.
//
//go:nosplit
func (l *Loop) emit(b, i int, k int64, y []float64) bool {
	m, at := l.maps[b], l.firstTx[b]+i
	l.note.set(k, b, i)
	l.note.fate, l.note.safe = Sent, l.safe || l.reason == NonFinite
	m.Now = k
	if l.acts {
		l.joint.before(l.faults, b, i)
	}
	again, made := int64(0), l.coders[b].Encode(&l.frame, i, y)
	l.page.TxCount[at].Store(m.Tx[i].Counts())
	if !made {
		if l.acts {
			l.faults.Refused(b, i)
		}
		l.note.fate = Refused
		l.page.TxRefused.Store(l.page.TxRefused.Load() + 1)
		l.page.ring.frame(&l.note, &l.frame)
		return true
	}
	if l.acts {
		again, l.note.withheld = l.joint.sent(l.faults, &l.frame, b, i, k)
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
