package certify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockstep/deploy/doctor"
	"lockstep/deploy/hostinfo"
	"lockstep/deploy/latency"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Order is a measurement that is wanted.
type Order struct {
	Asked
	Load   func(cpus []int) (what string, stop func() error, err error) // nil: none
	Choose bench.Chooser                                                // of Asked.Kernel
	Out    *os.File
	Begin  func() // is called when the preparations are over, and signals are the run's
}

// session is a measurement under way.
type session struct {
	Order
	c       *Certificate
	host    []string // what speaks against the host
	beside  *latency.Reference
	page    *rt.Page
	loop    loop
	trouble error // of cyclictest
	rounds  int
	begun   time.Time
	stolen  int64 // of the loop's CPU then, ticks of 10 ms
	end     context.CancelFunc
	done    chan struct{} // closed when no cyclictest runs any more
}

// Measure runs the bench and returns its certificate, with an error where the run broke
// a policy or was judged to have failed; a run that did not begin has none.
func (o Order) Measure() (*Certificate, error) {
	s := &session{Order: o, c: &Certificate{Format: 1, Asked: o.Asked}}
	p, err := prepare(o.Bench, o.Bus)
	if err != nil {
		return nil, err
	}
	s.loop, s.c.Buses, s.c.Deadline = p.loop, p.buses, p.loop.Deadline
	if s.c.Versions, err = versions(); err != nil {
		return nil, err
	}
	if err := s.look(); err != nil {
		return nil, err
	}
	fmt.Fprint(o.Out, "what a tick costs, by lock set, is measured first\n")
	if s.c.Worst, err = p.worst(); err != nil {
		return nil, err
	}
	s.beside = &latency.Reference{CPU: s.loop.CPU, Priority: s.loop.Priority, Period: s.loop.Period}
	s.trouble = s.beside.Prepare()
	defer s.beside.Close()
	return s.run(p)
}

// look takes the fingerprint of the host, and what speaks against it.
func (s *session) look() error {
	ask := doctor.Ask{CPU: s.loop.CPU, Priority: max(s.loop.Priority, 1), Timer: s.loop.Timer}
	for _, b := range s.c.Buses {
		if b.Interface != "pair" && !strings.HasPrefix(b.Interface, "file:") {
			ask.Buses = append(ask.Buses, b.Interface)
		}
	}
	if s.page != nil {
		ask.Loop = int(s.page.Thread.Load())
	}
	if s.UnitBus != "" {
		ask.Buses = append(ask.Buses, s.UnitBus)
	}
	lower := s.loop.raiseTimers() // as the run will, so that the doctor sees what holds then
	defer lower()
	d, err := doctor.Examine("/", ask)
	if err != nil {
		return err
	}
	host := hostinfo.Read("/", ask.CPU)
	s.c.Doctor, s.c.Box = &d, host.Box()
	s.host = objections(host, d)
	return nil
}

// run runs the bench, and closes the certificate.
func (s *session) run(p *prepared) (*Certificate, error) {
	s.Begin()
	err := p.run(&s.Order, s.begin, s.finish)
	if s.c.Run == nil {
		return nil, err
	}
	const tick = 10 * time.Millisecond // of /proc/stat
	if d := time.Duration(hostinfo.Stolen("/", s.loop.CPU)-s.stolen) * tick; d > 0 && s.page != nil {
		s.host = append(s.host, fmt.Sprintf("the hypervisor kept CPU %d from running for %v of %v", s.loop.CPU, d, time.Since(s.begun).Round(time.Second)))
	}
	if s.trouble != nil {
		s.host = append(s.host, "cyclictest: "+s.trouble.Error())
	}
	if asked := time.Duration(s.ForNs); int64(s.c.Run.Ticks+s.c.Run.Unserved) < int64(asked)/s.c.Run.StepNs {
		s.c.CutShort = s.c.Run.Ended
	}
	s.c.Made = time.Now().UTC().Format(time.RFC3339)
	s.c.judge(s.host)
	return s.c, err
}

