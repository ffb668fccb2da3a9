// Package load owns load on CPUs, made on purpose: one process of this binary for each kind of
// load, without priority, that ends with the process that started it.
//
// It does not choose the CPUs and measures nothing. It is a separate package because a soak and a
// certificate start the same load as the measurement of latencies, without the rest of it.
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
	CPU       = "cpu"       // computes without end, on every CPU
	Memory    = "memory"    // streams through more memory than a cache holds
	Scheduler = "scheduler" // threads that wake each other through pipes, and short sleeps
	Garbage   = "garbage"   // a Go process whose collector never rests
)

// ChildWord is the word of the command line, `lockstep latency load KIND`, that makes this
// binary the process of a load: Run.
const ChildWord = "load"

// Errors of loads, for errors.Is.
var (
	ErrUnknown = errors.New("no kind of load")
	ErrEnded   = errors.New("its process ended by itself")
)

// Kinds lists the kinds of load.
func Kinds() []string { return []string{CPU, Memory, Scheduler, Garbage} }

// Start loads the CPUs cpus (none: all that the process may use) with one
// process of each kind, this binary executed again; it returns when they run. They
// have no priority, and they end with this process if stop is not called. stop
// ends them and says if one had ended before.
func Start(cpus []int, kinds ...string) (stop func() error, err error) {
	for _, kind := range kinds {
		if !slices.Contains(Kinds(), kind) {
			return nil, fmt.Errorf("load: %w %q; there are %s", ErrUnknown, kind, strings.Join(Kinds(), ", "))
		}
	}

	ready, end, done := make(chan error), make(chan struct{}), make(chan error)
	go func() {
		// The children inherit this thread's CPUs and die with it. It is never
		// unlocked: it ends with the goroutine.
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

// process is one child that loads.
type process struct {
	cmd  *exec.Cmd
	kind string
	said *os.File // closed by its end
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
		// It says so when it runs.
		if p.ended(20 * time.Second) {
			return list, fmt.Errorf("load: %s: it ended at once", kind)
		}
	}

	return list, nil
}

func startLoad(kind string) (p process, err error) {
	said, say, err := os.Pipe()
	if err != nil {
		return p, err
	}
	defer say.Close()
	p = process{cmd: exec.Command("/proc/self/exe", "latency", ChildWord, kind), kind: kind, said: said}
	p.cmd.Args[0] = "lockstep"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // Ctrl-C is not for it
	p.cmd.Stdout = say
	if err := p.cmd.Start(); err != nil {
		said.Close()
		return p, err
	}

	return p, nil
}

// ended waits at most d for a word of the child and tells whether it has ended.
func (p process) ended(d time.Duration) bool {
	_ = p.said.SetReadDeadline(time.Now().Add(d))
	_, err := p.said.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// endLoads kills the children; an error names those that had ended already.
func endLoads(list []process) (err error) {
	for _, p := range list {
		if p.ended(time.Millisecond) {
			err = errors.Join(err, fmt.Errorf("load: %s: %w", p.kind, ErrEnded))
		}
		_ = p.cmd.Process.Kill()
	}

	for _, p := range list {
		_ = p.cmd.Wait()
		p.said.Close()
	}

	return err
}

// Run is what a process of a load does until it is killed.
func Run(kind string) error {
	n := runtime.GOMAXPROCS(0) // the CPUs it may use
	switch kind {
	case CPU:
		for range n {
			go hog()
		}
	case Memory:
		const most = 8 // streams saturate the memory of a socket; 64 MB each
		for range min(n, most) {
			go stream()
		}
	case Scheduler:
		const most = 16
		for range min(n, most) {
			if err := storm(); err != nil {
				return err
			}
		}
	case Garbage:
		for range min(n, 2) { // the collector takes the rest
			go litter()
		}
	default:
		return fmt.Errorf("load: %w %q", ErrUnknown, kind)
	}

	if _, err := os.Stdout.WriteString("."); err != nil {
		return err
	}
	select {}
}

// BusyProcess gives every processor of the runtime something to do, and the collector,
// too; it returns at once.
func BusyProcess() {
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		go hog()
	}
	go litter()
}

// hog computes without end.
func hog() {
	for x := uint64(1); ; x = x*6364136223846793005 + 1 {
		if x == 0 {
			runtime.Gosched() // never reached; keeps the loop
		}
	}
}

// stream copies 32 MB to another 32 MB, without end.
func stream() {
	const size = 32 << 20
	from, to := make([]byte, size), make([]byte, size)
	for i := 0; ; i++ {
		from[i%size]++
		copy(to, from)
		from, to = to, from
	}
}

// storm makes threads that wake each other through pipes, as hackbench does, and
// threads that sleep for a moment.
func storm() error {
	const pairs, sleepers = 8, 4
	for range pairs {
		var there, back [2]int
		if err := unix.Pipe2(there[:], unix.O_CLOEXEC); err != nil {
			return os.NewSyscallError("pipe2", err)
		}
		if err := unix.Pipe2(back[:], unix.O_CLOEXEC); err != nil {
			return os.NewSyscallError("pipe2", err)
		}
		go relay(there[0], back[1])
		go relay(back[0], there[1])
		if _, err := unix.Write(there[1], make([]byte, 100)); err != nil {
			return os.NewSyscallError("write", err)
		}
	}

	for range sleepers {
		go func() {
			runtime.LockOSThread()
			nap := unix.Timespec{Nsec: 50_000}
			for {
				_ = unix.Nanosleep(&nap, nil)
			}
		}()
	}

	return nil
}

// relay sends on what it receives.
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

// leaf is a node of the live memory that the collector has to mark.
type leaf struct {
	left, right *leaf
	data        []byte
}

func grow(depth int) *leaf {
	if depth == 0 {
		return &leaf{data: make([]byte, 32)}
	}
	return &leaf{left: grow(depth - 1), right: grow(depth - 1)}
}

// litter allocates without end, beside some MB of live pointers.
func litter() {
	live := make([]*leaf, 16)
	for i := 0; ; i++ {
		live[i%len(live)] = grow(12)
	}
}
