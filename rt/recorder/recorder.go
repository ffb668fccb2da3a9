package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
	"lockstep/rt/host"
	"lockstep/rt/port"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/sched"
)

// ErrIncomplete means that a record lacks a part of its run.
var ErrIncomplete = errors.New("is incomplete")

// Recorder reads the ring of the status block: it writes the record of a run and passes the entries
// to the judge and to the tap. It runs in its own goroutine, so a slow or full disk delays no other part.
type Recorder struct {
	report.View
	path       string                    // "": no record, only a judge
	file       *os.File                  // held open so that no other run writes the file
	scenario   *scenario.Scenario        // nil: none
	bestEffort bool                      // the run is at best effort
	events     func() []record.Event     // events of the run since the last call; nil: there are none
	ports      func() []port.Sent        // frames sent by the ports since the last call; nil: there are no ports
	diagnosis  func() []diagnosis.Result // outcomes of the diagnosis since the last call; nil: there are none
	monitor    *monitor                  // idle if no bus is a host interface, or there is no record
	eventLog   *EventLog                 // nil: idle
	files      []report.RecordFile       // all records so far
	switches   switches                  // starts and ends of records while the run lasts
	handover   []byte                    // for the record
	judging    sync.Mutex                // held while judge is used
	judge      *scenario.Judge           // of the scenario; nil: there is none
	w          *record.Writer            // nil: the target has not started, or there is no record
	tap        atomic.Pointer[Tap]       // nil: none
	err        error                     // first disk error of the running record
	times      int                       // number of disk errors of the running record
	incomplete []incompleteRecord        // closed records
	failed     atomic.Bool               // err was set
	attached   bool                      // Options.Attached

	entries []rt.Entry // entries of one wake-up, until its timing entry comes
	used    int        // entries in use
	before  uint64     // entries lost in the ring before the recorder
	lost    uint64     // entries lost in the ring so far
	late    uint64     // ledger entries written
	tick    record.Tick
	start   int64     // grid point 0, ns since 1970
	offset  int64     // CLOCK_REALTIME minus the clock of the grid at the start, ns
	flushed time.Time // time of the last write to the kernel
	synced  time.Time // time of the last sync to disk
	begun   bool      // the grid has started

	Findings []report.Finding // results of the scenario's expectations, valid after End

	stop func() // stops the goroutine of Record; nil: Record was not called
}

// Intervals of reading and writing. Those of writing bound the loss when the process dies and when the
// power fails.
const (
	DrainInterval = 50 * time.Millisecond  // between two readings of the ring
	FlushInterval = 200 * time.Millisecond // between two writes to the kernel
	syncInterval  = 5 * time.Second        // between two syncs to the disk
)

// Options are the settings of a recorder.
type Options struct {
	Path      string // file of the record; "" none
	Older     int    // number of earlier records to keep
	Scenario  *scenario.Scenario
	Live      bool                      // read the ring for Tap, even without a record or a scenario
	Attached  bool                      // the run has begun before the recorder: what was set and changed is in the status block
	Events    func() []record.Event     // events since the last call; nil: there are none
	Ports     func() []port.Sent        // frames sent by the ports since the last call; nil: there are none
	Diagnosis func() []diagnosis.Result // outcomes of the diagnosis since the last call; nil: there are none
}

// Tap gets every entry of the ring in its order, from the recorder's goroutine. It must not block and
// not keep the entry.
type Tap func(e *rt.Entry)

