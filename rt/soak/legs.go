package soak

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	*Soak
	bench   *bench.Bench
	turns   *rotation
	period  int64
	state   *soakState
	store   *store
	report  *os.File // nil: there is none
	self    *report.Binary
	signals chan os.Signal
	next    time.Time // when the state is written while a leg runs
	warned  bool      // that it cannot be
	noRoom  string    // why no record is made any more; "" they are
	first   footprint // of this process, after the first round of legs
	rounds  int       // footprints taken
	stopped string    // by which signal; "" by none
	ticked  bool      // a leg of this start has
	outage  time.Time // since when no leg has begun; zero: the latest has
	begun   int       // legs of this start

	cpus  unix.CPUSet        // of this process: a leg leaves it none but those beside its loop's
	holds *host.Reservations // what the legs have, and keep between them
}

// RunSegments runs a bench in legs until Options.For of them is done or a signal comes, and
// reports on all of them together, and those of earlier starts. It goes on after a cut
// where there is a state file.
func (s *Soak) RunSegments(b *bench.Bench) error {
	k := &legs{Soak: s, bench: b}
	defer k.close()
	if err := k.prepare(); err != nil {
		return err
	}
	k.signals = supervisor.Signals()
	err := unix.SchedGetaffinity(0, &k.cpus)
	for err == nil && k.left() > 0 && k.stopped == "" {
		if err = k.leg(); err == nil && !k.outage.IsZero() {
			k.pause()
		}
	}

	switch {
	case err == nil:
		return k.finish()
	case k.state.Tally.Legs == 0:
		return err
	}

	k.stopped = "an error: " + firstLine(err) // what was seen before it is told all the same
	return errors.Join(err, k.finish())
}

func (k *legs) close() {
	if k.store != nil {
		k.store.close()
	}
	k.report.Close() // of nil an error of no interest
	k.holds.Close()
}

// prepare reads what is there, and refuses what does not fit.
func (k *legs) prepare() error {
	if err := k.bench.SetBuses(k.Options.Bus); err != nil {
		return err
	}
	h, err := bench.Prepare(k.bench)
	if err != nil {
		return err
	}
	k.period = h.Tables.PeriodNs
	version := thisBinary()
	if k.Options.Choose != nil { // what a leg would refuse
		_, fingerprint, err := k.Options.Choose(h)
		if err != nil {
			return fmt.Errorf("soak: %w", err)
		}
		version += ", generated kernel " + bench.DigestOfBytes([]byte(fingerprint))[:12]
	}

	turns, text, err := k.rotation(h, cmp.Or(k.Leg, k.Options.For))
	if err != nil {
		return err
	}
	k.turns = turns

	if k.store, err = openStore(k.State); err != nil {
		return err
	}
	k.state = &soakState{
		Bench: k.bench.Name, Made: k.bench.Digest(), Events: bench.DigestOfBytes([]byte(text)), Options: k.options(),
	}
	if !k.Fresh {
		if err := k.resume(); err != nil {
			return err
		}
	}

	if k.left() > 0 {
		k.state.Starts++
		k.self = k.state.binaryOf(version)
	}

	return k.openOutputs()
}

// openOutputs opens the files of the soak besides its state.
func (k *legs) openOutputs() (err error) {
	if k.Options.Record != "" {
		if err := os.MkdirAll(k.Options.Record, 0o777); err != nil {
			return fmt.Errorf("soak: record: %w", err)
		}
	}

	if k.Options.Report == "" {
		return nil
	}
	if k.report, err = host.OpenExclusive(k.Options.Report); err != nil { // it keeps what it has until there is more
		return fmt.Errorf("soak: report: %w", err)
	}
	return nil
}

// options are those that make a soak what it is, in words. Its length is none: a longer
// one goes on.
func (k *legs) options() string {
	var turns, buses []string
	for _, turn := range k.turns.turns {
		turns = append(turns, turn.kind)
	}
	for _, bus := range k.bench.Buses {
		buses = append(buses, bus.Interface.Text)
	}
	load, kernel := "load", ""
	if k.Load == nil {
		load = "no load"
	}
	if k.Options.Choose != nil {
		kernel = "; kernel generated"
	}
	return fmt.Sprintf("legs of %v, with %s; buses %s, unit on %s; %s; best effort allowed: %t%s",
		cmp.Or(k.Leg, k.Options.For), cmp.Or(strings.Join(turns, ", "), "nothing between them"),
		strings.Join(buses, ", "), cmp.Or(k.UnitBus, "the first"), load, k.Options.BestEffort, kernel)
}

