package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/sched"
)

// Options are what a run is asked beyond its bench file.
type Options struct {
	For        time.Duration // how long; 0: until stopped
	Wait       time.Duration // so long at most for interfaces that are not there or down; 0: refuse at once
	Bus        []string      // "vcan0", or "drive=vcan0" where there are several: interfaces to use instead
	BestEffort bool          // run without the rights a named bus asks for
	Report     string        // file for the report as JSON; "" none
	Record     string        // file for the record; "" none
	Older      int           // records of starts before that are kept, as Record.1 (the latest), Record.2, ...
	Scenario   string        // what happens and what is expected, a file or embedded; "" nothing
	JUnit      string        // file for the verdict on it as JUnit XML; "" none
	Out        *os.File      // status line and closing report
	Every      time.Duration // between two lines of status that go to no terminal; 0: a second
	Choose     bench.Chooser // which executable ticks; nil: this one, with the table kernel

	// The virtual control unit has the least real-time priority: it does not wait for the
	// load of this host.
	Priority bool

	// OnPoll is called several times per second while the run lasts, by the goroutine that
	// supervises it; may be nil.
	OnPoll func(now time.Time)

	// Plan makes the scenario of the run, in the place of Scenario; it returns nil where
	// there is none.
	Plan func(h *bench.Handover) (*scenario.Scenario, error)
}

// Session is one run as the supervisor sees it, from its preparation to its report.
type Session struct {
	report.View
	Options Options
	Bench   *bench.Bench
	Title   string   // line before the announcement; "" none
	Known   bool     // the announcement is left out: a run before this one has made it
	head    string   // what the display begins with
	file    *os.File // of the report, written at the end; nil: there is none

	Reservations *host.Reservations // the CPU of the loop and the interfaces
	Scenario     scenario.Run
	preparation
	processes

	// The parts of the supervisor; idle until they are made.
	guard   *guard
	notify  *notifier
	record  *recorder.Recorder
	Control *control.Server    // idle: lockstep ctl cannot reach the run
	claims  *addressClaims     // of addresses
	states  *busStates         // of the buses that are interfaces
	players []*recorder.Player // of the buses that are logs
	ledger  report.Ledger
	loop    loopWatch

	ending
}

// preparation is what Prepare has found and made for the start.
type preparation struct {
	missing []sched.Missing // what the host refuses
	shared  *sched.Missing  // another loop has the CPU, too; nil: it is free
	program string          // file of the target; "" this binary
	inherit inheritance
	restore func() // undoes what was changed on the host
}

// processes are those of a run beside the supervisor.
type processes struct {
	Target      *host.Process
	Unit        *host.Process // nil: there is no virtual control unit
	unitEndedAt float64       // simulated time at which the unit ended before the run, s; < 0: it did not
	startedAt   int64         // when the target was started, ns on CLOCK_MONOTONIC
}

// inheritance is what the processes of a run inherit from the supervisor.
type inheritance struct {
	target []*os.File // hand-over, status block, buses, reservations
	unit   *os.File   // the unit's end of a pair; nil: there is no pair
	life   *os.File   // a pipe that ends with this process; the unit holds its other end
}

// close closes what a process has inherited, so that each end of a bus has one owner.
func (i *inheritance) close() {
	for _, f := range i.target {
		f.Close()
	}
	if i.unit != nil {
		i.unit.Close()
	}
	i.target, i.unit = nil, nil
}

// loopWatch is what the supervisor has seen of the thread of the loop.
type loopWatch struct {
	affinity *host.Affinity // of all other threads
	ticked   bool           // the target was seen to tick
	pinned   bool           // the thread was seen on its CPU alone
	migrated atomic.Bool    // and later it was not
}

// ending is why the supervisor ended a run.
type ending struct {
	Stop    string // the signal that ended it; "" none
	killed  bool   // the target, by somebody's wish
	overdue string // why the supervisor ended the run by itself; "" it did not
}

// Run prepares a bench, runs it until its time is over or a signal comes, and
// reports. An *Exit carries the exit code of a run that broke its policy (1) or a
// host that refuses (3).
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

