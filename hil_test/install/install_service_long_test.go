//go:build long

package install

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/sched/hostinfo"
)

// The test installs the package, enables a bench and boots again. Then it kills, stops and disturbs the
// processes of the service.
func TestLabServiceComesBackFromEachFault(t *testing.T) {
	if !onDebian(t) {
		return
	}
	if boot(t) == "" {
		runTests(t, []subtest{
			{"PackageIsInstalled", func(t *testing.T) {
				t.Log(output(t, "apt-get install -y --no-install-recommends "+os.Getenv(packageVar)))
				installPackage(t)
			}},
			{"BenchIsEnabledOnACard", enabled},
		})
		if !t.Failed() {
			nextBoot(t)
		}
		return
	}
	runTests(t, serviceTests)
}

// serviceTests are the subtests of the boot with the package and an enabled bench.
var serviceTests = []subtest{
	{"ServiceIsUpAfterBootOnTheCard", upAtBoot},
	{"LoopHasItsCPUAndNoProcessExceedsTheRightsOfTheUnit", checkProcesses},
	{"ControlUnitIsAnswered", answered},
	{"TargetKilledComesBackBySafeValues", func(t *testing.T) {
		fall(t, "plant safe plant", "the target process died (signal: killed", func(s, target int) { kill(t, target, syscall.SIGKILL) })
	}},
	{"TargetThatHangsComesBackBySafeValues", func(t *testing.T) {
		fall(t, "plant safe plant", "(watchdog); the target process was killed", func(s, target int) { kill(t, target, syscall.SIGSTOP) })
	}},
	{"SupervisorKilledComesBackBySafeValues", func(t *testing.T) {
		fall(t, "plant safe plant", "code=killed, status=9/KILL", func(s, target int) { kill(t, s, syscall.SIGKILL) })
	}},
	{"SupervisorThatCrashesComesBackBySafeValues", func(t *testing.T) {
		fall(t, "plant safe plant", "status=6/ABRT", func(s, target int) { kill(t, s, syscall.SIGSEGV) })
	}},
	{"SupervisorThatHangsComesBackBySafeValues", func(t *testing.T) {
		fall(t, "plant safe plant", "Watchdog timeout", func(s, target int) { kill(t, s, syscall.SIGSTOP) })
	}},
	{"SupervisorAndTargetKilledComeBackByTheGuardsSafeValues", func(t *testing.T) {
		fall(t, "plant safe plant", "code=killed, status=9/KILL", func(s, target int) {
			kill(t, s, syscall.SIGSTOP) // otherwise it reports the death of the target first
			kill(t, target, syscall.SIGKILL)
			kill(t, s, syscall.SIGKILL)
		})
	}},
	{"AllKilledComeBackAfterSilence", func(t *testing.T) {
		fall(t, "plant", "code=killed, status=9/KILL", func(s, target int) { lab.Shell(t, "systemctl kill -s KILL lockstep@lab") })
	}},
	{"SecondServiceOnCardOrCPUIsRefused", secondService},
	{"StopLeavesSafeValuesThenSilence", stopped},
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// enabled follows the README for a bench called lab. The demo bench ends after 200 ticks missed at
// once; the emulator may stall for longer.
func enabled(t *testing.T) {
	for _, line := range []string{
		"cp /usr/share/lockstep/network/70-can.network /etc/systemd/network/",
		"cp /usr/share/lockstep/network/70-can.rules /etc/udev/rules.d/",
		"udevadm control --reload && udevadm trigger -c add -s net",
		"systemctl enable --now systemd-networkd",
		"cp /usr/share/lockstep/benches/powershift-bench.yaml /etc/lockstep/lab.yaml",
		"sed -i 's/^overrun: skip 200 /overrun: skip 900 /' /etc/lockstep/lab.yaml && grep -q '^overrun: skip 900 ' /etc/lockstep/lab.yaml",
		"echo OPTIONS=-bus can0 >/etc/lockstep/lab.options",
		"systemctl enable lockstep@lab",
	} {
		lab.Shell(t, line)
	}
	lab.Await(t, "can0 is up and has a queue", func() bool {
		out := output(t, "ip link show can0")
		return strings.Contains(out, "state UP") && strings.Contains(out, "qlen 100\n")
	})
}

// undoNetwork undoes the changes of enabled outside of the package.
func undoNetwork(t *testing.T) {
	lab.Shell(t, "rm /etc/systemd/network/70-can.network /etc/udev/rules.d/70-can.rules; systemctl disable --now systemd-networkd systemd-networkd.socket 2>&1")
	lab.Shell(t, "for bus in can0 can1; do ip link set $bus down; ip link set $bus txqueuelen 10; done")
}

// service waits until lockstep@lab is active and returns its process ids.
func service(t *testing.T) (supervisor, target int) {
	t.Helper()
	lab.AwaitFor(t, "lockstep@lab is active, with a target", 4*time.Minute, func() bool {
		if property(t, "ActiveState") != "active" {
			return false
		}
		supervisor, _ = strconv.Atoi(property(t, "MainPID"))
		target = lab.TargetOf(t, supervisor)
		return supervisor != 0 && target != 0
	})
	return supervisor, target
}

func property(t *testing.T, name string) string {
	t.Helper()
	return output(t, "systemctl show -P "+name+" lockstep@lab")
}

// journalOf returns the journal of the service since boot.
func journalOf(t *testing.T) string {
	t.Helper()
	return output(t, "journalctl --sync; journalctl -b -o short-monotonic --no-pager -u lockstep@lab")
}

func upAtBoot(t *testing.T) {
	s, target := service(t)
	t.Logf("supervisor %d, target %d, restarts %s\n%s", s, target, property(t, "NRestarts"),
		journalOf(t)+"\n"+output(t, "ip -d link show can0; systemd-analyze critical-chain lockstep@lab.service || true"))
	if got := property(t, "NRestarts"); got != "0" {
		t.Errorf("%s restarts, want none", got)
	}
	if got := lab.ReadTrimmed(t, "/sys/class/net/can0/operstate"); got != "up" {
		t.Errorf("can0 is %s, want up", got)
	}
	for _, want := range []string{"bitrate 500000", "restart-ms 100", "qlen 100\n"} {
		if out := output(t, "ip -d link show can0"); !strings.Contains(out, want) {
			t.Errorf("can0 has no %s:\n%s", want, out)
		}
	}
}

// checkProcesses checks threads and rights of both processes of the service.
func checkProcesses(t *testing.T) {
	s, target := service(t)
	loop := lab.LoopThread(t, target)
	if loop.Policy != unix.SCHED_FIFO || loop.Priority != 80 || hostinfo.FormatCPUs(loop.CPUs) != lab.IsolatedCPU {
		t.Errorf("the loop's thread %v; want policy %d, priority 80, CPU %s", loop, unix.SCHED_FIFO, lab.IsolatedCPU)
	}
	for _, h := range append(lab.Threads(t, target), lab.Threads(t, s)...) {
		if h.PID != loop.PID && (h.Policy != unix.SCHED_NORMAL || hostinfo.FormatCPUs(h.CPUs) != "0") {
			t.Errorf("thread %v is not that of the loop, want SCHED_OTHER on CPU 0", h)
		}
	}
	for _, pid := range []int{s, target} {
		checkRights(t, pid)
	}
	if best := output(t, "lockstep ctl powershift-bench status"); strings.Contains(best, "best effort") {
		t.Errorf("best effort, although the unit grants all rights:\n%s", best)
	}
	t.Log(output(t, "lockstep ps; systemctl status --no-pager lockstep@lab; systemd-analyze security --no-pager lockstep@lab.service | tail -n 1"))
}

// answered restarts the service with the virtual control unit on the other card, since the unit
// shifts from the start of the plant.
func answered(t *testing.T) {
	dump, tcu := lab.StartCandump(t, "can1"), lab.StartUnit(t, "can1")
	lab.Shell(t, "systemctl restart lockstep@lab")
	lab.AwaitFor(t, "the unit shifts", 2*time.Minute, func() bool { return strings.Contains(tcu.Out.String()+tcu.Err.String(), "shift 1-3-6 -> 2-3-6") })
	byID, _ := lab.EndCandumpNow(t, dump)
	for _, id := range []string{"110", "111", "200", "201", "202"} {
		if byID[id] == nil {
			t.Errorf("no frame %s on the bus", id)
		}
	}
}

// checkRights checks the rights of a process: user lockstep, no capability beyond those of its
// unit, no new privileges.
func checkRights(t *testing.T, pid int) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d", pid)
	for _, id := range strings.Fields(lab.StatusField(t, folder, "Uid")) {
		if want := output(t, "id -u lockstep"); id != want {
			t.Errorf("process %d has user %s, want %s", pid, id, want)
		}
	}
	has := func(field string) uint64 {
		bits, err := strconv.ParseUint(lab.StatusField(t, folder, field), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return bits
	}
	granted := uint64(0)
	for _, name := range strings.Fields(property(t, "CapabilityBoundingSet")) {
		bit, ok := map[string]int{"cap_net_admin": 12, "cap_ipc_lock": 14, "cap_sys_nice": 23}[name]
		if !ok {
			t.Errorf("the unit grants %s", name)
		}
		granted |= 1 << bit
	}
	t.Logf("process %d: capabilities %x effective, %x possible; the unit grants %x", pid, has("CapEff"), has("CapBnd"), granted)
	if granted == 0 || has("CapEff")&^granted|has("CapPrm")&^granted|has("CapBnd")&^granted != 0 {
		t.Errorf("process %d has the capabilities %x, %x, %x; the unit grants %x", pid, has("CapEff"), has("CapPrm"), has("CapBnd"), granted)
	}
	if lab.StatusField(t, folder, "NoNewPrivs") != "1" || lab.StatusField(t, folder, "Seccomp") == "0" {
		t.Errorf("process %d may get new privileges (%s) or has no filter of system calls (%s)", pid, lab.StatusField(t, folder, "NoNewPrivs"), lab.StatusField(t, folder, "Seccomp"))
	}
}

// phases returns the sequence of values on the bus, as words: plant, safe.
func phases(f *lab.Frames) string {
	var words []string
	for _, safe := range lab.SafeSpeeds(f) {
		word := map[bool]string{false: "plant", true: "safe"}[safe]
		if len(words) == 0 || words[len(words)-1] != word {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// fall disturbs the service. The bus must carry the wanted phases, the service must restart, and
// the journal must contain why.
func fall(t *testing.T, want, why string, do func(supervisor, target int)) {
	s, target := service(t)
	mark, dump, before := journalOf(t), lab.StartCandump(t, "can1"), property(t, "NRestarts")
	lab.Await(t, "Speeds", func() bool { return strings.Contains(dump.Out.String(), " 200#") })
	do(s, target)
	lab.AwaitExit(t, s)
	lab.AwaitExit(t, target)
	was := strings.Count(dump.Out.String(), " 200#")
	again, next := service(t)
	lab.Await(t, "Speeds of the next run", func() bool { return strings.Count(dump.Out.String(), " 200#") > was+20 })
	byID, _ := lab.EndCandumpNow(t, dump)
	entries := strings.TrimPrefix(journalOf(t), mark)
	t.Logf("supervisor %d, then %d; target %d, then %d; the journal:\n%s", s, again, target, next, entries)
	if got := phases(byID["200"]); got != want {
		t.Errorf("on the bus: %s; want %s", got, want)
	}
	if again == s || next == target || property(t, "NRestarts") == before {
		t.Errorf("the service was not restarted")
	}
	if !strings.Contains(entries, why) {
		t.Errorf("no %q in the journal", why)
	}
}

// secondService starts further services on the card and on the CPU of the first.
func secondService(t *testing.T) {
	s, target := service(t)
	for _, e := range []struct{ name, bus, cpu, reserved string }{{"card", "can0", "auto", "can0"}, {"cpu", "can1", lab.IsolatedCPU, "CPU " + lab.IsolatedCPU}} {
		lab.Shell(t, "sed 's/^bench: .*/bench: second/; s/^cpu: auto/cpu: "+e.cpu+"/' /etc/lockstep/lab.yaml >/etc/lockstep/"+e.name+".yaml && echo OPTIONS=-bus "+e.bus+" >/etc/lockstep/"+e.name+".options")
		out := output(t, "systemctl start lockstep@"+e.name+" && echo started; systemctl stop lockstep@"+e.name+"; systemctl reset-failed lockstep@"+e.name+"; true")
		line := output(t, "journalctl --sync; journalctl -b -o cat --no-pager -u lockstep@"+e.name+" | grep ^lockstep:; true")
		t.Logf("%s\n%s", out, line)
		if strings.Contains(out, "started") || strings.Contains(line, "\n") || !strings.Contains(line, e.reserved) || !strings.Contains(line, strconv.Itoa(s)) {
			t.Errorf("want a second service on %s refused in one line that names process %d", e.reserved, s)
		}
	}
	if a, b := service(t); a != s || b != target {
		t.Errorf("the first service was restarted meanwhile")
	}
}

// stopped stops the service with systemctl.
func stopped(t *testing.T) {
	s, target := service(t)
	mark, dump := journalOf(t), lab.StartCandump(t, "can1")
	lab.Await(t, "Speeds", func() bool { return strings.Contains(dump.Out.String(), " 200#") })
	lab.Shell(t, "systemctl stop lockstep@lab")
	lab.AwaitExit(t, s)
	lab.AwaitExit(t, target)
	byID, _ := lab.EndCandump(t, dump)
	entries := strings.TrimPrefix(journalOf(t), mark)
	t.Logf("the journal:\n%s", entries)
	_, safe := lab.CheckFallToSafe(t, byID["200"])
	if safe < 10 {
		t.Errorf("%d safe Speeds, want those of 100 ms", safe)
	}
	if got := property(t, "Result") + " " + property(t, "ActiveState"); got != "success inactive" {
		t.Errorf("the service is %s", got)
	}
	for _, want := range []string{"ticks", "missed", "frames out", "wake-up latency"} {
		if !strings.Contains(entries, want) {
			t.Errorf("the report in the journal has no %q", want)
		}
	}
	if got := lab.KernelThread(t, "ktimers/"+lab.IsolatedCPU); got.Priority != 1 {
		t.Errorf("after the run %v, want its original priority, 1", got)
	}
	if latency := lab.DMALatency(t); latency == 0 {
		t.Error("/dev/cpu_dma_latency is still held at 0")
	}
}
