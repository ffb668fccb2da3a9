package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/checkpoint"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/live"
	"lockstep/rt/metrics"
	"lockstep/rt/progress"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/rt/tableset"
	"lockstep/rt/target"
	"lockstep/sched"
)

// Options are the settings of a run that are not in its bench file.
type Options struct {
	For        time.Duration // length of the run; 0: until stopped
	Wait       time.Duration // longest wait for interfaces that are missing or down; 0: refuse at once
	Bus        []string      // interfaces instead of those of the bench: "vcan0", or "drive=vcan0" with several buses
	BestEffort bool          // run on a real bus without the real-time rights
	Report     string        // file for the report as JSON; "": none
	Record     string        // file for the record; "": none
	Older      int           // number of older records kept, as Record.1 (the latest), Record.2, ...
	Scenario   string        // file or name of an embedded scenario; "": none
	Cycle      string        // drive cycle without a scenario, embedded or FILE.csv; "": none
	JUnit      string        // file for the result of the scenario as JUnit XML; "": none
	Page       string        // TCP port of the live page on 127.0.0.1, "0": any free one; "": no page
	KeepPage   bool          // of Attach: the page is that of the earlier supervisor, if it had one
	Out        *os.File      // output of the status line and the text report
	Every      time.Duration // interval of status lines if Out is no terminal; 0: one second
	Whole      time.Duration // length of all runs of a soak; 0: this run is alone
	Before     time.Duration // simulated time of the runs of the soak before this one

	Progress *progress.Line // of the preparation; nil: none

	Choose bench.Chooser // chooses the executable of the target; nil: this one, with the table kernel

	// Priority runs the virtual control unit at the lowest real-time priority, so that load on
	// the host does not delay it.
	Priority bool

	// Examine judges the host for the loop of a run, which is a thread of it; nil: nothing does.
	Examine func(h *bench.Handover, loop int) ([]control.HostCheck, error)

	// OnPoll is called several times per second during the run, by the goroutine of StartAndWatch;
	// nil: not called.
	OnPoll func(now time.Time)

	// Plan makes the scenario of the run instead of Scenario; it returns nil for no scenario.
	Plan func(h *bench.Handover) (*scenario.Scenario, error)
}

// Session is one run in its supervisor, from the preparation to the report.
type Session struct {
	report.View
	Options Options
	Bench   *bench.Bench
	Title   string       // line before the announcement; "": none
	Known   bool         // leave out the announcement; an earlier run of the same soak made it
	head    string       // lines before the first status line
	file    *host.Result // file of the report, written at the end; nil: none

	Reservations *host.Reservations // CPU of the loop and interfaces
	Scenario     scenario.Run
	preparation
	processes

	// The parts of the supervisor; idle until opened.
	watchdog *watchdog
	notify   *notifier
	record   *recorder.Recorder
	Control  *control.Server    // idle: lockstep ctl cannot reach the run
	page     *live.Server       // nil: no live page
	metrics  *metrics.Server    // nil: no figures for Prometheus
	previous *metrics.End       // how the previous run ended by its report; nil: not known
	ports    *busPorts          // J1939 addresses, requests, messages of several frames
	power    *power             // supply of the unit under test
	states   *busStates         // states of the buses on interfaces
	players  []*recorder.Player // one per bus played from a log
	ledger   report.Ledger
	clock    report.Clock
	loop     loopWatch

	ending
	watching bool // the target runs and is watched
}

// preparation holds the results of Prepare for the start.
type preparation struct {
	missing []sched.Missing // rights and settings that the host refuses
	shared  *sched.Missing  // another loop uses the CPU, too; nil: no other loop does
	program string          // file of the target; "": this binary
	inherit inheritance
	restore func() // restores the settings of the host
}

// processes are the processes of a run besides the supervisor.
type processes struct {
	Target      *host.Process
	Unit        *host.Process // nil: no virtual control unit
	Guard       *host.Process // nil: the supervisor is the watchdog
	unitEndedAt float64       // simulated time at which the unit ended before the run, s; < 0: it did not
	startedAt   int64         // start of the target, ns on CLOCK_MONOTONIC
}

