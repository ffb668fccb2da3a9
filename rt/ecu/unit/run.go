package unit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// ErrDown is the error of a bus whose CAN interface is down.
var ErrDown = errors.New("the CAN interface is down")

// Wires are what is at the pins of a unit with wires, in real time.
type Wires interface {
	Drive(u *Stepped, now time.Duration)   // gives the unit lines and edges until now, before a cycle
	Measure(u *Stepped, now time.Duration) // takes its outputs after the cycle
}

// Run runs a control unit of a type on a bus, in real time, with wires or nil. It writes its messages to log; the last
// line has the counts.
//
// A read from bus must return one frame, a write must take one. Run returns nil when stop or the bus
// is closed, and an error when the bus fails; it always closes bus. If closing the bus does not end a
// read, the reading goroutine ends with the next frame.
func Run(kind Type, bus io.ReadWriteCloser, wires Wires, log io.Writer, stop <-chan struct{}, settings ...Setting) error {
	defer bus.Close()
	u, err := NewStepped(kind, bus, log, settings...)
	if err != nil {
		return err
	}
	if wires != nil && !u.Connect() {
		return fmt.Errorf("ecu: control unit %s has no wires", kind.Name)
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
	ticker := time.NewTicker(kind.Period)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-stop: // comes before a cycle that is due
			err = io.EOF
			continue
		default:
		}

		var answer <-chan time.Time
		if wait := u.answerDue() - time.Since(begun); wait < kind.Period {
			answer = time.After(wait)
		}
		select {
		case <-stop:
			err = io.EOF
		case err = <-failed:
		case packet := <-packets:
			now := time.Since(begun)
			if wires != nil { // the ticker may be late: the cycle due before the frame comes first
				err = u.tickOnGrid(wires, now)
			}
			u.Receive(packet, now)
		case <-answer:
			err = u.answer(time.Since(begun))
		case <-ticker.C:
			if now := time.Since(begun); wires != nil {
				err = u.tickOnGrid(wires, now)
			} else {
				err = u.tick(now)
			}
		}
	}

	u.Close()
	return exitError(err)
}

// tickOnGrid runs the last cycle due until now, unless it has run: a unit with wires has its cycles on a grid, so that a
// late wake-up moves neither the cycle nor the edges before it.
func (s *Stepped) tickOnGrid(wires Wires, now time.Duration) error {
	if now < s.next {
		return nil
	}
	due := now.Truncate(s.base.kind.Period)
	s.next = due + s.base.kind.Period
	wires.Drive(s, due)
	err := s.tick(due)
	wires.Measure(s, due)
	return err
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

// exitError returns the error of Run for the error that ended a u.
func exitError(err error) error {
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
