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

// undoFile is where the product writes how to undo.
const undoFile = "/run/lockstep-doctor-undo.json"

// A PREEMPT_RT host that is spoilt in every way that this lab has, mended by the
// command on a terminal, seen from outside, and put back.
func TestLabPreemptRTFixHoldsAndIsUndone(t *testing.T) {
	patient := lab.PreemptRT
	patient.Limit = 15 * time.Minute
	if !lab.Inside(t, patient, "cansend", "chrt", "setpriv", "taskset") {
		return
	}
	s := spoil(t)
	before := s.look()
	t.Logf("spoilt: %v", before)
	fix := []string{"doctor", "-fix", "-cpu", lab.IsolatedCPU}

	s.onlyRoot(append(fix, "-yes"))
	if code, out := s.lockstep(fix...); code != 3 || !strings.Contains(out, "nothing was changed") {
		t.Fatalf("without a terminal: exit %d\n%s", code, out)
	}
	if code, out := s.onTerminal("n", fix...); code != 3 || !strings.Contains(out, "changes? [y/N]") {
		t.Fatalf("refused on a terminal: exit %d\n%s", code, out)
	}
	s.same("nothing confirmed", before)
	code, out := s.onTerminal("y", fix...)
	if code != 0 {
		t.Fatalf("confirmed on a terminal: exit %d\n%s", code, out)
	}
	t.Log(out)

	fixed := maps.Clone(before)
	maps.Copy(fixed, s.wanted)
	s.same("fixed", fixed)
	s.doctorIsGreen()
	undo := lab.ReadTrimmed(t, undoFile)
	if code, out := s.lockstep(append(fix, "-yes")...); code != 0 || !strings.Contains(out, "nothing to change") {
		t.Errorf("a second time: exit %d\n%s", code, out)
	}
	if lab.ReadTrimmed(t, undoFile) != undo {
		t.Error("a second time wrote another undo file")
	}
	s.runKeepsIt(fixed)
	s.onlyRoot([]string{"doctor", "-undo"})

	if code, out := s.lockstep("doctor", "-undo"); code != 0 || !strings.Contains(out, fmt.Sprintf("%d restored, 0 left, 0 failed", len(s.wanted))) {
		t.Errorf("undo: exit %d, want %d restored\n%s", code, len(s.wanted), out)
	}
	s.same("undone", before)
	s.serviceHasTheRights(fixed, before)
	if _, err := os.Stat(undoFile); err == nil {
		t.Error("the undo file is still there")
	}
}

// sick is a host, and how each of its settings is seen without the product.
type sick struct {
	t      *testing.T
	seen   map[string]string // command by setting
	wanted map[string]string // of those that a fix changes
}

func (s *sick) sh(command string) string {
	s.t.Helper()
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// look reads every setting.
func (s *sick) look() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	for name, command := range s.seen {
		found[name] = s.sh(command)
	}
	return found
}

func (s *sick) same(when string, want map[string]string) {
	s.t.Helper()
	for name, now := range s.look() {
		if now != want[name] {
			s.t.Errorf("%s: %s is %q, want %q", when, name, now, want[name])
		}
	}
}

// spoil makes the host sick.
func spoil(t *testing.T) *sick {
	s := &sick{t: t, seen: map[string]string{}, wanted: map[string]string{}}
	add := func(name, spoil, see, wanted string) {
		s.sh(spoil)
		s.seen[name] = see
		if wanted != "" {
			s.wanted[name] = wanted
		}
	}
	file := func(name, path, spoilt, wanted string) { add(name, "echo "+spoilt+" >"+path, "cat "+path, wanted) }
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
	add("restart of can0", "true", restart("can0"), "") // it is up

	device := irqOf(t, "-requests")
	file("interrupt of a device", "/proc/irq/"+device+"/smp_affinity_list", lab.IsolatedCPU, "0")
	card := irqOf(t, "can0")
	file("interrupt of the card", "/proc/irq/"+card+"/smp_affinity_list", lab.IsolatedCPU, "")
	timers := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU)
	add("timer thread", "true", fmt.Sprintf("chrt -p %d", timers.PID), chrt(timers.PID, 81))
	s.cardThread(card)

	rival := lab.Start(t, "chrt", "-f", "90", "taskset", "-c", "0-1", "sleep", "600")
	pid := strconv.Itoa(rival.Cmd.Process.Pid)
	lab.Await(t, "sleep is a rival", func() bool { return lab.ReadTrimmed(t, "/proc/"+pid+"/comm") == "sleep" })
	add("rival", "true", "taskset -p -c "+pid+" | sed 's/.*: //'", "0")
	add("rival's priority", "true", "chrt -p "+pid, "")
	return s
}

