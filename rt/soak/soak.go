// Package soak owns long tests of a bench: the load during a run, the criteria that must hold, and
// the verdict. A soak is one run, or a series of runs, its segments: plain ones, and between them
// scenarios and faults. It can be continued after an interruption. SOAK.md describes its use
// and calls a segment a leg.
//
// The package does not run a bench: each run is a supervisor.Session. A soak starts it, observes it
// (supervisor.Options.OnPoll) and checks its report. The caller passes the function that makes the
// load.
//
// Reading order: soak.go (Soak, one run), verdict.go (the criteria of one run), segments.go (a soak
// of segments, their records, segments that cannot begin), schedule.go (order of the segments),
// state.go (the state file, and the totals that it holds).
package soak

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/supervisor"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Soak is a long test of a bench with its virtual control unit, under a load.
type Soak struct {
	Options supervisor.Options // options of each run; For is the length of the whole soak

	// Load starts the load on these CPUs and returns its description. stop ends the load; it returns
	// an error if the load had ended before. nil: no load.
	Load    func(cpus []int) (what string, stop func() error, err error)
	UnitBus string // interface of the control unit; "": the first bus of the bench

	// OnFirstTick is called once by RunWhole, soon after the first tick, and must not block. If it is
	// set, this process does other work, and its growth is not checked.
	OnFirstTick func(r *supervisor.Session)

	// Options of RunSegments.
	Segment  time.Duration // longest segment; 0: Options.For. The last one may be half as long again
	NoFaults bool          // no segment with one fault of every kind
	State    string        // state file, from which the soak can be continued; "": none
	Fresh    bool          // ignore the state file
	Keep     int           // records preserved in the folder Options.Record, and as many of broken segments

	// Scenarios are the files or embedded scenarios that run between the plain segments; nil: the
	// embedded ones that are listed for the bench.
	Scenarios []string
}

// observation is what a soak observes of one run.
type observation struct {
	soak    *Soak
	r       *supervisor.Session
	segment *segment // nil: RunWhole
	load    string   // description of the load
	loadErr error    // error of stopping the load

	entries     uint64 // entries of the overrun ledger, overwritten ones included
	overwritten uint64 // entries overwritten before they were read
	lost        int64  // grid points lost, by the entries
	maxLost     int64  // most grid points lost at once
	unsentDue   int64  // frames due at lost grid points
	ahead       int64  // polls that found more ticks than the clock allows
	onGridTick  int64  // last tick seen without lag; 0: none

	y           []float64
	first, last [2]footprint // of supervisor and target: after the first tenth of the run, and the latest
	samples     int          // footprints measured
	next        time.Time    // time of the next footprint
	sampleErr   error        // error of the latest footprint
	begun       bool         // a tick was seen

	onProgress func(ticks int64) // called at every poll; nil: none
	busy       func() bool       // reports whether this process is writing a file; nil: never
}

// MinDuration is the shortest soak in which growth can be measured.
const MinDuration = 10 * time.Second

// RunWhole runs a bench once and returns the report with the verdict. The report is nil if the run
// could not begin.
func (s *Soak) RunWhole(b *bench.Bench) (*report.Report, error) {
	o := s.observe(b, s.Options, nil)
	defer o.r.Close()
	if err := o.r.Prepare(); err != nil {
		return nil, err
	}
	signals := supervisor.Signals()
	if err := o.run(signals); err != nil {
		return nil, err
	}
	v, err := o.finishRun()
	return v, o.r.Finish(v, err, signals)
}

// observe returns the observation of a new session.
func (s *Soak) observe(b *bench.Bench, options supervisor.Options, l *segment) *observation {
	o := &observation{soak: s, segment: l}
	options.Priority, options.OnPoll = true, o.poll
	o.r = supervisor.New(b, options)
	return o
}

// run starts the load, then the control unit, then the target. It returns when the target and the
// load have ended. The control unit gets SIGINT, because on a named bus it does not see the end.
func (o *observation) run(signals chan os.Signal) error {
	r := o.r
	o.y = make([]float64, len(r.Handover.Tables.Outputs))
	if o.load = "none"; o.soak.Load != nil {
		cpus := loadCPUs(r.Handover.Thread.CPU, r.Reservations.OtherLoops())
		what, stop, err := o.soak.Load(cpus)
		if err != nil {
			return host.Exitf(3, "soak: %w", err)
		}
		o.load = fmt.Sprintf("%s on CPU %s", what, strings.Trim(fmt.Sprint(cpus), "[]"))
		defer func() { o.loadErr = stop() }()
	}

	bus := o.soak.UnitBus
	if bus == "" && len(r.Bench.Buses) > 0 {
		bus = r.Bench.Buses[0].Interface.Text
	}
	if err := r.StartNamedUnit(bus, signals); err != nil {
		code := 3
		if e := (*host.Exit)(nil); errors.As(err, &e) {
			code = e.Code
		}
		return host.Exitf(code, "soak: %w", err)
	}

	r.Title = fmt.Sprintf("soak of %v; load: %s\n", r.Options.For, o.load)
	if l := o.segment; l != nil {
		r.Title = fmt.Sprintf("leg %d, %s, for %v; load: %s\n", l.number, l.kind, r.Options.For, o.load)
	}

	err := r.StartAndWatch(signals)
	if r.Unit != nil {
		r.Unit.Signal(unix.SIGINT)
	}
	return err
}

