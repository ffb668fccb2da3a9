package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/sched"
)

// ErrIncomplete says that a record lacks something of its run.
var ErrIncomplete = errors.New("is incomplete")

// recorder writes the record of a run from the page's ring, in a goroutine of its own:
// a disk that is slow or full holds up nobody.
type recorder struct {
	path  string   // "" there is no record, only a judge
	own   *os.File // open so that no other run writes that file
	r     *run
	names *chronicle
	judge *Judge         // of the scenario; nil: there is none
	w     *record.Writer // nil: the target has not begun, or there is no record
	err   error          // the first trouble with the disk
	times int            // how often there was trouble

	wake   []rt.Entry // what belongs to one wake-up, until its timing has come
	used   int        // of wake
	lost   uint64     // entries lost in the ring so far
	late   uint64     // entries of the ledger written
	tick   record.Tick
	start  int64     // grid point 0, ns since 1970
	offset int64     // CLOCK_REALTIME less the clock of the grid at the start, ns
	synced time.Time // when the disk was last told to keep what it has
	begun  bool      // the grid is placed

	findings []Finding // of the judge, at the end

	stop, done chan struct{}
}

// flushing is how often a record reaches the kernel, syncing how often the disk: what
// a death of the process, and a loss of power, can cost.
const (
	flushing = 200 * time.Millisecond
	syncing  = 5 * time.Second
)

