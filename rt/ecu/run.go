// Package ecu owns the virtual control units: programs at the other end of the bus that behave as
// the real unit would. It is a second, independent implementation of the frames, built
// on github.com/brutella/can with its own packing. It does not import any other
// package of lockstep, nor do its tests, and the ticking process does not use it.
//
// A unit is a law: frames and cycles, no clock. Run gives a unit a bus and the host's clock; the
// caller of a Stepped gives it the instants.
//
// Reading order: run.go (Run, law), session.go (common parts and counters of all units;
// Stepped), powershift.go (a gearbox), truck.go (SAE J1939), brake.go with abs.go and wsp.go
// (brakes and their sensors). settings.go has the parameters of a unit, open.go its bus,
// packing.go the bits of frames.
package ecu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/brutella/can"
)

// law is what a control unit does with the frames it hears and in every cycle. It has
// no clock: the instants it is told never go back.
type law interface {
	hear(f *can.Frame, now time.Time)
	step(t, dt float64) []can.Frame // one cycle, see session.cycle: what is to be sent
	result() string                 // what its last line says after the counts
	parameters() []Parameter        // what can be set before it hears anything
}

// kind is a control unit that there is.
type kind struct {
	name   string
	period time.Duration // of its cycles
	hears  []uint32      // the identifiers it listens to
	waits  string        // for what, before it does anything
	begin  func(*session) law
}

// kinds lists the control units.
func kinds() []kind {
	return []kind{
		{"powershift", cycle, []uint32{idSpeeds, idStatus}, "Speeds (0x200)", newPowershift},
		{"truck", cycle, truckHears(), "ShaftSpeeds (0CFF0180)", newTruck},
		{"abs", brakeCycle, absWiring.hears(), "WheelSpeeds (0x1A0)", newAbs},
		{"wsp", brakeCycle, wspWiring.hears(), "AxleSpeeds (0x1A8)", newWsp},
	}
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
		return kind{}, fmt.Errorf("ecu: no control unit %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return list[i], nil
}

// Run is the control unit called name on a bus, in real time. What it says goes to
// log; its last line sums up.
//
// A read from bus must return one frame, a write must take one. Run returns nil when stop or
// the bus is closed, and an error when the bus fails; it closes bus in any case. A reader
// that the bus does not wake on Close ends with the next frame.
func Run(name string, bus io.ReadWriteCloser, log io.Writer, stop <-chan struct{}, settings ...Setting) error {
	defer bus.Close()
	unit, err := NewStepped(name, bus, log, settings...)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)

	packets, failed := make(chan []byte), make(chan error, 1)
	go func() { failed <- receive(bus, packets, done) }()
	go func() { // ends a write that waits for room
		select {
		case <-stop:
			bus.Close()
		case <-done:
		}
	}()

	begun := time.Now()
	ticker := time.NewTicker(unit.period)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-stop:
			err = io.EOF
		case err = <-failed:
		case packet := <-packets:
			unit.Hear(packet, time.Since(begun))
		case <-ticker.C:
			err = unit.tick(time.Since(begun))
		}
	}

	unit.Close()
	return ending(err)
}

// frameSize is the size of a classic CAN frame on the wire of a socket, bytes.
const frameSize = 16

// receive hands on what is read from the bus until the bus ends; it always returns an error.
func receive(bus io.Reader, packets chan<- []byte, done <-chan struct{}) error {
	for {
		packet := make([]byte, frameSize+1) // a longer one is seen to be longer
		n, err := bus.Read(packet)
		if err != nil {
			return err
		}
		select {
		case packets <- packet[:n]:
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
		return fmt.Errorf("ecu: %w while the unit was running: %w", errDown, err)
	}
	return fmt.Errorf("ecu: %w", err)
}
