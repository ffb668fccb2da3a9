package rt

import (
	"math"
	"strings"
	"sync/atomic"
	"unsafe"

	"lockstep/io/sigmap"
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

	done  [2]struct{ batch, tick, outcome atomic.Uint64 } // of the last batch taken, at taken%2
	state [fault.Max]faultWords                           // by slot

	offer offer // see Offer

	snapshots [fault.MaxSnapshots]storedState // by slot
	resets    atomic.Uint64                   // Restore commands in effect so far

	// inputs and signals that are set, in no order: a supervisor that takes over reads them, and the guard
	values [fault.MaxSet]struct{ target, value atomic.Uint64 }
}

// storedState is a stored state of the plant. The commanding process writes the name before it posts the
// command, the loop the rest.
type storedState struct {
	name        [MaxSnapshotName / 8]uint64 // bytes, padded with zeros
	tick        atomic.Uint64               // first tick after the state; 0: there is none
	events      uint64                      // outputs Watch.Events and Watch.Transitions of the state
	transitions uint64
}

// MaxSnapshotName is the longest name of a stored state, bytes.
const MaxSnapshotName = 32

// carriedOver marks an outcome of a Restore command that has carried the state over to other parameters. The
// other bits are the obstacle.
const carriedOver = 1 << 63

// offer carries prepared tables of the plant to the loop. The commanding process writes slot and posted,
// the loop the rest.
type offer struct {
	slot   uint64        // of the tables, see package tableset
	posted atomic.Uint64 // offers posted so far
	seen   uint64        // last offer that the plant has got

	decided        atomic.Uint64 // offers decided so far
	tick, obstacle atomic.Uint64 // of the last decision: first tick with the tables; why they were refused, 0: they were not
	active         atomic.Uint64 // 1 + slot of the tables in use; 0: the plant uses no tables of a slot

	changes, refusals atomic.Uint64 // offers in effect and offers refused so far

	phase atomic.Uint64 // changes known before the run that are in effect: the number of the last one
}

// Offer hands the tables in a slot, 0 or 1, to the plant and returns the number of the offer, from 1.
// ok is false, and nothing is posted, if the last offer is not decided yet. Only one goroutine of one
// process may offer, in a slot that is not active.
func (p *StatusBlock) Offer(slot int) (number uint64, ok bool) {
	o := &p.mail.offer
	n := o.posted.Load()
	if o.decided.Load() != n {
		return 0, false
	}
	o.slot = uint64(slot)
	o.posted.Store(n + 1)
	return n + 1, true
}

// Decided returns the number of the last offer that the loop has decided; 0: none. tick is the first tick with its
// tables, and obstacle says why the plant has refused them; 0: it has not.
func (p *StatusBlock) Decided() (number uint64, tick int64, obstacle int) {
	o := &p.mail.offer
	number = o.decided.Load() // before the rest, which the next decision changes only after another offer
	return number, int64(o.tick.Load()), int(o.obstacle.Load())
}

// OffersPosted returns the number of the last offer; 0: none.
func (p *StatusBlock) OffersPosted() uint64 { return p.mail.offer.posted.Load() }

// ActiveSlot returns the slot of the tables in use; -1: the plant uses no tables of a slot.
func (p *StatusBlock) ActiveSlot() int { return int(p.mail.offer.active.Load()) - 1 }

// Phase returns the phase of the plant: the number, from 1, of the last change known before the run that is in
// effect; 0: none.
func (p *StatusBlock) Phase() int { return int(p.mail.offer.phase.Load()) }

// ParameterChanges returns how many changes of parameters by Offer are in effect, and how many were refused.
func (p *StatusBlock) ParameterChanges() (changes, refusals uint64) {
	return p.mail.offer.changes.Load(), p.mail.offer.refusals.Load()
}

type commandWords [unsafe.Sizeof(fault.Command{}) / 8]uint64

type faultWords struct {
	state, count atomic.Uint64
	began        atomic.Uint64 // first active tick
}

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

