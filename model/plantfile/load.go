// Package plantfile owns the language of plant files: Load makes a network from a plant file. It does
// not know the element types, which the caller passes (model/library lists them), and does not make
// matrices from the network: model/assemble does.
//
// Reading order: load.go (Load; Draft: a parsed file; inputs, the partition), parameters.go (parameters
// and their values from outside), start.go (start presets), scope.go (names, assemblies), elements.go (entries and their nodes), waveforms.go (values over time), exert.go
// (torques and forces of elements as signals), unitof.go (units that follow from others), outputs.go.
//
// Values of a network are SI. A file may use other units, which Load checks and converts. An error
// gives the position in the file: FILE:LINE:COL.
//
// model/PLANT.md describes the language; `lockstep help plant` prints it. Its tables of element types
// are generated from the declarations (go test ./model -run Guide -update).
package plantfile

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"lockstep/io/inputfile"
	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Load reads a plant file in the language of model/PLANT.md. file is its name in errors,
// "FILE:LINE:COL: model: ...".
//
// Package assemble checks the properties of the whole network.
func Load(file string, data []byte, kinds []element.Kind) (*network.Plant, error) {
	d, err := Parse(file, data, kinds)
	if err != nil {
		return nil, err
	}
	return d.Load()
}

const (
	maxElements = 2000
	maxPorts    = 1000 // inputs, and also outputs
	maxDelay    = 1.0  // dead time of an input, s
	maxSub      = 20   // N_sub of a partition
	maxIter     = 5    // N_iter of a partition
)

// loader fills a plant section by section.
type loader struct {
	yamlfile.Reader
	*element.Plant
	kinds      []element.Kind
	global     *scope         // names of the plant itself
	inputs     map[string]int // index of the signal, by name
	assemblies map[string]*definition
	used       map[string]bool // names of the sub-assemblies
	elements   map[string]element.Declared
	nodes      map[string]int
	provided   map[string]int                 // index of the signal of an element, by its name
	exertions  []exertion                     // efforts of elements that are read as signals
	unitsOpen  map[int]bool                   // signals of elements whose unit is not yet known
	waitsFor   []int                          // signals in unitsOpen that the last units wait for
	asked      map[yamlfile.Node]units.Wanted // unit of each number that was read
	set        []Assignment                   // of parameters
	start      []Assignment                   // of start presets

	groups      []startGroup
	startKeys   map[string][]yamlfile.Field              // keys that chosen presets give, by element
	startParams map[yamlfile.Node]map[string]units.Value // names in an expression of a preset
}

func (l *loader) load(top yamlfile.Node) {
	file := yamlfile.Root(top)
	section := l.Section(file, "plant file",
		"plant", "about", "parameters", "inputs", "start", "assemblies", "elements", "outputs", "partition")
	name, ok := section["plant"]
	l.Network.Name = l.Text(name, "plant")
	if !ok {
		l.FailAt(file.At, "plant file: plant: NAME is missing")
	} else if !units.IsName(strings.ReplaceAll(l.Network.Name, "-", "_"), false) {
		l.FailAt(name.At, "plant: %q is not a name (letters, digits, _ and -)", l.Network.Name)
	}

	l.Network.About = strings.TrimSpace(l.Text(section["about"], "about"))
	l.readParameters(section["parameters"])
	l.readInputs(section["inputs"])
	l.readStart(section["start"])
	l.readAssemblies(section["assemblies"])
	l.readElements(section["elements"], file.At)
	l.finishStart()
	l.readOutputs(section["outputs"])
	l.readPartition(section["partition"])
	l.setExertions()
	l.CompileLaws()
	l.inlineLinear()
	for i := range l.Network.Inputs {
		s := l.Network.Signals[i]
		if !s.Read {
			l.FailAt(s.At, "input %q: nothing reads it; remove it, or name it in an element", l.Network.Inputs[i].Name)
		}
	}
}

// optional returns the entries of an optional section, which may also be empty.
func (l *loader) optional(f yamlfile.Field, what string) []yamlfile.Field {
	if yamlfile.IsEmpty(f.Node) {
		return nil
	}
	return l.FieldsOf(f, what)
}

