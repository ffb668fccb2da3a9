package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// timers are the kernel timers of a CPU. Their thread has a priority above the loops while loops
// wait for them, and its former priority after the last of these loops has ended. Each run with a
// loop there holds a reservation, which its target inherits. A note in a file holds the former
// priority in case the run is killed; it is written before the change. The next run on that CPU,
// lockstep attach or lockstep stop then restores the priority.
//
// A note is trusted if its folder belongs to this user or root; root also trusts a service's. So
// timers raised by a killed service stay raised for a user's run on that CPU, until a service or
// root runs there last; this does not harm a loop.
type timers struct {
	sched.Timers
	dirs         []string // folders of the notes, beside the control sockets; the first is this user's
	reservations *Reservations
}

// timersPrefix is the prefix of the reservations; CPU-PROCESS follows.
const timersPrefix = "timers/"

// raisedNote is the content of a note.
type raisedNote struct {
	Boot string // boot for which the note is valid
	sched.Raised
}

// TimersOf returns the timers of a CPU for the run with these reservations.
func TimersOf(cpu int, h *Reservations) *timers {
	return &timers{sched.Timers{Root: "/", CPU: cpu}, noteDirs(os.Getuid(), ControlDir()), h}
}

// noteDirs returns the folders of notes that a user trusts; own is the user's.
func noteDirs(uid int, own string) []string {
	list := []string{own, ServicesDir}
	if uid != 0 {
		list = append(list, ServicesDir+"-0")
	}
	return slices.Compact(list)
}

// noteFile returns the path of a run's note.
func noteFile(dir string, cpu int) string {
	return filepath.Join(dir, fmt.Sprintf("ktimers-%d", cpu))
}

// BootID returns the id of this boot of the kernel.
func BootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
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
	defer t.lock()()
	if !t.inUse() {
		t.restoreNoted()
	}
	_, m := t.Timers.Raise(priority, t.writeNote)
	return m
}

// Release ends the use of the timers by this run, and restores them if it was the last one.
func (t *timers) Release() {
	defer t.lock()()
	t.reservations.release(timersPrefix)
	if !t.inUse() {
		t.restoreNoted()
	}
}

// lock excludes other processes until done is called. After a second it gives up waiting: the
// holder hangs or is not a run.
func (t *timers) lock() (done func()) {
	for range 100 {
		if fd, err := sched.Reserve(fmt.Sprintf("%s%d", timersPrefix, t.CPU)); err == nil {
			return func() { unix.Close(fd) }
		}
		time.Sleep(10 * time.Millisecond)
	}

	return func() {}
}

// inUse reports whether another loop waits for these timers.
func (t *timers) inUse() bool {
	return slices.ContainsFunc(sched.Reservations("/"), func(c sched.Reservation) bool {
		return strings.HasPrefix(c.What, fmt.Sprintf("%s%d-", timersPrefix, t.CPU)) &&
			!slices.Contains(t.reservations.Names(), c.What)
	})
}

// writeNote writes the note before the timers are raised. If another loop has raised them already,
// the former priority is taken from its note.
func (t *timers) writeNote(r *sched.Raised) {
	for _, dir := range t.dirs {
		if left := t.readNote(dir); left != nil && r.Was.Policy == unix.SCHED_FIFO && left.Priority == int(r.Was.Priority) {
			r.Was = left.Was
		}
	}

	own, err := OwnDir(t.dirs[0])
	if err != nil {
		return // only a killed run needs the note
	}
	own.Close()
	text, _ := json.Marshal(&raisedNote{BootID(), *r}) // numbers and a text
	// The folder may be a service's while this process is root, so no link is followed. The note is
	// readable by all: a service may restore what root has raised.
	if f, err := os.OpenFile(noteFile(t.dirs[0], t.CPU), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o644); err == nil {
		_, _ = f.Write(text)
		f.Close()
	}
}

// readNote reads the note in a folder for this boot; nil: there is none.
func (t *timers) readNote(dir string) *raisedNote {
	if !isTrusted(dir) {
		return nil // another user could have written it
	}
	text, err := ReadOwn(noteFile(dir, t.CPU))
	left := &raisedNote{}
	if err != nil || json.Unmarshal(text, left) != nil || left.Was == nil || left.Boot != BootID() {
		return nil
	}
	return left
}

// restoreNoted restores the timers from the notes and removes these. A note of another user stays;
// it is obsolete, because the timers no longer match it.
func (t *timers) restoreNoted() {
	for _, dir := range t.dirs {
		if left := t.readNote(dir); left != nil {
			t.Timers.Restore(&left.Raised)
		}
		if isTrusted(dir) {
			_ = os.Remove(noteFile(dir, t.CPU))
		}
	}
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