// inheritance holds the files that the processes of a run inherit from the supervisor.
type inheritance struct {
	target []*os.File // hand-over, status block, buses, reservations; the guard inherits the first three
	units  []*os.File // unit's ends of pairs
	life   *os.File   // supervisor's end of a pipe; the unit ends when this process ends

	// other ends of pairs without a unit; the target inherits them, so that they last as long as it
	unconnected []*os.File
}

// close closes the inherited files, so that each end of a bus has one owner.
func (i *inheritance) close() {
	for _, f := range slices.Concat(i.target, i.unconnected, i.units) {
		f.Close() // may be called twice
	}
	i.target, i.unconnected, i.units = nil, nil, nil
}

// loopWatch is the supervisor's view of the thread of the loop.
type loopWatch struct {
	affinity *host.Affinity // affinity of all other threads
	ticked   bool           // the target has ticked
	migrated atomic.Bool    // the thread started on its CPU alone and has lost it
}

// ending holds the reasons why the supervisor ended a run.
type ending struct {
	Stop    string // signal that ended the run; "": none
	killed  bool   // a user asked to kill the target
	overdue string // reason why the supervisor itself ended the run; "": it did not

	ended atomic.Pointer[metrics.End] // how the run has ended; nil: it has not
}

// Run prepares a bench, runs it until its time is over or a signal comes, and reports. A
// *host.Exit carries the exit code: 1 for a run that did not end cleanly, 3 for a host that refuses
// it.
func Run(b *bench.Bench, o Options) error {
	r := New(b, o)
	defer r.Close()
	if err := r.Prepare(); err != nil {
		return err
	}
	signals := Signals()
	if err := r.StartAndWatch(signals); err != nil {
		return err
	}
	report, err := r.Shutdown()
	return r.Finish(report, err, signals)
}

// New returns the session of a bench. Prepare comes next; Close must be called in any case.
func New(b *bench.Bench, o Options) *Session {
	return &Session{
		Bench: b, Options: o,
		preparation: preparation{restore: func() {}}, processes: processes{unitEndedAt: -1},
		watchdog: &watchdog{}, notify: &notifier{}, ports: &busPorts{}, states: &busStates{}, power: &power{},
		record: &recorder.Recorder{}, Control: &control.Server{},
	}
}

// StartAndWatch starts the prepared run and returns when the target has ended.
func (r *Session) StartAndWatch(signals chan os.Signal) error {
	if err := r.start(signals); err != nil {
		return refused(err)
	}
	r.head = r.Title
	if !r.Known {
		r.head += r.announcement()
	}
	r.openControl(signals)
	r.openMetrics()
	r.watch(signals)
	return nil
}

// openControl opens the door of the run and the live page. If that fails, the run goes on without them
// and shows a message.
func (r *Session) openControl(signals chan os.Signal) {
	c, err := control.Open(host.ControlDir(), r.View, r.Target.PID, r.record, signals)
	if err != nil {
		r.head += fmt.Sprintf("lockstep ctl cannot reach this run: %v\n", err)
		return
	}

	r.Control = c
	sources := control.Sources{Buses: r.states.report, Ledger: &r.ledger, Progress: r.record.Progress}
	if r.Options.Examine != nil {
		sources.Examine = func() ([]control.HostCheck, error) {
			return r.Options.Examine(r.Handover, int(r.Status.Thread.Load()))
		}
	}
	c.SetSources(sources)
	c.SetDiagnosis(r.ports.desk())
	if r.Options.Page == "" {
		return
	}
	if r.page, err = live.Open(r.Options.Page, r.Bench.Name, cmp.Or(r.Handover.Page.Token, live.NewToken()), c); err != nil {
		r.head += err.Error() + "\n"
		return
	}
	sources.Page = r.page.URL()
	c.SetSources(sources)
	r.head += "live: " + sources.Page + "\n"
}