// New returns the recorder of a run and creates its file. The recorder is idle if there is nothing
// to record or judge, and no tap.
func New(r report.View, what Options) (_ *Recorder, err error) {
	if what.Path == "" && what.Scenario == nil && !what.Live {
		return &Recorder{monitor: &monitor{}}, nil
	}
	c := &Recorder{
		monitor: &monitor{}, attached: what.Attached,
		View: r, path: what.Path, scenario: what.Scenario, events: what.Events, ports: what.Ports, diagnosis: what.Diagnosis, synced: time.Now(),
	}
	if what.Path != "" || what.Live {
		c.eventLog = NewEventLog(r.Handover)
	}
	if c.path != "" {
		full, err := filepath.Abs(what.Path)
		if err != nil {
			return nil, fmt.Errorf("run: record: %w", err)
		}
		c.switches.path.Store(&full)
		c.files = append(c.files, report.RecordFile{File: c.path, First: 1})
		if c.handover, err = r.Handover.ForRecord(); err != nil { // before the run, since it takes time
			return nil, err
		}
		if err = bench.CheckResult(c.path, "record"); err == nil { // a bad file name is reported before the run
			c.file, err = createRecord(c.path, what.Older)
		}
		if err != nil {
			return nil, fmt.Errorf("run: record: %w", err)
		}
		if err = c.monitor.open(r); err != nil {
			c.file.Close()
			return nil, &host.Exit{Code: 3, Err: err}
		}
	}

	if c.scenario != nil {
		c.judge = scenario.NewJudge(c.scenario, r.Handover, r.Status)
	}
	r.Status.OpenRing()
	if c.attached {
		c.eventLog.commands.Restore(r.Status)
		c.before = r.Status.LostEntries()
		c.lost = c.before
	}
	return c, nil
}

// Record records a run in a goroutine until Finish.
func (c *Recorder) Record(bestEffort bool) {
	if c.Status == nil {
		return // idle
	}
	c.bestEffort = bestEffort
	c.monitor.listen()
	c.stop = host.Repeat(DrainInterval, func(now time.Time) {
		if now.Sub(c.flushed) > FlushInterval-DrainInterval/2 {
			c.flushed = now
			c.Write(now)
		} else {
			c.drain()
		}
	})
}

// SetTap sets the tap, which gets the entries read from now on.
func (c *Recorder) SetTap(t Tap) { c.tap.Store(&t) }

// Progress returns the states of the expectations of the scenario. Other goroutines may call it.
func (c *Recorder) Progress() []scenario.Progress {
	if c.judge == nil {
		return nil
	}
	c.judging.Lock()
	defer c.judging.Unlock()
	return c.judge.Progress()
}

// drain reads the entries and events since the last call.
func (c *Recorder) drain() {
	if c.Status == nil || !c.begun && !c.begin() { // idle, or too early
		return
	}
	c.followClock()
	if c.ports != nil {
		c.monitor.noteSentByPorts(c.ports(), c.offset, c.Handover.Loop.Virtual)
	}
	c.drainRing()
	c.noteDiagnosis()
}

// noteDiagnosis passes the outcomes of the diagnosis to the judge and to the record.
func (c *Recorder) noteDiagnosis() {
	if c.diagnosis == nil {
		return
	}
	for _, r := range c.diagnosis() {
		if c.judge != nil {
			c.judging.Lock()
			c.judge.Diagnosis(&r)
			c.judging.Unlock()
		}
		c.writeNote(r.Tick, r.String())
	}
}

// Agenda returns what the scenario asks of the units; nil: nothing.
func (c *Recorder) Agenda() *diagnosis.Agenda {
	if c.judge == nil {
		return nil
	}
	return c.judge.Agenda
}

// Write writes the entries and events since the last call to the kernel.
func (c *Recorder) Write(now time.Time) {
	if c.drain(); c.w == nil {
		return
	}
	c.noteError(c.w.Flush())
	if now.Sub(c.synced) > syncInterval {
		c.noteError(c.w.Sync())
		c.synced = now
	}
}

// End judges the scenario, writes how the run ended, and closes the file.
func (c *Recorder) End() {
	if c.judge != nil {
		c.judging.Lock()
		c.Findings = c.judge.End(c.Status.LostEntries())
		c.judging.Unlock()
	}
	c.writeWakeUp(&rt.Entry{}) // frames after the last tick
	c.stopSwitches()
	if c.path == "" {
		return
	}
	var events []record.Event
	for i := range c.Findings {
		events = append(events, record.Event{Kind: record.Verdict, Tick: c.judge.Last, Text: c.Findings[i].Line()})
	}
	c.closeRecord(math.MaxInt64, append(events,
		record.Event{Tick: int64(c.Status.Ticks.Load()), Text: rt.Reason(c.Status.Reason.Load()).String()}))
}