// targetOf returns what a Drive or Release command sets, as a word that is not 0: the index of an input, or
// bus, message and field of a signal.
//
//go:nosplit
func targetOf(c *fault.Command) uint64 {
	if c.Fault.Where == fault.Input {
		return 1<<63 | uint64(c.Input)
	}
	return 1<<62 | uint64(c.Fault.Bus)<<48 | uint64(c.Fault.Message)<<24 | uint64(c.Fault.Field)
}

// keepValue notes the value that a command sets or releases.
//
//go:nosplit
func (m *mail) keepValue(c *fault.Command) {
	if c.Op != fault.Drive && c.Op != fault.Release && c.Op != fault.ReleaseAll {
		return
	}
	target, free := targetOf(c), -1
	for i := range m.values {
		v := &m.values[i]
		switch at := v.target.Load(); {
		case c.Op == fault.ReleaseAll, c.Op == fault.Release && at == target:
			v.target.Store(0)
		case at == target:
			v.value.Store(math.Float64bits(c.Value))
			return
		case at == 0 && free < 0:
			free = i
		}
	}
	if c.Op == fault.Drive && free >= 0 {
		m.values[free].value.Store(math.Float64bits(c.Value))
		m.values[free].target.Store(target)
	}
}

// SetValues returns the inputs and signals that are set, as the Drive commands that set them.
func (p *StatusBlock) SetValues() (list []fault.Command) {
	for i := range p.mail.values {
		v := &p.mail.values[i]
		c := fault.Command{Op: fault.Drive, Value: math.Float64frombits(v.value.Load())}
		switch at := v.target.Load(); {
		case at>>63 == 1:
			c.Input = int(at &^ (1 << 63))
		case at != 0:
			c.Fault = fault.Fault{Where: fault.Signal, Bus: int(at >> 48 & 0xFF),
				Message: int(at >> 24 & 0xFFFFFF), Field: int(at & 0xFFFFFF)}
		default:
			continue
		}
		list = append(list, c)
	}
	return list
}

// HoldSetValues makes the signals of the maps, one per bus, carry the values that are set.
func (p *StatusBlock) HoldSetValues(maps []*sigmap.Map) { fault.HoldValues(maps, p.SetValues()) }

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

// TakenOutcome returns what became of a Restore command in the last batch that the loop has taken: whether it
// carried the state over to other parameters, and why the plant refused it; 0: it did not.
func (p *StatusBlock) TakenOutcome() (carried bool, obstacle int) {
	m := &p.mail
	w := m.done[m.taken.Load()%2].outcome.Load()
	return w&carriedOver != 0, int(w &^ carriedOver)
}

// Snapshot is a stored state of the plant.
type Snapshot struct {
	Name string
	Tick int64 // the first tick after the state; 0: no state is stored
}

// NameSnapshot sets the name of a slot. Call it before Post, in the process that posts.
func (p *StatusBlock) NameSnapshot(slot int, name string) {
	var padded [MaxSnapshotName]byte
	copy(padded[:], name)
	p.mail.snapshots[slot].name = *(*[MaxSnapshotName / 8]uint64)(unsafe.Pointer(&padded))
}

// Snapshots returns the stored states by slot.
func (p *StatusBlock) Snapshots() (list [fault.MaxSnapshots]Snapshot) {
	for i := range list {
		if w := &p.mail.snapshots[i]; w.tick.Load() != 0 {
			padded := (*[MaxSnapshotName]byte)(unsafe.Pointer(&w.name))
			list[i] = Snapshot{strings.TrimRight(string(padded[:]), "\x00"), int64(w.tick.Load())}
		}
	}
	return list
}

// Resets returns how many Restore commands have had effect.
func (p *StatusBlock) Resets() uint64 { return p.mail.resets.Load() }

// FaultState returns the state of the fault in a slot and how many ticks, or frames, it has
// disturbed.
func (p *StatusBlock) FaultState(slot int) (s fault.State, count uint64) {
	w := &p.mail.state[slot]
	return fault.State(w.state.Load()), w.count.Load()
}

// FaultBegan returns the first tick in which the fault in a slot was active; false: it is armed or there is none.
func (p *StatusBlock) FaultBegan(slot int) (tick int64, ok bool) {
	w := &p.mail.state[slot]
	state := fault.State(w.state.Load())
	return int64(w.began.Load()), state == fault.Active || state == fault.Over
}
