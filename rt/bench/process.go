package bench

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Exit is an error that ends a command with its own exit code: 1 the run broke
// its policy, 2 bad usage or bad file, 3 the host refuses.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string { return e.Err.Error() }
func (e *Exit) Unwrap() error { return e.Err }

// process is a child of the supervisor: this binary, executed again.
type process struct {
	cmd  *exec.Cmd
	said capture       // its standard output
	told capture       // its standard error
	done chan struct{} // closed when it has ended
	err  error         // how it ended; valid after done
	when time.Time     // likewise
}

// spawn starts this binary with args; files become descriptors 3, 4, ... The
// child is its own process group, so that Ctrl-C reaches the supervisor alone,
// and dies with the calling thread: call it from a locked one.
func spawn(env []string, files []*os.File, args ...string) (*process, error) {
	p := &process{cmd: exec.Command("/proc/self/exe", args...), done: make(chan struct{})}
	p.cmd.Args[0] = "lockstep"
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.ExtraFiles = files
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.told
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		p.when = time.Now()
		close(p.done)
	}()
	return p, nil
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
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

// capture keeps the beginning of what a process writes.
type capture struct {
	mu   sync.Mutex
	text []byte
}

func (c *capture) Write(b []byte) (int, error) {
	const room = 64 << 10
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, b[:min(len(b), room-len(c.text))]...)
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
	text := strings.TrimSpace(string(c.bytes()))
	return text[strings.LastIndex(text, "\n")+1:]
}
