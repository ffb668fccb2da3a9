package unit

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/brutella/can"
)

// Stepped is a control unit without a clock: its caller gives it the instants, and its output depends
// only on its calls. It is not safe for concurrent use.
type Stepped struct {
	base *Base
	law  Law
	next time.Duration // time of the next cycle
	now  time.Duration // instant of the frames sent
}

// NewStepped returns a control unit of a type at instant 0. It writes its frames to line, each in
// one write of 16 bytes, and its messages to log.
func NewStepped(kind Type, line io.Writer, log io.Writer, settings ...Setting) (*Stepped, error) {
	base := &Base{kind: kind, line: can.NewReadWriteCloser(writeOnly{line}), log: log}
	s := &Stepped{base: base, law: kind.New(base), next: kind.Period, now: kind.Period}
	if err := set(kind.Name, s.law.Parameters(), settings); err != nil {
		return nil, err
	}
	base.Logf("waiting for %s", kind.WakeFrame)
	return s, nil
}

// Receive handles a frame read from the bus at the time now since the start. Call Tick first for the
// cycles due before. A packet that is not 16 bytes long is counted as malformed.
func (s *Stepped) Receive(packet []byte, now time.Duration) {
	var f can.Frame
	if len(packet) != frameSize || can.Unmarshal(packet, &f) != nil {
		s.base.Counts.Malformed++
		return
	}

	if s.base.Server != nil && s.base.Server.Receive(f.ID, f.Data[:min(f.Length, 8)], now) {
		return
	}
	if slices.Contains(s.base.kind.Identifiers, f.ID) {
		s.law.Receive(&f, instant(now))
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
			s.next += s.base.kind.Period
		}
		s.now = s.next
	}

	return nil
}

// Now returns the instant of the frame at hand, during Tick.
func (s *Stepped) Now() time.Duration { return s.now }

// answerDue returns the instant at which the diagnosis has something to send; a distant one if it has nothing.
func (s *Stepped) answerDue() time.Duration {
	if s.base.Server == nil {
		return math.MaxInt64
	}
	return s.base.Server.Due()
}

// answer sends the answers of the diagnosis that are due.
func (s *Stepped) answer(now time.Duration) error {
	if s.answerDue() > now {
		return nil
	}
	return s.base.Server.Advance(now)
}

// tick runs one cycle.
func (s *Stepped) tick(now time.Duration) error {
	if n, ok := s.law.(Networked); ok {
		for _, f := range n.Network(instant(now)) {
			if err := s.base.Send(f); err != nil {
				return err
			}
		}
	}
	t, dt, ok := s.base.cycle(instant(now))
	if !ok {
		return nil
	}
	for _, f := range s.law.Step(t, dt) {
		if err := s.base.Send(f); err != nil {
			return err
		}
	}

	return nil
}

// Close writes the unit's last line to the log and returns it.
func (s *Stepped) Close() string {
	text := fmt.Sprintf("%s: %v%s", s.base.kind.Name, s.base.Counts, s.law.Summary())
	fmt.Fprintln(s.base.log, text)
	return text
}

// Connect connects the wires of the unit, before the first frame, and reports whether the unit has any.
func (s *Stepped) Connect() bool {
	w, ok := s.law.(Wired)
	if ok {
		w.Connect()
	}
	return ok
}

// Edge gives the unit an edge of a wheel-speed sensor, with the data word of the AK protocol, at the time at since the
// start. Call Tick first for the cycles due before.
func (s *Stepped) Edge(wheel int, at time.Duration, word uint16) {
	s.law.(Wired).Edge(wheel, instant(at), word)
}

// SetLine sets the state of the line of a wheel-speed sensor.
func (s *Stepped) SetLine(wheel int, state Line) { s.law.(Wired).SetLine(wheel, state) }

// Duties returns the duties, 0 to 1, of the outputs of the unit, valves and pump, in the order of its channels.
func (s *Stepped) Duties() []float64 { return s.law.(Wired).Duties() }

// instant converts a time since the start to the time of a law.
func instant(t time.Duration) time.Time { return time.Unix(0, 0).Add(t) }

// writeOnly is a line without a reader.
type writeOnly struct{ io.Writer }

func (writeOnly) Read([]byte) (int, error) { return 0, io.EOF }
func (writeOnly) Close() error             { return nil }
