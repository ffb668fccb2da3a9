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
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"lockstep/model/units"
	"lockstep/rt/bench"
)

// Sweep is a sweep file that was read and checked.
type Sweep struct {
	File  string
	Name  string
	Note  string // one line
	Hash  string // of all that decides about the results, hexadecimal
	Cases int64

	Plant  string // or bench
	Ticks  int64  // of the first case
	StepNs int64

	Columns []Column

	program    string // that simulates
	text       []byte // the file itself
	dir        string
	spec       document
	parameters []parameter
	results    []resultSpec
	judged     bool // a scenario expects something
}

// document is the file as it stands there.
type document struct {
	Sweep      word              `yaml:"sweep"`
	About      word              `yaml:"about"`
	Plant      word              `yaml:"plant"`
	Bench      word              `yaml:"bench"`
	Scenario   word              `yaml:"scenario"`
	Step       word              `yaml:"step"`
	For        word              `yaml:"for"`
	Parameters named[axisList]   `yaml:"parameters"`
	Cases      rule              `yaml:"cases"`
	Results    named[resultSpec] `yaml:"results"`
}

// axisList is an axisSpec that may be a bare list.
type axisList struct{ axisSpec }

func (s *axisList) UnmarshalYAML(n ast.Node) error {
	if _, ok := n.(*ast.SequenceNode); ok {
		return s.Values.UnmarshalYAML(n)
	}
	return decode(n, &s.axisSpec)
}

// rule is how parameters combine.
type rule struct {
	word word // grid or zip
	latin
}

type latin struct {
	Hypercube word `yaml:"latin_hypercube"`
	Seed      word `yaml:"seed"`
}

func (r *rule) UnmarshalYAML(n ast.Node) error {
	if _, ok := scalarText(n); ok {
		return r.word.UnmarshalYAML(n)
	}
	return decode(n, &r.latin)
}

// parameter is one column of values and where they go.
type parameter struct {
	axis
	key     word
	targets words
	stride  int64 // of a grid: cases between two values
}

// Load reads a sweep, a file or an embedded one, and checks it: names, units and the first
// case. Errors are "FILE:LINE:COL: ...".
func Load(name string) (*Sweep, error) {
	file, data, err := bench.ReadAny(name)
	if err != nil {
		return nil, err
	}
	s := &Sweep{File: file, text: data}
	if s.program, err = program(); err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		s.dir = filepath.Dir(name)
	}
	if err := s.read(data); err != nil {
		return nil, placed(file, err)
	}
	w, err := s.worker()
	if err != nil {
		return nil, err
	}
	if err := s.check(w); err != nil {
		return nil, placed(file, err)
	}
	s.Hash = s.hash(w.from.Files)
	return s, nil
}

func (s *Sweep) read(data []byte) error {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return err
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return errors.New("a sweep file holds one document that starts with sweep: NAME")
	}
	if err := decode(f.Docs[0].Body, &s.spec); err != nil {
		return err
	}
	d := &s.spec
	s.Name, s.Note, s.Plant = d.Sweep.text, d.About.text, d.Plant.text+d.Bench.text
	switch {
	case s.Name == "":
		return errors.New("the name is missing (sweep: NAME)")
	case !plain.MatchString(s.Name) || len(s.Name) > 64:
		return d.Sweep.errorf("sweep: %q is not a name (at most 64 letters, digits, _ and -)", s.Name)
	case (d.Plant.text == "") == (d.Bench.text == ""):
		return d.Bench.errorf("plant: NAME or bench: NAME is wanted, one of them")
	case d.Bench.text != "" && d.Step.text != "":
		return d.Step.errorf("step: a bench has its own period: vary it by bench.period")
	case len(d.Parameters) == 0:
		return errors.New("nothing is varied: parameters: {NAME: {from: 1, to: 2, steps: 5}} is missing")
	case len(d.Results) == 0:
		return errors.New("nothing is asked for: results: {NAME: {final: OUTPUT}} is missing")
	}
	if err := s.combine(); err != nil {
		return err
	}
	for _, e := range d.Results {
		r := e.value
		r.key = e.key
		if err := r.complete(); err != nil {
			return err
		}
		s.results = append(s.results, r)
	}
	return s.columns()
}

