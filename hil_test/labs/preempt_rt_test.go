package labs

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/sched/hostinfo"
)

// The tests run the command on a PREEMPT_RT kernel with two emulated CAN cards: the bench on can0,
// a virtual control unit and candump on can1. A boot is slow, so all subtests share one.
func TestLabPreemptRT(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT, "candump", "rtla", "hwlatdetect") {
		return
	}
	for _, test := range []struct {
		name  string
		check func(*testing.T)
	}{
		{"HostIsPreemptRTWithAnIsolatedCPU", checkHost},
		{"DoctorFindsNothingWrongButTheEmulator", checkDoctor},
		{"LatencyMeasuresDeadlineBesideFIFO", latencyDeadline},
		{"LoopHasItsCPUAloneWithATimerfd", func(t *testing.T) { checkRun(t, nil, unix.SCHED_FIFO) }},
		{"LoopHasItsCPUAloneWithNanosleep", func(t *testing.T) {
			checkRun(t, []lab.Edit{{"timer: timerfd", "timer: nanosleep"}}, unix.SCHED_FIFO)
		}},
		{"LoopHasItsCPUAloneUnderADeadline", func(t *testing.T) {
			checkRun(t, []lab.Edit{{"scheduler: fifo", "scheduler: deadline"}}, unix.SCHED_DEADLINE)
		}},
		{"FloodIsCountedAndDoesNotStopTheRun", flood},
		{"ClockStepChangesNothing", clockStep},
		{"CardDownAndUpIsCountedAndTheRunGoesOn", cardDownAndUp},
		{"OverrunOfACardIsReported", overrun},
		{"FalseBusOffIsCorrectedByTheKernel", falseBusOff},
		{"ErrorFramesAndBusOffOfACardAreReported", busOffOfACard},
		{"TargetKilledLeavesTheSafeStateOnTheBus", func(t *testing.T) { targetKilled(t, syscall.SIGKILL) }},
		{"TargetCrashedLeavesTheSafeStateOnTheBus", func(t *testing.T) { targetKilled(t, syscall.SIGSEGV) }},
		{"TargetKilledOnAnOverloadedHostFallsToTheSafeStateInTime", targetKilledOverloaded},
		{"TimersThatAKilledRunRaisedAreRestored", killedRunTimers},
		{"SupervisorKilledTargetContinuesAndIsAttachedTo", supervisorKilledGoesOn},
		{"SupervisorKilledTargetGoesSafeAfterItsTime", func(t *testing.T) { afterDeath(t, "safe after 500 ms", 50, 1<<20) }},
		{"SupervisorKilledTargetStopsAfterItsTime", func(t *testing.T) { afterDeath(t, "stop after 500 ms", 0, 22) }},
		{"ReusedProcessIDsAreNotTakenForARun", reusedIDs},
		{"GPIOLineSwitchesTheSupply", gpioLineSwitchesTheSupply},
		{"LoopCPUTakenOfflineIsHarmlessOrAClearStop", cpuOffline},
	} {
		t.Run(test.name, test.check)
	}
}

func checkHost(t *testing.T) {
	if got := lab.ReadTrimmed(t, "/sys/kernel/realtime"); got != "1" {
		t.Errorf("/sys/kernel/realtime: %q, want 1", got)
	}
	if got := lab.ReadTrimmed(t, "/sys/devices/system/cpu/isolated"); got != lab.IsolatedCPU {
		t.Errorf("isolated CPUs: %q, want %s", got, lab.IsolatedCPU)
	}
}

func checkDoctor(t *testing.T) {
	p := lab.Start(t, lab.Command(t), "doctor", "-json", "-measure=false")
	code := p.Wait()
	var found struct {
		Checks []struct{ Name, Level, Verdict, Found string }
	}
	if err := json.Unmarshal([]byte(p.Out.String()), &found); err != nil {
		t.Fatalf("doctor -json: %v\n%s%s", err, &p.Out, &p.Err)
	}
	verdicts := map[string]string{}
	for _, c := range found.Checks {
		verdicts[c.Name] = c.Verdict
		if wrong := c.Name == "virtualisation"; c.Level == "must" && (c.Verdict == "wrong") != wrong {
			t.Errorf("%s: %s, %s", c.Name, c.Verdict, c.Found)
		}
	}
	for _, name := range []string{"kernel", "isolation", "priority", "memlock", "ktimers", "can interrupts", "rtla", "hwlatdetect", "tracing", "can can0"} {
		if verdicts[name] != "ok" {
			t.Errorf("%s: %q, want ok", name, verdicts[name])
		}
	}
	if code != 3 {
		t.Errorf("exit %d, want 3 on an unfit host:\n%s", code, &p.Err)
	}
}

