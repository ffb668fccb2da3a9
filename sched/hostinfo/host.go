// Package hostinfo owns the properties read from a Linux host: kernel, CPUs and their isolation,
// hypervisor, container, CAN cards. It reads files below a root, so a host may also be a folder of
// files.
//
// It changes nothing and does not judge a host (package doctor). The loop's thread, the doctor, the latency
// measurement and the certificate use this package independently of each other.
//
// Reading order: files.go (Files, below a root), host.go (Host), thread.go (Thread), cpus.go (lists
// and masks of CPUs), tracing.go (Tracing), fingerprint.go (Machine, StolenTicks).
package hostinfo

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// Host is a tree of /proc, /sys and a little of /etc and /dev, with the properties read from it.
type Host struct {
	Files

	Release       string // kernel release: "6.1.0-40-rt-amd64"
	Realtime      bool   // PREEMPT_RT
	Hypervisor    string // hypervisor that runs this host; "" if none is known
	Container     string // container of this process; "" if none is known
	KernelThreads bool   // true if kernel threads are visible

	CPU       int   // CPU of the loop: the requested one, or the one that a run would take
	Online    []int // online CPUs; nil if unknown
	Isolated  []int // CPUs that the scheduler keeps free of other work
	Reachable []int // CPUs to which this process may move its threads

	Status map[string]string // lines of /proc/PID/status of this process, by name
}

// Read reads the files of a host below root, "/" for the running one. cpu is the CPU of the loop; -1
// stands for the CPU that a run would take.
func Read(root string, cpu int) *Host {
	h := &Host{Files: Files(root)}
	self := "proc/self/status"
	if h.Live() {
		self = "proc/thread-self/status" // the first thread may have been bound to a CPU meanwhile
	}
	h.Release = h.Text("proc/sys/kernel/osrelease")
	h.Status = h.Fields(self)
	h.Realtime = h.PreemptRT()
	h.Hypervisor = h.findHypervisor()
	h.KernelThreads = h.Text("proc/2/comm") == "kthreadd"
	h.Container = h.findContainer()
	h.Online = h.CPUs("online")
	h.Reachable = h.cpuset()
	h.Isolated = h.findIsolated()
	h.CPU = h.chooseCPU(cpu)
	return h
}

// cpuset returns the CPUs of this process's control group: its threads may be moved to these. The
// affinity at start is narrower, since isolcpus= removes the isolated CPUs, and is no limit.
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

		// A group without the controller has the CPUs of its parent.
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
	list := h.CPUs("isolated")
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

// Partition is a control group with exclusive CPUs.
type Partition struct {
	Group string // path below the root of the control groups
	State string // "isolated", "root", or either with " invalid (reason)"
	CPUs  []int
}

// Partitions finds the partitions of control groups v2, three levels deep: a partition's parent is
// the root or another partition.
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

// chooseCPU returns the CPU of the loop, as sched.Thread.ChooseCPU does on a host without other
// benches: the requested one (>= 0), else the highest isolated one, else the highest in the
// affinity of the process at start.
func (h *Host) chooseCPU(requested int) int {
	if requested >= 0 {
		return requested
	}
	isolated := h.CPUs("isolated")
	allowed, _ := ParseCPUs(h.Status["Cpus_allowed_list"])
	for _, list := range [][]int{CommonCPUs(CommonCPUs(isolated, h.Reachable), h.Online), allowed, h.Online} {
		if len(list) > 0 {
			return slices.Max(list)
		}
	}

	return 0
}

// Siblings returns the online CPUs on the same core as the loop's, including the loop's.
func (h *Host) Siblings() []int {
	list, _ := ParseCPUs(h.Text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", h.CPU)))
	return CommonCPUs(list, h.Online)
}

// findHypervisor returns the name of the hypervisor that runs this host; "" if none is known.
func (h *Host) findHypervisor() string {
	dmi := h.Text("sys/class/dmi/id/sys_vendor") + " " + h.Text("sys/class/dmi/id/product_name")
	name := ""
	for _, known := range []string{
		"KVM", "QEMU", "VMware", "VirtualBox", "Xen", "Parallels", "Bochs", "Firecracker", "OpenStack",
		"Google Compute Engine", "Amazon EC2",
	} {
		if name == "" && strings.Contains(dmi, known) {
			name = known
		}
	}

	if strings.Contains(dmi, "Microsoft Corporation Virtual Machine") {
		name = "Hyper-V"
	}
	flagged := slices.Contains(strings.Fields(h.Fields("proc/cpuinfo")["flags"]), "hypervisor")
	switch xen := h.Text("sys/hypervisor/type"); {
	case xen != "":
		return xen
	case h.Exists("proc/device-tree/hypervisor"):
		return "a hypervisor of the device tree"
	case flagged && name == "":
		return "a hypervisor that does not say its name"
	case flagged, name != "" && name != "Amazon EC2" && name != "OpenStack": // these two also run physical machines
		return name
	}

	return ""
}

// findContainer returns the name of this process's container; "" if none is known. The marker files
// of a container image also exist in machines made from it, but there kernel threads are visible.
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

// KernelAtLeast reports whether the kernel has at least this version.
func (h *Host) KernelAtLeast(major, minor int) bool {
	var first, second int
	if _, err := fmt.Sscanf(h.Release, "%d.%d", &first, &second); err != nil {
		return false
	}
	return first > major || first == major && second >= minor
}

// TypeCAN is the type of a CAN interface in sysfs: ARPHRD_CAN of linux/if_arp.h.
const TypeCAN = "280"

// CANInterfaces lists the interfaces of type CAN.
func (h *Host) CANInterfaces() []string {
	return slices.DeleteFunc(h.ReadDir("sys/class/net"), func(name string) bool {
		return h.Text("sys/class/net/"+name+"/type") != TypeCAN
	})
}
