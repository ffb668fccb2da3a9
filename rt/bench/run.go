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
	Soak       *Soak         // nil: the run is none
	Follow     *Follow       // nil: nobody does

	// plan makes the scenario of a leg of a soak, in the place of Scenario; it returns
	// nil where there is none.
	plan func(h *Handover) (*Scenario, error)
}

// Chooser finds the executable that ticks for a hand-over, with a kernel that was
// generated for it: its absolute path, and its mark (see package target).
type Chooser func(h *Handover) (file, mark string, err error)

// pair is the interface of a bus that lives between two processes of the run.
const pair = "pair"

// run is one run as the supervisor sees it.
type run struct {
	bench   *Bench
	options Options
	h       *Handover
	page    *rt.Page
	files   []*os.File // what the target inherits: hand-over, page, buses
	unitEnd *os.File   // what the virtual control unit inherits; nil: none is started
	life    *os.File   // a pipe that ends with this process; the unit holds its other end
	program string     // file of the target; "" this binary
	target  *process
	unit    *process
	guard   *guard
	notify  *notifier
	record  *recorder // nil: the run is not recorded
	others  *others   // nil: there is nothing to hear beside the loop, or no record
	trial   *Scenario // nil: there is none
	junit   *os.File  // nil: none is wanted
	control *control  // nil: lockstep ctl cannot reach the run
	ledger  ledger
	soak    *soak           // nil: the run is none
	claims  *claims         // of addresses
	holds   *holds          // its CPU and its interfaces
	beside  *elsewhere      // than on the CPUs of loops; nil: nobody was sent there yet
	shared  *sched.Missing  // the CPU is another loop's, too; nil: it is not
	players []*player       // of the buses that are logs
	ticked  bool            // the target was seen to tick
	placed  bool            // the loop's thread was seen on its CPU alone
	strayed atomic.Bool     // and later it was not
	states  *busStates      // of the buses that are interfaces
	missing []sched.Missing // what the host refuses
	restore func()          // undoes what was changed on the host
	stop    string          // the signal that ended the run; "" none
	killed  bool            // the target, by somebody's wish
	overdue string          // why the supervisor ended the run by itself; "" it did not
	begun   int64           // when the target was started, ns on CLOCK_MONOTONIC
	head    string          // what the display begins with
	unitDie float64         // simulated time at which the unit ended before the run, s; < 0: it did not
}

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
	r := &run{bench: b, options: o, unitDie: -1, restore: func() {}}
	if o.Soak != nil {
		r.soak = &soak{r: r}
	}
	return r
}

// follow starts what is prepared, and follows it until the target has ended.
func (r *run) follow(signals chan os.Signal) error {
	err := r.soak.begin()
	if err == nil {
		err = r.start()
	}
	if err != nil {
		r.soak.end()
		return &Exit{3, err}
	}
	r.head = r.soak.announcement()
	if !r.soak.later() {
		r.head += r.announcement()
	}
	r.head += r.openControl(ControlDir(), signals)
	r.watch(signals)
	return nil
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
	if err := r.settle(sched.HostSettings, doctored); err != nil {
		return nil, &Exit{3, err}
	}
	r.await()
	r.ledger.cpu = r.h.Thread.CPU
	if r.options.For > 0 {
		if r.h.Loop.Ticks = int64(r.options.For) / r.h.Tables.PeriodNs; r.h.Loop.Ticks == 0 {
			return nil, fmt.Errorf("run: %v is shorter than the period, %v", r.options.For, time.Duration(r.h.Tables.PeriodNs))
		}
	}
	if err := r.startScenario(); err != nil {
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
	if r.claims, err = newClaims(r); err == nil {
		err = r.claims.settle()
	}
	if err != nil {
		return nil, &Exit{3, fmt.Errorf("run: %w", err)}
	}
	if err := r.startRecord(); err != nil {
		return nil, err
	}
	return r.createReport()
}

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
		r.files = append([]*os.File{handover}, r.files...)
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
	r.files = append(r.files, file)
	if r.notify, err = newNotifier(page); err != nil {
		return err
	}
	r.guard = &guard{r: r, done: make(chan struct{})}
	if r.states, err = newBusStates(r); err != nil {
		return err
	}
	for i, bus := range r.bench.Buses {
		f, err := r.dial(bus.Interface.Text, r.h.Maps[i].Filters())
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		r.files = append(r.files, f)
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
	r.unitEnd = unit // there is one pair at most: Prepare sees to it
	return target, nil
}

// conclude ends what is beside the target, and returns what is to be reported.
func (r *run) conclude() (report *Report, err error) {
	r.control.close()
	<-r.guard.done
	r.soak.end()
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
	r.others.close()
	report = r.report()
	report.Record, report.Trouble, report.Others = r.options.Record, trouble, r.others.report()
	for _, p := range r.players {
		report.Played = append(report.Played, p.says())
	}
	err = r.tried(report)
	if r.soak != nil {
		report.Soak = r.soak.judge(report)
	}
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