// What the names of columns and of sweeps are made of; the latter are parts of files' names.
var (
	legal = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.\[\]-]*$`)
	plain = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
)

// combine makes the values of the parameters and counts the cases.
func (s *Sweep) combine() (err error) {
	rule := &s.spec.Cases
	strata := rule.Hypercube.text != ""
	for _, e := range s.spec.Parameters {
		p := parameter{key: e.key, targets: e.value.Of}
		if len(p.targets) == 0 {
			p.targets = words{e.key}
		}
		if p.axis, err = e.value.axis(e.key, strata); err != nil {
			return err
		}
		s.parameters = append(s.parameters, p)
	}
	switch {
	case strata:
		return s.latin()
	case rule.word.text == "zip":
		return s.zip()
	case rule.word.text == "grid" || rule.word.text == "":
		return s.grid()
	}
	return rule.word.errorf("cases: %q is unknown%s; known are grid, zip and {latin_hypercube: N, seed: S}", rule.word.text, units.Meant(rule.word.text, []string{"grid", "zip"}))
}

func (s *Sweep) latin() error {
	rule := &s.spec.Cases
	n, err := rule.Hypercube.whole("cases: latin_hypercube", 1, maxCases)
	if err != nil {
		return err
	}
	if rule.Seed.text == "" {
		return rule.Hypercube.errorf("cases: seed is missing: {latin_hypercube: %d, seed: 1}", n)
	}
	seed, err := rule.Seed.whole("cases: seed", 0, math.MaxInt64)
	if err != nil {
		return err
	}
	for i := range s.parameters {
		s.parameters[i].strata(n, seeded(seed, s.parameters[i].key.text))
	}
	s.Cases = n
	return nil
}

func (s *Sweep) zip() error {
	s.Cases = s.parameters[0].n
	for i := range s.parameters {
		p := &s.parameters[i]
		if p.n != s.Cases {
			return p.key.errorf("cases: zip: %s has %d values, %s has %d", p.key.text, p.n, s.parameters[0].key.text, s.Cases)
		}
		p.stride = 1
	}
	return nil
}

func (s *Sweep) grid() error {
	product := 1.0
	s.Cases = 1
	for i := len(s.parameters) - 1; i >= 0; i-- {
		p := &s.parameters[i]
		p.stride = s.Cases
		s.Cases *= p.n
		if product *= float64(p.n); product > maxCases {
			all := 1.0
			for _, p := range s.parameters {
				all *= float64(p.n)
			}
			return s.parameters[0].key.errorf("cases: %.12g are too many, at most %d are possible; a latin hypercube takes as many as you say", all, maxCases)
		}
	}
	return nil
}

// index is which of its values a parameter has in a case.
func (p *parameter) index(number int64) int64 {
	if p.stride == 0 {
		return number
	}
	return number / p.stride % p.n
}

// Column is one of the table of results.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit"` // "" of what has none
	Kind Kind   `json:"kind"`
}

// Kind is what a column holds.
type Kind string

// The kinds. A result, and what follows from one, may be null.
const (
	Number    Kind = "number"    // of the case
	Parameter Kind = "parameter" // a float
	Result    Kind = "result"    // a float, or null
	Verdict   Kind = "verdict"   // a truth value, or null
	Text      Kind = "text"      // or null
)

var ownColumns = []string{"case", "held", "broken", "failed"}

func (s *Sweep) columns() error {
	s.Columns = []Column{{Name: "case", Kind: Number}}
	add := func(key word, kind Kind) error {
		switch {
		case !legal.MatchString(key.text):
			return key.errorf("%q cannot be the name of a column (letters, digits, _, -, . and [])", key.text)
		case slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Name == key.text }) || slices.Contains(ownColumns, key.text):
			return key.errorf("a column of the table is already called %s", key.text)
		}
		s.Columns = append(s.Columns, Column{Name: key.text, Kind: kind})
		return nil
	}
	for _, p := range s.parameters {
		if err := add(p.key, Parameter); err != nil {
			return err
		}
	}
	for _, r := range s.results {
		if err := add(r.key, Result); err != nil {
			return err
		}
	}
	return nil
}

// check holds names and units against the plant and, where there are ones, the bench and
// the scenario, with the values of these files: what is beyond a range is the case's.
func (s *Sweep) check(w *worker) error {
	c, err := w.prepare()
	if err != nil {
		return fmt.Errorf("%s cannot be simulated as its files stand: %w", s.Plant, err)
	}
	defer c.Close()
	s.Ticks, s.StepNs = c.Ticks(), c.PeriodNs()
	if err := w.fit(); err != nil {
		return err
	}
	for i := range s.results {
		m, err := s.results[i].meter(c)
		if err != nil {
			return err
		}
		s.Columns[1+len(s.parameters)+i].Unit = m.unit
	}
	if s.judged = c.Expects() > 0; s.judged {
		s.Columns = append(s.Columns, Column{Name: "held", Kind: Verdict}, Column{Name: "broken", Kind: Text})
	}
	s.Columns = append(s.Columns, Column{Name: "failed", Kind: Text})
	return nil
}

// hash is of all that decides about the results: the file, those that it names, the
// version of the command and the architecture.
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

// span reads a time of the file, more than 0; 0 of none.
func span(w word, what string) (time.Duration, error) {
	if w.text == "" {
		return 0, nil
	}
	v, err := units.Quantity(w.text, "s", nil)
	if err == nil && !(v*1e9 >= 1 && v < 1e9) {
		err = fmt.Errorf("%s is not more than nothing", w.text)
	}
	if err != nil {
		return 0, w.errorf("%s: %s", what, strings.TrimPrefix(err.Error(), "model: "))
	}
	return time.Duration(math.RoundToEven(v * 1e9)), nil
}

var _ yaml.NodeUnmarshaler = (*rule)(nil)
