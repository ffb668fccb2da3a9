// Package virtual owns runs in virtual time: a plant alone or a bench with its virtual control
// unit, as fast as it goes, in one process; and replays of records.
//
// The package uses no real-time thread, no interface of this host and no second process. It
// runs the tick of package rt, so that a virtual run and a replay are the same bit for bit.
//
// Reading order: sim.go (Simulation: a plant alone or a bench, prepared), loop.go (its buses, its
// loop, its report), csv.go (inputs from a file), vary.go (Variation, for many runs of varied
// files), replay.go (Replay, with the faults of its record).
package virtual

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockstep/io/can"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
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

// simulation is a Simulation at work: the loop of a run on a grid that passes at once. A bench
// has its buses as pairs, and its virtual control unit at the other end of one. All have their
// turns in one goroutine, so that the same files give the same record, but for the stamps of its
// header.
//
// Before grid point k the unit does what is due until then; what it sends is read at k.
// What the loop sends at k the unit hears at k, before it does what is due at k. A log
// that stands in for a bus is played likewise. A bus with nobody at its other end
// carries nothing in. A plant, alone or with a scenario, is a bench without buses.
type simulation struct {
	Simulation
	view     report.View
	sys      *model.System // whose inputs that nobody drives are shown; the tables have them delayed
	kernel   *kernel.Kernel
	loop     *rt.Loop
	clock    *sched.Virtual
	stimulus *stimulus // of a plant alone; nil: its inputs have their own sources
	scenario scenario.Run
	record   *recorder.Recorder // nil: nothing is recorded or judged

	players    []*recorder.Player // of the buses that are logs
	buses      []*can.Bus         // the loop's ends
	unitEnds   []*can.Bus         // the other ones; nil: a player has it
	unit       *ecu.Stepped
	unitOutput host.Capture // by the unit
	bus        int          // the unit's
	frame      [128]byte

	each        func(k int64, y, u []float64) bool // takes each grid point, and says whether to go on; nil: nobody does
	out, events *csvTable
	reportFile  *os.File
	usage       *report.Usage // of the steps of a plant alone; nil: the loop was not alone in its process
	stop        chan os.Signal
	stopped     os.Signal // what ended it; nil: nothing did
	progress    progress
}

// defaultLength is how long a bench runs in virtual time that nobody says more about.
const defaultLength = 10 * time.Second

// Run simulates and writes the files; the report is for the caller to show. An
// *Exit carries exit code 1 when the plant's state became non-finite, or the bench
// broke its policy. SIGINT and SIGTERM end it early, with the files complete; a second
// one kills.
func (s Simulation) Run() (*report.Report, error) {
	w := &simulation{Simulation: s, view: report.View{Status: new(rt.StatusBlock)}, stop: make(chan os.Signal, 1)}
	defer w.close()
	if err := w.prepare(); err != nil {
		return nil, err
	}
	signal.Notify(w.stop, syscall.SIGINT, syscall.SIGTERM)
	runtime.Gosched() // what the runtime starts for signals allocates: before the count
	return w.finish(w.run())
}

// prepare does all that may fail before the first step; the files are the last.
func (w *simulation) prepare() error {
	if err := w.checkFiles(); err != nil {
		return err
	}
	file, data, err := bench.ReadAny(w.Plant)
	kind := "plant"
	switch {
	case err != nil: // preparePlant says so
	case plants.Kind(file, data) == "bench":
		kind = "bench"
	case plants.Kind(file, data) == "plant" && w.Scenario != "":
		kind = "plant with a scenario"
	}

	if err := w.checkFlags(kind); err != nil {
		return err
	}
	if kind == "plant" {
		err = w.preparePlant()
	} else {
		b := bench.FromPlant(w.Plant, file, w.Step, w.Scheme)
		if kind == "bench" {
			if b, err = bench.Load(w.Plant); err != nil {
				return err
			}
		}

		open := func(h *bench.Handover) (scenario.Run, error) { return scenario.Open(h, w.Scenario, w.JUnit) }
		if err = w.prepareBench(b, open); err == nil {
			w.sys, err = bench.Assemble(b)
		}
	}

	if err != nil {
		return err
	}
	w.progress = progress{to: w.Progress, length: time.Duration(w.view.Handover.Loop.Ticks) * w.Step}
	return w.createFiles()
}

