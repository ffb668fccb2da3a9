package ecu

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/brutella/can"
)

// Stepped is a control unit on a clock that its owner keeps: nothing in it waits or
// runs by itself, and what it does is a function of what it is told. It is not safe
// for concurrent use.
type Stepped struct {
	kind      kind
	unit      law
	log       io.Writer
	next      time.Duration // of the next cycle
	malformed uint64
}

// NewStepped returns the control unit called name at instant 0. It writes its frames
// to line, each in one write of 16 bytes that must not wait; what it says goes to log.
func NewStepped(name string, line io.Writer, log io.Writer, settings ...Setting) (*Stepped, error) {
	k, err := find(name)
	if err != nil {
		return nil, err
	}
	s := &Stepped{kind: k, log: log, next: k.cycle}
	if s.unit, err = k.make(can.NewReadWriteCloser(oneWay{line}), log, settings); err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "%s: waiting for %s\n", k.name, k.waits)
	return s, nil
}

// Hear takes what was read from the bus, a frame, at an instant since the start. The
// cycles due before it must have been done: see Tick.
func (s *Stepped) Hear(packet []byte, now time.Duration) {
	var f can.Frame
	if len(packet) != frameSize || can.Unmarshal(packet, &f) != nil {
		s.malformed++
		return
	}
	if slices.Contains(s.kind.hears, f.ID) {
		s.unit.hear(&f, instant(now))
	}
}

// Tick does the cycles that are due until now, at the instants at which they are
// due. The error is that of a write.
func (s *Stepped) Tick(now time.Duration) error {
	for ; s.next <= now; s.next += s.kind.cycle {
		if err := s.unit.tick(instant(s.next)); err != nil {
			return ending(err)
		}
	}
	return nil
}

// Close writes the unit's last line to the log and returns it.
func (s *Stepped) Close() string {
	text := s.kind.lastLine(s.unit, s.malformed)
	fmt.Fprintln(s.log, text)
	return text
}

// instant is a time since the start as a law is told it.
func instant(t time.Duration) time.Time { return time.Unix(0, 0).Add(t) }

// oneWay is a line that is only written to.
type oneWay struct{ io.Writer }

func (oneWay) Read([]byte) (int, error) { return 0, io.EOF }
func (oneWay) Close() error             { return nil }
