// Package hostinfo owns what is known of a Linux host and of how it was booted: kernel, CPUs and
// their isolation, hypervisor, container, CAN cards. It reads files below a root, so that a host
// may also be a folder of files.
//
// It does not judge a host (package doctor), and changes nothing. It is a room of its own because
// the doctor, the measurement of latencies and the certificate all read a host, and none of them
// needs another one for that.
//
// Reading order: host.go (Host), cpus.go (lists and masks of CPUs), fingerprint.go (Box,
// Stolen).
package hostinfo

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Host is a tree of /proc, /sys and a little of /etc and /dev, and what they say of the
// kernel and its CPUs.
type Host struct {
	Root string // folder of its files; "/" the running host

	Release       string // of the kernel: "6.1.0-40-rt-amd64"
	Realtime      bool   // PREEMPT_RT
	Hypervisor    string // below this host; empty: none seen
	Container     string // around this process; empty: none seen
	KernelThreads bool   // the kernel's threads can be seen

	CPU       int   // of the loop: the one that was asked for, or the one that a run takes
	Online    []int // CPUs that run; nil: the host does not say
	Isolated  []int // CPUs that the scheduler keeps other work off
	Reachable []int // CPUs this process may move its threads to

	Status map[string]string // lines of /proc/PID/status of this process, by name
}

// Read reads the files of a host below root, "/" for the running one. cpu is the loop's;
// -1: the one that a run takes.
func Read(root string, cpu int) *Host {
	h := &Host{Root: root}
	self := "proc/self/status"
	if h.Live() {
		self = "proc/thread-self/status" // the first thread may have been bound to a CPU meanwhile
	}
	h.Release = h.Text("proc/sys/kernel/osrelease")
	h.Status = ParseFields(h.Text(self))
	// The file is in the PREEMPT_RT patches alone; mainline, which can be built
	// with PREEMPT_RT since 6.12, says so in its version.
	h.Realtime = h.Text("sys/kernel/realtime") == "1" ||
		strings.Contains(h.Text("proc/version"), "PREEMPT_RT") || strings.Contains(h.Text("proc/version"), "PREEMPT RT")
	h.Hypervisor = h.findHypervisor()
	h.KernelThreads = h.Text("proc/2/comm") == "kthreadd"
	h.Container = h.findContainer()
	h.Online, _ = ParseCPUs(h.Text("sys/devices/system/cpu/online"))
	h.Reachable = h.cpuset()
	h.Isolated = h.findIsolated()
	h.CPU = h.choose(cpu)
	return h
}

// Live reports whether this is the host that runs this process.
func (h *Host) Live() bool { return filepath.Clean(h.Root) == "/" }

// Path is where a file of the host is.
func (h *Host) Path(name string) string { return filepath.Join(h.Root, filepath.FromSlash(name)) }

// ReadFile returns the text of a file below the root, without the space around it.
func (h *Host) ReadFile(name string) (string, error) {
	text, err := os.ReadFile(h.Path(name))
	return strings.TrimSpace(string(text)), err
}

// Text is ReadFile where a file that cannot be read counts as empty.
func (h *Host) Text(name string) string {
	text, _ := h.ReadFile(name)
	return text
}

// Exists reports whether a file or a folder is there.
func (h *Host) Exists(name string) bool {
	_, err := os.Stat(h.Path(name))
	return err == nil
}

// ReadDir lists the names in a folder; nil where there is none.
func (h *Host) ReadDir(name string) []string {
	entries, _ := os.ReadDir(h.Path(name))
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// cpuset returns the CPUs of the control group of this process: its threads may
// be moved to these. The affinity it was started with is narrower (isolcpus=
// takes the isolated CPUs out of it), and no bound.
func (h *Host) cpuset() []int {
	for line := range strings.Lines(h.Text("proc/self/cgroup")) {
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
			if list, err := ParseCPUs(h.Text(path.Join(dir, group, file))); err == nil && len(list) > 0 {
				return list
			}
			if group == "/" {
				break
			}
		}
	}
	return h.Online
}

// findIsolated returns the CPUs of isolcpus=domain and of isolated partitions.
func (h *Host) findIsolated() []int {
	list, _ := ParseCPUs(h.Text("sys/devices/system/cpu/isolated"))
	more, _ := ParseCPUs(h.Text("sys/fs/cgroup/cpuset.cpus.isolated"))
	for _, p := range h.Partitions() {
		if p.State == "isolated" {
			more = append(more, p.CPUs...)
		}
	}
	list = append(list, more...)
	slices.Sort(list)
	return slices.Compact(list)
}

