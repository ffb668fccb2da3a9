package deploy

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// SysHost is a tree of /proc, /sys and a little of /etc and /dev, and what they say of the
// kernel and its CPUs.
type SysHost struct {
	root string

	release    string // of the kernel: "6.1.0-40-rt-amd64"
	realtime   bool   // PREEMPT_RT
	hypervisor string // below this host; empty: none seen
	container  string // around this process; empty: none seen
	kthreads   bool   // the kernel's threads can be seen

	cpu       int   // of the loop
	online    []int // CPUs
	isolated  []int // CPUs that the scheduler keeps other work off
	reachable []int // CPUs this process may move its threads to

	status map[string]string // of this process
}

// ReadHost reads the files of a host below root, "/" for the running one. cpu is the loop's;
// -1: the one that a run takes.
func ReadHost(root string, cpu int) *SysHost {
	h := &SysHost{root: root}
	self := "proc/self/status"
	if h.live() {
		self = "proc/thread-self/status" // the first thread may have been bound to a CPU meanwhile
	}
	h.release = h.text("proc/sys/kernel/osrelease")
	h.status = fields(h.text(self))
	// The file is in the PREEMPT_RT patches alone; mainline, which can be built
	// with PREEMPT_RT since 6.12, says so in its version.
	h.realtime = h.text("sys/kernel/realtime") == "1" ||
		strings.Contains(h.text("proc/version"), "PREEMPT_RT") || strings.Contains(h.text("proc/version"), "PREEMPT RT")
	h.hypervisor = h.findHypervisor()
	h.kthreads = h.text("proc/2/comm") == "kthreadd"
	h.container = h.findContainer()
	h.online, _ = parseCPUs(h.text("sys/devices/system/cpu/online"))
	h.reachable = h.cpuset()
	h.isolated = h.findIsolated()
	h.cpu = h.choose(cpu)
	return h
}

// live reports whether this is the host that runs this process.
func (h *SysHost) live() bool { return filepath.Clean(h.root) == "/" }

func (h *SysHost) path(name string) string { return filepath.Join(h.root, filepath.FromSlash(name)) }

// read returns the text of a file below the root, without the space around it.
func (h *SysHost) read(name string) (string, error) {
	text, err := os.ReadFile(h.path(name))
	return strings.TrimSpace(string(text)), err
}

// text is read for what counts as empty where it cannot be read.
func (h *SysHost) text(name string) string {
	text, _ := h.read(name)
	return text
}

func (h *SysHost) exists(name string) bool {
	_, err := os.Stat(h.path(name))
	return err == nil
}

// names lists a directory; nil where there is none.
func (h *SysHost) names(name string) []string {
	entries, _ := os.ReadDir(h.path(name))
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// cpuset returns the CPUs of the control group of this process: its threads may
// be moved to these. The affinity it was started with is narrower (isolcpus=
// takes the isolated CPUs out of it), and no bound.
func (h *SysHost) cpuset() []int {
	for line := range strings.Lines(h.text("proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 {
			continue
		}
		dir, file := "sys/fs/cgroup", "cpuset.cpus.effective"
		if slices.Contains(strings.Split(part[1], ","), "cpuset") {
			dir, file = "sys/fs/cgroup/cpuset", "cpuset.effective_cpus"
		} else if part[1] != "" {
			continue
		}
		// A group without the controller has the CPUs of the one above it.
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			if list, err := parseCPUs(h.text(path.Join(dir, group, file))); err == nil && len(list) > 0 {
				return list
			}
			if group == "/" {
				break
			}
		}
	}
	return h.online
}

// findIsolated returns the CPUs of isolcpus=domain and of isolated partitions.
func (h *SysHost) findIsolated() []int {
	list, _ := parseCPUs(h.text("sys/devices/system/cpu/isolated"))
	more, _ := parseCPUs(h.text("sys/fs/cgroup/cpuset.cpus.isolated"))
	for _, p := range h.partitions() {
		if p.state == "isolated" {
			more = append(more, p.cpus...)
		}
	}
	list = append(list, more...)
	slices.Sort(list)
	return slices.Compact(list)
}

// partition is a control group that has asked for CPUs of its own.
type partition struct {
	group string // below the root of the control groups
	state string // "isolated", "root", or either with " invalid (reason)"
	cpus  []int
}

// partitions finds the partitions of control groups v2 below a group, three
// levels deep: a partition sits below the root or below another one.
func (h *SysHost) partitions() []partition { return h.partitionsOf("", 3) }

