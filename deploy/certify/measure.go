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
	"lockstep/rt/progress"
	"lockstep/rt/report"
	"lockstep/rt/soak"
	"lockstep/rt/supervisor"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Measurement describes a measurement of a bench on this host.
type Measurement struct {
	Request
	Load   func(cpus []int) (what string, stop func() error, err error) // start of the load; nil for none
	Choose bench.Chooser                                                // chooser of Request.Kernel
	Out    *os.File
	Begin  func() // called before the run takes over the signals

	Progress *progress.Line // of what comes before the run; nil: none
}

// session is a running measurement.
type session struct {
	Measurement
	c            *Certificate
	bench        *bench.Bench
	plan         *bench.Handover
	thread       sched.Thread // thread of the loop
	objections   []string     // objections to the host
	reference    *latency.Reference
	status       *rt.StatusBlock
	referenceErr error // error of cyclictest
	rounds       int   // turns of cyclictest that succeeded
	stolen       latency.Stolen
	cancel       context.CancelFunc // ends the turns of cyclictest
	done         chan struct{}      // closed after the last turn of cyclictest
}

// Measure runs the bench and returns its certificate. A certificate with an error belongs to a run
// that broke a policy or failed a criterion. The certificate is nil if the run did not start.
func (o Measurement) Measure() (*Certificate, error) {
	s := &session{Measurement: o, c: &Certificate{Format: 1, Request: o.Request}}
	defer o.Progress.End()
	if err := s.prepare(); err != nil {
		return nil, err
	}
	o.Progress.Begin(progress.Work{What: "examining the host"})
	if err := s.examineHost(); err != nil {
		return nil, err
	}
	o.Progress.End()
	fmt.Fprint(o.Out, "measuring the worst tick of the plant before the run\n")
	var err error
	if s.c.Worst, err = check.MeasureWorstTick(s.plan, o.Progress); err != nil {
		return nil, err
	}
	s.reference = &latency.Reference{
		CPU: s.thread.CPU, Priority: s.thread.Priority, Period: time.Duration(s.plan.Tables.PeriodNs),
	}
	s.referenceErr = s.reference.Prepare()
	defer s.reference.Close()
	return s.run()
}

// prepare loads the bench, chooses the loop's CPU and fills in the versions.
func (s *session) prepare() (err error) {
	if s.bench, err = bench.Load(s.Bench); err != nil {
		return err
	}
	if err = s.bench.SetBuses(s.Bus); err != nil {
		return err
	}
	s.bench.Progress = s.Progress.BeginPreparation(s.Bench)
	if s.plan, err = bench.Prepare(s.bench); err != nil {
		return err
	}
	if err = s.bench.CheckEnds(); err != nil {
		return err
	}
	// Another bench may take this CPU before the run starts; begin detects that.
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

// examineHost fills in the host and the doctor's checks, and collects the objections to the host.
func (s *session) examineHost() error {
	ask := doctor.Requirements{CPU: s.thread.CPU, Priority: max(s.thread.Priority, 1), Timer: s.plan.Timer.Sleep}
	for _, b := range s.c.Buses {
		if b.Interface != "pair" && !strings.HasPrefix(b.Interface, "file:") {
			ask.Buses = append(ask.Buses, b.Interface)
		}
	}

	if s.status != nil {
		ask.Loop = int(s.status.Thread.Load())
	}
	if s.UnitBus != "" {
		ask.Buses = append(ask.Buses, s.UnitBus)
	}
	if ask.Timer == sched.Timerfd { // the run raises the timers, too: the doctor checks the same state
		lower, _ := host.RaiseTimers(ask.CPU, sched.TimerPriority(s.thread.Priority), "certify")
		defer lower()
	}

	d, err := doctor.Examine("/", ask)
	if err != nil {
		return err
	}
	h := hostinfo.Read("/", ask.CPU)
	s.c.Doctor, s.c.Box, s.objections = &d, h.Machine(), objections(h, d)
	return nil
}

// run runs the bench as a soak of one segment and completes the certificate.
func (s *session) run() (*Certificate, error) {
	s.Begin()
	segment := soak.Soak{
		Options: supervisor.Options{
			For: time.Duration(s.ForNs), Bus: s.Bus, BestEffort: s.BestEffort,
			Out: s.Out, Every: time.Minute, Choose: s.Choose,
		},
		Load: s.Load, UnitBus: s.UnitBus, OnFirstTick: s.begin,
	}
	r, err := segment.RunWhole(s.bench)
	if r == nil {
		return nil, err
	}
	s.finish(r)
	if text := s.stolen.Text(); s.status != nil && text != "" {
		s.objections = append(s.objections, text)
	}
	if s.referenceErr != nil {
		s.objections = append(s.objections, "cyclictest: "+s.referenceErr.Error())
	}
	if int64(s.c.Run.Ticks+s.c.Run.Unserved) < s.ForNs/s.c.Run.StepNs {
		s.c.CutShort = s.c.Run.Ended
	}
	s.c.Made = time.Now().UTC().Format(time.RFC3339)
	s.c.setReasons(s.objections)
	return s.c, err
}

// begin starts the turns of cyclictest; the soak calls it after the first tick.
func (s *session) begin(r *supervisor.Session) {
	s.c.Versions.Files, _ = r.Handover.Hashes() // nil if a file cannot be read any more
	planned := s.thread.CPU
	s.thread = r.Handover.Thread
	moved := s.thread.CPU != planned // another bench has taken the planned CPU
	s.reference.CPU = s.thread.CPU
	s.stolen = latency.WatchStolen(s.thread.CPU)
	s.status, s.done = r.Status, make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.done)
		if moved {
			if err := s.examineHost(); err != nil {
				const text = "the host was not examined for CPU %d: %v"
				s.objections = append(s.objections, fmt.Sprintf(text, s.thread.CPU, err))
			}
		}

		if s.referenceErr == nil {
			s.runTurns(ctx)
		}
	}()
}