// Signals returns a channel of the signals that end a run. SIGPIPE does not end it: after `lockstep
// run | head -1` only the display stops.
func Signals() chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return signals
}

// Prepare reserves, opens and checks all that the run needs; it starts nothing.
func (r *Session) Prepare() (err error) {
	if err := sched.UseOrdinaryPolicy(); err != nil {
		return refused(fmt.Errorf("run: %w", err))
	}
	if err := r.Bench.SetBuses(r.Options.Bus); err != nil {
		return err
	}
	defer r.Options.Progress.End()
	r.Bench.Progress = r.Options.Progress.BeginPreparation(r.Bench.Name)
	if r.Handover, err = bench.Prepare(r.Bench); err != nil {
		return err
	}
	r.Options.Progress.End()
	if err := r.Bench.CheckWires(); err != nil {
		return &host.Exit{Code: 2, Err: err}
	}
	if err := r.Bench.CheckEnds(); err != nil {
		return err
	}
	if err := r.reserve(); err != nil {
		return refused(err)
	}
	if err := host.AwaitHostSettings(r.Options.Out, sched.HostSettings, host.SettingsTimeout); err != nil {
		return refused(err)
	}
	r.waitForInterfaces()

	r.ledger.CPU = r.Handover.Thread.CPU
	if r.Options.For > 0 {
		period := r.Handover.Tables.PeriodNs
		if r.Handover.Loop.Ticks = int64(r.Options.For) / period; r.Handover.Loop.Ticks == 0 {
			return fmt.Errorf("run: %v is shorter than the period, %v", r.Options.For, time.Duration(period))
		}
	}

	if err := r.openScenario(); err != nil {
		return err
	}
	if r.Options.Choose != nil {
		if r.program, r.Handover.Mark, err = r.Options.Choose(r.Handover); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}

	if err := r.open(); err != nil {
		return refused(err)
	}
	if err := r.checkRights(); err != nil {
		return err
	}
	if err := r.saveHandover(); err != nil {
		return refused(err)
	}
	if err = r.ports.open(r.View); err == nil {
		err = r.ports.waitClaimed()
	}
	if err != nil {
		return refused(fmt.Errorf("run: %w", err))
	}

	if err := r.power.open(r.Bench.Power, r.Status); err != nil {
		return refused(fmt.Errorf("run: %w", err))
	}

	r.previous = previousEnd(r.Options.Report, r.Bench)
	if err := r.createReport(); err != nil {
		return err
	}
	return r.openRecord(recorder.Options{Path: r.Options.Record, Older: r.Options.Older, Scenario: r.Scenario.Scenario})
}

// openRecord opens the recorder, which gives the door its signals and may start records.
func (r *Session) openRecord(o recorder.Options) error {
	o.Live, o.Ports, o.Diagnosis = true, r.ports.sent, r.ports.outcomes
	o.Events = func() []record.Event { return slices.Concat(r.states.events(), r.ports.events(), r.power.takeEvents()) }
	record, err := recorder.New(r.View, o)
	if err == nil {
		r.record = record
		r.ports.useAgenda(record.Agenda())
	}
	return err
}

// refused returns err with its exit code, and without one with code 3: the host refuses the run.
func refused(err error) error {
	var e *host.Exit
	if errors.As(err, &e) {
		return &host.Exit{Code: e.Code, Err: err}
	}
	return &host.Exit{Code: 3, Err: err}
}

// reserve reserves the interfaces of the run and the CPU of its loop. It keeps reservations of an
// earlier segment of a soak.
func (r *Session) reserve() error {
	if r.Reservations == nil {
		r.Reservations = &host.Reservations{Owner: r.Bench.Name}
	}
	q := host.Request{CPU: r.Bench.CPU, Fallback: r.Handover.Thread.CPU, Share: r.Options.BestEffort,
		Real: r.hasRealBus(), Timers: r.Handover.Timer.Sleep == sched.Timerfd}
	q.Buses = exclusive(r.Bench.Buses)
	var err error
	r.Handover.Thread.CPU, r.shared, err = r.Reservations.Reserve(q)
	return err
}

