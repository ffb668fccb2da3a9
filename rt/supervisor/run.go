package supervisor

import (
	"encoding/json"
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
	Follow     *Follow       // nil: nobody does
	Observer   Observer      // takes part in the run; nil: nobody does
	Priority   bool          // the virtual control unit has the least real-time priority: it does not wait for the load of this host

	// Plan makes the scenario of the run, in the place of Scenario; it returns nil where
	// there is none.
	Plan func(h *bench.Handover) (*scenario.Scenario, error)
}

// Session is one run as the supervisor sees it, from its preparation to its report.
type Session struct {
	report.View
	Options  Options
	Bench    *bench.Bench
	observer Observer
	head     string // what the display begins with

	Reservations *host.Reservations // the CPU of the loop and the interfaces
	Scenario     scenario.Run
	preparation
	processes

	// The parts of the supervisor; nil until they are made. The methods that Close calls, and all
	// of record, Control, claims and states, do nothing for nil.
	guard   *guard
	notify  *notifier
	record  *recorder.Recorder // nil: nothing is recorded or judged
	Control *control.Server    // nil: lockstep ctl cannot reach the run
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
	Target  *host.Process
	Unit    *host.Process // nil: there is no virtual control unit
	unitDie float64       // simulated time at which the unit ended before the run, s; < 0: it did not
	begun   int64         // when the target was started, ns on CLOCK_MONOTONIC
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
	placed   bool           // the thread was seen on its CPU alone
	migrated atomic.Bool    // and later it was not
}

// ending is why the supervisor ended a run.
type ending struct {
	Stop    string // the signal that ended it; "" none
	killed  bool   // the target, by somebody's wish
	overdue string // why the supervisor ended the run by itself; "" it did not
}

// Observer takes part in a run from inside, as a soak does. The goroutine that supervises
// the run calls its methods, in this order.
type Observer interface {
	Begin(r *Session) error          // before the target is started
	Head(announcement string) string // what the display begins with, given what the run says of itself
	Look(now time.Time)              // several times per second while the run lasts
	End()                            // when the target has ended, or could not be started
	Judge(v *report.Report)          // completes the report
}

// unobserved is the Observer of a run that nobody observes.
type unobserved struct{}

func (unobserved) Begin(*Session) error    { return nil }
func (unobserved) Head(text string) string { return text }
func (unobserved) Look(time.Time)          {}
func (unobserved) End()                    {}
func (unobserved) Judge(*report.Report)    {}

// Run prepares a bench, runs it until its time is over or a signal comes, and
// reports. An *Exit carries the exit code of a run that broke its policy (1) or a
// host that refuses (3).
func Run(b *bench.Bench, o Options) error {
	r := New(b, o)
	defer r.Close()
	if err := sched.Ordinary(); err != nil {
		return &host.Exit{Code: 3, Err: fmt.Errorf("run: %w", err)}
	}
	report, err := r.Prepare()
	if err != nil {
		return err
	}
	if report != nil {
		defer report.Close()
	}
	signals := Signals()
	if err := r.StartAndWatch(signals); err != nil {
		return err
	}
	return r.finish(report, signals)
}

// New returns the session of a bench; Prepare is next, and Close is due whatever happens.
func New(b *bench.Bench, o Options) *Session {
	r := &Session{Bench: b, Options: o, observer: o.Observer, preparation: preparation{restore: func() {}}, processes: processes{unitDie: -1}}
	if r.observer == nil {
		r.observer = unobserved{}
	}
	return r
}

// StartAndWatch starts what is prepared, and returns when the target has ended.
func (r *Session) StartAndWatch(signals chan os.Signal) error {
	err := r.observer.Begin(r)
	if err == nil {
		err = r.start()
	}
	if err != nil {
		r.observer.End()
		return &host.Exit{Code: 3, Err: err}
	}
	r.head = r.observer.Head(r.announcement())
	r.openControl(signals)
	r.watch(signals)
	return nil
}

