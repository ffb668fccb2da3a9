package cost

import (
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/rig"
	"lockstep/model"
	"lockstep/model/kernel"
)

// railTicks is the published time of rail17, 8 s, in ticks of 5 ms.
const railTicks = 1600

// railBounds are upper bounds of the mean and the worst tick, over the mean tick of a plain
// Runge-Kutta integration in C. They are far above the measured values.
var railBounds = []struct {
	name        string
	sub, iter   int // micro steps and iterations of the partition; 0: the kernel's own step
	mean, worst float64
}{
	{"N_sub 1, N_iter 0", 1, 0, 15, 100},
	{"N_sub 5, N_iter 1", 5, 1, 60, 300},
	{"own step", 0, 0, 150, 1500},
}

// railRig returns the rail car on a grid of 5 ms, in two parts or, with sub 0, as one.
func railRig(t testing.TB, sub, iter int) *rig.Plant {
	t.Helper()
	sys := rig.Assemble(t, "rail17")
	if sub > 0 {
		sys.Partition = &model.Partition{Sub: sub, Iter: iter}
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return &rig.Plant{Kernel: kernel.New(tables), Tables: tables, Y: make([]float64, len(tables.Outputs)), U: append([]float64(nil), tables.Start...)}
}

// railInC compiles testdata/cost_rail.c. The returned function runs the program and returns the
// numbers of its output by line.
func railInC(t testing.TB) func(runs int, more ...string) [][]float64 {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		lab.Skip(t, "gcc is missing, which builds the C program: apt-get install gcc libc6-dev")
	}
	binary := filepath.Join(t.TempDir(), "cost_rail")
	if out, err := exec.Command(gcc, "-std=c99", "-O2", "-o", binary, "testdata/cost_rail.c", "-lm").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return func(runs int, more ...string) (rows [][]float64) {
		out, err := exec.Command(binary, append([]string{strconv.Itoa(runs)}, more...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			var row []float64
			for text := range strings.SplitSeq(strings.TrimSpace(line), ",") {
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				row = append(row, v)
			}
			rows = append(rows, row)
		}
		return rows
	}
}

func TestRailCarInCMovesAsInGo(t *testing.T) {
	rows := railInC(t)(1, "trajectory")[1:]
	r := railRig(t, 0, 0)
	names := []string{"v_xc", "u1", "u2", "u3", "u4"}
	column := map[string]int{}
	for j, o := range r.Tables.Outputs {
		column[o.Name] = j
	}
	mean := 0.0 // difference, m/s
	for _, row := range rows {
		for range 4 {
			r.Step(r.Y, r.U)
		}
		for i, name := range names {
			e := math.Abs(r.Y[column[name]] - row[1+i])
			mean += e / float64(len(names)*len(rows))
			if !(e <= 0.03) {
				t.Fatalf("%s at %g s is %.6g m/s in Go and %.6g in C", name, row[0], r.Y[column[name]], row[1+i])
			}
		}
	}
	t.Logf("the speeds differ by %.2g m/s in the mean", mean)
	if len(rows) != railTicks/4 || !(mean <= 1e-3) {
		t.Errorf("%d rows, mean difference %.2g m/s; want %d rows, at most 0.001 m/s", len(rows), mean, railTicks/4)
	}
}

func TestCostOfRailCarAgainstRungeKuttaInC(t *testing.T) {
	inC := railInC(t)
	rigs := make([]*rig.Plant, len(railBounds))
	for i, b := range railBounds {
		rigs[i] = railRig(t, b.sub, b.iter)
	}
	c := math.Inf(1)
	means, worsts := make([]float64, len(rigs)), make([]float64, len(rigs))
	for i := range rigs {
		means[i], worsts[i] = math.Inf(1), math.Inf(1)
	}
	for range 2 {
		c = min(c, inC(8)[0][0])
		for i, r := range rigs {
			mean, worst, _ := r.TickCosts(railTicks, 4, nil)
			means[i], worsts[i] = min(means[i], mean), min(worsts[i], worst)
		}
	}
	for i, b := range railBounds {
		mean, worst := means[i]/c, worsts[i]/c
		t.Logf("%s: a tick of 5 ms takes %.1f times, the worst one %.1f times as long as plain Runge-Kutta with 0.5 ms in C (%.1f us)", b.name, mean, worst, c/1e3)
		if !(mean <= b.mean && worst <= b.worst) {
			t.Errorf("%s: a tick takes %.1f times, the worst one %.1f times as long as in C; want at most %g and %g", b.name, mean, worst, b.mean, b.worst)
		}
	}
}
