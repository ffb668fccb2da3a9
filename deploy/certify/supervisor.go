package certify

import (
	"fmt"
	"runtime"
	"time"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/soak"
	"lockstep/rt/supervisor"
	"lockstep/sched"
)

// This file alone calls the supervisor. The other files take its reports, which are plain
// data, and the counters of the loop.

// loop is the loop of a bench.
type loop struct {
	sched.Thread
	Timer  string        // what it sleeps with: sched.Timerfd, sched.Nanosleep
	Period time.Duration // of its grid
}

// prepared is a bench that can be run.
type prepared struct {
	bench *bench.Bench
	plan  *bench.Handover
	loop  loop
	buses []Bus
}

// prepare reads a bench, a file or an embedded one; bus are the interfaces to use instead of
// its own.
func prepare(name string, bus []string) (*prepared, error) {
	b, err := bench.Load(name)
	if err != nil {
		return nil, err
	}
	if err := b.SetBuses(bus); err != nil {
		return nil, err
	}
	h, err := bench.Prepare(b)
	if err != nil {
		return nil, err
	}
	h.Thread.CPU = host.FreeCPU(b.CPU) // another bench may have the first choice; who comes in between is seen by begin
	p := &prepared{bench: b, plan: h, loop: loop{h.Thread, h.Timer.Sleep, time.Duration(h.Tables.PeriodNs)}}
	for _, bus := range b.Buses {
		p.buses = append(p.buses, Bus{bus.Name.Text, bus.Interface.Text})
	}
	return p, nil
}

// worst measures the worst tick.
func (p *prepared) worst() (*check.WorstCase, error) { return check.MeasureWorstTick(p.plan) }

// run runs the bench as a soak. begin is called soon after the first tick, end with the report.
func (p *prepared) run(o *Order, begin func(thread sched.Thread, files []bench.Hash, page *rt.Page), end func(r *report.Report)) error {
	s := soak.Soak{Load: o.Load, UnitBus: o.UnitBus, Options: supervisor.Options{
		For: time.Duration(o.ForNs), Bus: o.Bus, BestEffort: o.BestEffort, Out: o.Out, Every: time.Minute, Choose: o.Choose,
		Follow: &supervisor.Follow{
			Begin: func(b supervisor.Begun) { begin(b.Thread, b.Files, b.Page) },
			End:   end,
		},
	}}
	return s.RunWhole(p.bench)
}

// raiseTimers puts the timers of the loop's CPU above it, as a run does, until lower is
// called.
func (l loop) raiseTimers() (lower func()) {
	if l.Timer != sched.Timerfd {
		return func() {}
	}
	lower, _ = host.RaiseTimers(l.CPU, min(l.Priority+1, 99), "certify")
	return lower
}

// versions are those of this executable.
func versions() (v Versions, err error) {
	v = Versions{Lockstep: host.Version(), Go: runtime.Version(), Arch: host.Arch()}
	v.Modified, _ = host.Changed()
	if v.Binary, err = host.Executable(); err != nil {
		return v, fmt.Errorf("certify: %w", err)
	}
	return v, nil
}