// openControl lets `lockstep ctl` in. A run does without where it cannot, and says so.
func (r *Session) openControl(signals chan os.Signal) {
	var err error
	if r.Control, err = control.Open(host.ControlDir(), r.View, r.Target.PID, r.record.Lines(), signals); err != nil {
		r.head += fmt.Sprintf("lockstep ctl cannot reach this run: %v\n", err)
	}
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
func (r *Session) Prepare() (report *os.File, err error) {
	if err := r.Bench.SetBuses(r.Options.Bus); err != nil {
		return nil, err
	}
	if r.Handover, err = bench.Prepare(r.Bench); err != nil {
		return nil, err
	}
	if err := r.hold(); err != nil {
		return nil, &host.Exit{Code: 3, Err: err}
	}
	if err := host.AwaitSettings(r.Options.Out, sched.HostSettings, host.SettingsTimeout); err != nil {
		return nil, &host.Exit{Code: 3, Err: err}
	}
	r.await()
	r.ledger.CPU = r.Handover.Thread.CPU
	if r.Options.For > 0 {
		if r.Handover.Loop.Ticks = int64(r.Options.For) / r.Handover.Tables.PeriodNs; r.Handover.Loop.Ticks == 0 {
			return nil, fmt.Errorf("run: %v is shorter than the period, %v", r.Options.For, time.Duration(r.Handover.Tables.PeriodNs))
		}
	}
	if err := r.openScenario(); err != nil {
		return nil, err
	}
	if r.Options.Choose != nil {
		if r.program, r.Handover.Mark, err = r.Options.Choose(r.Handover); err != nil {
			return nil, fmt.Errorf("run: %w", err)
		}
	}
	if err := r.open(); err != nil {
		return nil, &host.Exit{Code: 3, Err: err}
	}
	if err := r.rights(); err != nil {
		return nil, err
	}
	if err := r.seal(); err != nil {
		return nil, &host.Exit{Code: 3, Err: err}
	}
	if r.claims, err = newClaims(r.View); err == nil {
		err = r.claims.settle()
	}
	if err != nil {
		return nil, &host.Exit{Code: 3, Err: fmt.Errorf("run: %w", err)}
	}
	if r.record, err = recorder.New(r.View, recorder.Options{Path: r.Options.Record, Older: r.Options.Older, Scenario: r.Scenario.Scenario, Events: r.busEvents}); err != nil {
		return nil, err
	}
	return r.createReport()
}

// hold takes the run's interfaces and the CPU of its loop, but for what it has from a segment
// before it.
func (r *Session) hold() error {
	if r.Reservations == nil {
		r.Reservations = &host.Reservations{Owner: r.Bench.Name}
	}
	q := host.Request{CPU: r.Bench.CPU, Fallback: r.Handover.Thread.CPU, Share: r.Options.BestEffort, Real: r.real(), Timers: r.Handover.Timer.Sleep == sched.Timerfd}
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

// busEvents are the new events of the buses and of the claims of addresses.
func (r *Session) busEvents() []record.Event { return append(r.states.events(), r.claims.events()...) }

// seal makes the hand-over, the first of what the target inherits.
func (r *Session) seal() error {
	r.Handover.Missing, r.Handover.Held = r.missing, r.Reservations.What
	handover, err := r.Handover.Save()
	if err == nil {
		r.inherit.target = append([]*os.File{handover}, r.inherit.target...)
	}
	return err
}

// open makes what the target inherits besides the hand-over: the page, the bus
// sockets; and the supervisor's own ends of the buses.
func (r *Session) open() error {
	file, page, err := rt.CreatePage()
	if err != nil {
		return err
	}
	r.Page = page
	r.inherit.target = append(r.inherit.target, file)
	if r.notify, err = newNotifier(page); err != nil {
		return err
	}
	r.guard = &guard{View: r.View, done: make(chan struct{})}
	if r.states, err = newBusStates(r.View); err != nil {
		return err
	}
	for i, bus := range r.Bench.Buses {
		f, err := r.dial(bus.Interface.Text, r.Handover.Maps[i].Filters())
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		r.inherit.target = append(r.inherit.target, f)
		if err := r.keep(i, f); err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
	}
	return r.states.refuse()
}

// keep gives the guard its own end of a bus, and follows how it stands.
func (r *Session) keep(bus int, f *os.File) error {
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

// Conclude ends what is beside the target, and returns what is to be reported.
func (r *Session) Conclude() (report *report.Report, err error) {
	r.Control.Close()
	<-r.guard.done
	r.observer.End()
	r.states.finish()
	r.guard.close() // so that the control unit sees the end of its bus
	if r.Unit != nil && !r.Unit.WaitDone(Grace) {
		r.Unit.Kill()
	}
	for _, p := range r.players {
		p.Finish()
	}
	r.claims.finish()
	trouble := r.record.Finish()
	report = r.report()
	report.Record, report.Trouble, report.Others = r.Options.Record, trouble, r.record.Monitored()
	for _, p := range r.players {
		report.Played = append(report.Played, p.Report())
	}
	err = r.Scenario.Report(report, r.record.Findings())
	r.observer.Judge(report)
	r.Control.Conclude(report)
	return report, err
}

// finish writes the report and the closing lines, and returns how the run ended. The files
// come first: a terminal may not be read.
func (r *Session) finish(file *os.File, signals chan os.Signal) error {
	rep, err := r.Conclude()
	r.notify.stopping(rep.Ended)
	if r.Options.Follow != nil {
		r.Options.Follow.End(rep)
	}
	if file != nil {
		if e := report.Save(rep, file); e != nil {
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
	if rep.Trial != nil {
		rep.Trial.Text(r.Options.Out)
		err = errors.Join(rep.Trial.Failed(), err)
	}
	if rep.Trouble != "" {
		err = errors.Join(fmt.Errorf("run: record %s %w: %s", r.Options.Record, recorder.ErrIncomplete, rep.Trouble), err)
	}
	if !rep.Clean {
		return &host.Exit{Code: 1, Err: errors.Join(fmt.Errorf("run: %s, after %.3f s", rep.Ended, rep.SimTime), err)}
	}
	if err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// refused decodes what the target said the host refused it.
func (r *Session) refused() (list []sched.Missing) {
	// A target that died first has said nothing; how it died is reported.
	_ = json.Unmarshal(r.Target.Stdout.Bytes(), &list)
	return list
}

// createReport makes the file of the report, which is written at the end; nil: there is none.
func (r *Session) createReport() (*os.File, error) {
	if r.Options.Report == "" {
		return nil, nil
	}
	f, err := host.CreateExclusive(r.Options.Report)
	if err != nil {
		return nil, fmt.Errorf("run: report: %w", err)
	}
	return f, nil
}

// Follow lets the caller of Run see more of it than its report.
type Follow struct {
	Begin func(b Begun)          // once, soon after the first tick; it must not block
	End   func(r *report.Report) // once, with the report that is then written
}

// Begun is a run that ticks.
type Begun struct {
	Thread sched.Thread // of the loop
	Files  []bench.Hash // what the run is made from; nil: a file cannot be read any more
	Page   *rt.Page     // the counters of the loop
}
