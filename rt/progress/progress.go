// Package progress owns the line that shows people how far long work has come and how much time is left.
//
// On a terminal the line is rewritten five times per second, from the second second of a command on. In a log it
// is a new line, the first after 2 min and then one per minute. It goes to the standard error, never to a result.
// The package does not know the work: callers count its items. A run in real time has the status line of
// rt/supervisor instead.
//
// Reading order: progress.go (Work, Line), estimate.go (the time left, and its text).
package progress

import (
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Work describes a piece of work.
type Work struct {
	What   string  // what is done, such as "preparing train20"; "": the name of the command says it
	Total  int64   // number of items; 0: not known, then neither amounts nor the time left are shown
	Done   int64   // items done before, by an earlier run
	Unit   string  // unit of the amounts shown, such as "cases"
	Scale  float64 // amount of one item in Unit; 0: 1
	Digits int     // decimals of the amounts
	Polled bool    // only Poll draws: no goroutine runs, and nothing is allocated until End
}

// Line is the progress line of a command. Every method does nothing on nil, or only calls its function. One
// goroutine calls Begin, Poll and End; any may call Set, Add, Count, Note and Print.
type Line struct {
	out      *os.File
	command  string
	terminal bool
	first    time.Duration // time from New to the first line
	every    time.Duration // time between two lines
	begun    time.Time

	done atomic.Int64
	note atomic.Pointer[string]

	mu       sync.Mutex // protects what follows
	work     Work
	active   bool // work is under way
	shown    bool // the line stands on the terminal
	due      time.Duration
	estimate estimate
	text     [512]byte

	stop, stopped chan struct{} // of the goroutine that draws; nil: none runs
}

// New returns the line of a command on out, usually the standard error.
func New(out *os.File, command string) *Line {
	l := &Line{out: out, command: command, begun: time.Now(), first: 2 * time.Minute, every: time.Minute}
	if l.terminal = term.IsTerminal(int(out.Fd())); l.terminal {
		l.first, l.every = time.Second, 200*time.Millisecond
	}
	l.due = l.first
	return l
}

// IsTerminal reports whether the line is rewritten on a terminal.
func (l *Line) IsTerminal() bool { return l != nil && l.terminal }

// Begin starts a piece of work; it ends the piece before.
func (l *Line) Begin(w Work) {
	if l == nil {
		return
	}
	l.End()
	l.done.Store(w.Done)
	l.note.Store(nil)
	l.mu.Lock()
	l.work, l.active = w, true
	l.estimate.begin(time.Since(l.begun), w.Done)
	l.mu.Unlock()
	if !w.Polled {
		l.stop, l.stopped = make(chan struct{}), make(chan struct{})
		go l.drawUntil(l.stop, l.stopped)
	}
}

// Set sets the number of items done.
func (l *Line) Set(done int64) {
	if l != nil {
		l.done.Store(done)
	}
}

// Add adds to the number of items done.
func (l *Line) Add(n int64) {
	if l != nil {
		l.done.Add(n)
	}
}

// Count sets the numbers of items done and of all items.
func (l *Line) Count(done, total int64) {
	if l == nil {
		return
	}
	l.done.Store(done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work.Total = total
	if done < l.estimate.last.done { // the work begins anew
		l.estimate.begin(time.Since(l.begun), done)
	}
}

// BeginPreparation begins the preparation of a plant or bench. The returned function counts its lock sets; nil for nil.
func (l *Line) BeginPreparation(name string) func(done, total int) {
	if l == nil {
		return nil
	}
	l.Begin(Work{What: "preparing " + name, Unit: "lock sets"})
	return func(done, total int) { l.Count(int64(done), int64(total)) }
}

// BeginReading begins the reading of a file. The returned function counts its bytes; nil for nil.
func (l *Line) BeginReading(file string) func(done, total int64) {
	if l == nil {
		return nil
	}
	l.Begin(Work{What: file, Unit: "MB", Scale: 1e-6, Digits: 1})
	return l.Count
}

// Note sets a text after the time left.
func (l *Line) Note(text string) {
	if l != nil {
		l.note.Store(&text)
	}
}

// Poll sets the number of items done and draws the line if it is due. It does not allocate.
func (l *Line) Poll(done int64) {
	if l == nil {
		return
	}
	l.done.Store(done)
	l.draw()
}

// Print calls print, which may write to the terminal, while the line is cleared.
func (l *Line) Print(print func()) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clear()
	}
	print()
}

// stopTime is how long End waits for a terminal that takes no output.
const stopTime = time.Second

