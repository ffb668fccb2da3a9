package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// Sweep is a sweep file, read and checked.
type Sweep struct {
	yamlfile.Origin
	Name  string
	Hash  string // SHA-256 of everything that determines the results, hexadecimal
	Cases int64

	Plant  string // name of the plant or bench
	Ticks  int64  // length of the first case, ticks
	StepNs int64  // period, ns

	Columns []Column

	program      string // identity of the simulating program, see program
	text         []byte // content of the file
	dir          string
	given        map[string]yamlfile.Scalar // keys with one value
	step, length time.Duration              // period of a plant without a bench, length of a case; 0: default
	parameters   []parameter
	cases        spec // key cases of a Latin hypercube
	results      []spec
	judged       bool // the scenario has expectations
}

// parameter is a varied parameter: a column of values, and the addresses that get them.
type parameter struct {
	spec
	axis
	targets []yamlfile.Scalar // addresses
	stride  int64             // cases between two values in a grid
}

// Load reads a sweep, a file or embedded, and checks its names, its units and the first case.
// Errors are "FILE:LINE:COL: ...".
func Load(name string) (*Sweep, error) {
	file, data, _, err := bench.ReadKind("sweep", name, "sweep")
	if err != nil {
		return nil, err
	}
	s, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	if s.program, err = program(); err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		s.dir = filepath.Dir(name)
	}
	w, err := s.worker()
	if err != nil {
		return nil, err
	}
	if err := s.check(w); err != nil {
		return nil, err
	}
	s.Hash = s.hash(w.from.Files)
	return s, nil
}

// parse reads the text of a sweep file, without the files that it names.
func parse(file string, text []byte) (*Sweep, error) {
	s := &Sweep{Origin: yamlfile.Origin{File: file, Owner: "sweep"}, text: text}
	r := &yamlfile.Reader{Origin: s.Origin}
	err := r.Try(func() {
		s.read(r, yamlfile.Root(r.Document(text)))
		s.combine(r)
		s.makeColumns(r)
	})
	return s, err
}

// program identifies the simulating program as far as results depend on it bit for bit: its
// version, the compiler's version and the architecture with its level, which decides about fused
// products and sums. If the sources have uncommitted changes, the SHA-256 of the executable is
// added.
func program() (string, error) {
	words := host.Version() + " " + host.Arch()
	if changed, known := host.Changed(); known && !changed {
		return words, nil
	}
	sum, err := host.Executable()
	return words + " " + sum, err
}

func (s *Sweep) read(r *yamlfile.Reader, top yamlfile.Field) {
	const what = "sweep file"
	fields := r.FieldsOf(top, what)
	r.CheckKeys(fields, what,
		"sweep", "about", "plant", "bench", "scenario", "step", "for", "parameters", "cases", "results")
	s.given = map[string]yamlfile.Scalar{}
	var step yamlfile.Field
	for _, f := range fields {
		text, single := yamlfile.ScalarText(f.Node)
		switch {
		case f.Key == "parameters":
			for _, f := range r.FieldsOf(f, f.Key) {
				p := parameter{spec: readSpec(r, f, axisLists, axisKeys...)}
				if p.targets = p.given["of"]; len(p.targets) == 0 {
					p.targets = []yamlfile.Scalar{p.name}
				}
				s.parameters = append(s.parameters, p)
			}
		case f.Key == "cases" && !(single && text != ""):
			s.cases = readSpec(r, f, nil, "latin_hypercube", "seed")
		case f.Key == "results":
			for _, f := range r.FieldsOf(f, f.Key) {
				s.results = append(s.results, readSpec(r, f, nil, slices.Concat(rules, resultKeys)...))
			}
		case f.Key == "step":
			step = f
			s.step = readSpan(r, f)
		case f.Key == "for":
			s.length = readSpan(r, f)
		default:
			s.given[f.Key] = r.Scalar(f, f.Key)
		}
	}

	name, plant, bench := s.given["sweep"], s.given["plant"], s.given["bench"]
	s.Name, s.Plant = name.Text, plant.Text+bench.Text
	switch {
	case s.Name == "":
		r.Fail(top, "the name is missing (sweep: NAME)")
	case !plain.MatchString(s.Name) || len(s.Name) > 64:
		r.FailAt(name.At(), "sweep: %q is not a name (at most 64 letters, digits, _ and -)", s.Name)
	case (plant.Text == "") == (bench.Text == ""):
		r.FailAt(bench.At(), "expected either plant: NAME or bench: NAME")
	case bench.Text != "" && s.step != 0:
		r.Fail(step, "step: a bench has its own period: vary it by bench.period")
	case len(s.parameters) == 0:
		r.Fail(top, "no parameter is varied: parameters: {NAME: {from: 1, to: 2, steps: 5}} is missing")
	case len(s.results) == 0:
		r.Fail(top, "there is no result: results: {NAME: {final: OUTPUT}} is missing")
	}
}

// readSpan reads a positive duration.
func readSpan(r *yamlfile.Reader, f yamlfile.Field) time.Duration {
	w := r.Scalar(f, f.Key)
	v := bench.ReadQuantity(r, f, w.Text, units.Want("s"), f.Key)
	if !(v*1e9 >= 1 && v < 1e9) {
		r.Fail(f, "%s: %s is not a positive duration", f.Key, w.Text)
	}
	return time.Duration(math.RoundToEven(v * 1e9))
}

