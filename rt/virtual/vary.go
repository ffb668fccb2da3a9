package virtual

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/yamlfile"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// Variation is a plant, or a bench with its virtual control unit, that is simulated often
// in virtual time, each time with other values in its files, which are read and parsed
// once. It is not safe for concurrent use: each goroutine has its own.
type Variation struct {
	Plant    *plantfile.Draft
	Bench    ast.Node      // tree of the bench file; nil: there is none, the plant is alone
	Scenario ast.Node      // tree of the scenario; nil: there is none
	Step     time.Duration // period of a plant alone; 0: 5 ms
	For      time.Duration // 0: as the scenario says, otherwise 10 s

	Files map[string][]byte // all that was read, by name

	name, file, dir string
	scenario        string // its file
	known           map[string]bench.FileContent
}

// NewVariation reads a plant or bench: a file in dir, else as ReadAny finds it.
func NewVariation(dir, name string) (*Variation, error) {
	n := &Variation{name: fileIn(dir, name), Files: map[string][]byte{}}
	file, data, err := bench.ReadAny(n.name)
	if err != nil {
		return nil, err
	}
	n.file, n.Files[file] = file, data
	if info, err := os.Stat(n.name); err == nil && !info.IsDir() {
		n.dir = filepath.Dir(n.name)
	}
	switch k := bench.FileKind(file, data); k {
	case "plant":
		n.Plant, err = plantfile.Parse(file, data, library.Elements())
	case "bench":
		err = n.readBench(file, data)
	default:
		err = &bench.KindError{File: file, Kind: k, Err: fmt.Errorf("bench: %s is of another kind (%s); a plant or a bench is wanted", file, k)}
	}
	return n, err
}

// fileIn is the file called name in dir where there is one.
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
	n.known = h.Bench.Files
	for _, f := range n.known {
		n.Files[f.Shown] = f.Data
	}
	r := bench.NewReader(bench.FileOrigin(file))
	if n.Bench = r.Document(data); r.Err == nil {
		expandControlUnit(r, n.Bench)
	}
	return r.Err
}

// expandControlUnit lets all parameters of the virtual control unit stand in the tree of a bench, so
// that they can be varied; they count as standing where the unit does.
func expandControlUnit(r *yamlfile.Reader, top ast.Node) {
	for _, e := range r.Entries(top, "bench file") {
		if e.Key.GetToken().Value != "unit" {
			continue
		}
		w, set := bench.ReadControlUnit(r, e.Value)
		text := "{name: " + w.Text
		for _, p := range ecu.Parameters(w.Text) {
			s := ecu.Setting{Name: p.Name, Value: *p.Value}
			if i := slices.IndexFunc(set, func(s ecu.Setting) bool { return s.Name == p.Name }); i >= 0 {
				s = set[i]
			}
			text += ", " + strings.Replace(s.String(), "=", ": ", 1)
		}
		at := e.Value.GetToken().Position
		e.Value = r.Document([]byte(text + "}"))
		for _, v := range r.Entries(e.Value, "unit") {
			v.Key.GetToken().Position, v.Value.GetToken().Position = at, at
		}
	}
}

// Follow lets all cases follow a scenario, found likewise.
func (n *Variation) Follow(dir, name string) error {
	file, data, err := bench.ReadAny(fileIn(dir, name))
	if err != nil {
		return err
	}
	if k := bench.FileKind(file, data); k != "scenario" {
		return &bench.KindError{File: file, Kind: k, Err: fmt.Errorf("bench: %s is a file of another kind (%s); a scenario begins with scenario: NAME", file, k)}
	}
	n.scenario, n.Files[file] = file, data
	r := bench.NewReader(bench.FileOrigin(file))
	n.Scenario = r.Document(data)
	return r.Err
}

// bench is the bench as its tree is now, or one without a bus around the plant.
func (n *Variation) bench() (*bench.Bench, error) {
	b := bench.FromPlant(n.name, n.file, n.Step, "")
	if n.Bench != nil {
		var err error
		if b, err = bench.FromTree(n.file, n.dir, n.Bench); err != nil {
			return nil, err
		}
		b.Files = n.known
	}
	b.SetPlant(n.Plant)
	return b, nil
}

// Case is one simulation of a Variation.
type Case struct{ v *virtualBench }

// Prepare makes a simulation of the values that stand in the trees now. page is of the
// case alone until it has run, and all zero. The case is to be closed.
func (n *Variation) Prepare(page *rt.Page) (*Case, error) {
	b, err := n.bench()
	if err != nil {
		return nil, err
	}
	h, err := bench.Prepare(b)
	if err != nil {
		return nil, err
	}
	c := &Case{&virtualBench{simulation: &simulation{Simulation: Simulation{For: n.For, Every: 1}, page: page}}}
	c.v.equip(b, h)
	if n.Scenario != nil {
		r := bench.NewReader(bench.FileOrigin(n.scenario))
		if c.v.scenario.Scenario, err = scenario.ReadTree(r, n.Scenario, h); err != nil {
			return nil, err
		}
		scenario.Apply(h, c.v.scenario.Scenario)
	}
	if err = c.v.begin(); err == nil {
		err = c.v.startRecorder()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close gives up what the case holds.
func (c *Case) Close() { c.v.close() }

// Run simulates. each takes every grid point: its number from 0 on, the outputs there and
// the inputs of the step that ends there, SI; false ends the run. The error is what broke
// it: a policy of the bench, or a state of the plant that is no number any more.
func (c *Case) Run(each func(k int64, y, u []float64) bool) (*report.Report, error) {
	c.v.each = each
	report, err := c.v.settle(c.v.run())
	if err == nil && !report.Clean {
		err = errors.New(report.Ended)
	}
	return report, err
}

// Ticks is how many steps the case has, PeriodNs how long each is, ns.
func (c *Case) Ticks() int64    { return c.v.view.Handover.Loop.Ticks }
func (c *Case) PeriodNs() int64 { return c.v.view.Handover.Tables.PeriodNs }

// Expects is how many expectations the scenario has.
func (c *Case) Expects() int {
	if c.v.scenario.Scenario == nil {
		return 0
	}
	return len(c.v.scenario.Scenario.Expect)
}

// Reading finds an output, an input that is known outside of the plant, or a bound signal.
func (c *Case) Reading(name string) (scenario.Reading, error) {
	return scenario.FindReading(c.v.view.Handover, name)
}

// Conditions reads "PORT > VALUE", two at most, joined by "and".
func (c *Case) Conditions(text string) (scenario.Conditions, error) {
	return scenario.ParseConditions(c.v.view.Handover, text)
}

// Instant reads "3 s" or "tick 600" as a grid point; times between two are rounded up.
func (c *Case) Instant(text string) (int64, error) {
	return scenario.ParseInstant(c.v.view.Handover, text)
}
