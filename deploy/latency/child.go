package latency

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/deploy/load"
	"lockstep/sched"
)

// The first words after `lockstep latency` that make the command a child of
// itself.
const (
	childMeasure   = "measure"   // measures one method once
	childSupervise = "supervise" // starts a child that measures, hogs the CPU and makes garbage
)

// chore is what a child measures.
type chore struct {
	Sleep    string // sched.Timerfd, sched.Nanosleep
	Naive    bool   // not a Timer, but a goroutine that reads a timerfd through the runtime
	Busy     bool   // with a naive one: what hogs and makes garbage is in the same process
	Period   int64  // ns
	Spin     int64  // ns before the grid point
	Warmup   int64  // grid points that do not count
	Points   int64  // grid points that count
	CPU      int
	Priority int
}

// Child does what a child of the measurement does if list, the arguments after
// `lockstep latency`, says so.
func Child(list []string) (is bool, err error) {
	if len(list) != 2 {
		return false, nil
	}
	var run func(*chore) error
	switch list[0] {
	case load.ChildWord:
		return true, load.Run(list[1])
	case childMeasure:
		run = (*chore).measure
	case childSupervise:
		run = (*chore).supervise
	default:
		return false, nil
	}

	var t chore
	if err := json.Unmarshal([]byte(list[1]), &t); err != nil {
		return true, fmt.Errorf("latency %s: %w (`lockstep latency` starts it)", list[0], err)
	}
	return true, run(&t)
}

// bind lets cmd die with the thread that starts it, which is to be locked, and keeps Ctrl-C
// from it.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// output runs cmd, bound, and returns what it writes; its error is one line.
func output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	bind(cmd)
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // cmd dies with this thread
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			done <- err
			return
		}

		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		defer stop()
		done <- cmd.Wait()
	}()

	err := <-done
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(told.String()), "\n"); err != nil && line != "" {
		err = fmt.Errorf("%w: %s", err, strings.TrimPrefix(line, "lockstep: "))
	}
	return out.Bytes(), err
}

// measure is the child that measures.
func (t *chore) measure() error {
	runtime.LockOSThread()
	m := &meter{period: t.Period, warmup: t.Warmup, points: t.Warmup + t.Points}
	latency, refused := sched.HoldLatency()
	if latency != nil {
		defer latency.Close()
	}
	var missing []sched.Missing
	if refused != nil {
		missing = append(missing, *refused)
	}
	run := m.ticker
	if t.Naive {
		run = m.naive
	}
	missing = append(missing, sched.Thread{CPU: t.CPU, Priority: t.Priority}.Enter()...)
	if t.Busy {
		load.BusyProcess()
	}
	if err := run(t); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(m.record(missing))
}

// meter counts how late the wake-ups are, without allocating.
type meter struct {
	period, warmup, points int64 // ns; grid points that do not count, and all
	passed                 int64 // grid points
	late                   sched.Histogram
	missed, over           int64 // grid points; wake-ups a period late
}

// note counts a wake-up at the instant now that n grid points have passed for; the
// first of them was due at due.
//
//go:nosplit
func (m *meter) note(now, due, n int64) {
	m.passed += n
	if m.passed <= m.warmup { // a stall that outlasts the warm-up counts
		return
	}
	late := max(0, now-due)
	m.late.Record(late)
	if late >= m.period {
		m.over++
	}
	m.missed += n - 1
}

// ticker measures the ticker of a run, in a loop that the runtime cannot preempt.
func (m *meter) ticker(t *chore) error {
	timer, err := sched.NewTimer(t.Sleep, time.Duration(t.Period), time.Duration(t.Spin))
	if err != nil {
		return err
	}
	defer timer.Close()
	if err := timer.Start(); err != nil {
		return err
	}
	m.loop(timer)
	return timer.Err()
}

//go:nosplit
func (m *meter) loop(timer *sched.Timer) {
	grid := timer.Grid()
	for m.passed < m.points {
		n := timer.Wait()
		if n == 0 {
			return
		}
		m.note(sched.Now(), grid.Due(m.passed+1), n)
	}
}

// naive measures what one writes first: a goroutine that reads a timerfd.
func (m *meter) naive(t *chore) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	defer unix.Close(fd)
	grid := sched.Grid{Start: sched.Now(), Period: t.Period}
	spec := unix.ItimerSpec{Interval: unix.NsecToTimespec(t.Period), Value: unix.NsecToTimespec(grid.Due(1))}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return os.NewSyscallError("timerfd_settime", err)
	}
	for buf := make([]byte, 8); m.passed < m.points; {
		if _, err := unix.Read(fd, buf); err == unix.EINTR {
			continue
		} else if err != nil {
			return os.NewSyscallError("read", err)
		}

		m.note(sched.Now(), grid.Due(m.passed+1), int64(binary.NativeEndian.Uint64(buf)))
	}

	return nil
}

// record is what the meter counted.
func (m *meter) record(missing []sched.Missing) *record {
	r := newRecord(&m.late)
	r.Missed, r.OverPeriod, r.Missing = m.missed, m.over, missing
	return r
}

// supervise is the worst parent that a measuring child can have: it hogs the
// other CPUs and makes garbage while the child measures.
func (t *chore) supervise() error {
	runtime.LockOSThread() // the child dies with this thread
	cmd := t.command(childMeasure)
	bind(cmd)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	// With one CPU there is no other: they share it.
	_ = sched.Confine(os.Getpid(), t.CPU, 0)
	load.BusyProcess()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	return nil
}

// settings is the environment of a child: of any Go program, or that of the
// ticking process.
func settings(ordinary bool) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "GOGC=") || strings.HasPrefix(e, "GOMEMLIMIT=") || strings.HasPrefix(e, "GOMAXPROCS=")
	})
	if ordinary {
		return env
	}
	return append(env, "GOGC=off", "GOMEMLIMIT=off", "GOMAXPROCS=2")
}

// command executes this binary again as a child of `lockstep latency` for a chore.
func (t *chore) command(child string) *exec.Cmd {
	text, err := json.Marshal(t)
	if err != nil {
		panic("latency: a chore is not JSON") // numbers and words only
	}
	cmd := exec.Command("/proc/self/exe", "latency", child, string(text))
	cmd.Args[0] = "lockstep"
	cmd.Env = settings(t.Naive || child == childSupervise)
	return cmd
}
