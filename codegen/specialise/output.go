package specialise

import (
	"fmt"
	"go/format"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/units"
)

// Plant is the plant that is specialised, and the texts that the generated files quote.
type Plant struct {
	Tables  *kernel.Tables
	Signals []string // names of the signals; "" for signals without a name
	Hash    string   // hash of the plant on its grid
	Marker  string   // first line of each file
	Package string   // name of the Go package

	Progress func(passes, expected int) // called after each pass over the tick; nil: not called
}

// Report gives the size of the generated code and the decisions of the generator, such as which
// loops are unrolled.
type Report struct {
	Code   int      // size of the tick's text, bytes
	Tables int      // size of its constant tables, bytes
	State  int      // size of a kernel, bytes
	Lines  []string // one line for each decision
}

// Generate returns the files of the Go package of a plant's kernel, by name.
func Generate(j Plant) (map[string][]byte, Report, error) {
	s, err := newSpec(&j)
	if err != nil {
		return nil, Report{}, err
	}
	if err := s.runPasses(j.Progress); err != nil {
		return nil, Report{}, err
	}
	s.inlineCalls()
	return s.files(&j)
}

// files returns the files that the last pass produced.
func (s *spec) files(j *Plant) (map[string][]byte, Report, error) {
	var code, tables strings.Builder
	order := s.reached()
	for _, f := range order {
		f.write(&code)
	}
	s.writeHelpers(&code)
	state, size := s.state()
	r := Report{Code: code.Len(), State: size}
	about := fmt.Sprintf("loops of up to %d statements are unrolled", s.limit)
	if s.limit < unrollLimit {
		about += fmt.Sprintf(": with up to %d the tick would have more than %d statements,", unrollLimit, largeTick)
		about += " too many for the processor's cache"
	}

	r.Lines = append(r.Lines, about)

	used := map[string]bool{}
	for _, name := range identifiers(code.String()) {
		used[name] = true
	}
	var long []string
	for _, t := range s.tableList {
		if !used[t.name] {
			continue
		}
		bytes := t.write(&tables)
		if r.Tables += bytes; bytes >= minReportedTable {
			long = append(long, fmt.Sprintf("%s %d kB", t.name, bytes/1000))
		}
	}

	if long != nil {
		r.Lines = append(r.Lines, "large tables: "+strings.Join(long, ", "))
	}
	if len(s.keptLoops) > 0 {
		kept := strings.Join(slices.Sorted(maps.Keys(s.keptLoops)), ", ")
		r.Lines = append(r.Lines, "not unrolled, since they are longer or contain break or continue: loops in "+kept)
	}

	out := map[string][]byte{}
	for name, text := range map[string]string{
		"tick.go": code.String(), "tick_tables.go": tables.String(), "tick_state.go": state,
		"kernel.go": kernelFile(j, order),
	} {
		for _, of := range []string{"math/bits", "math"} {
			isOf := func(name string) bool { return strings.HasPrefix(name, path.Base(of)+".") }
			if slices.ContainsFunc(callNames(text), isOf) {
				text = fmt.Sprintf("import %q\n\n", of) + text
			}
		}

		doc := ""
		if name == "kernel.go" {
			doc = fmt.Sprintf(packageText, j.Package, j.Tables.Name, time.Duration(j.Tables.PeriodNs))
		}
		done, err := format.Source([]byte(j.Marker + "\n\n" + doc + "package " + j.Package + "\n\n" + text))
		if err != nil {
			return nil, r, fmt.Errorf("codegen: %s: %w", name, err)
		}
		out[name] = done
	}

	return out, r, nil
}

// packageText is the package comment of a generated kernel.
const packageText = `// Package %s is the kernel of the plant %s on a grid of %v: New makes
// one, Step advances it from one grid time to the next.
//
// No function of a tick may grow the stack. The linker checks this for optimised code: with
// -gcflags='all=-N -l' it may not link.
//
// A function with a loop begins with _ = *k: the compiler would test k for nil in every iteration.
`

