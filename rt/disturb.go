package rt

import (
	"unsafe"

	"lockstep/rt/fault"
	"lockstep/rt/network"
)

// MaxPlannedStates is the largest number of snapshots, resets and steps that a scenario plans.
const MaxPlannedStates = 1024

// disturbance is the loop's state for faults and live commands.
type disturbance struct {
	faults  *fault.Set
	change  fault.Change
	command fault.Command // a copy, because the other process could change the original after the check
	planned int           // snapshots and resets of the scenario so far

	// outputs Watch.Events and Watch.Transitions that Restore commands have taken back
	events, transitions uint64

	// of the last Restore: its grid point, and those outputs in the state. Y has them after the step only.
	restored struct {
		tick                int64
		events, transitions uint64
	}
}

// beginPoint starts grid point k, the next one to be stepped to: it applies commands, starts and
// ends faults, and decodes received frames that a delay fault releases.
//
//go:nosplit
func (l *Loop) beginPoint(k int64) {
	if n := l.status.mail.posted.Load(); n != l.status.mail.taken.Load() {
		l.applyCommands(k, n)
	}
	if o := &l.status.mail.offer; o.seen != o.posted.Load() && l.changer != nil {
		o.seen = o.posted.Load()
		l.changer.Offer(int(o.slot & 1))
	}
	l.applyPlanned(k)
	if l.network != nil {
		l.calls.beginNetwork(l, k)
	}
	l.faults.BeginTick(k, l.Y)
	for range 4 * fault.Max {
		if !l.faults.NextChange(&l.change) {
			break
		}
		l.status.ring.enterFault(k, &l.change)
	}

	for b := range l.buses {
		for range fault.Max * fault.MaxHeld {
			again, ok := l.faults.NextDelayed(b, &l.frames[0], &l.stamps[0])
			if !ok {
				break
			}
			l.decodeCopies(b, 0, k, again+1)
		}
	}
}

// applyCommands applies the n-th batch of commands at grid point k.
//
//go:nosplit
func (l *Loop) applyCommands(k int64, n uint64) {
	m := &l.status.mail
	batch, outcome := m.batch, uint64(0)
	for i := range min(m.n, fault.Max) {
		*(*commandWords)(unsafe.Pointer(&l.command)) = m.list[i]
		if !l.faults.Apply(&l.command) {
			continue
		}
		switch l.command.Op {
		case fault.SwitchIgnition, fault.SwitchPower:
			l.network.Apply(&l.command, k)
		case fault.TakeSnapshot, fault.Restore, fault.DropSnapshot:
			outcome = l.noteState(k)
		case fault.StartRecord:
			outcome = l.saveState()
		case fault.EndRecord:
		default:
			m.keepValue(&l.command)
		}
	}

	l.status.ring.enterCommand(k, batch, outcome&^carriedOver)
	d := &m.done[n%2]
	d.batch.Store(batch)
	d.tick.Store(uint64(k))
	d.outcome.Store(outcome)
	m.taken.Store(n)
}

// applyPlanned applies the snapshots and resets of the scenario before the step to grid point k.
//
//go:nosplit
func (l *Loop) applyPlanned(k int64) {
	for range MaxPlannedStates {
		if !l.faults.NextPlanned(k, &l.command) {
			break
		}
		if l.network.Apply(&l.command, k) {
			l.planned++
			continue
		}
		outcome := uint64(0)
		if l.faults.Apply(&l.command) {
			outcome = l.noteState(k)
		}
		l.status.ring.enterState(k, l.planned, outcome&^carriedOver)
		l.planned++
	}
}

// beginNetwork starts grid point k of ignition and network management, and enters their changes in the ring.
//
//go:nosplit
func (l *Loop) beginNetwork(k int64) {
	l.network.Begin(k)
	l.status.Ignition.Store(1 + uint64(l.network.State()))
	for n := range maxNetworkChanges {
		if !l.network.NextChange(&l.networkChange) {
			return
		}
		if n == 0 {
			l.showSending()
		}
		if l.networkChange.Topic == network.OfPower {
			l.status.supply.push(l.networkChange.Value)
		}
		l.status.ring.enterNetwork(k, &l.networkChange)
	}
}

