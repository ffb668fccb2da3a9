package recorder

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/port"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
	"lockstep/sched"
)

// listening returns the recorder of a run that monitors a bus, and a node on that bus.
func listening(t *testing.T, run *runtest.Run) (c *Recorder, bus *monitoredBus, node *can.Bus) {
	t.Helper()
	c, err := New(report.View{Handover: run.Handover, Status: run.Status}, Options{Path: filepath.Join(t.TempDir(), "record")})
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*can.Bus
	a, b, err := can.Pair()
	for i, f := range []*os.File{a, b} {
		if err == nil {
			ends[i], err = can.Inherit(f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bus = &monitoredBus{bus: &run.Handover.Bench.Buses[0], on: ends[0]}
	c.monitor.status, c.monitor.buses = run.Status, []*monitoredBus{bus}
	t.Cleanup(func() { c.monitor.close(); ends[1].Close() })
	return c, bus, ends[1]
}

// monitoredIn returns the monitored frames of a record and the number of lost ones.
func monitoredIn(t *testing.T, path string) (list []record.Frame, unheard uint64) {
	t.Helper()
	for _, e := range recordtest.Entries(t, path) {
		switch {
		case e.Kind == record.FrameEntry && e.Frame.Other:
			list = append(list, e.Frame)
		case e.Kind == record.EventEntry && e.Event.Kind == record.MonitorLost:
			unheard += e.Event.Count
		}
	}
	return list, unheard
}

// Lost monitored frames are counted.
func TestMonitoredFramesAreRecordedOrCounted(t *testing.T) {
	run := runtest.Guarded(t, benchtest.GuardedText(t))
	say := run.Commands(t)
	c, w, node := listening(t, run)
	node.Send(&can.Frame{ID: 0x7FE}) // before the run
	c.monitor.takeUntil(0)
	run.Status.StartNs.Store(uint64(sched.Now()))
	if !c.begin() {
		t.Fatal(c.err)
	}
	const ticks, extra = 200, 10
	flood := func(n int) {
		for i := range n {
			if node.Send(&can.Frame{ID: 0x7FF, Len: 8}); i%64 == 63 || i == n-1 {
				c.monitor.mu.Lock()
				c.monitor.readFrames()
				c.monitor.mu.Unlock()
			}
		}
	}
	for k := int64(1); k <= ticks; k++ {
		for i := range say.Tx {
			var f can.Frame
			if say.Due(i, k, nil, false) && say.Encode(&f, i, k, nil, false) {
				run.Unit.Send(&f)
				node.Send(&can.Frame{ID: f.ID, Len: 1, Data: [64]byte{byte(k)}}) // an identifier of the bench, from another node
			}
		}
		if k == ticks/2 {
			flood(maxMonitored + extra)
		}
		run.Loop.Tick(1)
		c.drainRing()
	}
	c.writeWakeUp(&rt.Entry{})
	c.writeMonitored(math.MaxInt64)
	c.writeMonitorLosses()
	if err := c.w.Close(); err != nil {
		t.Fatal(err)
	}
	list, unheard := monitoredIn(t, c.path)
	known := 0
	for _, f := range list {
		if f.ID != 0x7FF {
			known++
		}
	}
	got := c.monitor.report()[0]
	if w.recorded != uint64(len(list)) || unheard < extra || got.Lost != unheard || got.Frames != w.recorded ||
		w.recorded+unheard != maxMonitored+extra+uint64(known) || known < 10 || c.whyIncomplete() != "" {
		t.Errorf("%d frames in the record, %d of them with identifiers of the bench, %d missing, %+v; want %d of a flood in all, at least %d missing; %s",
			len(list), known, unheard, got, maxMonitored+extra, extra, c.whyIncomplete())
	}
}

// The kernel marks frames sent from this host, but not the socket.
func TestMonitorDistinguishesFramesOfTheTarget(t *testing.T) {
	run := runtest.Guarded(t, benchtest.GuardedText(t))
	c, w, _ := listening(t, run)
	run.Status.StartNs.Store(uint64(sched.Now()))
	if !c.begin() {
		t.Fatal(c.err)
	}
	a := can.Frame{ID: 0x100, Len: 2, Data: [64]byte{1}}
	fd := can.Frame{ID: 0x101, Len: 12}
	c.monitor.noteSent(0, &a)
	c.monitor.noteSent(0, &fd)
	c.monitor.noteSent(7, &a) // a bus without a monitor
	byPort := can.Frame{ID: 0x18E8FF00 | can.EFF, Len: 8}
	c.monitor.noteSentByPorts([]port.Sent{{Bus: 0, Frame: byPort}}, 0, false)
	other := a
	other.Data[0] = 2
	echo := fd
	echo.Flags = can.FlagFDF
	now := sched.Realtime()
	for i, row := range []struct {
		frame can.Frame
		local bool
	}{
		{other, true},   // by another program of this host
		{a, false},      // by another node, even of the same content
		{a, true},       // its own
		{a, true},       // the same again, by another program
		{echo, true},    // its own, in the form that the kernel returns
		{byPort, false}, // by another node
		{byPort, true},  // by the port of the bus
		{byPort, true},  // the same again, by another program
	} {
		c.monitor.queue = append(c.monitor.queue, monitoredFrame{can.MonitoredFrame{Frame: row.frame, Local: row.local, Stamp: can.Stamp{Soft: now + int64(i)}}, w, false, now + int64(i)})
	}
	c.writeMonitored(now + 2)
	if n := w.recorded; n != 2 {
		t.Errorf("%d frames up to the third, want 2", n)
	}
	c.writeMonitored(math.MaxInt64)
	if err := c.w.Close(); err != nil {
		t.Fatal(err)
	}
	list, unheard := monitoredIn(t, c.path)
	want := []can.Frame{other, a, a, byPort, byPort, byPort}
	if len(list) != len(want) || unheard != 0 || len(w.sent) != 0 {
		t.Fatalf("%+v, %d missing, %d still expected; want %d frames", list, unheard, len(w.sent), len(want))
	}
	for i, f := range list {
		if f.Frame != want[i] || f.Sent != (i == 4) || f.Time < now {
			t.Errorf("frame %d: %+v, want %+v", i, f, want[i])
		}
	}
}

// A clock that ran an hour ahead, or behind, until now has the effect of a step: the recorder sees
// its difference from the clock of the grid only.
func TestStepOfTheClockIsNotedAndLosesNoMonitoredFrame(t *testing.T) {
	for _, row := range []struct {
		ahead time.Duration
		want  string
		busy  bool // the recorder drains the ring without a pause when the clock steps
	}{
		{time.Hour, "stepped by -3600.0", false}, {-time.Hour, "stepped by +3600.0", false}, {time.Hour, "stepped by -3600.0", true},
	} {
		ahead, want := row.ahead, row.want
		run := runtest.Guarded(t, benchtest.GuardedText(t))
		c, _, node := listening(t, run)
		run.Status.StartNs.Store(uint64(sched.Now()))
		if !c.begin() {
			t.Fatal(c.err)
		}
		c.offset += int64(ahead)
		c.start += int64(ahead)
		const frames = 20
		for range frames {
			node.Send(&can.Frame{ID: 0x7FF, Len: 8})
			run.Loop.Tick(1)
			if row.busy {
				c.drainRing()
			} else {
				c.Write(time.Now())
			}
		}
		c.writeMonitored(math.MaxInt64)
		if err := c.w.Close(); err != nil {
			t.Fatal(err)
		}
		list, unheard := monitoredIn(t, c.path)
		var notes []string
		for _, e := range recordtest.Entries(t, c.path) {
			if e.Kind == record.EventEntry && e.Event.Kind == record.Note {
				notes = append(notes, e.Event.Text)
			}
		}
		if len(list) != frames || unheard != 0 || len(notes) != 1 || !strings.Contains(notes[0], want) {
			t.Errorf("clock %v ahead: %d monitored frames, %d lost, notes %q; want %d, 0, one with %q", ahead, len(list), unheard, notes, frames, want)
		}
	}
}

// The loop and the monitor both receive a frame of another node that has the identifier of a sent
// message. It is in the record once, and without a monitor as a frame of the loop.
func TestFrameOfAnotherNodeWithASentIdentifierIsRecordedOnce(t *testing.T) {
	for monitored, want := range map[bool]int{true: 0, false: 1} {
		run := runtest.Guarded(t, benchtest.GuardedText(t))
		c, _, _ := listening(t, run)
		if !monitored {
			c.monitor.buses = nil
		}
		run.Status.StartNs.Store(uint64(sched.Now()))
		if !c.begin() {
			t.Fatal(c.err)
		}
		run.Unit.Send(&can.Frame{ID: 0x200, Len: 8})
		run.Loop.Tick(1)
		c.drainRing()
		c.writeWakeUp(&rt.Entry{})
		if err := c.w.Close(); err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, e := range recordtest.Entries(t, c.path) {
			if e.Kind == record.FrameEntry && !e.Frame.Sent {
				got++
			}
		}
		if got != want || run.Status.TxConflicts[0].Frames.Load() != 1 {
			t.Errorf("monitored %v: %d frames of the loop, want %d; %d conflicts", monitored, got, want, run.Status.TxConflicts[0].Frames.Load())
		}
	}
}

// A record that ends while the run lasts has the monitored frames up to its last tick, and none of later ones.
func TestRecordThatEndsEarlierHasItsLastMonitoredFrames(t *testing.T) {
	run := runtest.Guarded(t, benchtest.GuardedText(t))
	c, _, node := listening(t, run)
	period := run.Handover.Tables.PeriodNs
	run.Status.StartNs.Store(uint64(sched.Now() - 10*period))
	if !c.begin() {
		t.Fatal(c.err)
	}
	path := c.path
	node.Send(&can.Frame{ID: 0x7FD})
	c.monitor.mu.Lock()
	c.monitor.readFrames() // stamps the frames of a pair
	c.monitor.mu.Unlock()
	time.Sleep(time.Duration(2 * period))
	tick := (sched.Now() - int64(run.Status.StartNs.Load())) / period
	time.Sleep(time.Duration(2 * period))
	node.Send(&can.Frame{ID: 0x7FE})
	c.endRecord(tick)
	if list, _ := monitoredIn(t, path); len(list) != 1 || list[0].ID != 0x7FD {
		t.Errorf("the record has the monitored frames %+v, want one, of the tick before the end", list)
	}
}