// minReportedTable is the size from which the report names a table, bytes.
const minReportedTable = 16 << 10

// reached returns the functions that the entries call, callers first.
func (s *spec) reached() (list []*fn) {
	byCall := map[string]*fn{}
	for _, f := range s.order {
		byCall[f.callee()] = f
	}
	seen := map[*fn]bool{}
	var visit func(f *fn)
	visit = func(f *fn) {
		if seen[f] {
			return
		}
		seen[f] = true
		list = append(list, f)
		var b strings.Builder
		write(&b, f.body)
		for _, name := range callNames(b.String()) {
			if g := byCall[name]; g != nil {
				visit(g)
			}
		}
	}

	for _, f := range s.order {
		if f.entry {
			visit(f)
		}
	}

	return list
}

// write appends the function with its comment.
func (g *fn) write(b *strings.Builder) {
	doc := g.decl.Doc.Text()
	if g.about != "" {
		doc += g.about + "\n"
	}
	for line := range strings.Lines(doc) {
		b.WriteString("// " + line)
	}
	if doc != "" {
		b.WriteString("//\n")
	}
	b.WriteString("//go:nosplit\nfunc ")
	if g.method || g.indirect {
		b.WriteString("(k *Kernel) ")
	}
	b.WriteString(g.name + g.signature(g.params) + " {\n")
	if hasLoop(g.body) && reads(g.body)["k"] > 0 {
		b.WriteString("_ = *k\n")
	}
	write(b, g.body)
	b.WriteString("}\n\n")
}

// signature returns the parameter and result lists of the function as text.
func (g *fn) signature(params []string) string {
	var results []string
	for _, t := range g.results {
		results = append(results, goType(t))
	}
	text := "(" + strings.Join(params, ", ") + ")"
	if results != nil {
		text += " (" + strings.Join(results, ", ") + ")"
	}
	return text
}

// IndirectType returns the type of the variable through which the function is called.
func (g *fn) IndirectType() string {
	return "func" + g.signature(append([]string{"k *Kernel"}, g.params...))
}

// Name returns the name of the function.
func (g *fn) Name() string { return g.name }

// kernelFile returns the exported part of the package: the interface of the table kernel.
func kernelFile(j *Plant, order []*fn) string {
	jumps := slices.DeleteFunc(slices.Clone(order), func(f *fn) bool { return !f.indirect })
	unbounded := func(p units.Port) bool { return math.IsInf(p.Min, -1) || math.IsInf(p.Max, 1) }
	infinite := slices.ContainsFunc(slices.Concat(j.Tables.Inputs, j.Tables.Outputs), unbounded)
	bound := strings.NewReplacer("math.Inf(1)", "inf", "math.Inf(-1)", "-inf")
	var b strings.Builder
	t := template.New("kernel").Funcs(template.FuncMap{
		"bound": func(x float64) string { return bound.Replace(literal(x)) },
	})
	about := map[string]any{"Plant": j, "Tables": j.Tables, "Jumps": jumps, "Infinite": infinite}
	if err := template.Must(t.Parse(kernelText)).Execute(&b, about); err != nil {
		panic(err)
	}
	return b.String()
}

