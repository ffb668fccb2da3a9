package virtual

import (
	"math"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt/fault"
	"lockstep/rt/recorder"
	"lockstep/rt/scenario"
)

// disturbed is what a replay knows of faults on purpose: the engine of the loop, and
// what it says that has not been found in the record yet.
type disturbed struct {
	set     *fault.Set
	names   *recorder.EventLog
	started int64          // the last tick begun
	changes []record.Event // of faults' states, at its start
	late    []record.Frame // received before, reaching the plant at it
	frame   can.Frame      // sent last,
	again   int64          // and how often it is still to be sent
	doubt   error          // a difference, if the plant was stepped after it: after the end of a run nothing is disturbed
}

// disturb makes the engine of the scenario in the record, if there was one.
func (r *replay) disturb(file *record.File) error {
	if file != nil {
		r.h.Loop.Ticks = math.MaxInt64 // the run was as long as it was
		s, err := scenario.Parse(file.Name, file.Text, r.h)
		if err != nil {
			return err
		}
		scenario.Apply(r.h, s)
	}
	r.names = recorder.NewEventLog(r.h)
	m, p := r.kernel.Dims()
	var err error
	r.set, err = fault.New(r.h.Loop.Faults, fault.System{PeriodNs: r.h.Tables.PeriodNs, M: m, P: p, Maps: r.h.Maps, Plant: r.kernel})
	return err
}

// begin starts tick k, once.
func (r *replay) begin(k int64) {
	if r.started == k {
		return
	}
	r.started = k
	r.set.Begin(k, r.y)
	for c := (fault.Change{}); r.set.Change(&c); {
		r.changes = append(r.changes, record.Event{Count: c.Count, Text: c.State.String() + ": " + r.names.Fault(c.Slot, c.State)})
	}
	var f can.Frame
	var at can.Stamp
	for b, m := range r.h.Maps {
		for r.set.Late(b, &f, &at) {
			off := r.set.Off(b)
			if !off {
				m.Decode(r.u, &f)
			}
			r.late = append(r.late, record.Frame{Bus: uint8(b), Withheld: off, Frame: f})
		}
	}
}

// begun begins the tick that is to be stepped, and says what of its start is missing in
// the record.
func (r *replay) begun(k int64) error {
	r.begin(k)
	switch {
	case r.doubt != nil:
		return r.doubt
	case len(r.changes) > 0:
		return difference(k, r.changes[0].Text, "the first difference is at tick %d: the record has no %q", k, r.changes[0].Text)
	case len(r.late) > 0:
		id := frameID(r.late[0].ID)
		return difference(k, id, "the first difference is at tick %d: the record has no frame %s that reached the plant late", k, id)
	case r.again > 0:
		id := frameID(r.frame.ID)
		return difference(k, id, "the first difference is before tick %d: frame %s was not sent %d times more", k, id, r.again)
	}
	return nil
}

// command carries out a change that was made while running.
func (r *replay) command(e *record.Event) error {
	list, err := r.names.Translate(e.Text)
	if err != nil {
		return difference(e.Tick, e.Text, "tick %d: %w", e.Tick, err)
	}
	if r.started > r.last {
		return difference(e.Tick, e.Text, "tick %d: %q comes after the start of the tick", e.Tick, e.Text)
	}
	for i := range list {
		r.set.Do(&list[i])
	}
	return nil
}

// changed compares a change of a fault's state.
func (r *replay) changed(e *record.Event) error {
	r.begin(r.last + 1)
	if len(r.changes) == 0 {
		return difference(e.Tick, e.Text, "the first difference is at tick %d: the record has %q", e.Tick, e.Text)
	}
	if want := r.changes[0]; e.Tick != r.started || e.Text != want.Text || e.Count != want.Count {
		return difference(e.Tick, e.Text, "the first difference is at tick %d: the record has %q after %d, at tick %d it is %q after %d",
			e.Tick, e.Text, e.Count, r.started, want.Text, want.Count)
	}
	r.changes = r.changes[1:]
	return nil
}

// received takes a frame that came in.
func (r *replay) received(f *record.Frame) error {
	r.frames++
	r.begin(r.last + 1)
	b, withheld := int(f.Bus), false
	switch {
	case !f.Copy:
		if withheld = r.set.Arrived(b, &f.Frame, can.Stamp{}); !withheld {
			r.h.Maps[b].Decode(r.u, &f.Frame)
		}
	case len(r.late) > 0 && r.late[0].Bus == f.Bus && r.late[0].Frame == f.Frame:
		withheld = r.late[0].Withheld
		r.late = r.late[1:]
	default:
		withheld = !f.Withheld
	}
	if withheld != f.Withheld && r.doubt == nil {
		r.doubt = difference(f.Tick, frameID(f.ID), "the first difference is at tick %d: frame %s received: withheld %t, late %t in the record, which is not so",
			f.Tick, frameID(f.ID), f.Withheld, f.Copy)
	}
	return nil
}

// inOrder looks whether a frame sent is one that had to be sent again or only now, and
// none else had.
func (r *replay) inOrder(f *record.Frame, acts bool) error {
	b, off := int(f.Bus), false
	switch {
	case !f.Copy && r.again > 0 || !f.Copy && acts && r.set.Waits(b, f.Tick):
		return difference(f.Tick, frameID(f.ID), "the first difference is at tick %d: frame %s is in the record before one that had to be sent again", f.Tick, frameID(f.ID))
	case !f.Copy:
		return nil
	case r.again > 0:
		off = r.set.Off(b) // of one held back; others are not sent again then
		r.again--
	default:
		var ok bool
		if _, r.again, ok = r.set.Held(&r.frame, b, f.Tick); !ok || !acts {
			return difference(f.Tick, frameID(f.ID), "the first difference is at tick %d: frame %s is in the record again", f.Tick, frameID(f.ID))
		}
		off = r.set.Off(b)
	}
	if r.frame != f.Frame || off != f.Withheld {
		return differs(f, frameID(f.ID), &r.frame, off)
	}
	r.frames++
	return nil
}

// differs is the error for a frame sent.
func differs(f *record.Frame, name string, got *can.Frame, withheld bool) error {
	text := func(withheld bool) string {
		if withheld {
			return ", withheld"
		}
		return ""
	}
	return difference(f.Tick, name, "the first difference is at tick %d: frame %s was % X%s, is % X%s",
		f.Tick, name, f.Data[:f.Len], text(f.Withheld), got.Data[:got.Len], text(withheld))
}
