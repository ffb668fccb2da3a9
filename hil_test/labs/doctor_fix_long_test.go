//go:build long

package labs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
)

// undoFile is the file in which lockstep doctor keeps the original settings.
const undoFile = "/run/lockstep-doctor-undo.json"

// The test makes all settings of a PREEMPT_RT host wrong that the lab allows, lets lockstep doctor
// repair and restore them, and reads them without the product.
func TestLabPreemptRTFixHoldsAndIsUndone(t *testing.T) {
	machine := lab.PreemptRT
	machine.Limit = 15 * time.Minute
	if !lab.Inside(t, machine, "cansend", "chrt", "setpriv", "taskset") {
		return
	}
	s := makeWrong(t)
	before := s.read()
	t.Logf("wrong settings: %v", before)
	fix := []string{"doctor", "-fix", "-cpu", lab.IsolatedCPU}

	s.onlyRoot(append(fix, "-yes"))
	if code, out := s.lockstep(fix...); code != 3 || !strings.Contains(out, "nothing was changed") {
		t.Fatalf("without a terminal: exit %d\n%s", code, out)
	}
	if code, out := s.onTerminal("n", fix...); code != 3 || !strings.Contains(out, "changes? [y/N]") {
		t.Fatalf("refused on a terminal: exit %d\n%s", code, out)
	}
	s.check("nothing confirmed", before)
	code, out := s.onTerminal("y", fix...)
	if code != 0 {
		t.Fatalf("confirmed on a terminal: exit %d\n%s", code, out)
	}
	t.Log(out)

	fixed := maps.Clone(before)
	maps.Copy(fixed, s.wanted)
	s.check("fixed", fixed)
	s.checkDoctor()
	undo := lab.ReadTrimmed(t, undoFile)
	if code, out := s.lockstep(append(fix, "-yes")...); code != 0 || !strings.Contains(out, "nothing to change") {
		t.Errorf("a second time: exit %d\n%s", code, out)
	}
	if lab.ReadTrimmed(t, undoFile) != undo {
		t.Error("a second time wrote another undo file")
	}
	s.runKeepsSettings(fixed)
	s.onlyRoot([]string{"doctor", "-undo"})

	if code, out := s.lockstep("doctor", "-undo"); code != 0 || !strings.Contains(out, fmt.Sprintf("%d restored, 0 left, 0 failed", len(s.wanted))) {
		t.Errorf("undo: exit %d, want %d restored\n%s", code, len(s.wanted), out)
	}
	s.check("undone", before)
	s.serviceHasTheRights(fixed, before)
	if _, err := os.Stat(undoFile); err == nil {
		t.Error("the undo file is still there")
	}
}

// settings are settings of the host that are read without the product.
type settings struct {
	t        *testing.T
	commands map[string]string // shell command that reads a setting, by setting
	wanted   map[string]string // value after the fix, of the settings that the fix changes
}

func (s *settings) sh(command string) string {
	s.t.Helper()
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// read returns the values of all settings.
func (s *settings) read() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	for name, command := range s.commands {
		found[name] = s.sh(command)
	}
	return found
}

// check compares all settings with the wanted values.
func (s *settings) check(when string, want map[string]string) {
	s.t.Helper()
	for name, now := range s.read() {
		if now != want[name] {
			s.t.Errorf("%s: %s is %q, want %q", when, name, now, want[name])
		}
	}
}

