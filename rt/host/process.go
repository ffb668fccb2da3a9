package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Exit is an error that ends a command with its own exit code: 1 the run broke its policy, 2 bad
// usage or bad file, 3 the host refuses.
type Exit struct {
	Code int
	Err  error
}

// Exitf returns an Exit with a formatted error.
func Exitf(code int, format string, args ...any) *Exit {
	return &Exit{code, fmt.Errorf(format, args...)}
}

func (e *Exit) Error() string { return e.Err.Error() }
func (e *Exit) Unwrap() error { return e.Err }

// Process is a child of the supervisor (this binary or a generated target), or a target that the
// supervisor has taken over.
type Process struct {
	cmd     *exec.Cmd // nil: taken over
	PID     int
	Since   uint32        // start time, see StartTime; 0: not known
	FD      int           // pidfd, readable when the process has ended; < 0: the kernel has none (before 5.4)
	Stdout  Capture       // its standard output
	Stderr  Capture       // its standard error
	Done    chan struct{} // closed when the process has ended
	err     error         // how the process ended; valid after Done
	EndedNs int64         // end, ns on CLOCK_MONOTONIC; valid after Done
	Killed  bool          // the supervisor killed it before it ended
}

// Spawn starts an executable, "" this binary, with args; files become descriptors 3, 4, ... The
// child has its own process group, so Ctrl-C reaches the supervisor alone. The child may outlive
// the supervisor.
func Spawn(exe string, env []string, files []*os.File, args ...string) (p *Process, err error) {
	if exe == "" {
		if exe, err = executablePath("/"); err != nil {
			return nil, err
		}
	}

	p = &Process{cmd: exec.Command(exe, args...), FD: -1, Done: make(chan struct{})}
	p.cmd.Args[0] = "lockstep"
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.ExtraFiles = files
	p.cmd.Stdout, p.cmd.Stderr = &p.Stdout, &p.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.PID, p.Since = p.cmd.Process.Pid, StartTime("/", p.cmd.Process.Pid)
	// Only the child can have this id, because nobody has waited for it yet. Starting it with a
	// descriptor would fail under an emulator without CLONE_PIDFD.
	if p.FD, err = unix.PidfdOpen(p.PID, 0); err != nil {
		p.FD = -1
	}
	go p.awaitEnd(p.cmd.Wait)
	return p, nil
}

// executablePath returns the path of this binary, which stays valid when another binary replaces
// the file; root is "/" except in tests.
func executablePath(root string) (string, error) {
	exe := filepath.Join(root, "proc/self/exe")
	if _, err := os.Lstat(exe); err != nil {
		return "", fmt.Errorf("%w: mount -t proc proc /proc", err)
	}
	return exe, nil
}

// StartTime returns when a process of the host below root started, in the form of rt.Identity; 0:
// not known.
func StartTime(root string, pid int) uint32 {
	t, _ := hostinfo.ParseStat(hostinfo.Files(root).Text(fmt.Sprintf("proc/%d/stat", pid)))
	return uint32(t.Start)
}

// OwnerOf returns the user of a process, by its effective id; -1: there is no such process, or this
// user may not see it.
func OwnerOf(pid int) int {
	ids := strings.Fields(hostinfo.Files("/").Fields(fmt.Sprintf("proc/%d/status", pid))["Uid"])
	if len(ids) < 2 { // real, effective, saved, of the file system
		return -1
	}
	uid, err := strconv.Atoi(ids[1])
	if err != nil {
		return -1
	}
	return uid
}

// Descendants lists the processes that a process has started, and those that they have started.
func Descendants(pid int) (list []int) {
	files, children := hostinfo.Files("/"), map[int][]int{}
	for _, name := range files.ReadDir("proc") {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		if t, err := hostinfo.ParseStat(files.Text("proc/" + name + "/stat")); err == nil {
			children[t.Parent] = append(children[t.Parent], t.PID)
		}
	}
	list = slices.Clone(children[pid])
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// SelfIdentity returns the identity of this process.
func SelfIdentity() uint64 { return rt.Identity(os.Getpid(), StartTime("/", os.Getpid())) }

// ErrEnded means that a process has ended; another one may have its id.
var ErrEnded = errors.New("the process has ended")

// OpenProcess opens a process that another process has started. since is its start time; 0: not
// known.
func OpenProcess(pid int, since uint32) (*Process, error) {
	var opener sched.ProcessOpener
	fd, now, errno := opener.Open(pid, since)
	switch {
	case errno == unix.ESRCH:
		return nil, ErrEnded
	case errno != 0:
		return nil, os.NewSyscallError("pidfd_open", errno)
	case since != 0 && now == 0: // /proc hides it: it may be a later process
		unix.Close(fd)
		return nil, ErrEnded
	}

	p := &Process{PID: pid, Since: now, FD: fd, Done: make(chan struct{})}
	go p.awaitEnd(func() error {
		for !p.WaitEnded(time.Hour) {
		}
		return nil
	})

	return p, nil
}

// awaitEnd records the end of the process; wait returns at the end.
func (p *Process) awaitEnd(wait func() error) {
	p.err = wait()
	p.EndedNs = sched.Now()
	close(p.Done)
}

// Signal sends a signal, unless the process has been waited for.
func (p *Process) Signal(s syscall.Signal) bool {
	if p.cmd != nil {
		return p.cmd.Process.Signal(s) == nil
	}
	return unix.PidfdSendSignal(p.FD, s, nil, 0) == nil
}

// Kill ends the process at once and waits for its end.
func (p *Process) Kill() {
	p.Killed = p.Signal(syscall.SIGKILL) || p.Killed
	<-p.Done
}

// IsChild reports whether this process has started it.
func (p *Process) IsChild() bool { return p.cmd != nil }

// Close closes the descriptor of a process that has ended.
func (p *Process) Close() {
	if p.FD >= 0 {
		unix.Close(p.FD)
		p.FD = -1
	}
}

// WaitEnded waits for the end of the process, at most d. It does not wait for the rest of the
// process's output.
func (p *Process) WaitEnded(d time.Duration) bool {
	if p.FD < 0 {
		return p.WaitDone(d)
	}
	return endsWithin(p.FD, d)
}

// poll waits for events of files. Tests replace it.
var poll = unix.Poll

// endsWithin waits for the end of the process of a pidfd, at most d.
func endsWithin(pidfd int, d time.Duration) bool {
	for deadline := time.Now().Add(d); ; {
		n, err := poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(max(0, time.Until(deadline).Milliseconds())))
		if err != unix.EINTR { // a signal of the runtime says nothing about the process
			return err == nil && n > 0
		}
	}
}

