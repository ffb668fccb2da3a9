package kernel

// snapshot is a state of the plant that a Sequence can return to.
type snapshot struct {
	*Kernel     // the state; it is never stepped
	tables  int // Sequence.tables of the state; 0: there is no state
}

// ReserveSnapshots makes room for n snapshots. Before it a Sequence takes none.
func (s *Sequence) ReserveSnapshots(n int) {
	s.snapshots = nil
	for range n {
		k := New(s.kernels[0].t)
		k.copyState(s.kernels[0]) // touches the memory now, not in a tick
		s.snapshots = append(s.snapshots, snapshot{Kernel: k})
	}
}

// TakeSnapshot stores the state before the next step in a slot, from 0. It replaces the state there. Without
// room for the slot it does nothing.
//
//go:nosplit
func (s *Sequence) TakeSnapshot(slot int) {
	if slot < 0 || slot >= len(s.snapshots) {
		return
	}
	s.snapshots[slot].copyState(s.kernels[s.active])
	s.snapshots[slot].tables = s.tables
}

// Restore makes the next step continue from the state in a slot, with the present tables; slot -1 is the
// start. The time of the plant's own waveforms is part of the state. Whether an input follows u or its own
// waveform is not: see Drive.
//
// Where the tables are those of the state, the steps that follow have the same results, bit for bit, as
// those that have followed TakeSnapshot. Where the tables have changed since, the state is carried over by
// name, as in TakeOver; obstacle is the Obstacle for which it cannot be, and then nothing changes.
//
//go:nosplit
func (s *Sequence) Restore(slot int) (obstacle int) {
	if slot >= len(s.snapshots) || slot >= 0 && s.snapshots[slot].tables == 0 {
		return int(NoSnapshot)
	}
	k := s.kernels[s.active]
	for i := range s.driven {
		s.driven[i] = k.Driven(i)
	}
	switch {
	case slot < 0:
		s.reset(k)
	case s.snapshots[slot].tables == s.tables:
		s.restore(k, s.snapshots[slot].Kernel)
	default:
		copy(s.lastInputs, k.current[k.places*len(s.driven):])
		from := s.snapshots[slot].Kernel
		if o := k.obstacle(from); o != NoObstacle {
			return int(o)
		}
		unconverged := k.unconverged
		s.takeOver(k, from, s.lastInputs)
		k.unconverged = unconverged
	}
	for i, on := range s.driven {
		if k.Driven(i) != on {
			k.Drive(i, on)
		}
	}
	return int(NoObstacle)
}

// Carries reports whether Restore carries the state in a slot over to other tables.
//
//go:nosplit
func (s *Sequence) Carries(slot int) bool {
	return slot >= 0 && slot < len(s.snapshots) && s.snapshots[slot].tables != s.tables
}

// Ticks returns the time of the plant's own waveforms, in periods: that of the steps since its start, less
// the time that Restore has taken back.
func (s *Sequence) Ticks() int64 { return s.kernels[s.active].tick }

// restore continues from a state of the same tables. The count of unconverged substeps goes
// on.
//
//go:nosplit
func (k *Kernel) restore(from *Kernel) {
	unconverged := k.unconverged
	k.copyState(from)
	k.unconverged, k.lockedBase, k.keepsLog = unconverged, -1, false
	k.selectCombination()
}

// copyState copies all of from that its next step may read, but for what follows from it and the tables.
//
//go:nosplit
func (k *Kernel) copyState(from *Kernel) {
	k.copyMotion(from)
	k.timeTol, k.publishedAt = from.timeTol, from.publishedAt
	copy(k.published, from.published)
	k.held.isSet, k.held.until, k.held.tol = from.held.isSet, from.held.until, from.held.tol
	k.held.starts, k.held.ends = false, false // within a tick only
	copy(k.held.move, from.held.move)
	copy(k.held.rate, from.held.rate)
	copy(k.held.torque, from.held.torque)
	copy(k.held.slope, from.held.slope)
	copy(k.slip, from.slip)
	copy(k.limit, from.limit)
	copy(k.atZero, from.atZero)
	copy(k.rising, from.rising)
	copy(k.partition.lastTau, from.partition.lastTau)
}

// state returns pointers to all that copyState copies.
func (k *Kernel) state() []any {
	return []any{
		&k.plantState, &k.tick, &k.lag, &k.unconverged, &k.input, &k.commands, &k.publishedCount, &k.delayed, &k.torqueTol, &k.lawValues,
		&k.lawStart, &k.lawMax, &k.indicatorMax, &k.w0, &k.w1, &k.w2, &k.capC, &k.tau0, &k.w, &k.tau, &k.capNow, &k.termMax,
		&k.contactTol, &k.timeTol, &k.publishedAt, &k.published, &k.held.isSet, &k.held.until, &k.held.tol, &k.held.move,
		&k.held.rate, &k.held.torque, &k.held.slope, &k.slip, &k.limit, &k.atZero, &k.rising, &k.partition.lastTau,
	}
}

// ReserveState makes room for SaveState, and returns pointers to what it saves: the state of the plant, its
// snapshots, and which changes known before the run are decided. Call it after ReserveSnapshots.
func (s *Sequence) ReserveState() []any {
	s.checkpoint = New(s.kernels[0].t)
	s.SaveState()
	list := append(s.checkpoint.state(), &s.phase, &s.next, &s.refused, &s.reached, &s.tables)
	for i := range s.snapshots {
		list = append(list, &s.snapshots[i].tables)
		list = append(list, s.snapshots[i].state()...)
	}
	return list
}

// SaveState updates what the pointers of ReserveState point to, before the next step.
//
//go:nosplit
func (s *Sequence) SaveState() { s.checkpoint.copyState(s.kernels[s.active]) }

// LoadState makes the next step continue from what the pointers of ReserveState point to, with the tables in a slot
// of UseSlots; slot -1: those known before the run.
func (s *Sequence) LoadState(slot int) {
	s.set, s.offered = (1+slot)*s.SetSize(), 0
	s.active = s.set + s.phase
	k := s.kernels[s.active]
	s.restore(k, s.checkpoint)
	k.unconverged = s.checkpoint.unconverged
}