// Partition is a control group that has asked for CPUs of its own.
type Partition struct {
	Group string // below the root of the control groups
	State string // "isolated", "root", or either with " invalid (reason)"
	CPUs  []int
}

// Partitions finds the partitions of control groups v2 below a group, three
// levels deep: a partition sits below the root or below another one.
func (h *Host) Partitions() []Partition { return h.partitionsOf("", 3) }

func (h *Host) partitionsOf(group string, depth int) (list []Partition) {
	const top = "sys/fs/cgroup"
	entries, _ := os.ReadDir(h.Path(path.Join(top, group)))
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		p := Partition{Group: path.Join(group, e.Name())}
		p.State = h.Text(path.Join(top, p.Group, "cpuset.cpus.partition"))
		if p.State != "" && p.State != "member" {
			p.CPUs, _ = ParseCPUs(h.Text(path.Join(top, p.Group, "cpuset.cpus")))
			list = append(list, p)
		}
		if depth > 1 {
			list = append(list, h.partitionsOf(p.Group, depth-1)...)
		}
	}
	return list
}

// choose returns the CPU of the loop as sched.Thread.Choose does on a host where no other
// bench runs: the one asked for (>= 0), the highest isolated one, the highest of those the
// process starts with.
func (h *Host) choose(asked int) int {
	if asked >= 0 {
		return asked
	}
	isolated, _ := ParseCPUs(h.Text("sys/devices/system/cpu/isolated"))
	allowed, _ := ParseCPUs(h.Status["Cpus_allowed_list"])
	for _, list := range [][]int{CommonCPUs(CommonCPUs(isolated, h.Reachable), h.Online), allowed, h.Online} {
		if len(list) > 0 {
			return slices.Max(list)
		}
	}
	return 0
}

// Siblings are the online CPUs on the core of the loop's, that one included.
func (h *Host) Siblings() []int {
	list, _ := ParseCPUs(h.Text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", h.CPU)))
	return CommonCPUs(list, h.Online)
}

// findHypervisor names what this host is a guest of; empty: nothing says so.
func (h *Host) findHypervisor() string {
	dmi := h.Text("sys/class/dmi/id/sys_vendor") + " " + h.Text("sys/class/dmi/id/product_name")
	name := ""
	for _, known := range []string{"KVM", "QEMU", "VMware", "VirtualBox", "Xen", "Parallels", "Bochs", "Firecracker", "OpenStack", "Google Compute Engine", "Amazon EC2"} {
		if name == "" && strings.Contains(dmi, known) {
			name = known
		}
	}
	if strings.Contains(dmi, "Microsoft Corporation Virtual Machine") {
		name = "Hyper-V"
	}
	flagged := slices.Contains(strings.Fields(ParseFields(h.Text("proc/cpuinfo"))["flags"]), "hypervisor")
	switch xen := h.Text("sys/hypervisor/type"); {
	case xen != "":
		return xen
	case h.Exists("proc/device-tree/hypervisor"):
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
func (h *Host) findContainer() string {
	if name := h.Text("run/systemd/container"); name != "" {
		return name
	}
	switch groups := h.Text("proc/self/cgroup"); {
	case h.Exists(".dockerenv") && !h.KernelThreads:
		return "docker"
	case h.Exists("run/.containerenv") && !h.KernelThreads:
		return "podman"
	case strings.Contains(groups, "kubepods"):
		return "kubernetes"
	case strings.Contains(groups, "/docker"):
		return "docker"
	case strings.Contains(groups, "/lxc"):
		return "lxc"
	}
	for variable := range strings.SplitSeq(h.Text("proc/1/environ"), "\x00") {
		if name, found := strings.CutPrefix(variable, "container="); found && name != "" {
			return name
		}
	}
	return ""
}

// KernelAtLeast reports whether the kernel is at least of a version.
func (h *Host) KernelAtLeast(major, minor int) bool {
	var first, second int
	if _, err := fmt.Sscanf(h.Release, "%d.%d", &first, &second); err != nil {
		return false
	}
	return first > major || first == major && second >= minor
}

// ParseFields reads lines "Name: value", as /proc/PID/status and /proc/cpuinfo have
// them; of a repeated name the last counts.
func ParseFields(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		values[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return values
}

// TypeCAN is the type of a CAN interface in sysfs: ARPHRD_CAN of linux/if_arp.h.
const TypeCAN = "280"

// CANInterfaces lists the interfaces of type CAN.
func (h *Host) CANInterfaces() []string {
	return slices.DeleteFunc(h.ReadDir("sys/class/net"), func(name string) bool {
		return h.Text("sys/class/net/"+name+"/type") != TypeCAN
	})
}