// WaitDone waits for the end of the process and of its output, at most d.
func (p *Process) WaitDone(d time.Duration) bool {
	select {
	case <-p.Done:
		return true
	case <-time.After(d):
		return false
	}
}

// Succeeded reports whether a child has ended with exit status 0. It is valid after Done.
func (p *Process) Succeeded() bool { return p.cmd != nil && p.err == nil }

// HowEnded describes how the process ended.
func (p *Process) HowEnded() string {
	var e *exec.ExitError
	if p.cmd == nil {
		return "exit status unknown after lockstep attach"
	}
	if !errors.As(p.err, &e) {
		if p.err != nil {
			return p.err.Error()
		}
		return "exit status 0"
	}

	status, ok := e.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && status.Signal() != syscall.SIGABRT { // SIGABRT: the Go runtime has printed the cause
		return e.Error() // "signal: killed"
	}
	if why := p.Stderr.Reason(); why != "" {
		return e.Error() + ": " + why
	}
	return e.Error()
}

// Capture keeps the first and the last bytes that a process writes.
type Capture struct {
	mu   sync.Mutex
	text []byte // the first captureHead bytes and the last captureTail
}

// Sizes of the kept parts, bytes.
const (
	captureHead = 64 << 10
	captureTail = 4 << 10
)

// Write stores output of a process; it never fails.
func (c *Capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, b...)
	if extra := len(c.text) - captureHead - captureTail; extra > 0 {
		c.text = slices.Delete(c.text, captureHead, captureHead+extra)
	}
	return len(b), nil
}

// Bytes returns the kept output.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.text)
}

// Reason returns the line that states the cause: the first line of a panic, else the first line.
func (c *Capture) Reason() string {
	lines := strings.Split(strings.TrimSpace(string(c.Bytes())), "\n")
	for _, l := range lines {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return l
		}
	}

	return strings.TrimPrefix(lines[0], "lockstep: ")
}

// LastLine returns the last line.
func (c *Capture) LastLine() string {
	text := strings.TrimSpace(string(c.Bytes()))
	return text[strings.LastIndex(text, "\n")+1:]
}

// Alive reports whether the process of an identity still runs, or cannot be asked. A later process
// with the same id does not count.
func Alive(who uint64) bool {
	pid, since := rt.SplitIdentity(who)
	if pid == 0 {
		return false
	}
	var opener sched.ProcessOpener
	fd, _, errno := opener.Open(pid, since)
	if errno != 0 {
		return errno != unix.ESRCH
	}
	defer unix.Close(fd)
	return !endsWithin(fd, 0)
}

// exitTimeout is how long a command waits for a killed process to release what it holds.
const exitTimeout = 2 * time.Second

// awaitExit waits for the end of a process that is exiting, at most until a time. A killed process
// executes nothing more, but its sockets stay open until its last thread has released its locked
// memory, which may take a second. awaitExit reports whether it has waited.
func awaitExit(pid int, until time.Time) bool {
	first, err := hostinfo.ParseStat(hostinfo.Files("/").Text(fmt.Sprintf("proc/%d/stat", pid)))
	if err != nil || !first.Exiting {
		return false
	}
	var opener sched.ProcessOpener
	fd, _, errno := opener.Open(pid, uint32(first.Start))
	if errno != 0 {
		return errno == unix.ESRCH // it has just ended
	}
	defer unix.Close(fd)
	endsWithin(fd, max(0, time.Until(until)))
	return true
}

// WithPriority calls f on a thread with the lowest real-time priority or, if the host refuses it,
// with nice value -20: load on the host must not delay a control unit. All threads of
// a process that f starts inherit the priority, so none waits for a thread of lower priority.
func WithPriority(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its priority
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		if unix.SchedSetAttr(0, &fifo, 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) // best effort
		}
		f()
	}()

	<-done
}

// Repeat calls f once per period, in its own goroutine, until stop is called. stop waits for a
// running call, and may be called again.
func Repeat(period time.Duration, f func(now time.Time)) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		clock := time.NewTicker(period)
		defer clock.Stop()
		for {
			select {
			case <-over:
				return
			case now := <-clock.C:
				f(now)
			}
		}
	}()

	return sync.OnceFunc(func() {
		close(over)
		<-done
	})
}
