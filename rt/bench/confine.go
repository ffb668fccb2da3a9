package bench

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// elsewhere is where all threads of a run but the loop's may be.
type elsewhere struct {
	all   unix.CPUSet // of this process, when the run began
	loops []int       // CPUs of other runs' loops, as they were when it was made
	next  time.Time   // when to look at those again
}

// confine keeps all threads but the loop's off the loop's CPU, and off those of the loops
// of other runs, where that leaves a CPU. Threads come and go while a process starts, so it
// is done again when the loop ticks. Where it cannot be done the target says so, for its own.
func (r *run) confine() {
	if r.beside == nil {
		r.beside = &elsewhere{}
		_ = unix.SchedGetaffinity(0, &r.beside.all) // cannot fail for the thread itself
	}
	r.beside.loops = r.holds.otherLoops()
	set := left(r.beside.all, r.h.Thread.CPU, r.beside.loops)
	if set.Count() == 0 {
		return
	}
	_ = sched.Allow(os.Getpid(), set, 0)
	if r.unit != nil {
		_ = sched.Allow(r.unit.pid, set, 0)
	}
	if thread := int(r.page.Thread.Load()); thread != 0 {
		_ = sched.Allow(r.target.pid, set, thread)
	}
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

// makeRoom confines the run anew when the loops of other runs have come or gone.
func (r *run) makeRoom(now time.Time) {
	if now.Before(r.beside.next) {
		return
	}
	r.beside.next = now.Add(time.Second)
	if !slices.Equal(r.beside.loops, r.holds.otherLoops()) {
		r.confine()
	}
}