// kernelText is the template of kernel.go.
const kernelText = `// PlantHash identifies the plant on its grid and the version of the kernel's source.
const PlantHash = {{printf "%q" .Plant.Hash}}

// PeriodNs is the period of the grid, ns.
const PeriodNs = {{.Tables.PeriodNs}}

// Port is an input or output: its SI unit, and its range in that unit. Beyond says how a bus signal
// encodes a value that does not fit it: 0 limited, counted as saturated; 1 limited, not
// counted; 2 wrapped around, as for a counter.
type Port struct {
	Name, Unit string
	Min, Max   float64
	Beyond     uint8
}
{{if .Infinite}}
var inf = math.Inf(1)
{{end}}
{{define "ports"}}{{range .}}
	{Name: {{printf "%q" .Name}}, Unit: {{printf "%q" .Unit}},
	{{- ""}} Min: {{bound .Min}}, Max: {{bound .Max}}, Beyond: {{printf "%d" .Beyond}}},
{{- end}}
}{{end}}
// Inputs are the entries of u.
var Inputs = []Port{ {{- template "ports" .Tables.Inputs}}

// Outputs are the entries of y.
var Outputs = []Port{ {{- template "ports" .Tables.Outputs}}

// States names the states; the output "fault" is an index into it, from 1.
var States = []string{ {{- range .Tables.StateName}}
	{{printf "%q" .}},{{end}}
}

// Elements names the elements with events: friction elements, then those with regions.
var Elements = []string{ {{- range .Tables.Frictions}}
	{{printf "%q" .}},{{end}}{{range .Tables.Switches}}
	{{printf "%q" .Name}},{{end}}
}

// New returns a kernel at rest.
func New() *Kernel {
	k := new(Kernel)
	k.create()
	return k
}

// Step advances the plant by one period. u holds the inputs from now on, in SI; y receives the
// outputs at the new grid time.
//
// It panics where the lengths differ from Dims. It does not allocate. Its result depends only
// on the calls since Reset.
//
//go:nosplit
func (k *Kernel) Step(y, u []float64) {
	if len(y) != {{len .Tables.Outputs}} || len(u) != {{len .Tables.Inputs}} {
		panic("kernel: wrong length of u or y")
	}
	k.step((*[{{len .Tables.Outputs}}]float64)(y), (*[{{len .Tables.Inputs}}]float64)(u))
}

// Dims returns the lengths of u and y.
func (k *Kernel) Dims() (m, p int) { return {{len .Tables.Inputs}}, {{len .Tables.Outputs}} }

// Output writes the outputs at the current grid time, as Step does; before the first step at
// time 0.
func (k *Kernel) Output(y []float64) { k.output((*[{{len .Tables.Outputs}}]float64)(y)) }

// Reset returns the plant to time 0 and its initial state.
func (k *Kernel) Reset() { k.reset() }

// Events returns the transitions of the last Step. The slice is reused.
func (k *Kernel) Events() []Event { return k.log[:k.logged] }

// Drive makes input i follow u from the next step on, or its own source again. Until the dead
// time of the first u is over, the input keeps its present value. Drive ignores an input that
// the tables already command through u.
//
//go:nosplit
func (k *Kernel) Drive(i int, on bool) { k.drive(known(i), on) }

// Driven reports whether input i follows u.
//
//go:nosplit
func (k *Kernel) Driven(i int) bool { return k.driven(known(i)) }

// Own returns the value of input i's own source in the middle of the next step.
//
//go:nosplit
func (k *Kernel) Own(i int) float64 { return k.own(known(i)) }
{{if .Tables.Places}}
// Change makes input i follow the line value + slope·(t - at) in the next step, from t = at, s after
// its start, to the next change of the input or the end of the step. The step after it begins with
// its own u. A slope needs an input that was generated with one.
//
// A change at the start needs no place. A change at the end of the step, or later, is ignored.
// Changes of one input must come in the order of their instants. A step has {{.Tables.Places}} places; if all
// are taken, the last one moves to the instant of a later change, and the changes there move with it.
//
//go:nosplit
func (k *Kernel) Change(i int, at, value, slope float64) { k.change(known(i), at, value, slope) }
{{end}}
// known returns i if it is the index of an input, and panics otherwise: the tick would mask i to
// the index of another input.
//
//go:nosplit
func known(i int) int {
	if i < 0 || i >= {{len .Tables.Inputs}} {
		panic("kernel: no such input")
	}
	return i
}
{{if .Jumps}}
// jump holds the functions that are called indirectly: the linker restarts its count of the stack
// there.
var jump struct {
{{- range .Jumps}}
	{{.Name}} {{.IndirectType}}
{{- end}}
}

func init() {
{{- range .Jumps}}
	jump.{{.Name}} = (*Kernel).{{.Name}}
{{- end}}
}
{{end}}`
