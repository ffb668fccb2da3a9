// Package ecu owns the virtual control units: programs that sit on the other
// side of the bus and behave as the real unit would. It is the second, independent
// implementation of what is on the wire, built on github.com/brutella/can with its
// own packing of the frames; it imports nothing of the target and is no part of it.
package ecu

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/brutella/can"
)

// Names lists the control units there are.
func Names() []string { return []string{"powershift"} }

const (
	cycle   = 10 * time.Millisecond // of the pressure frames
	silence = time.Second           // without Speeds after which the unit falls asleep
	doubt   = 20                    // Status frames that contradict the unit before it says so
)

// Powershift is the transmission control unit of the powershift gearbox. It
// sleeps until it hears a Speeds frame (0x200); from then on it sends the two
// pressure frames (0x110, 0x111) every 10 ms and shifts by time and speed. Its
// clock starts with that frame. After a second without Speeds it stops sending
// and sleeps again: the next drive starts anew.
//
// A read from bus must return one frame, a write must take one. Frames that are
// not 16 bytes long are counted and left out. Powershift returns nil when stop or
// the bus is closed, and an error when the bus fails; it closes bus in any case.
// A reader that the bus does not wake on Close ends with the next frame.
func Powershift(bus io.ReadWriteCloser, log io.Writer, stop <-chan struct{}) error {
	framed := &whole{ReadWriteCloser: bus}
	s := session{line: can.NewReadWriteCloser(framed), unit: unit{log: log}}
	done := make(chan struct{})
	defer bus.Close()
	defer close(done)

	frames, failed := make(chan can.Frame), make(chan error, 1)
	go func() { failed <- receive(s.line, frames, done) }()
	go func() { // ends a write that waits for room
		select {
		case <-stop:
			bus.Close()
		case <-done:
		}
	}()

	fmt.Fprintln(log, "powershift: waiting for Speeds (0x200)")
	ticker := time.NewTicker(cycle)
	defer ticker.Stop()
	var err error
	for err == nil {
		select {
		case <-stop:
			err = io.EOF
		case err = <-failed:
		case f := <-frames:
			s.hear(&f, time.Now())
		case <-ticker.C:
			err = s.tick(time.Now())
		}
	}
	fmt.Fprintf(log, "powershift: %d cycles sent, %d missed, %d frames dropped, %d frames heard, %d malformed, %d lost by their counters\n",
		s.cycles, s.missed, s.dropped, s.heard, s.short+framed.malformed.Load(), s.lost)
	return ending(err)
}

// receive hands on the frames that concern the unit until the bus ends; it
// always returns an error.
//
// It takes the place of can.Bus.ConnectAndPublish, which never returns when a
// reader keeps saying io.EOF.
func receive(line can.Reader, frames chan<- can.Frame, done <-chan struct{}) error {
	for {
		var f can.Frame
		if err := line.ReadFrame(&f); err != nil {
			return err
		}
		if f.ID != idSpeeds && f.ID != idStatus {
			continue
		}
		select {
		case frames <- f:
		case <-done:
			return io.EOF
		}
	}
}

// ending turns the error that ended a session into Powershift's own.
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

// session is one unit on one bus.
type session struct {
	unit  unit
	line  can.ReadWriteCloser
	awake bool
	start time.Time // of the drive
	last  time.Time // latest Speeds frame
	ticks time.Time // latest tick
	w     [4]float64
	fresh bool  // w came after the latest tick
	count uint8 // rolling counter, of both frames
	speed rolling
	state rolling

	contradicted int // consecutive Status frames that deny the gear
	cycles       uint64
	missed       uint64 // cycles that should have been sent while awake
	dropped      uint64 // frames the bus did not take
	heard        uint64 // Speeds and Status frames
	short        uint64 // of these the ones without eight bytes
	lost         uint64 // Speeds and Status frames that their counters say are missing, modulo 16
}

// hear takes a frame from the bus.
func (s *session) hear(f *can.Frame, now time.Time) {
	s.heard++
	if state, ok := decodeStatus(f); ok {
		s.lost += s.state.missing(f)
		s.compare(state)
		return
	}
	w, ok := decodeSpeeds(f)
	if !ok {
		s.short++
		return
	}
	if !s.awake && f.Data[7]>>4 == 0 {
		s.speed, s.state = rolling{}, rolling{} // another bench begins
	}
	s.lost += s.speed.missing(f)
	s.w, s.fresh, s.last = w, true, now
	if !s.awake {
		s.awake, s.start, s.ticks = true, now, now
		s.unit.begin(w)
	}
}

// compare reports a gear that the speeds confirm and the bench denies.
func (s *session) compare(state [8]int8) {
	for _, clutch := range s.unit.gear {
		if s.awake && !s.unit.busy && state[clutch-1] != 0 {
			s.contradicted++
			if s.contradicted == doubt {
				fmt.Fprintf(s.unit.log, "powershift: gear %v should be engaged, but Status (0x202) says clutch %d is not\n",
					s.unit.gear, clutch)
			}
			return
		}
	}
	s.contradicted = 0
}

// tick is one cycle of 10 ms.
func (s *session) tick(now time.Time) error {
	if s.awake && now.Sub(s.last) > silence {
		fmt.Fprintf(s.unit.log, "powershift: no Speeds (0x200) for %v, pressures no longer sent\n", silence)
		s.awake = false
	}
	if !s.awake {
		return nil
	}
	if passed := math.Round(float64(now.Sub(s.ticks)) / float64(cycle)); passed > 1 {
		s.missed += uint64(passed) - 1
	}
	s.ticks = now
	p := s.unit.step(now.Sub(s.start).Seconds(), s.w, s.fresh)
	s.fresh = false
	s.cycles++
	count := s.count
	s.count++
	if err := s.send(encode(idPressure1, [4]float64(p[:4]), count)); err != nil {
		return err
	}
	return s.send(encode(idPressure2, [4]float64(p[4:]), count))
}

func (s *session) send(f can.Frame) error {
	err := s.line.WriteFrame(f)
	if errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EAGAIN) {
		s.dropped++ // as a controller with a full queue would
		return nil
	}
	return err
}

// whole lets only reads of 16 bytes pass, the size of a classic CAN frame:
// can.ReadFrame takes a short one for the end of the bus.
type whole struct {
	io.ReadWriteCloser
	malformed atomic.Uint64
}

func (r *whole) Read(b []byte) (int, error) {
	for {
		n, err := r.ReadWriteCloser.Read(b)
		if err != nil || n == 16 {
			return n, err
		}
		r.malformed.Add(1)
	}
}
