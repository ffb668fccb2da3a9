package unitprogram

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/sched"
)

// Stepped is a program in virtual time. What it does to its buses depends on the messages alone that
// the program sends, in their order: the bench reads them only while it waits for kindDone. It is not
// safe for concurrent use.
type Stepped struct {
	Output host.Capture            // output of the program
	Sent   func(bus int, at int64) // gets the instant of each frame that a bus has taken, ns; may be nil

	spec    Spec
	buses   []*can.Bus // the program's ends; nil: something else is there
	stopped func() bool
	p       *process
	c       *connection
	ahead   []message // received while a send waited

	tick   int64 // tick that the bench waits for
	done   int64 // instant before which the program is done, ns
	last   int64 // instant of the program's last frame, ns
	sent   []int // frames of the program since the last tick, by bus
	counts counts
}

// Limits of a program between two ticks. A tick reads rt.MaxRecv frames of a bus.
const (
	maxDone  = 256   // messages of kindDone
	maxAhead = 16384 // messages that the bench keeps while the program does not read
)

// Times for the end of a program in virtual time.
const (
	endByItself = 10 * time.Second // from the end of the socket
	endByTerm   = 2 * time.Second  // from SIGTERM
)

// Start starts a program in virtual time, at instant 0, and waits for its greeting. buses are the
// program's ends of its buses. stopped is asked while the bench waits.
func Start(s Spec, buses []*can.Bus, stopped func() bool) (*Stepped, error) {
	u := &Stepped{spec: s, buses: buses, stopped: stopped, sent: make([]int, len(buses))}
	c, theirs, err := newConnection()
	if err != nil {
		return nil, err
	}
	if u.p, err = s.start(theirs, &u.Output); err != nil {
		c.close()
		return nil, err
	}
	u.c = c
	c.greet(&u.spec, true)
	m, err := u.next(sched.Now() + int64(s.Hang))
	if err == nil {
		err = checkHello(&m)
	}
	if err != nil {
		return u, u.fail(err)
	}
	return u, u.send(&message{kind: kindStart})
}

// Advance waits until the program is done with all before a grid point, ns, and sends its frames.
// It is called once per tick.
func (u *Stepped) Advance(now int64) error {
	u.tick++
	clear(u.sent)
	if u.done >= now {
		return nil
	}
	if err := u.send(&message{kind: kindGo, time: now}); err != nil {
		return err
	}
	until, more := sched.Now()+int64(u.spec.Hang), maxDone
	for u.done < now {
		m, err := u.next(until)
		switch {
		case err != nil:
			return u.fail(err)
		case m.kind == kindFrame:
			if err := u.sendFrame(&m, now); err != nil {
				return u.fail(err)
			}
		case m.kind == kindDone && more > 0:
			u.done = max(u.done, m.time)
			more--
		case m.kind == kindDone:
			return u.fail(&floodError{fmt.Sprintf("%d times that it was done", maxDone)})
		default:
			return u.fail(&garbageError{fmt.Sprintf("a message of kind %d", m.kind)})
		}
	}
	return nil
}

// sendFrame sends a frame of the program on its bus, at the instant of the frame. It is at least the
// instant before which the program is done and that of its last frame, and at most now, ns.
func (u *Stepped) sendFrame(m *message, now int64) error {
	f, err := m.frame(u.spec.Buses)
	if err != nil {
		return &garbageError{err.Error()}
	}
	if u.sent[m.bus]++; u.sent[m.bus] > rt.MaxRecv {
		return &floodError{fmt.Sprintf("more than %d frames on %s", rt.MaxRecv, u.spec.Buses[m.bus].Name)}
	}
	if bus := u.buses[m.bus]; bus != nil && bus.Send(&f) {
		u.counts.sent++
		u.last = min(max(m.time, u.done, u.last), now)
		if u.Sent != nil {
			u.Sent(int(m.bus), u.last)
		}
	} else {
		u.counts.dropped++
	}
	return nil
}

// Receive gives the program a frame that the loop has sent at an instant, ns.
func (u *Stepped) Receive(bus int, f *can.Frame, now int64) error {
	u.counts.received++
	return u.send(frameMessage(bus, f, now))
}

// send sends a message. While the socket is full, it reads the messages of the program, which may
// itself wait for room. A closed socket is an error of the next Advance.
func (u *Stepped) send(m *message) error {
	until := sched.Now() + int64(u.spec.Hang)
	for !u.c.send(m) && !u.c.closed.Load() {
		for {
			next, ok, err := u.c.receive()
			if err != nil && !errors.Is(err, errClosed) {
				return u.fail(err)
			}
			if !ok {
				break
			}
			if u.ahead = append(u.ahead, next); len(u.ahead) > maxAhead {
				return u.fail(&floodError{fmt.Sprintf("more than %d messages and read none", maxAhead)})
			}
		}
		switch {
		case u.stopped():
			return u.fail(errStopped)
		case sched.Now() > until:
			return u.fail(errHang)
		case u.p.ended():
			return nil
		}
		u.c.wait(unix.POLLIN | unix.POLLOUT)
	}
	return nil
}

// next returns the next message of the program.
func (u *Stepped) next(until int64) (message, error) {
	if len(u.ahead) > 0 {
		m := u.ahead[0]
		u.ahead = u.ahead[1:]
		return m, nil
	}
	return u.c.next(until, u.p.ended, u.stopped)
}

// fail returns the error of the run for an error of the program.
func (u *Stepped) fail(err error) error {
	when := " before " + u.spec.at(u.tick)
	if u.tick == 0 {
		when = " before its greeting"
	}
	return u.spec.failure(err, when, u.p)
}

// Close ends the program and its process group. It returns the last line, and an error if the program
// did not end as it should; failed: the program is to blame for the end of the run, and is not waited
// for.
func (u *Stepped) Close(failed bool) (line string, err error) {
	u.c.close()
	if failed {
		u.p.signal(unix.SIGKILL)
	}
	u.p.stop(endByItself, endByTerm)
	if why := u.p.failure(); why != "" && !failed {
		err = fmt.Errorf("%s %s", u.spec.Name, why)
	}
	return u.spec.Name + ": " + u.counts.String() + u.p.endText(), err
}
