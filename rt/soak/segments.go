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

	"lockstep/io/inputfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/inspect"
	"lockstep/rt/progress"
	"lockstep/rt/report"
	"lockstep/rt/supervisor"
	"lockstep/sched"
)

// series runs the segments of a soak, one after the other, in one supervisor.
type series struct {
	*Soak
	bench       *bench.Bench
	schedule    *schedule
	period      int64 // period of the grid, ns
	state       *soakState
	store       *store
	report      *host.Result // report file, JSON; nil: none
	self        *report.Binary
	signals     chan os.Signal
	next        time.Time // next write of the state during a segment
	warned      bool      // a failed write of the state was printed
	recordEnded string    // why recording has ended; "": it has not
	first       footprint // largest footprint of this process in the first rounds of the schedule
	measured    int       // footprints measured
	stopped     string    // signal or error that stopped the soak; "": none
	ticked      bool      // a segment of this start has ticked
	outage      time.Time // start of the time in which no segment could begin; zero: the last one began
	begun       int       // segments begun by this start

	cpus         unix.CPUSet        // CPUs of this process before the first segment, which takes the loop's away
	reservations *host.Reservations // CPU and interfaces, preserved between the segments
}

// RunSegments runs a bench in segments until Options.For is done or a signal comes. It reports on
// the segments of all starts. With a state file it continues a soak that was interrupted.
func (s *Soak) RunSegments(b *bench.Bench) error {
	k := &series{Soak: s, bench: b}
	defer k.close()
	if err := k.prepare(); err != nil {
		return err
	}
	k.signals = supervisor.Signals()
	err := unix.SchedGetaffinity(0, &k.cpus)
	for err == nil && k.left() > 0 && k.stopped == "" {
		if err = k.runSegment(); err == nil && !k.outage.IsZero() {
			k.waitRetry()
		}
	}

	switch {
	case err == nil:
		return k.finish()
	case k.state.Totals.Segments == 0:
		return err
	}

	k.stopped = "an error: " + firstLine(err)
	return errors.Join(err, k.finish())
}

func (k *series) close() {
	if k.store != nil {
		k.store.close()
	}
	k.report.Close()
	k.reservations.Close()
}

// prepare loads the bench and the schedule, continues the state file and opens the other files.
func (k *series) prepare() error {
	if err := k.bench.SetBuses(k.Options.Bus); err != nil {
		return err
	}
	k.bench.Progress = k.Options.Progress.BeginPreparation(k.bench.Name)
	h, err := bench.Prepare(k.bench)
	k.Options.Progress.End()
	if err != nil {
		return err
	}
	if err := k.bench.CheckEnds(); err != nil {
		return err
	}
	k.period = h.Tables.PeriodNs
	version := thisBinary()
	if k.Options.Choose != nil { // refuse an unfit target now, not in the first segment
		_, fingerprint, err := k.Options.Choose(h)
		if err != nil {
			return fmt.Errorf("soak: %w", err)
		}
		version += ", generated kernel " + bench.DigestOfBytes([]byte(fingerprint))[:12]
	}

	var text string
	if k.schedule, text, err = k.newSchedule(h, cmp.Or(k.Segment, k.Options.For)); err != nil {
		return err
	}
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
		k.self = k.state.binary(version)
	}

	return k.openOutputs()
}

// openOutputs creates the folder of the records and opens the report file.
func (k *series) openOutputs() (err error) {
	if k.Options.Record != "" {
		if err := os.MkdirAll(k.Options.Record, 0o777); err != nil {
			return fmt.Errorf("soak: record: %w", err)
		}
	}

	if k.report, err = bench.CreateResult(k.Options.Report, host.ReportSpace, "report", "JSON"); err != nil {
		return fmt.Errorf("soak: report: %w", err)
	}
	return nil
}

