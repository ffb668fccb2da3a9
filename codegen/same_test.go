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
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

var keep = flag.String("keep", "", "folder in which generated packages are left")

// subject is a plant on a grid that both kernels step.
type subject struct {
	name   string
	tables *kernel.Tables
	system *model.System
	ticks  int
}

func load(t testing.TB, name string, opt kernel.Options) subject {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.Load(name+".yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return assembled(t, name, p, opt)
}

func assembled(t testing.TB, name string, p *model.Plant, opt kernel.Options) subject {
	t.Helper()
	sys, err := p.Assemble()
	if err != nil {
		t.Fatal(err)
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

// tickCommands are random inputs as a bus brings them: held, ramps, jumps, chatter; some that
// are no number; inputs that begin and cease to be driven. A row is what to do first, an
// input, whether it is driven, and u.
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

// stepper is what both kernels are.
type stepper interface {
	Step(y, u []float64)
	Output(y []float64)
	Reset()
	Drive(i int, on bool)
	Driven(i int) bool
	Own(i int) float64
}

// follow gives what a kernel answers to commands.
func follow(k *kernel.Kernel, rows [][]float64) (out [][]float64) {
	_, p := k.Dims()
	y := make([]float64, p)
	k.Output(y)
	out = append(out, append([]float64(nil), y...))
	for _, row := range rows {
		switch row[0] {
		case 1:
			k.Reset()
		case 2:
			k.Output(y)
		}
		said := 0.0
		if i := int(row[1]); i >= 0 {
			k.Drive(i, row[2] == 1)
			if said = k.Own(i); k.Driven(i) {
				said++
			}
		}
		k.Step(y, row[3:])
		line := append([]float64{said}, y...)
		for _, e := range k.Events() {
			line = append(line, e.Time, float64(e.Friction), float64(e.From), float64(e.To))
		}
		out = append(out, line)
	}
	return out
}

// runnerText is a program that has every generated kernel follow its commands.
const runnerText = `package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func read(name string) []float64 {
	data, err := os.ReadFile(name)
	check(err)
	out := make([]float64, len(data)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return out
}

func write(name string, list []float64) {
	data := make([]byte, 8*len(list))
	for i, v := range list {
		binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
	}
	check(os.WriteFile(name, data, 0o666))
}

func main() {
	if len(os.Args) > 1 {
		timeAll()
		return
	}
%s}

// stepper is a kernel.
type stepper interface {
	Step(y, u []float64)
	Reset()
	Dims() (m, p int)
}

// clock prints the time of a tick with the inputs held, and of one of those commanded, ns.
func clock(name string, k stepper) {
	m, p := k.Dims()
	y, u := make([]float64, p), make([]float64, m)
	rows := read(name + ".in")
	copy(u, rows[3:])
	quiet, busy := time.Hour, time.Hour
	for range 7 {
		k.Reset()
		at := time.Now()
		for range 2000 {
			k.Step(y, u)
		}
		quiet = min(quiet, time.Since(at))
		k.Reset()
		at = time.Now()
		for r := rows; len(r) > 0; r = r[3+m:] {
			k.Step(y, r[3:3+m])
		}
		busy = min(busy, time.Since(at))
	}
	fmt.Println(name, float64(quiet.Nanoseconds())/2000, float64(busy.Nanoseconds())/float64(len(rows)/(3+m)))
}

func timeAll() {
%s}
`

const followText = `	func() {
		k := %[1]s.New()
		m, p := k.Dims()
		y := make([]float64, p)
		rows := read("%[1]s.in")
		k.Output(y)
		out := append([]float64{float64(p)}, y...)
		for ; len(rows) > 0; rows = rows[3+m:] {
			switch rows[0] {
			case 1:
				k.Reset()
			case 2:
				k.Output(y)
			}
			said := 0.0
			if i := int(rows[1]); i >= 0 {
				k.Drive(i, rows[2] == 1)
				if said = k.Own(i); k.Driven(i) {
					said++
				}
			}
			k.Step(y, rows[3:3+m])
			events := k.Events()
			out = append(out, float64(1+p+4*len(events)), said)
			out = append(out, y...)
			for _, e := range events {
				out = append(out, e.Time, float64(e.Friction), float64(e.From), float64(e.To))
			}
		}
		write("%[1]s.out", out)
	}()
`

// generate writes the packages of plants and a program that runs them all.
func generate(t *testing.T, list []subject) (dir string) {
	if dir = *keep; dir == "" {
		dir = t.TempDir()
	}
	var imports, body, clocks strings.Builder
	for i, s := range list {
		pkg := fmt.Sprintf("p%d", i)
		from := time.Now()
		files, report, err := Go(Job{Tables: s.tables, System: s.system, Hash: HashOf(s.tables), Command: "lockstep gen " + s.name, Package: pkg})
		for name, text := range files {
			put(t, filepath.Join(dir, pkg, name), text)
		}
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		t.Logf("%s: n %d, mc %d, %d modes, net %v; %d bytes of code, %d of tables in %v", s.name, s.tables.N, s.tables.Mc, len(s.tables.Modes), s.tables.Net != nil, report.Code, report.Tables, time.Since(from).Round(time.Millisecond))
		fmt.Fprintf(&imports, "\t%q\n", "generated/"+pkg)
		fmt.Fprintf(&body, followText, pkg)
		fmt.Fprintf(&clocks, "\tclock(%q, %s.New())\n", pkg, pkg)
	}
	put(t, filepath.Join(dir, "go.mod"), []byte("module generated\n\ngo 1.26\n"))
	text := fmt.Sprintf(runnerText, body.String(), clocks.String())
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
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text[:min(len(text), 4000)])
	}
	return string(out)
}

func bytesOf(list []float64) (data []byte) {
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	return data
}

// compare has both kernels of every plant follow the same commands.
func compare(t *testing.T, list []subject) {
	dir := generate(t, list)
	from := time.Now()
	found := tool(t, dir, "go", "build", "-gcflags=generated/...=-d=ssa/check_bce", "-o", "runner", ".")
	t.Logf("built in %v", time.Since(from))
	for line := range strings.Lines(found) {
		if strings.Contains(line, "Found Is") && !strings.Contains(line, "main.go") && !strings.Contains(line, "kernel.go") {
			t.Errorf("a check of bounds is left: %s", line)
		}
	}
	rows := make([][][]float64, len(list))
	for i, s := range list {
		rows[i] = tickCommands(s, uint64(i))
		var all []float64
		for _, r := range rows[i] {
			all = append(all, r...)
		}
		put(t, filepath.Join(dir, fmt.Sprintf("p%d.in", i)), bytesOf(all))
	}
	tool(t, dir, "./runner")
	if *timed {
		clock(t, list, rows, tool(t, dir, "./runner", "time"))
	}
	for i, s := range list {
		t.Run(s.name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("p%d.out", i)))
			if err != nil {
				t.Fatal(err)
			}
			want := follow(kernel.New(s.tables), rows[i])
			events := 0
			for tick, w := range want {
				n := int(math.Float64frombits(binary.LittleEndian.Uint64(data)))
				got := data[8 : 8+8*n]
				data = data[8+8*n:]
				if w := bytesOf(w); string(w) != string(got) {
					for j := 0; j < len(w) && j < len(got); j += 8 {
						a, b := math.Float64frombits(binary.LittleEndian.Uint64(w[j:])), math.Float64frombits(binary.LittleEndian.Uint64(got[j:]))
						if math.Float64bits(a) != math.Float64bits(b) {
							name := ""
							if at := j/8 - min(tick, 1); at >= 0 && at < len(s.tables.Outputs) {
								name = s.tables.Outputs[at].Name
							}
							t.Fatalf("tick %d, entry %d %s: the table kernel gives %v, the generated one %v", tick, j/8, name, a, b)
						}
					}
					t.Fatalf("tick %d: %d and %d numbers", tick, len(w)/8, n)
				}
				if tick > 0 {
					events += (len(w) - 1 - len(s.tables.Outputs)) / 4
				}
			}
			t.Logf("%d events in %d ticks", events, len(want)-1)
		})
	}
}

