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

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/supervisor"
	"lockstep/sched"
)

// legs makes a soak of runs, one after the other, in one supervisor.
type legs struct {
	bench   *bench.Bench
	soak    *Soak
	o       supervisor.Options // of the soak
	turns   *rotation
	period  int64
	state   *soakState
	store   *store
	self    *report.Binary
	signals chan os.Signal
	next    time.Time // when the state is written while a leg runs
	warned  bool      // that it cannot be
	records string    // why none is made any more
	first   footprint // of this process, after the first round of legs
	last    footprint
	rounds  int                // footprints taken
	stopped string             // by which signal; "" by none
	ticked  bool               // a leg of this start has
	outage  time.Time          // since when no leg has begun; zero: the latest has
	begun   int                // legs of this start
	cpus    unix.CPUSet        // of this process: a leg leaves it none but those beside its loop's
	holds   *host.Reservations // what the legs have, and keep between them
}

// RunSegments runs a bench in legs until Run.For of them is done or a signal comes, and
// reports on all of them together, and those of earlier starts. It goes on after a cut
// where there is a state file.
func (s *Soak) RunSegments(b *bench.Bench) error {
	k := &legs{bench: b, soak: s, o: s.Options}
	report, err := k.prepare()
	if k.store != nil {
		defer k.store.close()
	}
	if err != nil {
		return err
	}
	if report != nil {
		defer report.Close()
	}
	defer func() { k.holds.Close() }()
	k.signals = supervisor.Signals()
	err = unix.SchedGetaffinity(0, &k.cpus)
	for err == nil && k.left() > 0 && k.stopped == "" {
		if err = k.leg(); err == nil && !k.outage.IsZero() {
			k.pause()
		}
	}
	switch {
	case err == nil:
		return k.finish(report)
	case k.state.Tally.Legs == 0:
		return err
	}
	k.stopped = "an error: " + firstLine(err) // what was seen before it is told all the same
	return errors.Join(err, k.finish(report))
}

// prepare reads what is there, and refuses what does not fit.
func (k *legs) prepare() (report *os.File, err error) {
	if err := k.bench.SetBuses(k.o.Bus); err != nil {
		return nil, err
	}
	h, err := bench.Prepare(k.bench)
	if err != nil {
		return nil, err
	}
	s := k.soak
	k.period = h.Tables.PeriodNs
	version := thisBinary()
	if k.o.Choose != nil { // what a leg would refuse
		_, mark, err := k.o.Choose(h)
		if err != nil {
			return nil, fmt.Errorf("soak: %w", err)
		}
		version += ", generated kernel " + bench.DigestOfBytes([]byte(mark))[:12]
	}
	turns, text, err := s.rotation(h, cmp.Or(s.Leg, k.o.For))
	if err != nil {
		return nil, err
	}
	k.turns = turns
	made := &soakState{Bench: k.bench.Name, Made: k.bench.Digest(), Events: bench.DigestOfBytes([]byte(text)), Options: k.options(turns)}
	if k.store, err = openStore(s.State); err != nil {
		return nil, err
	}
	old, err := k.store.read()
	if err != nil && !s.Fresh {
		return nil, err
	}
	k.state = made
	if old != nil && !s.Fresh {
		if err := old.fits(made); err != nil {
			return nil, fmt.Errorf("soak: state %s: %w; -fresh starts anew", s.State, err)
		}
		k.resume(old)
	}
	if k.left() > 0 {
		k.state.Starts++
		k.self = k.state.binaryOf(version)
	}
	if k.o.Record != "" {
		if err := os.MkdirAll(k.o.Record, 0o777); err != nil {
			return nil, fmt.Errorf("soak: record: %w", err)
		}
	}
	if k.o.Report == "" {
		return nil, nil
	}
	if report, err = host.OpenExclusive(k.o.Report); err != nil { // it keeps what it has until there is more
		return nil, fmt.Errorf("soak: report: %w", err)
	}
	return report, nil
}

// options are those that make a soak what it is, in words. Its length is none: a longer
// one goes on.
func (k *legs) options(t *rotation) string {
	var turns []string
	for _, turn := range t.turns {
		turns = append(turns, turn.kind)
	}
	load := "load"
	if k.soak.Load == nil {
		load = "no load"
	}
	var buses []string
	for _, bus := range k.bench.Buses {
		buses = append(buses, bus.Interface.Text)
	}
	kernel := ""
	if k.o.Choose != nil {
		kernel = "; kernel generated"
	}
	return fmt.Sprintf("legs of %v, with %s; buses %s, unit on %s; %s; best effort allowed: %t%s",
		cmp.Or(k.soak.Leg, k.o.For), cmpText(strings.Join(turns, ", "), "nothing between them"), strings.Join(buses, ", "),
		cmpText(k.soak.UnitBus, "the first"), load, k.o.BestEffort, kernel)
}

