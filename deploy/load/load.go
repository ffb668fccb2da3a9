// Package load owns the processes that load CPUs on purpose: one process of this binary for each kind
// of load. The processes have no priority and end with the process that started them.
//
// The package does not choose the CPUs and does not measure. A soak, a certificate and the
// measurement of latencies start the same load.
package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The kinds of load that Start knows.
const (
	CPU       = "cpu"       // computation on every CPU
	Memory    = "memory"    // copies of memory larger than the caches
	Scheduler = "scheduler" // threads that wake each other through pipes, and short sleeps
	Garbage   = "garbage"   // Go process with a permanently running garbage collector
)

// ChildWord is the argument in `lockstep latency load KIND`, the command line of a load process.
const ChildWord = "load"

// Errors of loads, for errors.Is.
var (
	ErrUnknown = errors.New("unknown kind of load")
	ErrEnded   = errors.New("the load process ended before it was stopped")
)

// Kinds lists the kinds of load.
func Kinds() []string { return []string{CPU, Memory, Scheduler, Garbage} }

// Start starts one process of each kind on cpus and returns when all run; an empty cpus stands for
// all CPUs of this process. The processes execute this binary without priority, and end with this
// process. stop ends them; its error names the processes that had ended before.
func Start(cpus []int, kinds ...string) (stop func() error, err error) {
	for _, kind := range kinds {
		if !slices.Contains(Kinds(), kind) {
			return nil, fmt.Errorf("load: %w %q; use %s", ErrUnknown, kind, strings.Join(Kinds(), ", "))
		}
	}

	ready, end, done := make(chan error), make(chan struct{}), make(chan error)
	go func() {
		// The children inherit the CPUs of this thread, and the kernel kills them when this thread
		// ends. The thread is never unlocked: it ends with the goroutine.
		runtime.LockOSThread()
		list, err := startLoads(cpus, kinds)
		ready <- err
		<-end
		done <- endLoads(list)
	}()

	stop = func() error {
		close(end)
		return <-done
	}

	if err := <-ready; err != nil {
		_ = stop()
		return nil, err
	}

	return stop, nil
}

// process is a load process.
type process struct {
	cmd    *exec.Cmd
	kind   string
	output *os.File // pipe from the process: a byte when it runs
}

func startLoads(cpus []int, kinds []string) (list []process, err error) {
	if len(cpus) > 0 {
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return nil, fmt.Errorf("load: on CPUs %v: %w", cpus, os.NewSyscallError("sched_setaffinity", err))
		}
	}

	for _, kind := range kinds {
		p, err := startLoad(kind)
		if err != nil {
			return list, fmt.Errorf("load: %s: %w", kind, err)
		}
		list = append(list, p)
		if p.endsAtStart(20 * time.Second) {
			return list, fmt.Errorf("load: %s: the process ended at its start", kind)
		}
	}

	return list, nil
}

func startLoad(kind string) (p process, err error) {
	output, input, err := os.Pipe()
	if err != nil {
		return p, err
	}
	defer input.Close()
	p = process{cmd: exec.Command("/proc/self/exe", "latency", ChildWord, kind), kind: kind, output: output}
	p.cmd.Args[0] = "lockstep"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // Ctrl-C does not reach it
	p.cmd.Stdout = input
	if err := p.cmd.Start(); err != nil {
		output.Close()
		return p, err
	}

	return p, nil
}

// endsAtStart waits at most d for the first byte of the process and reports whether the process ends
// before it.
func (p process) endsAtStart(d time.Duration) bool {
	_ = p.output.SetReadDeadline(time.Now().Add(d))
	_, err := p.output.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// ended reports whether the process has ended. It does not reap the process.
func (p process) ended() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// endLoads kills the processes; the error names the processes that had ended before.
func endLoads(list []process) (err error) {
	for _, p := range list {
		if p.ended() {
			err = errors.Join(err, fmt.Errorf("load: %s: %w", p.kind, ErrEnded))
		}
		_ = p.cmd.Process.Kill()
	}

	for _, p := range list {
		_ = p.cmd.Wait()
		p.output.Close()
	}

	return err
}

// Run runs the load kind in this process until the process is killed. It writes a byte to
// standard output when the load runs.
func Run(kind string) error {
	n := runtime.GOMAXPROCS(0) // CPUs of this process
	switch kind {
	case CPU:
		for range n {
			go computeForever()
		}
	case Memory:
		const most = 8 // goroutines; they saturate the memory of a socket, 64 MB each
		for range min(n, most) {
			go copyForever()
		}
	case Scheduler:
		const most = 16
		for range min(n, most) {
			if err := startSwitching(); err != nil {
				return err
			}
		}
	case Garbage:
		for range min(n, 2) { // the collector uses the other CPUs
			go allocateForever()
		}
	default:
		return fmt.Errorf("load: %w %q", ErrUnknown, kind)
	}

	if _, err := os.Stdout.WriteString("."); err != nil {
		return err
	}
	select {}
}

// BusyProcess starts goroutines that load this process and its garbage collector; it returns at
// once.
func BusyProcess() {
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		go computeForever()
	}
	go allocateForever()
}

func computeForever() {
	for x := uint64(1); ; x = x*6364136223846793005 + 1 {
		if x == 0 {
			runtime.Gosched() // never reached; keeps the loop
		}
	}
}

// copyForever copies between two blocks of 32 MB.
func copyForever() {
	const size = 32 << 20
	from, to := make([]byte, size), make([]byte, size)
	for i := 0; ; i++ {
		from[i%size]++
		copy(to, from)
		from, to = to, from
	}
}

// startSwitching starts pairs of threads that wake each other through pipes, as hackbench does, and
// threads that sleep for 50 µs.
func startSwitching() error {
	const pairs, sleepers = 8, 4
	for range pairs {
		var ping, pong [2]int
		if err := unix.Pipe2(ping[:], unix.O_CLOEXEC); err != nil {
			return os.NewSyscallError("pipe2", err)
		}
		if err := unix.Pipe2(pong[:], unix.O_CLOEXEC); err != nil {
			return os.NewSyscallError("pipe2", err)
		}
		go relay(ping[0], pong[1])
		go relay(pong[0], ping[1])
		if _, err := unix.Write(ping[1], make([]byte, 100)); err != nil {
			return os.NewSyscallError("write", err)
		}
	}

	for range sleepers {
		go func() {
			runtime.LockOSThread()
			pause := unix.Timespec{Nsec: 50_000}
			for {
				_ = unix.Nanosleep(&pause, nil)
			}
		}()
	}

	return nil
}

// relay copies from one pipe to another.
func relay(from, to int) {
	runtime.LockOSThread()
	for buf := make([]byte, 100); ; {
		n, err := unix.Read(from, buf)
		if err == nil {
			_, err = unix.Write(to, buf[:n])
		}
		if err != nil && err != unix.EINTR {
			return
		}
	}
}

// tree is a binary tree of live memory that the collector has to mark.
type tree struct {
	left, right *tree
	data        []byte
}

func newTree(depth int) *tree {
	if depth == 0 {
		return &tree{data: make([]byte, 32)}
	}
	return &tree{left: newTree(depth - 1), right: newTree(depth - 1)}
}

// allocateForever allocates trees and keeps some MB of them alive.
func allocateForever() {
	live := make([]*tree, 16)
	for i := 0; ; i++ {
		live[i%len(live)] = newTree(12)
	}
}