// exclusive returns the buses that one run of this host may use at a time: interfaces, and boxes by wire.
func exclusive(buses []bench.Bus) (list []host.Interface) {
	for _, bus := range buses {
		if can.IsWire(bus.Interface.Text) || bench.IsHostInterface(bus.Interface.Text) {
			list = append(list, host.Interface{Bus: bus.Name.Text, Name: bus.Interface.Text})
		}
	}
	return list
}

// openScenario reads the scenario of the run.
func (r *Session) openScenario() (err error) {
	if r.Options.Plan == nil {
		r.Scenario, err = scenario.Open(r.Handover, r.Options.Scenario, r.Options.Cycle, r.Options.JUnit)
		return err
	}

	if r.Scenario.Scenario, err = r.Options.Plan(r.Handover); r.Scenario.Scenario != nil {
		scenario.Apply(r.Handover, r.Scenario.Scenario)
	}
	return err
}

// saveHandover writes the hand-over, the first file that the target inherits.
func (r *Session) saveHandover() error {
	r.Handover.Missing, r.Handover.Reservations = r.missing, r.Reservations.Names()
	if r.Options.Page != "" {
		r.Handover.Page = bench.LivePage{Port: r.Options.Page, Token: live.NewToken()}
	}
	handover, err := r.Handover.Save()
	if err == nil {
		r.inherit.target = append([]*os.File{handover}, r.inherit.target...)
	}
	return err
}

// open makes the status block and the bus sockets that the target inherits, and the supervisor's
// own descriptors of the buses.
func (r *Session) open() error {
	file, status, err := rt.CreateStatusBlock()
	if err != nil {
		return err
	}
	r.Status = status
	r.inherit.target = append(r.inherit.target, file)
	if err := r.openParts(); err != nil {
		return err
	}
	for i, bus := range r.Bench.Buses {
		f, err := r.dial(i)
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		r.inherit.target = append(r.inherit.target, f)
		if err := r.addBus(i, f); err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
	}

	if err := r.openTableSets(); err != nil {
		return err
	}
	if err := r.openCheckpoint(); err != nil {
		return err
	}
	return r.states.refuseBusOff()
}

// openCheckpoint makes the memory for a copy of the loop's state, which the target inherits last of its memory. A
// generated kernel makes no copies.
func (r *Session) openCheckpoint() error {
	if r.Handover.Mark != "" {
		return nil
	}
	file, m, err := checkpoint.CreateFile()
	if err != nil {
		return err
	}
	r.View.Checkpoint, r.Handover.StateFD = m, target.HandoverFD+1+len(r.inherit.target)
	r.inherit.target = append(r.inherit.target, file)
	return nil
}

// openTableSets makes the memory for tables of other parameters, which the target inherits after its buses.
func (r *Session) openTableSets() error {
	if r.Handover.FixedParameters() != nil {
		return nil
	}
	file, sets, err := tableset.New(kernel.New(r.Handover.Tables), 1+len(r.Handover.Changes))
	if err != nil {
		return err
	}
	r.TableSets, r.Handover.TableSetFD = sets, target.FirstBusFD+len(r.Bench.Buses)
	r.inherit.target = append(r.inherit.target, file)
	return nil
}

// openParts opens the parts of the supervisor that need the status block.
func (r *Session) openParts() error {
	notify, err := newNotifier(r.Status)
	if err != nil {
		return err
	}
	states, err := newBusStates(r.View)
	if err != nil {
		notify.close()
		return err
	}

	r.notify, r.states = notify, states
	r.watchdog = &watchdog{View: r.View, done: make(chan struct{})}
	return nil
}

