package rt

import (
	"sync/atomic"
	"unsafe"

	"lockstep/rt/fault"
)

// mail is how commands and what has become of the faults cross the page. Each word has
// one writer: who commands writes posted and what is before it, the loop the rest.
type mail struct {
	list   [fault.Max]commandWords // fault.Command
	n      uint64
	batch  uint64
	posted atomic.Uint64 // batches so far
	taken  atomic.Uint64 // of them

	done  [2]struct{ batch, tick atomic.Uint64 } // of the batch taken last, at taken%2
	state [fault.Max]faultWords                  // by slot
}

type commandWords [unsafe.Sizeof(fault.Command{}) / 8]uint64

type faultWords struct{ state, count atomic.Uint64 }

// Post hands commands to the loop, fault.Max at most, which all take effect at the
// start of one tick; batch names them, see Taken. false: nothing was handed over, the
// last batch is not taken yet or there are too many. One goroutine of one process may
// post.
func (p *Page) Post(batch uint64, list []fault.Command) bool {
	m := &p.mail
	n := m.posted.Load()
	if m.taken.Load() != n || len(list) > len(m.list) {
		return false
	}
	for i := range list {
		m.list[i] = *(*commandWords)(unsafe.Pointer(&list[i]))
	}
	m.batch, m.n = batch, uint64(len(list))
	m.posted.Store(n + 1)
	return true
}

// Taken returns the last batch that the loop has taken, and the tick from which on it
// has effect; tick 0: none was taken yet.
func (p *Page) Taken() (batch uint64, tick int64) {
	m := &p.mail
	for {
		n := m.taken.Load()
		d := &m.done[n%2]
		batch, tick = d.batch.Load(), int64(d.tick.Load())
		if m.taken.Load() == n {
			return batch, tick
		}
	}
}

// FaultState says how the fault in a slot stands and how many ticks, or frames, it has
// disturbed.
func (p *Page) FaultState(slot int) (s fault.State, count uint64) {
	w := &p.mail.state[slot]
	return fault.State(w.state.Load()), w.count.Load()
}