// closeRecord closes the running record, with the monitored frames until an instant, ns since 1970, and further events.
func (c *Recorder) closeRecord(until int64, events []record.Event) {
	c.files[len(c.files)-1].Last = c.tick.Index
	if c.w != nil {
		c.monitor.countLosses()
		c.writeMonitored(until)
		c.writeMonitorLosses()
		for i := range events {
			c.noteFirstError(c.w.Event(&events[i]))
		}
		c.noteError(c.w.Close())
		c.w = nil
	}
	if why := c.whyIncomplete(); why != "" {
		c.incomplete = append(c.incomplete, incompleteRecord{c.path, why})
	}
	c.err, c.times, c.path = nil, 0, ""
}

// Finish ends the record and returns why it is incomplete; "": complete.
func (c *Recorder) Finish() string {
	if c.stop != nil {
		c.stop()
		c.Write(time.Now())
		c.End()
	}

	c.Release()
	return c.Incomplete()
}

// EventLog returns the log for the lines of live changes; nil if the recorder is idle.
func (c *Recorder) EventLog() *EventLog { return c.eventLog }

// Release closes the recorder's sockets and releases the file.
func (c *Recorder) Release() {
	c.stopSwitches()
	c.monitor.close()
	c.file.Close() // the error of closing nil does not matter
}

// Monitored returns the counts of monitored frames. Call it after Finish.
func (c *Recorder) Monitored() []report.MonitoredBus { return c.monitor.report() }

// incompleteRecord is a closed record that lacks a part of its run.
type incompleteRecord struct{ path, why string }

// whyIncomplete returns why the running record is incomplete; "": complete.
func (c *Recorder) whyIncomplete() string {
	switch lost := c.LostEntries(); {
	case c.path == "":
	case c.err != nil:
		return fmt.Sprintf("%v (%d times)", c.err, c.times)
	case lost > 0: // no record starts after a loss
		return fmt.Sprintf("%d entries lost because the ring was full", lost)
	}
	return ""
}

// Incomplete returns why the records are incomplete; "": all are complete. It names their files if there are several.
// Call it after Finish.
func (c *Recorder) Incomplete() string {
	var list []string
	for _, r := range c.incomplete {
		if len(c.files) > 1 {
			r.why = r.path + ": " + r.why
		}
		list = append(list, r.why)
	}
	return strings.Join(list, "; ")
}

// Err returns an error that names each incomplete record; nil: all are complete. Call it after Finish.
func (c *Recorder) Err() (err error) {
	for _, r := range c.incomplete {
		err = errors.Join(err, fmt.Errorf("record %s %w: %s", r.path, ErrIncomplete, r.why))
	}
	return err
}

// LostEntries returns how many entries of the ring have found no room since the recorder reads it. Any goroutine may
// call it.
func (c *Recorder) LostEntries() uint64 { return c.Status.LostEntries() - c.before }

// Failed reports whether the disk has refused a part of the record so far. Any goroutine may call it.
func (c *Recorder) Failed() bool { return c.failed.Load() }

// noteError counts an error of the disk and keeps the first; the writer retries.
func (c *Recorder) noteError(err error) {
	if err == nil {
		return
	}
	if c.err == nil {
		c.err = err
		c.failed.Store(true)
	}
	c.times++
}

// noteFirstError keeps the first error of writing single entries; the writer counts those that it
// loses.
func (c *Recorder) noteFirstError(err error) {
	if err != nil && c.err == nil {
		c.noteError(err)
	}
}

// begin writes the header once the grid has started.
func (c *Recorder) begin() bool {
	start := int64(c.Status.StartNs.Load())
	switch {
	case c.Handover.Loop.Virtual: // point 0 is at 0 ns, which is now
		c.offset = sched.Realtime()
	case start == 0:
		return false
	default:
		c.offset = report.ClockOffset()
	}

	c.start = start + c.offset
	if c.judge != nil && !c.Handover.Loop.Virtual {
		c.judge.Begin(start + c.offset)
	}
	if c.begun = c.path == ""; c.begun {
		return true
	}
	if err := c.createRecord(); err != nil {
		c.noteError(err)
		c.begun = c.judge != nil // the judge does not wait for a disk
		return c.begun
	}
	c.begun = true
	return true
}