// End ends the work and clears the line.
func (l *Line) End() {
	if l == nil {
		return
	}
	if l.stop != nil {
		close(l.stop)
		select {
		case <-l.stopped:
		case <-time.After(stopTime):
			l.stop = nil
			return
		}
		l.stop = nil
	}
	l.mu.Lock()
	l.clear()
	l.active = false
	l.mu.Unlock()
}

// ClearOnSignal makes a signal that ends this process clear the line before, until stop is called. It is for
// commands that do not handle signals, and until they do.
func (l *Line) ClearOnSignal() (stop func()) {
	if !l.IsTerminal() {
		return func() {}
	}
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case s := <-signals:
			l.mu.Lock() // until the end of the process
			l.clear()
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) // this process may signal itself
		case <-over:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// drawUntil draws the line whenever it is due, until stop is closed.
func (l *Line) drawUntil(stop, stopped chan struct{}) {
	defer close(stopped)
	clock := time.NewTicker(min(l.every, time.Second))
	defer clock.Stop()
	for {
		select {
		case <-stop:
			return
		case <-clock.C:
			l.draw()
		}
	}
}

// The codes of a terminal.
const (
	toStart = "\r"
	toEnd   = "\x1b[K" // clears the rest of the line
)

// clear clears the line if it stands on the terminal. The caller holds mu.
func (l *Line) clear() {
	if l.shown {
		_, _ = l.out.WriteString(toStart + toEnd) // an error only leaves the line
		l.shown = false
	}
}

// draw draws the line if it is due.
func (l *Line) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, done := time.Since(l.begun), l.done.Load()
	l.estimate.add(now, done)
	if now < l.due || !l.active {
		return
	}
	l.due, l.shown = now+l.every, l.terminal
	b := l.text[:0]
	if l.terminal {
		b = append(l.fit(append(b, toStart...), done, now), toEnd...)
	} else {
		b = append(l.compose(b, done, now, all), '\n')
	}
	_, _ = l.out.Write(b) // an error only loses the line
}

// A part of the line may be left out.
const (
	noNote = 1 << iota
	noCommand
	noLeft
	all = 0
)

// fit appends the line without what exceeds the width of the terminal.
func (l *Line) fit(b []byte, done int64, now time.Duration) []byte {
	width := 79
	if w, _, err := term.GetSize(int(l.out.Fd())); err == nil && w > 1 {
		width = w - 1
	}
	start := len(b)
	for _, without := range []int{all, noNote, noNote | noCommand, noNote | noCommand | noLeft} {
		if b = l.compose(b[:start], done, now, without); utf8.RuneCount(b[start:]) <= width {
			return b
		}
	}
	end := start
	for range width {
		_, n := utf8.DecodeRune(b[end:])
		end += n
	}
	return b[:end]
}

// maxName is the longest name that the line shows, bytes.
const maxName = 100

// compose appends the text of the line: "sweep demo: 120 of 1000 cases, 3 min left, 2 failed".
func (l *Line) compose(b []byte, done int64, now time.Duration, without int) []byte {
	w, begin := &l.work, len(b)
	if without&noCommand == 0 {
		b = append(appendName(b, l.command), ": "...)
	}
	part := func() {
		if n := len(b); n > begin && b[n-1] != ' ' {
			b = append(b, ", "...)
		}
	}
	if w.What != "" {
		b = appendName(b, w.What)
	}
	if w.Total > 0 {
		part()
		b = append(w.appendAmount(b, min(done, w.Total)), " of "...)
		b = append(append(w.appendAmount(b, w.Total), ' '), w.Unit...)
		if left := l.estimate.left(now, w.Total); left > 0 && without&noLeft == 0 {
			part()
			b = append(appendDuration(b, left), " left"...)
		}
	}
	if note := l.note.Load(); note != nil && *note != "" && without&noNote == 0 {
		part()
		b = appendName(b, *note)
	}
	return b
}

// appendName appends at most maxName bytes of a text, without control characters.
func appendName(b []byte, text string) []byte {
	for _, c := range text[:min(len(text), maxName)] {
		if c >= ' ' && c != 0x7f {
			b = utf8.AppendRune(b, c)
		}
	}
	return b
}

// appendAmount appends the amount of n items.
func (w *Work) appendAmount(b []byte, n int64) []byte {
	if w.Scale == 0 {
		return strconv.AppendInt(b, n, 10)
	}
	return strconv.AppendFloat(b, float64(n)*w.Scale, 'f', w.Digits, 64)
}