// latencyDeadline measures the tickers on the isolated CPU, which alone can have SCHED_DEADLINE. The
// child refuses to measure under another policy.
func latencyDeadline(t *testing.T) {
	file := filepath.Join(t.TempDir(), "latency.json")
	t.Setenv("PATH", "/nonexistent") // no C programs: a compiler takes a minute in the emulator
	p := lab.Start(t, lab.Command(t), "latency", "-period", "10ms", "-for", "4s", "-load=false", "-report", file)
	if code := p.WaitFor(3 * lab.Timeout); code != 0 {
		t.Fatalf("exit %d: %s", code, &p.Err)
	}
	var r struct {
		CPU         int
		NotMeasured []string `json:"not_measured"`
		Reasons     []string
		Tickers     map[string]struct{ Samples int }
	}
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, file)), &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"timerfd", "timerfd_deadline", "nanosleep", "nanosleep_deadline"} {
		if r.Tickers[name].Samples == 0 {
			t.Errorf("no figures of %s on CPU %d; not measured %q, reasons %q", name, r.CPU, r.NotMeasured, r.Reasons)
		}
	}
}

// rtBench is a run in a lab that may be slow. The run has no fixed length: the test stops it.
type rtBench struct {
	*lab.Bench
	started time.Time // time before the start
	ticking time.Time // time after the first status line
}

// busOffOfACard runs the bench on a card that goes through its states, and lets it fall to the safe state
// at bus-off. No card that the emulator has can fail so: the test plays it.
func busOffOfACard(t *testing.T) {
	t.Cleanup(killTargets)
	card := newAdapter(t)
	lab.Shell(t, "ip link set "+card.bus+" up type can bitrate 500000")
	statesAreReported(t, card)

	b := ticking(t, card.bus, []lab.Edit{{"bus_off: continue", "bus_off: safe"}})
	card.report("sb000256")
	b.AwaitOutput("SAFE since")
	b.Signal(syscall.SIGINT)
	if code := b.Wait(); code != 1 || !strings.Contains(b.Err.String(), "a bus was down or off") {
		t.Errorf("exit %d after bus-off, want 1\n%s%s", code, &b.Out, &b.Err)
	}
	if r := reportOf(t, b.Bench); r.Clean || !strings.Contains(r.Ended, "a bus was down or off") {
		t.Errorf("the report says: clean %t, ended %q; want a bus that was off", r.Clean, r.Ended)
	}
	lab.Shell(t, "ip link set "+card.bus+" down")
}

// runRT starts the demo bench, edited, on can0, with all rights, and waits until it
// ticks.
func runRT(t *testing.T, edits ...lab.Edit) *rtBench {
	t.Helper()
	t.Cleanup(killTargets) // after a failed test
	return ticking(t, "can0", edits)
}