func (l *loader) readInputs(f yamlfile.Field) {
	l.inputs = map[string]int{}
	for _, f := range l.ports(f, "inputs") {
		l.readInput(f)
	}
}

// ports returns the entries of the section inputs or outputs.
func (l *loader) ports(f yamlfile.Field, what string) []yamlfile.Field {
	list := l.optional(f, what)
	if len(list) > maxPorts {
		l.FailAt(list[maxPorts].KeyAt, "more than %d %s", maxPorts, what)
	}
	return list
}

func (l *loader) readInput(f yamlfile.Field) {
	what := fmt.Sprintf("input %q", f.Key)
	if !units.IsName(f.Key, true) {
		l.FailAt(f.KeyAt, "%s: not a name (letters, digits and _, joined by .)", what)
	}
	if _, taken := l.global.params[f.Key]; taken {
		l.FailAt(f.KeyAt, "%s: a parameter has the same name", what)
	}
	fields := l.Section(f, what, "unit", "min", "max", "flag", "default", "delay")
	u, ok := fields["unit"]
	want, err := units.ParseWanted(l.Text(u, what+": unit"))
	if !ok {
		l.FailAt(f.KeyAt, "%s: unit is missing; write 1 for a bare number", what)
	} else if err != nil {
		l.FailAt(u.At, "%s: %s", what, units.Reason(err))
	}

	port := units.Port{Name: f.Key, Unit: want.SI, Declared: declared(want)}
	l.readRange(&port, fields, what, want)
	if flag, ok := fields["flag"]; ok && l.Choice(flag, what+": flag", "true", "false") == "true" {
		if !math.IsInf(port.Min, 0) || !math.IsInf(port.Max, 0) || want.Spelled != "1" {
			l.FailAt(flag.At, "%s: a flag is 0 or 1: omit min and max, and write unit: 1", what)
		}
		port.Min, port.Max, port.Flag = 0, 1, true
	}
	s := network.Signal{Name: f.Key, At: f.KeyAt, Unit: want.Unit, Source: network.Constant(want.Zero)}
	l.readDefault(&s, fields["default"], f.KeyAt, port, want)
	delay := l.global.option(fields, "delay", what, units.Want("s").Strict(), 0)
	if !(delay >= 0 && delay <= maxDelay) {
		l.FailAt(fields["delay"].At, "%s: delay %g s is outside 0 to %g s", what, delay, maxDelay)
	}

	for _, v := range [2]float64{port.Min, port.Max} {
		if !math.IsInf(v, 0) {
			s.MaxAbs = max(s.MaxAbs, math.Abs(v))
		}
	}

	l.inputs[f.Key] = network.Add(&l.Network.Signals, s)
	l.Network.Inputs = append(l.Network.Inputs, model.Input{Port: port, Signal: l.inputs[f.Key], Delay: delay})
}

// declared returns the spelling of a unit in a file; "" if it is the SI unit or 1.
func declared(u units.Wanted) string {
	if u.Spelled == u.SI || u.Unit == units.Want("1").Unit {
		return ""
	}
	return u.Spelled
}

// readDefault reads the value of an input while nothing drives it.
func (l *loader) readDefault(s *network.Signal, d yamlfile.Field, at network.Pos, port units.Port, want units.Wanted) {
	what := fmt.Sprintf("input %q", port.Name)
	if d.Key != "" {
		s.Source = l.global.waveform(d, what+": default", want, false).Source()
		at = d.At
	}

	if len(s.Source.Sum) > 0 {
		return
	}
	for i, v := range s.Source.V {
		if !(v >= port.Min && v <= port.Max) {
			l.FailAt(at, "%s: default %s at %g s is outside %s to %s", what,
				want.Format(v), s.Source.T[i], want.Format(port.Min), want.Format(port.Max))
		}
	}

	if low, high := network.SourceRange(s.Source); !(low >= port.Min && high <= port.Max) {
		l.FailAt(at, "%s: default reaches %s to %s, outside %s to %s", what,
			want.Format(low), want.Format(high), want.Format(port.Min), want.Format(port.Max))
	}
}

