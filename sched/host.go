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
		Of:   ResourceLatency,
		What: "CPUs may enter deep sleep states: " + err.Error(),
		Help: "DeviceAllow=/dev/cpu_dma_latency rw in the unit file",
	}
	if uid := os.Geteuid(); uid != 0 {
		m.Help = fmt.Sprintf("sudo chown %d /dev/cpu_dma_latency (again after each boot), or start as root", uid)
	}
	return nil, m
}

// Timers are those of a CPU of the host below Root, "/" for the running one. On PREEMPT_RT
// they expire in a thread of the kernel, ktimers/N; on other kernels in the interrupt itself,
// and there is nothing to raise.
type Timers struct {
	Root string
	CPU  int
}

// Raised is what Raise has done to that thread.
type Raised struct {
	Was      *unix.SchedAttr // what it had
	Priority int             // SCHED_FIFO, that it was given
}

// Raise gives the thread SCHED_FIFO of the given priority, 1 to 99, if it has less: the
// loop's priority + 1, so that no real-time thread of that CPU delays a timerfd;
// clock_nanosleep of a real-time thread does not need it. Before it does, note is told,
// where it is not nil. r is for Lower; nil: nothing was changed.
func (t Timers) Raise(priority int, note func(*Raised)) (r *Raised, m *Missing) {
	pid, old, m := t.look(priority)
	if m != nil || pid == 0 || realtimePriority(old) >= priority {
		return nil, m
	}
	r = &Raised{old, priority}
	if note != nil {
		note(r)
	}
	attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: uint32(priority)}
	if err := unix.SchedSetAttr(pid, &attr, 0); err != nil {
		return nil, t.refused(pid, priority, err)
	}
	return r, nil
}

// Probe says what stands in the way of Raise, and changes nothing.
func (t Timers) Probe(priority int) *Missing {
	pid, old, m := t.look(priority)
	if m != nil || pid == 0 || realtimePriority(old) >= priority {
		return m
	}
	err := unix.SchedSetAttr(pid, old, 0) // a filter of system calls may refuse what the rights grant
	limit := readLimits(filepath.Join(t.Root, "proc/self/limits"))["Max realtime priority"]
	if err == nil && !capable(unix.CAP_SYS_NICE) && limit < uint64(priority) {
		err = unix.EPERM
	}
	if err != nil {
		return t.refused(pid, priority, err)
	}
	return nil
}

// Lower gives the thread back what it had, unless somebody else has changed it since.
func (t Timers) Lower(r *Raised) {
	if r == nil {
		return
	}
	if pid := t.Thread(); pid != 0 {
		now, err := unix.SchedGetAttr(pid, 0)
		if err == nil && now.Policy == unix.SCHED_FIFO && int(now.Priority) == r.Priority {
			_ = unix.SchedSetAttr(pid, r.Was, 0) // who could raise it can do this
		}
	}
}

// Thread is the id of the thread; 0: there is none, or it cannot be seen.
func (t Timers) Thread() int {
	if !realtime(t.Root) {
		return 0
	}
	return kernelThread(t.Root, fmt.Sprintf("ktimers/%d", t.CPU))
}

// look finds the thread, and what it has; pid is 0 where there is nothing to raise.
func (t Timers) look(priority int) (pid int, has *unix.SchedAttr, m *Missing) {
	if !realtime(t.Root) {
		return 0, nil, nil
	}
	if pid = t.Thread(); pid == 0 {
		return 0, nil, missingTimers(t.Root, t.CPU, priority)
	}
	has, err := unix.SchedGetAttr(pid, 0)
	if err != nil {
		return 0, nil, t.refused(pid, priority, err)
	}
	return pid, has, nil
}

func (t Timers) refused(pid, priority int, err error) *Missing {
	return &Missing{
		Of:   ResourceTimers,
		What: fmt.Sprintf("timers of CPU %d expire in ktimers/%d below SCHED_FIFO %d: %v", t.CPU, t.CPU, priority, err),
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
		Of:   ResourceTimers,
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
