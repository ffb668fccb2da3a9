package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
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
	Choose     Chooser       // which executable ticks; nil: this one, with the table kernel
	Follow     *Follow       // nil: nobody does
	Observer   Observer      // takes part in the run; nil: nobody does
	Priority   bool          // the virtual control unit has the least real-time priority: it does not wait for the load of this host

	// Plan makes the scenario of the run, in the place of Scenario; it returns nil where
	// there is none.
	Plan func(h *Handover) (*Scenario, error)
}

// Chooser finds the executable that ticks for a hand-over, with a kernel that was
// generated for it: its absolute path, and its mark (see package target).
type Chooser func(h *Handover) (file, mark string, err error)

// pair is the interface of a bus that lives between two processes of the run.
const pair = "pair"

// run is one run as the supervisor sees it, from its preparation to its report.
type run struct {
	view
	options  Options
	bench    *Bench
	observer Observer
	head     string // what the display begins with

	// What the run has before it starts.
	holds    *holds          // its CPU and its interfaces
	missing  []sched.Missing // what the host refuses
	shared   *sched.Missing  // the CPU is another loop's, too; nil: it is not
	scenario scenarioRun
	program  string // file of the target; "" this binary
	inherit  inheritance
	restore  func() // undoes what was changed on the host

	// Its processes.
	target  *process
	unit    *process // nil: there is no virtual one
	unitDie float64  // simulated time at which the unit ended before the run, s; < 0: it did not
	begun   int64    // when the target was started, ns on CLOCK_MONOTONIC

	// The parts of the supervisor. The methods of those that are nil do nothing.
	guard   *guard
	notify  *notifier
	record  *recorder  // nil: nothing is recorded or judged
	control *control   // nil: lockstep ctl cannot reach the run
	claims  *claims    // of addresses
	states  *busStates // of the buses that are interfaces
	players []*player  // of the buses that are logs
	ledger  ledger
	loop    loopWatch

	ending
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
	affinity *affinity   // of all other threads
	ticked   bool        // the target was seen to tick
	placed   bool        // the thread was seen on its CPU alone
	migrated atomic.Bool // and later it was not
}

// ending is why the supervisor ended a run.
type ending struct {
	stop    string // the signal that ended it; "" none
	killed  bool   // the target, by somebody's wish
	overdue string // why the supervisor ended the run by itself; "" it did not
}

// Observer takes part in a run from inside, as a soak does. The goroutine that supervises
// the run calls its methods, in this order.
type Observer interface {
	Begin(r *run) error              // before the target is started
	Head(announcement string) string // what the display begins with, given what the run says of itself
	Look(now time.Time)              // several times per second while the run lasts
	End()                            // when the target has ended, or could not be started
	Judge(v *Report)                 // completes the report
}

// unobserved is the Observer of a run that nobody observes.
type unobserved struct{}

func (unobserved) Begin(*run) error        { return nil }
func (unobserved) Head(text string) string { return text }
func (unobserved) Look(time.Time)          {}
func (unobserved) End()                    {}
func (unobserved) Judge(*Report)           {}

// Run prepares a bench, runs it until its time is over or a signal comes, and
// reports. An *Exit carries the exit code of a run that broke its policy (1) or a
// host that refuses (3).
func Run(b *Bench, o Options) error {
	r := newRun(b, o)
	defer r.close()
	if err := sched.Ordinary(); err != nil {
		return &Exit{3, fmt.Errorf("run: %w", err)}
	}
	report, err := r.prepare()
	if err != nil {
		return err
	}
	if report != nil {
		defer report.Close()
	}
	signals := attend()
	if err := r.follow(signals); err != nil {
		return err
	}
	return r.finish(report, signals)
}

func newRun(b *Bench, o Options) *run {
	r := &run{bench: b, options: o, observer: o.Observer, unitDie: -1, restore: func() {}}
	if r.observer == nil {
		r.observer = unobserved{}
	}
	return r
}

// follow starts what is prepared, and follows it until the target has ended.
func (r *run) follow(signals chan os.Signal) error {
	err := r.observer.Begin(r)
	if err == nil {
		err = r.start()
	}
	if err != nil {
		r.observer.End()
		return &Exit{3, err}
	}
	r.head = r.observer.Head(r.announcement())
	r.openControl(signals)
	r.watch(signals)
	return nil
}

