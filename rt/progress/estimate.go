package progress

import (
	"strconv"
	"time"
)

// estimate is the rate of work. It counts items over the second half of the time since the begin: items that cost
// more and more, or less and less, change it soon, and one long item changes it little.
type estimate struct {
	points [64]point // from the begin on; thinned out when they are full
	n      int
	every  time.Duration // least time between two points
	last   point         // latest change
}

// point is a number of items done at a time.
type point struct {
	at   time.Duration
	done int64
}

// begin starts the estimate when done items are done.
func (e *estimate) begin(at time.Duration, done int64) {
	e.last = point{at, done}
	e.points[0], e.n, e.every = e.last, 1, 100*time.Millisecond
}

// add adds a number of items done; the times must not decrease.
func (e *estimate) add(at time.Duration, done int64) {
	if done == e.last.done {
		return
	}
	e.last = point{at, done}
	if at-e.points[e.n-1].at < e.every {
		return
	}
	if e.n == len(e.points) {
		e.n, e.every = e.n/2, 2*e.every
		for i := range e.n {
			e.points[i] = e.points[2*i]
		}
	}
	e.points[e.n] = e.last
	e.n++
}

// minItems is the number of items that make the second half of the time count alone.
const minItems = 4

// left returns the time in which the work up to total items ends; 0: not known. Between two items it counts down,
// at most by the time that an item takes.
func (e *estimate) left(now time.Duration, total int64) time.Duration {
	from := e.points[0]
	half := (from.at + e.last.at) / 2
	for i := 0; i < e.n && e.points[i].at <= half; i++ {
		if e.last.done-e.points[i].done >= minItems {
			from = e.points[i]
		}
	}
	items, spent := e.last.done-from.done, e.last.at-from.at
	if items <= 0 || spent <= 0 {
		return 0
	}
	each := float64(spent) / float64(items)
	return time.Duration(float64(total-e.last.done)*each - min(float64(now-e.last.at), each))
}

// Text returns a duration for people, rounded up: "8 s", "3 min", "2 h 5 min", "3 d 4 h".
func Text(d time.Duration) string { return string(appendDuration(nil, d)) }

func appendDuration(b []byte, d time.Duration) []byte {
	of := func(unit time.Duration) int64 { return int64((max(d, 0) + unit - 1) / unit) }
	number := func(n int64, unit string) { b = append(strconv.AppendInt(b, n, 10), unit...) }
	rest := func(n int64, unit string) {
		if n > 0 {
			b = append(b, ' ')
			number(n, unit)
		}
	}
	switch {
	case of(time.Second) < 100:
		number(of(time.Second), " s")
	case of(time.Minute) < 100:
		number(of(time.Minute), " min")
	case of(time.Minute) < 48*60:
		number(of(time.Minute)/60, " h")
		rest(of(time.Minute)%60, " min")
	default:
		number(of(time.Hour)/24, " d")
		rest(of(time.Hour)%24, " h")
	}
	return b
}