// makeWrong gives the host wrong settings.
func makeWrong(t *testing.T) *settings {
	s := &settings{t: t, commands: map[string]string{}, wanted: map[string]string{}}
	add := func(name, set, read, wanted string) {
		s.sh(set)
		s.commands[name] = read
		if wanted != "" {
			s.wanted[name] = wanted
		}
	}
	file := func(name, path, wrong, wanted string) { add(name, "echo "+wrong+" >"+path, "cat "+path, wanted) }
	file("throttling", "/proc/sys/kernel/sched_rt_runtime_us", "900000", "-1")
	file("new interrupts", "/proc/irq/default_smp_affinity", "3", "1")
	if _, err := os.Stat("/proc/sys/kernel/numa_balancing"); err == nil {
		file("page balancing", "/proc/sys/kernel/numa_balancing", "1", "0")
	}
	file("queue of can0", "/sys/class/net/can0/tx_queue_len", "10", "100")
	file("queue of vcan0", "/sys/class/net/vcan0/tx_queue_len", "10", "") // not a card
	file("clock", "/sys/devices/system/clocksource/clocksource0/current_clocksource", otherClock(t), "tsc")

	s.sh("ip link set can1 down") // restart-ms is 0
	restart := func(bus string) string {
		return "ip -d link show " + bus + " | grep -o 'restart-ms [0-9]*'"
	}
	add("restart of can1", "true", restart("can1"), "restart-ms 100")
	add("queue of can1", "ip link set can1 txqueuelen 10", "cat /sys/class/net/can1/tx_queue_len", "100")
	add("restart of can0", "true", restart("can0"), "") // can0 is up

	device := irqOf(t, "-requests")
	file("interrupt of a device", "/proc/irq/"+device+"/smp_affinity_list", lab.IsolatedCPU, "0")
	card := irqOf(t, "can0")
	file("interrupt of the card", "/proc/irq/"+card+"/smp_affinity_list", lab.IsolatedCPU, "")
	timers := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU)
	add("timer thread", "true", fmt.Sprintf("chrt -p %d", timers.PID), chrt(timers.PID, 81))
	s.cardThread(card)

	rival := lab.Start(t, "chrt", "-f", "90", "taskset", "-c", "0-1", "sleep", "600")
	pid := strconv.Itoa(rival.Cmd.Process.Pid)
	lab.Await(t, "sleep runs at priority 90", func() bool { return lab.ReadTrimmed(t, "/proc/"+pid+"/comm") == "sleep" })
	add("rival", "true", "taskset -p -c "+pid+" | sed 's/.*: //'", "0")
	add("rival's priority", "true", "chrt -p "+pid, "")
	return s
}

// chrt returns the output of chrt -p for a FIFO thread.
func chrt(tid, priority int) string {
	return fmt.Sprintf("pid %d's current scheduling policy: SCHED_FIFO\npid %d's current scheduling priority: %d", tid, tid, priority)
}

// cardThread adds the thread of the card's interrupt to the settings. It waits until the thread is
// on the CPU of the interrupt, to which it moves with the next interrupt.
func (s *settings) cardThread(irq string) {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range files {
		name, _ := os.ReadFile(path)
		if !strings.HasPrefix(string(name), "irq/"+irq+"-") {
			continue
		}
		tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		lab.Await(s.t, "the card's thread is on the loop's CPU", func() bool {
			_ = exec.Command("cansend", "can0", "123#00").Run()
			return lab.StatusField(s.t, fmt.Sprintf("/proc/%d", tid), "Cpus_allowed_list") == lab.IsolatedCPU
		})
		s.commands["thread of the card"] = fmt.Sprintf("chrt -p %d", tid)
		s.wanted["thread of the card"] = chrt(tid, 81)
		return
	}
	s.t.Fatalf("interrupt %s has no thread", irq)
}

// irqOf returns the first interrupt whose line in /proc/interrupts contains a word.
func irqOf(t *testing.T, word string) string {
	t.Helper()
	for line := range strings.Lines(lab.ReadTrimmed(t, "/proc/interrupts")) {
		if number, rest, found := strings.Cut(line, ":"); found && strings.Contains(rest, word) {
			return strings.TrimSpace(number)
		}
	}
	t.Fatalf("no interrupt of %s:\n%s", word, lab.ReadTrimmed(t, "/proc/interrupts"))
	return ""
}

// otherClock returns a clock source other than tsc.
func otherClock(t *testing.T) string {
	t.Helper()
	const dir = "/sys/devices/system/clocksource/clocksource0/"
	for _, name := range strings.Fields(lab.ReadTrimmed(t, dir+"available_clocksource")) {
		if name != "tsc" {
			return name
		}
	}
	t.Fatal("tsc is the only clock source")
	return ""
}

// lockstep runs the command without a terminal.
func (s *settings) lockstep(args ...string) (code int, out string) {
	s.t.Helper()
	p := lab.Start(s.t, lab.Command(s.t), args...)
	code = p.Wait()
	return code, p.Out.String() + p.Err.String()
}

