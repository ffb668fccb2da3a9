package labs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockstep/hil_test/lab"
)

func TestLabTwoBenchesRunOnTwoBusesAndAThirdIsRefused(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	dir := t.TempDir()
	begin := func(name, bus string) *lab.Bench {
		b := lab.StartDemoOn(t, bus, lab.UntilStopped, []lab.Edit{
			{"bench: powershift-bench", "bench: " + name},
			// Two loops share the CPU of a lab. Late by 5 s, a loop of 5 ms ends: skip 1000 is the most.
			{"period: 5 ms", "period: 10 ms"}, {"Speeds: {cycle: 5 ms", "Speeds: {cycle: 10 ms"}, {"phase: 5 ms, ", ""},
		}, "-besteffort", "-record", filepath.Join(dir, name+".rec"))
		b.AwaitTicking()
		return b
	}
	left, right := begin("left", "vcan0"), begin("right", "vcan1")
	before := lab.Runs(t)
	if len(before) != 2 {
		t.Fatalf("%+v\nleft: %s%s\nright: %s%s", before, &left.Out, &left.Err, &right.Out, &right.Err)
	}
	lab.CheckRefused(t, []string{"vcan0", "left", fmt.Sprintf("lockstep stop %d", left.Cmd.Process.Pid)},
		"run", "-bus", "vcan0", "-besteffort")
	lab.CheckRefused(t, []string{"vcan1", "right", fmt.Sprintf("lockstep stop %d", right.Cmd.Process.Pid)}, "run", "-bus", "vcan1")
	for name, bus := range map[string]string{"left": "drive=vcan0", "right": "drive=vcan1"} {
		if v := before[name]; v.State != "running" || !slices.Equal(v.Buses, []string{bus}) || v.CPU != 0 {
			t.Errorf("%s: %+v", name, v)
		}
		if _, errors, code := lab.Run(t, "ctl", name, "fault", "frame=Status", "drop", "for=2 frames"); code != 0 {
			t.Errorf("ctl %s: exit %d, %s", name, code, errors)
		}
	}
	if before["left"].Shared == before["right"].Shared { // the lab has one CPU, which the first run reserves
		t.Errorf("%+v: want one run to share its CPU", before)
	}
	out, errors, code := lab.Run(t, "stop", "-all")
	if code != 0 || !strings.Contains(out, "left") || !strings.Contains(out, "right") {
		t.Errorf("stop -all: exit %d, %q, %s", code, out, errors)
	}
	for _, b := range []*lab.Bench{left, right} {
		if code := b.Wait(); code != 0 {
			t.Errorf("exit %d, %s", code, &b.Err)
		}
	}
	if after := lab.Runs(t); len(after) != 0 {
		t.Errorf("runs after stop -all: %+v", after)
	}
	for name := range before {
		if out, errors, code := lab.Run(t, "replay", filepath.Join(dir, name+".rec")); code != 0 {
			t.Errorf("replay %s: exit %d, %s%s", name, code, out, errors)
		}
	}
}

func TestLabInterfaceIsFreeAfterSupervisorAndTargetAreKilled(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	b := lab.StartDemoOn(t, "vcan0", lab.UntilStopped, []lab.Edit{{"supervisor_gone: stop after 1 s", "supervisor_gone: continue"}}, "-besteffort")
	b.AwaitTicking()
	target := b.Target()
	b.Signal(syscall.SIGKILL)
	b.Wait()
	lab.CheckRefused(t, []string{"vcan0", "powershift-bench", fmt.Sprint(target)},
		"run", "-bus", "vcan0", "-besteffort")
	if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lab.AwaitExit(t, target)
	if _, errors, code := lab.Run(t, "run", "-bus", "vcan0", "-besteffort", "-for", "100ms"); code != 0 {
		t.Errorf("exit %d, %s", code, errors)
	}
}

func TestLabPreemptRTCPUAndCardAreReservedAndTimersLowered(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT) {
		return
	}
	t.Run("SecondRunOnTheLoopsCPUOrItsCardIsRefused", secondRun)
	t.Run("PriorityOfTimersIsRestoredAfterAKilledRun", timersOfKilled)
}

// secondRun checks that a second run on CPU 1 or can0 is refused.
func secondRun(t *testing.T) {
	b := runRT(t)
	holder := fmt.Sprintf("lockstep stop %d", b.Cmd.Process.Pid)
	lab.CheckRefused(t, []string{"can0", "powershift-bench", holder}, "run", "-bus", "can0")
	second := lab.StartDemoOn(t, "can1", lab.UntilStopped, []lab.Edit{{"cpu: auto", "cpu: " + lab.IsolatedCPU}})
	second.CheckRefusal([]string{"CPU " + lab.IsolatedCPU, "powershift-bench", holder})
	if v := lab.Runs(t)["powershift-bench"]; v.CPU != 1 || v.Shared || !slices.Equal(v.Buses, []string{"drive=can0"}) || v.Target != b.Target() {
		t.Errorf("ps: %+v", v)
	}
	out, errors, code := lab.Run(t, "stop", "powershift-bench")
	if code != 0 {
		t.Errorf("stop: exit %d, %q, %s", code, out, errors)
	}
	if code := b.Wait(); code != 0 {
		t.Errorf("exit %d, %s", code, &b.Err)
	}
}

// timersOfKilled checks that the priority of the timers' thread, which a killed run leaves raised,
// is restored by the next run and by lockstep stop.
func timersOfKilled(t *testing.T) {
	before := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU)
	target, _ := orphan(t, "continue")
	syscall.Kill(target, syscall.SIGKILL)
	lab.AwaitExit(t, target)
	if left := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU); left.Priority <= before.Priority {
		t.Errorf("%v after the kill, want a raised priority", left)
	}
	runRT(t).stop()
	if after := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU); after.PID != before.PID || after.Scheduling() != before.Scheduling() {
		t.Errorf("after the next run %v, at the start %v", after, before)
	}
	orphan(t, "continue")
	if out, errors, code := lab.Run(t, "stop", "powershift-bench"); code != 0 || !strings.Contains(out, "powershift-bench") {
		t.Errorf("stop: exit %d, %s%s", code, out, errors)
	}
	if after := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU); after.PID != before.PID || after.Scheduling() != before.Scheduling() {
		t.Errorf("after lockstep stop %v, at the start %v", after, before)
	}
}