// New returns the session of a bench; Prepare is next, and Close is due whatever happens.
func New(b *bench.Bench, o Options) *Session {
	return &Session{
		Bench: b, Options: o,
		preparation: preparation{restore: func() {}}, processes: processes{unitEndedAt: -1},
		guard: &guard{}, notify: &notifier{}, claims: &addressClaims{}, states: &busStates{},
		record: &recorder.Recorder{}, Control: &control.Server{},
	}
}

// StartAndWatch starts what is prepared, and returns when the target has ended.
func (r *Session) StartAndWatch(signals chan os.Signal) error {
	if err := r.start(); err != nil {
		return refused(err)
	}
	r.head = r.Title
	if !r.Known {
		r.head += r.announcement()
	}
	r.openControl(signals)
	r.watch(signals)
	return nil
}

// openControl lets `lockstep ctl` in. A run does without where it cannot, and says so.
func (r *Session) openControl(signals chan os.Signal) {
	c, err := control.Open(host.ControlDir(), r.View, r.Target.PID, r.record.EventLog(), signals)
	if err != nil {
		r.head += fmt.Sprintf("lockstep ctl cannot reach this run: %v\n", err)
		return
	}

	r.Control = c
}

// Signals takes the signals that end a run. A reader that has gone, as of `lockstep
// run | head -1`, does not: the write fails, and the display stops.
func Signals() chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return signals
}

// Prepare does all that may fail before the start.
func (r *Session) Prepare() (err error) {
	if err := sched.UseOrdinaryPolicy(); err != nil {
		return refused(fmt.Errorf("run: %w", err))
	}
	if err := r.Bench.SetBuses(r.Options.Bus); err != nil {
		return err
	}
	if r.Handover, err = bench.Prepare(r.Bench); err != nil {
		return err
	}
	if err := r.reserve(); err != nil {
		return refused(err)
	}
	if err := host.AwaitHostSettings(r.Options.Out, sched.HostSettings, host.SettingsTimeout); err != nil {
		return refused(err)
	}
	r.awaitInterfaces()

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
	if err = r.claims.open(r.View); err == nil {
		err = r.claims.waitClaimed()
	}
	if err != nil {
		return refused(fmt.Errorf("run: %w", err))
	}

	record, err := recorder.New(r.View, recorder.Options{
		Path: r.Options.Record, Older: r.Options.Older, Scenario: r.Scenario.Scenario,
		Events: func() []record.Event { return append(r.states.events(), r.claims.events()...) },
	})
	if err != nil {
		return err
	}
	r.record = record
	return r.createReport()
}

// refused is an error of the host: exit code 3.
func refused(err error) error { return &host.Exit{Code: 3, Err: err} }

// reserve takes the run's interfaces and the CPU of its loop, but for what it has from a segment
// before it.
func (r *Session) reserve() error {
	if r.Reservations == nil {
		r.Reservations = &host.Reservations{Owner: r.Bench.Name}
	}
	q := host.Request{CPU: r.Bench.CPU, Fallback: r.Handover.Thread.CPU, Share: r.Options.BestEffort,
		Real: r.hasRealBus(), Timers: r.Handover.Timer.Sleep == sched.Timerfd}
	for _, bus := range r.Bench.Buses {
		if bench.IsHostInterface(bus.Interface.Text) {
			q.Buses = append(q.Buses, host.Interface{Bus: bus.Name.Text, Name: bus.Interface.Text})
		}
	}

	var err error
	r.Handover.Thread.CPU, r.shared, err = r.Reservations.Reserve(q)
	return err
}

// openScenario reads the scenario that the run is asked to follow.
func (r *Session) openScenario() (err error) {
	if r.Options.Plan == nil {
		r.Scenario, err = scenario.Open(r.Handover, r.Options.Scenario, r.Options.JUnit)
		return err
	}

	if r.Scenario.Scenario, err = r.Options.Plan(r.Handover); r.Scenario.Scenario != nil {
		scenario.Apply(r.Handover, r.Scenario.Scenario)
	}
	return err
}

// saveHandover makes the hand-over, the first of what the target inherits.
func (r *Session) saveHandover() error {
	r.Handover.Missing, r.Handover.Reservations = r.missing, r.Reservations.Names()
	handover, err := r.Handover.Save()
	if err == nil {
		r.inherit.target = append([]*os.File{handover}, r.inherit.target...)
	}
	return err
}

