package diagnosis

import (
	"fmt"
	"time"

	"lockstep/io/can"
	"lockstep/sched"
)

// alonePoll is the time between two readings of the bus.
const alonePoll = 500 * time.Microsecond

// Alone runs commands on an interface of the host, without a bench, one after the other, and calls show after each.
// It ends at the first error, and leaves the unit in the default session. stopped ends it early. An answer that no
// request had asked for is shown, and ends nothing.
func Alone(s *Spec, iface string, commands [][]string, show func(Outcome), stopped <-chan struct{}) error {
	var jobs []Job
	for _, words := range commands {
		j, err := s.ParseCommand(words, false)
		if err != nil {
			return err
		}
		jobs = append(jobs, j)
	}
	bus, err := can.Dial(iface, s.Filters())
	if err != nil {
		return err
	}
	defer bus.Close()
	st, err := NewStation(s)
	if err != nil {
		return err
	}
	st.Claim(sched.Now())
	for _, j := range jobs {
		if err := st.Add(j); err != nil {
			return err
		}
		if err := pump(st, bus, show, stopped); err != nil {
			return err
		}
	}
	if st.client != nil && st.client.Session() != 1 {
		if j, err := s.ParseCommand([]string{"session", "default"}, false); err == nil {
			_ = st.Add(j)
			_ = pump(st, bus, func(Outcome) {}, stopped) // the work is done; a unit that is silent now leaves the session by itself
		}
	}
	return nil
}

// pump serves a station on a bus until it is done.
func pump(st *Station, bus *can.Bus, show func(Outcome), stopped <-chan struct{}) error {
	var frames [64]can.Frame
	for {
		now := sched.Now()
		for i := range bus.Recv(frames[:]) {
			st.Receive(&frames[i], now)
		}
		st.Step(now)
		for f, ok := st.Next(now); ok && bus.Send(&f); f, ok = st.Next(now) {
			st.Sent(now)
		}
		st.Step(now)
		for _, o := range st.Take() {
			if show(o); o.Err != nil && !o.Unasked {
				return o.Err
			}
		}
		if !st.Busy() {
			return nil
		}
		select {
		case <-stopped:
			return fmt.Errorf("stopped")
		case <-time.After(alonePoll):
		}
	}
}