// resume goes on with what an earlier start has left.
func (k *legs) resume(old *soakState) {
	gone := thisInstant().since(old.instant)
	if k.state = old; k.left() <= 0 {
		return
	}
	old.Missing += gone
	cut := ""
	if g := old.Going; g != nil {
		old.Cut++
		old.CutNs += g.Ticks * k.period
		old.Tally.kind(g.Kind).Cut++
		cut = fmt.Sprintf("; leg %d, %s, was cut after about %.1f s and runs again", g.Number, g.Kind, float64(g.Ticks*k.period)/1e9)
		retire(g.Target, g.Began, old.Bench)
		old.Going = nil
	}
	fmt.Fprintf(k.o.Out, "goes on after %d legs, %.1f s of %v, and %.1f s without it%s\n",
		old.Tally.Legs, float64(old.Tally.Asked*k.period)/1e9, k.o.For, float64(gone)/1e9, cut)
}

// retire ends the target of a leg that was cut, where it has outlived its supervisor.
func retire(pid int, since uint32, bench string) {
	if pid == 0 {
		return
	}
	p, err := host.Adopt(pid, since)
	if err != nil {
		return // it has ended, or it is another process by now
	}
	h, page, err := control.OpenTarget(pid)
	if err != nil || h.Bench.Name != bench || host.Alive(page.Supervisor.Load()) {
		return // or somebody has attached
	}
	page.Stop.Store(rt.StopPlanned)
	if !p.WaitEnded(supervisor.Grace + time.Second) {
		p.Kill()
	}
}

// left is how many ticks are still to be done.
func (k *legs) left() int64 { return int64(k.o.For)/k.period - k.state.Tally.Asked }

// leg runs one.
func (k *legs) leg() error {
	l := k.turns.leg(k.state.Tally.Legs+1, k.left())
	k.begun++
	l.first = k.begun == 1
	o := k.o
	seen := &soak{what: k.soak, leg: &l}
	o.Report, o.Scenario, o.JUnit, o.Plan, o.Observer, o.Priority = "", "", "", l.plan, seen, true
	o.For, o.Record = time.Duration(l.ticks*k.period), k.recordOf(&l)
	r := supervisor.New(k.bench, o)
	r.Reservations = k.holds
	seen.beat, seen.busy = func(ticks int64) { k.beat(r, seen.load, ticks) }, func() bool { return len(k.store.busy) > 0 }
	defer k.after(r)
	if err := errors.Join(sched.Ordinary(), sched.Allow(os.Getpid(), k.cpus, 0)); err != nil {
		return &host.Exit{Code: 3, Err: fmt.Errorf("soak: %w", err)}
	}
	if _, err := r.Prepare(); err != nil {
		return k.notBegun(&l, err)
	}
	k.state.Going = &going{Number: l.number, Kind: l.kind}
	k.store.write(k.state) // now: beside a target nothing of this process is in a hurry
	if err := r.StartAndWatch(k.signals); err != nil {
		k.state.Going = nil
		return k.notBegun(&l, err)
	}
	k.ticked, k.outage = true, time.Time{}
	v, err := r.Conclude()
	if err != nil {
		return ofLeg(&l, err)
	}
	k.stopped = r.Stop
	k.take(&l, seen, v)
	return nil
}

// beat writes the state once in a while.
func (k *legs) beat(r *supervisor.Session, load string, ticks int64) {
	k.state.Going.Ticks, k.state.Going.Target, k.state.Going.Began = ticks, r.Target.PID, r.Target.Since
	k.state.Load = load
	if now := time.Now(); now.After(k.next) {
		k.next = now.Add(heartbeat)
		k.store.begin(k.state)
	}
}

// heartbeat is how often the state is written while a leg runs: by so much the time
// without the soak may be told too long.
const heartbeat = 10 * time.Second

