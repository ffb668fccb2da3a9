package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// switches are the starts and ends of records while the run lasts.
type switches struct {
	mu      sync.Mutex
	next    *Switch                // waits for its command; nil: none
	stopped bool                   // no further switch is accepted
	path    atomic.Pointer[string] // full name of the file of the running record, once its start is announced; nil: none
	refused atomic.Pointer[string] // the last start that was announced and did not happen, and why; nil: a later one did
}

// Report completes a report with the records of the run. Call it after Finish or End.
func (c *Recorder) Report(r *report.Report) {
	var names []string
	for i := range c.files {
		names = append(names, c.files[i].File)
	}
	r.Record, r.RecordError, r.RecordRefused, r.Monitored = strings.Join(names, ", "), c.Incomplete(), c.Refused(), c.Monitored()
	r.Records = slices.Clone(c.files)
}

// Refused returns the file of the last start that was announced and did not happen, and why; "": a later start has
// happened, or none failed. Any goroutine may call it.
func (c *Recorder) Refused() string {
	if p := c.switches.refused.Load(); p != nil {
		return *p
	}
	return ""
}

// Switch is the start or the end of a record. It happens at the tick of a batch of commands.
type Switch struct {
	batch   uint64
	path    string  // file of the record that starts; "": the running record ends
	before  *string // file of the record that ran when the switch was announced; nil: none
	monitor *monitor
	file    *os.File     // of the record that starts, new and empty; nil: the running record ends
	earlier ParameterSet // change of parameters from before the recorder, if none has taken effect since; without tables: none
	done    chan error   // gets the outcome, once
}

// Done returns the channel that gets the outcome of an announced switch, once; nil: the record has started or ended.
func (s *Switch) Done() <-chan error { return s.done }

// Path returns the file of the running record; "": the run is not recorded. Any goroutine may call it.
func (c *Recorder) Path() string {
	if p := c.switches.path.Load(); p != nil {
		return *p
	}
	return ""
}

// Errors of switches.
var (
	errWaits  = errors.New("the last start or end of a record waits for its tick: ask again when the run has advanced")
	errEnded  = errors.New("the run ended before the record could start or end")
	errDelays = errors.New("a fault delays values or frames: clear it first")
)

