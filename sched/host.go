package sched

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// HoldLatency keeps the host's CPUs from sleep states that take time to wake up
// from: /dev/cpu_dma_latency at 0 us, until the file is closed. Keep the file: it
// is closed when it is no longer referred to. Where the host has no such device,
// nothing is held and nothing is missing.
func HoldLatency() (*os.File, *Missing) { return holdLatency("/") }

func holdLatency(root string) (*os.File, *Missing) {
	path := filepath.Join(root, "dev/cpu_dma_latency")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err == nil {
		if _, err = f.Write(make([]byte, 4)); err == nil { // an int32 of us
			return f, nil
		}
		f.Close()
	}
	m := &Missing{
		What: "CPUs may enter deep sleep states: " + err.Error(),
		Help: "DeviceAllow=/dev/cpu_dma_latency rw in the unit file",
	}
	if uid := os.Geteuid(); uid != 0 {
		m.Help = fmt.Sprintf("sudo chown %d /dev/cpu_dma_latency (again after each boot), or start as root", uid)
	}
	return nil, m
}

// RaiseTimers gives the kernel thread in which the timers of a CPU expire on
// PREEMPT_RT SCHED_FIFO of the given priority, 1 to 99, if it has less: the
// loop's priority + 1, so that no real-time thread of that CPU delays a timerfd;
// clock_nanosleep of a real-time thread does not need it. was is what it had, for
// LowerTimers; nil: nothing was changed. On other kernels timers expire in the
// interrupt itself and there is nothing to do.
func RaiseTimers(cpu, priority int) (was *unix.SchedAttr, m *Missing) {
	return raiseTimers("/", cpu, priority)
}

// LowerTimers gives that thread back what it had.
func LowerTimers(cpu int, was *unix.SchedAttr) { lowerTimers("/", cpu, was) }

func lowerTimers(root string, cpu int, was *unix.SchedAttr) {
	if was == nil {
		return
	}
	if pid := kernelThread(root, fmt.Sprintf("ktimers/%d", cpu)); pid != 0 {
		_ = unix.SchedSetAttr(pid, was, 0) // who could raise it can do this
	}
}

func raiseTimers(root string, cpu, priority int) (was *unix.SchedAttr, m *Missing) {
	if !realtime(root) {
		return nil, nil
	}
	name := fmt.Sprintf("ktimers/%d", cpu)
	pid := kernelThread(root, name)
	if pid == 0 {
		return nil, missingTimers(root, cpu, priority)
	}
	old, err := unix.SchedGetAttr(pid, 0)
	if err == nil && realtimePriority(old) >= priority {
		return nil, nil
	}
	if err == nil {
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: uint32(priority)}
		if err = unix.SchedSetAttr(pid, &attr, 0); err == nil {
			return old, nil
		}
	}
	return nil, &Missing{
		What: fmt.Sprintf("timers of CPU %d expire in %s below SCHED_FIFO %d: %v", cpu, name, priority, err),
		Help: fmt.Sprintf("sudo chrt -f -p %d %d, or `timer: %s` in the bench", priority, pid, Nanosleep),
	}
}

// realtimePriority returns the real-time priority of a, 100 for SCHED_DEADLINE, 0 for none.
func realtimePriority(a *unix.SchedAttr) int {
	switch a.Policy {
	case unix.SCHED_FIFO, unix.SCHED_RR:
		return int(a.Priority)
	case unix.SCHED_DEADLINE:
		return 100
	}
	return 0
}

// missingTimers says what to do on a PREEMPT_RT kernel whose timers have no
// thread of their own, or where it is hidden from the process.
func missingTimers(root string, cpu, priority int) *Missing {
	m := &Missing{
		What: fmt.Sprintf("timers of CPU %d expire in a thread of the kernel that is not to be seen: no ktimers/%d in /proc", cpu, cpu),
		Help: fmt.Sprintf("on the host: sudo chrt -f -p %d $(pgrep -x ktimers/%d), or `timer: %s` in the bench", priority, cpu, Nanosleep),
	}
	if pid := kernelThread(root, fmt.Sprintf("ksoftirqd/%d", cpu)); pid != 0 {
		m.What = fmt.Sprintf("timers of CPU %d expire in ksoftirqd/%d: this kernel has no ktimers/%d, a thread for them alone", cpu, cpu, cpu)
		m.Help = fmt.Sprintf("`timer: %s` in the bench, or raise it with all other soft interrupts of that CPU: sudo chrt -f -p %d %d", Nanosleep, priority, pid)
	}
	return m
}

// kernelThread returns the id of the kernel's own thread of that name, 0 if there
// is none.
func kernelThread(root, name string) int {
	paths, _ := filepath.Glob(filepath.Join(root, "proc/[0-9]*/comm"))
	for _, path := range paths {
		if text, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(text)) != name {
			continue
		}
		dir := filepath.Dir(path)
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		// "17 (ktimers/0) S 2 ...": the parent of all of them is kthreadd, 2.
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && len(after) > 1 && after[1] == "2" {
			return pid
		}
	}
	return 0
}

// realtime tells whether the kernel is PREEMPT_RT: by the file of the RT patches, or
// by the version that a kernel since 6.12, which has RT without them, gives itself.
func realtime(root string) bool {
	text, err := os.ReadFile(filepath.Join(root, "sys/kernel/realtime"))
	version, _ := os.ReadFile(filepath.Join(root, "proc/version"))
	return err == nil && strings.TrimSpace(string(text)) == "1" || slices.Contains(strings.Fields(string(version)), "PREEMPT_RT")
}
