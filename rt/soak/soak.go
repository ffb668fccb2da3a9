// Package soak owns long proofs of a bench: the load during a run, the criteria that must hold, and
// the verdict. A soak is one run, or a series of runs (legs): plain ones, and between them scenarios
// and faults. It can be continued after an interruption. Its use is described in SOAK.md.
//
// The package does not run a bench: each run is a supervisor.Session. A soak starts it, observes it
// (supervisor.Options.OnPoll) and judges it by its report. The caller passes the function that makes
// the load.
//
// Reading order: soak.go (Soak, one run), verdict.go (the criteria of one run), legs.go (a soak of
// legs, their records, legs that cannot begin), rotation.go (order of the legs), state.go (the state
// file, and the sums over legs that it holds).
package soak

import (
	"cmp"
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

// Soak makes a long proof of a run: with its virtual control unit, on a named bus
// too, under a load, and with a verdict at the end.
type Soak struct {
	Options supervisor.Options // of the run, or of each leg; For is the whole length

	// Load starts the load on these CPUs and says what it is; stop ends it and says if
	// it had ended before. nil: there is none.
	Load    func(cpus []int) (what string, stop func() error, err error)
	UnitBus string // interface of the unit where it is not the bench's first bus; ""

	// Of RunWhole: Begun is called once, soon after the first tick, and must not block; nil: nobody
	// is told. A process that is told does other things as well, and its growth is not judged.
	Begun func(r *supervisor.Session)

	// Of RunSegments, which makes legs of it:
	Leg      time.Duration // the longest leg, but for the last one
	NoFaults bool          // no leg with one fault of every kind
	State    string        // file that holds the sums, so that it goes on after a cut; "" none
	Fresh    bool          // start anew, whatever is in there
	Keep     int           // records in the folder Options.Record: the latest, and as many of broken legs

	// In rotation between the plain legs, files or embedded; nil: those that are listed for the bench.
	Scenarios []string
}

// observation is what a soak sees of a run.
type observation struct {
	soak *Soak
	r    *supervisor.Session
	leg  *leg   // of RunSegments; nil: the run stands alone
	load string // what it is
	over error  // what stopping the load said

	entries uint64 // of the overrun ledger, read or overwritten before
	gone    uint64 // of them overwritten
	lost    int64  // grid points lost, by the entries
	most    int64  // of them at once
	unsent  int64  // frames due at these
	ahead   int64  // looks that found more ticks than the clock allows
	level   int64  // the latest tick that was seen with no lag; 0: none was

	y           []float64
	first, last [2]footprint // after the first tenth, and the latest: of the supervisor, of the target
	samples     int
	next        time.Time
	trouble     error // with the latest
	begun       bool  // a tick was seen

	beat func(ticks int64) // is told at every look how far the leg is; nil: nobody is
	busy func() bool       // tells whether this process writes a file just now; nil: it does not
}

// Shortest is the shortest soak: what grows is looked for from its first tenth on.
const Shortest = 10 * time.Second

// RunWhole runs a bench once, as a soak, and reports, with the verdict. The report is nil of a run
// that did not begin.
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
	v, err := o.conclude()
	return v, o.r.Finish(v, err, signals)
}

// observe makes the session of a run, and what the soak will see of it.
func (s *Soak) observe(b *bench.Bench, options supervisor.Options, l *leg) *observation {
	o := &observation{soak: s, leg: l}
	options.Priority, options.OnPoll = true, o.look
	o.r = supervisor.New(b, options)
	return o
}

