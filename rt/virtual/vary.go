package virtual

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockstep/io/yamlfile"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// Variation is a plant, or a bench with its virtual control unit, for many simulations in virtual
// time with varied values. Its files are read and parsed once. It is not safe for concurrent use:
// each goroutine needs its own.
type Variation struct {
	Plant    *plantfile.Draft
	Bench    yamlfile.Node   // tree of the bench file; nil: a plant without a bench
	Scenario *scenario.Draft // nil: none
	Step     time.Duration   // period of a plant without a bench; 0: 5 ms
	For      time.Duration   // length; 0: the scenario's, or else 10 s

	Files map[string][]byte // content of every file read, or its digest, by name

	name, file, dir string
	files           map[string]bench.FileContent
}

// NewVariation reads a plant or bench: a file in dir, or else a name that bench.ReadAny finds.
func NewVariation(dir, name string) (*Variation, error) {
	n := &Variation{name: fileIn(dir, name), Files: map[string][]byte{}}
	file, data, kind, err := bench.ReadKind("sweep", n.name, "plant", "bench")
	if err != nil {
		return nil, err
	}
	n.file, n.Files[file] = file, data
	if info, err := os.Stat(n.name); err == nil && !info.IsDir() {
		n.dir = filepath.Dir(n.name)
	}
	if kind == "plant" {
		if n.Plant, err = plantfile.Parse(file, data, library.Elements()); err == nil {
			err = n.readPlantFiles()
		}
	} else {
		err = n.readBench(file, data)
	}

	return n, err
}

// readPlantFiles reads the files that the plant names.
func (n *Variation) readPlantFiles() error {
	n.files = map[string]bench.FileContent{}
	b, err := n.bench()
	if err != nil {
		return err
	}
	draft, err := b.ParsePlant()
	if err != nil {
		return err
	}
	_, _ = draft.Load() // a bad value of the plant is an error of the caller, who prepares the first case
	n.keepFiles()
	return nil
}

// keepFiles adds the files that the bench and the plant name to those read.
func (n *Variation) keepFiles() {
	for _, f := range n.files {
		n.Files[f.Shown] = f.Data
	}
}

// fileIn returns the path of the file name in dir if it exists, otherwise name.
func fileIn(dir, name string) string {
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !filepath.IsAbs(name) {
		return path
	}
	return name
}

func (n *Variation) readBench(file string, data []byte) error {
	b, err := bench.Parse(file, n.dir, data)
	if err != nil {
		return err
	}
	if n.Plant, err = b.ParsePlant(); err != nil {
		return err
	}
	h, err := bench.Prepare(b) // reads the databases
	if err != nil {
		return err
	}
	n.files = h.Bench.Files
	if b.Program != nil {
		n.Files["control_unit"] = []byte(b.ProgramDigest())
	}
	n.keepFiles()
	r := bench.NewReader(file)
	return r.Try(func() {
		n.Bench = r.Document(data)
		expandControlUnit(r, n.Bench)
	})
}

// expandControlUnit writes all parameters of the virtual control unit into the tree of a bench, so
// that they can be varied. Their position is the position of the unit.
func expandControlUnit(r *yamlfile.Reader, top yamlfile.Node) {
	const key = "control_unit"
	for _, f := range r.FieldsOf(yamlfile.Root(top), "bench file") {
		if f.Key != key {
			continue
		}
		w, set, program := bench.ReadControlUnit(r, f)
		if program != nil {
			continue // its parameters are its own
		}
		text := "{name: " + w.Text
		for _, p := range ecu.Parameters(w.Text) {
			s := ecu.Setting{Name: p.Name, Value: *p.Value}
			if i := slices.IndexFunc(set, func(s ecu.Setting) bool { return s.Name == p.Name }); i >= 0 {
				s = set[i]
			}
			text += ", " + p.Name + ": " + bench.FormatSetting(w.Text, s)
		}

		yamlfile.SetValue(top, key, r.Document([]byte(text+"}")))
	}
}

// SetScenario sets the scenario of all cases: a file in dir, or an embedded scenario.
func (n *Variation) SetScenario(dir, name string) error {
	file, data, _, err := bench.ReadKind("sweep", fileIn(dir, name), "scenario")
	if err != nil {
		return err
	}
	n.Files[file] = data
	if n.Scenario, err = scenario.ParseDraft(file, data); err != nil {
		return err
	}
	if file, digest := n.Scenario.Cycle(); file != "" {
		n.Files[file] = digest
	}
	return nil
}

// bench returns the bench of the current tree, or a bench without buses around the plant.
func (n *Variation) bench() (*bench.Bench, error) {
	b := bench.FromPlant(n.name, n.file, n.Step, "")
	if n.Bench != nil {
		var err error
		if b, err = bench.FromTree(n.file, n.dir, n.Bench); err != nil {
			return nil, err
		}
	}

	b.Files = n.files
	b.SetPlant(n.Plant)
	return b, nil
}

// Case is one simulation of a Variation.
type Case struct {
	Handover *bench.Handover
	Scenario *scenario.Scenario // nil: none
	sim      *simulation
}

// Prepare prepares a simulation with the current values of the trees. status must be zero, and
// belongs to the case until the end of Run. Close the case afterwards.
func (n *Variation) Prepare(status *rt.StatusBlock) (*Case, error) {
	b, err := n.bench()
	if err != nil {
		return nil, err
	}
	w := &simulation{Simulation: Simulation{For: n.For, Every: 1}, view: report.View{Status: status}, unit: &virtualUnit{}}
	err = w.prepareBench(b, func(h *bench.Handover) (run scenario.Run, err error) {
		h.Loop.Untimed = true // a row of results has no time of a tick
		if n.Scenario != nil {
			if run.Scenario, err = n.Scenario.Scenario(h); err == nil {
				scenario.Apply(h, run.Scenario)
			}
		}

		return run, err
	})
	if err == nil {
		err = w.createRecord()
	}
	if err != nil {
		w.close()
		return nil, err
	}

	return &Case{w.view.Handover, w.scenario.Scenario, w}, nil
}

// Close closes the buses of the case.
func (c *Case) Close() { c.sim.close() }

// Run simulates the case. It calls each with every grid point k from 0 on, the outputs at k and the
// inputs of the step that ends at k, SI; if each returns false, the run ends. An error is a broken
// policy of the bench or a non-finite state of the plant.
func (c *Case) Run(each func(k int64, y, u []float64) bool) (*report.Report, error) {
	c.sim.each = each
	report, err := c.sim.finishReport(c.sim.run())
	if err == nil && !report.Clean {
		err = errors.New(report.Ended)
	}
	return report, err
}
