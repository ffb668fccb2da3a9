package rt

import (
	"math"
	"sync/atomic"
	"unsafe"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
	"lockstep/sched"
)

// RxWords holds the counts and times of a received message. Times between frames are taken from the
// stamps of the controller, else of the kernel; without stamps they are whole ticks.
type RxWords struct {
	counts [len(countWords{})]atomic.Uint64 // sigmap.Counts

	Status atomic.Uint64 // RxStatus, packed

	Cycles      atomic.Uint64 // number of times between two frames
	CycleMin    atomic.Uint64 // shortest time between two frames, ns
	CycleMax    atomic.Uint64 // longest time between two frames, ns
	CycleSum    atomic.Uint64 // sum of the times between two frames, ns
	CycleSquare atomic.Uint64 // sum of the squares of these times, ns²; float64 bits

	AgeMax atomic.Uint64 // largest age of the last valid frame at a tick, ns
}

// RxStatus is the state of a received message.
type RxStatus struct {
	Frame     sigmap.State  // state of the last frame, or of a cycle without one
	Window    sigmap.Window // window of the protection
	Protected bool          // Frame and Window are valid
	Late      bool          // the timeout has passed
}

// countWords is sigmap.Counts as 8-byte words.
type countWords [unsafe.Sizeof(sigmap.Counts{}) / 8]uint64

// Counts returns the counts.
func (w *RxWords) Counts() (c sigmap.Counts) {
	to := (*countWords)(unsafe.Pointer(&c))
	for i := range to {
		to[i] = w.counts[i].Load()
	}
	return c
}

// StoreCounts stores the counts.
//
//go:nosplit
func (w *RxWords) StoreCounts(c *sigmap.Counts) {
	from := (*countWords)(unsafe.Pointer(c))
	for i := range from {
		w.counts[i].Store(from[i])
	}
}

// Load returns the status.
func (w *RxWords) Load() RxStatus {
	s := w.Status.Load()
	return RxStatus{sigmap.State(s), sigmap.Window(s >> 8), s>>16&1 != 0, s>>17&1 != 0}
}

// arrival holds the times of the latest frames of a message.
type arrival struct {
	stamped   bool  // the times are stamps of the kernel; else times of the grid
	seen      bool  // a frame was received
	valid     bool  // a valid frame was received
	last      int64 // arrival of the last frame, ns
	lastValid int64 // arrival of the last valid frame, ns
}

// recordArrival records a frame received at an instant, ns.
//
//go:nosplit
func (w *RxWords) recordArrival(a *arrival, at int64, valid bool) {
	if gap := uint64(max(0, at-a.last)); a.seen {
		n := w.Cycles.Load()
		if n == 0 || gap < w.CycleMin.Load() {
			w.CycleMin.Store(gap)
		}
		w.CycleMax.Store(max(w.CycleMax.Load(), gap))
		w.CycleSum.Store(w.CycleSum.Load() + gap)
		square := math.Float64frombits(w.CycleSquare.Load())
		w.CycleSquare.Store(math.Float64bits(square + float64(float64(gap)*float64(gap))))
		w.Cycles.Store(n + 1)
	}

	a.seen, a.last = true, at
	if valid {
		a.valid, a.lastValid = true, at
	}
}

// receive decodes the frames received, at most MaxRecv per bus, into U. Frames received before grid
// point k are answered at k.
//
//go:nosplit
func (l *Loop) receive() {
	k := l.k + l.behind + 1
	l.calls.receiveLong(l, k)
	for b, bus := range l.buses {
		n := bus.RecvAt(l.frames[:], l.stamps[:])
		for i := range l.frames[:n] {
			l.receiveFrame(b, i, k)
		}
		l.status.RxFrames.Add(uint64(n))
		if n == MaxRecv {
			l.status.RxBound.Add(1)
		}
	}
}

// receiveFrame decodes the frame at index at, received before grid point k. A J1939 frame to all nodes is
// decoded once more, as a copy, for each further message whose destination it is.
//
//go:nosplit
func (l *Loop) receiveFrame(b, at int, k int64) {
	m := l.maps[b]
	i := m.FindToAll(l.frames[at].ID)
	l.original = l.frames[at]
	l.filterAndDecode(b, at, k, false)
	for range m.Rx {
		if i = m.Further(i, &l.original); i < 0 {
			return
		}
		l.frames[at] = l.original
		l.filterAndDecode(b, at, k, true)
	}
}

// filterAndDecode decodes the frame at index at after the faults on received frames.
//
//go:noinline
//go:nosplit
func (l *Loop) filterAndDecode(b, at int, k int64, late bool) {
	copies, withheld := l.filter(b, at)
	l.calls.decodeFrame(l, b, at, k, late, withheld)
	if copies > 0 {
		l.frames[at] = l.faults.Copied
		l.calls.decodeCopies(l, b, at, k, copies)
	}
}