// chrt is what chrt -p says of a FIFO thread.
func chrt(tid, priority int) string {
	return fmt.Sprintf("pid %d's current scheduling policy: SCHED_FIFO\npid %d's current scheduling priority: %d", tid, tid, priority)
}

// cardThread waits until the thread of the card's interrupt is where that goes: it
// follows with the next one.
func (s *sick) cardThread(irq string) {
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
		s.seen["thread of the card"] = fmt.Sprintf("chrt -p %d", tid)
		s.wanted["thread of the card"] = chrt(tid, 81)
		return
	}
	s.t.Fatalf("interrupt %s has no thread", irq)
}

// irqOf is the first interrupt whose line in /proc/interrupts names a word.
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

// otherClock is one that is not the processor's.
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
func (s *sick) lockstep(args ...string) (code int, out string) {
	s.t.Helper()
	p := lab.Start(s.t, lab.Command(s.t), args...)
	code = p.Wait()
	return code, p.Out.String() + p.Err.String()
}

// onTerminal runs the command with a terminal of its own, and answers its question.
func (s *sick) onTerminal(answer string, args ...string) (code int, out string) {
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
	var said lab.Output
	cmd := exec.Command(lab.Command(s.t), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &said, &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	lab.Await(s.t, "it asks", func() bool { return strings.Contains(said.String(), "[y/N]") })
	fmt.Fprintln(ptmx, answer)
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		cmd.Process.Kill()
		s.t.Fatalf("it does not end\n%s", said.String())
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

// doctorIsGreen asks the doctor about what was mended.
func (s *sick) doctorIsGreen() {
	s.t.Helper()
	var found struct {
		Checks []struct {
			Name, Verdict, Found string
			Changes              []any
		}
	}
	p := lab.Start(s.t, lab.Command(s.t), "doctor", "-json", "-cpu", lab.IsolatedCPU, "-bus", "can0")
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
			s.t.Errorf("after the fix the doctor says of %s: %q", name, verdicts[name])
		}
	}
}

// onlyRoot: who is not root is told so, and changes nothing.
func (s *sick) onlyRoot(line []string) {
	s.t.Helper()
	before := s.look()
	s.sh("cp " + lab.Command(s.t) + " /run/lockstep-copy && chmod 755 /run/lockstep-copy")
	p := lab.Start(s.t, "setpriv", append([]string{"--reuid=65534", "--clear-groups", "/run/lockstep-copy"}, line...)...)
	if code := p.Wait(); code != 3 || !strings.Contains(p.Err.String(), "only root may change") || strings.Count(p.Err.String(), "\n") != 1 {
		s.t.Errorf("of a user: exit %d\n%s", code, &p.Err)
	}
	s.same("of a user", before)
}

// serviceHasTheRights fixes and undoes once more with those of lockstep-host.service.
func (s *sick) serviceHasTheRights(fixed, before map[string]string) {
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
	s.same("fixed with the rights of the service", fixed)
	s.sh(rights + lab.Command(s.t) + " doctor -undo")
	s.same("undone with the rights of the service", before)
}

// runKeepsIt runs a bench: meanwhile nothing is undone, and after it everything is
// as the fix left it.
func (s *sick) runKeepsIt(fixed map[string]string) {
	s.t.Helper()
	b := lab.StartDemoOn(s.t, "vcan0", lab.UntilStopped, nil)
	b.AwaitTicking()
	if code, out := s.lockstep("doctor", "-undo"); code != 3 || !strings.Contains(out, "a bench runs on this host") {
		s.t.Errorf("undo in a run: exit %d\n%s", code, out)
	}
	b.Stop()
	s.same("after a run", fixed)
}
