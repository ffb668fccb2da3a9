package supervisor

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/fault"
	"lockstep/rt/host"
	"lockstep/rt/inspect"
	"lockstep/rt/network"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
	"lockstep/sched"
)

// sleeper starts a process that is not a child of a session, and opens it.
func sleeper(t *testing.T) *host.Process {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := host.OpenProcess(cmd.Process.Pid, 0)
	if err != nil {
		t.Skip("this kernel has no pidfd: ", err)
	}
	return p
}

func TestFailedAttachDoesNotChangeTheTarget(t *testing.T) {
	r := New(nil, Options{})
	r.Target = sleeper(t)
	r.Close()
	if r.Target.WaitEnded(200 * time.Millisecond) {
		t.Error("the target has ended")
	}
}

// A target that is not supervised any more goes on, or goes to the safe state, as its bench says.
func TestPanicOfTheSupervisorLeavesTheTarget(t *testing.T) {
	r, _ := demoRun(t)
	var err error
	if r.Target, err = host.Spawn("/bin/sleep", nil, nil, "1000"); err != nil {
		t.Fatal(err)
	}
	defer r.Target.Kill()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r.Options.Out, r.startedAt = null, sched.Now()
	if r.notify, err = newNotifier(r.Status); err != nil {
		t.Fatal(err)
	}
	r.Options.OnPoll = func(time.Time) { panic("fault") }
	func() {
		defer func() { _ = recover() }()
		defer r.Close()
		r.watch(nil)
	}()
	if r.Target.WaitEnded(200 * time.Millisecond) {
		t.Error("the target has ended")
	}
}

func TestOnlyOneOfTwoAttachesSucceeds(t *testing.T) {
	r := &Session{View: report.View{Status: new(rt.StatusBlock)}}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	r.Status.Supervisor.Store(rt.Identity(gone.Process.Pid, 0))
	if err := r.replaceSupervisor(); err != nil || inspect.SupervisorOf(r.Status) != os.Getpid() {
		t.Errorf("the first: %v, the supervisor is %d, want %d", err, inspect.SupervisorOf(r.Status), os.Getpid())
	}
	if err := r.replaceSupervisor(); !errors.Is(err, errSupervised) {
		t.Errorf("the second: %v, want an error that names the supervisor", err)
	}
}

func TestWatchdogWaitsForTheSafeValuesAfterTheEndOfARun(t *testing.T) {
	r, _ := demoRun(t)
	r.Bench.WatchNs, r.Handover.Loop.Safe.Ticks = 300e6, 1000
	w := &watchdog{View: r.View}
	if d := w.limit(); d != 300*time.Millisecond {
		t.Errorf("during the run: %v, want 300 ms", d)
	}
	r.Status.Reason.Store(uint64(rt.Stopped))
	if d := w.limit(); d != 5300*time.Millisecond {
		t.Errorf("after the end, with safe values for 5 s: %v, want 5.3 s", d)
	}
	s := newStatus(r)
	defer s.end()
	if got := s.problem(); got != "ended: stopped" {
		t.Errorf("the status line shows %q, want ended: stopped", got)
	}
}

// The safe values for a target that has died go on with the stimuli of the restbus, and with the signals that
// were set live.
func TestWatchdogSendsTheStimuliOfTheRestbus(t *testing.T) {
	for _, live := range []bool{false, true} {
		if got, want := modeAfterTheDeath(t, live), map[bool]int{false: 9, true: 5}[live]; got != want {
			t.Errorf("set live %t: mode %d in the frame of Motor, want %d", live, got, want)
		}
	}
}

// modeAfterTheDeath returns the mode in the frame of Motor that a watchdog sends: 9 by a stimulus; live sets
// it to 5 before.
func modeAfterTheDeath(t *testing.T, live bool) (got int) {
	r := runtest.Guarded(t, benchtest.GuardedText(t))
	h := r.Handover
	motor := slices.IndexFunc(h.Maps[0].Tx, func(x sigmap.Tx) bool { return x.Name == "Motor" })
	mode := slices.IndexFunc(h.Maps[0].Tx[motor].Fields, func(f sigmap.Field) bool { return f.Name == "mode" })
	at := fault.Fault{Where: fault.Signal, Message: motor, Field: mode}
	if live {
		r.Status.Post(1, []fault.Command{{Op: fault.Drive, Fault: at, Value: 5}})
		r.Loop.Tick(1)
	}
	h, err := bench.Prepare(h.Bench) // as the guard's: in another process
	if err != nil {
		t.Fatal(err)
	}
	h.Loop.Faults.Stimuli = []fault.Stimulus{{Where: at.Where, Message: motor, Field: mode, Waveform: sigmap.Waveform{At: []int64{0}, Value: []float64{9}}}}
	got = -1
	for _, f := range framesAfterTheDeath(t, h, r.Status) {
		if f.ID == 1024 {
			got = int(f.Data[4] & 15)
		}
	}
	return got
}

