package virtual

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/target"
	"lockstep/sched"
)

// Simulation is a plant on its own, or a bench with its virtual control unit, as fast
// as it goes, in one process: the loop of a run with a virtual clock.
type Simulation struct {
	Plant  string        // an embedded plant or bench, or a file
	For    time.Duration // 0: to the last row of In, otherwise as long as the plant's own tables last
	Step   time.Duration // period of the grid; 0: 5 ms, or the bench's
	Scheme string        // "papers" or "complete"; "" is the kernel's default
	Form   string        // "projected" or "held"; "" is the kernel's default
	In     string        // CSV file of inputs, or embedded ones; "" none
	Out    string        // CSV file of all ports; "" none, "-" standard output
	Events string        // CSV file of the transitions; "" none
	Every  int           // rows of Out: one in so many grid points; >= 1
	Report string        // JSON file; "" none

	Scenario string // file or embedded; "" none
	JUnit    string // file for its verdict; "" none
	Record   string // file, of a bench; "" none

	Progress *os.File // a terminal that shows how far it is; nil: none
}

// simulation is a Simulation at work.
type simulation struct {
	Simulation
	sys      *model.System
	tables   *kernel.Tables
	kernel   *kernel.Kernel
	stimulus *Stimulus
	loop     *rt.Loop
	page     *rt.Page
	driven   []bool

	out, events *table
	report      *os.File
	stop        chan os.Signal
	stopped     os.Signal // what ended it; nil: nothing did
	progress    progress
}

// Run simulates and writes the files; the report is for the caller to show. An
// *Exit carries exit code 1 when the plant's state became non-finite, or the bench
// broke its policy. SIGINT and SIGTERM end it early, with the files complete; a second
// one kills. A bench runs with its buses and its control unit: see virtualBench.
func (s Simulation) Run() (*report.Report, error) {
	w := &simulation{Simulation: s, page: new(rt.Page), stop: make(chan os.Signal, 1)}
	if file, data, err := bench.ReadAny(s.Plant); err == nil && (bench.FileKind(file, data) == "bench" || bench.FileKind(file, data) == "plant" && s.Scenario != "") {
		return runVirtual(w)
	}
	w.Step = cmp.Or(w.Step, bench.PlantPeriod)
	if err := w.prepare(); err != nil {
		return nil, err
	}
	w.attend()
	return w.finish(w.run())
}

// attend takes the signals that end the simulation.
func (w *simulation) attend() {
	signal.Notify(w.stop, syscall.SIGINT, syscall.SIGTERM)
	runtime.Gosched() // what the runtime starts for signals allocates: before the count
}

