package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/sched"
)

// Options are what a run is asked beyond its bench file.
type Options struct {
	For        time.Duration // how long; 0: until stopped
	Bus        []string      // "vcan0", or "drive=vcan0" where there are several: interfaces to use instead
	BestEffort bool          // run without the rights a named bus asks for
	Report     string        // file for the report as JSON; "" none
	Out        *os.File      // status line and closing report
}

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
	target  *process
	unit    *process
	missing []sched.Missing // what the host refuses
	stop    string          // the signal that ended the run; "" none
	overdue string          // why the supervisor ended the run by itself; "" it did not
	begun   int64           // when the target was started, ns on CLOCK_MONOTONIC
	unitDie float64         // simulated time at which the unit ended before the run, s; < 0: it did not
}

// Run prepares a bench, runs it until its time is over or a signal comes, and
// reports. An *Exit carries the exit code of a run that broke its policy (1) or a
// host that refuses (3).
func Run(b *Bench, o Options) error {
	r := &run{bench: b, options: o, unitDie: -1}
	defer r.close()
	report, err := r.prepare()
	if err != nil {
		return err
	}
	if report != nil {
		defer report.Close()
	}
	// A reader that has gone, as of `lockstep run | head -1`, does not end a run: the
	// write fails, and the display stops. Without this it would kill the process.
	signal.Ignore(syscall.SIGPIPE)
	// The children die with the thread that started them; see spawn.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := r.start(); err != nil {
		return &Exit{3, err}
	}
	r.announce()
	r.watch(signals)
	return r.finish(report)
}

// prepare does all that may fail before the start.
func (r *run) prepare() (report *os.File, err error) {
	if err := r.bench.SetBuses(r.options.Bus); err != nil {
		return nil, err
	}
	if r.h, err = Prepare(r.bench); err != nil {
		return nil, err
	}
	r.h.Parent = os.Getpid()
	if r.options.For > 0 {
		if r.h.Loop.Ticks = int64(r.options.For) / r.h.Tables.PeriodNs; r.h.Loop.Ticks == 0 {
			return nil, fmt.Errorf("run: %v is shorter than the period, %v", r.options.For, time.Duration(r.h.Tables.PeriodNs))
		}
	}
	if err := r.open(); err != nil {
		return nil, &Exit{3, err}
	}
	if err := r.rights(); err != nil {
		return nil, err
	}
	if r.options.Report != "" {
		if report, err = os.Create(r.options.Report); err != nil {
			return nil, fmt.Errorf("run: report: %w", err)
		}
	}
	return report, nil
}