// openControl lets `lockstep ctl` in. A run does without where it cannot, and says so.
func (r *run) openControl(signals chan os.Signal) {
	var lines *chronicle
	if r.record != nil && r.record.path != "" { // else nobody would ask for the lines
		lines = r.record.names
	}
	var err error
	if r.control, err = openControl(ControlDir(), r.view, r.target.pid, lines, signals); err != nil {
		r.head += fmt.Sprintf("lockstep ctl cannot reach this run: %v\n", err)
	}
}

// attend takes the signals that end a run. A reader that has gone, as of `lockstep
// run | head -1`, does not: the write fails, and the display stops.
func attend() chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return signals
}

// prepare does all that may fail before the start.
func (r *run) prepare() (report *os.File, err error) {
	if err := r.bench.SetBuses(r.options.Bus); err != nil {
		return nil, err
	}
	if r.h, err = Prepare(r.bench); err != nil {
		return nil, err
	}
	if err := r.hold(); err != nil {
		return nil, &Exit{3, err}
	}
	if err := awaitSettings(r.options.Out, sched.HostSettings, doctored); err != nil {
		return nil, &Exit{3, err}
	}
	r.await()
	r.ledger.cpu = r.h.Thread.CPU
	if r.options.For > 0 {
		if r.h.Loop.Ticks = int64(r.options.For) / r.h.Tables.PeriodNs; r.h.Loop.Ticks == 0 {
			return nil, fmt.Errorf("run: %v is shorter than the period, %v", r.options.For, time.Duration(r.h.Tables.PeriodNs))
		}
	}
	if err := r.openScenario(); err != nil {
		return nil, err
	}
	if r.options.Choose != nil {
		if r.program, r.h.Mark, err = r.options.Choose(r.h); err != nil {
			return nil, fmt.Errorf("run: %w", err)
		}
	}
	if err := r.open(); err != nil {
		return nil, &Exit{3, err}
	}
	if err := r.rights(); err != nil {
		return nil, err
	}
	if err := r.seal(); err != nil {
		return nil, &Exit{3, err}
	}
	if r.claims, err = newClaims(r.view); err == nil {
		err = r.claims.settle()
	}
	if err != nil {
		return nil, &Exit{3, fmt.Errorf("run: %w", err)}
	}
	if r.record, err = newRecorder(r.view, recording{path: r.options.Record, older: r.options.Older, trial: r.scenario.scenario, events: r.busEvents}); err != nil {
		return nil, err
	}
	return r.createReport()
}

// hold takes the run's interfaces and the CPU of its loop, but for what it has from a segment
// before it.
func (r *run) hold() error {
	if r.holds == nil {
		r.holds = &holds{owner: r.bench.Name}
	}
	q := request{cpu: r.bench.CPU, fallback: r.h.Thread.CPU, share: r.options.BestEffort, real: r.real(), timers: r.h.Timer.Sleep == sched.Timerfd}
	for _, bus := range r.bench.Buses {
		if named(bus.Interface.Text) {
			q.buses = append(q.buses, wantedBus{bus.Name.Text, bus.Interface.Text})
		}
	}
	var err error
	r.h.Thread.CPU, r.shared, err = r.holds.reserve(q)
	return err
}

// openScenario reads the scenario that the run is asked to follow.
func (r *run) openScenario() (err error) {
	if r.options.Plan == nil {
		r.scenario, err = openScenario(r.h, r.options.Scenario, r.options.JUnit)
		return err
	}
	if r.scenario.scenario, err = r.options.Plan(r.h); r.scenario.scenario != nil {
		r.h.Take(r.scenario.scenario)
	}
	return err
}

// busEvents are the new events of the buses and of the claims of addresses.
func (r *run) busEvents() []record.Event { return append(r.states.events(), r.claims.events()...) }

// SetBuses replaces interfaces: "vcan0" where the bench has one bus, else
// "bus=vcan0".
func (b *Bench) SetBuses(list []string) error {
	for _, text := range list {
		name, iface, several := strings.Cut(text, "=")
		if strings.HasPrefix(text, fromFile) {
			several = false // the "=" is of the file's name
		}
		if !several {
			name, iface = b.Buses[0].Name.Text, text
		}
		i := slices.IndexFunc(b.Buses, func(bus Bus) bool { return bus.Name.Text == name })
		switch {
		case !several && len(b.Buses) > 1:
			return fmt.Errorf("run: -bus %s: the bench has %d buses; write -bus %s=%s", text, len(b.Buses), name, iface)
		case i < 0 || iface == "":
			return fmt.Errorf("run: -bus %s: write -bus BUS=INTERFACE; the bench's buses are %s", text, strings.Join(b.busNames(), ", "))
		case !wire(iface):
			return fmt.Errorf("run: -bus: %q cannot be the name of a CAN interface: %s", iface, wires)
		}
		b.Buses[i].Interface.Text = iface
	}
	return nil
}

