package specialise

import (
	"fmt"
	"go/format"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/units"
)

// Plant is what is specialised, and what the generated files say of it.
type Plant struct {
	Tables  *kernel.Tables
	Signals []string // names of the signals; "" for those that have none
	Hash    string   // of the plant on its grid
	Marker  string   // first line of each file
	Package string   // name of the Go package
}

// Report says how large what was generated is, and what was written out and what stayed a
// table, and why.
type Report struct {
	Code   int      // bytes of the tick's text
	Tables int      // bytes of its constant tables
	State  int      // bytes of a kernel
	Lines  []string // one for each decision
}

// Generate writes the files of the Go package of a plant's kernel.
func Generate(j Plant) (map[string][]byte, Report, error) {
	s, err := newSpec(&j)
	if err != nil {
		return nil, Report{}, err
	}
	if err := s.run(); err != nil {
		return nil, Report{}, err
	}
	return s.files(&j)
}

// files writes what the last round made.
func (s *spec) files(j *Plant) (map[string][]byte, Report, error) {
	var r Report
	var code, tables strings.Builder
	order := s.reached()
	for _, f := range order {
		f.write(&code, s)
	}
	s.writeHelpers(&code)
	names := map[string]bool{}
	eachName(code.String(), func(from, to int) { names[code.String()[from:to]] = true })
	state, size := s.state()
	r.Code, r.State = code.Len(), size
	r.Lines = append(r.Lines, fmt.Sprintf("loops of up to %d statements are written out", s.limit))
	if s.limit < generous {
		r.Lines[0] += fmt.Sprintf(": with those of up to %d the tick has more than %d, too many for the processor to keep", generous, large)
	}
	var large []string
	for _, t := range s.list {
		if !names[t.name] {
			continue
		}
		bytes := t.write(&tables)
		if r.Tables += bytes; bytes >= worthTelling {
			large = append(large, fmt.Sprintf("%s %d kB", t.name, bytes/1000))
		}
	}
	if large != nil {
		r.Lines = append(r.Lines, "large tables: "+strings.Join(large, ", "))
	}
	if len(s.notes) > 0 {
		r.Lines = append(r.Lines, "loops stay, as they are longer or have jumps that need them, in "+strings.Join(slices.Sorted(maps.Keys(s.notes)), ", "))
	}
	out := map[string][]byte{}
	for name, text := range map[string]string{"tick.go": code.String(), "tick_tables.go": tables.String(), "tick_state.go": state, "kernel.go": s.kernelFile(j, order)} {
		calls := callNames(text)
		for _, of := range []string{"math/bits", "math"} {
			if slices.ContainsFunc(calls, func(name string) bool { return strings.HasPrefix(name, path.Base(of)+".") }) {
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

// packageText is what the package is.
const packageText = `// Package %s is the kernel of the plant %s on a grid of %v: New makes
// one, Step takes it from one grid time to the next.
//
// No function of a tick may grow the stack. The linker checks that, of code as the compiler
// optimises it: with -gcflags='all=-N -l' it may not link.
`

// worthTelling is the size of a table that the report names, bytes.
const worthTelling = 16 << 10

// reached are the functions that the entries call, callers first.
func (s *spec) reached() (list []*fn) {
	byCall := map[string]*fn{}
	for _, f := range s.order {
		byCall[strings.TrimSuffix(f.callText(nil), "()")] = f
		if f.jump {
			byCall["jump."+f.name] = f
		}
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

func (g *fn) write(b *strings.Builder, s *spec) {
	doc := g.decl.Doc.Text()
	if g.about != "" {
		doc += g.about + "\n"
	}
	for line := range strings.Lines(doc) {
		b.WriteString("// " + strings.TrimRight(line, "\n") + "\n")
	}
	if doc != "" {
		b.WriteString("//\n")
	}
	b.WriteString("//go:nosplit\nfunc ")
	if g.method || g.jump {
		b.WriteString("(k *Kernel) ")
	}
	b.WriteString(g.name + "(" + strings.Join(g.params, ", ") + ") ")
	if len(g.results) > 0 {
		var types []string
		for _, t := range g.results {
			types = append(types, goType(t))
		}
		b.WriteString("(" + strings.Join(types, ", ") + ") ")
	}
	b.WriteString("{\n")
	write(b, g.body)
	b.WriteString("}\n\n")
}

// kernelFile is what the package shows: the interface of the table kernel.
func (s *spec) kernelFile(j *Plant, order []*fn) string {
	var b strings.Builder
	t := j.Tables
	fmt.Fprintf(&b, "// PlantHash is that of the plant on its grid and of the kernel that this one was made of.\nconst PlantHash = %q\n\n", j.Hash)
	fmt.Fprintf(&b, "// PeriodNs is the period of the grid, ns.\nconst PeriodNs = %d\n\n", t.PeriodNs)
	b.WriteString("// Port is an input or output: its SI unit, and its range in that unit. Beyond is what a signal\n// carries of a value that it cannot hold: 0 the end of its range, where the value was not\n// meant to go, 1 the same, as meant, 2 a counter, which goes on from the other end.\ntype Port struct {\nName, Unit string\nMin, Max float64\nBeyond uint8\n}\n\n")
	if math := portsUseInf(t.Inputs) || portsUseInf(t.Outputs); math {
		b.WriteString("var inf = math.Inf(1)\n\n")
	}
	b.WriteString("// Inputs are the entries of u.\nvar Inputs = []Port{\n")
	writePorts(&b, t.Inputs)
	b.WriteString("}\n\n// Outputs are the entries of y.\nvar Outputs = []Port{\n")
	writePorts(&b, t.Outputs)
	b.WriteString("}\n\n// States are what the output \"fault\" counts, from 1.\nvar States = []string{\n")
	for _, name := range t.StateName {
		fmt.Fprintf(&b, "%q,\n", name)
	}
	b.WriteString("}\n\n// Elements are what has events: friction elements, then those with regions.\nvar Elements = []string{\n")
	for _, name := range t.Frictions {
		fmt.Fprintf(&b, "%q,\n", name)
	}
	for i := range t.Switches {
		fmt.Fprintf(&b, "%q,\n", t.Switches[i].Name)
	}
	b.WriteString("}\n\n")
	fmt.Fprintf(&b, kernelText, len(t.Outputs), len(t.Inputs))
	jumps := []*fn{}
	for _, f := range order {
		if f.jump {
			jumps = append(jumps, f)
		}
	}
	if len(jumps) > 0 {
		b.WriteString("// jump holds what is called through a variable: the linker counts the stack anew there.\nvar jump struct {\n")
		for _, f := range jumps {
			fmt.Fprintf(&b, "%s func(k *Kernel", f.name)
			for _, p := range f.params {
				b.WriteString(", " + p)
			}
			b.WriteString(")")
			if len(f.results) > 0 {
				var types []string
				for _, t := range f.results {
					types = append(types, goType(t))
				}
				b.WriteString(" (" + strings.Join(types, ", ") + ")")
			}
			b.WriteString("\n")
		}
		b.WriteString("}\n\nfunc init() {\n")
		for _, f := range jumps {
			fmt.Fprintf(&b, "jump.%s = (*Kernel).%s\n", f.name, f.name)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func portsUseInf(ports []units.Port) bool {
	for _, p := range ports {
		if p.Min < -maxFloat || p.Max > maxFloat {
			return true
		}
	}
	return false
}

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

func writePorts(b *strings.Builder, ports []units.Port) {
	bound := func(x float64) string {
		switch {
		case x > maxFloat:
			return "inf"
		case x < -maxFloat:
			return "-inf"
		}
		return literal(x)
	}
	for _, p := range ports {
		fmt.Fprintf(b, "{Name: %q, Unit: %q, Min: %s, Max: %s, Beyond: %d},\n", p.Name, p.Unit, bound(p.Min), bound(p.Max), p.Beyond)
	}
}

// kernelText is the interface of the kernel.
const kernelText = `// New makes a kernel at rest.
func New() *Kernel {
	k := new(Kernel)
	k.create()
	return k
}

// Step takes the plant from one grid time to the next: u holds the inputs from
// now on, in SI, y receives the outputs at the new grid time.
//
// It panics where the lengths are not those of Dims. It does not allocate, and
// what it computes depends on nothing but the calls since Reset.
//
//go:nosplit
func (k *Kernel) Step(y, u []float64) {
	if len(y) != %[1]d || len(u) != %[2]d {
		panic("kernel: wrong length of u or y")
	}
	k.step((*[%[1]d]float64)(y), (*[%[2]d]float64)(u))
}

// Dims are the lengths of u and y.
func (k *Kernel) Dims() (m, p int) { return %[2]d, %[1]d }

// Output writes the outputs at the current grid time, as Step does: at time 0
// before the first step.
func (k *Kernel) Output(y []float64) { k.output((*[%[1]d]float64)(y)) }

// Reset puts the plant back to time 0 and its initial state.
func (k *Kernel) Reset() { k.reset() }

// Events are the transitions of the last Step. The slice is reused.
func (k *Kernel) Events() []Event { return k.log[:k.logged] }

// Drive has input i, which nothing drives by the tables, follow u from the next step
// on, or its own source again. Until the dead time of the first u is over it stays as it
// is now.
//
//go:nosplit
func (k *Kernel) Drive(i int, on bool) { k.drive(known(i), on) }

// Driven says that input i follows u.
func (k *Kernel) Driven(i int) bool { return k.driven(known(i)) }

// Own is what the source of input i gives in the middle of the next step.
//
//go:nosplit
func (k *Kernel) Own(i int) float64 { return k.own(known(i)) }

// known is the index of an input. The tick masks it, and would take another one for what is
// none.
//
//go:nosplit
func known(i int) int {
	if i < 0 || i >= %[2]d {
		panic("kernel: no such input")
	}
	return i
}

`
