package faults

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"lockstep/io/record"
	"lockstep/rt/report"
)

// slowDisk is a pipe with a name in the place of the record's file. While its gate is closed, it takes
// no more than the buffer of a pipe, and the writer stalls.
type slowDisk struct {
	path string
	gate sync.Mutex
	read chan *os.File // file with all bytes written, after the writer has closed the pipe
}

func newSlowDisk(a *attempt) *slowDisk {
	a.Helper()
	d := &slowDisk{path: filepath.Join(a.dir, "run.rec"), read: make(chan *os.File, 1)}
	copied, err := os.Create(filepath.Join(a.dir, "copy.rec"))
	if err == nil {
		err = syscall.Mkfifo(d.path, 0o600)
	}
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() { copied.Close() })
	go func() {
		from, err := os.Open(d.path) // waits for the writer
		if err != nil {
			return
		}
		defer from.Close()
		for block := make([]byte, 4096); ; {
			d.gate.Lock()
			n, err := from.Read(block)
			d.gate.Unlock()
			if _, failed := copied.Write(block[:n]); failed != nil || err != nil {
				break
			}
		}
		d.read <- copied
	}()
	return d
}

// stall closes the gate until the returned function is called.
func (d *slowDisk) stall() (resume func()) {
	d.gate.Lock()
	return d.gate.Unlock
}

// entries returns the number of ticks in the record, and of the entries that it reports as lost. The
// ticks between two gaps must be complete; a gap is reported behind it.
func (d *slowDisk) entries(a *attempt) (ticks int, lost uint64) {
	a.Helper()
	var file *os.File
	select {
	case file = <-d.read:
	case <-time.After(timeout):
		a.Fatal("the record is not closed")
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		a.Fatal(err)
	}
	r, err := record.NewReader(d.path, file)
	if err != nil {
		a.Fatal(err)
	}
	last, jumps, gaps := int64(0), 0, 0
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			a.Fatal(err)
		}
		switch {
		case e.Kind == record.TickEntry:
			a.must(e.Tick.Index > last, "tick %d in the record after %d", e.Tick.Index, last)
			if e.Tick.Index != last+1 {
				jumps++
			}
			last = e.Tick.Index
			ticks++
		case e.Kind == record.EventEntry && e.Event.Kind == record.Lost:
			gaps++
			lost += e.Event.Count
		}
	}
	a.must(r.Torn() == "" && (jumps == 0 || gaps > 0), "torn: %q; %d jumps in the ticks, %d gaps reported", r.Torn(), jumps, gaps)
	return ticks, lost
}

// checkLoop checks that the loop served its ticks as usual.
func (s *session) checkLoop(all []frame, r report.Report) {
	s.Helper()
	_, safe := s.bus.split(all)
	s.must(len(safe) == 0 && r.Clean && r.Allocs == 0, "%d safe frames, clean %t, %d allocations; want 0, true, 0", len(safe), r.Clean, r.Allocs)
	s.bus.counted(all, r)
	s.inTime(r.Missed < r.Ticks/10, "%d ticks of %d missed", r.Missed, r.Ticks)
}

// recordStalled stalls the disk for less time than the ring between loop and recorder holds.
func recordStalled(a *attempt) {
	d := newSlowDisk(a)
	s := a.run(plan{args: []string{"-for", "4s", "-record", d.path}})
	s.bus.ticking(100)
	resume := d.stall()
	s.bus.ticking(400)
	resume()
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	s.checkLoop(all, r)
	ticks, lost := d.entries(a)
	a.must(ticks == 800 && lost == 0 && r.RecordError == "", "%d ticks in the record, %d entries lost, %q; want 800, 0, none", ticks, lost, r.RecordError)
}

// recordStalledInAFlood stalls the disk until the frames of a flood have filled the ring, of a million
// words, and the pipe. Then the disk resumes, so that the record continues after the gap.
func recordStalledInAFlood(a *attempt) {
	d := newSlowDisk(a)
	s := a.run(plan{args: []string{"-record", d.path}})
	s.bus.ticking(50)
	resume, random := d.stall(), rand.New(rand.NewPCG(1, 2))
	for range 250_000 {
		if !s.bus.send(pressure1, random.Uint64()) { // equal frames would be compressed
			a.Fatal("the bench does not read its bus while the disk stalls")
		}
	}
	resume()
	s.bus.ticking(100)
	s.ctrlC()
	<-s.over
	all, r := s.bus.end(), s.read()
	var missing uint64
	_, err := fmt.Sscanf(r.RecordError, "%d entries lost because the ring was full", &missing)
	a.must(err == nil, "the report says %q of the record after %d frames; want entries lost", r.RecordError, r.RxFrames)
	s.ends(1, fmt.Sprintf("is incomplete: %d entries lost because the ring was full", missing))
	s.checkLoop(all, r)
	ticks, lost := d.entries(a)
	a.Logf("%d frames received, %d of %d ticks in the record, %d entries lost", r.RxFrames, ticks, r.Ticks, lost)
	a.must(lost == missing && ticks < int(r.Ticks), "%d of %d ticks in the record, which counts %d lost entries; the report %d", ticks, r.Ticks, lost, missing)
}