// legal matches names of columns, plain matches names of sweeps, which are part of file names.
var (
	legal = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.\[\]-]*$`)
	plain = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
)

// combine computes the values of the parameters and the number of cases.
func (s *Sweep) combine(r *yamlfile.Reader) {
	rule := s.given["cases"]
	var strata, seed int64
	if s.cases.given != nil {
		strata = s.cases.whole("latin_hypercube", 1, maxCases)
		if !s.cases.has("seed") {
			s.cases.fail("latin_hypercube", "seed is missing: {latin_hypercube: %d, seed: 1}", strata)
		}
		seed = s.cases.whole("seed", 0, math.MaxInt64)
	} else if known := []string{"grid", "zip"}; rule.Text != "" && !slices.Contains(known, rule.Text) {
		r.FailAt(rule.At(), "cases: %q is unknown%s; known are grid, zip and {latin_hypercube: N, seed: S}",
			rule.Text, units.Meant(rule.Text, known))
	}

	// A file that is refused must not cost the memory of all its values.
	all, grid := 1.0, strata == 0 && rule.Text != "zip"
	for i := range s.parameters {
		p := &s.parameters[i]
		p.axis, p.stride = p.spec.axis(strata, seed), 1
		first, n := &s.parameters[0], len(p.values)
		if all *= float64(n); grid && all > maxCases {
			r.FailAt(first.name.At(), "cases: %.12g cases, at most %d are possible; "+
				"a latin hypercube has a number of cases that you choose", all, maxCases)
		}
		if !grid && n != len(first.values) {
			r.FailAt(p.name.At(), "cases: zip: %s has %d values, %s has %d", p.name.Text, n, first.name.Text, len(first.values))
		}
	}

	if !grid {
		s.Cases = int64(len(s.parameters[0].values))
		return
	}

	s.Cases = 1
	for i := range slices.Backward(s.parameters) {
		s.parameters[i].stride = s.Cases
		s.Cases *= int64(len(s.parameters[i].values))
	}
}

// index returns the index of the parameter's value in a case.
func (p *parameter) index(number int64) int64 { return number / p.stride % int64(len(p.values)) }

// Column is a column of the table of results.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit"` // "": none
	Kind Kind   `json:"kind"`
}

// columnUnit returns the unit of a column; "" for a number.
func columnUnit(unit string) string {
	if unit == "1" || unit == "-" {
		return ""
	}
	return unit
}

// Kind is the kind of a column.
type Kind string

// The kinds.
const (
	Number    Kind = "number"    // number of the case, int64
	Parameter Kind = "parameter" // float64
	Result    Kind = "result"    // float64 or null
	Verdict   Kind = "verdict"   // bool or null
	Text      Kind = "text"      // string or null
)

var ownColumns = []string{"case", "held", "broken", "failed"}

// makeColumns sets the columns of parameters and results.
func (s *Sweep) makeColumns(r *yamlfile.Reader) {
	taken := slices.Clone(ownColumns)
	add := func(name yamlfile.Scalar, kind Kind) {
		switch {
		case !legal.MatchString(name.Text):
			r.FailAt(name.At(), "%q cannot be the name of a column (letters, digits, _, -, . and [])", name.Text)
		case slices.Contains(taken, name.Text):
			r.FailAt(name.At(), "two columns of the table are named %s", name.Text)
		}

		taken = append(taken, name.Text)
		s.Columns = append(s.Columns, Column{Name: name.Text, Kind: kind})
	}

	s.Columns = []Column{{Name: "case", Kind: Number}}
	for _, p := range s.parameters {
		add(p.name, Parameter)
	}
	for _, r := range s.results {
		add(r.name, Result)
	}
}

// check checks names and units with the plant, the bench and the scenario, with the values of their
// files. A value outside a range is an error of its case, not of the sweep.
func (s *Sweep) check(w *worker) error {
	c, err := w.prepare()
	if err != nil {
		return s.ErrorAt(yamlfile.Pos{}, "%s cannot be simulated with the values of its files: %w", s.Plant, err)
	}
	defer c.Close()
	s.Ticks, s.StepNs = c.Handover.Loop.Ticks, c.Handover.Tables.PeriodNs
	if err := w.fit(c.Handover); err != nil {
		return err
	}
	for i := range s.results {
		m, err := newMeter(s.results[i], c)
		if err != nil {
			return err
		}
		s.Columns[1+len(s.parameters)+i].Unit = columnUnit(m.unit.Spelled)
	}

	if s.judged = c.Scenario != nil && len(c.Scenario.Expect) > 0; s.judged {
		s.Columns = append(s.Columns, Column{Name: "held", Kind: Verdict}, Column{Name: "broken", Kind: Text})
	}
	s.Columns = append(s.Columns, Column{Name: "failed", Kind: Text})
	return nil
}

// hash returns the SHA-256 of everything that determines the results: the sweep file, the files
// that it names, the version of the command and the architecture.
func (s *Sweep) hash(files map[string][]byte) string {
	h := sha256.New()
	put := func(text []byte) { fmt.Fprintf(h, "%d:%s", len(text), text) }
	put([]byte(s.program))
	put(s.text)
	var list []string
	for name, data := range files {
		list = append(list, filepath.Base(name)+"\x00"+string(data))
	}
	slices.Sort(list)
	for _, text := range list {
		put([]byte(text))
	}
	return hex.EncodeToString(h.Sum(nil))
}
