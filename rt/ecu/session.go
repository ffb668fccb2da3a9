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

	"lockstep/rt/ecu/diagnosis"
)

// wakeTimeout is the time without the wake-up frame after which a unit falls asleep.
const wakeTimeout = time.Second

// session is the common part of all control units. A unit sleeps until its wake-up frame comes, sends
// in cycles while the frame keeps coming, and counts frames.
type session struct {
	unitType
	line  can.Writer
	log   io.Writer
	delay time.Duration // time from wake-up to the first cycle
	mute  bool          // the unit must not send

	server *diagnosis.Server // nil: the unit has none

	awake     bool
	start     time.Time // time of the wake-up
	last      time.Time // time of the last wake-up frame
	lastCycle time.Time // time of the last cycle
	counter   uint8     // rolling counter of the present cycle
	counts    Counts
}

// countFrame counts a frame and reports whether it has eight bytes.
func (s *session) countFrame(f *can.Frame) bool {
	s.counts.Received++
	if f.Length != 8 {
		s.counts.Malformed++
	}
	return f.Length == 8
}

// wake handles a wake-up frame and reports whether the unit slept.
func (s *session) wake(now time.Time) bool {
	s.last = now
	if s.awake {
		return false
	}
	s.awake, s.start, s.lastCycle = true, now, now
	return true
}

// cycle starts a cycle: t is the time since the wake-up, s, dt the time since the previous cycle, s.
// ok is false while the unit sleeps, waits for its delay or is mute.
func (s *session) cycle(now time.Time) (t, dt float64, ok bool) {
	if s.awake && now.Sub(s.last) > wakeTimeout {
		fmt.Fprintf(s.log, "%s: no %s for %v, nothing is sent\n", s.name, s.wakeFrame, wakeTimeout)
		s.awake = false
	}

	if !s.awake || s.mute || now.Sub(s.start) < s.delay {
		s.lastCycle = now
		return 0, 0, false
	}

	passed := max(1, math.Round(float64(now.Sub(s.lastCycle))/float64(s.period)))
	s.counts.Missed += int64(passed) - 1
	s.lastCycle = now
	s.counts.Cycles++
	s.counter = uint8(s.counts.Cycles - 1)
	return now.Sub(s.start).Seconds(), passed * s.period.Seconds(), true
}

// send sends a frame. If the queue of the bus is full, the frame is dropped and counted.
func (s *session) send(f can.Frame) error {
	err := s.line.WriteFrame(f)
	if errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EAGAIN) {
		s.counts.Dropped++
		return nil
	}

	return err
}

// Counts are the counts of a control unit; its last line begins with them.
type Counts struct {
	Cycles    int64 // cycles sent
	Missed    int64 // cycles missed while the unit was awake
	Dropped   int64 // frames that the bus did not take
	Received  int64 `json:"Heard"` // frames received with an identifier of the unit
	Malformed int64 // packets that are no CAN frame, and frames of a wrong length or checksum
	Lost      int64 // frames missing by their counters, modulo 16
}

const countsFormat = "%d cycles sent, %d missed, %d frames dropped, %d frames received, %d malformed, %d lost by their counters"

func (c Counts) String() string {
	return fmt.Sprintf(countsFormat, c.Cycles, c.Missed, c.Dropped, c.Received, c.Malformed, c.Lost)
}

// ParseCounts reads the counts from the last line of a control unit, "NAME: ...".
func ParseCounts(line string) (c Counts, err error) {
	_, text, _ := strings.Cut(line, ": ")
	if _, err := fmt.Sscanf(text, countsFormat, &c.Cycles, &c.Missed, &c.Dropped, &c.Received, &c.Malformed, &c.Lost); err != nil {
		return Counts{}, fmt.Errorf("ecu: %q is not the last line of a control unit: %w", line, err)
	}
	return c, nil
}

// Stepped is a control unit without a clock: its caller gives it the instants, and its output depends
// only on its calls. It is not safe for concurrent use.
type Stepped struct {
	*session
	unit law
	next time.Duration // time of the next cycle
	now  time.Duration // instant of the frames sent
}

// NewStepped returns the control unit called name at instant 0. It writes its frames to line, each in
// one write of 16 bytes, and its messages to log.
func NewStepped(name string, line io.Writer, log io.Writer, settings ...Setting) (*Stepped, error) {
	k, err := findType(name)
	if err != nil {
		return nil, err
	}
	base := &session{unitType: k, line: can.NewReadWriteCloser(writeOnly{line}), log: log}
	s := &Stepped{session: base, unit: k.newLaw(base), next: k.period, now: k.period}
	if err := set(name, s.unit.parameters(), settings); err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "%s: waiting for %s\n", k.name, k.wakeFrame)
	return s, nil
}

// Receive handles a frame read from the bus at the time now since the start. Call Tick first for the
// cycles due before. A packet that is not 16 bytes long is counted as malformed.
func (s *Stepped) Receive(packet []byte, now time.Duration) {
	var f can.Frame
	if len(packet) != frameSize || can.Unmarshal(packet, &f) != nil {
		s.counts.Malformed++
		return
	}

	if s.server != nil && s.server.Receive(f.ID, f.Data[:min(f.Length, 8)], now) {
		return
	}
	if slices.Contains(s.identifiers, f.ID) {
		s.unit.receive(&f, instant(now))
	}
}

// Tick runs the cycles due until now and sends the answers of the diagnosis, each at its due time. The error is
// that of a write.
func (s *Stepped) Tick(now time.Duration) error {
	for min(s.next, s.answerDue()) <= now {
		s.now = min(s.next, s.answerDue())
		if err := s.answer(s.now); err != nil {
			return exitError(err)
		}
		if s.now == s.next {
			if err := s.tick(s.next); err != nil {
				return exitError(err)
			}
			s.next += s.period
		}
		s.now = s.next
	}

	return nil
}

// Now returns the instant of the frame at hand, during Tick.
func (s *Stepped) Now() time.Duration { return s.now }

// answerDue returns the instant at which the diagnosis has something to send; a distant one if it has nothing.
func (s *Stepped) answerDue() time.Duration {
	if s.server == nil {
		return math.MaxInt64
	}
	return s.server.Due()
}

// answer sends the answers of the diagnosis that are due.
func (s *Stepped) answer(now time.Duration) error {
	if s.answerDue() > now {
		return nil
	}
	return s.server.Advance(now)
}

// tick runs one cycle.
func (s *Stepped) tick(now time.Duration) error {
	if n, ok := s.unit.(networked); ok {
		for _, f := range n.network(instant(now)) {
			if err := s.send(f); err != nil {
				return err
			}
		}
	}
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
	text := fmt.Sprintf("%s: %v%s", s.name, s.counts, s.unit.summary())
	fmt.Fprintln(s.log, text)
	return text
}

// instant converts a time since the start to the time of a law.
func instant(t time.Duration) time.Time { return time.Unix(0, 0).Add(t) }

// writeOnly is a line without a reader.
type writeOnly struct{ io.Writer }

func (writeOnly) Read([]byte) (int, error) { return 0, io.EOF }
func (writeOnly) Close() error             { return nil }