// framesAfterTheDeath returns the frames that a watchdog sends at once.
func framesAfterTheDeath(t *testing.T, h *bench.Handover, status *rt.StatusBlock) []can.Frame {
	t.Helper()
	h.Loop.Safe.Ticks = 0 // every frame once
	w := &watchdog{View: report.View{Handover: h, Status: status}}
	var unit *can.Bus
	own, other, err := can.Pair()
	for _, f := range []*os.File{own, other} {
		if err == nil {
			unit, err = can.Inherit(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.buses = append(w.buses, unit)
	}
	defer w.close()
	period := h.Tables.PeriodNs
	now := sched.Now()
	status.StartNs.Store(uint64(now - int64(status.Ticks.Load())*period))
	w.sendSafeValues(now)
	var frames [16]can.Frame
	return slices.Clone(frames[:unit.Recv(frames[:])])
}

// The guard sends what the loop would send, and so wakes no unit that sleeps.
func TestWatchdogSendsInTheStatesOfIgnitionAndNetworkOnly(t *testing.T) {
	r := runtest.Text(t, "", `bench: b
plant: two-masses
period: 5 ms
network: {start: run, signal: Pedals.ignition}
buses:
  drive:
    interface: pair
    database: automatic.dbc
    nm: {message: NM_Bench, node: 0x10, from: NM_TCU, cycle: 100 ms, repeat: 300 ms, timeout: 400 ms, wait: 200 ms}
    restbus:
      ShaftSpeeds: {cycle: 10 ms, delay: 30 ms}
      Pedals: {cycle: 10 ms, in: all}
    messages: {ClutchPressures: {timeout: 0 s}}
`)
	for _, c := range []struct {
		state network.State
		ticks int
		want  []uint32
	}{
		{network.Run, 100, []uint32{0x210, 0x211}},
		{network.Off, 20, []uint32{0x211}}, // ready sleep
		{network.Off, 200, nil},            // bus sleep
		{network.Run, 3, []uint32{0x211}},  // within the delay of ShaftSpeeds
	} {
		r.Status.Post(uint64(1000*int(c.state)+c.ticks), []fault.Command{{Op: fault.SwitchIgnition, Slot: int(c.state)}})
		for range c.ticks {
			r.Loop.Tick(1)
		}
		h, err := bench.Prepare(r.Handover.Bench)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint32
		for _, f := range framesAfterTheDeath(t, h, r.Status) {
			got = append(got, f.ID)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%d ticks after ignition %v: %#x sent, want %#x", c.ticks, c.state, got, c.want)
		}
	}
}

// watched starts watch on a run whose target does not react to requests.
func watched(t *testing.T, signals chan os.Signal) (r *Session, over chan struct{}) {
	t.Helper()
	r, _ = demoRun(t)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	r.Options.Out, r.startedAt, r.Target = null, sched.Now(), sleeper(t)
	r.Handover.Loop.Safe.Ticks = 12_000 // a minute of safe values, so that Grace does not end
	if r.notify, err = newNotifier(r.Status); err != nil {
		t.Fatal(err)
	}
	over = make(chan struct{})
	go func() { defer close(over); r.watch(signals) }()
	return r, over
}

func TestRepeatedSignalIsOneRequest(t *testing.T) {
	signals := make(chan os.Signal, 4)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	r, over := watched(t, signals)
	for r.Status.Stop.Load() == 0 || len(signals) > 0 {
		time.Sleep(time.Millisecond)
	}
	r.Target.Signal(syscall.SIGTERM) // ends the sleeper
	if <-over; r.Target.Killed || r.Stop != "terminated" {
		t.Errorf("stopped by %q, killed: %t; want by terminated, not killed", r.Stop, r.Target.Killed)
	}
}

func TestSecondSignalKillsATargetThatDoesNotStop(t *testing.T) {
	signals := make(chan os.Signal, 4)
	r, over := watched(t, signals)
	for range 1000 {
		select {
		case signals <- syscall.SIGINT:
		case <-over:
			if !r.Target.Killed || r.Status.Stop.Load() != rt.StopPlanned {
				t.Errorf("killed: %t, asked to stop: %d; want both", r.Target.Killed, r.Status.Stop.Load())
			}
			return
		}
		time.Sleep(repeatWindow / 10)
	}
	t.Error("1000 signals have not ended the target")
}

// A blocked message would delay Ctrl-C and the end of the run.
func TestServiceManagerThatDoesNotReadDoesNotBlock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	n, err := newNotifier(new(rt.StatusBlock))
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	full := false
	for i := 0; i < 10_000 && !full; i++ { // the queue of a socket has 10 places, or what the host says
		full = !n.send("WATCHDOG=1")
	}
	if !full {
		t.Fatal("the socket took 10,000 messages that nobody read")
	}
	n.status.Ticks.Store(readyAfter)
	if n.poll(time.Now()); n.ready {
		t.Error("READY counts as sent although the socket did not take it")
	}
	text := make([]byte, 100)
	if _, err := manager.Read(text); err != nil {
		t.Fatal(err)
	}
	if n.poll(time.Now()); !n.ready {
		t.Error("READY is not sent when the socket has room again")
	}
}

func TestReportNamesTheCauseOfEachEnd(t *testing.T) {
	r, _ := demoRun(t)
	r.Target, r.watchdog = &host.Process{}, &watchdog{}
	r.Status.State.Store(uint64(rt.Ended))
	for reason, want := range map[rt.Reason]string{
		rt.MissedTick: "a tick was missed (skip 200)", rt.BusLost: "a bus was down or off",
		rt.SupervisorGone: "the supervisor has ended", rt.TimerFailed: "the timer failed",
		rt.Shutdown: "stopped by SIGTERM to the target process", rt.Done: "done",
	} {
		r.Status.Reason.Store(uint64(reason))
		if why, clean := r.outcome(); why != want || clean != reason.Clean() {
			t.Errorf("%q, clean %t; want %q", why, clean, want)
		}
	}
}
