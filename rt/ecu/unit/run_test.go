package unit

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/brutella/can"
)

// clockedLaw notes the times of its calls.
type clockedLaw struct {
	base           *Base
	last           time.Time
	frames, cycles int
	back           time.Duration // largest step back
	off            time.Duration // largest distance of a cycle from the grid
}

func (l *clockedLaw) note(now time.Time) {
	l.back = max(l.back, l.last.Sub(now))
	l.last = now
}

func (l *clockedLaw) Receive(_ *can.Frame, now time.Time) {
	l.base.Wake(now)
	l.note(now)
	l.frames++
}

func (l *clockedLaw) Step(_, _ float64) []can.Frame {
	l.note(l.base.LastCycle)
	l.cycles++
	return nil
}

func (l *clockedLaw) Summary() string               { return "" }
func (l *clockedLaw) Parameters() []Parameter       { return nil }
func (l *clockedLaw) Connect()                      {}
func (l *clockedLaw) Edge(int, time.Time, uint16)   {}
func (l *clockedLaw) SetLine(int, Line)             {}
func (l *clockedLaw) Duties() []float64             { return nil }
func (l *clockedLaw) Drive(*Stepped, time.Duration) {}

func (l *clockedLaw) Measure(_ *Stepped, now time.Duration) {
	l.off = max(l.off, now%l.base.kind.Period)
}

// fullBus always has a frame to read until it is closed.
type fullBus struct {
	frame  []byte
	closed atomic.Bool
}

func (b *fullBus) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, io.EOF
	}
	return copy(p, b.frame), nil
}

func (b *fullBus) Write(p []byte) (int, error) { return len(p), nil }
func (b *fullBus) Close() error                { b.closed.Store(true); return nil }

// On a bus that is never silent frames come between a grid point and the wake-up for its cycle. A unit with wires runs
// the cycle, which has the time of the grid point, before them.
func TestTimesOfAUnitWithWiresNeverDecrease(t *testing.T) {
	frame, err := can.Marshal(can.Frame{ID: 1, Length: 8})
	if err != nil {
		t.Fatal(err)
	}
	law := &clockedLaw{}
	kind := Type{Name: "clocked", Period: time.Millisecond, Identifiers: []uint32{1}, New: func(b *Base) Law {
		law.base = b
		return law
	}}
	stop := make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() { close(stop) })
	if err := Run(kind, &fullBus{frame: frame}, law, io.Discard, stop); err != nil {
		t.Fatal(err)
	}
	if law.back > 0 || law.off > 0 || law.cycles < 10 || law.frames < 100 {
		t.Errorf("times go back by %v, cycles are %v off the grid, in %d cycles and %d frames", law.back, law.off, law.cycles, law.frames)
	}
}
