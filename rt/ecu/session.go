package ecu

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/brutella/can"
)

// silence is how long a unit stays awake without the frame that it waits for.
const silence = time.Second

// session is what all control units have in common. A unit sleeps until the frame comes that it
// waits for, sends in cycles while that goes on, and counts.
type session struct {
	kind
	line  can.Writer
	log   io.Writer
	delay time.Duration // from waking up to the first cycle
	mute  bool          // it must not send

	awake  bool
	start  time.Time // when it woke up
	last   time.Time // latest frame that it waits for
	ticks  time.Time // latest cycle
	count  uint8     // rolling counter of the cycle that is sent
	counts Counts
}

// accept counts a frame, and reports whether it has eight bytes.
func (s *session) accept(f *can.Frame) bool {
	s.counts.Heard++
	if f.Length != 8 {
		s.counts.Malformed++
	}
	return f.Length == 8
}

// wake notes that the frame has come that the unit waits for, and reports whether the unit slept.
func (s *session) wake(now time.Time) bool {
	s.last = now
	if s.awake {
		return false
	}
	s.awake, s.start, s.ticks = true, now, now
	return true
}

// cycle begins a cycle: t is the time since the unit woke up and dt the one since the cycle
// before, s. There is none while the unit sleeps or is silent.
func (s *session) cycle(now time.Time) (t, dt float64, ok bool) {
	if s.awake && now.Sub(s.last) > silence {
		fmt.Fprintf(s.log, "%s: no %s for %v, nothing is sent\n", s.name, s.waits, silence)
		s.awake = false
	}

	if !s.awake || s.mute || now.Sub(s.start) < s.delay {
		s.ticks = now
		return 0, 0, false
	}

	passed := max(1, math.Round(float64(now.Sub(s.ticks))/float64(s.period)))
	s.counts.Missed += int64(passed) - 1
	s.ticks = now
	s.counts.Cycles++
	s.count = uint8(s.counts.Cycles - 1)
	return now.Sub(s.start).Seconds(), passed * s.period.Seconds(), true
}

// send puts a frame on the bus; one for which there is no room is dropped, as by a controller
// with a full queue.
func (s *session) send(f can.Frame) error {
	err := s.line.WriteFrame(f)
	if errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EAGAIN) {
		s.counts.Dropped++
		return nil
	}

	return err
}

// Counts is what a control unit has sent and heard. Its last line begins with them.
type Counts struct {
	Cycles    int64 // sent
	Missed    int64 // cycles that should have been sent while the unit was awake
	Dropped   int64 // frames that the bus did not take
	Heard     int64 // frames that concern the unit
	Malformed int64 // packets that are no frame, and frames of the wrong length
	Lost      int64 // frames that are missing by their counters, modulo 16
}

const countsForm = "%d cycles sent, %d missed, %d frames dropped, %d frames heard, %d malformed, %d lost by their counters"

func (c Counts) String() string {
	return fmt.Sprintf(countsForm, c.Cycles, c.Missed, c.Dropped, c.Heard, c.Malformed, c.Lost)
}

// ParseCounts reads the counts from the last line of a control unit, "NAME: ...".
func ParseCounts(line string) (c Counts, err error) {
	_, text, _ := strings.Cut(line, ": ")
	if _, err := fmt.Sscanf(text, countsForm, &c.Cycles, &c.Missed, &c.Dropped, &c.Heard, &c.Malformed, &c.Lost); err != nil {
		return Counts{}, fmt.Errorf("ecu: %q is not the last line of a control unit: %w", line, err)
	}
	return c, nil
}

// Stepped is a control unit on a clock that its owner keeps: nothing in it waits or
// runs by itself, and what it does is a function of what it is told. It is not safe
// for concurrent use.
type Stepped struct {
	*session
	unit law
	next time.Duration // of the next cycle
}

// NewStepped returns the control unit called name at instant 0. It writes its frames
// to line, each in one write of 16 bytes; what it says goes to log.
func NewStepped(name string, line io.Writer, log io.Writer, settings ...Setting) (*Stepped, error) {
	k, err := find(name)
	if err != nil {
		return nil, err
	}
	base := &session{kind: k, line: can.NewReadWriteCloser(oneWay{line}), log: log}
	s := &Stepped{session: base, unit: k.begin(base), next: k.period}
	if err := set(name, s.unit.parameters(), settings); err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "%s: waiting for %s\n", k.name, k.waits)
	return s, nil
}

// Hear takes what was read from the bus, a frame, at an instant since the start. The
// cycles due before it must have been done: see Tick. A packet that is not 16 bytes long is
// counted and left out.
func (s *Stepped) Hear(packet []byte, now time.Duration) {
	var f can.Frame
	if len(packet) != frameSize || can.Unmarshal(packet, &f) != nil {
		s.counts.Malformed++
		return
	}

	if slices.Contains(s.hears, f.ID) {
		s.unit.hear(&f, instant(now))
	}
}

// Tick does the cycles that are due until now, at the instants at which they are
// due. The error is that of a write.
func (s *Stepped) Tick(now time.Duration) error {
	for ; s.next <= now; s.next += s.period {
		if err := s.tick(s.next); err != nil {
			return ending(err)
		}
	}

	return nil
}

// tick does one cycle.
func (s *Stepped) tick(now time.Duration) error {
	t, dt, ok := s.cycle(instant(now))
	if !ok {
		return nil
	}
	for _, f := range s.unit.step(t, dt) {
		if err := s.send(f); err != nil {
			return err
		}
	}

	return nil
}

// Close writes the unit's last line to the log and returns it.
func (s *Stepped) Close() string {
	text := fmt.Sprintf("%s: %v%s", s.name, s.counts, s.unit.result())
	fmt.Fprintln(s.log, text)
	return text
}

// instant is a time since the start as a law is told it.
func instant(t time.Duration) time.Time { return time.Unix(0, 0).Add(t) }

// oneWay is a line that is only written to.
type oneWay struct{ io.Writer }

func (oneWay) Read([]byte) (int, error) { return 0, io.EOF }
func (oneWay) Close() error             { return nil }
