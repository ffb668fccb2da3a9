// Package virtual owns runs in virtual time: a plant alone, or a bench with its virtual control
// unit, in one process and as fast as the host allows. It also owns replays of records.
//
// The package uses no real-time thread and no interface of this host, and no second process except a
// program that is the control unit (rt/unitprogram). It uses the tick of package rt, so a replay of a
// virtual run is identical bit for bit.
//
// Reading order: sim.go (Simulation: a plant alone or a bench, prepared), loop.go (its buses, its loop,
// its report, its door), unit.go (its control unit), box.go (between the wires
// of a virtual control unit and a bus by wire), csv.go (inputs from a file), vary.go (Variation, for many
// runs of varied files), replay.go (Replay, with the faults of its record).
package virtual

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"lockstep/io/can"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plantfile"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/control"
	"lockstep/rt/diagnosis"
	"lockstep/rt/host"
	"lockstep/rt/port"
	"lockstep/rt/progress"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/rt/target"
	"lockstep/sched"
)

// Simulation is a simulation of a plant, or of a bench with its virtual control unit, in virtual
// time.
type Simulation struct {
	Plant  string                 // embedded plant or bench, or file
	For    time.Duration          // length; 0: to the last row of In, otherwise to the end of the plant's own waveforms
	Step   time.Duration          // period of the grid; 0: 5 ms, or the period of the bench
	Scheme string                 // "papers" or "complete"; "": default of the kernel
	Form   string                 // "projected" or "held"; "": default of the kernel
	In     string                 // CSV file of inputs, file or embedded; "": none
	Out    string                 // CSV file of all ports; "": none; "-": standard output
	Events string                 // CSV file of the transitions; "": none
	Every  int                    // grid points per row of Out; >= 1
	SI     bool                   // Out in SI units, not in the declared ones
	Set    []plantfile.Assignment // values of the plant's parameters that replace those of its file
	Start  []plantfile.Assignment // start presets of the plant
	Report string                 // JSON file of the report; "": none

	Scenario string // scenario, file or embedded; "": none
	Cycle    string // drive cycle without a scenario, embedded or FILE.csv; "": none
	JUnit    string // JUnit XML file of its verdict; "": none
	Record   string // record of a bench; "": none
	Door     bool   // open the door of a bench, which then advances only when a client asks

	Progress *progress.Line // nil: none
}

// simulation is a running Simulation: the loop of a run with a virtual clock. The buses of a bench
// are socket pairs, with the virtual control unit at the other end of one, or a program at those of all.
// All of it runs in one goroutine, and a program in a process for which it waits, so the same files give
// the same record except for the time stamps of its header. With a door it waits for requests to advance
// before each tick, and takes changes only then, so the same requests give the same record.
//
// Before grid point k the control unit advances to the time of k; its frames are read at k. The
// frames that the loop sends at k reach the unit before it advances further. A log in the place of
// a bus is played the same way. On any other bus no frame is received. A plant without a bench is a
// bench without buses.
type simulation struct {
	Simulation
	view     report.View
	sys      *model.System // source of the undriven inputs in Out; in the tables they are delayed
	kernel   *kernel.Sequence
	loop     *rt.Loop
	clock    *sched.Virtual
	stimulus *stimulus // inputs from Simulation.In; nil: none
	scenario scenario.Run
	record   *recorder.Recorder // nil: no record, no scenario and no door
	door     *control.Server    // nil: there is no door

	players   []*recorder.Player // players of the buses that are logs
	buses     []*can.Bus         // the loop's ends
	ports     []*port.Port       // ports of the buses; nil: the bus needs none
	forwarded rt.PortFrame       // scratch of stepPorts
	unitEnds  []*can.Bus         // the other ends; nil: a player has it
	unit      unit               // control unit
	supplies  uint64             // changes of the supply that the unit has followed

	prepared   func(done, total int)              // counts the lock sets prepared; nil: nobody is told
	each       func(k int64, y, u []float64) bool // see Case.Run; nil: none
	out        portTable
	inputs     []float64 // of a row of out
	events     *csvTable
	reportFile *host.Result
	usage      *report.Usage // usage of the steps of a plant alone; nil: not measured
	real       time.Duration // duration of the run, real time; 0: not measured
	stop       chan os.Signal
	stopped    os.Signal // signal that stopped the run; nil: none
}

