package doctor

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"lockstep/sched/journal"
)

func (h *host) checkKernel(c Check) Check {
	if h.Realtime {
		return c.ok(h.Release + ", PREEMPT_RT")
	}
	version := strings.Fields(h.Text("proc/sys/kernel/version"))
	kind := "no PREEMPT option in its version"
	if i := slices.IndexFunc(version, func(w string) bool { return strings.HasPrefix(w, "PREEMPT") }); i >= 0 {
		kind = version[i]
	}
	return c.wrong(h.Release+", "+kind, h.kernelCommand(), Kernel)
}

// kernelCommand returns the command that installs a PREEMPT_RT kernel of the host's distribution.
func (h *host) kernelCommand() string {
	switch id := h.osRelease()["ID"]; {
	case strings.Contains(h.Release, "-rpi-"):
		return "sudo apt-get install linux-image-rpi-v8-rt"
	case id == "debian":
		return "sudo apt-get install linux-image-rt-" + h.debianArch()
	case id == "ubuntu":
		return "sudo pro attach, then sudo pro enable realtime-kernel"
	case id == "rhel", id == "centos", id == "rocky", id == "almalinux":
		return "sudo dnf --enablerepo=rt install kernel-rt"
	case id == "arch":
		return "sudo pacman -S linux-rt"
	case strings.HasPrefix(id, "opensuse"), id == "sles":
		return "sudo zypper install kernel-rt"
	}

	return "boot a kernel built with CONFIG_PREEMPT_RT=y (in mainline since 6.12; " +
		"Debian: apt-get install linux-image-rt-" + h.debianArch() + ")"
}

// osRelease reads os-release(5).
func (h *host) osRelease() map[string]string {
	release := map[string]string{}
	for line := range strings.Lines(h.Text("etc/os-release")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		release[name] = strings.Trim(value, `"'`)
	}

	return release
}

func (h *host) debianArch() string {
	arch := h.Text("proc/sys/kernel/arch") // since Linux 6.1
	names := map[string]string{"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armmp", "": runtime.GOARCH}
	if name, known := names[arch]; known {
		return name
	}
	return arch
}

func (h *host) checkVirtualisation(c Check) Check {
	if h.Hypervisor == "" {
		return c.ok("none detected")
	}
	return c.wrong("virtual machine ("+h.Hypervisor+")",
		"run on the hardware; lockstep latency measures this virtual machine", Outside)
}

func (h *host) checkContainer(c Check) Check {
	if h.Container == "" {
		return c.ok("none detected")
	}
	return c.ok(h.Container)
}

// checkThrottling checks the protection of other work against a real-time thread that does not
// sleep: throttling up to Linux 6.11, the fair server from 6.12 on.
func (h *host) checkThrottling(c Check) Check {
	const fair = "sys/kernel/debug/sched/fair_server"
	server := fmt.Sprintf("%s/cpu%d/runtime", fair, h.CPU)
	runtime, err := h.ReadFile(server)
	switch {
	case err == nil && runtime == "0":
		return c.ok("the fair server is off")
	case err == nil:
		period := h.Text(fmt.Sprintf("%s/cpu%d/period", fair, h.CPU))
		return h.wrongSetting(c, fileSetting(server), "0", fmt.Sprintf("the fair server has %s of %s ns", runtime, period))
	case readFailed(err):
		return c.unreadable("only root can read /" + fair)
	case h.KernelAtLeast(6, 12) && len(h.ReadDir("sys/kernel/debug")) == 0:
		return c.unknown("the fair server of this kernel shows in debugfs, which is not mounted",
			"sudo mount -t debugfs debugfs /sys/kernel/debug")
	case h.KernelAtLeast(6, 12):
		return c.unknown("this kernel does not show its fair server",
			"zgrep -e SCHED_DEBUG -e RT_GROUP /proc/config.gz /boot/config-"+h.Release)
	}

	const file = "proc/sys/kernel/sched_rt_runtime_us"
	share, err := h.ReadFile(file)
	switch {
	case err != nil:
		return c.unreadable("no kernel.sched_rt_runtime_us can be read")
	case share == "-1":
		return c.ok("off")
	case share == "0":
		c.Level, c.Wanted, c.Why = Must, "time for real-time threads", "at 0 no real-time thread runs at all"
		return h.wrongSetting(c, fileSetting(file), "950000", "no time for real-time threads")
	}

	period := h.Text("proc/sys/kernel/sched_rt_period_us")
	return h.wrongSetting(c, fileSetting(file), "-1", fmt.Sprintf("real-time threads have %s of %s us", share, period))
}

func (h *host) checkClock(c Check) Check {
	const dir = "sys/devices/system/clocksource/clocksource0/"
	name, err := h.ReadFile(dir + "current_clocksource")
	switch name {
	case "tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "riscv_clocksource", "timebase":
		return c.ok(name)
	}

	switch {
	case err != nil:
		return c.unreadable("the clock source cannot be read")
	case slices.Contains(strings.Fields(h.Text(dir+"available_clocksource")), "tsc"):
		return h.wrongSetting(c, fileSetting(dir+"current_clocksource"), "tsc", name)
	}

	return c.wrong(name,
		"the kernel log gives the reason: sudo dmesg | grep -i -e tsc -e clocksource", Firmware)
}

func (h *host) checkHugePages(c Check) Check {
	const file = "sys/kernel/mm/transparent_hugepage/enabled"
	text, err := h.ReadFile(file)
	_, chosen, _ := strings.Cut(text, "[")
	chosen, _, _ = strings.Cut(chosen, "]")
	switch {
	case readFailed(err):
		return c.unreadable("/" + file + " cannot be read")
	case err != nil:
		return c.ok("not in this kernel")
	case chosen == "always":
		return h.wrongSetting(c, Setting{Kind: journal.Choice, File: "/" + file}, "madvise", chosen)
	}

	return c.ok(chosen)
}

func (h *host) checkNUMA(c Check) Check {
	const file = "proc/sys/kernel/numa_balancing"
	switch text, err := h.ReadFile(file); {
	case readFailed(err):
		return c.unreadable("kernel.numa_balancing cannot be read")
	case err != nil:
		return c.ok("not in this kernel")
	case text == "0":
		return c.ok("off")
	default:
		return h.wrongSetting(c, fileSetting(file), "0", "on ("+text+")")
	}
}
