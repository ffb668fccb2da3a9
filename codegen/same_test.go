package codegen

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

var (
	keep  = flag.String("keep", "", "folder for the generated packages, which stays after the test")
	timed = flag.Bool("timed", false, "time the ticks of both kernels")
	only  = flag.String("plants", "", "comma-separated plants to test, each PLANT, PLANT:VARIANT or random:SEED")
)

// subject is a plant on a grid, to be stepped by both kernels.
type subject struct {
	name   string
	tables *kernel.Tables
	system *model.System
	ticks  int // length of the test
}

// load returns an embedded plant, NAME or NAME:VARIANT, or random:SEED.
func load(t testing.TB, name string) subject {
	t.Helper()
	plant, variant, _ := strings.Cut(name, ":")
	if plant == "random" {
		seed, err := strconv.Atoi(variant)
		if err != nil {
			t.Fatal(err)
		}
		return randomPlant(t, uint64(seed))
	}
	set, ok := variants[variant]
	if !ok && variant != "" {
		t.Fatalf("unknown variant %q of a plant", variant)
	}
	return embedded(t, plant, name, set)
}

// embedded returns an embedded plant with options; name includes the variant.
func embedded(t testing.TB, plant, name string, set func(*model.System, *kernel.Options)) subject {
	t.Helper()
	data, err := []byte(texts[plant]), error(nil)
	if len(data) == 0 {
		data, err = plants.Read(plant)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load(plant+".yaml", data, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	return assembled(t, name, p, set)
}

// texts are plants of the tests, by name.
var texts = map[string]string{"blocks": blocksText, "teeth": teethText}

// variants are options of the kernel, by name.
var variants = map[string]func(sys *model.System, opt *kernel.Options){
	"papers":     func(_ *model.System, opt *kernel.Options) { opt.Scheme = kernel.Papers },
	"held":       func(_ *model.System, opt *kernel.Options) { opt.Form = kernel.Held },
	"factorised": func(_ *model.System, opt *kernel.Options) { opt.Memory = 1 },
	"sparse":     func(_ *model.System, opt *kernel.Options) { opt.Stepping = kernel.Sparse },
	"driven": func(sys *model.System, opt *kernel.Options) {
		opt.Driven = slices.Repeat([]bool{true}, len(sys.Inputs))
	},
	"in parts": func(sys *model.System, _ *kernel.Options) { sys.Partition = &model.Partition{Sub: 4, Iter: 1} },
	"changing": changing,
	"changing sparse": func(sys *model.System, opt *kernel.Options) {
		changing(sys, opt)
		opt.Stepping = kernel.Sparse
	},
	"changing papers": func(sys *model.System, opt *kernel.Options) {
		changing(sys, opt)
		opt.Scheme = kernel.Papers
		for i := range sys.Inputs {
			sys.Inputs[i].Delay = float64(i%3) * 0.0037
		}
	},
	"papers and driven": func(sys *model.System, opt *kernel.Options) {
		opt.Scheme, opt.Driven = kernel.Papers, slices.Repeat([]bool{true}, len(sys.Inputs))
	},
}

// changing makes all inputs change inside of the steps, half of them with a slope.
func changing(sys *model.System, opt *kernel.Options) {
	opt.Driven, opt.Places = slices.Repeat([]bool{true}, len(sys.Inputs)), 4
	for i := range sys.Inputs {
		opt.Ramped = append(opt.Ramped, i%2 == 0)
	}
}

// changer is a kernel whose inputs change inside of a step.
type changer interface {
	Change(i int, at, value, slope float64)
}

// change announces changes in a step of length h from its inputs; runnerText has the same.
func change(k changer, u []float64, tick int, h float64) {
	for n := range tick % 8 {
		i, at := (tick+3*n)%len(u), h*float64((tick*13+n*29)%31)/30
		value, slope := u[(i+n)%len(u)], 0.0
		if i%2 == 0 {
			slope = float64(float64(n%3)*(u[i]-value)) / h
		}
		k.Change(i, at, value, slope)
	}
}

// assembled prepares the tables of a plant. The default period is 5 ms.
func assembled(t testing.TB, name string, p *network.Plant, set func(*model.System, *kernel.Options)) subject {
	t.Helper()
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	var opt kernel.Options
	if set != nil {
		set(sys, &opt)
	}
	if opt.Period == 0 {
		opt.Period = 5 * time.Millisecond
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	return subject{name, tables, sys, 1500}
}

// tickCommands returns random commands, one row for each tick. The inputs are like those of a bus:
// they are constant, ramp, jump and chatter, and some are NaN. A row has four parts:
//
//   - the operation before the step: 1 reset, 2 output, 0 none
//   - the input that begins or ceases to follow u; -1: none
//   - whether it follows u: 1 or 0
//   - u
func tickCommands(s subject, seed uint64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	m := len(s.tables.Inputs)
	now, to, left := make([]float64, m), make([]float64, m), make([]int, m)
	span := func(i int) (lo, hi float64) {
		p := s.tables.Inputs[i]
		lo, hi = p.Min, p.Max
		size := 2*math.Abs(s.tables.Start[i]) + 10
		if math.IsInf(lo, 0) {
			lo = -size
		}
		if math.IsInf(hi, 0) {
			hi = max(size, lo+size)
		}
		return lo, hi
	}
	copy(now, s.tables.Start)
	copy(to, now)
	var rows [][]float64
	for tick := range s.ticks {
		row := []float64{0, -1, 0}
		switch {
		case tick > 0 && r.IntN(400) == 0:
			row[0] = 1
		case r.IntN(50) == 0:
			row[0] = 2
		}
		if m > 0 && r.IntN(60) == 0 {
			row[1], row[2] = float64(r.IntN(m)), float64(r.IntN(2))
		}
		for i := range now {
			lo, hi := span(i)
			if left[i]--; left[i] <= 0 {
				left[i] = 1 + r.IntN(80)
				to[i] = lo + (hi-lo)*r.Float64()*r.Float64()
				switch r.IntN(4) {
				case 0:
					now[i] = to[i]
				case 1:
					to[i], left[i] = lo, 1+r.IntN(10)
				}
			}
			now[i] += (to[i] - now[i]) / float64(left[i])
			if r.IntN(8) == 0 {
				now[i] += 1e-3 * (hi - lo) * (r.Float64() - 0.5)
			}
			row = append(row, now[i])
		}
		if m > 0 && tick > 900 && r.IntN(500) == 0 {
			row[3+r.IntN(m)] = math.NaN()
		}
		rows = append(rows, row)
	}
	return rows
}

// follow returns the results of the table kernel for commands. The first row ends with the number
// of panics that the generated kernel must have for indices of no input.
func (s *subject) follow(rows [][]float64) (out [][]float64) {
	k := kernel.New(s.tables)
	_, p := k.Dims()
	y := make([]float64, p)
	k.Output(y)
	out = append(out, append(append([]float64(nil), y...), 9)) // three calls, three indices
	for tick, row := range rows {
		switch row[0] {
		case 1:
			k.Reset()
		case 2:
			k.Output(y)
		}
		answer := 0.0
		if i := int(row[1]); i >= 0 {
			k.Drive(i, row[2] == 1)
			if answer = k.Own(i); k.Driven(i) {
				answer++
			}
		}
		if s.tables.Places > 0 {
			change(k, row[3:], tick, float64(s.tables.PeriodNs)*1e-9)
		}
		k.Step(y, row[3:])
		line := append([]float64{answer}, y...)
		for _, e := range k.Events() {
			line = append(line, e.Time, float64(e.Friction), float64(e.From), float64(e.To))
		}
		out = append(out, line)
	}
	return out
}

// generate writes the packages of plants and a program that runs all of them. It returns the
// folder.
func generate(t *testing.T, list []subject) (dir string) {
	if dir = *keep; dir == "" {
		dir = t.TempDir()
	}
	var imports, body, timings strings.Builder
	for _, s := range list {
		j, from := s.job(), time.Now()
		files, report := generatedGo(t, j)
		for name, text := range files {
			put(t, filepath.Join(dir, j.Package, name), text)
		}
		t.Logf("%s: n %d, mc %d, %d modes, net %v; %d bytes of code, %d of tables; %s; %v", s.name, s.tables.N, s.tables.Mc, len(s.tables.Modes), s.tables.Sparse != nil, report.Code, report.Tables, report.Lines[0], time.Since(from).Round(time.Millisecond))
		fmt.Fprintf(&imports, "\t%q\n", "generated/"+j.Package)
		fmt.Fprintf(&body, followText, j.Package)
		fmt.Fprintf(&timings, "\ttimeTicks(%q, %s.New())\n", j.Package, j.Package)
	}
	put(t, filepath.Join(dir, "go.mod"), []byte("module generated\n\ngo 1.26\n"))
	text := fmt.Sprintf(runnerText, body.String(), timings.String())
	put(t, filepath.Join(dir, "main.go"), []byte(strings.Replace(text, "\"os\"\n", "\"os\"\n"+imports.String(), 1)))
	return dir
}

func put(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func tool(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := string(out)
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "kernel.go") && !strings.HasPrefix(line, "#") {
				t.Log(line)
			}
		}
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}

func bytesOf(list []float64) (data []byte) {
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	return data
}

// compare executes the same commands on both kernels of every plant and compares the results. It
// also checks that the compiler found no index that needs a bounds check.
func compare(t *testing.T, list []subject) {
	dir := generate(t, list)
	from := time.Now()
	const options, compiler = "-trimpath", "-gcflags=generated/...=-d=ssa/check_bce" // vet reuses the build with the same flags
	found := tool(t, dir, "go", "build", options, compiler, "-o", "runner", ".")
	t.Logf("built in %v", time.Since(from))
	for line := range strings.Lines(found) {
		if strings.Contains(line, "Found Is") && !strings.Contains(line, "main.go") && !strings.Contains(line, "kernel.go") {
			t.Errorf("the compiled tick has a bounds check: %s", line)
		}
	}
	rows := make([][][]float64, len(list))
	for i, s := range list {
		rows[i] = tickCommands(s, uint64(i))
		var all []float64
		for _, r := range rows[i] {
			all = append(all, r...)
		}
		put(t, filepath.Join(dir, PackageName(s.name)+".in"), bytesOf(all))
	}
	tool(t, dir, "go", "vet", options, compiler, "./...")
	tool(t, dir, "./runner")
	if *timed {
		logTimes(t, list, rows, tool(t, dir, "./runner", "time"))
	}
	for i, s := range list {
		t.Run(s.name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, PackageName(s.name)+".out"))
			if err != nil {
				t.Fatal(err)
			}
			s.compareBits(t, s.follow(rows[i]), data)
		})
	}
}

