package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/sched"
)

// Exit is an error that ends a command with its own exit code: 1 the run broke
// its policy, 2 bad usage or bad file, 3 the host refuses.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }
func (e *Exit) Unwrap() error { return e.Err }

// Process is this binary, executed again, or a generated target: a child of the
// supervisor, or a target that it has adopted.
type Process struct {
	cmd     *exec.Cmd // nil: adopted
	PID     int
	Since   uint32        // when it began, see began
	FD      int           // of the process, readable when it has ended; < 0: the kernel has none (before 5.4)
	Stdout  Capture       // its standard output
	Stderr  Capture       // its standard error
	Done    chan struct{} // closed when it has ended
	err     error         // how it ended; valid after done
	EndedNs int64         // likewise, ns on CLOCK_MONOTONIC
	Killed  bool          // the supervisor killed it before it ended
}

// Spawn starts an executable, "" this binary, with args; files become descriptors 3,
// 4, ... The child is its own process group, so that Ctrl-C reaches the supervisor
// alone. It outlives the supervisor if it wants to.
func Spawn(exe string, env []string, files []*os.File, args ...string) (p *Process, err error) {
	if exe == "" {
		if exe, err = program("/"); err != nil {
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
	// Nobody has waited for it yet, so it is this one. Started with a descriptor, it would
	// not start under an emulator that knows no CLONE_PIDFD.
	if p.FD, err = unix.PidfdOpen(p.PID, 0); err != nil {
		p.FD = -1
	}
	go func() {
		p.err = p.cmd.Wait()
		p.EndedNs = sched.Now()
		close(p.Done)
	}()
	return p, nil
}

// program is the file of this binary, which stays what it is when another one is
// put in its place; root is "/" but for tests.
func program(root string) (string, error) {
	exe := filepath.Join(root, "proc/self/exe")
	if _, err := os.Lstat(exe); err != nil {
		return "", fmt.Errorf("%w: mount -t proc proc /proc", err)
	}
	return exe, nil
}

// StartTime is when a process of the host below root began, as rt.Identity has it; 0: that
// cannot be known.
func StartTime(root string, pid int) uint32 {
	text, _ := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "stat"))
	// "812 (lockstep) S 1 ...": the name may have anything in it; what follows is the
	// third field, and the 22nd the time.
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 20 {
		return 0
	}
	ticks, _ := strconv.ParseUint(f[19], 10, 64)
	return uint32(ticks)
}

// Self is the identity of this process.
func Self() uint64 { return rt.Identity(os.Getpid(), StartTime("/", os.Getpid())) }

// Adopt makes a process of one that somebody else has started, and that had begun then when
// it was looked at; 0: that is not known.
func Adopt(pid int, since uint32) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	now := StartTime("/", pid)
	if since != 0 && now != since {
		unix.Close(fd)
		return nil, errors.New("it has ended")
	}
	p := &Process{PID: pid, Since: now, FD: fd, Done: make(chan struct{})}
	go func() {
		for !p.WaitEnded(time.Hour) {
		}
		p.EndedNs = sched.Now()
		close(p.Done)
	}()
	return p, nil
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

// Ours tells whether this process has started it.
func (p *Process) Ours() bool { return p.cmd != nil }

// Close gives up the descriptor of a process that has ended.
func (p *Process) Close() {
	if p.FD >= 0 {
		unix.Close(p.FD)
		p.FD = -1
	}
}

// WaitEnded waits for the end of the process, d at most. It sees the end at once and
// not when its last words have been read.
func (p *Process) WaitEnded(d time.Duration) bool {
	if p.FD < 0 {
		return p.WaitDone(d)
	}
	poll := []unix.PollFd{{Fd: int32(p.FD), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, int(d.Milliseconds()))
	return err == nil && n == 1
}

// WaitDone tells whether the process has ended within d.
func (p *Process) WaitDone(d time.Duration) bool {
	select {
	case <-p.Done:
		return true
	case <-time.After(d):
		return false
	}
}

// HowEnded says in words how the process ended.
func (p *Process) HowEnded() string {
	var e *exec.ExitError
	if p.cmd == nil {
		return "how is not known to who attached"
	}
	if !errors.As(p.err, &e) {
		if p.err != nil {
			return p.err.Error()
		}
		return "exit status 0"
	}
	if status, ok := e.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return e.Error() // "signal: killed"
	}
	if why := p.Stderr.Reason(); why != "" {
		return e.Error() + ": " + why
	}
	return e.Error()
}

// Capture keeps the beginning of what a process writes, and the end.
type Capture struct {
	mu   sync.Mutex
	text []byte // the first room bytes
	tail []byte // the last ones
}

// What a capture keeps, bytes.
const (
	room     = 64 << 10
	tailRoom = 4 << 10
)

// Write takes what a process prints; it never fails.
func (c *Capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, b[:min(len(b), room-len(c.text))]...)
	c.tail = append(c.tail, b[max(0, len(b)-tailRoom):]...)
	if extra := len(c.tail) - tailRoom; extra > 0 {
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
	return len(b), nil
}

// Bytes returns the beginning of what was printed.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.text)
}

// Reason is the one line that says why: the first of a panic, else the first.
func (c *Capture) Reason() string {
	lines := strings.Split(strings.TrimSpace(string(c.Bytes())), "\n")
	for _, l := range lines {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return l
		}
	}
	return strings.TrimPrefix(lines[0], "lockstep: ")
}

// Last is the last line.
func (c *Capture) Last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.TrimSpace(string(c.tail))
	return text[strings.LastIndex(text, "\n")+1:]
}

// Alive says that the process of an identity has not ended, or cannot be asked. Another one
// may have its id by now.
func Alive(who uint64) bool {
	pid, since := rt.Process(who)
	if pid == 0 {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return !errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	if err == nil && n > 0 {
		return false
	}
	now := StartTime("/", pid)
	return since == 0 || now == 0 || since == now
}

// WithPriority calls f on a thread with the least real-time priority or, where the host
// does not grant that, the highest share of its CPU: a real unit does not wait for the
// load of this host. What f starts inherits it, in all its threads: one of them never
// waits for another of less priority.
func WithPriority(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its priority
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		if unix.SchedSetAttr(0, &fifo, 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) // best effort
		}
		f()
	}()
	<-done
}