// onTerminal runs the command with a terminal of its own, and answers its question.
func (s *settings) onTerminal(answer string, args ...string) (code int, out string) {
	s.t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer ptmx.Close()
	number, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer terminal.Close()
	var output lab.Output
	cmd := exec.Command(lab.Command(s.t), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &output, &output
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	lab.Await(s.t, "the question of the command", func() bool { return strings.Contains(output.String(), "[y/N]") })
	fmt.Fprintln(ptmx, answer)
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		cmd.Process.Kill()
		s.t.Fatalf("the command does not end within 1 min\n%s", output.String())
	}
	return cmd.ProcessState.ExitCode(), output.String()
}

// checkDoctor checks that lockstep doctor finds all repaired settings right.
func (s *settings) checkDoctor() {
	s.t.Helper()
	var found struct {
		Checks []struct {
			Name, Verdict, Found string
			Changes              []any
		}
	}
	p := lab.Start(s.t, lab.Command(s.t), "doctor", "-json", "-measure=false", "-cpu", lab.IsolatedCPU, "-bus", "can0")
	p.Wait()
	if err := json.Unmarshal([]byte(p.Out.String()), &found); err != nil {
		s.t.Fatal(err)
	}
	verdicts := map[string]string{}
	for _, c := range found.Checks {
		verdicts[c.Name] = c.Verdict
		if len(c.Changes) > 0 {
			s.t.Errorf("after the fix, %s asks for %v", c.Name, c.Changes)
		}
	}
	for _, name := range []string{"ktimers", "rivals", "throttling", "interrupts", "can interrupts", "clock source", "queue can0", "queue can1", "restart can1"} {
		if verdicts[name] != "ok" {
			s.t.Errorf("after the fix the verdict of %s is %q, want ok", name, verdicts[name])
		}
	}
}

// onlyRoot checks that a command line is refused to a user other than root and changes nothing.
func (s *settings) onlyRoot(line []string) {
	s.t.Helper()
	before := s.read()
	s.sh("cp " + lab.Command(s.t) + " /run/lockstep-copy && chmod 755 /run/lockstep-copy")
	p := lab.Start(s.t, "setpriv", append([]string{"--reuid=65534", "--clear-groups", "/run/lockstep-copy"}, line...)...)
	if code := p.Wait(); code != 3 || !strings.Contains(p.Err.String(), "only root may change") || strings.Count(p.Err.String(), "\n") != 1 {
		s.t.Errorf("as a user: exit %d\n%s", code, &p.Err)
	}
	s.check("as a user", before)
}

// serviceHasTheRights fixes and undoes the settings with the capabilities of lockstep-host.service.
func (s *settings) serviceHasTheRights(fixed, before map[string]string) {
	s.t.Helper()
	unit := lab.ReadTrimmed(s.t, "../../deploy/root/usr/lib/systemd/system/lockstep-host.service")
	_, list, found := strings.Cut(unit, "\nCapabilityBoundingSet=")
	list, _, _ = strings.Cut(list, "\n")
	if !found {
		s.t.Fatal("the unit has no CapabilityBoundingSet=")
	}
	set := "-all"
	for _, name := range strings.Fields(list) {
		set += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	rights := "setpriv --no-new-privs --bounding-set=" + set + " "
	s.t.Log(s.sh(rights + lab.Command(s.t) + " doctor -fix -yes -cpu " + lab.IsolatedCPU))
	s.check("fixed with the rights of the service", fixed)
	s.sh(rights + lab.Command(s.t) + " doctor -undo")
	s.check("undone with the rights of the service", before)
}

// runKeepsSettings runs a bench. During the run undo is refused; after it the settings are as
// fixed.
func (s *settings) runKeepsSettings(fixed map[string]string) {
	s.t.Helper()
	b := lab.StartDemoOn(s.t, "vcan0", lab.UntilStopped, nil)
	b.AwaitTicking()
	if code, out := s.lockstep("doctor", "-undo"); code != 3 || !strings.Contains(out, "a bench runs on this host") {
		s.t.Errorf("undo in a run: exit %d\n%s", code, out)
	}
	b.Stop()
	s.check("after a run", fixed)
}