// checkFlags says which flag does not fit what is simulated.
func (w *simulation) checkFlags(kind string) error {
	const forPlant = "is for a plant; %s is a bench, and "
	const forAlone = "is for a plant without a scenario; %s is a plant with one, and "
	for _, f := range []struct{ kind, flag, text, why string }{
		{"plant", "-record", w.Record, "is for a bench; %s is a plant"},
		{"plant", "-junit", w.JUnit, "is for the verdict of a scenario: name one (-scenario FILE)"},
		{"bench", "-in", w.In, forPlant + "its inputs come from its buses and from a scenario's stimuli (-scenario FILE)"},
		{"bench", "-scheme", w.Scheme, forPlant + "its file says it (scheme: papers)"},
		{"bench", "-form", w.Form, forPlant + "it has its own"},
		{"bench", "-step", w.Step.String(), forPlant + "its file says it (period: 5 ms)"},
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

// preparePlant prepares a plant alone.
func (w *simulation) preparePlant() (err error) {
	sys, err := bench.LoadPlant("sim", w.Plant)
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
	})
	if err != nil {
		return bench.WithFile(w.Plant, err)
	}
	if w.For == 0 && w.stimulus != nil { // to its last row
		if last := time.Duration(w.stimulus.Ns[len(w.stimulus.Ns)-1]); last >= step {
			w.For = last
		}
	}
	if w.For == 0 {
		w.For = bench.OwnLength(sys, driven, step)
	}
	config := rt.Config{Period: step, Watch: bench.WatchedOutputs(tables.Outputs), Start: tables.Start}
	w.setHandover(&bench.Handover{
		ForSupervisors: bench.ForSupervisors{Bench: &bench.Bench{}},
		Tables:         tables, Handover: target.Handover{Loop: config},
	})
	return w.begin()
}

// prepareBench prepares a bench, and the scenario that open reads for it.
func (w *simulation) prepareBench(b *bench.Bench, open func(*bench.Handover) (scenario.Run, error)) error {
	h, err := bench.Prepare(b)
	if err != nil {
		return err
	}
	w.setHandover(h)
	h.Loop.Virtual = true
	if w.scenario, err = open(h); err != nil {
		return err
	}
	return w.begin()
}

// isPlantOnly says that a plant is simulated without a scenario.
func (w *simulation) isPlantOnly() bool { return w.view.Handover.Bench.Plant.Text == "" }

// setHandover takes over what runs, for as long as is asked for.
func (w *simulation) setHandover(h *bench.Handover) {
	w.Step = time.Duration(h.Tables.PeriodNs)
	h.Loop.Ticks = int64(w.For / w.Step)
	w.view.Handover = h
}

// SameFileError says that one file has two uses of which one writes it.
type SameFileError struct {
	One, Other string // flags, or "the plant"
	File       string
}

func (e *SameFileError) Error() string {
	return fmt.Sprintf("sim: %s and %s are the same file, %s", e.One, e.Other, e.File)
}

// checkFiles refuses to write two things to one file, or over one that is read.
func (w *simulation) checkFiles() error {
	type use struct{ flag, file string }
	reads := []use{{"the plant", w.Plant}, {"-in", w.In}, {"-scenario", w.Scenario}}
	writes := []use{{"-out", w.Out}, {"-events", w.Events}, {"-report", w.Report}, {"-record", w.Record}, {"-junit", w.JUnit}}
	for i, a := range writes {
		for _, b := range slices.Concat(reads, writes[:i]) {
			if a.file != "" && sameFile(a.file, b.file) {
				return &SameFileError{b.flag, a.flag, a.file}
			}
		}
	}

	return nil
}

// sameFile reports whether two names are of one file; devices, such as /dev/null, may
// be shared.
func sameFile(a, b string) bool {
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

// createFiles opens the output files and writes their headers.
func (w *simulation) createFiles() (err error) {
	if w.out, err = newPortTable(w.Out, w.view.Handover.Tables); err != nil {
		return err
	}
	if w.events, err = newTable(w.Events, []string{"time[s]", "element", "from", "to"}); err != nil {
		return err
	}
	if w.Report != "" {
		if w.reportFile, err = os.Create(w.Report); err != nil {
			return fmt.Errorf("sim: report: %w", err)
		}
	}

	return nil
}
