package rt

import (
	"sync/atomic"
	"time"
	"unsafe"

	"lockstep/sched"
)

// Phase is a part of a tick.
type Phase int

// The phases in which a tick can lose time, in order.
const (
	Before  Phase = iota // the previous tick had not ended when this one was due
	WakeUp               // from the due time to the first instruction
	Receive              // reading and decoding frames
	Step                 // stepping the plant, over missed points too
	Send                 // encoding frames and handing them to the buses
	phases
)

// String returns the phase as the end of "most time went into ...".
func (p Phase) String() string {
	return [...]string{"the tick before", "the wake-up", "receiving", "stepping", "sending"}[p]
}

// MaxTx is how many sent messages fit in a status block, over all buses.
const MaxTx = 256

// MessageSet is a set of sent messages, numbered over all buses.
type MessageSet [MaxTx / 64]uint64

// Has reports whether message i is in the set.
func (s *MessageSet) Has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

//go:nosplit
func (s *MessageSet) add(i int) { s[i>>6&(MaxTx/64-1)] |= 1 << (i & 63) }

// LateTick is one entry of the overrun ledger: a wake-up after missed grid points, or a tick whose
// frames were out later than Config.Budget after its due time. Times are real time, ns. Every field
// consists of 8-byte words.
type LateTick struct {
	Tick        int64         // grid point served; the first missed one if there are any
	Lost        int64         // grid points missed before the wake-up
	At          int64         // instant of the wake-up, ns on the clock of the grid
	LateNs      int64         // wake-up latency of Tick, ns
	Spent       [phases]int64 // time per phase, ns
	Minor       int64         // minor page faults of the loop's thread since the previous tick
	Major       int64         // major page faults of the loop's thread since the previous tick
	Voluntary   int64         // voluntary context switches since the previous tick; one per wake-up is normal
	Involuntary int64         // involuntary context switches since the previous tick
	Sent        MessageSet    // messages sent late at this wake-up
	Unsent      MessageSet    // messages due at missed points, not sent
}

// Phase returns the phase that took the most time.
func (e *LateTick) Phase() Phase {
	most := Before
	for p, ns := range e.Spent {
		if ns > e.Spent[most] {
			most = Phase(p)
		}
	}

	return most
}

// lateWords is the size of an entry in 8-byte words.
const lateWords = unsafe.Sizeof(LateTick{}) / 8

// ledgerSize is how many entries the status block keeps: 10 s of late ticks of 5 ms. The supervisor
// reads them several times per second, but a host whose loop has no CPU of its own may keep it
// waiting for seconds, and then nearly every tick is late.
const ledgerSize = 2048

// ledger is a ring of the last entries, with one writer and any number of readers.
type ledger struct {
	n     atomic.Uint64 // entries written
	words [ledgerSize][lateWords]atomic.Uint64
}

// add appends an entry.
//
//go:nosplit
func (l *ledger) add(e *LateTick) {
	n := l.n.Load()
	from := (*[lateWords]uint64)(unsafe.Pointer(e))
	to := &l.words[n%ledgerSize]
	for i := range from {
		to[i].Store(from[i])
	}
	l.n.Store(n + 1)
}

// read copies entry i, counted from 0; false: the entry is not written yet or is overwritten.
func (l *ledger) read(i uint64, e *LateTick) bool {
	if i >= l.n.Load() {
		return false
	}
	to := (*[lateWords]uint64)(unsafe.Pointer(e))
	for j := range to {
		to[j] = l.words[i%ledgerSize][j].Load()
	}
	return l.n.Load() < i+ledgerSize // else the writer may have overwritten it during the copy
}

// LateCount returns how many entries were written to the ledger.
func (p *StatusBlock) LateCount() uint64 { return p.ledger.n.Load() }

// ReadLedger calls f for each entry of the ledger from *next on, counted from 0, and advances *next.
// It returns how many entries were overwritten before they could be read.
func (p *StatusBlock) ReadLedger(next *uint64, f func(e *LateTick)) (lost uint64) {
	var e LateTick
	for ; *next < p.LateCount(); *next++ {
		if p.ledger.read(*next, &e) {
			f(&e)
		} else {
			lost++
		}
	}

	return lost
}

// times measures a tick for the ledger.
type times struct {
	real      bool                        // measure phases and the thread's counters; false in a simulation
	start     time.Time                   // of a simulation
	simulated func(start time.Time) int64 // sinceStart, by an indirect call as in rt/calls.go
	unpaused  bool                        // a tick begins when the last one ends: Config.Unpaused
	untimed   bool                        // the clock is not read: Config.Untimed
	last      int64                       // latest reading of the clock, ns
	ended     int64                       // end of the last tick, ns
	began     int64                       // start of this tick, ns
	before    sched.Usage
	usage     sched.Usage
	entry     LateTick // ledger entry of this tick, used if it is late
}

// now reads the clock, ns. A simulation need not make the system call of sched.Now, which costs as much as
// its tick: it may give up its processor.
//
//go:noinline
//go:nosplit
func (t *times) now() int64 {
	if t.real {
		return sched.Now()
	}
	return t.simulated(t.start)
}

// sinceStart returns the time since start, ns.
func sinceStart(start time.Time) int64 { return int64(time.Since(start)) }

//go:nosplit
func (t *times) begin() {
	if !t.untimed && !(t.unpaused && t.last != 0) {
		t.last = t.now()
	}
	t.began = t.last
	t.entry = LateTick{}
}

// addPhase adds the time since the last clock reading to phase p.
//
//go:nosplit
func (t *times) addPhase(p Phase) {
	if !t.real {
		return
	}
	now := sched.Now()
	t.entry.Spent[p] += now - t.last
	t.last = now
}

// recordTick measures the tick, which served n grid points from first on. It writes a ledger entry
// if points were missed or the frames were out more than the budget after the first point was due.
// Latency caused by an overlong previous tick goes to phase Before, the rest to phase WakeUp.
//
//go:nosplit
func (l *Loop) recordTick(woke, first, n int64) {
	t, e := &l.times, &l.times.entry
	ended := t.last
	if !t.untimed {
		ended = t.now()
		t.last = ended
		l.status.Work.Record(ended - t.began)
	}
	e.LateNs = woke - l.grid.Due(first)
	if t.real {
		t.usage.Read()
	}
	e.Tick, e.Lost, e.At = first, n-1, woke
	if t.ended != 0 {
		e.Spent[Before] = min(max(0, t.ended-(woke-e.LateNs)), e.LateNs)
	}
	e.Spent[WakeUp] = e.LateNs - e.Spent[Before]
	l.status.ring.enterTiming(e)
	if n > 1 || t.real && e.LateNs+ended-t.began > int64(l.cfg.Budget) {
		l.recordLate()
	}
	t.ended = ended + woke - t.began // on the clock of the grid
	t.before = t.usage
}

// recordLate writes the tick to the ledger.
//
//go:nosplit
func (l *Loop) recordLate() {
	t, e := &l.times, &l.times.entry
	e.Minor, e.Major = t.usage.Minor-t.before.Minor, t.usage.Major-t.before.Major
	e.Voluntary, e.Involuntary = t.usage.Voluntary-t.before.Voluntary, t.usage.Involuntary-t.before.Involuntary
	l.status.ledger.add(e)
}