// defaultLength is the default length of a bench in virtual time.
const defaultLength = 10 * time.Second

// Run simulates, writes the files and returns the report. The error is an *Exit with code 1 if the
// state of the plant became non-finite, or the bench broke its policy. SIGINT and SIGTERM end the
// run early, with complete files; a second signal kills.
func (s Simulation) Run() (*report.Report, error) {
	w := &simulation{Simulation: s, view: report.View{Status: new(rt.StatusBlock)}, stop: make(chan os.Signal, 1),
		unit: &virtualUnit{}}
	defer w.close()
	defer w.Progress.End()
	unprepared := w.Progress.ClearOnSignal()
	err := w.prepare()
	unprepared()
	if err != nil {
		return nil, err
	}
	signal.Notify(w.stop, syscall.SIGINT, syscall.SIGTERM)
	runtime.Gosched() // lets the runtime start its signal handling, which allocates, before the count
	return w.finish(w.run())
}

// prepare prepares the run. It creates the output files last.
func (w *simulation) prepare() error {
	file, _, kind, err := bench.ReadKind("sim", w.Plant, "plant", "bench")
	if err != nil {
		return err
	}
	if kind == "plant" && w.Scenario+w.Cycle != "" {
		kind = "plant with a scenario"
	}
	if err := w.checkFlags(kind); err != nil {
		return err
	}
	w.prepared = w.Progress.BeginPreparation(w.Plant)
	if kind == "plant" {
		err = w.preparePlant()
	} else {
		b := bench.FromPlant(w.Plant, file, w.Step, w.Scheme)
		if kind == "bench" {
			if b, err = bench.Load(w.Plant); err != nil {
				return err
			}
		}

		b.Set, b.StartSet, b.Progress = w.Set, w.Start, w.prepared
		open := func(h *bench.Handover) (scenario.Run, error) { return scenario.Open(h, w.Scenario, w.Cycle, w.JUnit) }
		if err = w.prepareBench(b, open); err == nil {
			w.sys, err = bench.Assemble(w.view.Handover.Bench)
		}
	}

	if err != nil {
		return err
	}
	return w.createFiles()
}

// checkFlags refuses flags that do not fit the kind of run.
func (w *simulation) checkFlags(kind string) error {
	const forPlant = "is for a plant; %s is a bench, and "
	const forAlone = "is for a plant without a scenario; %s has a scenario, and "
	door := ""
	if w.Door {
		door = "true"
	}
	for _, f := range []struct{ kind, flag, text, why string }{
		{"plant", "-door", door, "is for a bench; %s is a plant"},
		{"plant with a scenario", "-door", door, "is for a bench; %s is a plant"},
		{"plant", "-record", w.Record, "is for a bench; %s is a plant"},
		{"bench", "-in", w.In, forPlant + "its inputs come from its buses and from a scenario's stimuli (-scenario FILE)"},
		{"bench", "-scheme", w.Scheme, forPlant + "its file sets the scheme (scheme: papers)"},
		{"bench", "-form", w.Form, forPlant + "a bench has a form of its own"},
		{"bench", "-step", w.Step.String(), forPlant + "its file sets the period (period: 5 ms)"},
		{"plant with a scenario", "-in", w.In, forAlone + "its inputs follow the scenario's stimuli"},
		{"plant with a scenario", "-form", w.Form, forAlone + "its form is projected"},
		{"plant with a scenario", "-record", w.Record, "is for a bench; %s is a plant"},
	} {
		if f.kind == kind && f.text != "" && f.text != "0s" {
			return fmt.Errorf("sim: %s %s %s", f.flag, f.text, strings.Replace(f.why, "%s", w.Plant, 1))
		}
	}

	return nil
}

// mostImplicit bounds a simulation whose length follows from tables.
const mostImplicit = 7 * 24 * time.Hour

