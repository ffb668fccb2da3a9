package deploy

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"testing"
	"time"

	"lockstep/sched"
)

func TestCyclictestTakesTurnsBesideALoop(t *testing.T) {
	b := &Beside{CPU: elsewhere(-1), Priority: 1, Period: 2 * time.Millisecond}
	if err := b.Prepare(); err != nil {
		if _, missing := exec.LookPath(peerCyclictest); missing == nil {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer b.Close()
	var late sched.Histogram
	begun := sched.Now()
	stop := make(chan bool)
	go func() { // in the place of a loop
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				late.Record(50_500)
			}
		}
	}()
	err := b.Turn(t.Context(), 1900*time.Millisecond, begun, &late)
	close(stop)
	if err != nil {
		t.Fatal(err)
	}
	loop, peer, alone := b.Figures()
	if loop == nil || peer == nil || peer.Samples < 100 || loop.Samples < 50 || loop.Samples > 1000 {
		t.Fatalf("loop %+v, cyclictest %+v", loop, peer)
	}
	if loop.Histogram[50] != loop.Samples || loop.Against != "cyclictest" || loop.RatioP50 == nil {
		t.Errorf("loop %+v", loop)
	}
	if alone != nil {
		t.Errorf("alone %+v", alone)
	}
	want := 50.5e3 / float64(peer.P50)
	if !(math.Abs(*loop.RatioP50/want-1) < 0.05) {
		t.Errorf("ratio %g of 50.5 us to %d ns", *loop.RatioP50, peer.P50)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Turn(ctx, time.Hour, begun, &late); !errors.Is(err, context.Canceled) || len(b.loop) != 1 {
		t.Errorf("a turn that is interrupted: %v, %d turns", err, len(b.loop))
	}
}

func TestALoopsMissedPointsAreThoseAPeriodLate(t *testing.T) {
	var h sched.Histogram
	for _, ns := range []int64{10, 1500, 4_999_000, 5_000_000, 10_000_000, 15_000_000} {
		h.Record(ns)
	}
	r := loopRecord(&h, 5_000_000)
	if r.Samples != 6 || r.Missed != 3 || r.OffChart != 2 || r.Max != 15_000_000 || r.Histogram[1] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestABoxHasAFingerprint(t *testing.T) {
	b := Fingerprint("testdata/hosts/tuned", Ask{CPU: -1, Priority: 80})
	if b.Processor != "11th Gen Intel(R) Core(TM) i5-1145GRE @ 2.60GHz" || !b.Realtime || b.CPUs != "0-3" || b.Cmdline == "" || b.Isolated != "3" || b.Governor != "performance" {
		t.Errorf("%+v", b)
	}
	if len(b.CAN) != 2 || b.CAN[0].Interface != "can0" || b.CAN[0].State != "up" || b.CAN[0].Queue < 100 {
		t.Errorf("cards %+v", b.CAN)
	}
	if empty := Fingerprint(t.TempDir(), Ask{}); empty.MemoryKB != 0 || empty.ID != "" || len(empty.CAN) != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}

func TestEveryHostThatIsNotTunedHasObjections(t *testing.T) {
	for _, name := range hosts {
		root := "testdata/hosts/" + name
		d := diagnose(t, name, ask, nil)
		list := Objections(root, ask, d)
		if (len(list) == 0) != (name == "tuned") {
			t.Errorf("%s: %q", name, list)
		}
		if !d.Fit && len(list) == 0 {
			t.Errorf("%s is not fit, and nothing is objected", name)
		}
	}
}
