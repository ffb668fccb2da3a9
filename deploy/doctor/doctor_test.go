package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// demo holds the requirements of the demo bench.
var demo = Requirements{CPU: -1, Priority: 80, Timer: "timerfd"}

var hosts = []string{"tuned", "desktop", "container", "vm", "throttled", "mainline", "pi"}

// gone, as the text of a file, removes the file.
const gone = "\x00"

// diagnose examines a host of testdata with edited files.
func diagnose(t *testing.T, host string, req Requirements, edits map[string]string) Diagnosis {
	t.Helper()
	d, err := Examine(edited(t, host, edits), req)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// edited returns the root of a host of testdata, or of a copy with edited files.
func edited(t *testing.T, host string, edits map[string]string) string {
	t.Helper()
	root := filepath.Join("..", "..", "sched", "hostinfo", "testdata", "hosts", host)
	if len(edits) > 0 {
		dir := filepath.Join(t.TempDir(), host)
		if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
			t.Fatal(err)
		}
		root = dir
	}
	for name, text := range edits {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && text == gone {
			err = os.RemoveAll(path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// not lists the checks that are not OK: "MUST kernel".
func (d Diagnosis) not() []string {
	list := []string{}
	for _, c := range d.Checks {
		if c.Verdict != OK {
			list = append(list, c.mark()+" "+c.Name)
		}
	}
	return list
}

// have fails the test unless the check has the verdict, can and the words.
func (d Diagnosis) have(t *testing.T, name string, verdict Verdict, can Can, words ...string) {
	t.Helper()
	c := d.Check(name)
	if c == nil {
		t.Fatalf("no check %q", name)
	}
	if c.Verdict != verdict || c.Can != can {
		t.Errorf("%s is %s with can %q, want %s, %q (found: %s)", name, c.Verdict, c.Can, verdict, can, c.Found)
	}
	for _, word := range words {
		if !strings.Contains(c.Found+"\n"+c.Command, word) {
			t.Errorf("%s does not say %q but: %s; %s", name, word, c.Found, c.Command)
		}
	}
}

func TestATunedBoxIsFit(t *testing.T) {
	want := demo
	want.Buses = []string{"can0", "can1"}
	d := diagnose(t, "tuned", want, nil)
	if not := d.not(); !d.Fit || len(not) > 0 {
		t.Errorf("fit %t, not as wanted: %q", d.Fit, not)
	}
	if d.Host.CPU != 3 {
		t.Errorf("the loop goes to CPU %d, not to 3, the isolated one", d.Host.CPU)
	}
	d.have(t, "can interrupts", OK, "", "irq/129-kvaser_", "FIFO 50")
}

func TestAStockDesktopIsNotFit(t *testing.T) {
	d := diagnose(t, "desktop", demo, nil)
	want := []string{
		"MUST kernel", "MUST isolation", "MUST priority", "MUST memlock", "should capabilities", "should rivals", "should throttling",
		"should interrupts", "MUST governor", "should idle states", "should smt", "should huge pages",
	}
	if not := d.not(); d.Fit || !slices.Equal(not, want) {
		t.Errorf("fit %t, not as wanted:\n%q, want\n%q", d.Fit, not, want)
	}
	d.have(t, "kernel", Wrong, Kernel, "PREEMPT_DYNAMIC", "linux-image-rt-amd64")
	d.have(t, "isolation", Wrong, Boot, "isolcpus=managed_irq,domain,7", "/etc/default/grub")
	d.have(t, "priority", Wrong, Restart, "setcap")
	d.have(t, "governor", Wrong, Now, "powersave")
	d.have(t, "idle states", Wrong, Now, "C7s 124 us", "-lt 3 ")
	d.have(t, "interrupts", Wrong, Now, "129 xhci_hcd (311 so far)", "IRQBALANCE_BANNED_CPULIST=7", "echo 0-2,4-6 ")
	d.have(t, "rivals", Wrong, Now, "data-loop.0 1431 RR 88")
}

func TestAContainerCannotChangeItsKernelOrSeeItsThreads(t *testing.T) {
	d := diagnose(t, "container", demo, nil)
	d.have(t, "ktimers", Unknown, Outside)
	d.have(t, "interrupts", Unknown, Outside)
	d.have(t, "isolation", Wrong, Outside)
	d.have(t, "governor", Wrong, Outside)
	d.have(t, "priority", Wrong, Restart, "docker run --cap-add SYS_NICE", "--ulimit rtprio=99")
	if c := d.Check("ktimers"); d.Fit || c.mark() != "MUST ?" {
		t.Errorf("fit %t, ktimers is marked %q: what cannot be seen does not make a host fit", d.Fit, c.mark())
	}
	for _, c := range d.Checks {
		if c.Verdict != OK && (c.Can == Now || c.Can == Boot || c.Can == Kernel) {
			t.Errorf("%s: a container cannot do it %q", c.Name, c.Can)
		}
	}
}

func TestAVirtualMachineIsNotFitHoweverTuned(t *testing.T) {
	d := diagnose(t, "vm", demo, nil)
	if d.Fit || !slices.Equal(d.not(), []string{"MUST virtualisation", "note queue can0", "note can can1", "note queue can1"}) {
		t.Errorf("fit %t, not as wanted: %q", d.Fit, d.not())
	}
	d.have(t, "virtualisation", Wrong, Outside, "QEMU")
	d.have(t, "can interrupts", OK, "", "irq/16-can0")
}

func TestThrottlingIsReportedAndALowTimerThreadMakesAHostUnfit(t *testing.T) {
	d := diagnose(t, "throttled", demo, nil)
	d.have(t, "throttling", Wrong, Now, "950000 of 1000000 us", "sched_rt_runtime_us=-1")
	d.have(t, "ktimers", Wrong, Now, "FIFO 1", "chrt -f -p 81 $(pgrep -x 'ktimers/3')")
	d.have(t, "can interrupts", Wrong, Now, "irq/127-can0 FIFO 50 on CPU 3", "pgrep -x 'irq/127-can0'")
	d.have(t, "interrupts", Wrong, Now, "131 nvme0q4 (12 so far, managed)", "for i in 130;")
	d.have(t, "clock source", Wrong, Firmware, "hpet")
	d.have(t, "smt", Wrong, Now, "CPU 1", "cpu1/online")
	d.have(t, "can can0", Wrong, Now, "bus off")
	if d.Fit {
		t.Error("a timerfd below every real-time thread is fit")
	}
	raised := diagnose(t, "throttled", Requirements{CPU: -1, Priority: 80, Timer: "nanosleep"}, nil)
	if !raised.Fit {
		t.Errorf("with nanosleep the timer thread does not matter, but not fit: %q", raised.not())
	}
}

func TestAMainlineKernelIsRealTimeAndHasAFairServer(t *testing.T) {
	d := diagnose(t, "mainline", demo, nil)
	d.have(t, "kernel", OK, "", "PREEMPT_RT")
	d.have(t, "throttling", Wrong, Now, "fair server", "fair_server/cpu3/runtime")
	d.have(t, "isolation", OK, "", "2-3")
	d.have(t, "ktimers", Wrong, Restart, "ksoftirqd", "nanosleep")
	off := diagnose(t, "mainline", demo, map[string]string{"sys/kernel/debug/sched/fair_server/cpu3/runtime": "0"})
	off.have(t, "throttling", OK, "")
	broken := diagnose(t, "mainline", demo, map[string]string{
		"sys/fs/cgroup/cpuset.cpus.isolated":            "",
		"sys/fs/cgroup/hil.slice/cpuset.cpus.partition": "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
	})
	broken.have(t, "isolation", Wrong, Boot, "hil.slice", "not exclusive")
}

func TestARaspberryPiIsExamined(t *testing.T) {
	d := diagnose(t, "pi", demo, nil)
	want := []string{"MUST isolation", "unknown throttling", "should interrupts", "should can interrupts", "MUST governor", "note queue can0"}
	if not := d.not(); !slices.Equal(not, want) {
		t.Errorf("not as wanted:\n%q, want\n%q", not, want)
	}
	d.have(t, "isolation", Wrong, Boot, "/boot/firmware/cmdline.txt")
	d.have(t, "can interrupts", Wrong, Now, "irq/54-spi0.0")
	d.have(t, "throttling", Unknown, "", "mount -t debugfs")
	stock := diagnose(t, "pi", demo, map[string]string{"sys/kernel/realtime": gone, "proc/version": "Linux version 6.12.47+rpt-rpi-v8 #1 SMP PREEMPT Debian"})
	stock.have(t, "kernel", Wrong, Kernel, "linux-image-rpi-v8-rt")
}

// spoilt lists changes to the tuned host for the worse, with the only checks that may detect them.
var spoilt = []struct {
	what  string
	files map[string]string
	not   []string
}{
	{"no RT file, as in mainline", map[string]string{"sys/kernel/realtime": gone}, nil},
	{"no PREEMPT_RT", map[string]string{"sys/kernel/realtime": gone, "proc/version": "Linux version 6.1.0 #1 SMP PREEMPT_DYNAMIC"}, []string{"MUST kernel"}},
	{"a hypervisor", map[string]string{"proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu hypervisor"}, []string{"MUST virtualisation"}},
	{"a hypervisor of ARM", map[string]string{"sys/class/dmi/id/sys_vendor": "QEMU"}, []string{"MUST virtualisation"}},
	{"the control group lacks the CPU", map[string]string{"sys/fs/cgroup/user.slice/cpuset.cpus.effective": "0-2"}, []string{"MUST cpu"}},
	{"the control group has one CPU", map[string]string{"sys/fs/cgroup/user.slice/cpuset.cpus.effective": "3"}, []string{"MUST cpu"}},
	{"one CPU", map[string]string{"sys/devices/system/cpu/online": "3"}, []string{"MUST cpu", "MUST isolation"}},
	{"the CPU is off line", map[string]string{"sys/devices/system/cpu/online": "0-2"}, []string{"MUST cpu"}},
	{"not isolated", map[string]string{"sys/devices/system/cpu/isolated": ""}, []string{"MUST isolation"}},
	{"no capability, but limits", map[string]string{"proc/self/status": "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-2"}, []string{"should capabilities"}},
	{"neither capability nor limit", map[string]string{"proc/self/status": "CapEff:\t0000000000000000", "proc/self/limits": limits("0", "8388608")},
		[]string{"MUST priority", "MUST memlock", "should capabilities"}},
	{"limits that are enough", map[string]string{"proc/self/status": "CapEff:\t0000000000000000", "proc/self/limits": limits("80", "67108864")},
		[]string{"should capabilities"}},
	{"an rtprio limit below", map[string]string{"proc/self/status": "CapEff:\t0000000000000000", "proc/self/limits": limits("79", "unlimited")},
		[]string{"MUST priority", "should capabilities"}},
	{"the rights cannot be read", map[string]string{"proc/self/status": gone, "proc/self/limits": gone}, []string{"MUST ? priority", "MUST ? memlock", "unknown capabilities"}},
	{"no real-time share of the group", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/hil", "sys/fs/cgroup/cpu/hil/cpu.rt_runtime_us": "0"}, []string{"MUST priority"}},
	{"a low timer thread, raised by a run", map[string]string{"proc/42/task/42/stat": stat(42, "ktimers/3", 1, 1)}, nil},
	{"a low timer thread", map[string]string{"proc/42/task/42/stat": stat(42, "ktimers/3", 1, 1), "proc/self/status": "CapEff:\t0000000000000000"},
		[]string{"should capabilities", "MUST ktimers"}},
	{"no timer thread", map[string]string{"proc/42": gone}, []string{"MUST ktimers"}},
	{"ksoftirqd above the loop", map[string]string{"proc/40/task/40/stat": stat(40, "ksoftirqd/3", 90, 1)}, []string{"should ksoftirqd"}},
	{"a rival", map[string]string{"proc/900/task/901/stat": stat(901, "other (loop)", 80, 1), "proc/900/task/901/status": "Cpus_allowed_list:\t0-3"}, []string{"should rivals"}},
	{"a deadline rival", map[string]string{"proc/900/task/901/stat": stat(901, "dl", 0, 6), "proc/900/task/901/status": "Cpus_allowed_list:\t3"}, []string{"should rivals"}},
	{"no rival: elsewhere", map[string]string{"proc/900/task/901/stat": stat(901, "dl", 0, 6), "proc/900/task/901/status": "Cpus_allowed_list:\t0-2"}, nil},
	{"throttling", map[string]string{"proc/sys/kernel/sched_rt_runtime_us": "950000"}, []string{"should throttling"}},
	{"no real-time at all", map[string]string{"proc/sys/kernel/sched_rt_runtime_us": "0"}, []string{"MUST throttling"}},
	{"an interrupt on the CPU", map[string]string{"proc/irq/127/effective_affinity_list": "3"}, []string{"should interrupts"}},
	{"a queue of the CPU that is used", map[string]string{"proc/cmdline": "isolcpus=3"}, []string{"should interrupts"}},
	{"new interrupts anywhere", map[string]string{"proc/irq/default_smp_affinity": "f"}, []string{"should interrupts"}},
	{"the card's thread below the loop", map[string]string{"proc/412/task/412/status": "Cpus_allowed_list:\t3"}, []string{"should can interrupts"}},
	{"the card's thread above the loop", map[string]string{"proc/412/task/412/status": "Cpus_allowed_list:\t3", "proc/412/task/412/stat": stat(412, "irq/129-kvaser_", 85, 1)}, nil},
	{"a slow governor", map[string]string{"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "schedutil"}, []string{"MUST governor"}},
	{"no frequencies", map[string]string{"sys/devices/system/cpu/cpu3/cpufreq": gone}, nil},
	{"idle states", map[string]string{"dev/cpu_dma_latency": gone}, []string{"should idle states"}},
	{"idle states turned off", map[string]string{
		"dev/cpu_dma_latency": gone, "sys/devices/system/cpu/cpu3/cpuidle/state3/disable": "1", "sys/devices/system/cpu/cpu3/cpuidle/state4/disable": "1",
	}, nil},
	{"a shared core", map[string]string{"sys/devices/system/cpu/cpu3/topology/thread_siblings_list": "1,3"}, []string{"should smt"}},
	{"the sibling is off line", map[string]string{"sys/devices/system/cpu/cpu3/topology/thread_siblings_list": "3,7"}, nil},
	{"a slow clock", map[string]string{"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}, []string{"should clock source"}},
	{"huge pages", map[string]string{"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"}, []string{"should huge pages"}},
	{"no huge pages", map[string]string{"sys/kernel/mm/transparent_hugepage/enabled": gone}, nil},
	{"page balancing", map[string]string{"proc/sys/kernel/numa_balancing": "2"}, []string{"should numa balancing"}},
	{"a bus that is down", map[string]string{"sys/class/net/can0/flags": "0x40080"}, []string{"MUST can can0"}},
	{"a bus that is off", map[string]string{"sys/class/net/can1/carrier": "0"}, []string{"MUST can can1"}},
	{"a bus that is none", map[string]string{"sys/class/net/can0/type": "1"}, []string{"MUST can can0"}},
	{"no bus", map[string]string{"sys/class/net/can0": gone}, []string{"MUST can can0"}},
	{"a short queue", map[string]string{"sys/class/net/can0/tx_queue_len": "10"}, []string{"should queue can0"}},
	{"a list that is none", map[string]string{"sys/devices/system/cpu/online": "x"}, []string{"MUST ? cpu", "MUST ? isolation"}},
}

func TestARunningLoopIsNotItsOwnRival(t *testing.T) {
	files := map[string]string{"proc/900/task/901/stat": stat(901, "lockstep-loop", 80, 1), "proc/900/task/901/status": "Cpus_allowed_list:\t3"}
	for loop, want := range map[int][]string{0: {"should rivals"}, 901: {}, 900: {"should rivals"}} {
		d := diagnose(t, "tuned", Requirements{CPU: 3, Priority: 80, Timer: "timerfd", Loop: loop}, files)
		if got := d.not(); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("loop %d: not as wanted: %q, want %q", loop, got, want)
		}
	}
}

// limits returns the text of /proc/self/limits with two limits.
func limits(priority, memory string) string {
	pad := func(text string, n int) string { return text + strings.Repeat(" ", n-len(text)) }
	return pad("Max locked memory", 26) + pad(memory, 21) + pad(memory, 21) + "bytes\n" + pad("Max realtime priority", 26) + pad(priority, 21) + pad(priority, 21)
}

func TestOnlyTheRightChecksDetectAChangeForTheWorse(t *testing.T) {
	for _, s := range spoilt {
		t.Run(s.what, func(t *testing.T) {
			d := diagnose(t, "tuned", Requirements{CPU: 3, Priority: 80, Timer: "timerfd", Buses: []string{"can0", "can1"}}, s.files)
			if got := d.not(); !slices.Equal(got, s.not) && len(got)+len(s.not) > 0 {
				t.Errorf("not as wanted: %q, want %q", got, s.not)
			}
			must := slices.ContainsFunc(s.not, func(text string) bool { return strings.HasPrefix(text, "MUST") })
			if d.Fit == must {
				t.Errorf("fit %t with %q", d.Fit, s.not)
			}
		})
	}
}

// No command adds an interface to a kernel that is built without CAN: a pair and a log work there.
func TestAKernelWithoutCANIsToldWhatWorksThere(t *testing.T) {
	want := demo
	want.Buses = []string{"vcan0", "can5"}
	for config, works := range map[string]bool{"# CONFIG_CAN is not set\n": true, "CONFIG_CAN=m\nCONFIG_CAN_RAW=m\n": false} {
		root := edited(t, "desktop", map[string]string{"proc/loadavg": "0"})
		release := strings.TrimSpace(string(must(os.ReadFile(filepath.Join(root, "proc/sys/kernel/osrelease")))))
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "boot"), 0o755), os.WriteFile(filepath.Join(root, "boot", "config-"+release), []byte(config), 0o644)); err != nil {
			t.Fatal(err)
		}
		d, err := Examine(root, want)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want.Buses {
			c := d.Check("can " + name)
			if got := strings.Contains(c.Command, "-bus pair") && strings.Contains(c.Command, "-bus file:LOG"); got != works {
				t.Errorf("%q: can %s: do %q", config, name, c.Command)
			}
			if works && (c.Can != Kernel || strings.Contains(c.Command, "ip link") || d.Fit) {
				t.Errorf("can %s: %+v", name, c)
			}
		}
	}
}

// must returns the data of a file of a test.
func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestEveryFailedCheckHasARemedy(t *testing.T) {
	for _, host := range hosts {
		want := demo
		want.Buses = []string{"can0", "vcan7"}
		for _, c := range diagnose(t, host, want, nil).Checks {
			if c.Found == "" || c.Wanted == "" || c.Why == "" {
				t.Errorf("%s: %s lacks a text: %+v", host, c.Name, c)
			}
			if (c.Verdict == OK) != (c.Command == "") || c.Verdict == OK && c.Can != "" || c.Verdict == Wrong && c.Can == "" {
				t.Errorf("%s: %s is %s, with command %q and can %q", host, c.Name, c.Verdict, c.Command, c.Can)
			}
		}
	}
}

func TestTheTextIsWrappedExceptItsCommands(t *testing.T) {
	for _, host := range hosts {
		d := diagnose(t, host, demo, nil)
		var b bytes.Buffer
		if err := d.Text(&b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); len(line) > width && !strings.HasPrefix(line, "          do ") {
				t.Errorf("%s: %d characters: %s", host, len(line), line)
			}
		}
		for _, c := range d.Checks {
			if !strings.Contains(text, c.Command) {
				t.Errorf("%s: the command of %s is broken", host, c.Name)
			}
		}
		if fit := strings.Contains(text, "\nfit: "); fit != d.Fit {
			t.Errorf("%s: the last line says fit %t, the diagnosis %t", host, fit, d.Fit)
		}
	}
}

func TestJSONHasTheWholeDiagnosis(t *testing.T) {
	d := diagnose(t, "throttled", demo, nil)
	var b bytes.Buffer
	if err := d.JSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"fit": false`, `"kernel": "6.1.0-40-rt-amd64"`, `"cpus": "0-3"`, `"level": "must"`, `"verdict": "wrong"`, `"can": "now"`} {
		if !strings.Contains(b.String(), key) {
			t.Errorf("no %s in the JSON", key)
		}
	}
	var back Diagnosis
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || !reflect.DeepEqual(d, back) {
		t.Errorf("read back, it is another diagnosis: %v", err)
	}
}

func TestExamineChangesNothing(t *testing.T) {
	before := tree(t)
	for _, host := range hosts {
		diagnose(t, host, demo, nil)
	}
	if !maps.Equal(before, tree(t)) {
		t.Error("files below hostinfo/testdata/hosts changed")
	}
}

// tree returns the time of the last change of every file of the hosts.
func tree(t *testing.T) map[string]int64 {
	t.Helper()
	files := map[string]int64{}
	err := filepath.WalkDir(filepath.Join("..", "..", "sched", "hostinfo", "testdata", "hosts"), func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				files[path] = info.ModTime().UnixNano()
			}
		}
		return err
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}

func TestAnInvalidRootIsAnError(t *testing.T) {
	if _, err := Examine(t.TempDir(), demo); err == nil {
		t.Error("an empty directory was diagnosed")
	}
}

func TestAnInvalidInterfaceNameIsAnError(t *testing.T) {
	for _, name := range []string{"", "can0;reboot", "../can0", "an-interface-too-long"} {
		if _, err := Examine("../../sched/hostinfo/testdata/hosts/tuned", Requirements{CPU: -1, Priority: 80, Buses: []string{name}}); err == nil {
			t.Errorf("the name %q was accepted", name)
		}
	}
}