// resume goes on with what an earlier start has left.
func (k *legs) resume() error {
	old, err := k.store.read()
	if old == nil {
		return err
	}
	if err := old.fits(k.state); err != nil {
		return fmt.Errorf("soak: state %s: %w; -fresh starts anew", k.State, err)
	}
	gone := thisInstant().since(old.instant)
	if k.state = old; k.left() <= 0 {
		return nil
	}
	old.Missing += gone
	cut := ""
	if g := old.Going; g != nil {
		k.cut(g.Kind, g.Ticks)
		cut = fmt.Sprintf("; leg %d, %s, was cut after about %.1f s and runs again", g.Number, g.Kind, k.seconds(g.Ticks))
		retire(g.Target, g.Began, old.Bench)
		old.Going = nil
	}

	k.say("goes on after %d legs, %.1f s of %v, and %.1f s without it%s\n",
		old.Tally.Legs, k.seconds(old.Tally.Asked), k.Options.For, float64(gone)/1e9, cut)
	return nil
}

// cut counts a leg that has not ended by itself.
func (k *legs) cut(kind string, ticks int64) {
	k.state.Cut++
	k.state.CutNs += ticks * k.period
	k.state.Tally.kind(kind).Cut++
}

// seconds is the simulated time of ticks.
func (k *legs) seconds(ticks int64) float64 { return float64(ticks*k.period) / 1e9 }

// retire ends the target of a leg that was cut, where it has outlived its supervisor.
func retire(pid int, since uint32, bench string) {
	if pid == 0 {
		return
	}
	p, err := host.OpenProcess(pid, since)
	if err != nil {
		return // it has ended, or it is another process by now
	}
	v, err := control.OpenTarget(pid)
	if err != nil || v.Handover.Bench.Name != bench || host.Alive(v.Status.Supervisor.Load()) {
		return // or somebody has attached
	}
	v.Status.Stop.Store(rt.StopPlanned)
	if !p.WaitEnded(supervisor.Grace + time.Second) {
		p.Kill()
	}
}

// left is how many ticks are still to be done.
func (k *legs) left() int64 { return int64(k.Options.For)/k.period - k.state.Tally.Asked }

// leg runs one.
func (k *legs) leg() error {
	l := k.turns.leg(k.state.Tally.Legs+1, k.left())
	k.begun++
	options := k.Options
	options.Report, options.Plan = "", l.plan
	options.For, options.Record = time.Duration(l.ticks*k.period), k.recordOf(&l)

	o := k.observe(k.bench, options, &l)
	o.beat, o.busy = func(ticks int64) { k.beat(o, ticks) }, k.store.writing
	o.r.Reservations, o.r.Known = k.holds, k.begun > 1 // the first leg of a start announces the run
	defer k.after(o.r)
	if err := sched.Allow(os.Getpid(), k.cpus, 0); err != nil {
		return host.Exitf(3, "soak: %w", err)
	}
	if err := o.r.Prepare(); err != nil {
		return k.notBegun(&l, err)
	}
	k.state.Going = &going{Number: l.number, Kind: l.kind}
	k.store.write(k.state) // now: beside a target nothing of this process is in a hurry
	if err := o.run(k.signals); err != nil {
		k.state.Going = nil
		return k.notBegun(&l, err)
	}

	k.ticked, k.outage = true, time.Time{}

	v, err := o.conclude()
	if err != nil {
		return ofLeg(&l, err)
	}
	k.stopped = o.r.Stop
	k.take(o, v)
	return nil
}

// heartbeat is how often the state is written while a leg runs: by so much the time
// without the soak may be told too long.
const heartbeat = 10 * time.Second