// addBus gives the watchdog a descriptor of a bus, and starts to follow the state of an interface.
func (r *Session) addBus(bus int, f *os.File) error {
	own, err := can.Share(f)
	if err != nil {
		return err
	}
	if err := useWire(r.Handover, bus, own); err != nil {
		return err
	}
	r.watchdog.buses = append(r.watchdog.buses, own)
	if !bench.IsHostInterface(r.Bench.Buses[bus].Interface.Text) {
		r.ports.shared[bus], err = can.Share(f)
		return err
	}
	return r.states.add(bus, own)
}

// dial opens one bus. The other end of a pair is for the virtual control unit, or drops all frames.
func (r *Session) dial(bus int) (*os.File, error) {
	name, m := r.Bench.Buses[bus].Interface.Text, r.Handover.Maps[bus]
	if bench.IsLog(name) {
		p, target, err := recorder.OpenPlayer(name, r.Handover.LogFilters(bus))
		if err == nil {
			r.players = append(r.players, p)
		}
		return target, err
	}

	if name != bench.PairInterface {
		bus, err := can.Dial(name, m.LoopFilters())
		if err != nil {
			return nil, err
		}
		defer bus.Close()
		return bus.File()
	}

	target, unit, err := can.Pair()
	if err != nil {
		return nil, err
	}
	if r.Bench.HasUnit(bus) {
		r.inherit.units = append(r.inherit.units, unit)
		return target, nil
	}
	r.inherit.unconnected = append(r.inherit.unconnected, unit)
	return target, can.DropReceived(unit)
}

// Shutdown ends all parts of the run besides the target, and returns the report.
func (r *Session) Shutdown() (report *report.Report, err error) {
	r.Control.CloseListener()
	<-r.watchdog.done
	r.states.close()
	r.ports.close()
	r.watchdog.close()     // the control unit sees the end of its bus, which the ports have closed too
	r.inherit.life.Close() // or here, on an interface of the host; no effect on nil
	if r.Unit != nil && !r.Unit.WaitDone(Grace) {
		r.Unit.Kill()
	}
	for _, p := range r.players {
		p.Finish()
	}
	r.record.Finish()
	report = r.report()
	r.ended.Store(&metrics.End{Why: report.Ended, Clean: report.Clean})
	r.record.Report(report)
	recorder.AddPlayed(r.players, report)
	err = r.Scenario.Report(report, r.record.Findings)
	r.Control.AnswerWaiting(report)
	return report, err
}

// Finish writes the report to its file and then to the output, which may block. It returns the
// error of the run with its exit code; err is an earlier error.
func (r *Session) Finish(rep *report.Report, err error, signals chan os.Signal) error {
	r.notify.sendStopping(rep.Ended)
	if e := r.file.Save(rep.JSON); e != nil {
		err = errors.Join(err, fmt.Errorf("run: report: %w", e))
	}

	signal.Stop(signals) // a signal now kills this process
	out, _ := host.NewOutput(r.Options.Out)
	fmt.Fprintln(out)
	rep.Text(out)
	if rep.Soak != nil {
		rep.Soak.Text(out)
		err = errors.Join(rep.Soak.Failed(), err)
	}

	if rep.Scenario != nil {
		rep.Scenario.Text(out)
		err = errors.Join(rep.Scenario.Failed(), err)
	}

	if e := out.Err(); e != nil {
		err = errors.Join(err, fmt.Errorf("run: %w", e))
	}
	if rep.RecordError != "" {
		incomplete := r.record.Err()
		if incomplete == nil { // the record of an earlier segment of a soak
			incomplete = fmt.Errorf("record %s %w: %s", r.Options.Record, recorder.ErrIncomplete, rep.RecordError)
		}
		err = errors.Join(fmt.Errorf("run: %w", incomplete), err)
	}
	if !rep.Clean {
		err = errors.Join(fmt.Errorf("run: %s, after %.3f s", rep.Ended, rep.SimTime), err)
	}
	if err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// createReport creates the file of the report, if Options.Report names one.
func (r *Session) createReport() (err error) {
	if r.file, err = bench.CreateResult(r.Options.Report, host.ReportSpace, "report", "JSON"); err != nil {
		return fmt.Errorf("run: report: %w", err)
	}
	return nil
}
