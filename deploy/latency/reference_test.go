package latency

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// busyLoop runs a loop on a CPU until stop is called. The loop computes for 0.4 of each period from
// the grid point on and records 50.5 us in late. granted tells whether it has priority 1.
func busyLoop(t *testing.T, cpu int, period time.Duration, late *sched.Histogram) (start int64, granted bool, stop func()) {
	t.Helper()
	timer, err := sched.NewTimer(sched.Nanosleep, period, 0)
	if err == nil {
		err = timer.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	ready, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread with the priority ends with the goroutine
		var set unix.CPUSet
		set.Set(cpu)
		err := unix.SchedSetaffinity(0, &set)
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		ready <- errors.Join(err, unix.SchedSetAttr(0, &fifo, 0)) == nil
		for k := int64(0); !over.Load(); {
			k += timer.Wait()
			late.Record(50_500)
			for sched.Now() < timer.Grid().Due(k)+int64(period)*2/5 {
			}
		}
	}()
	granted = <-ready
	return timer.Grid().Start, granted, func() {
		over.Store(true)
		<-done
		timer.Close()
	}
}

// Half a period after its grid points the loop sleeps. A cyclictest that woke up a tenth of a period
// after the grid points would wait for 1.2 ms.
func TestCyclictestDoesNotWaitForTheLoop(t *testing.T) {
	b := &Reference{CPU: otherCPUs(-1)[0], Period: 4 * time.Millisecond}
	if err := b.Prepare(); err != nil {
		if _, missing := exec.LookPath(methodCyclictest); missing == nil {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer b.Close()
	var late sched.Histogram
	start, granted, stop := busyLoop(t, b.CPU, b.Period, &late)
	if granted {
		b.Priority = 1
	}
	var loop, peer, alone *Figures
	for range 5 { // a busy machine may delay this goroutine until cyclictest has ended
		if err := b.Turn(t.Context(), 4*time.Second, start, &late); err != nil {
			t.Fatal(err)
		}
		if loop, peer, alone = b.Figures(); loop != nil && loop.Samples >= 50 {
			break
		}
	}
	stop()
	turns := len(b.loop)
	if loop == nil || peer == nil || alone != nil || peer.Samples < 50 || loop.Samples < 50 || loop.Samples >= int64(late.N()) { // the loop began before the first turn
		t.Fatalf("loop %+v, cyclictest %+v, alone %+v", loop, peer, alone)
	}
	if loop.Histogram[50] != loop.Samples || loop.Against != "cyclictest" || loop.RatioP50 == nil {
		t.Errorf("loop %+v", loop)
	}
	if want := 50.5e3 / float64(peer.P50); !(math.Abs(*loop.RatioP50/want-1) < 0.05) {
		t.Errorf("ratio %g of 50.5 us to %d ns", *loop.RatioP50, peer.P50)
	}
	if most := int64(b.Period) / 5; granted && peer.P50 > most {
		t.Errorf("the median latency of cyclictest is %d ns, want at most %d: it waits for the loop", peer.P50, most)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Turn(ctx, time.Hour, start, &late); !errors.Is(err, context.Canceled) || len(b.loop) != turns {
		t.Errorf("an interrupted turn: %v, %d turns, want %d", err, len(b.loop), turns)
	}
}

func TestATurnInWhichCyclictestFailedIsLeftOut(t *testing.T) {
	turn := func(us int64) *record { return recordOf(1_000_000, us*1000+500, us*1000+500, us*1000+500) }
	b := &Reference{loop: []*record{turn(20), turn(900), turn(20)}, cyclictest: []*record{turn(10), nil, turn(10)}}
	loop, peer, _ := b.Figures()
	if loop == nil || peer == nil || loop.Samples != 6 || peer.Samples != 6 || loop.Max != 20_500 {
		t.Fatalf("loop %+v, cyclictest %+v", loop, peer)
	}
	for what, got := range map[string]*float64{"ratio p50": loop.RatioP50, "ratio p99": loop.RatioP99, "pooled p50": loop.PooledP50, "pooled p99": loop.PooledP99} {
		if got == nil || !(math.Abs(*got/(20.5/10.5)-1) < 0.02) {
			t.Errorf("%s: %v, want %g", what, got, 20.5/10.5)
		}
	}
	b.cyclictest = []*record{nil, nil, nil}
	if loop, peer, _ := b.Figures(); loop != nil || peer != nil {
		t.Errorf("all failed: %+v, %+v", loop, peer)
	}
}

func TestLoopRecordCountsPointsAPeriodLateAsMissed(t *testing.T) {
	var h sched.Histogram
	for _, ns := range []int64{10, 1500, 4_999_000, 5_000_000, 10_000_000, 15_000_000} {
		h.Record(ns)
	}
	r := loopRecord(&h, 5_000_000)
	if r.Samples != 6 || r.Missed != 3 || r.OffChart != 2 || r.Max != 15_000_000 || r.Histogram[1] != 1 {
		t.Errorf("%+v", r)
	}
}