// preparePlant prepares a plant alone.
func (w *simulation) preparePlant() (err error) {
	sys, err := bench.LoadPlant("sim", w.Plant, w.Set, w.Start)
	if err != nil {
		return err
	}
	w.sys = sys
	driven := make([]bool, len(sys.Inputs))
	if w.In != "" {
		ports := make([]units.Port, len(sys.Inputs))
		for i, in := range sys.Inputs {
			ports[i] = in.Port
		}
		if w.stimulus, err = readStimulus(w.In, ports); err != nil {
			return err
		}
		for _, i := range w.stimulus.Port {
			driven[i] = true
		}
	}

	step := cmp.Or(w.Step, bench.PlantPeriod)
	tables, err := kernel.Prepare(sys, kernel.Options{
		Period: step, Driven: driven, Scheme: kernel.Scheme(w.Scheme), Form: kernel.Form(w.Form),
		Progress: w.prepared,
	})
	if err != nil {
		return bench.WithFile(w.Plant, err)
	}
	implicit := w.For == 0
	if implicit && w.stimulus != nil {
		if last := time.Duration(w.stimulus.Ns[len(w.stimulus.Ns)-1]); last >= step {
			w.For = last
		}
	}
	if w.For == 0 {
		w.For = bench.OwnLength(sys, driven, step)
	}
	if implicit && w.For > mostImplicit {
		return fmt.Errorf("%s: its tables or those of -in last %v, more than %v; say how long with -for, such as -for 25s",
			w.Plant, w.For, mostImplicit)
	}
	config := rt.Config{Period: step, Watch: bench.WatchedOutputs(tables.Outputs), Start: tables.Start, Unpaused: w.isUnpaused()}
	w.setHandover(&bench.Handover{
		ForSupervisors: bench.ForSupervisors{Bench: &bench.Bench{Set: w.Set, StartSet: w.Start}},
		Tables:         tables, Handover: target.Handover{Loop: config},
	})
	return w.begin()
}

// prepareBench prepares a bench and its scenario, which open loads.
func (w *simulation) prepareBench(b *bench.Bench, open func(*bench.Handover) (scenario.Run, error)) error {
	h, err := bench.Prepare(b)
	if err != nil {
		return err
	}
	if err := b.CheckEnds(); err != nil {
		return err
	}
	w.setHandover(h)
	h.Loop.Virtual = true
	if w.scenario, err = open(h); err != nil {
		return err
	}
	return w.begin()
}

// isUnpaused reports whether a plant alone does nothing between its ticks: it reads, writes and shows nothing. The
// line per minute of a log is too rare to count.
func (w *simulation) isUnpaused() bool {
	return w.In == "" && w.Out == "" && w.Events == "" && !w.Progress.IsTerminal() && w.each == nil
}

// isPlantOnly reports whether a plant is simulated without a scenario.
func (w *simulation) isPlantOnly() bool { return w.view.Handover.Bench.Plant.Text == "" }

// setHandover sets the hand-over, with the requested length.
func (w *simulation) setHandover(h *bench.Handover) {
	w.Step = time.Duration(h.Tables.PeriodNs)
	h.Loop.Ticks = int64(w.For / w.Step)
	w.view.Handover = h
}

// createFiles opens the output files and writes their headers.
func (w *simulation) createFiles() (err error) {
	if w.out, err = newPortTable(w.Out, w.view.Handover.Tables, w.SI); err != nil {
		return err
	}
	w.inputs = make([]float64, len(w.sys.Inputs))
	if w.events, err = newTable(w.Events, []string{"time[s]", "element", "from", "to"}); err != nil {
		return err
	}
	if w.reportFile, err = bench.CreateResult(w.Report, host.ReportSpace, "report", "JSON"); err != nil {
		return fmt.Errorf("sim: report: %w", err)
	}
	if err := w.createRecord(); err != nil || !w.Door { // after all else: it truncates the file at once
		return err
	}
	if w.door, err = control.OpenVirtual(host.ControlDir(), w.view, w.kernel, w.record, w.stop); err != nil {
		return fmt.Errorf("sim: door: %w", err)
	}
	d := &diagnosis.Desk{Virtual: true}
	for i, p := range w.ports {
		if p != nil {
			d.Buses, d.Testers = append(d.Buses, w.view.Handover.Bench.Buses[i].Name.Text), append(d.Testers, p.Tester)
		}
	}
	w.door.SetDiagnosis(d)
	return nil
}