// showSending shows in the status block when each message is sent.
//
//go:nosplit
func (l *Loop) showSending() {
	for b, m := range l.maps {
		for i := range m.Tx {
			at := l.firstTx[b] + i
			l.status.TxPhase[at].Store(uint64(m.Tx[i].PhaseTicks))
			if l.network != nil {
				l.status.TxFirst[at].Store(uint64(l.network.First(b, i)))
			}
		}
	}
}

// maxNetworkChanges bounds the changes of ignition, network and power entered at one tick.
const maxNetworkChanges = 64

// noteState records a command on states of the plant before the step to grid point k: one was stored, deleted
// or restored. It returns the outcome.
//
//go:nosplit
func (l *Loop) noteState(k int64) (outcome uint64) {
	slot, m := l.command.Slot, &l.status.mail
	switch l.command.Op {
	case fault.TakeSnapshot:
		s := &m.snapshots[slot]
		s.events, s.transitions = l.counted(k)
		s.tick.Store(uint64(k))
		return 0
	case fault.DropSnapshot:
		m.snapshots[slot].tick.Store(0)
		return 0
	}
	if l.faults.Obstacle != 0 {
		return uint64(l.faults.Obstacle)
	}

	m.resets.Store(m.resets.Load() + 1)
	events, transitions := l.counted(k)
	r := &l.restored
	r.tick, r.events, r.transitions = k, 0, 0
	if slot >= 0 {
		r.events, r.transitions = m.snapshots[slot].events, m.snapshots[slot].transitions
	}
	l.events += events - r.events
	l.transitions += transitions - r.transitions
	if l.faults.Carried {
		outcome = carriedOver
	}
	return outcome
}

// saveState copies the state of the loop for a record that starts. It returns the outcome: not 0 if there is no copy.
//
//go:nosplit
func (l *Loop) saveState() (outcome uint64) {
	if l.copied == nil || l.faults.Delays() {
		return noCopy
	}
	l.checkpointer.SaveState()
	l.copied.Save(l.checkpoint)
	return 0
}

// noCopy is the outcome of a StartRecord command without a copy of the state.
const noCopy = 1

// counted returns the outputs Watch.Events and Watch.Transitions of the state before the step to grid point k.
//
//go:nosplit
func (l *Loop) counted(k int64) (events, transitions uint64) {
	if r := &l.restored; r.tick == k {
		return r.events, r.transitions
	}
	return l.watched(l.cfg.Watch.Events), l.watched(l.cfg.Watch.Transitions)
}

// watched returns an output of the plant that counts; -1: there is none.
//
//go:nosplit
func (l *Loop) watched(i int) uint64 {
	if i < 0 || !(l.Y[i] >= 0 && l.Y[i] < 1<<53) { // a plant that is no longer finite counts nothing
		return 0
	}
	return uint64(l.Y[i])
}

// TakeCommands applies the commands posted so far at the next grid point, of a loop that stands between
// two ticks in virtual time. So a standing loop takes several batches, all at one tick.
func (l *Loop) TakeCommands() {
	if n := l.status.mail.posted.Load(); n != l.status.mail.taken.Load() {
		l.applyCommands(l.k+1, n)
		l.publishFaults()
	}
}

// sendHeld sends the frames of bus b that a delay fault releases at grid point k.
//
//go:nosplit
func (l *Loop) sendHeld(b int, k int64) {
	for range fault.Max * fault.MaxHeld {
		i, again, ok := l.faults.NextHeld(&l.frame, b, k)
		if !ok {
			break
		}
		l.entry.beginFrame(k, b, i)
		l.entry.Safe, l.entry.Copy, l.entry.Withheld = false, true, l.faults.BusIsOff(b)
		l.transmit(b, i)
		l.sendCopies(b, i, again)
	}
}

// sendCopies sends the frame again times more.
//
//go:nosplit
func (l *Loop) sendCopies(b, i int, again int64) {
	l.entry.Copy = true
	for range min(again, fault.MaxBurst) {
		l.transmit(b, i)
	}
}

// publishFaults writes the states of the faults to the status block.
//
//go:nosplit
func (l *Loop) publishFaults() {
	for i := range l.faults.UsedSlots() {
		w := &l.status.mail.state[i]
		state, count := l.faults.State(i)
		if began := uint64(l.faults.Began(i)); w.began.Load() != began {
			w.began.Store(began) // before the state that gives it a meaning
		}
		if w.state.Load() != uint64(state) {
			w.state.Store(uint64(state))
		}
		if w.count.Load() != count {
			w.count.Store(count)
		}
	}
}