// take adds a leg that has ended. One that a signal has ended counts as far as it came,
// unless that is too short to be judged or something was to happen in it.
func (k *legs) take(l *leg, seen *soak, v *report.Report) {
	r := seen.r
	k.state.Going, k.next = nil, time.Time{}
	t := &k.state.Tally
	if r.Stop != "" && (r.Scenario.Scenario != nil || int64(v.Ticks)*k.period < int64(settled)) {
		k.state.Cut++
		k.state.CutNs += int64(v.Ticks) * k.period
		t.kind(l.kind).Cut++
		k.say("leg %d, %s: cut by %s after %.3f s\n", l.number, l.kind, r.Stop, v.SimTime)
		return
	}
	k.state.Load = seen.load
	t.add(*l, seen, v)
	k.self.Legs++
	k.self.Ticks += v.Ticks
	k.footprint(r.Control.Clients())
	word := "held"
	if !v.Soak.Pass {
		word = "BROKEN"
	}
	k.say("leg %d, %s: %s; %d ticks, missed %d, latest %.3f ms, frames %d out, %d in%s\n", l.number, l.kind, word,
		v.Ticks, v.Missed, float64(v.Late.Max)/1e6, v.TxFrames, v.RxFrames, firstOf("; ", v.Soak.Failed()))
	k.recorded(v)
}

// settled is after how much simulated time a leg that ends is judged like any other: its
// unit has spoken, and been heard.
const settled = time.Second

// say writes a line that belongs to no run.
func (k *legs) say(format string, args ...any) { fmt.Fprintf(k.o.Out, format, args...) }

// firstOf is the first line of an error behind a mark; "" of none.
func firstOf(mark string, err error) string {
	if err == nil {
		return ""
	}
	return mark + firstLine(err)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// after ends what a leg has left, and writes the state.
func (k *legs) after(r *supervisor.Session) {
	k.holds, r.Reservations = r.Reservations, nil // nobody takes a CPU or an interface between two legs
	r.Close()
	if r.Page != nil {
		r.Page.Discard()
	}
	k.store.write(k.state)
	if k.store.why != nil && !k.warned {
		k.warned = true
		k.say("soak: state: %v; it goes on, and tries again\n", k.store.why)
	}
}

// footprint measures this process between two legs; clients have a descriptor each.
func (k *legs) footprint(clients int64) {
	k.store.wait() // for the descriptor of a state that is being written
	debug.FreeOSMemory()
	f, err := measureProcess("/", os.Getpid())
	if err != nil {
		return // the demands of the leg have said so
	}
	f.Files -= clients
	k.last = f
	if k.rounds++; k.rounds <= 2*len(k.turns.turns)+1 { // each kind of leg has been there
		k.first = footprint{max(k.first.KB, f.KB), max(k.first.Threads, f.Threads), max(k.first.Files, f.Files)}
		return
	}
	held := f.KB <= k.first.KB+spareSupervisor.KB && f.Files <= k.first.Files && f.Threads <= k.first.Threads+spareSupervisor.Threads
	k.state.Tally.demand(leg{number: k.state.Tally.Legs, kind: "between two legs"}, report.Demand{
		What: "growth over legs",
		Want: fmt.Sprintf("at most %d kB, %d open files, %d threads: what the first legs had and %d kB, %d threads",
			k.first.KB+spareSupervisor.KB, k.first.Files, k.first.Threads+spareSupervisor.Threads, spareSupervisor.KB, spareSupervisor.Threads),
		Seen: fmt.Sprintf("%d kB, %d open files, %d threads", f.KB, f.Files, f.Threads), Held: held,
	})
}

// finish reports on all legs of all starts.
func (k *legs) finish(file *os.File) error {
	k.store.write(k.state)
	st, t := k.state, &k.state.Tally
	v := t.report(k.bench.Unit.Text)
	v.Soak = t.verdict(k.o.For, cmp.Or(st.Load, "none"))
	v.Soak.Legs = &report.Legs{
		Done: t.Legs, Broken: t.Broken, Cut: st.Cut, CutTime: float64(st.CutNs) / 1e9, Starts: st.Starts,
		Missing: float64(st.Missing) / 1e9, Unwritten: k.store.bad, Binaries: st.Binary, Kinds: t.Kinds,
	}
	v.Record, v.Trouble, v.Ended, v.Clean = k.o.Record, k.records, "done", v.Soak.Pass
	if k.left() > 0 {
		v.Ended, v.Clean = "stopped by "+k.stopped, false
	}
	var err error
	if file != nil {
		if e := errors.Join(host.Truncate(file), report.Save(v, file)); e != nil {
			err = fmt.Errorf("soak: report: %w", e)
		}
	}
	k.say("\n")
	v.Text(k.o.Out)
	v.Soak.Text(k.o.Out)
	v.Soak.Legs.Text(k.o.Out)
	if err = errors.Join(v.Soak.Failed(), err); err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}
