package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/sched/hostinfo"
	"lockstep/sched/journal"
)

func (p *Plan) lines() (list []string) {
	for _, c := range p.Changes {
		list = append(list, fmt.Sprintf("%s: %s: %s -> %s", c.Check, c.Setting, c.Now, c.Then))
	}
	return list
}

func TestThePlanChangesEveryWrongSetting(t *testing.T) {
	got := newBox(t, "throttled").plan().lines()
	want := []string{
		"ktimers: thread ktimers/3 (42), priority: FIFO 1 -> FIFO 81",
		"rivals: thread jackd (991), CPUs: 0-3 -> 0,2",
		"throttling: /proc/sys/kernel/sched_rt_runtime_us: 950000 -> -1",
		"interrupts: /proc/irq/130/smp_affinity_list: 0-3 -> 0,2",
		"interrupts: /proc/irq/default_smp_affinity: f -> 5",
		"can interrupts: thread irq/127-can0 (412), priority: FIFO 50 -> FIFO 81",
		"idle states: /sys/devices/system/cpu/cpu3/cpuidle/state3/disable: 0 -> 1",
		"idle states: /sys/devices/system/cpu/cpu3/cpuidle/state4/disable: 0 -> 1",
		"smt: /sys/devices/system/cpu/cpu1/online: 1 -> 0",
		"huge pages: /sys/kernel/mm/transparent_hugepage/enabled: always -> madvise",
		"numa balancing: /proc/sys/kernel/numa_balancing: 1 -> 0",
		"queue can0: /sys/class/net/can0/tx_queue_len: 10 -> 100",
	}
	if !slices.Equal(got, want) {
		t.Errorf("planned:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	others := newBox(t, "throttled").plan("throttling", "idle states").lines()
	want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, "throttling") || strings.HasPrefix(s, "idle states") })
	if !slices.Equal(others, want) {
		t.Errorf("with -keep of two checks:\n%s", strings.Join(others, "\n"))
	}
	if _, err := newBox(t, "throttled").host().plan([]string{"throtling"}); err == nil || !strings.Contains(err.Error(), "throttling") {
		t.Errorf("-keep of an unknown check: %v", err)
	}
}

func TestEveryPlannedSettingIsAllowedAndHasACommand(t *testing.T) {
	for _, host := range hosts {
		for _, c := range newBox(t, host).plan().Changes {
			if !c.Allowed() || c.Equal(c.Now, c.Then) || !strings.HasPrefix(c.Command, "sudo ") && !strings.HasSuffix(c.Command, " | sudo tee "+c.File) {
				t.Errorf("%s: %+v", host, c)
			}
		}
	}
	for _, s := range []Setting{
		{Kind: journal.Value, File: "/etc/passwd"}, {Kind: journal.Value, File: "/proc/sys/kernel/core_pattern"}, {Kind: journal.CPUList, File: "/proc/irq/../sys/kernel/core_pattern"},
		{Kind: journal.Value, File: "/sys/fs/cgroup/cpu/../../../etc/cpu.rt_runtime_us"}, {Kind: journal.Scheduling, File: "/proc/1/task/1/comm"}, {Kind: "", File: "/proc/irq/1/smp_affinity_list"},
	} {
		if s.Allowed() {
			t.Errorf("%+v may be written to", s)
		}
	}
}

// A fix corrects all checks that a setting can correct. A second fix changes nothing. Undo restores
// every file.
func TestAFixIsIdempotentAndUndoRestoresEverything(t *testing.T) {
	for _, host := range []string{"throttled", "desktop", "mainline", "pi", "vm"} {
		t.Run(host, func(t *testing.T) {
			b := newBox(t, host)
			before, planned := b.tree(), len(b.plan().Changes)
			steps := b.apply()
			if done, _, _ := Sum(steps); done != planned || planned == 0 {
				t.Fatalf("%d of %d changes done", done, planned)
			}
			for _, c := range b.host().diagnose().Checks {
				if len(c.Changes) > 0 || c.Verdict == Wrong && c.Can == Now && !strings.HasPrefix(c.Name, "can ") {
					t.Errorf("after the fix %s is %s: %s", c.Name, c.Verdict, c.Found)
				}
			}
			fixed, undo := b.tree(), b.bytes(b.state)
			if again := b.apply(); len(again) > 0 {
				t.Errorf("the second time it changes %+v", again)
			}
			differ(t, "fixed twice", fixed, b.tree())
			if b.bytes(b.state) != undo {
				t.Error("the second time writes another undo file")
			}
			undone := b.undo()
			slices.Reverse(undone) // Undo starts with the last change: a mask may name a CPU taken off line
			if !slices.EqualFunc(steps, undone, func(a, b Step) bool { return a.Setting == b.Setting && a.Now == b.Then }) {
				t.Errorf("the undo does not go from the last change to the first: %+v", undone)
			}
			if done, left, _ := Sum(undone); done != planned || left != 0 {
				t.Errorf("%d restored, %d left, of %d", done, left, planned)
			}
			differ(t, "undone", before, b.tree())
			if _, err := os.Stat(b.state); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the undo file still exists: %v", err)
			}
			if again := b.undo(); len(again) > 0 {
				t.Errorf("undone twice: %+v", again)
			}
		})
	}
}

