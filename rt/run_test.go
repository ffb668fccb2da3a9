package rt

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/sched"
)

func TestRunEndsAfterItsLastTick(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Ticks, cfg.Start, cfg.Warmup = 200, []float64{4}, 50 })
	for range 5 {
		b.command(t, -99) // from before the start
	}
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	p := b.page
	if State(p.State.Load()) != Ended || Reason(p.Reason.Load()) != Done || p.Ticks.Load() != 200 {
		t.Errorf("state %d, %v, tick %d; want ended, done, 200", p.State.Load(), Reason(p.Reason.Load()), p.Ticks.Load())
	}
	if p.RxStale.Load() != 5 || p.RxFrames.Load() != 0 {
		t.Errorf("%d frames thrown away, %d read; want the 5 stale ones, 0", p.RxStale.Load(), p.RxFrames.Load())
	}
	if want := 4 * 200 * period.Seconds(); b.plant.resets != 1 || !scalar.EqualWithinAbs(b.plant.x, want, near) {
		t.Errorf("x = %g m after %d resets, want %g m: the warm-up leaves no trace", b.plant.x, b.plant.resets, want)
	}
	if p.Allocs.Load() != 0 || p.GCCycles.Load() != 0 {
		t.Errorf("%d allocations, %d collections, want 0", p.Allocs.Load(), p.GCCycles.Load())
	}
	if p.Late.N() != 200 || p.Work.N() != 200 || p.Work.Max() <= 0 {
		t.Errorf("%d latenesses, %d working times, want 200 of each", p.Late.N(), p.Work.N())
	}
}

func TestRunStopsWhenTheStatusBlockAsksForIt(t *testing.T) {
	b := newBench(t, Overrun{Skip, 5})
	b.page.Stop.Store(1)
	b.ticker.Miss(1, 2)
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	p := b.page
	if Reason(p.Reason.Load()) != Stopped || p.Ticks.Load() != 3 || p.Missed.Load() != 2 {
		t.Errorf("%v at tick %d, %d missed; want stopped at 3, 2", Reason(p.Reason.Load()), p.Ticks.Load(), p.Missed.Load())
	}
}

// brokenTicker fails at the third Wait.
type brokenTicker struct {
	sched.Virtual
	waits int
}

var errBroken = errors.New("no such timer")

func (b *brokenTicker) Wait() int64 {
	if b.waits++; b.waits == 3 {
		return 0
	}
	return b.Virtual.Wait()
}

func (b *brokenTicker) Err() error {
	if b.waits == 3 {
		return errBroken
	}
	return nil
}

func TestRunEndsWhenTheTickerFails(t *testing.T) {
	tk := &brokenTicker{Virtual: *sched.NewVirtual(period)}
	page := new(StatusBlock)
	l, err := New(Config{Period: period, Start: []float64{0}, Watch: unwatched()}, &integrator{}, nil, nil, tk, page)
	if err != nil {
		t.Fatal(err)
	}
	err = l.Run()
	if !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "rt: tick 3: ") {
		t.Errorf("Run: %v, want: rt: tick 3: %v", err, errBroken)
	}
	if Reason(page.Reason.Load()) != TimerFailed || State(page.State.Load()) != Ended || page.Ticks.Load() != 2 {
		t.Errorf("%v, state %d, tick %d", Reason(page.Reason.Load()), page.State.Load(), page.Ticks.Load())
	}
}

// A reader in the same process, for the race detector.
func TestStatusBlockIsReadableDuringARun(t *testing.T) {
	b := newBench(t, Overrun{Skip, 5}, func(cfg *Config, _ *integrator) { cfg.Start = []float64{1} })
	var wg sync.WaitGroup
	wg.Go(func() {
		y := make([]float64, outputs)
		for b.page.Ticks.Load() < 2000 {
			if tick, ok := b.page.Outputs(y); ok && y[outSteps] != float64(tick) {
				t.Errorf("outputs of step %g at tick %d", y[outSteps], tick)
				break
			}
			b.page.Late.Quantile(0.99)
			b.page.LagMax()
			b.page.LastRx[0].Load()
		}
		b.page.Stop.Store(1)
	})
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if r := Reason(b.page.Reason.Load()); r != Stopped {
		t.Errorf("the run ended: %v", r)
	}
}

const targetVariable = "RT_TEST_TARGET"

func TestMain(m *testing.M) {
	if os.Getenv(targetVariable) != "" {
		if err := target(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// handOver is the input of the target of TestNoTickIsLostUncountedOnTheRealClock.
type handOver struct {
	Config Config
	Map    *sigmap.Map
	Thread sched.Thread
}

// target is the main function of the process that ticks. It inherits the hand-over on descriptor 3,
// the status block on 4 and its bus on 5.
func target() error {
	var h handOver
	if err := json.NewDecoder(os.NewFile(3, "hand-over")).Decode(&h); err != nil {
		return err
	}
	page, err := MapStatusBlock(os.NewFile(4, "page"))
	if err != nil {
		return err
	}
	bus, err := can.Inherit(os.NewFile(5, "bus"))
	if err != nil {
		return err
	}
	tk, err := sched.NewTimer(sched.Timerfd, h.Config.Period, 0)
	if err != nil {
		return err
	}
	plant := &integrator{h: h.Config.Period.Seconds(), lag: 0.004}
	l, err := New(h.Config, plant, []*can.Bus{bus}, []*sigmap.Map{h.Map}, tk, page)
	if err != nil {
		return err
	}
	h.Thread.Enter()
	return l.Run()
}

// startTarget starts the process that ticks.
func startTarget(t *testing.T, h handOver) (cmd *exec.Cmd, page *StatusBlock, unit *can.Bus) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pageFile, page, err := CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	busFile, unitFile, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), targetVariable+"=1")
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{r, pageFile, busFile}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if unit, err = can.Inherit(unitFile); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unit.Close() })
	return cmd, page, unit
}