// beat writes the state once in a while.
func (k *legs) beat(o *observation, ticks int64) {
	g := k.state.Going
	g.Ticks, g.Target, g.Began = ticks, o.r.Target.PID, o.r.Target.Since
	k.state.Load = o.load
	if now := time.Now(); now.After(k.next) {
		k.next = now.Add(heartbeat)
		k.store.begin(k.state)
	}
}

// settled is after how much simulated time a leg that ends is judged like any other: its
// unit has spoken, and been heard.
const settled = time.Second

// take adds a leg that has ended. One that a signal has ended counts as far as it came,
// unless that is too short to be judged or something was to happen in it.
func (k *legs) take(o *observation, v *report.Report) {
	r, l, t := o.r, o.leg, &k.state.Tally
	k.state.Going, k.next = nil, time.Time{}
	if r.Stop != "" && (r.Scenario.Scenario != nil || int64(v.Ticks)*k.period < int64(settled)) {
		k.cut(l.kind, int64(v.Ticks))
		k.say("leg %d, %s: cut by %s after %.3f s\n", l.number, l.kind, r.Stop, v.SimTime)
		return
	}

	k.state.Load = o.load
	t.add(o, v)
	k.self.Segments++
	k.self.Ticks += v.Ticks
	k.judgeGrowth(r.Control.Clients())
	word, why := "held", ""
	if err := v.Soak.Failed(); err != nil {
		word, why = "BROKEN", "; "+firstLine(err)
	}
	k.say("leg %d, %s: %s; %d ticks, missed %d, latest %.3f ms, frames %d out, %d in%s\n", l.number, l.kind, word,
		v.Ticks, v.Missed, float64(v.Late.Max)/1e6, v.TxFrames, v.RxFrames, why)
	k.recorded(v)
}

// say writes a line that belongs to no run.
func (k *legs) say(format string, args ...any) { fmt.Fprintf(k.Options.Out, format, args...) }

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// after ends what a leg has left, and writes the state.
func (k *legs) after(r *supervisor.Session) {
	k.holds, r.Reservations = r.Reservations, nil // nobody takes a CPU or an interface between two legs
	r.Close()
	if r.Status != nil {
		r.Status.Discard()
	}
	k.store.write(k.state)
	if k.store.why != nil && !k.warned {
		k.warned = true
		k.say("soak: state: %v; it goes on, and tries again\n", k.store.why)
	}
}

// judgeGrowth measures this process between two legs; clients have a descriptor each.
func (k *legs) judgeGrowth(clients int64) {
	k.store.wait() // for the descriptor of a state that is being written
	f, err := measureSelf(clients)
	if err != nil {
		return // the demands of the leg have said so
	}
	first := &k.first
	if k.rounds++; k.rounds <= 2*len(k.turns.turns)+1 { // each kind of leg has been there
		*first = footprint{max(first.KB, f.KB), max(first.Threads, f.Threads), max(first.Files, f.Files)}
		return
	}

	spare := spareSupervisor
	most := footprint{first.KB + spare.KB, first.Threads + spare.Threads, first.Files}
	k.state.Tally.demand(&leg{number: k.state.Tally.Legs, kind: "between two legs"}, report.Criterion{
		What: "growth over legs",
		Want: fmt.Sprintf("at most %d kB, %d open files, %d threads: what the first legs had and %d kB, %d threads",
			most.KB, most.Files, most.Threads, spare.KB, spare.Threads),
		Seen: fmt.Sprintf("%d kB, %d open files, %d threads", f.KB, f.Files, f.Threads),
		Held: f.KB <= most.KB && f.Files <= most.Files && f.Threads <= most.Threads,
	})
}

