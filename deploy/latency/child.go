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

// The first argument of `lockstep latency` in a child process.
const (
	childMeasure   = "measure"   // measures one turn
	childSupervise = "supervise" // starts a measuring child, and loads its own CPUs and collector
)

// turn describes one turn to the process that measures it.
type turn struct {
	Sleep    string // sched.Timerfd or sched.Nanosleep
	Naive    bool   // goroutine that reads a timerfd through the runtime, instead of a Timer
	Busy     bool   // load in the same process; for Naive only
	Period   int64  // period of the grid, ns
	Spin     int64  // spin before the grid point, ns
	Warmup   int64  // grid points that are not counted
	Points   int64  // grid points that are counted
	CPU      int
	Priority int   // SCHED_FIFO priority, 1 to 99
	Runtime  int64 // CPU time per period under SCHED_DEADLINE, ns; 0: SCHED_FIFO
}

// thread returns what the measuring thread needs from the host.
func (t *turn) thread() sched.Thread {
	return sched.Thread{
		CPU: t.CPU, Priority: t.Priority, Sleep: t.Sleep,
		Deadline: t.Runtime > 0, RuntimeNs: t.Runtime, PeriodNs: t.Period,
	}
}

// refusedDeadline returns the refusal of SCHED_DEADLINE in a list; nil: there is none.
func refusedDeadline(list []sched.Missing) *sched.Missing {
	for i, m := range list {
		if m.Of == sched.ResourceDeadline {
			return &list[i]
		}
	}

	return nil
}

// Child runs a child process of a measurement if list, the arguments after `lockstep latency`, starts
// one. is reports whether list does.
func Child(list []string) (is bool, err error) {
	if len(list) != 2 {
		return false, nil
	}
	var run func(*turn) error
	switch list[0] {
	case load.ChildWord:
		return true, load.Run(list[1])
	case childMeasure:
		run = (*turn).measure
	case childSupervise:
		run = (*turn).supervise
	default:
		return false, nil
	}

	var t turn
	if err := json.Unmarshal([]byte(list[1]), &t); err != nil {
		return true, fmt.Errorf("latency %s: %w (`lockstep latency` starts it)", list[0], err)
	}
	return true, run(&t)
}

// killWithParent makes the kernel kill cmd when the thread that starts it ends; the caller must lock
// this thread. Ctrl-C does not reach cmd.
func killWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// output runs cmd until it or ctx ends, and returns its standard output. The error is one line.
func output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	return outputUntil(ctx, cmd, unix.SIGKILL)
}

// patience is the time in which a process must end after a signal; then it is killed.
const patience = 5 * time.Second

// outputUntil is output with the signal by which cmd ends when ctx or this process ends.
func outputUntil(ctx context.Context, cmd *exec.Cmd, end syscall.Signal) ([]byte, error) {
	killWithParent(cmd)
	cmd.SysProcAttr.Pdeathsig = end
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel kills cmd when this thread ends
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			done <- err
			return
		}

		stop := context.AfterFunc(ctx, func() {
			_ = cmd.Process.Signal(end)
			time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		})
		defer stop()
		done <- cmd.Wait()
	}()

	err := <-done
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n"); err != nil && line != "" {
		err = fmt.Errorf("%w: %s", err, strings.TrimPrefix(line, "lockstep: "))
	}
	return out.Bytes(), err
}

// measure runs the turn in this process and writes its record to standard output.
func (t *turn) measure() error {
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
	run := m.measureTicker
	if t.Naive {
		run = m.measureNaive
	}
	missing = append(missing, t.thread().Enter()...)
	if m := refusedDeadline(missing); m != nil { // figures of SCHED_FIFO under another name
		return fmt.Errorf("latency: %s: %s", m.What, m.Help)
	}
	if t.Busy {
		load.BusyProcess()
	}
	if err := run(t); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(m.record(missing))
}

// meter counts wake-ups by latency, without allocating.
type meter struct {
	period  int64 // period of the grid, ns
	warmup  int64 // grid points that are not counted
	points  int64 // all grid points, with the warm-up
	passed  int64 // grid points passed so far
	late    sched.Histogram
	missed  int64 // grid points without a wake-up
	overdue int64 // wake-ups at least a period late
}

// recordWakeUp counts a wake-up at now, ns, in which n grid points had passed; the first of them was
// due at due, ns.
//
//go:nosplit
func (m *meter) recordWakeUp(now, due, n int64) {
	m.passed += n
	if m.passed <= m.warmup { // a delay beyond the end of the warm-up is counted
		return
	}
	late := max(0, now-due)
	m.late.Record(late)
	if late >= m.period {
		m.overdue++
	}
	m.missed += n - 1
}

// measureTicker measures the ticker of a run, in a loop that the runtime cannot preempt.
func (m *meter) measureTicker(t *turn) error {
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
		m.recordWakeUp(sched.Now(), grid.Due(m.passed+1), n)
	}
}

// measureNaive measures the simplest ticker in Go: a goroutine that reads a timerfd.
func (m *meter) measureNaive(t *turn) error {
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

		m.recordWakeUp(sched.Now(), grid.Due(m.passed+1), int64(binary.NativeEndian.Uint64(buf)))
	}

	return nil
}

// record returns the counts as a record.
func (m *meter) record(missing []sched.Missing) *record {
	r := newRecord(&m.late)
	r.Missed, r.OverPeriod, r.Missing = m.missed, m.overdue, missing
	return r
}

// supervise starts a measuring child. Meanwhile it loads the other CPUs and its garbage collector:
// the worst case of a supervisor.
func (t *turn) supervise() error {
	runtime.LockOSThread() // the kernel kills the child when this thread ends
	cmd := t.command(childMeasure)
	killWithParent(cmd)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	_ = sched.Confine(os.Getpid(), t.CPU, 0) // fails on a host with one CPU, which both processes then share
	load.BusyProcess()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	return nil
}

// childEnv returns the environment of a child: Go's defaults, or the settings of the ticking
// process.
func childEnv(defaults bool) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "GOGC=") || strings.HasPrefix(e, "GOMEMLIMIT=") || strings.HasPrefix(e, "GOMAXPROCS=")
	})
	if defaults {
		return env
	}
	return append(env, "GOGC=off", "GOMEMLIMIT=off", "GOMAXPROCS=2")
}

// command returns the command of this binary as a child of `lockstep latency` for a turn.
func (t *turn) command(child string) *exec.Cmd {
	text, err := json.Marshal(t)
	if err != nil {
		panic("latency: a turn is not JSON") // it has numbers and strings only
	}
	cmd := exec.Command("/proc/self/exe", "latency", child, string(text))
	cmd.Args[0] = "lockstep"
	cmd.Env = childEnv(t.Naive || child == childSupervise)
	return cmd
}