func (b *box) bytes(path string) string {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func TestATunedBoxAndAContainerGetNoChanges(t *testing.T) {
	for _, host := range []string{"tuned", "container"} {
		b := newBox(t, host)
		before := b.tree()
		if p := b.plan(); len(p.Changes) > 0 {
			t.Errorf("%s: %v", host, p.lines())
		}
		b.apply()
		differ(t, host, before, b.tree())
		if _, err := os.Stat(b.state); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: an undo file without changes: %v", host, err)
		}
	}
}

func TestUndoSkipsSettingsThatAnotherProcessHasChanged(t *testing.T) {
	b := newBox(t, "throttled")
	b.apply()
	b.set("proc/sys/kernel/sched_rt_runtime_us", "900000")
	b.set("proc/sys/kernel/numa_balancing", "1") // original value, set by hand
	b.set("proc/412/task/412/stat", stat(412, "irq/127-can0", 90, unix.SCHED_FIFO))
	other := strings.Replace(b.get("proc/988/task/991/stat"), "(jackd)", "(else)", 1) // another thread has this number now
	b.set("proc/988/task/991/stat", other)
	if err := os.RemoveAll(filepath.Join(b.root, "sys/devices/pci0000:00/0000:00:1c.0/0000:02:00.0/net/can0")); err != nil {
		t.Fatal(err)
	}
	left := map[string]Step{}
	for _, s := range b.undo() {
		if !s.Done {
			left[s.String()] = s
		}
	}
	const runtime = "/proc/sys/kernel/sched_rt_runtime_us"
	want := map[string]error{
		runtime:                               errChanged,
		"/proc/sys/kernel/numa_balancing":     errRestored,
		"thread irq/127-can0 (412), priority": errGone, // another thread with this name: its start differs
		"thread jackd (991), CPUs":            errGone,
		"/sys/class/net/can0/tx_queue_len":    errGone,
	}
	for name, cause := range want {
		if s := left[name]; !errors.Is(s.cause, cause) || s.Left == "" {
			t.Errorf("%s: %q, want: %v", name, s.Left, cause)
		}
	}
	if len(left) != len(want) || !strings.Contains(left[runtime].Left, "900000") {
		t.Errorf("left: %+v", left)
	}
	if got := b.get("proc/sys/kernel/sched_rt_runtime_us"); got != "900000" {
		t.Errorf("the value of another process was overwritten: %s", got)
	}
}

// A file that not even root may write replaces a file of the box.
func TestAFailedChangeIsNamedAndTheOthersAreMade(t *testing.T) {
	b := newBox(t, "desktop")
	const governor = "sys/devices/system/cpu/cpu7/cpufreq/scaling_governor"
	path := filepath.Join(b.root, governor)
	if err := errors.Join(os.Remove(path), os.Symlink("/proc/sys/kernel/osrelease", path)); err != nil {
		t.Fatal(err)
	}
	p := b.plan()
	steps, err := p.Apply(b.state)
	if err != nil {
		t.Fatal(err)
	}
	done, _, failed := Sum(steps)
	text := fmt.Sprint(Failed(steps))
	i := max(0, slices.IndexFunc(steps, func(s Step) bool { return s.Err != "" }))
	if failed != 1 || done != len(p.Changes)-1 || !errors.Is(steps[i].cause, fs.ErrPermission) || !strings.Contains(text, "/"+governor) || strings.Contains(text, "\n") {
		t.Errorf("%d done, %d failed of %d: %s", done, failed, len(p.Changes), text)
	}
	if strings.Contains(b.bytes(b.state), "governor") {
		t.Error("the undo file has an unchanged setting")
	}
	if restored, _, _ := Sum(b.undo()); restored != done {
		t.Errorf("%d restored of %d", restored, done)
	}
}

// The kernel may accept a value and set another one.
func TestASettingThatReadsBackDifferentlyHasFailedAndIsUndone(t *testing.T) {
	b := newBox(t, "throttled")
	before := b.tree()
	p := b.plan()
	p.host.operations.write = func(path, text string) error {
		if strings.HasSuffix(path, "irq/130/smp_affinity_list") && text != "0-3" {
			text = "0-1"
		}
		return b.write(path, text)
	}
	steps, err := p.Apply(b.state)
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Err != "" })
	var read *readBackError
	if err != nil || i < 0 || !errors.As(steps[i].cause, &read) || read.got != "0-1" {
		t.Errorf("%v, %v", err, Failed(steps))
	}
	b.undo()
	differ(t, "undone", before, b.tree())
}

// killed is the panic that stands for a kill of the process.
type killed struct{}

// endAfter applies a plan in a process that is killed after k writes.
func (b *box) endAfter(k int) {
	b.t.Helper()
	writes := 0
	b.beforeWrite = func(string) error {
		if writes++; writes > k {
			panic(killed{})
		}
		return nil
	}
	defer func() {
		if r := recover(); r != (killed{}) {
			b.t.Fatalf("it did not end after %d writes: %v", k, r)
		}
		b.beforeWrite = nil
	}()
	_, _ = b.plan().Apply(b.state)
}

