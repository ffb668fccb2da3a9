package rt

import (
	"sync/atomic"
	"unsafe"

	"lockstep/rt/fault"
)

// mail carries commands, and the states of faults, through the status block. Each word has one
// writer: the commanding process writes list, n, batch and posted, the loop the rest.
type mail struct {
	list   [fault.Max]commandWords // fault.Command
	n      uint64
	batch  uint64
	posted atomic.Uint64 // batches posted so far
	taken  atomic.Uint64 // batches taken so far

	done  [2]struct{ batch, tick atomic.Uint64 } // of the last batch taken, at taken%2
	state [fault.Max]faultWords                  // by slot
}

type commandWords [unsafe.Sizeof(fault.Command{}) / 8]uint64

type faultWords struct{ state, count atomic.Uint64 }

// Post hands commands to the loop, fault.Max at most, which all take effect at the start of one
// tick; batch identifies them in Taken. It returns false and posts nothing if the last batch is not
// taken yet or there are too many commands. Only one goroutine of one process may post.
func (p *StatusBlock) Post(batch uint64, list []fault.Command) bool {
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

// Taken returns the last batch that the loop has taken and the first tick at which it has effect;
// tick 0: no batch was taken yet.
func (p *StatusBlock) Taken() (batch uint64, tick int64) {
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

// FaultState returns the state of the fault in a slot and how many ticks, or frames, it has
// disturbed.
func (p *StatusBlock) FaultState(slot int) (s fault.State, count uint64) {
	w := &p.mail.state[slot]
	return fault.State(w.state.Load()), w.count.Load()
}