// startRecord begins to listen; the file is there at once.
func (r *run) startRecord() error {
	if r.options.Record == "" && r.trial == nil {
		return nil
	}
	var own *os.File
	if r.options.Record != "" {
		var err error
		if own, err = createRecord(r.options.Record, r.options.Older); err != nil { // a wrong name is told before the run
			return fmt.Errorf("run: record: %w", err)
		}
		if r.others, err = newOthers(r); err != nil {
			return &Exit{3, err}
		}
	}
	r.record = &recorder{path: r.options.Record, own: own, r: r, names: newChronicle(r.h), synced: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	if r.trial != nil {
		r.record.judge = NewJudge(r.trial, r.h, r.page)
	}
	r.page.Listen()
	return nil
}

// run records until the run is over.
func (c *recorder) run() {
	defer close(c.done)
	clock := time.NewTicker(flushing)
	defer clock.Stop()
	for over := false; !over; {
		select {
		case <-c.stop:
			over = true
		case <-clock.C:
		}
		c.turn(time.Now())
	}
	c.conclude()
}

// turn writes what has happened since the last one.
func (c *recorder) turn(now time.Time) {
	if !c.begun && !c.begin() {
		return
	}
	c.drain()
	if c.w == nil {
		return
	}
	c.note(c.w.Flush())
	if now.Sub(c.synced) > syncing {
		c.note(c.w.Sync())
		c.synced = now
	}
}

// conclude judges, writes how the run ended, and closes the file.
func (c *recorder) conclude() {
	if c.judge != nil {
		c.findings = c.judge.End(c.r.page.Overflow())
	}
	if c.w == nil {
		return
	}
	c.wakeUp(&rt.Entry{}) // what the bus carried after the last tick
	c.r.others.settle()
	c.beside(math.MaxInt64)
	c.unheard()
	for i := range c.findings {
		c.put(c.w.Event(&record.Event{Kind: record.Verdict, Tick: c.judge.last, Text: c.findings[i].line()}))
	}
	c.put(c.w.Event(&record.Event{Tick: int64(c.r.page.Ticks.Load()), Text: rt.Reason(c.r.page.Reason.Load()).String()}))
	c.note(c.w.Close())
}

// finish ends the record and says what is wrong with it; "" nothing.
func (c *recorder) finish() string {
	if c == nil {
		return ""
	}
	close(c.stop)
	<-c.done
	c.release()
	return c.trouble()
}

// release lets others have the file.
func (c *recorder) release() {
	if c != nil {
		c.own.Close() // of nil an error of no interest
	}
}

// trouble says what is wrong with the record; "" nothing.
func (c *recorder) trouble() string {
	if c.err != nil {
		return fmt.Sprintf("%v (%d times)", c.err, c.times)
	}
	if c.lost > 0 {
		return fmt.Sprintf("%d entries found no room in the ring", c.lost)
	}
	return ""
}

// note keeps trouble with the disk; the writer holds what it can and tries again.
func (c *recorder) note(err error) {
	if err == nil {
		return
	}
	if c.err == nil {
		c.err = err
	}
	c.times++
}

// put is note for what is written record by record, of which the writer counts what
// it loses.
func (c *recorder) put(err error) {
	if err != nil && c.err == nil {
		c.note(err)
	}
}

// begin writes the header once the grid is placed.
func (c *recorder) begin() bool {
	start, now := int64(c.r.page.StartNs.Load()), sched.Now()
	switch {
	case c.r.h.Loop.Virtual: // point 0 is at 0 ns, which is the present
		now = 0
	case start == 0:
		return false
	}
	c.offset = sched.Realtime() - now
	c.start = start + c.offset
	if c.judge != nil && !c.r.h.Loop.Virtual {
		c.judge.Begin(start + c.offset)
	}
	if c.begun = c.path == ""; c.begun {
		return true
	}
	h, err := c.r.header(start, c.offset)
	if err == nil {
		c.w, err = record.Create(c.path, *h, record.Options{})
	}
	if err != nil {
		c.note(err)
		c.begun = c.judge != nil // a verdict does not wait for a disk
		return c.begun
	}
	c.begun = true
	c.tick = record.Tick{
		U: make([]float64, len(h.Inputs)), Y: make([]float64, len(h.Outputs)), Phases: make([]int64, len(h.Phases)),
	}
	return true
}

// drain writes what the ring holds.
func (c *recorder) drain() {
	for {
		if c.used == len(c.wake) {
			c.wake = append(c.wake, rt.Entry{})
		}
		e := &c.wake[c.used]
		if !c.r.page.Next(e) {
			break
		}
		if c.judge != nil {
			c.judge.Entry(e)
		}
		if e.Kind == rt.KindFrame && e.Fate == rt.Sent && !e.Withheld {
			c.r.others.sends(e.Bus, &e.Frame)
		}
		if c.used++; e.Kind == rt.KindTiming {
			c.wakeUp(e)
			c.used = 0
		}
		if c.w != nil && c.r.page.LateTicks() > c.late+100 { // of a ledger of 512, while a long ring is read
			c.events()
		}
	}
	c.beside(sched.Realtime() - int64(settling)) // of a loop that stands still
	c.unheard()
	if n := c.r.page.Overflow(); n != c.lost {
		if c.w != nil {
			c.put(c.w.Lost(c.tick.Index, n-c.lost, "the ring was full"))
		}
		c.lost = n
	}
	if c.w != nil {
		c.events()
	}
}

// wakeUp writes what happened at one wake-up of the loop; t is its timing.
func (c *recorder) wakeUp(t *rt.Entry) {
	if c.w == nil {
		return
	}
	steps, safe := int64(0), false
	for i := range c.wake[:c.used] {
		e := &c.wake[i]
		if e.Kind == rt.KindStep {
			steps++
		}
		safe = safe || e.Kind == rt.KindFrame && e.Safe
	}
	for i := range c.wake[:c.used] {
		switch e := &c.wake[i]; e.Kind {
		case rt.KindFault, rt.KindCommand:
			c.tell(e)
		case rt.KindStep:
			steps--
			c.tick.Index, c.tick.Flags = e.Tick, 0
			copy(c.tick.U, e.U)
			copy(c.tick.Y, e.Y)
			clear(c.tick.Phases)
			if safe {
				c.tick.Flags |= record.Safe
			}
			if steps > 0 {
				c.tick.Flags |= record.Missed
			} else {
				copy(c.tick.Phases, t.Spent[:])
				if t.Lost > 0 || c.overdue(t) {
					c.tick.Flags |= record.Late
				}
			}
			c.put(c.w.Tick(&c.tick))
		case rt.KindFrame:
			if e.Fate == rt.Unsent || e.Fate == rt.Refused {
				continue // there never was a frame
			}
			if c.r.h.Loop.Virtual { // the clock's time says nothing: that of its grid point holds
				e.Stamp = can.Stamp{}
			}
			c.beside(e.Stamp.Soft)
			c.put(c.w.Frame(&record.Frame{Bus: uint8(e.Bus), Sent: e.Fate != rt.Received, Lost: e.Fate == rt.Dropped, Safe: e.Safe,
				Withheld: e.Withheld, Copy: e.Copy, Tick: e.Tick, Time: e.Stamp.Soft, Hard: e.Stamp.Hard, Frame: e.Frame}))
		}
	}
	c.beside(t.At + c.offset)
}

// overdue says that the frames of a tick were out later than its budget allows.
func (c *recorder) overdue(t *rt.Entry) bool {
	out := t.At
	for _, ns := range t.Spent[rt.Receive:] {
		out += ns
	}
	b := c.r.bench
	due := int64(c.r.page.StartNs.Load()) + t.Tick*b.PeriodNs
	return out-due > cmp.Or(b.BudgetNs, b.PeriodNs/2)
}

// events writes what the ledger and the buses have to tell.
func (c *recorder) events() {
	p, lost := c.r.page, uint64(0)
	for ; c.late < p.LateTicks(); c.late++ {
		e := lateTick{}
		if !p.ReadLate(c.late, &e.Late) {
			lost++
			continue
		}
		v := e.report(c.r.h)
		c.put(c.w.Event(&record.Event{Kind: record.Overrun, Tick: e.Tick, Time: e.At + c.offset, Count: uint64(e.Lost), Text: v.String()}))
	}
	if lost > 0 {
		c.put(c.w.Event(&record.Event{Kind: record.Note, Tick: c.tick.Index, Time: sched.Realtime(), Count: lost,
			Text: fmt.Sprintf("%d entries of the ledger were overwritten before they were read", lost)}))
	}
	for _, e := range append(c.r.states.events(), c.r.claims.events()...) {
		c.put(c.w.Event(&e))
	}
}
