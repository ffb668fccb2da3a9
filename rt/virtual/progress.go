package virtual

import (
	"os"
	"strconv"
	"time"

	"lockstep/sched"
)

// progress redraws one line of a terminal while a simulation lasts: the first
// time after a second. It does not allocate.
type progress struct {
	to     *os.File // nil: none
	length time.Duration

	next  int64 // ns of sched.Now
	ticks int
	shown bool
	line  [64]byte
}

func (p *progress) start() { p.next = sched.Now() + 1e9 }

// show draws the line where it is time to; ns is the simulated time.
func (p *progress) show(ns int64) {
	if p.ticks++; p.to == nil || p.ticks%64 != 0 || sched.Now() < p.next {
		return
	}
	p.next, p.shown = sched.Now()+2e8, true
	b := append(p.line[:0], '\r')
	b = strconv.AppendFloat(b, float64(ns)/1e9, 'f', 1, 64)
	b = append(b, " s of "...)
	b = strconv.AppendFloat(b, p.length.Seconds(), 'f', 1, 64)
	b = append(b, " s, "...)
	b = strconv.AppendInt(b, 100*ns/int64(p.length), 10)
	b = append(b, " %\x1b[K"...)
	_, _ = p.to.Write(b) // nobody is looking then
}

// end takes the line away.
func (p *progress) end() {
	if p.shown {
		_, _ = p.to.WriteString("\r\x1b[K")
	}
}