func (h *SysHost) partitionsOf(group string, depth int) (list []partition) {
	const top = "sys/fs/cgroup"
	entries, _ := os.ReadDir(h.path(path.Join(top, group)))
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		p := partition{group: path.Join(group, e.Name())}
		p.state = h.text(path.Join(top, p.group, "cpuset.cpus.partition"))
		if p.state != "" && p.state != "member" {
			p.cpus, _ = parseCPUs(h.text(path.Join(top, p.group, "cpuset.cpus")))
			list = append(list, p)
		}
		if depth > 1 {
			list = append(list, h.partitionsOf(p.group, depth-1)...)
		}
	}
	return list
}

// choose returns the CPU of the loop as sched.Thread.Choose does on a host where no other
// bench runs: the one asked for (>= 0), the highest isolated one, the highest of those the
// process starts with.
func (h *SysHost) choose(asked int) int {
	if asked >= 0 {
		return asked
	}
	isolated, _ := parseCPUs(h.text("sys/devices/system/cpu/isolated"))
	allowed, _ := parseCPUs(h.status["Cpus_allowed_list"])
	for _, list := range [][]int{both(both(isolated, h.reachable), h.online), allowed, h.online} {
		if len(list) > 0 {
			return slices.Max(list)
		}
	}
	return 0
}

// siblings are the online CPUs on the core of the loop's, that one included.
func (h *SysHost) siblings() []int {
	list, _ := parseCPUs(h.text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", h.cpu)))
	return both(list, h.online)
}

// findHypervisor names what this host is a guest of; empty: nothing says so.
func (h *SysHost) findHypervisor() string {
	dmi := h.text("sys/class/dmi/id/sys_vendor") + " " + h.text("sys/class/dmi/id/product_name")
	name := ""
	for _, known := range []string{"KVM", "QEMU", "VMware", "VirtualBox", "Xen", "Parallels", "Bochs", "Firecracker", "OpenStack", "Google Compute Engine", "Amazon EC2"} {
		if name == "" && strings.Contains(dmi, known) {
			name = known
		}
	}
	if strings.Contains(dmi, "Microsoft Corporation Virtual Machine") {
		name = "Hyper-V"
	}
	flagged := slices.Contains(strings.Fields(fields(h.text("proc/cpuinfo"))["flags"]), "hypervisor")
	switch xen := h.text("sys/hypervisor/type"); {
	case xen != "":
		return xen
	case h.exists("proc/device-tree/hypervisor"):
		return "a hypervisor of the device tree"
	case flagged && name == "":
		return "a hypervisor that does not say its name"
	case flagged, name != "" && name != "Amazon EC2" && name != "OpenStack": // these two rent out whole machines, too
		return name
	}
	return ""
}

// findContainer names what this process is inside of; empty: nothing says so. The
// files that mark an image are in machines made from one, too: there the
// kernel's threads can be seen.
func (h *SysHost) findContainer() string {
	if name := h.text("run/systemd/container"); name != "" {
		return name
	}
	switch groups := h.text("proc/self/cgroup"); {
	case h.exists(".dockerenv") && !h.kthreads:
		return "docker"
	case h.exists("run/.containerenv") && !h.kthreads:
		return "podman"
	case strings.Contains(groups, "kubepods"):
		return "kubernetes"
	case strings.Contains(groups, "/docker"):
		return "docker"
	case strings.Contains(groups, "/lxc"):
		return "lxc"
	}
	for variable := range strings.SplitSeq(h.text("proc/1/environ"), "\x00") {
		if name, found := strings.CutPrefix(variable, "container="); found && name != "" {
			return name
		}
	}
	return ""
}

// atLeast reports whether the kernel is at least of a version.
func (h *SysHost) atLeast(major, minor int) bool {
	var first, second int
	if _, err := fmt.Sscanf(h.release, "%d.%d", &first, &second); err != nil {
		return false
	}
	return first > major || first == major && second >= minor
}

// fields reads lines "Name: value", as /proc/PID/status and /proc/cpuinfo have
// them; of a repeated name the last counts.
func fields(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		values[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return values
}

// typeCAN is ARPHRD_CAN of linux/if_arp.h.
const typeCAN = "280"

// canInterfaces lists the interfaces of type CAN.
func (h *SysHost) canInterfaces() []string {
	return slices.DeleteFunc(h.names("sys/class/net"), func(name string) bool {
		return h.text("sys/class/net/"+name+"/type") != typeCAN
	})
}
