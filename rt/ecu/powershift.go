package ecu

import (
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"
	"time"

	"github.com/brutella/can"
)

const (
	cycle   = 10 * time.Millisecond // of the pressure frames
	silence = time.Second           // without Speeds after which the unit falls asleep
	doubt   = 20                    // Status frames that contradict the unit before it says so
)

// session is the transmission control unit of the powershift gearbox on one bus. It
// sleeps until it hears a Speeds frame (0x200); from then on it sends the two
// pressure frames (0x110, 0x111) every 10 ms and shifts by time and speed. Its
// clock starts with that frame. After a second without Speeds it stops sending
// and sleeps again: the next drive starts anew.
type session struct {
	unit  unit
	line  can.Writer
	awake bool
	start time.Time // of the drive
	last  time.Time // latest Speeds frame
	ticks time.Time // latest tick
	w     [4]float64
	fresh bool  // w came after the latest tick
	count uint8 // rolling counter, of both frames
	speed rolling
	state rolling

	contradicted int    // consecutive Status frames that deny the gear
	counts       Counts // Heard, Lost: Speeds and Status frames
}

func newPowershift(line can.Writer, log io.Writer) law {
	return &session{line: line, unit: unit{log: log}}
}

func (s *session) counted() *Counts { return &s.counts }
func (s *session) result() string   { return "" }

// hear takes a frame from the bus.
func (s *session) hear(f *can.Frame, now time.Time) {
	s.counts.Heard++
	if state, ok := decodeStatus(f); ok {
		s.counts.Lost += int64(s.state.missing(f))
		s.compare(state)
		return
	}
	w, ok := decodeSpeeds(f)
	if !ok {
		s.counts.Malformed++
		return
	}
	if !s.awake && f.Data[7]>>4 == 0 {
		s.speed, s.state = rolling{}, rolling{} // another bench begins
	}
	s.counts.Lost += int64(s.speed.missing(f))
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
		s.counts.Missed += int64(passed) - 1
	}
	s.ticks = now
	p := s.unit.step(now.Sub(s.start).Seconds(), s.w, s.fresh)
	s.fresh = false
	s.counts.Cycles++
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
		s.counts.Dropped++ // as a controller with a full queue would
		return nil
	}
	return err
}

func (s *session) parameters() []Parameter { return nil }
