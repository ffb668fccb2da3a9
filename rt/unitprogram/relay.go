package unitprogram

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/sched"
)

// RelayCommand is the first argument of a relay process; the JSON of a Spec follows. It inherits the
// status block as descriptor 3, then its ends of the pairs in the order of Spec.Buses, or without pairs
// a pipe that ends with the supervisor.
const RelayCommand = "program"

// Descriptors of a relay.
const (
	statusFD = 3
	firstFD  = 4
)

// Arg returns the argument that follows RelayCommand.
func (s *Spec) Arg() string {
	text, _ := json.Marshal(s) // plain data
	return string(text)
}

// Times for the end of a program in real time. Their sum is less than the supervisor's patience.
const (
	relayByItself = 900 * time.Millisecond // from the end of the socket
	relayByTerm   = 600 * time.Millisecond // from SIGTERM
)

// A program in real time floods if it sends more frames in floodTime than its buses could carry: a bus
// of 1 Mbit/s carries at most 22 frames in 1 ms.
const (
	floodTime   = 100 * time.Millisecond
	floodFrames = 2500 // per bus
)

// relay is the state of a relay process.
type relay struct {
	spec   Spec
	status *rt.StatusBlock
	p      *process
	c      *connection
	to     []*can.Bus // sends the program's frames, by bus of the bench; nil: the socket does not carry it
	from   []*can.Bus // receives the loop's frames

	stopping  atomic.Bool    // receive and forward end
	serving   sync.WaitGroup // of receive and forward
	signalled bool           // a signal has ended the run
	sent      counts         // of receive: sent and dropped
	counts    counts         // of forward: received and unread
	stuck     int64          // of forward: time of sched.Now since which the program reads nothing; 0: it reads
}

// Relay runs a relay process until the run or the program ends. It writes a line to standard output when
// the program listens, and a last line; the output of the program goes to standard error. A *host.Exit
// carries exit code 1 if the program failed.
func Relay(args []string) error {
	r, err := newRelay(args)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// newRelay reads the arguments and the inherited descriptors.
func newRelay(args []string) (r *relay, err error) {
	r = &relay{}
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &r.spec) != nil {
		return nil, errors.New("program: `lockstep run` starts this command")
	}
	signal.Ignore(syscall.SIGPIPE)                                  // the reader of the output may end first
	_ = os.WriteFile("/proc/self/comm", []byte("lockstep-unit"), 0) // name in ps; best effort
	if r.status, err = rt.MapStatusBlock(os.NewFile(statusFD, "status block")); err != nil {
		return nil, err
	}
	// Before Linux 3.4 a process that has left the group of the program outlives it.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	r.spec.onlyChild = true
	fd := uintptr(firstFD)
	for _, bus := range r.spec.Buses {
		var to, from *can.Bus
		if bus.Interface == "" {
			f := os.NewFile(fd, bus.Name)
			if to, err = can.Share(f); err == nil {
				from, err = can.Inherit(f)
			}
			if err != nil {
				return nil, err
			}
			fd++
		}
		r.to, r.from = append(r.to, to), append(r.from, from)
	}
	return r, r.leaveCPU()
}

// leaveCPU keeps this process and its children off the CPU of the loop.
func (r *relay) leaveCPU() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	if r.spec.CPU < 0 || !set.IsSet(r.spec.CPU) || set.Count() == 1 {
		return nil
	}
	set.Clear(r.spec.CPU)
	return sched.Allow(os.Getpid(), set, 0)
}

// run starts the program and serves it until the end.
func (r *relay) run() error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := r.start(signals); err != nil {
		if r.p != nil {
			r.p.signal(syscall.SIGKILL)
			<-r.p.done
		}
		return err
	}
	err := r.await(signals, r.serve())
	r.end(err != nil)
	why := r.p.failure()
	if s, ok := r.p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && r.signalled && s.Signaled() {
		why = "" // a service manager signals all processes of a run
	}
	switch {
	case err != nil:
	case r.stuck != 0:
		err = fmt.Errorf("%s hangs: at the end of the run it had read nothing for %.3f s", r.spec.Name,
			float64(sched.Now()-r.stuck)/1e9)
	case why != "":
		err = fmt.Errorf("%s %s", r.spec.Name, why)
	}
	if r.c != nil {
		r.counts.sent, r.counts.dropped = r.sent.sent, r.sent.dropped
		fmt.Printf("%s: %s%s\n", r.spec.Name, &r.counts, r.p.endText())
	} else {
		fmt.Printf("%s: on %s, %s\n", r.spec.Name, r.spec.onInterfaces(), r.p.how())
	}
	return err
}

// start starts the program. With a socket it waits for the greeting, without one for nothing.
func (r *relay) start(signals <-chan os.Signal) (err error) {
	if !r.spec.hasSocket() {
		if r.p, err = r.spec.start(nil, os.Stderr); err == nil {
			fmt.Printf("%s: started on %s\n", r.spec.Name, r.spec.onInterfaces())
		}
		return err
	}
	c, theirs, err := newConnection()
	if err != nil {
		return err
	}
	if r.p, err = r.spec.start(theirs, os.Stderr); err != nil {
		return err
	}
	r.c = c
	c.greet(&r.spec, false)
	m, err := c.next(sched.Now()+int64(r.spec.Hang), r.p.ended, func() bool { return len(signals) > 0 })
	if err == nil {
		err = checkHello(&m)
	}
	if err != nil {
		return r.spec.failure(err, " before its greeting", r.p)
	}
	fmt.Printf("%s: ready\n", r.spec.Name)
	return nil
}

