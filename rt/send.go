package rt

import "lockstep/io/sigmap"

// departure is the retry state of a sent message.
type departure struct {
	retry     bool  // the bus did not take the last frame that was due
	retriedAt int64 // grid point at which the frame was tried again
}

// send encodes the frames due at grid point k and sends them; frames of a missed point are only
// counted. In the safe state, and when the plant has broken, the frames carry the safe values;
// without safe values the bus falls silent.
//
//go:nosplit
func (l *Loop) send(k int64, served bool) {
	y, urgent := l.Y, false
	if l.safe || l.reason == NonFinite {
		y, urgent = l.cfg.Safe.Values, l.urgent && served
	}
	if y == nil || l.reason == NonFinite && l.shutdownTicks == 0 {
		return
	}
	faultsAct := k == l.k // faults act only on frames of a point that the plant has reached
	for b, m := range l.maps {
		if l.status.Muted.Load()>>b&1 == 1 {
			continue
		}
		if !served {
			l.countUnsent(b, k)
			continue
		}

		if faultsAct {
			l.calls.sendHeld(l, b, k)
		}
		l.resend(b, k, y, faultsAct)
		for i := range m.Tx {
			d := &l.departures[l.firstTx[b]+i]
			asked := l.status.takeSendNow(l.firstTx[b] + i)
			due, may := l.isDue(b, i, k, y, l.forcesSignals(faultsAct))
			if may && (due || urgent || asked) && d.retriedAt != k {
				l.onlyAsked = !due && !urgent
				d.retry = !l.calls.encodeAndSend(l, b, i, k, y, faultsAct)
				l.onlyAsked = false
			}
		}
		l.calls.flush(l.buses[b], l.grid.Due(k), (k-l.k)*int64(l.cfg.Period))
	}

	if urgent {
		l.urgent = false
	}
	if served {
		l.response.record(&l.status.Response)
	}
}

// isDue reports whether message i of bus b is due at grid point k, and whether the ignition and the network
// management let it be sent.
//
//go:nosplit
func (l *Loop) isDue(b, i int, k int64, y []float64, forced bool) (due, may bool) {
	if l.network != nil {
		if may, managed := l.network.Sends(b, i, k); managed || !may {
			return may, may
		}
	}
	return l.timing[b].Due(i, k, y, forced), true
}

// forcesSignals reports whether value faults act on the signals sent: not while the safe values are
// sent.
//
//go:nosplit
func (l *Loop) forcesSignals(faultsAct bool) bool {
	return faultsAct && !l.safe && l.reason != NonFinite
}

// countUnsent counts the frames due at a missed point.
//
//go:nosplit
func (l *Loop) countUnsent(b int, k int64) {
	m := l.maps[b]
	for i := range m.Tx {
		if !m.Tx[i].Due(k) {
			continue
		}
		if l.network != nil {
			if may, _ := l.network.Sends(b, i, k); !may {
				continue
			}
		}
		l.entry.beginFrame(k, b, i)
		l.entry.Fate, l.entry.Safe = Unsent, l.safe || l.reason == NonFinite
		l.status.TxLost.Store(l.status.TxLost.Load() + 1)
		l.times.entry.Unsent.add(l.firstTx[b] + i)
		l.frame.ID, l.frame.Len = m.Tx[i].ID, 0
		l.status.ring.enterFrame(&l.entry, &l.frame)
	}
}

// resend tries again, before all other frames, those that the bus did not take when they were due,
// with the present values. A frame with a cycle is tried once more; a frame sent on change is tried
// until the bus takes it.
//
//go:nosplit
func (l *Loop) resend(b int, k int64, y []float64, faultsAct bool) {
	for i := range l.maps[b].Tx {
		d := &l.departures[l.firstTx[b]+i]
		if !d.retry {
			continue
		}
		d.retry, d.retriedAt = false, k
		due, may := l.isDue(b, i, k, y, l.forcesSignals(faultsAct)) // then the retry is this tick's frame
		if !may && !l.canRetry(b, i) {
			continue
		}
		if !due {
			l.status.TxAgain.Store(l.status.TxAgain.Load() + 1)
		}
		taken := l.calls.encodeAndSend(l, b, i, k, y, faultsAct)
		d.retry = !taken && (due || l.maps[b].Tx[i].Send == sigmap.OnChange)
	}
}

// canRetry reports whether a frame of message i of bus b that the bus did not take is tried again: an NM message,
// which is due at one tick only.
//
//go:nosplit
func (l *Loop) canRetry(b, i int) bool {
	_, managed := l.network.Sends(b, i, 0)
	return managed
}

// encodeAndSend sends one frame, after frame faults if faultsAct is true; false: the bus does not take
// the frame.
//
//go:nosplit
func (l *Loop) encodeAndSend(b, i int, k int64, y []float64, faultsAct bool) bool {
	m, at := l.maps[b], l.firstTx[b]+i
	l.entry.beginFrame(k, b, i)
	l.entry.Fate, l.entry.Safe = Sent, l.safe || l.reason == NonFinite
	if faultsAct {
		l.calls.prepareCounters(l.faults, b, i)
	}
	again, made := int64(0), l.coders[b].Encode(&l.frame, i, k, y, l.forcesSignals(faultsAct))
	l.status.TxCount[at].Store(m.Tx[i].Counts())
	if !made {
		if faultsAct {
			l.faults.RestoreCounters(b, i)
		}
		l.entry.Fate = Refused
		l.status.TxRefused.Store(l.status.TxRefused.Load() + 1)
		l.status.ring.enterFrame(&l.entry, &l.frame)
		return true
	}

	if l.network != nil {
		l.network.Fill(b, i, &l.frame)
	}
	if faultsAct {
		again, l.entry.Withheld = l.calls.disturbFrame(l.faults, &l.frame, b, i, k)
	}
	taken := l.transmit(b, i)
	l.sendCopies(b, i, again)
	return taken
}

// transmit sends a frame of message i to its bus, unless a fault withholds it; false: the bus does
// not take the frame.
//
//go:nosplit
func (l *Loop) transmit(b, i int) bool {
	at := l.firstTx[b] + i
	l.entry.Fate = Sent
	switch {
	case l.entry.Withheld:
	case l.put(b):
		l.status.TxFrames.Store(l.status.TxFrames.Load() + 1)
		l.times.entry.Sent.add(at)
		if l.network != nil && !l.entry.Copy {
			l.network.Confirm(b, i, l.entry.Tick)
		}
	default:
		l.entry.Fate = Dropped
		l.status.TxDrops[at].Store(l.status.TxDrops[at].Load() + 1)
	}

	l.status.ring.enterFrame(&l.entry, &l.frame)
	return l.entry.Fate != Dropped
}
