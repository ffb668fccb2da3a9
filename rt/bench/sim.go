package bench

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/sched"
)

// Simulation is a plant on its own, as fast as it goes, in one process: the loop
// of a run with a virtual clock and no bus.
type Simulation struct {
	Plant  string        // an embedded plant or a file
	For    time.Duration // 0: to the end of the plant's tables, 10 s if it has none
	Step   time.Duration // period of the grid; > 0
	Scheme string        // "papers" or "complete"
	In     string        // CSV file of inputs; "" none
	Out    string        // CSV file of all ports; "" none, "-" standard output
	Events string        // CSV file of the transitions; "" none
	Every  int           // rows of Out: one in so many grid points; >= 1
	Report string        // JSON file; "" none
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
}

// Run simulates and writes the files; the report is for the caller to show. An
// *Exit carries exit code 1 when the plant's state became non-finite.
func (s Simulation) Run() (*Report, error) {
	w := &simulation{Simulation: s, page: new(rt.Page)}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	report := w.run()
	var err error
	for _, t := range []*table{w.out, w.events} {
		err = errors.Join(err, t.close())
	}
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	if s.Report != "" {
		if err := writeReport(s.Report, report); err != nil {
			return nil, err
		}
	}
	if !report.Clean {
		return report, &Exit{1, fmt.Errorf("sim: %s, after %.6g s", report.Ended, report.SimTime)}
	}
	return report, nil
}

func writeReport(file string, report *Report) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := errors.Join(report.JSON(f), f.Close()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// prepare does all that may fail before the first step.
func (w *simulation) prepare() (err error) {
	if w.sys, err = LoadPlant(w.Plant); err != nil {
		return err
	}
	w.driven = make([]bool, len(w.sys.Inputs))
	if w.In != "" {
		ports := make([]model.Port, len(w.sys.Inputs))
		for i, in := range w.sys.Inputs {
			ports[i] = in.Port
		}
		if w.stimulus, err = ReadStimulus(w.In, ports); err != nil {
			return err
		}
		for _, i := range w.stimulus.Port {
			w.driven[i] = true
		}
	}
	w.tables, err = kernel.Prepare(w.sys, kernel.Options{Period: w.Step, Driven: w.driven, Scheme: kernel.Scheme(w.Scheme)})
	if err != nil {
		return err
	}
	w.kernel = kernel.New(w.tables)
	ticks := int64(w.length() / w.Step)
	if ticks < 1 {
		return fmt.Errorf("sim: %v is shorter than the step, %v", w.length(), w.Step)
	}
	config := rt.Config{Period: w.Step, Ticks: ticks, Watch: watch(w.tables.Outputs), Start: w.tables.Start}
	if w.loop, err = rt.New(config, w.kernel, nil, nil, sched.NewVirtual(w.Step), w.page); err != nil {
		return err
	}
	return w.create()
}

// LoadPlant reads and assembles a plant: the file of that name if there is one,
// the embedded plant otherwise.
func LoadPlant(name string) (*model.System, error) {
	file, data, err := ReadAny(name)
	if err != nil {
		return nil, err
	}
	plant, err := model.Load(file, data)
	if err != nil {
		return nil, err
	}
	return plant.Assemble()
}

// length is how long to simulate: as asked, to the last row of the plant's
// tables, or 10 s.
func (w *simulation) length() time.Duration {
	if w.For > 0 {
		return w.For
	}
	last := 0.0
	for _, s := range w.sys.Signals {
		if n := len(s.Source.T); n > 0 {
			last = max(last, s.Source.T[n-1])
		}
	}
	if w.stimulus != nil {
		last = max(last, float64(w.stimulus.Ns[len(w.stimulus.Ns)-1])/1e9)
	}
	if d := time.Duration(math.Round(last * 1e9)); d >= w.Step {
		return d
	}
	return 10 * time.Second
}

// run steps from grid point to grid point and writes the rows.
func (w *simulation) run() *Report {
	var before, after runtime.MemStats
	minor, major := sched.Faults()
	runtime.ReadMemStats(&before)
	w.kernel.Output(w.loop.Y)
	row := w.stimulus.Apply(w.loop.U, 0, -1)
	w.row(0)
	period := int64(w.Step)
	for k := int64(1); rt.Reason(w.page.Reason.Load()) == rt.NotEnded; k++ {
		w.loop.Tick(1)
		row = w.stimulus.Apply(w.loop.U, k*period, row)
		if k%int64(w.Every) == 0 {
			w.row(k * period)
		}
		w.list()
	}
	runtime.ReadMemStats(&after)
	minorEnd, majorEnd := sched.Faults()
	v := pageReport(w.page, &Handover{Tables: w.tables, Loop: rt.Config{Watch: watch(w.tables.Outputs)}})
	v.Usage = &Usage{
		Allocs: after.Mallocs - before.Mallocs, GCCycles: uint64(after.NumGC - before.NumGC),
		MinorFaults: uint64(minorEnd - minor), MajorFaults: uint64(majorEnd - major),
	}
	reason := rt.Reason(w.page.Reason.Load())
	v.Ended, v.Clean = reason.String(), reason.Clean()
	if reason == rt.NonFinite {
		v.Ended = fmt.Sprintf("state %s of the plant is no longer finite", w.tables.StateName[w.page.FaultState.Load()])
	}
	return v
}

// row writes the ports at a grid time: the outputs there, the inputs from there on.
func (w *simulation) row(ns int64) {
	if w.out == nil {
		return
	}
	w.out.number(float64(ns) / 1e9)
	for _, v := range w.loop.Y {
		w.out.number(v)
	}
	for i, in := range w.sys.Inputs {
		if w.driven[i] {
			w.out.number(w.loop.U[i])
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
		for _, text := range []string{w.tables.Frictions[e.Friction], modeName(e.From), modeName(e.To)} {
			w.events.text(text)
		}
		w.events.end()
	}
}

// modeName is the name of a friction element's state, as in the database.
func modeName(mode int8) string {
	switch mode {
	case kernel.Backward:
		return "backward"
	case kernel.Stuck:
		return "stuck"
	case kernel.Forward:
		return "forward"
	}
	return "free"
}

// valueAt is a source's value at t seconds: linear between its rows, after a jump
// where two rows have the same time.
func valueAt(s *model.Source, t float64) float64 {
	n := len(s.T)
	if n == 0 {
		return 0
	}
	i := 0
	for i < n && s.T[i] <= t {
		i++
	}
	switch i {
	case 0:
		return s.V[0]
	case n:
		return s.V[n-1]
	}
	part := (t - s.T[i-1]) / (s.T[i] - s.T[i-1])
	return s.V[i-1] + part*(s.V[i]-s.V[i-1])
}

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
		w.events, err = newTable(w.Events, []string{"time[s]", "element", "from", "to"})
	}
	return err
}
