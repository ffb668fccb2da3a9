package certify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/soak"
	"lockstep/rt/supervisor"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
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
	bench   *bench.Bench
	plan    *bench.Handover
	thread  sched.Thread // of the loop
	against []string     // the host: what speaks against it
	beside  *latency.Reference
	page    *rt.StatusBlock
	trouble error // of cyclictest
	rounds  int
	stolen  latency.Stolen // of the loop's CPU
	end     context.CancelFunc
	done    chan struct{} // closed when no cyclictest runs any more
}

// Measure runs the bench and returns its certificate, with an error where the run broke
// a policy or was judged to have failed; a run that did not begin has none.
func (o Order) Measure() (*Certificate, error) {
	s := &session{Order: o, c: &Certificate{Format: 1, Asked: o.Asked}}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if err := s.look(); err != nil {
		return nil, err
	}
	fmt.Fprint(o.Out, "what a tick costs, by lock set, is measured first\n")
	var err error
	if s.c.Worst, err = check.MeasureWorstTick(s.plan); err != nil {
		return nil, err
	}
	s.beside = &latency.Reference{
		CPU: s.thread.CPU, Priority: s.thread.Priority, Period: time.Duration(s.plan.Tables.PeriodNs),
	}
	s.trouble = s.beside.Prepare()
	defer s.beside.Close()
	return s.run()
}

// prepare reads the bench, a file or an embedded one.
func (s *session) prepare() (err error) {
	if s.bench, err = bench.Load(s.Bench); err != nil {
		return err
	}
	if err = s.bench.SetBuses(s.Bus); err != nil {
		return err
	}
	if s.plan, err = bench.Prepare(s.bench); err != nil {
		return err
	}
	// Another bench may have the first choice; who comes in between is seen by begin.
	s.plan.Thread.CPU = host.FreeCPU(s.bench.CPU)
	s.thread, s.c.Deadline = s.plan.Thread, s.plan.Thread.Deadline
	for _, bus := range s.bench.Buses {
		s.c.Buses = append(s.c.Buses, Bus{bus.Name.Text, bus.Interface.Text})
	}
	v := &s.c.Versions
	v.Lockstep, v.Go, v.Arch = host.Version(), runtime.Version(), host.Arch()
	v.Modified, _ = host.Changed()
	if v.Binary, err = host.Executable(); err != nil {
		return fmt.Errorf("certify: %w", err)
	}
	return nil
}

// look takes the fingerprint of the host, and what speaks against it.
func (s *session) look() error {
	ask := doctor.Ask{CPU: s.thread.CPU, Priority: max(s.thread.Priority, 1), Timer: s.plan.Timer.Sleep}
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
	if ask.Timer == sched.Timerfd { // as the run will, so that the doctor sees what holds then
		lower, _ := host.RaiseTimers(ask.CPU, min(s.thread.Priority+1, 99), "certify")
		defer lower()
	}

	d, err := doctor.Examine("/", ask)
	if err != nil {
		return err
	}
	h := hostinfo.Read("/", ask.CPU)
	s.c.Doctor, s.c.Box, s.against = &d, h.Machine(), objections(h, d)
	return nil
}

// run runs the bench as a soak, and closes the certificate.
func (s *session) run() (*Certificate, error) {
	s.Begin()
	leg := soak.Soak{
		Options: supervisor.Options{
			For: time.Duration(s.ForNs), Bus: s.Bus, BestEffort: s.BestEffort,
			Out: s.Out, Every: time.Minute, Choose: s.Choose,
		},
		Load: s.Load, UnitBus: s.UnitBus, OnFirstTick: s.begin,
	}
	r, err := leg.RunWhole(s.bench)
	if r == nil {
		return nil, err
	}
	s.finish(r)
	if text := s.stolen.Text(); s.page != nil && text != "" {
		s.against = append(s.against, text)
	}
	if s.trouble != nil {
		s.against = append(s.against, "cyclictest: "+s.trouble.Error())
	}
	if int64(s.c.Run.Ticks+s.c.Run.Unserved) < s.ForNs/s.c.Run.StepNs {
		s.c.CutShort = s.c.Run.Ended
	}
	s.c.Made = time.Now().UTC().Format(time.RFC3339)
	s.c.judge(s.against)
	return s.c, err
}

// begin is called soon after the first tick.
func (s *session) begin(r *supervisor.Session) {
	s.c.Versions.Files, _ = r.Handover.Hashes() // none where a file cannot be read any more
	was := s.thread.CPU
	s.thread = r.Handover.Thread
	moved := s.thread.CPU != was // another bench had taken the first choice
	s.beside.CPU = s.thread.CPU
	s.stolen = latency.WatchStolen(s.thread.CPU)
	s.page, s.done = r.Status, make(chan struct{})
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	go func() {
		defer close(s.done)
		if moved {
			if err := s.look(); err != nil {
				s.against = append(s.against, fmt.Sprintf("the host was not looked at for CPU %d: %v", s.thread.CPU, err))
			}
		}

		if s.trouble == nil {
			s.turns(ctx)
		}
	}()
}

// slot is how long a round lasts about, of which cyclictest runs in one half; there are
// mostRounds at most. It ends margin before the end of its half at least: the points that it
// misses it makes up for after it.
const (
	slot       = time.Minute
	mostRounds = 60
	margin     = 500 * time.Millisecond
)

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

		err := s.beside.Turn(ctx, time.Duration(until-sched.Now())-max(margin, half/20), start, &s.page.Late)
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
	s.c.Late, s.c.Tick = distribution(&s.page.Late), distribution(&s.page.Work)
	s.c.Response = distribution(&s.page.Response)
	loop, peer, alone := s.beside.Figures()
	if loop == nil {
		return
	}
	s.c.Beside = &Beside{
		Rounds: s.rounds, Loop: loop, Cyclictest: peer, Alone: alone, Priority: s.thread.Priority, PhaseNs: r.StepNs / 2,
	}
	if r.Tick.P99 > r.StepNs/2 { // then cyclictest waits for ticks
		loop.RatioP50, loop.RatioP99, loop.PooledP50, loop.PooledP99 = nil, nil, nil, nil
		const text = "cyclictest had to wait for ticks of %v and more, half of the period: there is no ratio"
		s.against = append(s.against, fmt.Sprintf(text, time.Duration(r.Tick.P99).Round(time.Microsecond)))
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