// filter applies the faults on received frames to the frame at index at. With copies > 0, Set.Copied is to
// be decoded as many times once the frame has been recorded.
//
//go:noinline
//go:nosplit
func (l *Loop) filter(b, at int) (copies int64, withheld bool) {
	if l.reason != NotEnded {
		return 0, false
	}
	return l.calls.filterReceived(l.faults, b, &l.frames[at], l.stamps[at])
}

// decodeFrame decodes the frame at index at, received before grid point k, unless a fault
// withholds it. late marks a frame that a fault changed, repeats, or releases in this tick.
//
//go:nosplit
func (l *Loop) decodeFrame(b, at int, k int64, late, withheld bool) {
	f := &l.frames[at]
	i, result := -1, sigmap.Unknown
	if withheld {
		i = l.maps[b].Find(f.ID)
	} else {
		i, result = l.coders[b].Decode(l.U, f)
	}

	l.entry.beginFrame(k, b, i)
	valid := i >= 0 && !withheld && result.Valid()
	if valid && !late {
		l.entry.Acts = l.calls.actsFrom(l, b, at)
	}
	if l.cfg.Virtual {
		l.stamps[at] = can.Stamp{}
	}
	l.entry.Fate, l.entry.Safe, l.entry.Stamp, l.entry.Copy, l.entry.Withheld = Received, false, l.stamps[at], late, withheld
	l.status.ring.enterFrame(&l.entry, f)
	if withheld {
		return
	}
	if l.network != nil {
		l.network.Receive(b, i, f)
	}
	if valid {
		l.inputs.Receive(b, i, l.entry.Acts, l.U)
	}
	if i < 0 {
		conflict := l.countConflict(b, f.ID, k)
		if !l.forward(b, at) && !conflict {
			l.status.RxUnknown.Add(1)
		}
		return
	}
	l.copyToTester(b, at)

	switch result {
	case sigmap.OK:
		l.response.noteArrival(l.stamps[at].Soft)
	case sigmap.Range, sigmap.Rejected:
		l.status.RxRange.Add(1)
	case sigmap.Invalid:
		l.status.RxInvalid.Add(1)
	case sigmap.Bad:
		l.status.RxBad.Add(1)
	case sigmap.Short:
		l.status.RxShort.Add(1)
	case sigmap.WrongFormat:
		l.status.RxFormat.Add(1)
	}

	l.recordArrival(l.firstRx[b]+i, k, l.wire[b].busTime(&l.stamps[at]), result.Valid())
}

// decodeCopies decodes the frame at index at n times, see decodeFrame.
//
//go:nosplit
func (l *Loop) decodeCopies(b, at int, k, n int64) {
	off := l.faults.BusIsOff(b)
	for range min(n, fault.MaxBurst+1) {
		l.calls.decodeFrame(l, b, at, k, true, off)
	}
}

// recordArrival records that a frame of message i was received before grid point k, at an instant in
// ns; 0: the frame has no stamp.
//
//go:nosplit
func (l *Loop) recordArrival(i int, k, at int64, valid bool) {
	a := &l.arrivals[i]
	if a.stamped = at != 0; !a.stamped {
		at = k * int64(l.cfg.Period)
	}
	l.status.Rx[i].recordArrival(a, at, valid)
	if valid {
		l.status.LastRx[i].Store(uint64(l.k + 1))
	}
}

// superviseMessages checks, at grid point k, for missing and wrong messages and enters the safe
// state where the bench demands it.
//
//go:nosplit
func (l *Loop) superviseMessages(k int64) {
	for _, m := range l.maps {
		switch l.calls.superviseMap(m, l.U, k) {
		case sigmap.SafeByTimeout:
			l.goSafe(MessageLate)
		case sigmap.SafeByError:
			l.goSafe(MessageWrong)
		}
	}

	if len(l.arrivals) == 0 {
		return
	}
	now := sched.Realtime()
	for i := range l.arrivals {
		a := &l.arrivals[i]
		if !a.valid {
			continue
		}
		age := now - a.lastValid
		if !a.stamped {
			age = k*int64(l.cfg.Period) - a.lastValid
		}
		if w := &l.status.Rx[i]; age > int64(w.AgeMax.Load()) {
			w.AgeMax.Store(uint64(age))
		}
	}
}

// publishMessages writes the counts and states of the received messages to the status block.
//
//go:nosplit
func (l *Loop) publishMessages() {
	for b, m := range l.maps {
		for i := range m.Rx {
			if r := &m.Rx[i]; r.Changed {
				w := &l.status.Rx[l.firstRx[b]+i]
				w.StoreCounts(&r.Counts)
				w.storeStatus(r)
				r.Changed = false
			}
		}
	}
}

//go:nosplit
func (w *RxWords) storeStatus(r *sigmap.Rx) {
	s := uint64(r.Frame) | uint64(r.Window)<<8
	if len(r.Protect) > 0 {
		s |= 1 << 16
	}
	if r.Late {
		s |= 1 << 17
	}
	w.Status.Store(s)
}