// killTargets kills every target in the lab.
func killTargets() {
	for _, pid := range hostinfo.Files("/").ProcessesNamed("lockstep-target") {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// ticking starts the demo bench, edited, on a bus, with more arguments, and waits until it
// ticks.
func ticking(t *testing.T, bus string, edits []lab.Edit, args ...string) *rtBench {
	t.Helper()
	b := &rtBench{started: time.Now()}
	b.Bench = lab.StartDemoOn(t, bus, lab.UntilStopped, edits, args...)
	b.AwaitTicking() // the first status line
	b.ticking = time.Now()
	return b
}

// stop ends the run and checks its ticks, served or missed, against the clock.
func (b *rtBench) stop() lab.Report {
	b.T.Helper()
	least := time.Since(b.ticking)
	r := b.Bench.Stop()
	b.checkClock(r, least)
	return r
}

// checkClock checks that a report has ticks for at least a duration and at most the time since the
// start, and the frames of all ticks.
func (b *rtBench) checkClock(r lab.Report, least time.Duration) {
	b.T.Helper()
	most, got := time.Since(b.started), time.Duration(int64(r.Ticks)*r.StepNs)
	least -= time.Duration(r.LateNs.Max + r.TickNs.Max)
	if got < least || got > most {
		b.T.Errorf("%d ticks last %v; the run lasted %v to %v", r.Ticks, got, least, most)
	}
	// Speeds at each grid point, Torque and Status at every other one.
	if r.TxFrames+r.TxDropped-r.TxAgain+r.TxLost != 2*r.Ticks {
		b.T.Errorf("%d frames sent, %d dropped, %d of them tried again, %d of missed ticks; want %d together, two for each of %d grid points",
			r.TxFrames, r.TxDropped, r.TxAgain, r.TxLost, 2*r.Ticks, r.Ticks)
	}
}

// checkRun checks a whole run with a control unit: the threads during the run, the frames on the
// bus and the report.
func checkRun(t *testing.T, edits []lab.Edit, policy int) {
	dump := lab.StartCandump(t, "can1")
	tcu := lab.StartUnit(t, "can1")
	sent, before := lab.CardCounters(t), lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU)
	b := runRT(t, edits...)
	loop := checkThreads(t, b, policy)
	timers := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU)
	if edits == nil && timers.Priority <= loop.Priority {
		t.Errorf("thread of the timers of the loop's CPU: %v; want a priority above that of the loop, %d", timers, loop.Priority)
	}
	if latency := lab.DMALatency(t); latency != 0 {
		t.Errorf("/dev/cpu_dma_latency is held at %d us, want 0", latency)
	}
	tcu.AwaitOutput("shift 1-3-6 -> 2-3-6")
	r := b.stop()
	if latency := lab.DMALatency(t); latency == 0 {
		t.Error("/dev/cpu_dma_latency is still held at 0 after the run")
	}
	if after := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU); after.PID != before.PID || after.Scheduling() != before.Scheduling() {
		t.Errorf("after the run %v, before it %v, during it %v", after, before, timers)
	}
	byID, _ := lab.EndCandump(t, dump)
	tcu.Signal(syscall.SIGINT)
	tcu.Wait()
	checkWire(t, sent, byID, r)
	if r.BestEffort {
		t.Errorf("the run was best effort, although the lab grants all rights:\n%s", &b.Out)
	}
	if r.Allocs+r.GCCycles+r.Minor+r.Major != 0 {
		t.Errorf("the ticking process: %d allocations, %d collections, %d and %d page faults; want none", r.Allocs, r.GCCycles, r.Minor, r.Major)
	}
	if len(byID["110"].Data) == 0 || r.RxFrames == 0 || r.RxUnknown+r.RxShort+r.RxRange != 0 {
		t.Errorf("the unit sent %d frames; the bench received %d: unknown %d, short %d, out of range %d",
			len(byID["110"].Data), r.RxFrames, r.RxUnknown, r.RxShort, r.RxRange)
	}
}

// checkThreads checks the threads of all processes of a run and returns the thread of the loop.
func checkThreads(t *testing.T, b *rtBench, policy int) hostinfo.Thread {
	t.Helper()
	target := b.Target()
	loop := lab.LoopThread(t, target)
	wantPriority := 80
	if policy == unix.SCHED_DEADLINE {
		wantPriority = 0
	}
	if loop.Policy != policy || loop.Priority != wantPriority || hostinfo.FormatCPUs(loop.CPUs) != lab.IsolatedCPU {
		t.Errorf("the loop's thread %v; want policy %d, priority %d, CPUs %s", loop, policy, wantPriority, lab.IsolatedCPU)
	}
	if blocked := lab.Blocked(t, loop); blocked>>(lab.SIGURG-1)&1 == 0 {
		t.Errorf("the loop's thread blocks the signals %x, want SIGURG among them", blocked)
	}
	for _, h := range append(lab.Threads(t, target), lab.Threads(t, b.Cmd.Process.Pid)...) {
		switch {
		case h.PID == loop.PID:
		case hostinfo.FormatCPUs(h.CPUs) != "0":
			t.Errorf("thread %v is not that of the loop, want it off CPU %s", h, lab.IsolatedCPU)
		case h.Policy != unix.SCHED_NORMAL:
			t.Errorf("thread %v is not that of the loop, want SCHED_OTHER", h)
		}
	}
	guard := lab.AwaitGuard(t, b.Cmd.Process.Pid)
	for _, h := range lab.Threads(t, guard) {
		if h.Policy != unix.SCHED_FIFO || h.Priority != 79 || hostinfo.FormatCPUs(h.CPUs) != "0" {
			t.Errorf("thread %v of the guard, want SCHED_FIFO 79 off CPU %s", h, lab.IsolatedCPU)
		}
	}
	for name, pid := range map[string]int{"target": target, "guard": guard} {
		locked, resident := lab.StatusKilobytes(t, pid, "VmLck"), lab.StatusKilobytes(t, pid, "VmRSS")
		t.Logf("loop %v, memory of the %s %d kB locked, %d kB resident", loop, name, locked, resident)
		if locked < resident/10*9 { // the stacks of other threads are not of the tick
			t.Errorf("the %s has locked %d kB of %d kB, want nearly all", name, locked, resident)
		}
	}
	return loop
}

