package virtual

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
	"lockstep/rt/network"
	"lockstep/rt/unitprogram"
)

// unit is the control unit of a bench in virtual time, at the other ends of its buses.
type unit interface {
	advance(due time.Duration) error                        // sends the frames of the time before a grid point
	receive(bus int, end *can.Bus, now time.Duration) error // takes the frames that the loop sent at a grid point
	close(failed bool) (line string, err error)             // ends the unit once, and returns its last line
	output() string                                         // output to be shown with the report
}

// startUnit starts the control unit of the bench; a log at every end takes its place.
func (w *simulation) startUnit() (err error) {
	b := w.view.Handover.Bench
	if b.Unit.Text == "" {
		return nil
	}
	if b.Program == nil {
		w.unit, err = newVirtualUnit(w)
		return err
	}
	hasEnd := func(bus int) bool { return w.unitEnds[bus] != nil }
	used := false
	for i := range b.Buses {
		used = used || hasEnd(i)
	}
	if !used {
		return nil
	}
	s, err := unitprogram.SpecOf(b, hasEnd)
	if err != nil {
		return err
	}
	p, err := unitprogram.Start(s, w.unitEnds, func() bool { return len(w.stop) > 0 })
	if p != nil {
		w.unit = &programUnit{p: p}
		p.Sent = func(bus int, at int64) { w.buses[bus].Times.Add(at) }
	}
	return err
}

// virtualUnit is a virtual control unit, or none.
type virtualUnit struct {
	*ecu.Stepped               // nil: none, or without supply, and frames are dropped
	begun        time.Duration // start of the unit, or its last start with supply
	bus          int           // index of its bus
	box          *virtualBox   // between its wires and a bus by wire; nil: it has no wires
	log          host.Capture
	frame        [128]byte
}

// newVirtualUnit starts the virtual control unit of a bench on its first pair, or without one on the
// first bus.
func newVirtualUnit(w *simulation) (*virtualUnit, error) {
	u, b := &virtualUnit{}, w.view.Handover.Bench
	for i := range b.Buses {
		if b.HasUnit(i) {
			u.bus = i
		}
	}
	if w.unitEnds[u.bus] == nil { // a log in its place
		return u, nil
	}
	u.box = newBox(w)
	return u, u.start(w, 0)
}

// start starts the unit at an instant.
func (u *virtualUnit) start(w *simulation, now time.Duration) (err error) {
	b := w.view.Handover.Bench
	u.begun = now
	u.Stepped, err = ecu.NewStepped(b.Unit.Text, unitWriter{u, w.unitEnds[u.bus].Fd(), w.buses[u.bus].Times}, &u.log, b.Settings...)
	if err == nil && u.box != nil && !u.Connect() {
		u.box = nil
	}
	return err
}

// switchSupply takes the supply from the virtual control unit, or starts it again, as the loop has said at an instant.
// A voltage is on. The switch of the bench file is not used in virtual time.
func (w *simulation) switchSupply(now time.Duration) error {
	s, ok := w.view.Status.NextSupply(w.supplies)
	if !ok {
		return nil
	}
	w.supplies++
	u, virtual := w.unit.(*virtualUnit)
	switch on := network.Supply(s) != network.SupplyOff; {
	case !virtual || w.unitEnds[u.bus] == nil:
		return errors.New("sim: power: in virtual time the supply of a virtual control unit only can be switched")
	case !on && u.Stepped != nil:
		u.Close()
		u.Stepped = nil
	case on && u.Stepped == nil:
		return u.start(w, now)
	}
	return nil
}

// unitWriter writes frames of the control unit to its bus. A full bus refuses a frame, as a
// controller does.
type unitWriter struct {
	u     *virtualUnit
	fd    int
	times *can.Times // arrivals of its frames
}

func (e unitWriter) Write(b []byte) (int, error) {
	n, err := unix.SendmsgN(e.fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if err == nil {
		e.times.Add(int64(e.u.begun + e.u.Now()))
	}
	return n, err
}

func (u *virtualUnit) advance(due time.Duration) error {
	if u.Stepped != nil {
		if u.box != nil {
			if err := u.box.drive(u.Stepped, u.begun, due); err != nil {
				return err
			}
		}
		if err := u.Tick(due - 1 - u.begun); err != nil {
			return err
		}
	}
	if u.box != nil {
		u.box.measure(u.Stepped, due-1)
	}
	return nil
}

func (u *virtualUnit) receive(bus int, end *can.Bus, now time.Duration) error {
	if u.box != nil && bus == u.box.bus {
		u.box.receive(now)
		return nil
	}
	for {
		n, _, err := unix.Recvfrom(end.Fd(), u.frame[:], unix.MSG_DONTWAIT)
		if err != nil || n == 0 {
			return nil
		}
		if u.Stepped != nil && bus == u.bus {
			u.Receive(u.frame[:n], now-u.begun)
		}
	}
}

func (u *virtualUnit) close(failed bool) (string, error) {
	if u.Stepped == nil || failed {
		return "", nil
	}
	return u.Close(), nil
}

func (u *virtualUnit) output() string { return "" }

// programUnit is a program in virtual time.
type programUnit struct {
	p      *unitprogram.Stepped
	frames [32]can.Frame
	closed bool
}

func (u *programUnit) advance(due time.Duration) error { return u.p.Advance(int64(due)) }

func (u *programUnit) receive(bus int, end *can.Bus, now time.Duration) error {
	for n := end.Recv(u.frames[:]); n > 0; n = end.Recv(u.frames[:]) {
		for i := range n {
			if err := u.p.Receive(bus, &u.frames[i], int64(now)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *programUnit) close(failed bool) (string, error) {
	if u.closed {
		return "", nil
	}
	u.closed = true
	return u.p.Close(failed)
}

func (u *programUnit) output() string { return string(u.p.Output.Bytes()) }
