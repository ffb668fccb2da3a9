package unitprogram

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt/host"
	"lockstep/sched/hostinfo"
)

// process is a program in a process group of its own. The group ends with the program, and the program
// ends with this process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program and its group have ended

	mu      sync.Mutex
	reaped  bool // the group's id may belong to others by now
	only    bool // Spec.onlyChild
	stopped bool // stop has sent a signal
}

// start starts the program with its end of the socket, which start closes; nil: it has none. out gets
// its output.
func (s *Spec) start(socket *os.File, out io.Writer) (*process, error) {
	p := &process{cmd: exec.Command(s.Path, s.Args...), done: make(chan struct{}), only: s.onlyChild}
	p.cmd.Dir, p.cmd.Env = s.Dir, append(os.Environ(), s.env()...)
	copied := struct{ io.Writer }{out} // also of a file: a process that outlives its group must not hold it
	p.cmd.Stdout, p.cmd.Stderr = copied, copied
	if socket != nil {
		p.cmd.ExtraFiles = []*os.File{socket} // becomes socketFD
		defer socket.Close()
	}
	p.cmd.WaitDelay = time.Second // for a process outside of the group that keeps the output open
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go p.run(started)
	switch err := <-started; {
	case errors.Is(err, unix.ENOEXEC):
		return nil, fmt.Errorf("%s cannot be started: %s is neither a program of this machine nor a script "+
			"with a first line such as #!/usr/bin/python3", s.Name, s.Path)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be started: %w", s.Name, err)
	}
	return p, nil
}

// run starts the program and waits for its end. The kernel kills the program when the thread that has
// started it ends, so the thread waits.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with its changed rights
	dropRights()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	pid := p.cmd.Process.Pid
	for { // the id of the group stays taken until the program is waited for
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	p.mu.Lock()
	_ = syscall.Kill(-pid, syscall.SIGKILL) // the rest of the group
	p.reaped = true
	p.mu.Unlock()
	if p.only {
		killDescendants()
	}
	_ = p.cmd.Wait() // ProcessState has the result
	close(p.done)
}

// killDescendants kills all processes below this one, also those that have left the group of the program:
// they are below this process because it is their subreaper. Zombies remain, and end with this process.
func killDescendants() {
	for range 100 { // a process may start another one meanwhile
		alive := false
		for _, pid := range host.Descendants(os.Getpid()) {
			t, err := hostinfo.ParseStat(hostinfo.Files("/").Text(fmt.Sprintf("proc/%d/stat", pid)))
			if err == nil && t.State != "Z" && t.State != "X" {
				alive = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !alive {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// dropRights gives the calling thread the rights of the run's user alone: it takes away capabilities
// that a service passes on to its children, real-time priority and a negative nice value.
func dropRights() {
	// It fails before Linux 4.3, which has no such capabilities.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if now, err := unix.SchedGetAttr(0, 0); err == nil && (now.Policy != unix.SCHED_NORMAL || now.Nice < 0) {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: max(0, now.Nice)}, 0)
	}
}

// ended reports whether the program has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// endsWithin waits for the end of the program, at most d.
func (p *process) endsWithin(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

// signal sends a signal to the group, unless the program has ended.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.stopped = true
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// stop waits until the program ends by itself, then sends SIGTERM, then SIGKILL, each after a time.
func (p *process) stop(byItself, byTerm time.Duration) {
	if p.endsWithin(byItself) {
		return
	}
	p.signal(syscall.SIGTERM)
	if !p.endsWithin(byTerm) {
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}

// failure returns the verdict on a program for an error of its connection; when begins with a space.
func (s *Spec) failure(err error, when string, p *process) error {
	var garbage *garbageError
	var flood *floodError
	switch {
	case errors.Is(err, errClosed) && p.endsWithin(time.Second):
		return fmt.Errorf("%s ended%s: %s", s.Name, when, p.how())
	case errors.Is(err, errClosed):
		return fmt.Errorf("%s closed its socket%s", s.Name, when)
	case errors.Is(err, errHang):
		return fmt.Errorf("%s hangs: no answer%s within %g s", s.Name, when, s.Hang.Seconds())
	case errors.Is(err, errStopped):
		return fmt.Errorf("%s had not answered%s when the run was stopped", s.Name, when)
	case errors.As(err, &garbage):
		return fmt.Errorf("%s sent%s what the protocol does not have: %w", s.Name, when, err)
	case errors.As(err, &flood):
		return fmt.Errorf("%s floods: it sent%s %w", s.Name, when, err)
	}
	return fmt.Errorf("%s %w", s.Name, err)
}

// how describes how the program has ended: "exit status 1", "signal: killed".
func (p *process) how() string { return p.cmd.ProcessState.String() }

// failure returns what was wrong with the end of the program after the end of the run; "": nothing.
func (p *process) failure() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case p.stopped && ok && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return "hangs: it ended neither with the run nor by SIGTERM"
	case p.stopped || p.cmd.ProcessState.Success():
		return ""
	}
	return "ended with the run, but with " + p.how()
}

// endText describes an end of the program with the run for its last line.
func (p *process) endText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return "; it was ended, " + p.how()
	}
	return ""
}