var timed = flag.Bool("timed", false, "time the ticks of both kernels")

// clock sets the time of the ticks of both kernels side by side.
func clock(t *testing.T, list []subject, rows [][][]float64, text string) {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var name string
		var quiet, busy float64
		fmt.Sscan(line, &name, &quiet, &busy)
		k := kernel.New(list[i].tables)
		m, p := k.Dims()
		y, u := make([]float64, p), make([]float64, m)
		copy(u, rows[i][0][3:])
		q, b := time.Hour, time.Hour
		for range 7 {
			k.Reset()
			at := time.Now()
			for range 2000 {
				k.Step(y, u)
			}
			q = min(q, time.Since(at))
			k.Reset()
			at = time.Now()
			for _, r := range rows[i] {
				k.Step(y, r[3:])
			}
			b = min(b, time.Since(at))
		}
		tq, tb := float64(q.Nanoseconds())/2000, float64(b.Nanoseconds())/float64(len(rows[i]))
		t.Logf("%-20s quiet %7.0f ns, table %7.0f: %4.1f times; busy %7.0f ns, table %7.0f: %4.1f times", list[i].name, quiet, tq, tq/quiet, busy, tb, tb/busy)
	}
}

func TestGeneratedKernelGivesTheSameBits(t *testing.T) {
	var list []subject
	for _, name := range strings.Split(*only, ",") {
		list = append(list, load(t, name, kernel.Options{}))
	}
	compare(t, list)
}

var only = flag.String("only", "coupled-clutches", "plants")
