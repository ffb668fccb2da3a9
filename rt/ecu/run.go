// Package ecu owns the virtual control units: programs at the other end of the bus that behave as
// the real unit would. It is a second, independent implementation of the frames, built
// on github.com/brutella/can with its own packing. It does not import any other
// package of lockstep but its own diagnosis, nor do its tests, and the ticking process does not use it.
//
// A unit is a control law: frames and cycles, no clock. Run connects a unit to a bus and the clock of
// the host; the caller of a Stepped gives it the instants.
//
// Reading order: run.go (Run, law), session.go (common part and counts of all units; Stepped),
// powershift.go (a gearbox; its diagnosis: powershifttrouble.go), transmission.go (gears of the others) with truck.go (SAE J1939), automatic.go (E2E)
// and eightspeed.go (shifts from clutch to clutch), dct.go (two clutches; its diagnosis: dcttrouble.go),
// trucknode.go (address and diagnosis on SAE J1939) with amt.go and amtshift.go (an automated manual gearbox),
// plausibility.go and trouble.go (checks of the inputs of automatic, its diagnosis),
// brake.go with abs.go and wsp.go (brakes and their sensors; their diagnosis: braketrouble.go), esc.go with
// escwire.go and capture.go (its wheel speeds and valves by wire), settings.go (parameters of a unit), open.go
// (its bus), packing.go (bits of frames), network.go (ignition, after-run, network management).
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

// law is the control law of a unit. It has no clock; the times of its calls never decrease.
type law interface {
	receive(f *can.Frame, now time.Time)
	step(t, dt float64) []can.Frame // runs one cycle, see session.cycle, and returns the frames to send
	summary() string                // text after the counts in the last line
	parameters() []Parameter        // parameters, to be set before the first frame
}

// networked is the law of a unit that takes part in the network management: network runs a cycle of it, asleep or
// not, and returns the frames to send.
type networked interface {
	network(now time.Time) []can.Frame
}

// unitType is a type of control unit.
type unitType struct {
	name        string
	period      time.Duration // period of its cycles
	identifiers []uint32      // identifiers that the unit receives
	wakeFrame   string        // frame that wakes the unit
	newLaw      func(*session) law
}

// unitTypes lists the control units.
func unitTypes() []unitType {
	return []unitType{
		{"powershift", cycle, []uint32{idSpeeds, idStatus}, "Speeds (0x200)", newPowershift},
		{"truck", cycle, truckIdentifiers(), "ShaftSpeeds (0CFF0180)", newTruck},
		{"amt12", cycle, truckIdentifiers(idEEC1, idShiftSensors), "ShaftSpeeds (0CFF0180)", newAmt},
		{"automatic", cycle, []uint32{idShaftSpeeds, idPedals, idGearboxOil, idNMBench}, "ShaftSpeeds (0x210)", newAutomatic},
		{"hp8", cycle, []uint32{idShaftSpeeds, idPedals, idGearboxOil, idEngineTorque, idNMBench}, "ShaftSpeeds (0x210)", newEightSpeed},
		{"dct7", cycle, []uint32{idDctSpeeds, idDctRails, idDctDriver, idDctTemperatures}, "DctSpeeds (0x220)", newDct},
		{"abs", brakeCycle, absWiring.identifiers(), "WheelSpeeds (0x1A0)", newAbs},
		{"esc", brakeCycle, []uint32{idEscWheels, idEscMotion, idEscDriver}, "EscMotion (0x1B1)", newEsc},
		{"wsp", brakeCycle, wspWiring.identifiers(), "AxleSpeeds (0x1A8)", newWsp},
	}
}

// Names lists the names of the control units.
func Names() (names []string) {
	for _, k := range unitTypes() {
		names = append(names, k.name)
	}
	return names
}

// findType returns the control unit called name.
func findType(name string) (unitType, error) {
	list := unitTypes()
	i := slices.IndexFunc(list, func(k unitType) bool { return k.name == name })
	if i < 0 {
		return unitType{}, fmt.Errorf("ecu: no control unit %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return list[i], nil
}

// Wires are what is at the pins of a unit with wires, in real time.
type Wires interface {
	Drive(u *Stepped, now time.Duration)   // gives the unit lines and edges until now, before a cycle
	Measure(u *Stepped, now time.Duration) // takes its outputs after the cycle
}

// Run runs the control unit called name on a bus, in real time, with wires or nil. It writes its messages to log; the
// last line has the counts.
//
// A read from bus must return one frame, a write must take one. Run returns nil when stop or the bus
// is closed, and an error when the bus fails; it always closes bus. If closing the bus does not end a
// read, the reading goroutine ends with the next frame.
func Run(name string, bus io.ReadWriteCloser, wires Wires, log io.Writer, stop <-chan struct{}, settings ...Setting) error {
	defer bus.Close()
	unit, err := NewStepped(name, bus, log, settings...)
	if err != nil {
		return err
	}
	if wires != nil && !unit.Connect() {
		return fmt.Errorf("ecu: control unit %s has no wires", name)
	}
	done := make(chan struct{})
	defer close(done)

	packets, failed := make(chan []byte), make(chan error, 1)
	go func() { failed <- receive(bus, packets, done) }()
	go func() { // ends a blocked write, but lets a cycle at hand send its frames: it counts as sent
		select {
		case <-stop:
		case <-done:
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
			bus.Close()
		case <-done:
		}
	}()

	begun := time.Now()
	ticker := time.NewTicker(unit.period)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-stop: // comes before a cycle that is due
			err = io.EOF
			continue
		default:
		}

		var answer <-chan time.Time
		if wait := unit.answerDue() - time.Since(begun); wait < unit.period {
			answer = time.After(wait)
		}
		select {
		case <-stop:
			err = io.EOF
		case err = <-failed:
		case packet := <-packets:
			unit.Receive(packet, time.Since(begun))
		case <-answer:
			err = unit.answer(time.Since(begun))
		case <-ticker.C:
			now := time.Since(begun)
			if wires != nil { // on a grid: a late wake-up moves neither the cycle nor the edges before it
				now = now.Truncate(unit.period)
				wires.Drive(unit, now)
			}
			err = unit.tick(now)
			if wires != nil {
				wires.Measure(unit, now)
			}
		}
	}

	unit.Close()
	return exitError(err)
}

// frameSize is the size of a classic CAN frame on the wire of a socket, bytes.
const frameSize = 16

// receive passes on the frames read from the bus until the bus ends; it always returns an error.
func receive(bus io.Reader, packets chan<- []byte, done <-chan struct{}) error {
	for {
		packet := make([]byte, frameSize+1) // one byte more shows a longer packet
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

// exitError returns the error of Run for the error that ended a unit.
func exitError(err error) error {
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
