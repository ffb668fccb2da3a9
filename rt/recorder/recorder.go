package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/sched"
)

// ErrIncomplete says that a record lacks something of its run.
var ErrIncomplete = errors.New("is incomplete")

// Recorder writes the record of a run from the page's ring, in a goroutine of its own:
// a disk that is slow or full holds up nobody.
type Recorder struct {
	report.View
	path   string   // "" there is no record, only a judge
	own    *os.File // open so that no other run writes that file
	trial  *scenario.Scenario
	best   bool                  // the run is at best effort
	events func() []record.Event // what else has happened since the last call; nil: nothing can
	others *monitor              // nil: there is nothing to hear beside the loop, or no record
	names  *EventLog
	judge  *scenario.Judge // of the scenario; nil: there is none
	w      *record.Writer  // nil: the target has not begun, or there is no record
	err    error           // the first trouble with the disk
	times  int             // how often there was trouble

	wake   []rt.Entry // what belongs to one wake-up, until its timing has come
	used   int        // of wake
	lost   uint64     // entries lost in the ring so far
	late   uint64     // entries of the ledger written
	tick   record.Tick
	start  int64     // grid point 0, ns since 1970
	offset int64     // CLOCK_REALTIME less the clock of the grid at the start, ns
	synced time.Time // when the disk was last told to keep what it has
	begun  bool      // the grid is placed

	findings []report.Finding // of the judge, at the end

	stop, done chan struct{}
}

// FlushInterval is how often a record reaches the kernel, syncing how often the disk: what
// a death of the process, and a loss of power, can cost.
const (
	FlushInterval = 200 * time.Millisecond
	syncing       = 5 * time.Second
)

// Options is what is to be written of a run besides what its loop says.
type Options struct {
	Path     string // of the record; "" none
	Older    int    // records of starts before that are kept
	Scenario *scenario.Scenario
	Events   func() []record.Event // since the last call; nil: there are none
}

