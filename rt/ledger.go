package rt

import (
	"sync/atomic"
	"unsafe"

	"lockstep/sched"
)

// Phase is a part of a tick.
type Phase int

// The phases in which a tick can lose time, in their order.
const (
	Before  Phase = iota // the tick before had not ended when this one was due
	WakeUp               // from the due time to the first instruction
	Receive              // reading and decoding frames
	Step                 // stepping the plant, over lost points too
	Send                 // encoding frames and handing them to the buses
	phases
)

// String returns the phase as the end of "most time went into ...".
func (p Phase) String() string {
	return [...]string{"the tick before", "the wake-up", "receiving", "stepping", "sending"}[p]
}

// MaxTx is how many sent messages the page follows, over all buses.
const MaxTx = 256

// Set is a set of sent messages, counted over all buses.
type Set [MaxTx / 64]uint64

// Has says that message i is in the set.
func (s *Set) Has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

//go:nosplit
func (s *Set) add(i int) { s[i>>6&(MaxTx/64-1)] |= 1 << (i & 63) }

// Late is one entry of the overrun ledger: a wake-up that found grid points lost,
// or a tick whose frames were out later than Config.Budget after it was due.
// Times are ns of real time. Every field is a word.
type Late struct {
	Tick   int64         // the grid point served, the first of those lost if there are any
	Lost   int64         // grid points that passed before the wake-up, besides the one it was for
	At     int64         // when the loop woke up, ns on the clock of the grid
	LateNs int64         // from the due time of Tick to the wake-up
	Spent  [phases]int64 // where the time went
	Minor  int64         // page faults of the loop's thread since the tick before
	Major  int64
	Yields int64 // voluntary switches of it since then: one per wake-up is normal
	Thrown int64 // involuntary switches: something else was given its CPU
	Sent   Set   // messages that went out at this wake-up, late
	Unsent Set   // messages that were due at lost points and did not go out
}

// Phase is the one that took the most time.
func (e *Late) Phase() Phase {
	most := Before
	for p, ns := range e.Spent {
		if ns > e.Spent[most] {
			most = Phase(p)
		}
	}
	return most
}

// lateWords is the size of an entry in words.
const lateWords = unsafe.Sizeof(Late{}) / 8

// ledgerSize is how many entries the page keeps; the supervisor reads them several
// times per second.
const ledgerSize = 512

// ledger is a ring of the last entries: one process writes, any number read.
type ledger struct {
	n     atomic.Uint64 // entries written
	words [ledgerSize][lateWords]atomic.Uint64
}

// add appends an entry.
//
//go:nosplit
func (l *ledger) add(e *Late) {
	n := l.n.Load()
	from := (*[lateWords]uint64)(unsafe.Pointer(e))
	to := &l.words[n%ledgerSize]
	for i := range from {
		to[i].Store(from[i])
	}
	l.n.Store(n + 1)
}

// read copies entry i, counted from 0; false: it is not there yet, or no longer.
func (l *ledger) read(i uint64, e *Late) bool {
	if i >= l.n.Load() {
		return false
	}
	to := (*[lateWords]uint64)(unsafe.Pointer(e))
	for j := range to {
		to[j] = l.words[i%ledgerSize][j].Load()
	}
	return l.n.Load() < i+ledgerSize // else the writer may have been in it
}

// LateTicks returns how many entries the ledger has had.
func (p *Page) LateTicks() uint64 { return p.ledger.n.Load() }

// ReadLate copies entry i of the ledger, counted from 0, to e; false says that it
// is not there: not written yet, or overwritten by one of the next 511.
func (p *Page) ReadLate(i uint64, e *Late) bool { return p.ledger.read(i, e) }

// times measures a tick for the ledger.
type times struct {
	real   bool  // phases and the thread's own counters are read; not in a simulation
	last   int64 // the latest reading of the clock, ns
	ended  int64 // when the last tick had ended, ns
	began  int64 // when this one began, ns
	before sched.Usage
	usage  sched.Usage
	late   Late // of this tick, should it be late
}

//go:nosplit
func (t *times) begin() {
	t.began = sched.Now()
	t.last = t.began
	t.late = Late{}
}

// mark gives the time since the last mark to a phase.
//
//go:nosplit
func (t *times) mark(p Phase) {
	if !t.real {
		return
	}
	now := sched.Now()
	t.late.Spent[p] += now - t.last
	t.last = now
}

// account measures the tick, at n grid points from first on, and enters it into
// the ledger if it was late: the frames were out more than the budget after the
// first point was due, or points were lost. What was late because the tick before
// had not ended in time is that one's; the rest of the lateness is the wake-up's.
//
//go:nosplit
func (l *Loop) account(woke, first, n int64) {
	t, e := &l.times, &l.times.late
	ended := sched.Now()
	l.page.Work.Record(ended - t.began)
	e.LateNs = woke - l.grid.Due(first)
	if t.real {
		t.usage.Read()
	}
	e.Tick, e.Lost, e.At = first, n-1, woke
	if t.ended != 0 {
		e.Spent[Before] = min(max(0, t.ended-(woke-e.LateNs)), e.LateNs)
	}
	e.Spent[WakeUp] = e.LateNs - e.Spent[Before]
	l.page.ring.timing(e)
	if n > 1 || t.real && e.LateNs+ended-t.began > int64(l.cfg.Budget) {
		l.enter()
	}
	t.ended = ended + woke - t.began // on the clock of the grid
	t.before = t.usage
}

// enter enters the tick into the ledger.
//
//go:nosplit
func (l *Loop) enter() {
	t, e := &l.times, &l.times.late
	e.Minor, e.Major = t.usage.Minor-t.before.Minor, t.usage.Major-t.before.Major
	e.Yields, e.Thrown = t.usage.Voluntary-t.before.Voluntary, t.usage.Involuntary-t.before.Involuntary
	l.page.ledger.add(e)
}
