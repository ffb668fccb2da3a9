package recorder

import (
	"errors"
	"fmt"
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
)

// turns are the starts and ends of records while the run lasts.
type turns struct {
	mu   sync.Mutex
	next *Turn                  // waits for its command; nil: none
	path atomic.Pointer[string] // record at hand, once its start is posted; nil: none
}

// Files returns the files of all records so far. Call it after Finish.
func (c *Recorder) Files() string { return strings.Join(c.files, ", ") }

// Turn is the start or the end of a record. It happens at the tick of a batch of commands.
type Turn struct {
	batch   uint64
	path    string // of the record; "": the turn ends the record at hand
	monitor *monitor
	file    *os.File // of the record; nil: the turn ends one
}

// Path returns the file of the record at hand; "": there is none. Any goroutine may call it.
func (c *Recorder) Path() string {
	if p := c.turns.path.Load(); p != nil {
		return *p
	}
	return ""
}

var errWaits = errors.New("the last start or end of a record waits for its tick: ask again when the run has advanced")

// PrepareStart creates the file of a record that is to start. The file must be new. The record takes the place of no
// other: end that first.
func (c *Recorder) PrepareStart(path string) (*Turn, error) {
	switch {
	case c.Waits():
		return nil, errWaits
	case c.Path() != "":
		return nil, fmt.Errorf("the run is recorded to %s: record off ends that", c.Path())
	case !c.canTurn:
		return nil, errors.New("the supervisor has attached to the run and does not know its beginning: start the run with -record FILE")
	case c.Status.LostEntries() > 0:
		return nil, errors.New("the ring was full before, and the record would lack changes: start the run with -record FILE")
	case !filepath.IsAbs(path):
		return nil, fmt.Errorf("%.60q is not the full name of a file", path)
	}
	if err := bench.CheckResult(path, "record"); err != nil {
		return nil, err
	}
	f, err := host.OpenExclusive(path, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Size() > 0 || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s exists: give the record a new name", path)
	}
	t := &Turn{path: path, monitor: &monitor{}, file: f}
	if err := t.monitor.open(c.View); err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

// PrepareEnd returns the turn that ends the record at hand.
func (c *Recorder) PrepareEnd() (*Turn, error) {
	switch {
	case c.Waits():
		return nil, errWaits
	case c.Path() == "":
		return nil, errors.New("the run is not recorded")
	}
	return &Turn{}, nil
}

// discard removes the file of a record that does not start.
func (t *Turn) discard() {
	t.monitor.close()
	if t.file != nil {
		os.Remove(t.path) // an error leaves an empty file
		t.file.Close()
	}
}

// Waits reports whether a turn has not happened yet. Any goroutine may call it.
func (c *Recorder) Waits() bool {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	return c.turns.next != nil
}

// Announce makes a turn happen at the tick of a batch of commands. Call it before the loop can take the batch.
func (c *Recorder) Announce(t *Turn, batch uint64) {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	t.batch, c.turns.next = batch, t
	if c.turns.path.Store(nil); t.path != "" {
		c.turns.path.Store(&t.path)
	}
}

// Cancel drops a turn whose batch was not posted, or that the loop has refused; before is the record at hand.
func (c *Recorder) Cancel(t *Turn, before string) {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	c.turns.next = nil
	if c.turns.path.Store(nil); before != "" {
		c.turns.path.Store(&before)
	}
	t.discard()
}

// takeTurn starts or ends a record if a batch that has taken effect asks for it.
func (c *Recorder) takeTurn(e *rt.Entry) bool {
	c.turns.mu.Lock()
	t := c.turns.next
	if t == nil || t.batch != e.Batch {
		c.turns.mu.Unlock()
		return false
	}
	c.turns.next = nil
	c.turns.mu.Unlock()
	if t.path == "" {
		c.endRecord(e.Tick)
	} else if !e.Refused {
		if err := c.startRecord(t, e.Tick); err != nil {
			c.turns.path.Store(nil)
			c.noteError(err)
		}
	}
	return true
}

// startRecord starts a record at a tick, with the state of the loop before it.
func (c *Recorder) startRecord(t *Turn, tick int64) (err error) {
	state, layout := c.Checkpoint.Copy()
	h := *c.Handover
	h.Named = slices.Clone(c.eventLog.commands.Slots[:])
	h.Begin = &bench.Begin{Tick: tick, Snapshots: c.eventLog.commands.Snapshots[:], State: state, Layout: layout}
	if c.handover, err = h.ForRecord(); err != nil {
		return err
	}
	c.files = append(c.files, t.path)
	c.path, c.file, c.monitor, c.late = t.path, t.file, t.monitor, c.Status.LateCount()
	c.monitor.listen()
	if err = c.createRecord(); err != nil {
		return err
	}
	if set := &c.eventLog.active; set.Tables != nil {
		c.writeSet(set, tick, 0)
	}
	return nil
}

// endRecord ends the record at hand before a tick.
func (c *Recorder) endRecord(tick int64) {
	if c.w == nil {
		return
	}
	c.noteFirstError(c.w.Event(&record.Event{Tick: tick - 1, Text: "the record was ended by ctl"}))
	c.noteError(c.w.Close())
	c.w, c.path = nil, ""
	c.monitor.close()
	c.file.Close()
}