// SetBuses replaces interfaces: "vcan0" where the bench has one bus, else
// "bus=vcan0".
func (b *Bench) SetBuses(list []string) error {
	for _, text := range list {
		name, iface, several := strings.Cut(text, "=")
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

// open makes what the target inherits: the hand-over, the page, the bus sockets.
func (r *run) open() error {
	handover, err := r.h.Save()
	if err != nil {
		return err
	}
	r.files = append(r.files, handover)
	file, page, err := rt.CreatePage()
	if err != nil {
		return err
	}
	r.page = page
	r.files = append(r.files, file)
	for i, bus := range r.bench.Buses {
		f, err := r.dial(bus.Interface.Text, r.h.Maps[i].Filters())
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
		r.files = append(r.files, f)
	}
	return nil
}

// dial opens one bus. The control unit gets the other end of a pair.
func (r *run) dial(name string, filters []can.Filter) (*os.File, error) {
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

// rights asks what the host refuses. A bus with a name is somebody's unit under
// test: without the rights the run is refused there, unless best effort will do.
func (r *run) rights() error {
	r.missing = sched.Probe(r.h.Thread)
	named := slices.ContainsFunc(r.bench.Buses, func(b Bus) bool { return b.Interface.Text != pair })
	if !named || r.options.BestEffort || len(r.missing) == 0 {
		return nil
	}
	var list []error
	for _, m := range r.missing {
		list = append(list, fmt.Errorf("run: %s: %s", m.What, m.Help))
	}
	list = append(list, errors.New("run: refused on a real bus without these; -besteffort runs anyway and says so"))
	return &Exit{3, errors.Join(list...)}
}

// start starts the control unit, where it is virtual, and the target.
func (r *run) start() (err error) {
	if r.unitEnd != nil {
		r.unit, err = spawn(nil, []*os.File{r.unitEnd}, "ecu", r.bench.Unit.Text, "-bus", "fd:3")
		if err != nil {
			return fmt.Errorf("run: control unit %s: %w", r.bench.Unit.Text, err)
		}
	}
	// The runtime's settings come before its first instruction: no collection in
	// the whole life of the target, and a second processor for the runtime's own.
	env := []string{"GOGC=off", "GOMEMLIMIT=off", "GOMAXPROCS=2"}
	if r.target, err = spawn(env, r.files, TargetCommand); err != nil {
		return fmt.Errorf("run: target process: %w", err)
	}
	r.begun = sched.Now()
	r.closeFiles() // so that each end of a bus has one owner
	return nil
}

func (r *run) closeFiles() {
	for _, f := range r.files {
		f.Close()
	}
	if r.unitEnd != nil {
		r.unitEnd.Close()
	}
	r.files, r.unitEnd = nil, nil
}

// close ends what is still there.
func (r *run) close() {
	r.closeFiles()
	for _, p := range []*process{r.target, r.unit} {
		if p != nil {
			p.kill()
		}
	}
}

// What the supervisor waits for, real time.
const (
	starting = 30 * time.Second // from the start of the target to its first grid point
	grace    = 2 * time.Second  // from the last grid point to the end, and from asking for the end to it
)

// late says that the target should have ended by itself, or begun, and how it
// fell short; "" is no reason to worry.
func (r *run) late(now int64) string {
	start, last := int64(r.page.StartNs.Load()), r.h.Loop.Ticks
	grid := sched.Grid{Start: start, Period: r.h.Tables.PeriodNs}
	switch {
	case start == 0 && now > r.begun+int64(starting):
		return fmt.Sprintf("no tick within %v", starting)
	case start != 0 && last > 0 && now > grid.Due(last)+int64(grace):
		_, points := r.behind(now)
		return fmt.Sprintf("%v after its end %d grid points were not served", grace, points)
	}
	return ""
}

// watch shows the run until the target has ended. The first signal, or a target
// that should have ended, asks it to end, the second one, or two seconds of no
// answer, kill it.
func (r *run) watch(signals <-chan os.Signal) {
	show := newStatus(r)
	defer show.end()
	clock := time.NewTicker(show.every)
	defer clock.Stop()
	var unitDone chan struct{}
	if r.unit != nil {
		unitDone = r.unit.done
	}
	var patience <-chan time.Time
	end := func() {
		r.page.Stop.Store(1)
		patience = time.After(grace + 2*time.Duration(r.h.Tables.PeriodNs))
	}
	for {
		select {
		case <-clock.C:
			show.draw()
			if r.stop == "" && r.overdue == "" {
				if r.overdue = r.late(sched.Now()); r.overdue != "" {
					end()
				}
			}
		case s := <-signals:
			if r.stop != "" {
				r.target.kill()
				return
			}
			r.stop = strings.ToLower(s.String())
			end()
		case <-patience:
			r.target.kill()
			return
		case <-unitDone:
			r.unitDie, unitDone = float64(r.page.SimNs.Load())/1e9, nil
		case <-r.target.done:
			return
		}
	}
}

// finish reports, and tells how the run ended.
func (r *run) finish(file *os.File) error {
	if r.unit != nil && !r.unit.within(grace) {
		r.unit.kill()
	}
	report := r.report()
	fmt.Fprintln(r.options.Out)
	report.Text(r.options.Out)
	var err error
	if file != nil {
		if err = errors.Join(report.JSON(file), file.Sync()); err != nil {
			err = fmt.Errorf("run: report: %w", err)
		}
	}
	if !report.Clean {
		return &Exit{1, errors.Join(fmt.Errorf("run: %s, after %.3f s", report.Ended, report.SimTime), err)}
	}
	return err
}

// refused decodes what the target said the host refused it.
func (r *run) refused() (list []sched.Missing) {
	// A target that died first has said nothing; how it died is reported.
	_ = json.Unmarshal(r.target.said.bytes(), &list)
	return list
}
