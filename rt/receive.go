package rt

import (
	"math"
	"sync/atomic"

	"lockstep/io/sigmap"
	"lockstep/sched"
)

// RxWords is what the page says of a received message. The counts are those of
// sigmap.Counts. Times between frames are by the stamps of the controller or else
// of the kernel, or in whole ticks where there are none.
type RxWords struct {
	Frames, OK, SomeLost, Repeated, Sequence, Errors, Length, Range, Invalid, NoNew, Timeouts atomic.Uint64

	Status atomic.Uint64 // see RxStatus

	Cycles      atomic.Uint64 // times between two frames
	CycleMin    atomic.Uint64 // ns
	CycleMax    atomic.Uint64 // ns
	CycleSum    atomic.Uint64 // ns
	CycleSquare atomic.Uint64 // sum of their squares, ns²; float64 bits

	Age    atomic.Uint64 // at the last tick, of the last valid frame, ns; only if there was one
	AgeMax atomic.Uint64 // ns
}

// RxStatus is how a received message stands.
type RxStatus struct {
	Frame     sigmap.State  // of the last frame, or cycle without one
	Window    sigmap.Window // of its protection
	Protected bool          // Frame and Window mean something
	Late      bool          // the timeout has passed
}

// Load reads the status.
func (w *RxWords) Load() RxStatus {
	s := w.Status.Load()
	return RxStatus{sigmap.State(s), sigmap.Window(s >> 8), s>>16&1 != 0, s>>17&1 != 0}
}

// arrival is when the frames of a message came.
type arrival struct {
	stamped     bool  // the times are the kernel's, not the grid's
	seen        bool  // a frame
	valid       bool  // a valid one
	last        int64 // when the last frame came, ns
	good        int64 // and the last valid one
	cycles, sum uint64
	least, most uint64
	square      float64
	age, oldest int64
	dirty       bool // the page does not know it all
}

// add notes a frame that came at an instant.
//
//go:nosplit
func (a *arrival) add(at int64, valid bool) {
	a.dirty = true
	if gap := uint64(max(0, at-a.last)); a.seen {
		if a.cycles == 0 {
			a.least = gap
		}
		a.least, a.most = min(a.least, gap), max(a.most, gap)
		a.cycles++
		a.sum += gap
		a.square += float64(float64(gap) * float64(gap))
	}
	a.seen, a.last = true, at
	if valid {
		a.valid, a.good = true, at
	}
}

// receive decodes what has come in, at most MaxRecv frames per bus, into U. What
// comes in before grid point k is answered at k.
//
//go:nosplit
func (l *Loop) receive() {
	k := l.k + l.owed + 1
	for b, bus := range l.buses {
		n := bus.RecvAt(l.frames[:], l.stamps[:])
		for i := range l.frames[:n] {
			l.take(b, i, k, false, l.reason == NotEnded && l.calls.arrived(l.faults, b, &l.frames[i], l.stamps[i]))
		}
		l.page.RxFrames.Add(uint64(n))
		if n == MaxRecv {
			l.page.RxBound.Add(1)
		}
	}
}

// take decodes a frame that came in before grid point k, unless a fault withholds it; late says
// that one has done so until now.
//
//go:nosplit
func (l *Loop) take(b, at int, k int64, late, withheld bool) {
	f := &l.frames[at]
	i, result := -1, sigmap.Unknown
	if withheld {
		i = l.maps[b].Find(f.ID)
	} else {
		i, result = l.coders[b].Decode(l.U, f)
	}
	l.note.set(k, b, i)
	l.note.fate, l.note.safe, l.note.stamp, l.note.copy, l.note.withheld = Received, false, l.stamps[at], late, withheld
	l.page.ring.frame(&l.note, f)
	if withheld {
		return
	}
	if i < 0 {
		l.page.RxUnknown.Add(1)
		return
	}
	switch result {
	case sigmap.OK:
		l.answers.add(l.stamps[at].Soft)
	case sigmap.Range: // the unit is there, and its other signals hold
		l.page.RxRange.Add(1)
	case sigmap.Invalid:
		l.page.RxInvalid.Add(1)
	case sigmap.Bad:
		l.page.RxBad.Add(1)
	case sigmap.Short:
		l.page.RxShort.Add(1)
	}
	l.arrive(l.firstRx[b]+i, k, l.wire[b].at(&l.stamps[at]), result != sigmap.Bad && result != sigmap.Short)
}

// arrive notes that a frame of a message came before grid point k, and when; 0: nobody stamped it.
//
//go:nosplit
func (l *Loop) arrive(i int, k, at int64, valid bool) {
	a := &l.coming[i]
	if a.stamped = at != 0; !a.stamped {
		at = k * int64(l.cfg.Period)
	}
	a.add(at, valid)
	if valid {
		l.page.LastRx[i].Store(uint64(l.k + 1))
	}
}

// judge looks, at grid point k, which messages are missing or wrong, and does what is
// declared for that.
//
//go:nosplit
func (l *Loop) judge(k int64) {
	for _, m := range l.maps {
		switch l.calls.tick(m, l.U, k) {
		case sigmap.SafeByTimeout:
			l.goSafe(MessageLate)
		case sigmap.SafeByError:
			l.goSafe(MessageWrong)
		}
	}
	if len(l.coming) == 0 {
		return
	}
	now := sched.Realtime()
	for i := range l.coming {
		a := &l.coming[i]
		if !a.valid {
			continue
		}
		if a.age = now - a.good; !a.stamped {
			a.age = k*int64(l.cfg.Period) - a.good
		}
		a.age = max(0, a.age)
		a.oldest = max(a.oldest, a.age)
	}
}

// publishMessages writes what is known of the received messages to the page.
//
//go:nosplit
func (l *Loop) publishMessages() {
	for b, m := range l.maps {
		for i := range m.Rx {
			at := l.firstRx[b] + i
			w := &l.page.Rx[at]
			a, r := &l.coming[at], &m.Rx[i]
			if a.valid {
				w.Age.Store(uint64(a.age))
				w.AgeMax.Store(uint64(a.oldest))
			}
			if a.dirty {
				w.times(a)
				a.dirty = false
			}
			if r.Changed {
				w.counts(r)
				r.Changed = false
			}
		}
	}
}

//go:nosplit
func (w *RxWords) times(a *arrival) {
	w.Cycles.Store(a.cycles)
	w.CycleMin.Store(a.least)
	w.CycleMax.Store(a.most)
	w.CycleSum.Store(a.sum)
	w.CycleSquare.Store(math.Float64bits(a.square))
}

//go:nosplit
func (w *RxWords) counts(r *sigmap.Rx) {
	c := &r.Counts
	w.Frames.Store(c.Frames)
	w.OK.Store(c.OK)
	w.SomeLost.Store(c.SomeLost)
	w.Repeated.Store(c.Repeated)
	w.Sequence.Store(c.Sequence)
	w.Errors.Store(c.Errors)
	w.Length.Store(c.Length)
	w.Range.Store(c.Range)
	w.Invalid.Store(c.Invalid)
	w.NoNew.Store(c.NoNew)
	w.Timeouts.Store(c.Timeouts)
	s := uint64(r.Frame) | uint64(r.Window)<<8
	if len(r.Protect) > 0 {
		s |= 1 << 16
	}
	if r.Late {
		s |= 1 << 17
	}
	w.Status.Store(s)
}