func TestAKilledFixIsUndone(t *testing.T) {
	n := len(newBox(t, "throttled").plan().Changes)
	for k := range n {
		b := newBox(t, "throttled")
		before := b.tree()
		b.endAfter(k)
		if done, _, _ := Sum(b.undo()); done != k {
			t.Errorf("after %d writes, %d are undone", k, done)
		}
		differ(t, fmt.Sprintf("ended after %d writes", k), before, b.tree())
	}
}

// Undo restores the values from before two fixes for two loops.
func TestASecondFixPreservesTheOriginalValues(t *testing.T) {
	b := newBox(t, "throttled")
	before := b.tree()
	b.apply()
	b.req.CPU, b.req.Priority = 3, 90
	if steps := b.apply(); len(steps) != 2 {
		t.Errorf("for another priority: %+v", steps)
	}
	b.set("proc/sys/kernel/numa_balancing", "2")
	b.apply() // another process has set it to 2: undo restores 2
	b.undo()
	before["proc/sys/kernel/numa_balancing"] = "2"
	differ(t, "undone", before, b.tree())
}

func TestInterruptsAreNotMovedToTheCPUOfAnotherLoop(t *testing.T) {
	b := newBox(t, "throttled")
	b.set("sys/devices/system/cpu/isolated", "2-3")
	b.set("proc/irq/9/smp_affinity_list", "2")
	b.set("proc/irq/9/effective_affinity_list", "2")
	for _, cpu := range []int{2, 3, 2} {
		b.req.CPU = cpu
		b.apply()
	}
	mask, err := hostinfo.ParseMask(b.get("proc/irq/default_smp_affinity"))
	if len(hostinfo.CommonCPUs(mask, []int{2, 3})) > 0 || err != nil {
		t.Errorf("new interrupts go to %v, %v", mask, err)
	}
	for _, irq := range []string{"9", "130"} {
		list, err := hostinfo.ParseCPUs(b.get("proc/irq/" + irq + "/smp_affinity_list"))
		if len(list) == 0 || len(hostinfo.CommonCPUs(list, []int{2, 3})) > 0 || err != nil {
			t.Errorf("interrupt %s goes to %v, %v", irq, list, err)
		}
	}
}

func TestRestartMsIsSetOnlyIfTheInterfaceIsDown(t *testing.T) {
	b := newBox(t, "tuned")
	b.links["can0"] = can.Link{Card: true, Up: true}
	b.links["can1"] = can.Link{Card: true}
	if got := b.plan().lines(); !slices.Equal(got, []string{"restart can1: can1, restart-ms: 0 -> 100"}) {
		t.Errorf("planned: %q", got)
	}
	b.apply()
	if got := b.links["can1"].RestartMs; got != 100 {
		t.Errorf("restart-ms %d", got)
	}
	b.undo()
	if got := b.links["can1"].RestartMs; got != 0 {
		t.Errorf("undone: restart-ms %d", got)
	}
}

func TestThePlanShowsEveryChangeWithItsCommand(t *testing.T) {
	for _, host := range hosts {
		p := newBox(t, host).plan()
		var text strings.Builder
		if err := p.Text(&text); err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Changes {
			for _, want := range []string{c.Setting.String() + "\n", " " + c.Now + " -> " + c.Then + "\n", c.Command + "\n"} {
				if !strings.Contains(text.String(), want) {
					t.Errorf("%s: no %q in the text", host, want)
				}
			}
		}
		for _, c := range p.Left {
			if !strings.Contains(text.String(), c.Command+"\n") {
				t.Errorf("%s: no command for %s", host, c.Name)
			}
		}
		if !strings.Contains(text.String(), "not changed") {
			t.Errorf("%s: no list of the settings that are not changed", host)
		}
	}
}

func TestTheSiblingOfAnotherLoopStaysOnLine(t *testing.T) {
	b := newBox(t, "throttled")
	b.set("sys/devices/system/cpu/isolated", "1,3")
	b.set("proc/cmdline", "isolcpus=managed_irq,domain,1,3")
	p := b.plan("throttling")
	for _, c := range p.Changes {
		if c.Check == "smt" {
			t.Errorf("planned: %s -> %s", c.Setting, c.Then)
		}
	}
	if !slices.ContainsFunc(p.Left, func(c Check) bool { return c.Name == "smt" }) {
		t.Error("the plan does not report the shared core")
	}
}

func TestThePlanNamesSideEffects(t *testing.T) {
	b := newBox(t, "pi")
	if text := b.plan().sideEffect("governor"); !strings.Contains(text, "CPUs 0-3") {
		t.Errorf("governor: %q", text)
	}
	if text := newBox(t, "desktop").plan().sideEffect("interrupts"); !strings.Contains(text, "irqbalance") {
		t.Errorf("interrupts: %q", text)
	}
	if text := b.plan().sideEffect("interrupts"); text != "" {
		t.Errorf("interrupts, without the daemon: %q", text)
	}
}