// finish completes the files.
func (w *simulation) finish(report *report.Report) (*report.Report, error) {
	signal.Stop(w.stop) // from here on they kill
	var err error
	for _, t := range []*table{w.out, w.events} {
		err = errors.Join(err, t.close())
	}
	if w.report != nil {
		err = errors.Join(err, report.JSON(w.report), w.report.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	if !report.Clean {
		return report, &host.Exit{Code: 1, Err: fmt.Errorf("sim: %s, after %.6g s", report.Ended, report.SimTime)}
	}
	return report, nil
}

// prepare does all that may fail before the first step; the files are the last.
func (w *simulation) prepare() (err error) {
	switch {
	case w.Record != "":
		return fmt.Errorf("sim: -record %s is for a bench; %s is a plant", w.Record, w.Plant)
	case w.JUnit != "":
		return fmt.Errorf("sim: -junit %s is for the verdict of a scenario: name one (-scenario FILE)", w.JUnit)
	}
	if w.sys, err = bench.LoadPlant("sim", w.Plant); err != nil {
		return err
	}
	w.driven = make([]bool, len(w.sys.Inputs))
	if w.In != "" {
		if err := w.inputs(); err != nil {
			return err
		}
	}
	w.tables, err = kernel.Prepare(w.sys, kernel.Options{
		Period: w.Step, Driven: w.driven, Scheme: kernel.Scheme(w.Scheme), Form: kernel.Form(w.Form),
	})
	if err != nil {
		return bench.WithFile(w.Plant, err)
	}
	w.kernel = kernel.New(w.tables)
	ticks := int64(w.length() / w.Step)
	if ticks < 1 {
		return fmt.Errorf("sim: %v is shorter than the step, %v", w.length(), w.Step)
	}
	config := rt.Config{Period: w.Step, Ticks: ticks, Watch: bench.WatchedOutputs(w.tables.Outputs), Start: w.tables.Start}
	if w.loop, err = rt.New(config, w.kernel, nil, nil, sched.NewVirtual(w.Step), w.page); err != nil {
		return err
	}
	w.progress = progress{to: w.Progress, length: time.Duration(ticks) * w.Step}
	if err := w.apart(); err != nil {
		return err
	}
	return w.create()
}

// inputs reads the file of inputs, or the embedded one of that name.
func (w *simulation) inputs() (err error) {
	ports := make([]units.Port, len(w.sys.Inputs))
	for i, in := range w.sys.Inputs {
		ports[i] = in.Port
	}
	if w.stimulus, err = ReadStimulus(w.In, ports); errors.Is(err, fs.ErrNotExist) {
		name := strings.TrimSuffix(w.In, ".csv") + ".csv"
		data, missing := plants.Read(name)
		if missing != nil {
			return fmt.Errorf("%w%s", err, units.Meant(w.In, bench.EmbeddedNames()))
		}
		w.stimulus, err = parseStimulus(name, bytes.NewReader(data), ports)
	}
	if err != nil {
		return err
	}
	for _, i := range w.stimulus.Port {
		w.driven[i] = true
	}
	return nil
}

// SameFileError says that one file has two uses of which one writes it.
type SameFileError struct {
	One, Other string // flags, or "the plant"
	File       string
}

func (e *SameFileError) Error() string {
	return fmt.Sprintf("sim: %s and %s are the same file, %s", e.One, e.Other, e.File)
}

// apart refuses to write two things to one file, or over one that is read.
func (w *simulation) apart() error {
	type use struct{ flag, file string }
	reads := []use{{"the plant", w.Plant}, {"-in", w.In}, {"-scenario", w.Scenario}}
	writes := []use{{"-out", w.Out}, {"-events", w.Events}, {"-report", w.Report}, {"-record", w.Record}, {"-junit", w.JUnit}}
	for i, a := range writes {
		for _, b := range slices.Concat(reads, writes[:i]) {
			if a.file != "" && same(a.file, b.file) {
				return &SameFileError{b.flag, a.flag, a.file}
			}
		}
	}
	return nil
}

// same reports whether two names are of one file; devices, such as /dev/null, may
// be shared.
func same(a, b string) bool {
	if a == "-" || b == "-" || b == "" {
		return a == b
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y) && x.Mode().IsRegular()
	}
	a, errX = filepath.Abs(a)
	b, errY = filepath.Abs(b)
	return errX == nil && errY == nil && a == b
}

// length is how long to simulate: as asked, to the last row of the inputs, or as
// long as the plant has something to do by itself.
func (w *simulation) length() time.Duration {
	if w.For > 0 {
		return w.For
	}
	if w.stimulus != nil {
		if last := time.Duration(w.stimulus.Ns[len(w.stimulus.Ns)-1]); last >= w.Step {
			return last
		}
	}
	return bench.OwnLength(w.sys, w.driven, w.Step)
}

// run steps from grid point to grid point and writes the rows.
func (w *simulation) run() *report.Report {
	var before, after runtime.MemStats
	w.kernel.Output(w.loop.Y)
	row := w.stimulus.Apply(w.loop.U, 0, -1)
	w.row(0, w.loop.U) // the inputs from there on
	w.progress.start()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // waits for a collection that is under way
	runtime.ReadMemStats(&before)
	runtime.ReadMemStats(&before) // the first may count what it needs itself
	minor, major := sched.Faults()
	period := int64(w.Step)
	for k := int64(1); rt.Reason(w.page.Reason.Load()) == rt.NotEnded && !w.signalled(); k++ {
		w.loop.Tick(1)
		row = w.stimulus.Apply(w.loop.U, k*period, row)
		if k%int64(w.Every) == 0 {
			w.row(k*period, w.loop.U)
		}
		w.list()
		w.progress.show(k * period)
	}
	minorEnd, majorEnd := sched.Faults()
	runtime.ReadMemStats(&after)
	w.progress.end()
	v := report.FromPage(w.page, &bench.Handover{Tables: w.tables, Handover: target.Handover{Loop: rt.Config{Watch: bench.WatchedOutputs(w.tables.Outputs)}}})
	v.Usage = &report.Usage{
		Allocs: after.Mallocs - before.Mallocs, GCCycles: uint64(after.NumGC - before.NumGC),
		MinorFaults: uint64(minorEnd - minor), MajorFaults: uint64(majorEnd - major),
	}
	reason := rt.Reason(w.page.Reason.Load())
	v.Ended, v.Clean = reason.String(), reason.Clean()
	if w.stopped != nil {
		v.Ended, v.Clean = "stopped by "+strings.ToLower(w.stopped.String()), true
	}
	if reason == rt.NonFinite {
		v.Ended = fmt.Sprintf("state %s of the plant is no longer finite", w.tables.StateName[w.page.BrokenState.Load()])
	}
	return v
}

// signalled reports whether a signal asked for the end.
func (w *simulation) signalled() bool {
	select {
	case w.stopped = <-w.stop:
		return true
	default:
		return false
	}
}

// row writes the ports at a grid time: the outputs there, and of the inputs u those that
// something drives; the others have their own sources.
func (w *simulation) row(ns int64, u []float64) {
	if w.out == nil {
		return
	}
	w.out.number(float64(ns) / 1e9)
	for _, v := range w.loop.Y {
		w.out.number(v)
	}
	for i, in := range w.sys.Inputs {
		if w.kernel.Driven(i) {
			w.out.number(u[i])
		} else {
			w.out.number(valueAt(&w.sys.Signals[in.Signal].Source, float64(ns)/1e9))
		}
	}
	w.out.end()
}

// list writes the transitions of the last step.
func (w *simulation) list() {
	if w.events == nil {
		return
	}
	for _, e := range w.kernel.Events() {
		w.events.number(e.Time)
		element, from, to := w.tables.Names(e)
		for _, text := range []string{element, from, to} {
			w.events.text(text)
		}
		w.events.end()
	}
}

// valueAt is a source's value at t seconds, after a jump there.
func valueAt(s *model.Source, t float64) float64 { return kernel.SourceAt(s, t) }

// create opens the output files and writes their headers.
func (w *simulation) create() (err error) {
	if w.Out != "" {
		head := []string{"time[s]"}
		for _, p := range w.tables.Outputs {
			head = append(head, p.Name+"["+p.Unit+"]")
		}
		for _, p := range w.tables.Inputs {
			head = append(head, p.Name+"["+p.Unit+"]")
		}
		if w.out, err = newTable(w.Out, head); err != nil {
			return err
		}
	}
	if w.Events != "" {
		if w.events, err = newTable(w.Events, []string{"time[s]", "element", "from", "to"}); err != nil {
			return err
		}
	}
	for _, t := range []*table{w.out, w.events} {
		if t != nil {
			t.field = make([]byte, 0, 256) // so that no field grows in the run
		}
	}
	if w.Report != "" {
		if w.report, err = os.Create(w.Report); err != nil {
			return fmt.Errorf("sim: report: %w", err)
		}
	}
	return nil
}
