package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// raised is what a run leaves in a file for the case that it is killed: the priority
// that it has taken from the thread of a CPU's timers.
type raised struct {
	Boot string // of which this is true
	Was  *unix.SchedAttr
}

// raisedFile is where it does, beside this user's control sockets.
func raisedFile(dir string, cpu int) string {
	return filepath.Join(dir, fmt.Sprintf("ktimers-%d", cpu))
}

// boot identifies this run of the kernel.
func boot() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// raiseTimers puts the timers of the loop's CPU above the loop until the end of the run,
// or the next one on that CPU, lockstep attach or lockstep stop, if this supervisor is
// killed.
func (r *run) raiseTimers(dir string) {
	cpu := r.h.Thread.CPU
	if r.shared == nil { // else what is left is the other loop's
		lowerTimers(dir, cpu)
	}
	was, m := sched.RaiseTimers(cpu, min(99, r.h.Thread.Priority+1))
	if m != nil {
		r.missing = append(r.missing, *m)
	}
	if was == nil {
		return
	}
	note, _ := json.Marshal(&raised{boot(), was}) // numbers and a text
	if own, err := ownDir(dir); err == nil {
		own.Close()
		// The folder may be a service's while this is root: nothing there is followed.
		if f, err := os.OpenFile(raisedFile(dir, cpu), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600); err == nil {
			_, _ = f.Write(note) // who is not killed does without
			f.Close()
		}
	}
	r.restore = func() {
		sched.LowerTimers(cpu, was)
		_ = os.Remove(raisedFile(dir, cpu))
	}
}

// lowerLeft is lowerTimers for who comes after a run that may have been another user's: to
// root that of a service.
func lowerLeft(cpu int) {
	for _, dir := range leftDirs(os.Getuid(), ControlDir()) {
		lowerTimers(dir, cpu)
	}
}

// leftDirs are the folders whose notes a user believes; own is his.
func leftDirs(uid int, own string) []string {
	if uid != 0 || own == servicesDir {
		return []string{own}
	}
	return []string{own, servicesDir}
}

// lowerTimers gives the timers of a CPU the priority back that a killed run has taken.
func lowerTimers(dir string, cpu int) {
	own, err := ownDir(dir)
	if err != nil {
		return // somebody else could have written it
	}
	defer own.Close()
	text, err := readOwn(raisedFile(dir, cpu))
	left := raised{}
	if err != nil || json.Unmarshal(text, &left) != nil {
		return
	}
	if left.Boot == boot() {
		sched.LowerTimers(cpu, left.Was)
	}
	_ = os.Remove(raisedFile(dir, cpu))
}
