package host

import (
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
	"lockstep/sched/journal"
)

// timers are the kernel timers of a CPU. Their thread has a priority above the loops while loops
// wait for them, and its former priority after the last of these loops has ended. Each run with a
// loop there holds a reservation, which its target inherits. A journal holds the former priority in
// case the run is killed; it is written before the change. RestoreLeft then restores the priority.
//
// A journal is trusted if its folder belongs to this user or root; root also trusts a service's. So
// timers raised by a killed service stay raised for a user's run on that CPU, until a service or
// root looks at the runs; this does not harm a loop.
type timers struct {
	sched.Timers
	dirs         []string // folders of the journals, beside the control sockets; the first is this user's
	reservations *Reservations
}

// timersPrefix is the prefix of the reservations; CPU-PROCESS follows.
const timersPrefix = "timers/"

// TimersOf returns the timers of a CPU for the run with these reservations.
func TimersOf(cpu int, h *Reservations) *timers {
	return &timers{sched.Timers{Root: "/", CPU: cpu}, journalDirs(os.Getuid(), ControlDir()), h}
}

// reserve reserves the use of these timers by a loop.
func (t *timers) reserve() error {
	if t.Thread() == 0 {
		return nil
	}
	if _, err := t.reservations.reserve(fmt.Sprintf("%s%d-%d", timersPrefix, t.CPU, os.Getpid())); err != nil {
		return fmt.Errorf("run: timers of CPU %d: %w", t.CPU, err)
	}
	return nil
}

// Raise raises the timers above a loop.
func (t *timers) Raise(priority int) *sched.Missing {
	done, _ := lockJournals() // RestoreLeft has shown the error
	defer done()
	if !t.inUse() {
		t.restore()
	}
	_, m := t.Timers.Raise(priority, t.recordPlanned)
	return m
}

// Release ends the use of the timers by this run, and restores them if it was the last one.
func (t *timers) Release() {
	awaitKilled(fmt.Sprintf("%s%d-", timersPrefix, t.CPU))
	done, _ := lockJournals() // RestoreLeft has shown the error
	defer done()
	t.reservations.release(timersPrefix)
	if t.inUse() {
		t.disown()
	} else {
		t.restore()
	}
}

// inUse reports whether another loop waits for these timers.
func (t *timers) inUse() bool {
	return timersInUse(t.CPU, t.reservations.Names())
}

// restore restores these timers from the journals.
func (t *timers) restore() {
	restoreJournals(t.Root, t.dirs, func(_ journal.Entry, cpu int) bool { return cpu != t.CPU })
}

// RaiseTimers raises the timers of a CPU above a priority for a measurement, as a run does; lower
// restores them.
func RaiseTimers(cpu, priority int, who string) (lower func(), m *sched.Missing) {
	t := TimersOf(cpu, &Reservations{Owner: who})
	if t.reserve() == nil {
		m = t.Raise(priority)
	}
	return func() {
		t.Release()
		t.reservations.Close()
	}, m
}

// Affinity keeps all threads of a run except the loop's off the CPU of the loop, and off the CPUs
// of other runs' loops if a CPU remains.
type Affinity struct {
	cpu          int           // CPU of the loop
	reservations *Reservations // reservations of the run
	all          unix.CPUSet   // CPUs of this process at the start of the run
	loops        []int         // CPUs of other runs' loops at the last Apply
	next         time.Time     // time of the next check for other loops
}

// NewAffinity records the CPUs of this process.
func NewAffinity(cpu int, h *Reservations) *Affinity {
	a := &Affinity{cpu: cpu, reservations: h}
	_ = unix.SchedGetaffinity(0, &a.all) // cannot fail for the thread itself
	return a
}

// Apply moves the threads of this process, of the processes others, and of the target except its
// loop's thread; loop 0: that thread is not known yet. Threads start and end while a process
// starts, so Apply is called again when the loop ticks. Errors are ignored here; the target reports
// those of its own threads.
func (a *Affinity) Apply(target, loop int, others ...int) {
	a.loops = a.reservations.OtherLoops()
	set := remainingCPUs(a.all, a.cpu, a.loops)
	if set.Count() == 0 {
		return
	}
	for _, pid := range append([]int{os.Getpid()}, others...) {
		_ = sched.Allow(pid, set, 0)
	}
	if loop != 0 {
		_ = sched.Allow(target, set, loop)
	}
}

// LoopsChanged reports, once per second, whether loops of other runs have started or ended.
func (a *Affinity) LoopsChanged(now time.Time) bool {
	if now.Before(a.next) {
		return false
	}
	a.next = now.Add(time.Second)
	return !slices.Equal(a.loops, a.reservations.OtherLoops())
}

// remainingCPUs returns all CPUs without cpu and without loops; if none remains, without cpu only.
func remainingCPUs(all unix.CPUSet, cpu int, loops []int) unix.CPUSet {
	all.Clear(cpu)
	most := all
	for _, cpu := range loops {
		all.Clear(cpu)
	}
	if all.Count() == 0 {
		return most
	}
	return all
}