// A round lasts about roundLength; cyclictest runs in one half of it. A turn of cyclictest ends at
// least margin before its half: cyclictest makes up for missed points after its last one.
const (
	roundLength = time.Minute
	maxRounds   = 60
	margin      = 500 * time.Millisecond
)

// runTurns runs cyclictest in one half of each round, alternately the first and the second half.
func (s *session) runTurns(ctx context.Context) {
	length := time.Duration(s.ForNs)
	rounds := min(max(int(length/roundLength), 1), maxRounds)
	half := length / time.Duration(2*rounds)
	start := int64(s.status.StartNs.Load())
	var failed []error
	defer func() {
		if len(failed) > 0 {
			s.referenceErr = fmt.Errorf("%d of %d turns failed and are left out: %w", len(failed), s.rounds+len(failed), failed[0])
		}
	}()

	for i := range 2 * rounds {
		until := start + int64(half)*int64(i+1)
		if with := i%4 == 0 || i%4 == 3; !with {
			before := s.status.Late.Copy()
			completed := sleep(ctx, until)
			s.reference.AddAlone(s.status.Late.Copy().Since(before))
			if !completed {
				return
			}
			continue
		}

		err := s.reference.Turn(ctx, time.Duration(until-sched.Now())-max(margin, half/20), start, &s.status.Late)
		if ctx.Err() != nil {
			if s.rounds == 0 {
				failed = append(failed, errors.New("the run ended first"))
			}
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

// sleep waits until an instant, ns on CLOCK_MONOTONIC; it returns false if ctx ends before.
func sleep(ctx context.Context, until int64) bool {
	select {
	case <-time.After(time.Duration(until - sched.Now())):
		return true
	case <-ctx.Done():
		return false
	}
}

// finish ends the turns of cyclictest and puts the figures of the run into the certificate.
func (s *session) finish(r *report.Report) {
	s.c.Run = r
	if s.status == nil {
		return // the run ended before its first tick
	}
	s.cancel()
	<-s.done
	s.c.Late, s.c.Tick = distribution(&s.status.Late), distribution(&s.status.Work)
	s.c.Response = distribution(&s.status.Response)
	loop, cyclictest, alone := s.reference.Figures()
	if loop == nil {
		return
	}
	s.c.Reference = &Reference{
		Rounds: s.rounds, Loop: loop, Cyclictest: cyclictest, Alone: alone, Priority: s.thread.Priority, PhaseNs: r.StepNs / 2,
	}
	if r.Tick.P99 > r.StepNs/2 { // cyclictest, half a period after the grid points, waits for such ticks
		loop.RatioP50, loop.RatioP99, loop.PooledP50, loop.PooledP99 = nil, nil, nil, nil
		const text = "cyclictest had to wait for ticks of %v and more, half of the period: there is no ratio"
		s.objections = append(s.objections, fmt.Sprintf(text, time.Duration(r.Tick.P99).Round(time.Microsecond)))
	}
}

// MakeAbsolute makes the paths of the bench and the kernel absolute; embedded names stay.
func (a *Request) MakeAbsolute() error {
	names := []*string{&a.Bench}
	if a.Kernel != "table" && a.Kernel != "generated" {
		names = append(names, &a.Kernel)
	}
	for _, name := range names {
		if info, err := os.Stat(*name); errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() {
			continue // embedded bench, also if a folder has its name
		}
		path, err := filepath.Abs(*name)
		if err != nil {
			return fmt.Errorf("certify: %w", err)
		}
		*name = path
	}

	return nil
}
