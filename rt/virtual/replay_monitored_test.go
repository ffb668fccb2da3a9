package virtual

import (
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/io/record/recordtest"
)

// Monitored frames may be lost, since they did not reach the plant.
func TestReplayIgnoresMonitoredFrames(t *testing.T) {
	file := virtualRun{bench: protectedTruck(t, "skip 100"), scenario: "scenario: calm\n", length: 2 * time.Second}.run(t)
	plain, err := Replay{Record: file}.Run()
	if err != nil {
		t.Fatal(err)
	}
	var list []record.Entry
	known := uint32(0) // an identifier that the bench receives
	for _, e := range recordtest.Entries(t, file) {
		if e.Kind == record.FrameEntry && !e.Frame.Sent {
			known = e.Frame.ID
		}
		list = append(list, e)
		if e.Kind == record.TickEntry && e.Tick.Index%10 == 0 {
			for _, id := range []uint32{0x7FF, known} {
				f := can.Frame{ID: id, Len: 1, Data: [64]byte{byte(e.Tick.Index)}}
				list = append(list, record.Entry{Kind: record.FrameEntry, Frame: record.Frame{Other: true, Tick: e.Tick.Index, Frame: f}})
			}
		}
	}
	if known == 0 {
		t.Fatal("the bench has received nothing")
	}
	same, err := Replay{Record: rewritten(t, file, list)}.Run()
	if err != nil || same != plain || same.Ticks == 0 || same.Frames == 0 {
		t.Errorf("%+v, %v; without monitored frames %+v", same, err, plain)
	}
}
