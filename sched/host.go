package sched

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
)

// HoldLatency keeps the CPUs of the host out of slow sleep states until the returned file is
// closed: it writes 0 us to /dev/cpu_dma_latency. Keep a reference: an unreferenced file is closed.
// On a host without this device it returns nil, nil.
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

// Timers are the kernel timers of a CPU on the host below Root, "/" for the running one. On
// PREEMPT_RT they expire in a kernel thread, ktimers/N; on other kernels they expire in the
// interrupt, and there is no priority to raise.
type Timers struct {
	Root string
	CPU  int
}

// Raised is a change made by Raise.
type Raised struct {
	Was      *unix.SchedAttr // attributes before the change
	Priority int             // SCHED_FIFO priority that was set
}

// TimerPriority returns the priority of threads that must precede a loop of a priority.
func TimerPriority(loop int) int { return min(loop+1, 99) }

// Raise gives the thread SCHED_FIFO of the given priority, 1 to 99, if it has less. Use
// TimerPriority, so that no real-time thread of that CPU delays a timerfd; clock_nanosleep of a
// real-time thread does not need it. Raise calls note, if not nil, before the change. Pass r to
// Restore; nil: nothing was changed.
func (t Timers) Raise(priority int, note func(*Raised)) (r *Raised, m *Missing) {
	pid, old, m := t.findThread(priority)
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

// Probe returns what would prevent Raise, and changes nothing.
func (t Timers) Probe(priority int) *Missing {
	pid, old, m := t.findThread(priority)
	if m != nil || pid == 0 || realtimePriority(old) >= priority {
		return m
	}
	err := unix.SchedSetAttr(pid, old, 0) // a system call filter may refuse what the rights grant
	limit := hostinfo.Files(t.Root).Limits()["Max realtime priority"]
	if err == nil && !Capable(unix.CAP_SYS_NICE) && limit < uint64(priority) {
		err = unix.EPERM
	}
	if err != nil {
		return t.refused(pid, priority, err)
	}
	return nil
}

// Restore gives the thread its former attributes, unless another process has changed them since.
// It fails only without the right to raise.
func (t Timers) Restore(r *Raised) error {
	pid := t.Thread()
	if r == nil || pid == 0 {
		return nil
	}
	now, err := unix.SchedGetAttr(pid, 0)
	if err != nil || now.Policy != unix.SCHED_FIFO || int(now.Priority) != r.Priority {
		return nil
	}
	if err := unix.SchedSetAttr(pid, r.Was, 0); err != nil {
		return fmt.Errorf("sched: ktimers/%d: %w", t.CPU, os.NewSyscallError("sched_setattr", err))
	}
	return nil
}

// Thread returns the id of the thread; 0: there is none, or it is hidden.
func (t Timers) Thread() int {
	if !hostinfo.Files(t.Root).PreemptRT() {
		return 0
	}
	return hostinfo.Files(t.Root).KernelThread(fmt.Sprintf("ktimers/%d", t.CPU))
}

// findThread finds the thread and its attributes; pid is 0 if there is nothing to raise.
func (t Timers) findThread(priority int) (pid int, has *unix.SchedAttr, m *Missing) {
	if !hostinfo.Files(t.Root).PreemptRT() {
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

// realtimePriority returns the real-time priority of a: 100 for SCHED_DEADLINE, 0 for an ordinary
// policy.
func realtimePriority(a *unix.SchedAttr) int {
	switch a.Policy {
	case unix.SCHED_FIFO, unix.SCHED_RR:
		return int(a.Priority)
	case unix.SCHED_DEADLINE:
		return 100
	}

	return 0
}

// missingTimers returns the remedy on a PREEMPT_RT kernel whose timers have no thread of their own,
// or whose thread is hidden from the process.
func missingTimers(root string, cpu, priority int) *Missing {
	m := &Missing{
		Of: ResourceTimers,
		What: fmt.Sprintf("timers of CPU %[1]d expire in a kernel thread that this process does not see: "+
			"no ktimers/%[1]d in /proc", cpu),
		Help: fmt.Sprintf("on the host: sudo chrt -f -p %d $(pgrep -x ktimers/%d), or `timer: %s` in the bench",
			priority, cpu, Nanosleep),
	}
	if pid := hostinfo.Files(root).KernelThread(fmt.Sprintf("ksoftirqd/%d", cpu)); pid != 0 {
		m.What = fmt.Sprintf("timers of CPU %[1]d expire in ksoftirqd/%[1]d: "+
			"this kernel has no ktimers/%[1]d, a thread for them alone", cpu)
		m.Help = fmt.Sprintf("`timer: %s` in the bench, or raise it with all other soft interrupts of that CPU: "+
			"sudo chrt -f -p %d %d", Nanosleep, priority, pid)
	}

	return m
}
