package codegen

import (
	"fmt"
	"go/format"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"lockstep/model"
)

// Go writes the Go package of a plant's kernel.
func Go(j Job) (Files, Report, error) {
	if err := j.check(); err != nil {
		return nil, Report{}, err
	}
	s, err := newSpec(j.Tables)
	if err != nil {
		return nil, Report{}, err
	}
	if err := s.run(); err != nil {
		return nil, Report{}, err
	}
	return s.files(&j)
}

// files writes what the last round made.
func (s *spec) files(j *Job) (Files, Report, error) {
	var r Report
	order := s.reached()
	out := Files{}
	add := func(name, text string) error {
		full := j.marker() + "\n\npackage " + j.Package + "\n\n" + text
		if name != "kernel.go" && strings.Contains(text, "math.") {
			full = j.marker() + "\n\npackage " + j.Package + "\n\nimport \"math\"\n\n" + text
		}
		done, err := format.Source([]byte(full))
		if err != nil {
			out[name] = []byte(full)
			return fmt.Errorf("codegen: %s: %w", name, err)
		}
		out[name] = done
		return nil
	}
	var code, tables strings.Builder
	for _, f := range order {
		f.write(&code, s)
	}
	s.writeHelpers(&code)
	text := code.String()
	for _, t := range s.list {
		if strings.Contains(text, t.name) {
			r.Tables += t.write(&tables)
		}
	}
	state, err := s.state()
	if err != nil {
		return nil, r, err
	}
	r.Code = len(text)
	r.Lines = append(r.Lines, fmt.Sprintf("loops of up to %d statements are written out", s.limit))
	for _, why := range slices.Sorted(maps.Keys(s.notes)) {
		r.Lines = append(r.Lines, why)
	}
	errs := []error{add("tick.go", text), add("tick_tables.go", tables.String()), add("tick_state.go", state), add("kernel.go", s.kernelFile(j, order))}
	for _, err := range errs {
		if err != nil {
			return out, r, err
		}
	}
	return out, r, nil
}

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
		for _, m := range callName.FindAllStringSubmatch(b.String(), -1) {
			name := strings.TrimSuffix(m[1], "(k")
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

// state writes the kernel's struct and the function that sets what it begins with.
func (s *spec) state() (string, error) {
	root := &layout{fields: map[string]*layout{}}
	for _, key := range slices.Sorted(maps.Keys(s.shapes)) {
		if s.any[key] && s.read["any "+key] {
			root.add(s, strings.Split(key, ".")[1:], "k", s.shapes[key])
		}
	}
	var b, types strings.Builder
	b.WriteString("// Kernel steps one plant.\ntype Kernel struct {\n")
	root.write(s, &b, &types)
	b.WriteString("}\n\n" + types.String())
	b.WriteString("// create sets what a new kernel begins with.\n//\n//go:nosplit\nfunc (k *Kernel) create() {\n")
	for _, key := range slices.Sorted(maps.Keys(s.shapes)) {
		if !s.any[key] || !s.read["any "+key] {
			continue
		}
		for _, c := range cells(s.shapes[key]) {
			con := plain(c.value)
			if con != zeroOf(s.shapes[key].typ).con {
				fmt.Fprintf(&b, "%s = %s\n", c.text, literal(con))
			}
		}
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// cell is a number in the kernel as New left it.
type cell struct {
	text, sub string
	value     reflect.Value
}

// cells are all that a place would be with other indices.
func cells(p *place) (list []cell) {
	if p.parent == nil {
		return []cell{{text: p.text, value: p.one}}
	}
	for _, c := range cells(p.parent) {
		v := pointed(c.value)
		if p.index == nil {
			f := v.Type().Field(p.nth)
			if !f.Anonymous {
				c.sub += joined(c.sub, f.Name)
			}
			c.value = v.Field(p.nth)
			if p.typ.Underlying().String() != "" && c.value.Kind() != reflect.Struct && c.sub != "" {
				c.text, c.sub = dotted(c.text, c.sub), ""
			}
			list = append(list, c)
			continue
		}
		for i := range v.Len() {
			list = append(list, cell{text: dotted(c.text, c.sub) + "[" + strconv.Itoa(i) + "]", value: v.Index(i)})
		}
	}
	return list
}

// layout is a struct of the generated package.
type layout struct {
	fields map[string]*layout
	typ    string // of a scalar
	name   string // of the type of a struct
	size   int    // of an array; -1 for none
}

// add adds what a path of fields and indices leads to.
func (l *layout) add(s *spec, path []string, key string, at *place) {
	name, indexed := strings.CutSuffix(path[0], "[*]")
	f := l.fields[name]
	if f == nil {
		f = &layout{fields: map[string]*layout{}, size: -1}
		l.fields[name] = f
	}
	key += "." + name
	if indexed {
		f.size = max(s.sizes[key], s.padded[key], 1)
		key += "[*]"
	}
	if len(path) == 1 {
		f.typ = goType(at.typ)
		return
	}
	p := at
	for strings.Count(wild(p.cell()), ".") > strings.Count(key, ".") {
		p = p.parent
	}
	for p.index == nil {
		p = p.parent
	}
	f.name = strings.ToLower(p.typ.String()[strings.LastIndex(p.typ.String(), ".")+1:])
	if f.name == "event" {
		f.name = "Event"
	}
	f.add(s, path[1:], key, at)
}

func (l *layout) write(s *spec, b, types *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(l.fields)) {
		f := l.fields[name]
		typ := f.typ
		if len(f.fields) > 0 {
			typ = f.name
			var t strings.Builder
			f.write(s, &t, types)
			text := "type " + typ + " struct {\n" + t.String() + "}\n\n"
			if !strings.Contains(types.String(), text) {
				types.WriteString(text)
			}
		}
		if f.size >= 0 {
			typ = fmt.Sprintf("[%d]%s", f.size, typ)
		}
		if about := s.listed(name); about != "" && f.size >= 0 {
			typ += " // " + about
		}
		b.WriteString(name + " " + typ + "\n")
	}
}

// kernelFile is what the package shows: the interface of the table kernel.
func (s *spec) kernelFile(j *Job, order []*fn) string {
	var b strings.Builder
	t := j.Tables
	fmt.Fprintf(&b, "// PlantHash is that of the plant on its grid and of the kernel that this one was made of.\nconst PlantHash = %q\n\n", j.Hash)
	fmt.Fprintf(&b, "// PeriodNs is the period of the grid, ns.\nconst PeriodNs = %d\n\n", t.PeriodNs)
	b.WriteString("// Port is an input or output.\ntype Port struct {\nName, Unit string\nMin, Max float64\nBeyond uint8\n}\n\n")
	if math := portsUseInf(t.Inputs) || portsUseInf(t.Outputs); math {
		b.WriteString("var inf = math.Inf(1)\n\n")
	}
	b.WriteString("// Inputs are the entries of u.\nvar Inputs = []Port{\n")
	writePorts(&b, t.Inputs)
	b.WriteString("}\n\n// Outputs are the entries of y.\nvar Outputs = []Port{\n")
	writePorts(&b, t.Outputs)
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
	text := b.String()
	if strings.Contains(text, "math.") {
		text = "import \"math\"\n\n" + text
	}
	return text
}

func portsUseInf(ports []model.Port) bool {
	for _, p := range ports {
		if p.Min < -maxFloat || p.Max > maxFloat {
			return true
		}
	}
	return false
}

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

func writePorts(b *strings.Builder, ports []model.Port) {
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
func (k *Kernel) Drive(i int, on bool) { k.drive(i, on) }

// Driven says that input i follows u.
func (k *Kernel) Driven(i int) bool { return k.driven(i) }

// Own is what the source of input i gives in the middle of the next step.
//
//go:nosplit
func (k *Kernel) Own(i int) float64 { return k.own(i) }

`
