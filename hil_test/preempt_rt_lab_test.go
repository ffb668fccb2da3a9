package hiltest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// isolated is the lab's CPU for the loop; everything else lives on CPU 0.
const isolated = "1"

// The product on a PREEMPT_RT kernel and two emulated CAN cards, seen from
// outside: the bench on can0, a virtual control unit and candump on can1. A boot
// is dear, so these facts share one.
func TestLabPreemptRT(t *testing.T) {
	if !inside(t, rtLab, "candump") {
		return
	}
	for _, fact := range []struct {
		name  string
		check func(*testing.T)
	}{
		{"HostIsPreemptRTWithAnIsolatedCPU", hostIsFit},
		{"LoopHasItsCPUAloneWithATimerfd", func(t *testing.T) { loopIsAlone(t, nil, policyFIFO) }},
		{"LoopHasItsCPUAloneWithNanosleep", func(t *testing.T) { loopIsAlone(t, []edit{{"timer: timerfd", "timer: nanosleep"}}, policyFIFO) }},
		{"LoopHasItsCPUAloneUnderADeadline", func(t *testing.T) {
			loopIsAlone(t, []edit{{"scheduler: fifo", "scheduler: deadline"}}, policyDeadline)
		}},
		{"FloodIsCountedAndDoesNotStopTheRun", flood},
		{"ClockStepChangesNothing", clockStep},
		{"CardDownAndUpIsCountedAndTheRunGoesOn", cardDownAndUp},
		{"TargetKilledLeavesTheSafeStateOnTheBus", func(t *testing.T) { targetKilled(t, syscall.SIGKILL) }},
		{"TargetCrashedLeavesTheSafeStateOnTheBus", func(t *testing.T) { targetKilled(t, syscall.SIGSEGV) }},
		{"SupervisorKilledTargetGoesOnAndIsAttachedTo", supervisorKilledGoesOn},
		{"SupervisorKilledTargetGoesSafeAfterItsTime", supervisorKilledGoesSafe},
		{"SupervisorKilledTargetStopsAfterItsTime", supervisorKilledStops},
		{"LoopCPUTakenOfflineIsHarmlessOrAClearStop", cpuOffline},
	} {
		t.Run(fact.name, fact.check)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func hostIsFit(t *testing.T) {
	if got := content(t, "/sys/kernel/realtime"); got != "1" {
		t.Errorf("/sys/kernel/realtime: %q, want 1", got)
	}
	if got := content(t, "/sys/devices/system/cpu/isolated"); got != isolated {
		t.Errorf("isolated CPUs: %q, want %s", got, isolated)
	}
}

// runRT starts the demo bench, edited, on can0, with all rights, and waits until it
// ticks.
func runRT(t *testing.T, d time.Duration, edits ...edit) *bench {
	t.Helper()
	b := runOn(t, "can0", d, edits)
	b.await("missed", 30*time.Second) // the first status line
	return b
}

// loopIsAlone looks at a whole run with a control unit: what the processes have
// become while it lasts, and what bus and report say of it.
func loopIsAlone(t *testing.T, edits []edit, policy int) {
	dump := candump(t, "can1")
	tcu := unit(t, "can1")
	b := runRT(t, 4*time.Second, edits...)
	timers := checkThreads(t, b, policy)
	if latency := dmaLatency(t); latency != 0 {
		t.Errorf("/dev/cpu_dma_latency is held at %d us, want 0", latency)
	}
	r := b.report()
	if latency := dmaLatency(t); latency == 0 {
		t.Error("/dev/cpu_dma_latency is still held at 0 after the run")
	}
	if after := kernelThread(t, "ktimers/"+isolated); after.priority != 1 {
		t.Errorf("after the run %v, want priority 1 again, as before; it was %v", after, timers)
	}
	byID, _ := dumped(t, dump)
	tcu.signal(syscall.SIGINT)
	tcu.wait(10 * time.Second)
	checkWall(t, dump.out.String(), byID, r)
	if r.BestEffort {
		t.Errorf("the run was best effort, where all rights are there:\n%s", &b.out)
	}
	if r.Allocs+r.GCCycles+r.Minor+r.Major != 0 {
		t.Errorf("the ticking process: %d allocations, %d collections, %d and %d page faults; want none", r.Allocs, r.GCCycles, r.Minor, r.Major)
	}
	if len(byID["110"].data) == 0 || r.RxFrames == 0 || r.RxUnknown+r.RxShort+r.RxRange != 0 {
		t.Errorf("the unit sent %d frames; the bench received %d: unknown %d, short %d, out of range %d",
			len(byID["110"].data), r.RxFrames, r.RxUnknown, r.RxShort, r.RxRange)
	}
}

// checkThreads looks at both processes of a run, and returns the thread of the
// kernel in which the timers of the loop's CPU expire.
func checkThreads(t *testing.T, b *bench, policy int) thread {
	t.Helper()
	target := b.target()
	loop := loopThread(t, target)
	wantPriority := 80
	if policy == policyDeadline {
		wantPriority = 0
	}
	if loop.policy != policy || loop.priority != wantPriority || loop.cpus != isolated {
		t.Errorf("the loop's thread %v; want policy %d, priority %d, CPUs %s", loop, policy, wantPriority, isolated)
	}
	if loop.blocked>>(sigurg-1)&1 == 0 {
		t.Errorf("the loop's thread blocks the signals %x, want SIGURG among them", loop.blocked)
	}
	guards := 0
	for _, h := range append(threads(t, target), threads(t, b.cmd.Process.Pid)...) {
		switch {
		case h.tid == loop.tid:
		case h.cpus != "0":
			t.Errorf("a thread beside the loop's, %v; want it off CPU %s", h, isolated)
		case h.policy == policyFIFO && h.priority < 80:
			guards++
		case h.policy != policyOther:
			t.Errorf("a thread beside the loop's, %v; want an ordinary one", h)
		}
	}
	if guards > 1 {
		t.Errorf("%d real-time threads beside the loop's, want the supervisor's guard at most", guards)
	}
	locked, resident := kilobytes(t, target, "VmLck"), kilobytes(t, target, "VmRSS")
	t.Logf("loop %v, memory %d kB locked, %d kB resident", loop, locked, resident)
	if locked < resident {
		t.Errorf("of %d kB the target has locked %d kB", resident, locked)
	}
	timers := kernelThread(t, "ktimers/"+isolated)
	byTimerfd := !strings.Contains(content(t, b.cmd.Args[2]), "timer: nanosleep")
	if byTimerfd && policy == policyFIFO && timers.priority <= loop.priority {
		t.Errorf("the timers of the loop's CPU expire in %v; want a priority above the loop's, %d", timers, loop.priority)
	}
	return timers
}

// checkWall holds the ticks of a run against the bus and the clock: each grid point
// is on the bus, or counted, and they take the time they should. The emulator is
// away for long, so that the rolling counters do not tell how much is missing.
func checkWall(t *testing.T, dump string, byID map[string]*frames, r report) {
	t.Helper()
	seen := 0
	for _, id := range []string{"200", "201", "202"} {
		if byID[id] == nil {
			t.Fatalf("no frame %s on the bus", id)
		}
		seen += len(byID[id].data)
	}
	// Speeds at each grid point, Torque and Status at every other one.
	if seen != int(r.TxFrames) || r.TxFrames+r.TxDropped+r.TxLost != 2*r.Ticks {
		t.Errorf("%d frames on the bus; the report says %d sent, %d dropped, %d of missed ticks; want %d together, two for each of %d grid points",
			seen, r.TxFrames, r.TxDropped, r.TxLost, 2*r.Ticks, r.Ticks)
	}
	var first, last float64
	for line := range strings.Lines(dump) {
		if !strings.Contains(line, " 200#") {
			continue
		}
		at, err := strconv.ParseFloat(strings.TrimPrefix(strings.Fields(line)[0], "(")[:17], 64)
		if err != nil {
			t.Fatalf("candump: %q: %v", line, err)
		}
		if first == 0 {
			first = at
		}
		last = at
	}
	// Both ends may be late by what the run itself has measured; a fifth is for the
	// emulated cards.
	want := float64(r.Ticks-1) * float64(r.StepNs) / 1e9
	slack := want/5 + float64(r.LateNs.Max+r.TickNs.Max)/1e9
	if got := last - first; !(got > want-slack && got < want+slack) {
		t.Errorf("from the first to the last Speeds %.3f s, want %.3f s: the ticks do not follow the clock", got, want)
	}
}

// flood sends as fast as the other card takes it: what nobody reads, then what the
// bench reads.
func flood(t *testing.T) {
	b := runRT(t, time.Minute)
	n := taken(t, garbage(t, "can1", "2000", "2", "7ff", "123", "1abcdef", "112"))
	m := taken(t, garbage(t, "can1", "2000", "2", "110", "111"))
	r := b.stop()
	if n == 0 || m == 0 {
		t.Fatal("the sender sent nothing")
	}
	received, _ := strconv.ParseUint(content(t, "/sys/class/net/can0/statistics/rx_packets"), 10, 64)
	t.Logf("%d and %d frames sent; the card of the bench has received %d since the boot; the bench read %d and counted %d as lost",
		n, m, received, r.RxFrames, r.RxOverflow)
	if got := r.RxFrames + r.RxOverflow; got == 0 || got > m+n || got > received {
		t.Errorf("of %d frames for the bench and %d for nobody it read %d and counted %d as lost", m, n, r.RxFrames, r.RxOverflow)
	}
}

// clockStep sets the clock of the host an hour ahead and back again.
func clockStep(t *testing.T) {
	b := runRT(t, 3*time.Second)
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		now := syscall.NsecToTimeval(time.Now().Add(step).UnixNano())
		if err := syscall.Settimeofday(&now); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	r := b.report()
	if r.LateNs.Max > int64(time.Hour)/2 || r.Missed >= r.Ticks/2 {
		t.Errorf("missed %d of %d ticks, the latest by %d ns", r.Missed, r.Ticks, r.LateNs.Max)
	}
}

// link is `ip link set can0` with more.
func link(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", append([]string{"link", "set", "can0"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("ip link set can0 %v: %v\n%s", args, err, out)
	}
}

func cardDownAndUp(t *testing.T) {
	dump := candump(t, "can1")
	b := runRT(t, 5*time.Second)
	link(t, "down")
	time.Sleep(500 * time.Millisecond)
	quiet := strings.Count(dump.out.String(), " 200#")
	link(t, "up", "type", "can", "bitrate", "500000")
	r := b.report()
	byID, _ := dumped(t, dump)
	if after := len(byID["200"].data) - quiet; after < 50 {
		t.Errorf("%d Speeds after the card was up again, want seconds of them", after)
	}
	if r.TxDropped == 0 {
		t.Errorf("the report counts %d frames that could not be sent, bus down %d; want some", r.TxDropped, r.BusDown)
	}
}

// online takes CPU 1 away, or gives it back.
func online(t *testing.T, value string) {
	t.Helper()
	if err := os.WriteFile("/sys/devices/system/cpu/cpu"+isolated+"/online", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

func cpuOffline(t *testing.T) {
	const d = 4 * time.Second
	b := runRT(t, d)
	online(t, "0")
	defer online(t, "1")
	code := b.wait(d + 30*time.Second)
	said := strings.TrimSpace(b.err.String())
	t.Logf("exit %d: %s\n%s", code, said, &b.out)
	switch code {
	case 0:
		if r := b.report(); r.Ticks == 0 {
			t.Error("the run says it is clean, but served no tick")
		}
	case 1:
		if !strings.HasPrefix(said, "lockstep: run: ") || strings.Contains(said, "\n") {
			t.Errorf("the run has stopped without saying why in a line: %q", said)
		}
	default:
		t.Errorf("exit %d, want 0 or 1", code)
	}
}