// onInterfaces lists the CAN interfaces of the program for messages.
func (s *Spec) onInterfaces() string {
	var names []string
	for _, bus := range s.interfaces() {
		names = append(names, bus.Interface)
	}
	return strings.Join(names, ", ")
}

// serve starts the goroutines between the buses and the program. failed gets the error of the program,
// or nil when the run is over.
func (r *relay) serve() (failed <-chan error) {
	results := make(chan error, 2)
	if r.c == nil {
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(firstFD, "supervisor"))
			results <- nil
		}()
		return results
	}
	r.serving.Go(func() { results <- r.forward() })
	r.serving.Go(func() { results <- r.receive() })
	return results
}

// await waits for the end of the run or of the program, and returns the error of the program.
func (r *relay) await(signals <-chan os.Signal, results <-chan error) (err error) {
	select {
	case <-signals:
		r.signalled = true
		return nil
	case err = <-results:
		if !errors.Is(err, errClosed) {
			break
		}
	case <-r.p.done:
		err = errClosed
	}
	tick := int64(r.status.Ticks.Load())
	if errors.Is(err, errClosed) { // the run may be ending at the same time
		select {
		case <-signals:
			r.signalled = true
			return nil
		case more := <-results:
			if more == nil {
				return nil
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
	if err == nil {
		return nil
	}
	return r.spec.failure(err, " after "+r.spec.at(tick), r.p)
}

// end ends the goroutines, and then the program; failed: at once.
func (r *relay) end(failed bool) {
	r.stopping.Store(true)
	r.serving.Wait()
	if r.c != nil {
		r.c.close()
	}
	switch {
	case failed:
		r.p.signal(syscall.SIGKILL)
	case r.c == nil: // it sees no end of a socket
		r.p.signal(syscall.SIGTERM)
	}
	r.p.stop(relayByItself, relayByTerm)
}

// forward gives the program the frames of the loop. It returns nil when all pairs are closed, and an
// error if the program reads nothing for too long.
func (r *relay) forward() error {
	fds, open := r.pollList()
	var frames [64]can.Frame
	started := false
	for open > 0 && !r.stopping.Load() {
		wait := 1 // ms
		if started {
			wait = int(pollTime.Milliseconds())
		}
		_, _ = unix.Poll(fds, wait)
		if start := int64(r.status.StartNs.Load()); !started && start != 0 {
			started = true
			r.c.send(&message{kind: kindStart, time: start})
		}
		for i := range fds {
			if fds[i].Fd < 0 || fds[i].Revents == 0 {
				continue
			}
			bus := r.from[i]
			before := bus.Stats.Down
			for j := range bus.Recv(frames[:]) {
				r.pass(i, &frames[j])
			}
			if bus.Stats.Down != before {
				fds[i].Fd = -1
				open--
			}
		}
		if r.stuck != 0 && sched.Now()-r.stuck > int64(r.spec.Hang) {
			return errHang
		}
	}
	return nil
}

// pollList returns the pairs in the order of the buses; other buses have descriptor -1.
func (r *relay) pollList() (fds []unix.PollFd, open int) {
	for _, bus := range r.from {
		fd := int32(-1)
		if bus != nil {
			fd = int32(bus.Fd())
			open++
		}
		fds = append(fds, unix.PollFd{Fd: fd, Events: unix.POLLIN})
	}
	return fds, open
}

// pass gives the program a frame, with the time since instant 0. It never waits: a program that does not
// read loses the frame.
func (r *relay) pass(bus int, f *can.Frame) {
	now := sched.Now()
	if r.c.send(frameMessage(bus, f, now-int64(r.status.StartNs.Load()))) {
		r.counts.received++
		r.stuck = 0
		return
	}
	r.counts.unread++
	if r.stuck == 0 {
		r.stuck = now
	}
}

// receive sends the frames of the program on its buses. It returns the error of the program, or nil when
// it is asked to stop.
func (r *relay) receive() error {
	window, left := int64(0), 0
	for !r.stopping.Load() {
		m, ok, err := r.c.receive()
		switch {
		case err != nil:
			return err
		case !ok:
			r.c.wait(unix.POLLIN)
			continue
		case m.kind != kindFrame:
			return &garbageError{fmt.Sprintf("a message of kind %d", m.kind)}
		}
		f, err := m.frame(r.spec.Buses)
		if err != nil {
			return &garbageError{err.Error()}
		}
		if now := sched.Now(); now > window+int64(floodTime) {
			window, left = now, floodFrames*len(r.spec.Buses)
		}
		if left--; left < 0 {
			return &floodError{fmt.Sprintf("more than %d frames within %v", floodFrames*len(r.spec.Buses), floodTime)}
		}
		bus := r.to[m.bus]
		down := bus.Stats.Down
		if bus.Send(&f) {
			r.sent.sent++
		} else if bus.Stats.Down == down { // full, not closed by the end of the run
			r.sent.dropped++
		}
	}
	return nil
}
