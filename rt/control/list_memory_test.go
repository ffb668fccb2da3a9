package control

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/sched"
)

// startTarget starts a process with the name of a target, which holds the hand-over and the status block of a
// run, and returns its process id. It sleeps.
func startTarget(t *testing.T, handover, status *os.File) int {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), sched.TargetName) // the kernel names a process by its file
	if err := os.Symlink(sleep, name); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(name, "60")
	c.Args[0] = "sleep" // a binary of many commands chooses by it
	c.ExtraFiles = []*os.File{handover, status}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c.Process.Pid
}

// watchOpened returns a function that reports whether a process has opened the file since the last call.
func watchOpened(t *testing.T, f *os.File) func() bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		n, _ := unix.Read(fd, make([]byte, 4096))
		return n > 0
	}
}

// A hand-over has all tables of a plant: to decode those of each run takes a page's list of runs seconds.
func TestListReadsNoTablesOfARunWhoseSupervisorAnswers(t *testing.T) {
	c := newControlled(t)
	handover, err := c.Handover.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer handover.Close()
	status, p, err := rt.CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close()
	p.State.Store(uint64(rt.Running))
	p.StartNs.Store(uint64(sched.Now()))
	wasOpened := watchOpened(t, handover)
	target := startTarget(t, handover, status)
	row := func(list []ListedRun) *ListedRun {
		if i := slices.IndexFunc(list, func(v ListedRun) bool { return v.Target == target }); i >= 0 {
			return &list[i]
		}
		return nil
	}

	var v *ListedRun
	for end := time.Now().Add(20 * time.Second); v == nil && time.Now().Before(end); { // the name comes with its exec
		v = row(listRuns(nil))
	}
	if v == nil || v.Hint == "" || !wasOpened() {
		t.Fatalf("without a supervisor the target is read from its memory: %+v", v)
	}
	c.s.target = target
	p.Supervisor.Store(rt.Identity(os.Getpid(), host.StartTime("/", os.Getpid())))
	if v := row(listRuns(sockets(c.dir))); v == nil || v.Hint != "" || v.Bench != "open bench" || wasOpened() {
		t.Errorf("the list has opened the hand-over of a run whose supervisor answers, or lacks the run: %+v", v)
	}
}
