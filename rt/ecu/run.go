// Package ecu owns the virtual control units: programs at the other end of the bus that behave as
// the real unit would. It is the second, independent implementation of what is on the wire, built
// on github.com/brutella/can with its own packing of the frames. It does not import any other
// package of lockstep, nor do its tests, and the ticking process does not use it.
//
// A unit is a law: frames and cycles, no clock. Run gives a unit a bus and the host's clock; the
// caller of a Stepped gives it the instants.
//
// Reading order: run.go (Run, law), powershift.go with unit.go and wire.go (a gearbox), truck.go
// with truck_wire.go (SAE J1939), abs.go and wsp.go with sensor.go and duty.go (brakes).
// stepped.go is Stepped, settings.go the numbers that tune a unit, counts.go what a unit reports,
// open.go its bus.
package ecu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/brutella/can"
)

// law is what a control unit does with the frames it hears and in every cycle. It has
// no clock: the instants it is told never go back.
type law interface {
	hear(f *can.Frame, now time.Time)
	tick(now time.Time) error // one cycle; the error is the bus's
	counted() *Counts         // so far
	result() string           // what its last line says after the counts
	parameters() []Parameter  // what can be set before it hears anything
}

// kind is a control unit that there is.
type kind struct {
	name  string
	cycle time.Duration // of law.tick
	hears []uint32      // the identifiers it listens to
	waits string        // for what, before it does anything
	begin func(line can.Writer, log io.Writer) law
}

// kinds lists the control units.
func kinds() []kind {
	return []kind{
		{"powershift", cycle, []uint32{idSpeeds, idStatus}, "Speeds (0x200)", newPowershift},
		{"truck", cycle, truckHears(), "ShaftSpeeds (0CFF0180)", newTruck},
		{"abs", brakeCycle, []uint32{idWheelSpeeds, idChassis, idPulsesFront, idPulsesRear}, "WheelSpeeds (0x1A0)", newAbs},
		{"wsp", brakeCycle, []uint32{idAxleSpeeds, idDemand, idBogie1, idBogie2}, "AxleSpeeds (0x1A8)", newWsp},
	}
}

// make makes the law with its settings.
func (k *kind) make(line can.Writer, log io.Writer, settings []Setting) (law, error) {
	unit := k.begin(line, log)
	return unit, set(k.name, unit.parameters(), settings)
}

// Names lists the control units there are.
func Names() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// find returns the kind called name.
func find(name string) (kind, error) {
	list := kinds()
	i := slices.IndexFunc(list, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, problemf(ErrUnknown, "ecu: no control unit %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return list[i], nil
}

// Run is the control unit called name on a bus, in real time. What it says goes to
// log; its last line sums up.
//
// A read from bus must return one frame, a write must take one. Frames that are
// not 16 bytes long are counted and left out. Run returns nil when stop or the bus
// is closed, and an error when the bus fails; it closes bus in any case. A reader
// that the bus does not wake on Close ends with the next frame.
func Run(name string, bus io.ReadWriteCloser, log io.Writer, stop <-chan struct{}, settings ...Setting) error {
	defer bus.Close()
	k, err := find(name)
	if err != nil {
		return err
	}
	framed := &whole{ReadWriteCloser: bus}
	line := can.NewReadWriteCloser(framed)
	unit, err := k.make(line, log, settings)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)

	frames, failed := make(chan can.Frame), make(chan error, 1)
	go func() { failed <- k.receive(line, frames, done) }()
	go func() { // ends a write that waits for room
		select {
		case <-stop:
			bus.Close()
		case <-done:
		}
	}()

	fmt.Fprintf(log, "%s: waiting for %s\n", k.name, k.waits)
	ticker := time.NewTicker(k.cycle)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-stop:
			err = io.EOF
		case err = <-failed:
		case f := <-frames:
			unit.hear(&f, time.Now())
		case <-ticker.C:
			err = unit.tick(time.Now())
		}
	}
	fmt.Fprintln(log, k.lastLine(unit, framed.malformed.Load()))
	return ending(err)
}

// receive hands on the frames that concern the unit until the bus ends; it
// always returns an error.
//
// It takes the place of can.Bus.ConnectAndPublish, which never returns when a
// reader keeps saying io.EOF.
func (k *kind) receive(line can.Reader, frames chan<- can.Frame, done <-chan struct{}) error {
	for {
		var f can.Frame
		if err := line.ReadFrame(&f); err != nil {
			return err
		}
		if !slices.Contains(k.hears, f.ID) {
			continue
		}
		select {
		case frames <- f:
		case <-done:
			return io.EOF
		}
	}
}

// ending turns the error that ended a unit into Run's own.
func ending(err error) error {
	for _, closed := range []error{io.EOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, closed) {
			return nil
		}
	}
	if errors.Is(err, syscall.ENETDOWN) {
		return fmt.Errorf("ecu: %w while the unit was running: %w", ErrDown, err)
	}
	return fmt.Errorf("ecu: %w", err)
}

// frameSize is the size of a classic CAN frame on the wire of a socket, bytes.
const frameSize = 16

// whole lets only reads of 16 bytes pass, the size of a classic CAN frame:
// can.ReadFrame takes a short one for the end of the bus.
type whole struct {
	io.ReadWriteCloser
	malformed atomic.Uint64
}

func (r *whole) Read(b []byte) (int, error) {
	for {
		n, err := r.ReadWriteCloser.Read(b)
		if err != nil || n == frameSize {
			return n, err
		}
		r.malformed.Add(1)
	}
}
