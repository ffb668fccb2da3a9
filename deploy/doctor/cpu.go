package doctor

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"lockstep/sched/hostinfo"
)

func (h *host) checkCPU(c Check) Check {
	found := fmt.Sprintf("CPU %d of %s", h.CPU, hostinfo.FormatCPUs(h.Online))
	switch {
	case len(h.Online) == 0:
		return c.unreadable("the list of CPUs cannot be read")
	case !slices.Contains(h.Online, h.CPU):
		return c.wrong(fmt.Sprintf("no CPU %d among %s", h.CPU, hostinfo.FormatCPUs(h.Online)),
			"choose one of these: lockstep doctor -cpu N", Restart)
	case len(h.Online) == 1:
		return c.wrong("the host has one CPU", "use a host with two CPUs, or -besteffort", Hardware)
	case slices.Contains(h.Reachable, h.CPU) && len(h.Reachable) > 1:
		return c.ok(found)
	}

	return c.wrong("the control group of this process has CPUs "+hostinfo.FormatCPUs(h.Reachable), h.cpusCommand(), Restart)
}

// cpusCommand returns the command that gives the control group of the process all CPUs of the host.
func (h *host) cpusCommand() string {
	online := hostinfo.FormatCPUs(h.Online)
	if h.Container != "" {
		return "start the container with --cpuset-cpus=" + online
	}
	return "start with AllowedCPUs=" + online + " in the unit and its slice, " +
		"e.g. sudo systemd-run --scope -p AllowedCPUs=" + online + " ..."
}

func (h *host) checkIsolation(c Check) Check {
	switch {
	case len(h.Online) == 0:
		return c.unreadable("the list of CPUs cannot be read")
	case len(h.Online) == 1:
		return c.wrong("the host has one CPU", "use a host with two CPUs, or -besteffort", Hardware)
	case slices.Contains(h.Isolated, h.CPU):
		return c.ok("isolated: " + hostinfo.FormatCPUs(h.Isolated))
	}

	found := fmt.Sprintf("the scheduler places other work on CPU %d", h.CPU)
	if len(h.Isolated) > 0 {
		found += "; isolated: " + hostinfo.FormatCPUs(h.Isolated)
	}
	for _, p := range h.Partitions() {
		if strings.Contains(p.State, "invalid") && slices.Contains(p.CPUs, h.CPU) {
			found = fmt.Sprintf("the partition of control group %s is %s", p.Group, p.State)
		}
	}

	return c.wrong(found, h.bootCommand(strings.Join(h.bootOptions(), " ")), Boot)
}

func (h *host) checkGovernor(c Check) Check {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq", h.CPU)
	governor, err := h.ReadFile(dir + "/scaling_governor")
	switch {
	case readFailed(err):
		return c.unreadable("/" + dir + "/scaling_governor cannot be read")
	case err != nil:
		return c.ok("no frequency scaling")
	case governor == "performance":
		return c.ok(governor)
	}

	available := h.Text(dir + "/scaling_available_governors")
	if available != "" && !slices.Contains(strings.Fields(available), "performance") {
		return c.wrong(governor+"; available: "+available,
			"boot a kernel with CONFIG_CPU_FREQ_GOV_PERFORMANCE=y, or with cpufreq.off=1", Kernel)
	}

	return h.wrongSetting(c, fileSetting(dir+"/scaling_governor"), "performance", governor)
}

// maxWake is the longest exit latency of an idle state, µs. A PREEMPT_RT host takes a few times as
// long to wake up a thread.
const maxWake = 10

// checkIdle looks for idle states with a long exit latency. A run with the right to do so holds
// /dev/cpu_dma_latency at 0, which prevents these states.
func (h *host) checkIdle(c Check) Check {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpuidle", h.CPU)
	slow, first := "", -1
	off := c
	for _, state := range h.ReadDir(dir) {
		index, err := strconv.Atoi(strings.TrimPrefix(state, "state"))
		if err != nil {
			continue
		}
		latency, err := strconv.Atoi(h.Text(path.Join(dir, state, "latency")))
		if err != nil || latency <= maxWake || h.Text(path.Join(dir, state, "disable")) == "1" {
			continue
		}
		slow += fmt.Sprintf(", %s %d us", h.Text(path.Join(dir, state, "name")), latency)
		off = h.addChange(off, fileSetting(path.Join(dir, state, "disable")), "1")
		if first < 0 || index < first {
			first = index
		}
	}

	const hold = "dev/cpu_dma_latency"
	switch slow = strings.TrimPrefix(slow, ", "); {
	case h.Exists(hold) && !h.mayWrite(hold):
		c.Level = Must // run refuses, too
		uid, _, _ := strings.Cut(h.Status["Uid"], "\t")
		return c.wrong("no right to write /"+hold, "sudo chown "+uid+" /"+hold+", or start as root", Now)
	case slow == "" && !h.Exists(dir):
		return c.ok("no idle driver")
	case slow == "":
		return c.ok("none slower than " + strconv.Itoa(maxWake) + " us")
	case h.Exists(hold):
		return c.ok(slow + "; disabled during a run")
	}

	command := fmt.Sprintf("for i in /%s/state*; do [ ${i##*state} -lt %d ] || echo 1 | sudo tee $i/disable; done", dir, first)
	return off.wrong(slow, command, Now)
}

// mayWrite reports whether this process may write a file, without opening it.
func (h *host) mayWrite(name string) bool {
	const write = 2 // W_OK
	return syscall.Access(h.Path(name), write) == nil
}

func (h *host) checkSMT(c Check) Check {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d", h.CPU)
	siblings, err := hostinfo.ParseCPUs(h.Text(dir + "/topology/thread_siblings_list"))
	if err != nil {
		return c.unknown("the siblings of the CPU cannot be read: "+err.Error(), "lscpu -e")
	}
	others := slices.DeleteFunc(hostinfo.CommonCPUs(siblings, h.Online), func(cpu int) bool { return cpu == h.CPU })
	if len(others) == 0 {
		return c.ok("the core of the loop is its own")
	}
	found := fmt.Sprintf("CPU %d shares its core with CPU %s", h.CPU, hostinfo.FormatCPUs(others))
	spare := hostinfo.CPUsWithout(others, h.Isolated) // isolated CPUs belong to other loops
	switch {
	case len(spare) == 0:
		return c.wrong(found+", which is isolated, too", "choose another core for the loop: cpu in the bench", Restart)
	case len(hostinfo.CPUsWithout(h.Online, spare)) < 2: // other work needs a CPU
		return c.wrong(found+", and there is no other CPU", "use a host with two cores", Hardware)
	}

	for _, cpu := range spare {
		c = h.addChange(c, fileSetting(fmt.Sprintf("sys/devices/system/cpu/cpu%d/online", cpu)), "0")
	}
	return c.wrong(found, fmt.Sprintf("echo 0 | sudo tee /sys/devices/system/cpu/cpu%d/online", spare[0]), Now)
}
