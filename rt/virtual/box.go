package virtual

import (
	"slices"
	"time"

	"lockstep/io/can"
	"lockstep/io/wire"
	"lockstep/rt/box"
	"lockstep/rt/ecu"
)

// virtualBox is the box of a bus by wire in virtual time, between the loop and the wires of a virtual control unit.
type virtualBox struct {
	box.Box
	bus   int
	end   *can.Bus
	times *can.Times // arrivals of its messages

	image    wire.Outgoing
	measured wire.Image
	take     []uint32 // messages of the box that the bench receives
	frames   [32]can.Frame
}

// newBox returns the box of the first bus by wire of the bench; nil: there is none.
func newBox(w *simulation) *virtualBox {
	h := w.view.Handover
	for i := range h.Bench.Buses {
		if !h.Bench.Buses[i].ByWire || w.unitEnds[i] == nil {
			continue
		}
		x := &virtualBox{bus: i, end: w.unitEnds[i], times: w.buses[i].Times}
		for _, id := range wire.Received {
			if slices.ContainsFunc(h.LogFilters(i), func(f can.Filter) bool { return id&f.Mask == f.ID&f.Mask }) {
				x.take = append(x.take, id)
			}
		}
		return x
	}
	return nil
}

// receive takes the messages of the loop at a grid point as an image. Without messages the wheels go on.
func (x *virtualBox) receive(now time.Duration) {
	for n := x.end.Recv(x.frames[:]); n > 0; n = x.end.Recv(x.frames[:]) {
		for i := range n {
			x.image.Put(x.frames[i].ID, &x.frames[i].Data)
		}
	}
	x.image.Tick = int64(now)
	x.image.Finish()
	x.Take(&x.image.Image, now)
}

// drive gives the unit the edges and lines of the period before a grid point, with its cycles in between.
func (x *virtualBox) drive(u *ecu.Stepped, begun, due time.Duration) error {
	x.SetLines(u)
	for _, e := range x.Edges(due) {
		if err := u.Tick(e.At - begun); err != nil {
			return err
		}
		u.Edge(e.Wheel, e.At-begun, e.Word)
	}
	return nil
}

// measure sends the duties of the outputs as they are at an instant; nil: the unit has no supply.
func (x *virtualBox) measure(u *ecu.Stepped, now time.Duration) {
	m := &x.measured
	box.Measure(m, u)
	m.Tick = int64(now)
	for _, id := range x.take {
		f := can.Frame{ID: id}
		if f.Len = m.Message(id, &f.Data); f.Len > 8 {
			f.Flags = can.FlagFDF
		}
		if x.end.Send(&f) {
			x.times.Add(int64(now))
		}
	}
	m.Counter++
}