// finish reports on all legs of all starts.
func (k *legs) finish() (err error) {
	k.store.write(k.state)
	st, t := k.state, &k.state.Tally
	v := t.report(k.bench.Unit.Text)
	v.Soak = t.verdict(k.Options.For, cmp.Or(st.Load, "none"))
	v.Soak.Segments = &report.Segments{
		Done: t.Legs, Broken: t.Broken, Cut: st.Cut, CutTime: float64(st.CutNs) / 1e9, Starts: st.Starts,
		Missing: float64(st.Missing) / 1e9, Unwritten: k.store.bad, Binaries: st.Binary, Kinds: t.Kinds,
	}
	v.Record, v.RecordError, v.Ended, v.Clean = k.Options.Record, k.noRoom, "done", v.Soak.Pass
	if k.left() > 0 {
		v.Ended, v.Clean = "stopped by "+k.stopped, false
	}
	if k.report != nil {
		if err = errors.Join(host.Truncate(k.report), report.Save(v, k.report)); err != nil {
			err = fmt.Errorf("soak: report: %w", err)
		}
	}

	k.say("\n")
	v.Text(k.Options.Out)
	v.Soak.Text(k.Options.Out)
	v.Soak.Segments.Text(k.Options.Out)
	if err = errors.Join(v.Soak.Failed(), err); err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// recordOf is the file of a leg's record; "" there is none.
func (k *legs) recordOf(l *leg) string {
	if k.Options.Record == "" || k.noRoom != "" {
		return ""
	}
	file := filepath.Join(k.Options.Record, fmt.Sprintf("leg-%06d.rec", l.number))
	f, err := os.Create(file)
	if err != nil {
		k.endRecords(err.Error())
		return ""
	}

	f.Close()
	return file
}

// endRecords ends recording: a soak does not end for want of room.
func (k *legs) endRecords(why string) {
	k.noRoom = why
	k.say("soak: record: %s; it goes on without records\n", why)
}

// recorded keeps the latest records and, under another name, those of broken legs.
func (k *legs) recorded(v *report.Report) {
	if v.Record == "" {
		return
	}
	if v.RecordError != "" {
		k.endRecords(v.RecordError)
		_ = os.Remove(v.Record) // it is incomplete, and takes room
		return
	}

	if !v.Soak.Pass {
		_ = os.Rename(v.Record, strings.TrimSuffix(v.Record, ".rec")+"-broken.rec")
	}
	for _, pattern := range []string{"leg-[0-9][0-9][0-9][0-9][0-9][0-9].rec", "leg-*-broken.rec"} {
		list, _ := filepath.Glob(filepath.Join(k.Options.Record, pattern))
		slices.SortStableFunc(list, func(a, b string) int { // a soak before this one may have left some of higher numbers
			return written(a).Compare(written(b))
		})
		for _, file := range list[:max(0, len(list)-max(1, k.Keep))] {
			_ = os.Remove(file)
		}
	}
}

// written is when a file was last written; zero: it cannot be known.
func written(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// How long a soak goes on trying where no leg begins any more, as one of its interfaces is
// down, and how often.
const (
	stranded = 5 * time.Minute
	retry    = 2 * time.Second
)

// notBegun takes a leg that the host has refused. After one that has ticked, it is a broken
// leg, and the next one is tried for a while; nil: it goes on.
func (k *legs) notBegun(l *leg, err error) error {
	err = ofLeg(l, err)
	refused := &host.Exit{}
	if !k.ticked || !errors.As(err, &refused) || refused.Code != 3 {
		return err
	}
	now := time.Now()
	if k.outage.IsZero() {
		k.outage = now
		k.state.Tally.notBegun(l, err)
		k.say("leg %d, %s: BROKEN; it did not begin, and the next one is tried for %v: %s\n",
			l.number, l.kind, stranded, firstLine(err))
	}

	if now.Sub(k.outage) > stranded {
		return host.Exitf(3, "soak: no leg has begun for %v: %w", stranded, errors.Unwrap(err))
	}
	return nil
}

// pause waits until the next leg is to be tried, or somebody ends the soak.
func (k *legs) pause() {
	select {
	case <-time.After(retry):
	case s := <-k.signals:
		k.stopped = strings.ToLower(s.String())
	}
}

// ofLeg says of what leg an error of its run is, in each line, and keeps its exit code.
func ofLeg(l *leg, err error) error {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = fmt.Sprintf("soak: leg %d: %s", l.number, strings.TrimPrefix(strings.TrimPrefix(line, "run: "), "soak: "))
	}
	text := errors.New(strings.Join(lines, "\n"))
	if e := (&host.Exit{}); errors.As(err, &e) {
		return &host.Exit{Code: e.Code, Err: text}
	}
	return text
}