// finishRun returns the report of the run with the verdict.
func (o *observation) finishRun() (*report.Report, error) {
	o.read()
	v, err := o.r.Shutdown()
	v.Soak = o.verdict(v)
	return v, err
}

// loadCPUs returns the CPUs of this process without cpu and without those of other loops. If none
// is left, it returns cpu.
func loadCPUs(cpu int, loops []int) []int {
	list := hostinfo.CPUsWithout(sched.Allowed(), append([]int{cpu}, loops...))
	if len(list) == 0 {
		return []int{cpu}
	}
	return list
}

// poll updates the observation from the status block.
func (o *observation) poll(now time.Time) {
	p, h := o.r.Status, o.r.Handover
	o.read()
	ticks, start := int64(p.Ticks.Load()), int64(p.StartNs.Load())
	if start == 0 {
		return
	}
	if ticks > 0 && !o.begun && o.soak.OnFirstTick != nil {
		o.soak.OnFirstTick(o.r)
	}
	o.begun = ticks > 0
	if ticks > (sched.Now()-start)/h.Tables.PeriodNs {
		o.ahead++
	}
	if tick, ok := p.Outputs(o.y); ok && (h.Loop.Watch.Lag < 0 || o.y[h.Loop.Watch.Lag] == 0) {
		o.onGridTick = tick
	}
	if o.onProgress != nil {
		o.onProgress(ticks)
	}
	length := o.r.Options.For
	if ticks*h.Tables.PeriodNs >= int64(length/10) && now.After(o.next) && (o.busy == nil || !o.busy()) {
		o.next = now.Add(min(time.Minute, length/20))
		o.sample()
	}
}

// read reads the new entries of the overrun ledger.
func (o *observation) read() {
	o.overwritten += o.r.Status.ReadLedger(&o.entries, func(e *rt.LateTick) {
		o.lost += e.Lost
		o.maxLost = max(o.maxLost, e.Lost)
		o.unsentDue += framesDue(o.r.Handover, e.Tick, e.Tick+e.Lost-1)
	})
}

// framesDue returns how many frames are due from grid point first to last, by their cycles and
// phases.
func framesDue(h *bench.Handover, first, last int64) (n int64) {
	for _, m := range h.Maps {
		for i := range m.Tx {
			if m.Tx[i].Send != sigmap.OnChange {
				n += occurrences(&m.Tx[i], last) - occurrences(&m.Tx[i], first-1)
			}
		}
	}

	return n
}

// occurrences returns how often t is due from grid point 1 to k.
func occurrences(t *sigmap.Tx, k int64) int64 {
	first := cmp.Or(t.PhaseTicks, t.CycleTicks)
	if k < first {
		return 0
	}
	return (k-first)/t.CycleTicks + 1
}

// sample measures the supervisor and the target. It drops the measurement if a client came or went,
// or if the target has ended.
func (o *observation) sample() {
	clients := o.r.Control.Clients()
	own, err := measureSelf(clients)
	if o.r.Control.Clients() != clients {
		return
	}
	target, failed := measureProcess("/", o.r.Target.PID)
	if rt.State(o.r.Status.State.Load()) == rt.Ended || o.r.Target.WaitEnded(0) {
		return
	}
	if o.sampleErr = cmp.Or(err, failed); o.sampleErr != nil {
		return
	}
	o.last = [2]footprint{own, target}
	if o.samples++; o.samples == 1 {
		o.first = o.last
	}
}

// footprint is the use of resources by a process.
type footprint struct {
	KB      int64 // resident memory, kB
	Threads int64
	Files   int64 // open descriptors
}

// measureSelf returns the footprint of this process after it has returned its free memory to the
// host. The descriptors of the clients of lockstep ctl do not count.
func measureSelf(clients int64) (footprint, error) {
	debug.FreeOSMemory()
	f, err := measureProcess("/", os.Getpid())
	f.Files -= clients
	return f, err
}

// measureProcess reads the footprint of a process from /proc below root.
func measureProcess(root string, pid int) (f footprint, err error) {
	files, dir := hostinfo.Files(root), fmt.Sprintf("proc/%d", pid)
	status := files.Fields(dir + "/status")
	for key, dst := range map[string]*int64{"VmRSS": &f.KB, "Threads": &f.Threads, "FDSize": &f.Files} {
		if _, err := fmt.Sscan(status[key], dst); err != nil {
			return f, fmt.Errorf("/%s/status has no %s", dir, key)
		}
	}

	// The folder of a process with capabilities is closed to others. FDSize, the size of its table
	// of descriptors, grows by powers of two.
	if list := files.ReadDir(dir + "/fd"); list != nil {
		f.Files = int64(len(list))
	}
	return f, nil
}
