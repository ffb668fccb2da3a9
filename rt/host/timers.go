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

// timers are those of a CPU while loops wait for them: above the loops, and as they were
// before when the last of these has ended. Each run that has a loop there says so by a claim,
// which its target inherits. What they were stands in a file for the case that a run is
// killed, from before they are raised; the next one on that CPU, lockstep attach or lockstep
// stop puts them back.
//
// A file is believed that is this user's or root's, and by root also that of a service. So
// what a service that was killed has raised stays raised for a user's run on that CPU, until
// a service or root is the last one there; it does no harm to a loop.
type timers struct {
	sched.Timers
	dirs  []string // of the files, beside the control sockets; the first is this user's
	holds *Reservations
}

// heldTimers begins the claims: CPU-PROCESS follows.
const heldTimers = "timers/"

// raised is what is in a file.
type raised struct {
	Boot string // of which this is true
	sched.Raised
}

// TimersOf are those of a CPU for who has holds.
func TimersOf(cpu int, h *Reservations) *timers {
	return &timers{sched.Timers{Root: "/", CPU: cpu}, leftDirs(os.Getuid(), ControlDir()), h}
}

// leftDirs are the folders of files that a user believes; own is his.
func leftDirs(uid int, own string) []string {
	list := []string{own, ServicesDir}
	if uid != 0 {
		list = append(list, ServicesDir+"-0")
	}
	return slices.Compact(list)
}

// raisedFile is where a run leaves it.
func raisedFile(dir string, cpu int) string {
	return filepath.Join(dir, fmt.Sprintf("ktimers-%d", cpu))
}

// BootID identifies this run of the kernel.
func BootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// claim says that there is a loop which waits for these timers.
func (t *timers) claim() error {
	if t.Thread() == 0 {
		return nil
	}
	if _, err := t.holds.take(fmt.Sprintf("%s%d-%d", heldTimers, t.CPU, os.Getpid())); err != nil {
		return fmt.Errorf("run: timers of CPU %d: %w", t.CPU, err)
	}
	return nil
}

// Raise puts them above a loop.
func (t *timers) Raise(priority int) *sched.Missing {
	defer t.alone()()
	if !t.used() {
		t.restore()
	}
	_, m := t.Timers.Raise(priority, t.note)
	return m
}

// Lower is for the end of the loop: if it was the last one they are put back.
func (t *timers) Lower() {
	defer t.alone()()
	t.holds.drop(heldTimers)
	if !t.used() {
		t.restore()
	}
}

// alone keeps others from doing the same at the same time, until done is called. Who has
// that for a second hangs, or was not meant to have it: nobody waits longer for him.
func (t *timers) alone() (done func()) {
	for range 100 {
		if fd, err := sched.Claim(fmt.Sprintf("%s%d", heldTimers, t.CPU)); err == nil {
			return func() { unix.Close(fd) }
		}
		time.Sleep(10 * time.Millisecond)
	}
	return func() {}
}

// used tells whether another loop waits for these timers.
func (t *timers) used() bool {
	return slices.ContainsFunc(sched.Claims("/"), func(c sched.Claimed) bool {
		return strings.HasPrefix(c.What, fmt.Sprintf("%s%d-", heldTimers, t.CPU)) && !t.holds.has(c.What)
	})
}

// note writes down what is about to be raised. What another loop had raised already was what
// that one has noted.
func (t *timers) note(r *sched.Raised) {
	for _, dir := range t.dirs {
		if left := t.noted(dir); left != nil && r.Was.Policy == unix.SCHED_FIFO && left.Priority == int(r.Was.Priority) {
			r.Was = left.Was
		}
	}
	own, err := OwnDir(t.dirs[0])
	if err != nil {
		return // who is not killed does without
	}
	own.Close()
	text, _ := json.Marshal(&raised{BootID(), *r}) // numbers and a text
	// The folder may be a service's while this is root: nothing there is followed. It is
	// nobody's secret: what root has raised a service may put back.
	if f, err := os.OpenFile(raisedFile(t.dirs[0], t.CPU), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o644); err == nil {
		_, _ = f.Write(text)
		f.Close()
	}
}

// noted is what stands in the file of a folder for this boot; nil: nothing.
func (t *timers) noted(dir string) *raised {
	if own, err := believed(dir); err != nil {
		return nil // somebody else could have written it
	} else {
		own.Close()
	}
	text, err := ReadOwn(raisedFile(dir, t.CPU))
	left := &raised{}
	if err != nil || json.Unmarshal(text, left) != nil || left.Was == nil || left.Boot != BootID() {
		return nil
	}
	return left
}

// restore puts the timers back as it was noted. A file that another user's is stays: it is
// of no more use, as they are not any more what was made of them.
func (t *timers) restore() {
	for _, dir := range t.dirs {
		if left := t.noted(dir); left != nil {
			t.Timers.Lower(&left.Raised)
		}
		if own, err := believed(dir); err == nil {
			own.Close()
			_ = os.Remove(raisedFile(dir, t.CPU))
		}
	}
}

// RaiseTimers puts the timers of a CPU above a priority for who measures there, as a run
// does; lower puts them back.
func RaiseTimers(cpu, priority int, who string) (lower func(), m *sched.Missing) {
	t := TimersOf(cpu, &Reservations{Owner: who})
	if t.claim() == nil {
		m = t.Raise(priority)
	}
	return func() {
		t.Lower()
		t.holds.Close()
	}, m
}