// begin is called when the target ticks.
func (s *session) begin(thread sched.Thread, files []bench.Hash, page *rt.Page) {
	s.c.Versions.Files = files
	moved := thread.CPU != s.loop.CPU // another bench had taken the first choice
	s.loop.Thread, s.beside.CPU = thread, thread.CPU
	s.begun, s.stolen = time.Now(), hostinfo.Stolen("/", thread.CPU)
	s.page, s.done = page, make(chan struct{})
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	go func() {
		defer close(s.done)
		if moved {
			s.moved()
		}
		if s.trouble == nil {
			s.turns(ctx)
		}
	}()
}

// moved looks at the host again for the CPU that the loop has got.
func (s *session) moved() {
	if err := s.look(); err != nil {
		s.host = append(s.host, fmt.Sprintf("the host was not looked at for CPU %d: %v", s.loop.CPU, err))
	}
}

// slot is how long a round lasts about, of which cyclictest runs in one half; there are
// mostRounds at most.
const (
	slot       = time.Minute
	mostRounds = 60
	margin     = 500 * time.Millisecond
)

// spare is how long before the end of its half cyclictest is to end: the points that it
// misses it makes up for after it.
func spare(half time.Duration) time.Duration { return max(margin, half/20) }

// turns lets cyclictest run beside the loop in one half of each round; which one it is
// alternates.
func (s *session) turns(ctx context.Context) {
	length := time.Duration(s.ForNs)
	rounds := min(max(int(length/slot), 1), mostRounds)
	half := length / time.Duration(2*rounds)
	start := int64(s.page.StartNs.Load())
	var failed []error
	defer func() { // however the run ends
		if len(failed) > 0 {
			s.trouble = fmt.Errorf("%d of %d turns failed, and are left out: %w", len(failed), s.rounds+len(failed), failed[0])
		}
	}()
	for i := range 2 * rounds {
		until := start + int64(half)*int64(i+1)
		if with := i%4 == 0 || i%4 == 3; !with {
			before := s.page.Late.Copy()
			goes := sleep(ctx, until)
			s.beside.Without(s.page.Late.Copy().Since(before))
			if !goes {
				return
			}
			continue
		}
		err := s.beside.Turn(ctx, time.Duration(until-sched.Now())-spare(half), start, &s.page.Late)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			s.rounds++
		} else if failed = append(failed, err); len(failed) == 3 {
			break
		}
		if !sleep(ctx, until) {
			return
		}
	}
}

// sleep waits until an instant, ns on CLOCK_MONOTONIC; false: ctx has ended before.
func sleep(ctx context.Context, until int64) bool {
	select {
	case <-time.After(time.Duration(until - sched.Now())):
		return true
	case <-ctx.Done():
		return false
	}
}

// finish is called at the end of the run.
func (s *session) finish(r *report.Report) {
	s.c.Run = r
	if s.page == nil {
		return // no tick came
	}
	s.end()
	<-s.done
	s.c.Late, s.c.Tick, s.c.Response = distribution(&s.page.Late), distribution(&s.page.Work), distribution(&s.page.Response)
	loop, peer, alone := s.beside.Figures()
	if loop == nil {
		return
	}
	s.c.Beside = &Beside{Rounds: s.rounds, Loop: loop, Cyclictest: peer, Alone: alone, Priority: s.loop.Priority, PhaseNs: r.StepNs / 2}
	if r.Tick.P99 > r.StepNs/2 { // then cyclictest waits for ticks
		loop.RatioP50, loop.RatioP99, loop.PooledP50, loop.PooledP99 = nil, nil, nil, nil
		s.host = append(s.host, fmt.Sprintf("cyclictest had to wait for ticks of %v and more, half of the period: there is no ratio", time.Duration(r.Tick.P99).Round(time.Microsecond)))
	}
}

// Complete makes an order as it can be given again from anywhere: a bench and a kernel that
// are files have their absolute paths.
func (a *Asked) Complete() error {
	names := []*string{&a.Bench}
	if a.Kernel != "table" && a.Kernel != "generated" {
		names = append(names, &a.Kernel)
	}
	for _, name := range names {
		if info, err := os.Stat(*name); errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() {
			continue // an embedded one, whatever folder is called like it
		}
		path, err := filepath.Abs(*name)
		if err != nil {
			return fmt.Errorf("certify: %w", err)
		}
		*name = path
	}
	return nil
}