// compareBits compares the results of both kernels bit by bit.
func (s *subject) compareBits(t *testing.T, want [][]float64, data []byte) {
	events := 0
	for tick, w := range want {
		n := int(math.Float64frombits(binary.LittleEndian.Uint64(data)))
		got := data[8 : 8+8*n]
		data = data[8+8*n:]
		if n != len(w) {
			t.Fatalf("tick %d: the table kernel gives %d numbers, the generated kernel %d", tick, len(w), n)
		}
		for j, a := range w {
			if bits := binary.LittleEndian.Uint64(got[8*j:]); bits != math.Float64bits(a) {
				name := ""
				if at := j - min(tick, 1); at >= 0 && at < len(s.tables.Outputs) {
					name = s.tables.Outputs[at].Name
				}
				t.Errorf("tick %d, number %d %s: the table kernel gives %v, the generated kernel %v", tick, j, name, a, math.Float64frombits(bits))
			}
		}
		if t.Failed() {
			return
		}
		if tick > 0 {
			events += (n - 1 - len(s.tables.Outputs)) / 4
		}
	}
	t.Logf("%d events in %d ticks", events, len(want)-1)
}

// usual are the plants of a normal run. Together they cover every form of the tick. A random plant
// has random options.
var usual = []string{
	"coupled-clutches", "coupled-clutches:held", "coupled-clutches:sparse", "coupled-clutches:papers and driven",
	"powershift:driven", "powershift:factorised", "powershift:changing", "hybrid-clearance:changing papers", "automatic4:changing sparse", "hybrid-clearance:papers", "rail17:in parts",
	"blocks:driven", "teeth",
	"random:1", "random:6", "random:11", "random:33", "random:2001", "random:2003", "random:2008",
}

// alsoLong returns the plants that hil_test/long adds.
func alsoLong() (names []string) {
	names = []string{"powershift:papers", "hybrid-spring:factorised", "blocks:changing sparse", "teeth:papers", "teeth:changing sparse"}
	for seed := range 60 {
		names = append(names, fmt.Sprintf("random:%d", seed), fmt.Sprintf("random:%d", carFrom+seed))
	}
	for seed := range 5 {
		names = append(names, fmt.Sprintf("random:%d", manyFrom+seed))
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(usual, name) })
}

// embeddedNames returns the names of the embedded plants.
func embeddedNames() (names []string) {
	for _, e := range plants.List() {
		if e.Kind == "plant" {
			names = append(names, e.Name)
		}
	}
	return names
}

// A normal run tests the plants in usual; the hil_test labs add every embedded plant.
func TestGeneratedKernelsGiveTheBitsOfTheTableKernel(t *testing.T) {
	t.Parallel()
	names := slices.Clone(usual)
	if lab.LongTests() {
		for _, name := range embeddedNames() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if breadth {
		names = append(names, alsoLong()...)
	}
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	var list []subject
	for _, name := range names {
		list = append(list, load(t, name))
	}
	compare(t, list)
}