// readRange reads min and max of a port.
func (l *loader) readRange(p *units.Port, fields map[string]yamlfile.Field, what string, want units.Wanted) {
	p.Min = l.global.option(fields, "min", what, want, math.Inf(-1))
	p.Max = l.global.option(fields, "max", what, want, math.Inf(1))
	if !(p.Min <= p.Max) {
		l.FailAt(fields["max"].At, "%s: max %s is below min %s", what, want.Format(p.Max), want.Format(p.Min))
	}
}

// Draft is a parsed plant file. The caller may change values in its tree and call Load again without
// parsing.
type Draft struct {
	file  string
	top   yamlfile.Node
	kinds []element.Kind
	asked map[yamlfile.Node]units.Wanted
	set   []Assignment
	start []Assignment
	read  Reader // of the files that the plant file names
}

// Reader reads a file that a plant file names; path is the name relative to the folder of the plant file.
type Reader func(name, path string) ([]byte, error)

// ReadWith makes Load read the files that the plant file names with a function, such as one that keeps their content.
func (d *Draft) ReadWith(read Reader) { d.read = read }

// Parse parses a plant file. Its errors have the form of those of Load.
func Parse(file string, data []byte, kinds []element.Kind) (*Draft, error) {
	r := yamlfile.Reader{Origin: origin(file)}
	top := r.Document(data)
	var at *yamlfile.FileError
	var twice *yamlfile.DuplicateKey
	if errors.As(r.Err, &at) && errors.As(at.Err, &twice) && twice.Key == "b" {
		at.Err = fmt.Errorf("%w; b is the second flange, and the backlash of elasto_backlash is called backlash", at.Err)
	}
	return &Draft{file: file, top: top, kinds: kinds}, r.Err
}

func origin(file string) yamlfile.Origin { return yamlfile.Origin{File: file, Owner: "model"} }

// Top returns the tree of the file; the caller may set its leaves.
func (d *Draft) Top() yamlfile.Node { return d.top }

// readFile reads a file that the plant file names; name is relative to the folder of the plant file.
func (d *Draft) readFile(name string) (data []byte, path string, err error) {
	path = name
	if !filepath.IsAbs(name) {
		path = filepath.Join(filepath.Dir(d.file), name)
	}
	if d.read != nil {
		data, err = d.read(name, path)
	} else {
		data, err = inputfile.Read(path, inputfile.Text)
	}
	return data, path, err
}

// Load reads the plant from the present tree.
func (d *Draft) Load() (*network.Plant, error) {
	d.asked = map[yamlfile.Node]units.Wanted{}
	l := loader{
		Reader: yamlfile.Reader{Origin: origin(d.file)},
		Plant:  &element.Plant{Network: &network.Plant{File: d.file}, ReadFile: d.readFile},
		kinds:  d.kinds,
		asked:  d.asked,
		set:    d.set,
		start:  d.start,
	}
	if err := l.Try(func() { l.load(d.top) }); err != nil {
		return nil, err
	}
	return l.Network, nil
}

// Number reports whether the last Load read a number at n, and the unit of a number without one; ""
// for a parameter, whose unit depends on its use.
func (d *Draft) Number(n yamlfile.Node) (unit string, ok bool) {
	want, ok := d.asked[n]
	return want.Spelled, ok
}

// Fits returns an error if a number in that unit is not valid at n.
func (d *Draft) Fits(n yamlfile.Node, unit string) error {
	want := d.asked[n]
	u, err := units.Parse(unit)
	if err == nil && want.Factor > 0 && u.Dim != want.Dim {
		err = fmt.Errorf("unit %q (%v) does not fit what stands there (%v)", unit, u.Dim, want.Dim)
	}
	return err
}

// readPartition reads the section partition.
func (l *loader) readPartition(f yamlfile.Field) {
	if f.Key == "" {
		return
	}
	const what = "partition"
	p := &model.Partition{Sub: 1, Place: fmt.Sprintf("%s:%d:%d", l.File, f.KeyAt.Line, f.KeyAt.Col)}
	part := l.Section(f, what, "N_sub", "N_iter")
	if g, ok := part["N_sub"]; ok {
		p.Sub = l.global.whole(g, what+": N_sub", 1, maxSub)
	}
	if g, ok := part["N_iter"]; ok {
		p.Iter = l.global.whole(g, what+": N_iter", 0, maxIter)
	}
	l.Network.Partition = p
}
