package bench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/sched"
)

// beside gives a run a bus to listen on, and a node on it.
func beside(t *testing.T, r *run) (w *other, node *can.Bus) {
	t.Helper()
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
	w = &other{bus: &r.bench.Buses[0], on: ends[0]}
	r.others = &others{page: r.page, wire: []*other{w}, stop: make(chan struct{})}
	t.Cleanup(func() { r.others.close(); ends[1].Close() })
	return w, ends[1]
}

// heardIn are the frames beside those of the bench in a record, and how many it says are
// missing.
func heardIn(t *testing.T, path string) (list []record.Frame, unheard uint64) {
	t.Helper()
	for _, e := range recorded(t, path) {
		switch {
		case e.Kind == record.FrameEntry && e.Frame.Other:
			list = append(list, e.Frame)
		case e.Kind == record.EventEntry && e.Event.Kind == record.Unheard:
			unheard += e.Event.Count
		}
	}
	return list, unheard
}

// What the bench does not read may be lost: what reached the plant is whole without it.
func TestFramesHeardBesideTheLoopAreNoPartOfAReplay(t *testing.T) {
	r, loop, unit := guardedRun(t, guardedText(t))
	say := unitMap(t, r)
	r.options.Record = filepath.Join(t.TempDir(), "record")
	if err := r.startRecord(); err != nil {
		t.Fatal(err)
	}
	w, node := beside(t, r)
	node.Send(&can.Frame{ID: 0x7FE}) // before the run
	r.others.take(0)
	r.page.StartNs.Store(uint64(sched.Now()))
	if !r.record.begin() {
		t.Fatal(r.record.err)
	}
	const ticks, extra = 200, 10
	flood := func(n int) {
		for i := range n {
			if node.Send(&can.Frame{ID: 0x7FF, Len: 8}); i%64 == 63 || i == n-1 {
				r.others.mu.Lock()
				r.others.read()
				r.others.mu.Unlock()
			}
		}
	}
	for k := int64(1); k <= ticks; k++ {
		for i := range say.Tx {
			var f can.Frame
			if say.Due(i, k, nil, false) && say.Encode(&f, i, k, nil, false) {
				unit.Send(&f)
				node.Send(&can.Frame{ID: f.ID, Len: 1, Data: [64]byte{byte(k)}}) // one the bench knows, of somebody else
			}
		}
		if k == ticks/2 {
			flood(maxOthers + extra)
		}
		loop.Tick(1)
		r.record.drain()
	}
	r.record.wakeUp(&rt.Entry{})
	r.record.beside(math.MaxInt64)
	r.record.unheard()
	if err := r.record.w.Close(); err != nil {
		t.Fatal(err)
	}
	list, unheard := heardIn(t, r.options.Record)
	known := 0
	for _, f := range list {
		if f.ID != 0x7FF {
			known++
		}
	}
	got := r.others.report()[0]
	if w.heard != uint64(len(list)) || unheard < extra || got.Lost != unheard || got.Heard != w.heard ||
		w.heard+unheard != maxOthers+extra+uint64(known) || known < 10 || r.record.trouble() != "" {
		t.Errorf("%d frames in the record, %d of them with identifiers of the bench, %d missing, %+v; want %d of a flood in all, at least %d missing; %s",
			len(list), known, unheard, got, maxOthers+extra, extra, r.record.trouble())
	}
	same, err := Replay{Record: r.options.Record}.Run()
	if err != nil || !strings.HasPrefix(same, "identical: 200 ticks, ") {
		t.Errorf("%q, %v", same, err)
	}
}

// The kernel says of a frame that a socket of this host has sent it, not which.
func TestOnlyWhatTheTargetHasSentIsItsOwn(t *testing.T) {
	r, _, _ := guardedRun(t, guardedText(t))
	r.options.Record = filepath.Join(t.TempDir(), "record")
	if err := r.startRecord(); err != nil {
		t.Fatal(err)
	}
	w, _ := beside(t, r)
	r.page.StartNs.Store(uint64(sched.Now()))
	if !r.record.begin() {
		t.Fatal(r.record.err)
	}
	a := can.Frame{ID: 0x100, Len: 2, Data: [64]byte{1}}
	fd := can.Frame{ID: 0x101, Len: 12}
	r.others.sends(0, &a)
	r.others.sends(0, &fd)
	r.others.sends(7, &a) // a bus nobody listens on
	other := a
	other.Data[0] = 2
	echo := fd
	echo.Flags = can.FlagFDF
	now := sched.Realtime()
	for i, c := range []struct {
		frame can.Frame
		local bool
	}{
		{other, true}, // by another program of this host
		{a, false},    // by another node, even of the same content
		{a, true},     // its own
		{a, true},     // the same again, by another program
		{echo, true},  // its own, as the kernel gives it back
	} {
		r.others.queue = append(r.others.queue, overheard{can.Heard{Frame: c.frame, Local: c.local, Stamp: can.Stamp{Soft: now + int64(i)}}, w, now + int64(i)})
	}
	r.record.beside(now + 2)
	if n := w.heard; n != 2 {
		t.Errorf("%d frames up to the third, want 2", n)
	}
	r.record.beside(math.MaxInt64)
	if err := r.record.w.Close(); err != nil {
		t.Fatal(err)
	}
	list, unheard := heardIn(t, r.options.Record)
	want := []can.Frame{other, a, a}
	if len(list) != len(want) || unheard != 0 || len(w.sent) != 0 {
		t.Fatalf("%+v, %d missing, %d still expected; want %d frames", list, unheard, len(w.sent), len(want))
	}
	for i, f := range list {
		if f.Frame != want[i] || f.Sent || f.Time < now {
			t.Errorf("frame %d: %+v, want %+v", i, f, want[i])
		}
	}
}
