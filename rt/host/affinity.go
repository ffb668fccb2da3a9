package host

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// Affinity keeps all threads of a run but the loop's off the CPU of the loop, and off those of
// the loops of other runs, where that leaves a CPU.
type Affinity struct {
	cpu   int           // of the loop
	holds *Reservations // of the run
	all   unix.CPUSet   // of this process, when the run began
	loops []int         // CPUs of other runs' loops at the last call of apply
	next  time.Time     // when to look at those again
}

// NewAffinity takes down which CPUs this process has.
func NewAffinity(cpu int, h *Reservations) *Affinity {
	a := &Affinity{cpu: cpu, holds: h}
	_ = unix.SchedGetaffinity(0, &a.all) // cannot fail for the thread itself
	return a
}

// Apply moves the threads of this process, of other ones and, but for the loop's thread where
// that is known, not 0, of the target. Threads come and go while a process starts, so it is done
// again when the loop ticks. Where it cannot be done the target says so, for its own.
func (a *Affinity) Apply(target, loop int, others ...int) {
	a.loops = a.holds.OtherLoops()
	set := left(a.all, a.cpu, a.loops)
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

// Changed tells, once per second, whether the loops of other runs have come or gone.
func (a *Affinity) Changed(now time.Time) bool {
	if now.Before(a.next) {
		return false
	}
	a.next = now.Add(time.Second)
	return !slices.Equal(a.loops, a.holds.OtherLoops())
}

// left are the CPUs of all but one, and but loops where that leaves one.
func left(all unix.CPUSet, cpu int, loops []int) unix.CPUSet {
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
