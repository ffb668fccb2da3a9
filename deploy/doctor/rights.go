package doctor

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Bits of /proc/PID/status CapEff, capabilities(7).
const (
	capIPCLock = 14
	capSysNice = 23
)

// capable reports whether this process has a capability; known is false if its status cannot be
// read.
func (h *host) capable(bit int) (has, known bool) {
	caps, err := strconv.ParseUint(h.Status["CapEff"], 16, 64)
	return err == nil && caps&(1<<bit) != 0, err == nil
}

// grant returns the command that gives this program the rights.
func (h *host) grant() string {
	switch h.Container {
	case "":
		return "sudo setcap cap_sys_nice,cap_ipc_lock=ep " + hostinfo.Executable() + " (again after each build)"
	case "docker", "podman":
		return h.Container + " run --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=99 --ulimit memlock=-1 ..."
	}

	return "give the container CAP_SYS_NICE and CAP_IPC_LOCK, RLIMIT_RTPRIO 99 and RLIMIT_MEMLOCK unlimited"
}

func (h *host) checkPriority(c Check) Check {
	if group := h.starvedGroup(); group != "" {
		share := fileSetting(path.Join("sys/fs/cgroup/cpu", group, "cpu.rt_runtime_us"))
		return h.wrongSetting(c, share, "950000", "the control group "+group+" has no real-time share")
	}

	nice, known := h.capable(capSysNice)
	limit, limited := h.limits["Max realtime priority"]
	switch {
	case nice:
		return c.ok("cap_sys_nice")
	case limited && limit >= uint64(h.req.Priority):
		return c.ok(fmt.Sprintf("rtprio limit %s", limitText(limit)))
	case !known || !limited:
		return c.unreadable("the rights of this process cannot be read")
	}

	return c.wrong(fmt.Sprintf("no cap_sys_nice, rtprio limit %d", limit), h.grant(), Restart)
}

func limitText(limit uint64) string {
	if limit == math.MaxUint64 {
		return "unlimited"
	}
	return strconv.FormatUint(limit, 10)
}

// starvedGroup returns the control group of this process if its real-time share is 0; otherwise "".
// Only control groups of version 1 have such a share.
func (h *host) starvedGroup() string {
	for line := range strings.Lines(h.Text("proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 || !slices.Contains(strings.Split(part[1], ","), "cpu") {
			continue
		}
		group := path.Clean("/" + part[2])
		if h.Text(path.Join("sys/fs/cgroup/cpu", group, "cpu.rt_runtime_us")) == "0" {
			return group
		}
	}

	return ""
}

func (h *host) checkMemlock(c Check) Check {
	lock, known := h.capable(capIPCLock)
	limit, limited := h.limits["Max locked memory"]
	switch {
	case lock:
		return c.ok("cap_ipc_lock")
	case limited && limit == math.MaxUint64:
		return c.ok("memlock limit unlimited")
	case limited && limit >= sched.LockedMemory:
		return c.ok(fmt.Sprintf("memlock limit %d MB", limit>>20))
	case !known || !limited:
		return c.unreadable("the rights of this process cannot be read")
	}

	return c.wrong(fmt.Sprintf("no cap_ipc_lock, memlock limit %d kB", limit>>10), h.grant(), Restart)
}

func (h *host) checkCapabilities(c Check) Check {
	nice, known := h.capable(capSysNice)
	lock, _ := h.capable(capIPCLock)
	switch {
	case !known:
		return c.unreadable("the rights of this process cannot be read")
	case nice && lock:
		return c.ok(c.Wanted)
	case nice:
		return c.wrong("cap_sys_nice alone", h.grant(), Restart)
	case lock:
		return c.wrong("cap_ipc_lock alone", h.grant(), Restart)
	}

	return c.wrong("neither", h.grant(), Restart)
}