// checkWire compares the report with the counters of the cards and with candump. The receiving card
// may lose frames while the emulator stalls, and counts overruns.
func checkWire(t *testing.T, before map[string]int, byID map[string]*lab.Frames, r lab.Report) {
	t.Helper()
	seen := 0
	for _, id := range []string{"200", "201", "202"} {
		if byID[id] == nil {
			t.Fatalf("no frame %s on the bus", id)
		}
		seen += len(byID[id].Data)
	}
	now := lab.CardCounters(t)
	sent, received := now["can0 tx_packets"]-before["can0 tx_packets"], now["can1 rx_packets"]-before["can1 rx_packets"]
	overruns := now["can1 rx_over_errors"] - before["can1 rx_over_errors"]
	t.Logf("the report says %d frames sent, %d dropped; the card of the bench %d sent, the other one %d received, %d overruns",
		r.TxFrames, r.TxDropped, sent, received, overruns)
	if sent != int(r.TxFrames) || seen != received || received > sent || overruns == 0 && received != sent {
		t.Errorf("%d frames on the bus, the report says %d; the card of the bench sent %d, the other one received %d, %d overruns",
			seen, r.TxFrames, sent, received, overruns)
	}
}

// flood sends frames as fast as the card allows: first unknown ones, then those that the bench
// reads.
func flood(t *testing.T) {
	before := lab.CardCounters(t)
	b := runRT(t)
	n := lab.AwaitSender(t, lab.SendRandom(t, "can1", "1000", "2", "7ff", "123", "1abcdef", "112"))
	m := lab.AwaitSender(t, lab.SendRandom(t, "can1", "1000", "2", "110", "111"))
	r := b.stop()
	if n == 0 || m == 0 {
		t.Fatal("the sender sent no frame")
	}
	now := lab.CardCounters(t)
	received := now["can0 rx_packets"] - before["can0 rx_packets"]
	t.Logf("%d and %d frames sent; the card of the bench received %d; the bench read %d and counted %d as lost",
		n, m, received, r.RxFrames, r.RxOverflow)
	// The card counts lost frames; the filter of the kernel drops unknown ones.
	got := int(r.RxFrames + r.RxOverflow)
	overruns := now["can0 rx_over_errors"] - before["can0 rx_over_errors"]
	if f := reportOfBus(b.Bench); f.Overflows != overruns || f.Unread != 0 || f.State != "error-active" { // the driver sends an error frame for each
		t.Errorf("%d overruns by the error frames, %d by the driver; %d error frames not read; at the end %s", f.Overflows, overruns, f.Unread, f.State)
	}
	if got == 0 || got > int(m) || overruns == 0 && got != int(m) {
		t.Errorf("of %d frames for the bench it read %d and counted %d as lost; its card had %d overruns", m, r.RxFrames, r.RxOverflow, overruns)
	}
}