func (b *Bench) busNames() []string {
	var names []string
	for _, bus := range b.Buses {
		names = append(names, bus.Name.Text)
	}
	return names
}

// seal makes the hand-over, the first of what the target inherits.
func (r *run) seal() error {
	r.h.Missing, r.h.Held = r.missing, r.holds.what
	handover, err := r.h.Save()
	if err == nil {
		r.inherit.target = append([]*os.File{handover}, r.inherit.target...)
	}
	return err
}

// open makes what the target inherits besides the hand-over: the page, the bus
// sockets; and the supervisor's own ends of the buses.
func (r *run) open() error {
	file, page, err := rt.CreatePage()
	if err != nil {
		return err
	}
	r.page = page
	r.inherit.target = append(r.inherit.target, file)
	if r.notify, err = newNotifier(page); err != nil {
		return err
	}
	r.guard = &guard{view: r.view, done: make(chan struct{})}
	if r.states, err = newBusStates(r.view); err != nil {
		return err
	}
	for i, bus := range r.bench.Buses {
		f, err := r.dial(bus.Interface.Text, r.h.Maps[i].Filters())
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
func (r *run) keep(bus int, f *os.File) error {
	own, err := can.Share(f)
	if err != nil {
		return err
	}
	r.guard.buses = append(r.guard.buses, own)
	if !named(r.bench.Buses[bus].Interface.Text) {
		return nil
	}
	return r.states.add(bus, own)
}

// dial opens one bus. The control unit gets the other end of a pair.
func (r *run) dial(name string, filters []can.Filter) (*os.File, error) {
	if strings.HasPrefix(name, fromFile) {
		p, target, err := openPlayer(name, filters)
		if err == nil {
			r.players = append(r.players, p)
		}
		return target, err
	}
	if name != pair {
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

// conclude ends what is beside the target, and returns what is to be reported.
func (r *run) conclude() (report *Report, err error) {
	r.control.close()
	<-r.guard.done
	r.observer.End()
	r.states.finish()
	r.guard.close() // so that the control unit sees the end of its bus
	if r.unit != nil && !r.unit.within(grace) {
		r.unit.kill()
	}
	for _, p := range r.players {
		p.finish()
	}
	r.claims.finish()
	trouble := r.record.finish()
	report = r.report()
	report.Record, report.Trouble, report.Others = r.options.Record, trouble, r.record.monitored()
	for _, p := range r.players {
		report.Played = append(report.Played, p.says())
	}
	err = r.scenario.report(report, r.record.verdict())
	r.observer.Judge(report)
	r.control.conclude(report)
	return report, err
}

// finish reports, and tells how the run ended. What is for machines is written
// first: nobody may be reading the terminal.
func (r *run) finish(file *os.File, signals chan os.Signal) error {
	report, err := r.conclude()
	r.notify.stopping(report.Ended)
	if r.options.Follow != nil {
		r.options.Follow.End(report)
	}
	if file != nil {
		if e := save(report, file); e != nil {
			err = errors.Join(err, fmt.Errorf("run: report: %w", e))
		}
	}
	signal.Stop(signals) // from here on they kill
	fmt.Fprintln(r.options.Out)
	report.Text(r.options.Out)
	if report.Soak != nil {
		report.Soak.Text(r.options.Out)
		err = errors.Join(report.Soak.failed(), err)
	}
	if report.Trial != nil {
		report.Trial.Text(r.options.Out)
		err = errors.Join(report.Trial.failed(), err)
	}
	if report.Trouble != "" {
		err = errors.Join(fmt.Errorf("run: record %s %w: %s", r.options.Record, ErrIncomplete, report.Trouble), err)
	}
	if !report.Clean {
		return &Exit{1, errors.Join(fmt.Errorf("run: %s, after %.3f s", report.Ended, report.SimTime), err)}
	}
	if err != nil {
		return &Exit{1, err}
	}
	return nil
}

// refused decodes what the target said the host refused it.
func (r *run) refused() (list []sched.Missing) {
	// A target that died first has said nothing; how it died is reported.
	_ = json.Unmarshal(r.target.said.bytes(), &list)
	return list
}
