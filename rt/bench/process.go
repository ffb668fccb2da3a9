package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// process is this binary, executed again, or a generated target: a child of the
// supervisor, or a target that it has adopted.
type process struct {
	cmd   *exec.Cmd // nil: adopted
	pid   int
	since uint32        // when it began, see began
	fd    int           // of the process, readable when it has ended; < 0: the kernel has none (before 5.4)
	said  capture       // its standard output
	told  capture       // its standard error
	done  chan struct{} // closed when it has ended
	err   error         // how it ended; valid after done
	when  int64         // likewise, ns on CLOCK_MONOTONIC
	shot  bool          // the supervisor killed it before it ended
}

// spawn starts an executable, "" this binary, with args; files become descriptors 3,
// 4, ... The child is its own process group, so that Ctrl-C reaches the supervisor
// alone. It outlives the supervisor if it wants to.
func spawn(exe string, env []string, files []*os.File, args ...string) (p *process, err error) {
	if exe == "" {
		if exe, err = program("/"); err != nil {
			return nil, err
		}
	}
	p = &process{cmd: exec.Command(exe, args...), fd: -1, done: make(chan struct{})}
	p.cmd.Args[0] = "lockstep"
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.ExtraFiles = files
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.told
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.pid, p.since = p.cmd.Process.Pid, began("/", p.cmd.Process.Pid)
	// Nobody has waited for it yet, so it is this one. Started with a descriptor, it would
	// not start under an emulator that knows no CLONE_PIDFD.
	if p.fd, err = unix.PidfdOpen(p.pid, 0); err != nil {
		p.fd = -1
	}
	go func() {
		p.err = p.cmd.Wait()
		p.when = sched.Now()
		close(p.done)
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

// began is when a process of the host below root began, as rt.Identity has it; 0: that
// cannot be known.
func began(root string, pid int) uint32 {
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

// self is the identity of this process.
func self() uint64 { return rt.Identity(os.Getpid(), began("/", os.Getpid())) }

// adopt makes a process of one that somebody else has started, and that had begun then when
// it was looked at; 0: that is not known.
func adopt(pid int, since uint32) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	now := began("/", pid)
	if since != 0 && now != since {
		unix.Close(fd)
		return nil, errors.New("it has ended")
	}
	p := &process{pid: pid, since: now, fd: fd, done: make(chan struct{})}
	go func() {
		for !p.ended(time.Hour) {
		}
		p.when = sched.Now()
		close(p.done)
	}()
	return p, nil
}

// signal sends a signal, unless the process has been waited for.
func (p *process) signal(s syscall.Signal) bool {
	if p.cmd != nil {
		return p.cmd.Process.Signal(s) == nil
	}
	return unix.PidfdSendSignal(p.fd, s, nil, 0) == nil
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	p.shot = p.signal(syscall.SIGKILL) || p.shot
	<-p.done
}

// ours tells whether this process has started it.
func (p *process) ours() bool { return p.cmd != nil }

// close gives up the descriptor of a process that has ended.
func (p *process) close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}

// ended waits for the end of the process, d at most. It sees the end at once and
// not when its last words have been read.
func (p *process) ended(d time.Duration) bool {
	if p.fd < 0 {
		return p.within(d)
	}
	poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, int(d.Milliseconds()))
	return err == nil && n == 1
}

// within tells whether the process has ended within d.
func (p *process) within(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

// ending says in words how the process ended.
func (p *process) ending() string {
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
	if why := p.told.reason(); why != "" {
		return e.Error() + ": " + why
	}
	return e.Error()
}

// capture keeps the beginning of what a process writes, and the end.
type capture struct {
	mu   sync.Mutex
	text []byte // the first room bytes
	tail []byte // the last ones
}

// What a capture keeps, bytes.
const (
	room     = 64 << 10
	tailRoom = 4 << 10
)

func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, b[:min(len(b), room-len(c.text))]...)
	c.tail = append(c.tail, b[max(0, len(b)-tailRoom):]...)
	if extra := len(c.tail) - tailRoom; extra > 0 {
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
	return len(b), nil
}

func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.text)
}

// reason is the one line that says why: the first of a panic, else the first.
func (c *capture) reason() string {
	lines := strings.Split(strings.TrimSpace(string(c.bytes())), "\n")
	for _, l := range lines {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return l
		}
	}
	return strings.TrimPrefix(lines[0], "lockstep: ")
}

// last is the last line.
func (c *capture) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.TrimSpace(string(c.tail))
	return text[strings.LastIndex(text, "\n")+1:]
}