// PrepareStart creates the file of a record that is to start. It fails if the file exists or the run is recorded
// already.
func (c *Recorder) PrepareStart(path string) (*Switch, error) {
	switch {
	case c.Checkpoint == nil:
		return nil, errors.New("a generated kernel keeps its state in a form of its own, which no replay could load: " +
			"start the run with -record FILE, or with -kernel table")
	case !c.Checkpoint.Used():
		return nil, errors.New("the kernel in use cannot be copied while it runs: start the run with -record FILE")
	case c.waits():
		return nil, errWaits
	case c.Path() != "":
		return nil, fmt.Errorf("the run is recorded to %s: end this record first (record off)", c.Path())
	case c.LostEntries() > 0:
		return nil, errors.New("the ring was full before, and the record would lack changes: start the run with -record FILE")
	case !filepath.IsAbs(path):
		return nil, fmt.Errorf("%.60q is not the full name of a file", path)
	}
	if err := bench.CheckResult(path, "record"); err != nil {
		return nil, err
	}
	earlier, err := c.earlierSet()
	if err != nil {
		return nil, err
	}
	f, err := host.OpenExclusive(path, os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: give the record a new name", path)
	}
	if err != nil {
		return nil, err
	}
	s := &Switch{path: path, monitor: &monitor{}, file: f, earlier: earlier, done: make(chan error, 1)}
	if err := s.monitor.open(c.View); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// earlierSet returns the change of parameters that an earlier supervisor of the run has made; without tables: none.
func (c *Recorder) earlierSet() (set ParameterSet, err error) {
	slot := c.Status.ActiveSlot()
	if !c.attached || slot < 0 || c.TableSets == nil {
		return set, nil
	}
	if decided, _, _ := c.Status.Decided(); decided != c.Status.OffersPosted() {
		return set, errors.New("a change of parameters waits for its tick: ask again")
	}
	set.Line = "param"
	values := bench.SetInEffect(c.TableSets.Text(slot))
	for _, a := range values {
		set.Line += " " + scenario.QuoteWord(a.String())
	}
	set.Tables, err = c.Handover.PrepareSet(c.Status.Phase(), values)
	return set, err
}

// PrepareEnd returns the switch that ends the running record.
func (c *Recorder) PrepareEnd() (*Switch, error) {
	switch {
	case c.waits():
		return nil, errWaits
	case c.Path() == "":
		return nil, errors.New("the run is not recorded")
	}
	return &Switch{done: make(chan error, 1)}, nil
}

// discard removes the file of a record that does not start, unless another file has its name by now.
func (s *Switch) discard() {
	s.monitor.close()
	if s.file == nil {
		return
	}
	named, errNamed := os.Lstat(s.path)
	created, errCreated := s.file.Stat()
	if errNamed == nil && errCreated == nil && os.SameFile(named, created) {
		os.Remove(s.path) // an error leaves the file
	}
	s.file.Close()
}

// waits reports whether a switch has not happened yet.
func (c *Recorder) waits() bool {
	c.switches.mu.Lock()
	defer c.switches.mu.Unlock()
	return c.switches.next != nil
}

// Announce makes a switch happen at the tick of a batch of commands. Call it before the loop can take the batch. The
// error is that of a run that has ended.
func (c *Recorder) Announce(s *Switch, batch uint64) error {
	c.switches.mu.Lock()
	defer c.switches.mu.Unlock()
	if c.switches.stopped {
		s.discard()
		return errEnded
	}
	s.batch, s.before, c.switches.next = batch, c.switches.path.Load(), s
	if c.switches.path.Store(nil); s.path != "" {
		c.switches.path.Store(&s.path)
	}
	return nil
}

// Cancel drops a switch whose batch was not posted.
func (c *Recorder) Cancel(s *Switch) {
	c.switches.mu.Lock()
	defer c.switches.mu.Unlock()
	if c.switches.next == s {
		c.refuse(s, nil)
	}
}

// stopSwitches refuses the switch that waits, and all later ones.
func (c *Recorder) stopSwitches() {
	c.switches.mu.Lock()
	defer c.switches.mu.Unlock()
	if c.switches.stopped = true; c.switches.next != nil {
		c.refuse(c.switches.next, errEnded)
	}
}

// refuse drops a switch for a reason. The caller holds the lock of the switches.
func (c *Recorder) refuse(s *Switch, why error) {
	c.switches.next = nil
	c.switches.path.Store(s.before)
	s.discard()
	if s.path != "" && why != nil { // its client may have left
		text := fmt.Sprintf("%s: %v", s.path, why)
		c.switches.refused.Store(&text)
	}
	s.done <- why
}

// applySwitch starts or ends a record if a batch that has taken effect asks for it. The lock is free meanwhile: the disk
// may be slow.
func (c *Recorder) applySwitch(e *rt.Entry) bool {
	c.switches.mu.Lock()
	s := c.switches.next
	c.switches.mu.Unlock()
	if s == nil || s.batch != e.Batch {
		return false
	}
	var err error
	switch {
	case e.Refused:
		err = errDelays
	case s.path == "":
		c.endRecord(e.Tick)
	default:
		err = c.startRecord(s, e.Tick)
	}
	c.switches.mu.Lock()
	defer c.switches.mu.Unlock()
	if err != nil {
		c.refuse(s, err)
		return true
	}
	if c.switches.next = nil; s.path != "" {
		c.switches.refused.Store(nil)
	}
	s.done <- nil
	return true
}

// WriteStanding writes the entries of a run in virtual time that stands between two ticks, so a switch happens before
// the next tick. Call it in the goroutine of the run.
func (c *Recorder) WriteStanding() {
	c.drain()
	c.writeWakeUp(&rt.Entry{})
	c.used = 0
}

// startRecord starts a record at a tick, with the state of the loop before it.
func (c *Recorder) startRecord(s *Switch, tick int64) (err error) {
	state, layout := c.Checkpoint.Copy()
	h := *c.Handover
	h.Named = slices.Clone(c.eventLog.commands.Slots[:])
	h.Begin = &bench.Begin{Tick: tick, Snapshots: c.eventLog.commands.Snapshots[:], State: state, Layout: layout}
	if c.handover, err = h.ForRecord(); err != nil {
		return err
	}
	c.path = s.path
	if err = c.createRecord(); err != nil {
		c.path = ""
		return err
	}
	c.files = append(c.files, report.RecordFile{File: s.path, First: tick})
	c.file, c.monitor, c.late = s.file, s.monitor, c.Status.LateCount()
	c.monitor.listen()
	set := &c.eventLog.active
	if set.Tables == nil {
		set = &s.earlier
	}
	if set.Tables != nil {
		c.writeSet(set, tick, 0)
	}
	return nil
}

// endRecord ends the running record before a tick.
func (c *Recorder) endRecord(tick int64) {
	due := int64(c.Status.StartNs.Load()) + tick*c.Handover.Tables.PeriodNs
	c.closeRecord(due+c.offset, []record.Event{{Tick: tick - 1, Text: "the record was ended by ctl"}})
	c.monitor.close()
	c.file.Close()
	c.files[len(c.files)-1].Last = tick - 1 // nothing of a later tick is in it
}