// clockStep sets the clock of the host an hour ahead and back again.
func clockStep(t *testing.T) {
	b := runRT(t)
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		now := syscall.NsecToTimeval(time.Now().Add(step).UnixNano())
		if err := syscall.Settimeofday(&now); err != nil {
			t.Fatal(err)
		}
		b.AwaitTicks(60)
		b.AwaitStatus(1) // the supervisor has noticed the step
	}
	if r := b.stop(); r.LateNs.Max > int64(time.Hour)/2 {
		t.Errorf("largest wake-up latency %d ns, want less than half an hour", r.LateNs.Max)
	}
	steps := reportOf(t, b.Bench).ClockSteps
	if len(steps) != 2 || !(math.Abs(steps[0].Step-3600) < 1) || !(math.Abs(steps[1].Step+3600) < 1) {
		t.Errorf("steps of the clock %v in the report, want an hour and back", steps)
	}
}

// link runs `ip link set can0` with more arguments.
func link(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", append([]string{"link", "set", "can0"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("ip link set can0 %v: %v\n%s", args, err, out)
	}
}

func cardDownAndUp(t *testing.T) {
	dump := lab.StartCandump(t, "can1")
	b := runRT(t)
	link(t, "down")
	b.AwaitOutput("bus drive is down")
	quiet := strings.Count(dump.Out.String(), " 200#")
	link(t, "up", "type", "can", "bitrate", "500000")
	lab.Await(t, "50 Speeds after the card was up again", func() bool {
		return strings.Count(dump.Out.String(), " 200#") >= quiet+50
	})
	if r := b.stop(); r.TxDropped == 0 || r.BusDown == 0 {
		t.Errorf("the report counts %d dropped frames, and the bus down %d times; want some of each", r.TxDropped, r.BusDown)
	}
	f := reportOfBus(b.Bench)
	if got, want := f.states(), []string{"down", "error-active"}; !slices.Equal(got, want) || !(f.Seconds["down"] > 0.2) || f.TxErrors == nil || *f.TxErrors != 0 {
		t.Errorf("the bus was %q for %v, want %q; errors in sending %v", got, f.Seconds, want, f.TxErrors)
	}
}

// overrun keeps the interrupt thread of the card from its CPU while frames arrive.
func overrun(t *testing.T) {
	before := lab.CardCounters(t)["can0 rx_over_errors"]
	b := runRT(t)
	lab.Shell(t, "chrt -o -p 0 $(pgrep '^irq/[0-9]+-can0$')")
	defer lab.Shell(t, "chrt -f -p 50 $(pgrep '^irq/[0-9]+-can0$')")
	// timeout, which ends the hog, needs a CPU without it.
	hog := lab.Start(t, "taskset", "-c", lab.IsolatedCPU, "timeout", "1", "taskset", "-c", "0", "chrt", "-f", "2", "sh", "-c", "while :; do :; done")
	t.Setenv(lab.SenderVar, "1")
	sender := lab.Start(t, "taskset", "-c", "0", "chrt", "-f", "3", os.Args[0], "can1", "1000", "1", "7ff")
	os.Unsetenv(lab.SenderVar)
	lab.AwaitSender(t, sender)
	hog.Wait()
	b.stop()
	f, overruns := reportOfBus(b.Bench), lab.CardCounters(t)["can0 rx_over_errors"]-before
	if overruns == 0 || f.Overflows != overruns || f.Unread != 0 || f.State != "error-active" {
		t.Errorf("%d overruns by the error frames, %d by the driver; %d error frames not read; at the end %s; want as many by both, and some", f.Overflows, overruns, f.Unread, f.State)
	}
}

// falseBusOff writes an error frame with bus-off to the card. The driver echoes it like a real one,
// and the kernel reports the true state when asked. Meanwhile the supervisor tries to restart the
// card, which the driver refuses, since the card is on.
func falseBusOff(t *testing.T) {
	b := runRT(t, lab.Edit{"    database: ", "    recover: restart after 10 ms\n    database: "})
	errorFrames(t, "can0", 1, unix.CAN_ERR_BUSOFF)
	b.AwaitStatus(3)
	b.stop()
	f := reportOfBus(b.Bench)
	if f.Offs != 1 || f.State != "error-active" || !slices.Equal(f.states(), []string{"bus-off", "error-active"}) {
		t.Errorf("bus-off %d times, states %q, at the end %s; want bus-off once, then error-active", f.Offs, f.states(), f.State)
	}
	for _, c := range f.Changes {
		if strings.Contains(c.Text, "restart") {
			t.Errorf("%s", c.Text)
		}
	}
}