// open makes what the target inherits besides the hand-over: the page, the bus
// sockets; and the supervisor's own ends of the buses.
func (r *Session) open() error {
	file, page, err := rt.CreateStatusBlock()
	if err != nil {
		return err
	}
	r.Status = page
	r.inherit.target = append(r.inherit.target, file)
	if err := r.openParts(); err != nil {
		return err
	}
	for i, bus := range r.Bench.Buses {
		f, err := r.dial(bus.Interface.Text, r.Handover.Maps[i].Filters())
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		r.inherit.target = append(r.inherit.target, f)
		if err := r.addBus(i, f); err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
	}

	return r.states.refuseBusOff()
}

// openParts makes the parts of the supervisor that need the status block.
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
	r.guard = &guard{View: r.View, done: make(chan struct{})}
	return nil
}

// addBus gives the guard its own end of a bus, and follows how it stands.
func (r *Session) addBus(bus int, f *os.File) error {
	own, err := can.Share(f)
	if err != nil {
		return err
	}
	r.guard.buses = append(r.guard.buses, own)
	if !bench.IsHostInterface(r.Bench.Buses[bus].Interface.Text) {
		return nil
	}
	return r.states.add(bus, own)
}

// dial opens one bus. The control unit gets the other end of a pair.
func (r *Session) dial(name string, filters []can.Filter) (*os.File, error) {
	if strings.HasPrefix(name, bench.LogPrefix) {
		p, target, err := recorder.OpenPlayer(name, filters)
		if err == nil {
			r.players = append(r.players, p)
		}
		return target, err
	}

	if name != bench.PairInterface {
		bus, err := can.Dial(name, filters)
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
	r.inherit.unit = unit // there is one pair at most: Prepare sees to it
	return target, nil
}

// Shutdown ends what is beside the target, and returns what is to be reported.
func (r *Session) Shutdown() (report *report.Report, err error) {
	r.Control.Close()
	<-r.guard.done
	r.states.close()
	r.guard.close() // so that the control unit sees the end of its bus
	if r.Unit != nil && !r.Unit.WaitDone(Grace) {
		r.Unit.Kill()
	}
	for _, p := range r.players {
		p.Finish()
	}
	r.claims.close()
	trouble := r.record.Finish()
	report = r.report()
	report.Record, report.RecordError, report.Monitored = r.Options.Record, trouble, r.record.Monitored()
	for _, p := range r.players {
		report.Played = append(report.Played, p.Report())
	}
	err = r.Scenario.Report(report, r.record.Findings)
	r.Control.AnswerWaiting(report)
	return report, err
}

// Finish writes the report and the closing lines, and returns how the run ended; err is what
// went wrong before. The files come first: a terminal may not be read.
func (r *Session) Finish(rep *report.Report, err error, signals chan os.Signal) error {
	r.notify.sendStopping(rep.Ended)
	if r.file != nil {
		if e := report.Save(rep, r.file); e != nil {
			err = errors.Join(err, fmt.Errorf("run: report: %w", e))
		}
	}

	signal.Stop(signals) // from here on they kill
	fmt.Fprintln(r.Options.Out)
	rep.Text(r.Options.Out)
	if rep.Soak != nil {
		rep.Soak.Text(r.Options.Out)
		err = errors.Join(rep.Soak.Failed(), err)
	}

	if rep.Scenario != nil {
		rep.Scenario.Text(r.Options.Out)
		err = errors.Join(rep.Scenario.Failed(), err)
	}

	if rep.RecordError != "" {
		err = errors.Join(fmt.Errorf("run: record %s %w: %s", r.Options.Record, recorder.ErrIncomplete, rep.RecordError), err)
	}
	if !rep.Clean {
		err = errors.Join(fmt.Errorf("run: %s, after %.3f s", rep.Ended, rep.SimTime), err)
	}
	if err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// createReport makes the file of the report, where one is asked for.
func (r *Session) createReport() (err error) {
	if r.Options.Report == "" {
		return nil
	}
	if r.file, err = host.CreateExclusive(r.Options.Report); err != nil {
		return fmt.Errorf("run: report: %w", err)
	}
	return nil
}