// createRecord writes the header of the record.
func (c *Recorder) createRecord() error {
	h, err := c.header(int64(c.Status.StartNs.Load()), c.offset)
	if err != nil {
		return err
	}
	if c.w, err = record.Create(c.path, *h); err != nil {
		return err
	}
	c.eventLog.tables = bench.NewTableCoder(c.Handover)
	c.tick = record.Tick{
		Index: c.tick.Index,
		U:     make([]float64, len(h.Inputs)), Y: make([]float64, len(h.Outputs)), Phases: make([]int64, len(h.Phases)),
	}
	return nil
}

// followClock notes a step of CLOCK_REALTIME since the last call. From then on frames have stamps of
// the stepped clock, and so have the events of the record.
func (c *Recorder) followClock() {
	if c.Handover.Loop.Virtual {
		return
	}
	step := report.StepOfClock(c.offset)
	if step == 0 {
		return
	}
	c.offset += step
	c.start = min(c.start, c.start+step) // monitored frames with earlier stamps are not of this run
	if c.judge != nil {
		c.judge.Begin(int64(c.Status.StartNs.Load()) + c.offset)
	}
	if c.w != nil {
		c.noteFirstError(c.w.Event(&record.Event{Kind: record.Note, Tick: c.tick.Index, Time: sched.Realtime(),
			Text: fmt.Sprintf("CLOCK_REALTIME stepped by %+.3f s: times before and after differ by that", float64(step)/1e9)}))
	}
}

// drainRing writes the entries of the ring.
func (c *Recorder) drainRing() {
	for {
		if c.used == len(c.entries) {
			c.entries = append(c.entries, rt.Entry{})
		}
		e := &c.entries[c.used]
		if !c.Status.NextEntry(e) {
			break
		}
		if c.judge != nil {
			c.judging.Lock()
			c.judge.Entry(e)
			c.judging.Unlock()
		}
		if tap := c.tap.Load(); tap != nil {
			(*tap)(e)
		}
		if e.Kind == rt.KindFrame && e.Fate == rt.Sent && !e.Withheld && e.Frame.Flags&can.FlagLong == 0 {
			c.monitor.noteSent(e.Bus, &e.Frame)
		}
		if c.used++; e.Kind == rt.KindTiming {
			c.writeWakeUp(e)
			c.used = 0
		}

		if c.w != nil && c.Status.LateCount() > c.late+100 { // the ledger overwrites its oldest entries
			c.writeEvents()
		}
	}

	lost := c.Status.LostEntries()
	if c.w != nil {
		c.writeMonitored(sched.Realtime() - int64(settleTime)) // also while the loop is stalled
		c.writeMonitorLosses()
		if lost != c.lost {
			c.noteFirstError(c.w.Lost(c.tick.Index, lost-c.lost, "the ring was full"))
		}
		c.writeEvents()
	}

	c.lost = lost
}

// writeWakeUp writes the entries of one wake-up of the loop; t is its timing.
func (c *Recorder) writeWakeUp(t *rt.Entry) {
	if c.eventLog == nil {
		return // a judge without a record
	}
	steps, safe := int64(0), false
	for i := range c.entries[:c.used] {
		e := &c.entries[i]
		if e.Kind == rt.KindStep {
			steps++
		}
		safe = safe || e.Kind == rt.KindFrame && e.Safe
	}

	for i := range c.entries[:c.used] {
		switch e := &c.entries[i]; e.Kind {
		case rt.KindFault, rt.KindCommand:
			c.writeEvent(e)
		case rt.KindState:
			text := c.Handover.StateTexts[e.Slot]
			if e.Refused {
				text += " refused: " + c.Handover.Tables.Describe(kernel.Obstacle(e.Obstacle))
			}
			c.writeNote(e.Tick, text)
		case rt.KindNetwork:
			c.writeNote(e.Tick, e.Network.Describe(c.Handover.Bench.BusNames()))
		case rt.KindChange:
			if e.Slot < 0 {
				c.writeOffer(e)
				continue
			}
			text := "parameters " + c.Handover.ChangeTexts[e.Slot]
			if e.Refused {
				text += " refused"
			}
			c.writeNote(e.Tick, text)
		case rt.KindStep:
			steps--
			c.writeStep(e, t, steps > 0, safe)
		case rt.KindFrame:
			c.writeFrame(e)
		}
	}

	if c.w != nil {
		c.writeMonitored(t.At + c.offset)
	}
}