// run starts the load, then the unit, then the target, and returns when the target has ended, and
// the load with it. The unit, which on a bus with a name sees no end of it, is asked to end.
func (o *observation) run(signals chan os.Signal) error {
	r := o.r
	o.y = make([]float64, len(r.Handover.Tables.Outputs))
	if o.load = "none"; o.soak.Load != nil {
		cpus := besides(r.Handover.Thread.CPU, r.Reservations.OtherLoops())
		what, stop, err := o.soak.Load(cpus)
		if err != nil {
			return host.Exitf(3, "soak: %w", err)
		}
		o.load = fmt.Sprintf("%s on CPU %s", what, strings.Trim(fmt.Sprint(cpus), "[]"))
		defer func() { o.over = stop() }()
	}

	bus := o.soak.UnitBus
	if bus == "" && len(r.Bench.Buses) > 0 {
		bus = r.Bench.Buses[0].Interface.Text
	}
	if err := r.StartNamedUnit(bus); err != nil {
		return host.Exitf(3, "soak: %w", err)
	}

	r.Title = fmt.Sprintf("soak of %v; load: %s\n", r.Options.For, o.load)
	if l := o.leg; l != nil {
		r.Title = fmt.Sprintf("leg %d, %s, for %v; load: %s\n", l.number, l.kind, r.Options.For, o.load)
	}

	err := r.StartAndWatch(signals)
	if r.Unit != nil {
		r.Unit.Signal(unix.SIGINT)
	}
	return err
}

// conclude returns the report of the run, with the verdict.
func (o *observation) conclude() (*report.Report, error) {
	o.read()
	v, err := o.r.Shutdown()
	v.Soak = o.judge(v)
	return v, err
}

// besides lists the CPUs of this process but one, and but those of other loops; where
// there is no other, that one.
func besides(cpu int, loops []int) []int {
	list := hostinfo.CPUsWithout(sched.Allowed(), append([]int{cpu}, loops...))
	if len(list) == 0 {
		return []int{cpu}
	}
	return list
}

// look takes in what has happened since the last call.
func (o *observation) look(now time.Time) {
	p, h := o.r.Status, o.r.Handover
	o.read()
	ticks, start := int64(p.Ticks.Load()), int64(p.StartNs.Load())
	if start == 0 {
		return
	}
	if ticks > 0 && !o.begun && o.soak.Begun != nil {
		o.soak.Begun(o.r)
	}
	o.begun = ticks > 0
	if ticks > (sched.Now()-start)/h.Tables.PeriodNs {
		o.ahead++
	}
	if tick, ok := p.Outputs(o.y); ok && (h.Loop.Watch.Lag < 0 || o.y[h.Loop.Watch.Lag] == 0) {
		o.level = tick
	}
	if o.beat != nil {
		o.beat(ticks)
	}
	length := o.r.Options.For
	if ticks*h.Tables.PeriodNs >= int64(length/10) && now.After(o.next) && (o.busy == nil || !o.busy()) {
		o.next = now.Add(min(time.Minute, length/20))
		o.sample()
	}
}

// read reads the new entries of the overrun ledger.
func (o *observation) read() {
	o.gone += o.r.Status.ReadLedger(&o.entries, func(e *rt.LateTick) {
		o.lost += e.Lost
		o.most = max(o.most, e.Lost)
		o.unsent += framesDue(o.r.Handover, e.Tick, e.Tick+e.Lost-1)
	})
}

// framesDue is how many frames are due from grid point first to last, by their cycles
// and phases.
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

// occurrences is how often t is due from grid point 1 to k.
func occurrences(t *sigmap.Tx, k int64) int64 {
	first := cmp.Or(t.PhaseTicks, t.CycleTicks)
	if k < first {
		return 0
	}
	return (k-first)/t.CycleTicks + 1
}

// sample measures the two processes. The supervisor first gives back what it does
// not need: what is left is what it keeps. A target that ends just then holds
// nothing any more.
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
	if o.trouble = cmp.Or(err, failed); o.trouble != nil {
		return
	}
	o.last = [2]footprint{own, target}
	if o.samples++; o.samples == 1 {
		o.first = o.last
	}
}

// footprint is what a process holds.
type footprint struct {
	KB      int64 // resident memory, kB
	Threads int64
	Files   int64 // open descriptors
}

// measureSelf is the footprint of this process without the descriptors of the clients of lockstep
// ctl, which come and go, and without the memory that it can give back.
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

	// The folder of a process with capabilities of its own is closed to others. Then
	// FDSize, the room for descriptors, grows with them by powers of two.
	if list := files.ReadDir(dir + "/fd"); list != nil {
		f.Files = int64(len(list))
	}
	return f, nil
}
