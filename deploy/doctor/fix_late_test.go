package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
)

// Undo also restores the changes of the first fix if the second one was killed between recording a
// change and making it.
func TestUndoRestoresTheOriginalAfterAKilledSecondFix(t *testing.T) {
	for k := range 2 { // it has two changes
		b := newBox(t, "throttled")
		before := b.tree()
		b.apply()
		b.req.Priority = 90
		b.endAfter(k)
		b.undo()
		differ(t, "undone", before, b.tree())
	}
}

// Another process may change a setting between the plan and its confirmation.
func TestApplySkipsSettingsThatHaveChangedSinceThePlan(t *testing.T) {
	b := newBox(t, "throttled")
	p := b.plan()
	b.set("proc/sys/kernel/sched_rt_runtime_us", "900000")
	steps, err := p.Apply(b.state)
	if err != nil {
		t.Fatal(err)
	}
	done, left, failed := Sum(steps)
	i := slices.IndexFunc(steps, func(s Step) bool { return errors.Is(s.cause, errChanged) })
	if done != len(p.Changes)-1 || left != 1 || failed != 0 || i < 0 || !strings.Contains(steps[i].Left, "900000") {
		t.Errorf("%d done, %d left, %d failed: %+v", done, left, failed, steps)
	}
	if got := b.get("proc/sys/kernel/sched_rt_runtime_us"); got != "900000" {
		t.Errorf("the value of another process was overwritten: %s", got)
	}
	if strings.Contains(b.bytes(b.state), "sched_rt_runtime_us") {
		t.Error("the undo file has an unchanged setting")
	}
}

// The kernel refuses to move a thread with PF_NO_SETAFFINITY (0x04000000): a fix that tried would
// fail at each boot.
func TestRivalsThatCannotLeaveTheirCPUAreNotMoved(t *testing.T) {
	b := newBox(t, "throttled")
	line := b.get("proc/988/task/991/stat")
	f := strings.Fields(line)
	f[8], f[1] = "69238848", "(rcuc/3)" // 0x04208040
	b.set("proc/988/task/991/stat", strings.Join(f, " "))
	p := b.plan()
	if slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Check == "rivals" }) {
		t.Errorf("planned: %q", p.lines())
	}
	if c := p.checks["rivals"]; c.Verdict != Wrong || c.Can == Now || !strings.Contains(c.Found, "rcuc/3 991") || strings.Contains(c.Command, "taskset") {
		t.Errorf("%+v", c)
	}
	f[1], f[8] = "(lockstep-target)", "4194304"
	b.set("proc/988/task/991/stat", strings.Join(f, " "))
	if c := b.plan().checks["rivals"]; c.Verdict != Wrong || strings.Contains(c.Command, "taskset") || len(c.Changes) > 0 {
		t.Errorf("loop of another bench: %+v", c)
	}
	f[1] = "(sugov:3)" // disappears with its governor, which has its own check
	b.set("proc/988/task/991/stat", strings.Join(f, " "))
	if c := b.plan().checks["rivals"]; c.Verdict != OK {
		t.Errorf("thread of a governor: %+v", c)
	}
}

// The sibling of the loop's CPU stays on line if it is the only other CPU or belongs to another loop.
// No printed command takes it off line either.
func TestANeededSiblingStaysOnLine(t *testing.T) {
	for _, c := range []struct{ online, isolated, can string }{{"1,3", "3", "hardware"}, {"0-3", "1,3", "restart"}} {
		b := newBox(t, "throttled") // CPUs 1 and 3 are one core
		b.set("sys/devices/system/cpu/online", c.online)
		b.set("sys/devices/system/cpu/isolated", c.isolated)
		found := b.plan().checks["smt"]
		if len(found.Changes) > 0 || found.Verdict != Wrong || string(found.Can) != c.can || strings.Contains(found.Command, "tee") {
			t.Errorf("CPUs %s, isolated %s: %+v", c.online, c.isolated, found)
		}
	}
}

func TestUndoSkipsRestartMsOfACardThatIsUp(t *testing.T) {
	b := newBox(t, "tuned")
	b.links["can1"] = can.Link{Card: true}
	b.apply()
	b.links["can1"] = can.Link{Card: true, Up: true, RestartMs: b.links["can1"].RestartMs}
	steps := b.undo()
	if len(steps) != 1 || steps[0].Done || !errors.Is(steps[0].cause, errLinkUp) || steps[0].Left == "" || b.links["can1"].RestartMs != 100 {
		t.Errorf("%+v, %+v", steps, b.links["can1"])
	}
	if again := b.undo(); len(again) > 0 {
		t.Errorf("a second undo tries it again: %+v", again)
	}
}