// unitLog counts the frames of the unit in a run.
type unitLog struct {
	received, sent uint64 // frames
	stopped        bool   // the target was stopped for ten ticks
}

// runUnit acts as the unit until the target ends. It sends the command u at about every tick and
// stops the target once for ten ticks, at tick at.
func runUnit(cmd *exec.Cmd, page *StatusBlock, unit *can.Bus, u float64, at uint64) (log unitLog, err error) {
	const h = 2 * time.Millisecond
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	frames := make([]can.Frame, 1024) // more than the socket holds
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(h):
		}
		log.received += uint64(unit.Recv(frames))
		if !running || page.State.Load() != uint64(Running) {
			continue
		}
		if unit.Send(&can.Frame{ID: 0x110, Len: 4, Data: [64]byte{byte(u * 100)}}) {
			log.sent++
		}
		if !log.stopped && page.Ticks.Load() > at {
			log.stopped = true
			_ = cmd.Process.Signal(unix.SIGSTOP)
			time.Sleep(10 * h)
			_ = cmd.Process.Signal(unix.SIGCONT)
		}
	}
	return log, err
}

// A target process runs on the real clock and is stopped for some ticks. No tick and no frame is lost
// uncounted, the state of the plant fits the grid, and the process has no allocation and no page
// fault.
func TestNoTickIsLostUncountedOnTheRealClock(t *testing.T) {
	const ticks, u, h = 400, 2.5, 2 * time.Millisecond
	m := database(t)
	m.Tx = m.Tx[:1] // State, due at every tick for any period
	cmd, p, unit := startTarget(t, handOver{
		Config: Config{
			Period: h, Ticks: ticks, Overrun: Overrun{Skip, maxOverrun}, Start: []float64{u}, Warmup: 100,
			Watch: Watch{Events: outEvents, Transitions: outTransitions, Lag: outLag, Fault: outFault},
		},
		Map: m, Thread: sched.Thread{CPU: -1, Priority: 10},
	})
	log, err := runUnit(cmd, p, unit, u, ticks/4)
	if err != nil {
		t.Fatalf("the target ended: %v", err)
	}
	if State(p.State.Load()) != Ended || Reason(p.Reason.Load()) != Done || p.Ticks.Load() != ticks {
		t.Errorf("state %d, %v, tick %d; want ended, done, %d", p.State.Load(), Reason(p.Reason.Load()), p.Ticks.Load(), ticks)
	}
	if log.stopped && p.Missed.Load() == 0 || p.Ticks.Load() != p.Late.N() || p.StartNs.Load() == 0 {
		t.Errorf("%d ticks, %d missed, %d latenesses; stopped for ten: %t", p.Ticks.Load(), p.Missed.Load(), p.Late.N(), log.stopped)
	}
	y := make([]float64, outputs)
	tick, ok := p.Outputs(y)
	if want := u * h.Seconds() * ticks; !ok || tick != ticks || !scalar.EqualWithinAbs(y[outX], want, near) {
		t.Errorf("x = %g m at tick %d, want %g m at %d", y[outX], tick, want, ticks)
	}
	if p.TxFrames.Load() != log.received || p.TxFrames.Load()+p.TxLost.Load()+p.TxDropped.Load() != ticks {
		t.Errorf("%d frames sent, %d received, %d of lost ticks, %d dropped; want %d in all",
			p.TxFrames.Load(), log.received, p.TxLost.Load(), p.TxDropped.Load(), ticks)
	}
	if got := p.RxFrames.Load() + p.RxStale.Load(); got == 0 || got > log.sent || p.RxUnknown.Load()+p.RxShort.Load()+p.RxRange.Load() != 0 {
		t.Errorf("%d frames came in, %d were sent; unknown %d, short %d, out of range %d", got, log.sent, p.RxUnknown.Load(), p.RxShort.Load(), p.RxRange.Load())
	}
	checkClean(t, p)
	t.Logf("missed %d; late p50 %v, max %v; work p50 %v, max %v", p.Missed.Load(),
		time.Duration(p.Late.Quantile(0.5)), time.Duration(p.Late.Max()), time.Duration(p.Work.Quantile(0.5)), time.Duration(p.Work.Max()))
}

// checkClean fails if the target allocated, collected or faulted between its
// first and its last tick.
func checkClean(t *testing.T, p *StatusBlock) {
	t.Helper()
	if p.Allocs.Load() != 0 || p.GCCycles.Load() != 0 {
		t.Errorf("%d allocations, %d collections between the first and the last tick, want 0", p.Allocs.Load(), p.GCCycles.Load())
	}
	_, _, errno := unix.RawSyscall(unix.SYS_MADVISE, 0, 0, unix.MADV_POPULATE_WRITE) // Linux 5.14
	if errno == 0 && !raceDetector && (p.MinorFaults.Load() != 0 || p.MajorFaults.Load() != 0) {
		t.Errorf("%d minor and %d major page faults, want 0", p.MinorFaults.Load(), p.MajorFaults.Load())
	}
}