// New makes the recorder of a run, nil where there is nothing to record or judge;
// the file is there at once.
func New(r report.View, what Options) (*Recorder, error) {
	if what.Path == "" && what.Scenario == nil {
		return nil, nil
	}
	c := &Recorder{View: r, path: what.Path, trial: what.Scenario, events: what.Events,
		names: NewEventLog(r.Handover), synced: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	if c.path != "" {
		var err error
		if c.own, err = createRecord(c.path, what.Older); err != nil { // a wrong name is told before the run
			return nil, fmt.Errorf("run: record: %w", err)
		}
		if c.others, err = newMonitor(r); err != nil {
			c.own.Close()
			return nil, &host.Exit{Code: 3, Err: err}
		}
	}
	if c.trial != nil {
		c.judge = scenario.NewJudge(c.trial, r.Handover, r.Page)
	}
	r.Page.Listen()
	return c, nil
}

// Record records a run, which may be at best effort, in a goroutine until finish.
func (c *Recorder) Record(bestEffort bool) {
	if c == nil {
		return
	}
	c.best = bestEffort
	c.others.follow()
	go c.run()
}

// run records until the run is over.
func (c *Recorder) run() {
	defer close(c.done)
	clock := time.NewTicker(FlushInterval)
	defer clock.Stop()
	for over := false; !over; {
		select {
		case <-c.stop:
			over = true
		case <-clock.C:
		}
		c.Write(time.Now())
	}
	c.Conclude()
}

// Write writes what has happened since the last one.
func (c *Recorder) Write(now time.Time) {
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

// Conclude judges, writes how the run ended, and closes the file.
func (c *Recorder) Conclude() {
	if c.judge != nil {
		c.findings = c.judge.End(c.Page.Overflow())
	}
	if c.w == nil {
		return
	}
	c.wakeUp(&rt.Entry{}) // what the bus carried after the last tick
	c.others.settle()
	c.beside(math.MaxInt64)
	c.unheard()
	for i := range c.findings {
		c.put(c.w.Event(&record.Event{Kind: record.Verdict, Tick: c.judge.Last, Text: c.findings[i].Line()}))
	}
	c.put(c.w.Event(&record.Event{Tick: int64(c.Page.Ticks.Load()), Text: rt.Reason(c.Page.Reason.Load()).String()}))
	c.note(c.w.Close())
}

// Finish ends the record and says what is wrong with it; "" nothing.
func (c *Recorder) Finish() string {
	if c == nil {
		return ""
	}
	close(c.stop)
	<-c.done
	c.Release()
	return c.Incomplete()
}

// Lines returns the log that keeps the lines of live changes for the record; nil where there
// is no record: a judge alone would never ask for them.
func (c *Recorder) Lines() *EventLog {
	if c == nil || c.path == "" {
		return nil
	}
	return c.names
}

// Release closes what the recorder listens to, and lets others have the file.
func (c *Recorder) Release() {
	if c != nil {
		c.others.close()
		c.own.Close() // of nil an error of no interest
	}
}

// Findings returns what became of the scenario's expectations, after finish.
func (c *Recorder) Findings() []report.Finding {
	if c == nil {
		return nil
	}
	return c.findings
}

// Monitored returns what was heard beside the loop, after finish.
func (c *Recorder) Monitored() []report.Overheard {
	if c == nil {
		return nil
	}
	return c.others.report()
}

// Incomplete says what is wrong with the record; "" nothing.
func (c *Recorder) Incomplete() string {
	if c.err != nil {
		return fmt.Sprintf("%v (%d times)", c.err, c.times)
	}
	if c.lost > 0 {
		return fmt.Sprintf("%d entries found no room in the ring", c.lost)
	}
	return ""
}

// note keeps trouble with the disk; the writer holds what it can and tries again.
func (c *Recorder) note(err error) {
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
func (c *Recorder) put(err error) {
	if err != nil && c.err == nil {
		c.note(err)
	}
}

// begin writes the header once the grid is placed.
func (c *Recorder) begin() bool {
	start, now := int64(c.Page.StartNs.Load()), sched.Now()
	switch {
	case c.Handover.Loop.Virtual: // point 0 is at 0 ns, which is the present
		now = 0
	case start == 0:
		return false
	}
	c.offset = sched.Realtime() - now
	c.start = start + c.offset
	if c.judge != nil && !c.Handover.Loop.Virtual {
		c.judge.Begin(start + c.offset)
	}
	if c.begun = c.path == ""; c.begun {
		return true
	}
	h, err := c.header(start, c.offset)
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
func (c *Recorder) drain() {
	for {
		if c.used == len(c.wake) {
			c.wake = append(c.wake, rt.Entry{})
		}
		e := &c.wake[c.used]
		if !c.Page.Next(e) {
			break
		}
		if c.judge != nil {
			c.judge.Entry(e)
		}
		if e.Kind == rt.KindFrame && e.Fate == rt.Sent && !e.Withheld {
			c.others.sends(e.Bus, &e.Frame)
		}
		if c.used++; e.Kind == rt.KindTiming {
			c.wakeUp(e)
			c.used = 0
		}
		if c.w != nil && c.Page.LateTicks() > c.late+100 { // of a ledger of 512, while a long ring is read
			c.writeEvents()
		}
	}
	c.beside(sched.Realtime() - int64(settling)) // of a loop that stands still
	c.unheard()
	if n := c.Page.Overflow(); n != c.lost {
		if c.w != nil {
			c.put(c.w.Lost(c.tick.Index, n-c.lost, "the ring was full"))
		}
		c.lost = n
	}
	if c.w != nil {
		c.writeEvents()
	}
}

// wakeUp writes what happened at one wake-up of the loop; t is its timing.
func (c *Recorder) wakeUp(t *rt.Entry) {
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
			if c.Handover.Loop.Virtual { // the clock's time says nothing: that of its grid point holds
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
func (c *Recorder) overdue(t *rt.Entry) bool {
	out := t.At
	for _, ns := range t.Spent[rt.Receive:] {
		out += ns
	}
	b := c.Handover.Bench
	due := int64(c.Page.StartNs.Load()) + t.Tick*b.PeriodNs
	return out-due > cmp.Or(b.BudgetNs, b.PeriodNs/2)
}

// writeEvents writes the new entries of the ledger and the events of the run.
func (c *Recorder) writeEvents() {
	p, lost := c.Page, uint64(0)
	for ; c.late < p.LateTicks(); c.late++ {
		e := report.LedgerEntry{}
		if !p.ReadLate(c.late, &e.Late) {
			lost++
			continue
		}
		v := e.Report(c.Handover)
		c.put(c.w.Event(&record.Event{Kind: record.Overrun, Tick: e.Tick, Time: e.At + c.offset, Count: uint64(e.Lost), Text: v.String()}))
	}
	if lost > 0 {
		c.put(c.w.Event(&record.Event{Kind: record.Note, Tick: c.tick.Index, Time: sched.Realtime(), Count: lost,
			Text: fmt.Sprintf("%d entries of the ledger were overwritten before they were read", lost)}))
	}
	if c.events == nil {
		return
	}
	for _, e := range c.events() {
		c.put(c.w.Event(&e))
	}
}

// createRecord is host.CreateExclusive for a file of which older ones are kept, as path.1 and so on:
// the record of a run that has failed outlives the next starts.
func createRecord(path string, older int) (*os.File, error) {
	f, err := host.OpenExclusive(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (older == 0 || !host.Regular(f) || info.Size() == 0) {
		if err = host.Truncate(f); err == nil {
			return f, nil
		}
	}
	defer f.Close() // with its lock, when it has its new name
	for i := older; i > 0 && err == nil; i-- {
		from := path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", path, i-1)
		}
		if err = os.Rename(from, fmt.Sprintf("%s.%d", path, i)); errors.Is(err, fs.ErrNotExist) && i > 1 {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return host.CreateExclusive(path)
}
