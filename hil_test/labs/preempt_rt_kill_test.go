package labs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// targetKilled ends the target with a signal and checks that the supervisor sends the safe values.
func targetKilled(t *testing.T, signal syscall.Signal) {
	dump, before := lab.StartCandump(t, "can1"), lab.CardCounters(t)
	tcu := lab.StartUnit(t, "can1")
	b := runRT(t)
	if err := syscall.Kill(b.Target(), signal); err != nil {
		t.Fatal(err)
	}
	code := b.Wait()
	message := strings.TrimSpace(b.Err.String())
	if code != 1 || !strings.HasPrefix(message, "lockstep: run: ") || strings.Contains(message, "\n") {
		t.Errorf("exit %d, want 1 and the reason in one line: %q", code, message)
	}
	tcu.Signal(syscall.SIGINT)
	tcu.Wait()
	byID, order := lab.EndCandump(t, dump)
	plant, safe := lab.CheckFallToSafe(t, byID["200"])
	var r lab.Report
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, b.File)), &r); err != nil {
		t.Fatal(err)
	}
	// The cycles of the unit, 10 ms, serve as the clock, since a stall of the emulator stops them,
	// too. The last frames of the target may have been dropped.
	speeds, between := 0, 0
	for _, id := range order {
		if id == "200" {
			speeds++
		}
		if id == "110" && speeds == plant {
			between++
		}
	}
	t.Logf("%s\n%d Speeds of the plant in %d ticks, %d missed, %d frames dropped; then %d safe ones, in between %d cycles of the unit",
		message, plant, r.Ticks, r.Missed, r.TxDropped, safe, between)
	if most := 8 + (int(r.Ticks)-plant+1)/2; between > most {
		t.Errorf("%d cycles of the unit between the plant's last Speeds and the first safe ones, want at most %d", between, most)
	}
	now := lab.CardCounters(t)
	gone := now["can0 tx_packets"] - before["can0 tx_packets"] - (now["can1 rx_packets"] - before["can1 rx_packets"]) // overruns of the other card
	if byID["200"].CountLost("200"); byID["200"].Lost > int(r.TxDropped)+gone {
		t.Errorf("%d Speeds missing by their counter; %d were dropped and %d lost by the card", byID["200"].Lost, r.TxDropped, gone)
	}
	if last := byID["201"].Data[len(byID["201"].Data)-1]; !bytes.Equal(last[:6], make([]byte, 6)) {
		t.Errorf("the last Torque is % X, want the safe values", last)
	}
	if safe < 10 {
		t.Errorf("%d safe Speeds, want those of 100 ms", safe)
	}
}

// targetKilledOverloaded kills five targets while processes of ordinary priority keep all CPUs busy, up to
// three times: the emulator itself stalls for some periods.
func targetKilledOverloaded(t *testing.T) {
	for attempt := 1; ; attempt++ {
		var ticks []float64 // from the last grid point to the first safe frame, in periods
		for range 5 {
			ticks = append(ticks, killOverloaded(t))
		}
		slices.Sort(ticks)
		t.Logf("first safe frames after %.2f periods", ticks)
		switch {
		case ticks[0] > 0 && ticks[len(ticks)/2] <= 2:
			return
		case !(ticks[0] > 0) || attempt == 3:
			t.Fatalf("first safe frames after %.2f periods, want a median of at most 2", ticks)
		}
	}
}

// killOverloaded kills a target on an overloaded host. It returns the time to the first safe frame, in periods.
func killOverloaded(t *testing.T) float64 {
	t.Helper()
	b := runRT(t)
	lab.AwaitGuard(t, b.Cmd.Process.Pid)
	relieve := overload(t)
	if err := syscall.Kill(b.Target(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.Wait()
	relieve()
	var r lab.Report
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, b.File)), &r); err != nil {
		t.Fatal(err)
	}
	return r.SafeAfter * 1e9 / float64(r.StepNs)
}

// overload keeps all CPUs busy until the function that it returns is called.
func overload(t *testing.T) (relieve func()) {
	t.Helper()
	var all []*lab.Process
	for range 4 {
		all = append(all, lab.Start(t, "sh", "-c", "for i in $(seq 1000); do :; done; echo busy; while :; do :; done"))
	}
	for _, busy := range all {
		busy.AwaitOutput("busy")
	}
	return func() {
		for _, busy := range all {
			busy.Signal(syscall.SIGKILL)
			busy.Wait()
		}
	}
}

// killedRunTimers kills a run and its target, and checks that the next command restores the thread of
// the timers.
func killedRunTimers(t *testing.T) {
	thread := "ktimers/" + lab.IsolatedCPU
	before := lab.KernelThread(t, thread)
	target, b := orphan(t, "continue")
	raised := lab.KernelThread(t, thread)
	lab.Runs(t)
	if now := lab.KernelThread(t, thread); raised.Priority <= before.Priority || now.Priority != raised.Priority {
		t.Errorf("while the target ticks: %v, then %v; before the run %v", raised, now, before)
	}
	syscall.Kill(target, syscall.SIGKILL)
	lab.AwaitExit(t, target)
	ps := lab.Start(t, lab.Command(t), "ps")
	if code := ps.Wait(); code != 0 {
		t.Errorf("ps: exit %d, %s", code, &ps.Err)
	}
	if now := lab.KernelThread(t, thread); now.Scheduling() != before.Scheduling() {
		t.Errorf("after ps: %v, before the run %v", now, before)
	}
	got := strings.Join(strings.Fields(ps.Err.String()), " ")
	want := fmt.Sprintf("process %d, was killed and left thread %s (%d), priority at %s: restored to %s",
		b.Cmd.Process.Pid, thread, before.PID, raised.Scheduling(), before.Scheduling())
	if !strings.Contains(got, want) {
		t.Errorf("ps: %q, want %q", got, want)
	}
}