// writeNote writes a text at a tick.
func (c *Recorder) writeNote(tick int64, text string) {
	if c.w != nil {
		c.noteFirstError(c.w.Event(&record.Event{Kind: record.Note, Tick: tick, Text: text}))
	}
}

// writeStep writes a grid point; t is the timing of its wake-up. missed: the wake-up served a later one.
func (c *Recorder) writeStep(e, t *rt.Entry, missed, safe bool) {
	if c.tick.Index = e.Tick; c.w == nil {
		return
	}
	c.tick.Flags = 0
	copy(c.tick.U, e.U)
	copy(c.tick.Y, e.Y)
	clear(c.tick.Phases)
	if safe {
		c.tick.Flags |= record.Safe
	}
	if missed {
		c.tick.Flags |= record.Missed
	} else {
		copy(c.tick.Phases, t.Spent[:])
		if t.Lost > 0 || c.overBudget(t) {
			c.tick.Flags |= record.Late
		}
	}

	c.noteFirstError(c.w.Tick(&c.tick))
}

// writeFrame writes a frame of the loop, after the monitored frames that came before it.
func (c *Recorder) writeFrame(e *rt.Entry) {
	if c.w == nil || e.Fate == rt.Unsent || e.Fate == rt.Refused {
		return // no frame was made
	}
	if e.Fate == rt.Received && e.Message < 0 && c.monitor.find(e.Bus) != nil {
		return // another node sent a message of the bench: the monitor has it, too
	}
	if c.Handover.Loop.Virtual { // virtual time: the frame gets the time of its grid point
		e.Stamp = can.Stamp{}
	}
	c.writeMonitored(e.Stamp.Soft)
	c.noteFirstError(c.w.Frame(&record.Frame{
		Bus: uint8(e.Bus), Sent: e.Fate != rt.Received, Lost: e.Fate == rt.Dropped, Safe: e.Safe, Withheld: e.Withheld,
		Copy: e.Copy, Tick: e.Tick, Time: e.Stamp.Soft, Hard: e.Stamp.Hard, Acts: e.Acts, Frame: e.Frame,
	}))
}

// overBudget reports whether the frames of a tick were out later than its budget allows.
func (c *Recorder) overBudget(t *rt.Entry) bool {
	out := t.At
	for _, ns := range t.Spent[rt.Receive:] {
		out += ns
	}
	b := c.Handover.Bench
	due := int64(c.Status.StartNs.Load()) + t.Tick*b.PeriodNs
	return out-due > cmp.Or(b.BudgetNs, b.PeriodNs/2)
}

// writeEvents writes the new ledger entries and the events of the run.
func (c *Recorder) writeEvents() {
	lost := c.Status.ReadLedger(&c.late, func(e *rt.LateTick) {
		v := report.NewLateTick(c.Handover, e, nil)
		c.noteFirstError(c.w.Event(&record.Event{
			Kind: record.Overrun, Tick: e.Tick, Time: e.At + c.offset, Count: uint64(e.Lost), Text: v.String(),
		}))
	})
	if lost > 0 {
		c.noteFirstError(c.w.Event(&record.Event{Kind: record.Note, Tick: c.tick.Index, Time: sched.Realtime(), Count: lost,
			Text: fmt.Sprintf("%d entries of the ledger were overwritten before they were read", lost)}))
	}

	if c.events == nil {
		return
	}
	for _, e := range c.events() {
		c.noteFirstError(c.w.Event(&e))
	}
}

// createRecord creates a file like host.CreateExclusive and keeps older ones as path.1, path.2 and
// so on: the record of a failed run survives the next starts.
func createRecord(path string, older int) (*os.File, error) {
	f, err := host.OpenExclusive(path, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (older == 0 || !host.IsRegular(f) || info.Size() == 0) {
		if err = host.Truncate(f); err == nil {
			return f, nil
		}
	}

	defer f.Close() // closed, and unlocked, after the renaming
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