// options identifies a soak, as the state file holds it. The duration is not part of it, so a
// longer soak resumes a shorter one.
func (k *series) options() string {
	var kinds, buses []string
	for _, entry := range k.schedule.entries {
		kinds = append(kinds, entry.kind)
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
	set := k.bench.SetText()
	if set != "" {
		set = "; set " + set
	}
	if start := k.bench.StartText(); start != "" {
		set += "; start " + start
	}
	return fmt.Sprintf("legs of %v, with %s; buses %s, unit on %s; %s; best effort allowed: %t%s%s",
		cmp.Or(k.Segment, k.Options.For), cmp.Or(strings.Join(kinds, ", "), "nothing between them"),
		strings.Join(buses, ", "), cmp.Or(k.UnitBus, "the first"), load, k.Options.BestEffort, kernel, set)
}

// resume continues the soak in the state file, if there is one.
func (k *series) resume() error {
	old, err := k.store.read()
	if old == nil {
		return err
	}
	if err := old.checkSame(k.state); err != nil {
		return fmt.Errorf("soak: state %s: %w; -fresh starts anew", k.State, err)
	}
	away := thisInstant().since(old.instant)
	if k.state = old; k.left() <= 0 {
		return nil
	}
	old.Missing += away
	cut := ""
	if g := old.Running; g != nil {
		k.countCut(g.Kind, g.Ticks)
		cut = fmt.Sprintf("; leg %d, %s, was cut after about %.1f s and runs again", g.Number, g.Kind, k.seconds(g.Ticks))
		stopOrphan(g.Target, g.Began, old.Bench)
		old.Running = nil
	}

	k.printf("soak continues after %d legs, %.1f s of %v; it was away for %.1f s%s\n",
		old.Totals.Segments, k.seconds(old.Totals.Asked), k.Options.For, float64(away)/1e9, cut)
	return nil
}

// countCut counts an interrupted segment.
func (k *series) countCut(kind string, ticks int64) {
	k.state.Cut++
	k.state.CutNs += ticks * k.period
	k.state.Totals.kind(kind).Cut++
}

// seconds returns the simulated time of ticks, s.
func (k *series) seconds(ticks int64) float64 { return float64(ticks*k.period) / 1e9 }

// stopOrphan ends the target of an interrupted segment if it has outlived its supervisor.
func stopOrphan(pid int, since uint32, bench string) {
	if pid == 0 {
		return
	}
	p, err := host.OpenProcess(pid, since)
	if err != nil {
		return // it has ended; the id may be another process's by now
	}
	v, err := inspect.Open(pid)
	if err != nil || v.Handover.Bench.Name != bench || host.Alive(v.Status.Supervisor.Load()) {
		return // another soak's, or a new supervisor has attached
	}
	v.Status.Stop.Store(rt.StopPlanned)
	if !p.WaitEnded(supervisor.Grace + time.Second) {
		p.Kill()
	}
}

// left returns the ticks still to be done.
func (k *series) left() int64 { return int64(k.Options.For)/k.period - k.state.Totals.Asked }

// runSegment runs the next segment.
func (k *series) runSegment() error {
	l := k.schedule.segment(k.state.Totals.Segments+1, k.left())
	k.begun++
	options := k.Options
	options.Report, options.Plan = "", l.plan
	if k.begun > 1 { // the preparation has been shown
		options.Progress = nil
	}
	options.Whole, options.Before = k.Options.For, time.Duration(k.state.Totals.Asked*k.period)
	options.For, options.Record = time.Duration(l.ticks*k.period), k.recordOf(&l)

	o := k.observe(k.bench, options, &l)
	o.onProgress, o.busy = func(ticks int64) { k.saveProgress(o, ticks) }, k.store.writing
	o.r.Reservations, o.r.Known = k.reservations, k.begun > 1 // only the first segment announces the run
	defer k.endSegment(o.r)
	if err := sched.Allow(os.Getpid(), k.cpus, 0); err != nil {
		return host.Exitf(3, "soak: %w", err)
	}
	if err := o.r.Prepare(); err != nil {
		return k.refuse(&l, err)
	}
	k.state.Running = &running{Number: l.number, Kind: l.kind}
	k.store.write(k.state) // before the target starts
	if err := o.run(k.signals); err != nil {
		k.state.Running = nil
		return k.refuse(&l, err)
	}

	k.ticked, k.outage = true, time.Time{}

	v, err := o.finishRun()
	if err != nil {
		return segmentError(&l, err)
	}
	k.stopped = o.r.Stop
	k.addSegment(o, v)
	return nil
}

// saveInterval is the time between two writes of the state during a segment. The time between two
// starts may be reported too long by as much.
const saveInterval = 10 * time.Second

// saveProgress writes the state every saveInterval.
func (k *series) saveProgress(o *observation, ticks int64) {
	g := k.state.Running
	g.Ticks, g.Target, g.Began = ticks, o.r.Target.PID, o.r.Target.Since
	k.state.Load = o.load
	if now := time.Now(); now.After(k.next) {
		k.next = now.Add(saveInterval)
		k.store.beginWrite(k.state)
	}
}

// minJudged is the shortest segment, in simulated time, whose verdict counts: the control unit has
// sent and received frames by then.
const minJudged = time.Second

// addSegment adds a segment that has ended to the totals. A segment that a signal has ended counts
// as far as it came. It counts as cut if it has a scenario or is shorter than minJudged.
func (k *series) addSegment(o *observation, v *report.Report) {
	r, l, t := o.r, o.segment, &k.state.Totals
	k.state.Running, k.next = nil, time.Time{}
	if r.Stop != "" && (r.Scenario.Scenario != nil || int64(v.Ticks)*k.period < int64(minJudged)) {
		k.countCut(l.kind, int64(v.Ticks))
		k.printf("leg %d, %s: cut by %s after %.3f s\n", l.number, l.kind, r.Stop, v.SimTime)
		return
	}

	k.state.Load = o.load
	t.add(o, v)
	k.self.Segments++
	k.self.Ticks += v.Ticks
	k.checkGrowth(r.Control.Clients())
	result, why := "held", ""
	if err := v.Soak.Failed(); err != nil {
		result, why = "BROKEN", "; "+firstLine(err)
	}
	k.printf("leg %d, %s: %s; %d ticks, missed %d, worst wake-up %.3f ms, frames %d out, %d in; %s left%s\n", l.number, l.kind, result,
		v.Ticks, v.Missed, float64(v.Late.Max)/1e6, v.TxFrames, v.RxFrames,
		progress.Text(time.Duration(k.left()*k.period)), why)
	k.pruneRecords(v)
}

// printf prints a line of the soak itself.
func (k *series) printf(format string, args ...any) {
	fmt.Fprintf(host.Fold(k.Options.Out), format, args...)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// endSegment closes the run of a segment, preserves its reservations and writes the state.
func (k *series) endSegment(r *supervisor.Session) {
	k.reservations, r.Reservations = r.Reservations, nil
	r.Close()
	if r.Status != nil {
		r.Status.Discard()
	}
	k.store.write(k.state)
	if k.store.lastErr != nil && !k.warned {
		k.warned = true
		k.printf("soak: state: %v; the soak continues and tries again\n", k.store.lastErr)
	}
}

// checkGrowth measures this process between two segments and adds the criterion of its growth.
// Each of the clients has a descriptor.
func (k *series) checkGrowth(clients int64) {
	k.store.wait() // closes the descriptor of the state file
	f, err := measureSelf(clients)
	if err != nil {
		return // criterion "processes" of the segment reports it
	}
	first := &k.first
	if k.measured++; k.measured <= 2*len(k.schedule.entries)+1 { // until every kind of segment has run
		*first = footprint{max(first.KB, f.KB), max(first.Threads, f.Threads), max(first.Files, f.Files)}
		return
	}

	spare := supervisorGrowth
	limit := footprint{first.KB + spare.KB, first.Threads + spare.Threads, first.Files}
	k.state.Totals.addCriterion(&segment{number: k.state.Totals.Segments, kind: "between two legs"}, report.Criterion{
		What: "growth over legs",
		Want: fmt.Sprintf("at most %d kB, %d open files, %d threads: what the first legs had and %d kB, %d threads",
			limit.KB, limit.Files, limit.Threads, spare.KB, spare.Threads),
		Seen: fmt.Sprintf("%d kB, %d open files, %d threads", f.KB, f.Files, f.Threads),
		Held: f.KB <= limit.KB && f.Files <= limit.Files && f.Threads <= limit.Threads,
	})
}

// finish reports on the segments of all starts.
func (k *series) finish() (err error) {
	k.store.write(k.state)
	st, t := k.state, &k.state.Totals
	v := t.report(k.bench.Unit.Text)
	v.Soak = t.verdict(k.Options.For, cmp.Or(st.Load, "none"))
	v.Soak.Segments = &report.Segments{
		Done: t.Segments, Broken: t.Broken, Cut: st.Cut, CutTime: float64(st.CutNs) / 1e9, Starts: st.Starts,
		Missing: float64(st.Missing) / 1e9, Unwritten: k.store.failures, Binaries: st.Binary, Kinds: t.Kinds,
	}
	v.Set, v.Start = k.bench.SetText(), k.bench.StartText()
	v.Record, v.RecordError, v.Ended, v.Clean = k.Options.Record, k.recordEnded, "done", v.Soak.Pass
	if k.left() > 0 {
		v.Ended, v.Clean = "stopped by "+k.stopped, false
	}
	if err = k.report.Save(v.JSON); err != nil {
		err = fmt.Errorf("soak: report: %w", err)
	}

	k.printf("\n")
	out, _ := host.NewOutput(k.Options.Out)
	v.Text(out)
	v.Soak.Text(out)
	v.Soak.Segments.Text(out)
	if e := out.Err(); e != nil {
		err = errors.Join(err, fmt.Errorf("soak: %w", e))
	}
	if err = errors.Join(v.Soak.Failed(), err); err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// recordOf creates the record file of a segment and returns its name; "": no record.
func (k *series) recordOf(l *segment) string {
	if k.Options.Record == "" || k.recordEnded != "" {
		return ""
	}
	file := filepath.Join(k.Options.Record, fmt.Sprintf("leg-%06d.rec", l.number))
	if err := bench.CheckResult(file, "record"); err != nil {
		k.endRecords(err.Error())
		return ""
	}
	f, err := os.Create(file)
	if err != nil {
		k.endRecords(err.Error())
		return ""
	}

	f.Close()
	return file
}

// endRecords ends recording, for example on a full disk. The soak itself continues.
func (k *series) endRecords(why string) {
	k.recordEnded = why
	k.printf("soak: record: %s; the soak continues without records\n", why)
}

// pruneRecords renames the record of a broken segment and removes all but the Keep latest records
// of each kind.
func (k *series) pruneRecords(v *report.Report) {
	if v.Record == "" {
		return
	}
	if v.RecordError != "" {
		k.endRecords(v.RecordError)
		_ = os.Remove(v.Record) // incomplete
		return
	}

	if !v.Soak.Pass {
		_ = os.Rename(v.Record, strings.TrimSuffix(v.Record, ".rec")+"-broken.rec")
	}
	for _, pattern := range []string{"leg-[0-9][0-9][0-9][0-9][0-9][0-9].rec", "leg-*-broken.rec"} {
		list, _ := filepath.Glob(filepath.Join(k.Options.Record, pattern))
		slices.SortStableFunc(list, func(a, b string) int { // by time: an earlier soak may have left higher numbers
			return modTime(a).Compare(modTime(b))
		})
		for _, file := range list[:max(0, len(list)-max(1, k.Keep))] {
			if info, err := os.Stat(file); err == nil && !inputfile.WasRead(info) { // a bus may play it
				_ = os.Remove(file)
			}
		}
	}
}

// modTime returns the time of the last write to a file; zero: unknown.
func modTime(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// A segment that cannot begin, for example because an interface is down, is tried again.
const (
	maxOutage     = 5 * time.Minute // time after which the soak ends
	retryInterval = 2 * time.Second
)

// refuse handles a segment that the host has refused; nil: try the next one. If a segment of this
// start has ticked, the first refused one counts as broken, and the soak tries until maxOutage.
func (k *series) refuse(l *segment, err error) error {
	err = segmentError(l, err)
	refused := &host.Exit{}
	if !k.ticked || !errors.As(err, &refused) || refused.Code != 3 {
		return err
	}
	now := time.Now()
	if k.outage.IsZero() {
		k.outage = now
		k.state.Totals.refuse(l, err)
		k.printf("leg %d, %s: BROKEN; it could not begin, and the next one is tried for %v: %s\n",
			l.number, l.kind, maxOutage, firstLine(err))
	}

	if now.Sub(k.outage) > maxOutage {
		return host.Exitf(3, "soak: no leg has begun for %v: %w", maxOutage, errors.Unwrap(err))
	}
	return nil
}

// waitRetry waits for retryInterval or a signal.
func (k *series) waitRetry() {
	select {
	case <-time.After(retryInterval):
	case s := <-k.signals:
		k.stopped = strings.ToLower(s.String())
	}
}

// segmentError prefixes each line of a run's error with the number of the segment. It preserves the
// exit code.
func segmentError(l *segment, err error) error {
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