// orphan starts a run and kills its supervisor. gone is the setting supervisor_gone.
func orphan(t *testing.T, gone string) (target int, b *rtBench) {
	t.Helper()
	b = runRT(t, lab.Edit{"supervisor_gone: stop after 1 s", "supervisor_gone: " + gone})
	target = b.Target()
	t.Cleanup(func() { syscall.Kill(target, syscall.SIGKILL) })
	b.Signal(syscall.SIGKILL)
	b.Wait()
	return target, b
}

func supervisorKilledGoesOn(t *testing.T) {
	dump := lab.StartCandump(t, "can1")
	before := lab.CardCounters(t)
	target, b := orphan(t, "continue")
	file := filepath.Join(t.TempDir(), "report.json")
	second := lab.Start(t, lab.Command(t), "attach", "-report", file)
	second.AwaitTicking()
	least := time.Since(b.ticking)
	second.Signal(syscall.SIGINT)
	code := second.Wait()
	t.Logf("attach:\n%s%s", &second.Out, &second.Err)
	if code != 0 {
		t.Fatalf("attach: exit %d, want 0", code)
	}
	lab.AwaitExit(t, target)
	var r lab.Report
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, file)), &r); err != nil {
		t.Fatal(err)
	}
	b.checkClock(r, least)
	byID, _ := lab.EndCandump(t, dump)
	checkWire(t, before, byID, r)
	if list := lab.SafeSpeeds(byID["200"]); slices.Contains(list, true) {
		t.Errorf("some of %d Speeds carry the safe values, want none; output of the first supervisor:\n%s", len(list), &b.Out)
	}
}

// afterDeath kills the supervisor of a run and checks the fall to the safe values. With enough > 0
// the target is killed after that many safe Speeds; otherwise it ends by itself. At most most safe
// Speeds are allowed. 500 ms are 100 Speeds if no tick is missed.
func afterDeath(t *testing.T, gone string, enough, most int) {
	dump := lab.StartCandump(t, "can1")
	target, _ := orphan(t, gone)
	before := strings.Count(dump.Out.String(), " 200#")
	if enough > 0 { // the target would never end
		lab.Await(t, "safe Speeds", func() bool {
			return strings.Count(dump.Out.String(), " 200#00000000000000") > enough
		})
		syscall.Kill(target, syscall.SIGKILL)
	}
	lab.AwaitExit(t, target)
	byID, _ := lab.EndCandump(t, dump)
	plant, safe := lab.CheckFallToSafe(t, byID["200"])
	t.Logf("%d Speeds before the supervisor's death, then %d of the plant and %d safe ones", before, plant-before, safe)
	if plant-before > 200 || safe < 1 || safe > most {
		t.Errorf("after the supervisor's death %d Speeds of the plant and %d safe ones; want about 100, and at most %d", plant-before, safe, most)
	}
}

// withID starts a process that sleeps and has a process id that was another's.
func withID(t *testing.T, pid int) (sleeper *lab.Process) {
	t.Helper()
	lab.Await(t, fmt.Sprintf("a new process has the id %d", pid), func() bool {
		// The next process or thread gets the following id, if it is free.
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Fatal(err)
		}
		sleeper = lab.Start(t, "sleep", "1000")
		return sleeper.Cmd.Process.Pid == pid
	})
	return sleeper
}

// reusedIDs gives the id of a killed supervisor, and then that of its target, to another process.
func reusedIDs(t *testing.T) {
	target, b := orphan(t, "continue")
	alive := []*lab.Process{withID(t, b.Cmd.Process.Pid)}
	attached := lab.Start(t, lab.Command(t), "attach", strconv.Itoa(target))
	attached.AwaitTicking()
	attached.Signal(syscall.SIGINT)
	if code := attached.Wait(); code != 0 {
		t.Errorf("attach: exit %d, want 0\n%s%s", code, &attached.Out, &attached.Err)
	}
	lab.AwaitExit(t, target)
	alive = append(alive, withID(t, target))
	for _, args := range [][]string{{"attach", strconv.Itoa(target)}, {"stop", "-now", strconv.Itoa(target)}} {
		lab.CheckRefused(t, []string{args[0] + ": "}, args...)
	}
	lab.CheckRefused(t, []string{"stop: "}, "stop", "-now", strconv.Itoa(b.Cmd.Process.Pid))
	for _, p := range alive {
		if err := p.Cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s, process %d: %v", p.Name, p.Cmd.Process.Pid, err)
		}
	}
}
