package rt

import (
	"unsafe"

	"lockstep/rt/fault"
)

// disturbance is what the loop needs for faults on purpose.
type disturbance struct {
	faults  *fault.Set
	change  fault.Change
	command fault.Command // a copy: what another process can change is not believed twice
}

// begin starts grid point k, the next one to be stepped to: what was commanded, what
// becomes of the faults, and the frames that they give back.
//
//go:nosplit
func (l *Loop) begin(k int64) {
	if n := l.page.mail.posted.Load(); n != l.page.mail.taken.Load() {
		l.obey(k, n)
	}
	l.faults.Begin(k, l.Y)
	for range 4 * fault.Max {
		if !l.faults.Change(&l.change) {
			break
		}
		l.page.ring.fault(k, &l.change)
	}
	for b := range l.buses {
		for range fault.Max * fault.MaxHeld {
			if !l.faults.Late(b, &l.frames[0], &l.stamps[0]) {
				break
			}
			l.take(b, 0, k, true, l.faults.Off(b))
		}
	}
}

// obey carries out the n-th batch of commands at grid point k.
//
//go:nosplit
func (l *Loop) obey(k int64, n uint64) {
	m := &l.page.mail
	batch := m.batch
	l.page.ring.command(k, batch)
	for i := range min(m.n, fault.Max) {
		*(*commandWords)(unsafe.Pointer(&l.command)) = m.list[i]
		l.faults.Do(&l.command)
	}
	d := &m.done[n%2]
	d.batch.Store(batch)
	d.tick.Store(uint64(k))
	m.taken.Store(n)
}

// give hands over the frames of a bus that a fault has held back until grid point k.
//
//go:nosplit
func (l *Loop) give(b int, k int64) {
	for range fault.Max * fault.MaxHeld {
		i, again, ok := l.faults.Held(&l.frame, b, k)
		if !ok {
			break
		}
		l.note.set(k, b, i)
		l.note.safe, l.note.copy, l.note.withheld = false, true, l.faults.Off(b)
		l.transmit(b, i)
		l.repeat(b, i, again)
	}
}

// repeat sends the frame again, so many times.
//
//go:nosplit
func (l *Loop) repeat(b, i int, again int64) {
	l.note.copy = true
	for range min(again, fault.MaxBurst) {
		l.transmit(b, i)
	}
}

// publishFaults writes how the faults stand to the page.
//
//go:nosplit
func (l *Loop) publishFaults() {
	for i := range l.faults.Used() {
		w := &l.page.mail.state[i]
		state, count := l.faults.State(i)
		if w.state.Load() != uint64(state) {
			w.state.Store(uint64(state))
		}
		if w.count.Load() != count {
			w.count.Store(count)
		}
	}
}
