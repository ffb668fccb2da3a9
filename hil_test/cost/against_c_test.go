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
	"lockstep/model/kernel"
)

// costNoise allows for a shared machine: the minimum of many runs still varies by some ten per cent.
// The test fails above costBound·costNoise.
const costNoise = 1.3

// costBound is the bound of the time in Go over the time in C. The C kernel takes a sine as a
// parabola over the step; the Go kernel follows it exactly, which takes twice the time.
var costBound = map[string]float64{"sources": 7, "commands": 2}

// costC are the outputs of testdata/cost_kernel.c in its order.
var costC = []string{"J1.w", "J2.w", "J3.w", "J4.w", "J1.phi", "clutch1.phi_rel", "clutch2.phi_rel", "clutch3.phi_rel",
	"clutch1.mode", "clutch1.w_rel", "clutch1.tau", "clutch2.mode", "clutch2.w_rel", "clutch2.tau", "clutch3.mode", "clutch3.w_rel", "clutch3.tau"}

const costCTicks = 1500 // ticks of 1 ms: the published time of CoupledClutches

// costComparison is CoupledClutches in Go and in C. The inputs of both are their own waveforms, or
// commands that are held over each tick.
type costComparison struct {
	*rig.Plant
	binary   string    // path of the C program
	feed     string    // argument of the C program: sources or commands
	commands []float64 // ticks×inputs; nil: own waveforms
}

func newCostComparison(t testing.TB, feed string) *costComparison {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		lab.Skip(t, "gcc is missing, which builds the C kernel: apt-get install gcc libc6-dev")
	}
	d := &costComparison{binary: filepath.Join(t.TempDir(), "cost_kernel"), feed: feed}
	if out, err := exec.Command(gcc, "-std=c99", "-O2", "-o", d.binary, "testdata/cost_kernel.c", "-lm").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	d.Plant = rig.Prepare(t, "coupled-clutches", kernel.Options{Period: time.Millisecond}, feed == "commands")
	if feed == "commands" {
		for k := range costCTicks {
			at := 1e-3 * float64(k)
			for _, in := range d.Tables.Inputs {
				d.commands = append(d.commands, costCommand(t, in.Name, at))
			}
		}
	}
	return d
}

// costCommand returns an input of the plant file at a time, s, as the C kernel computes it.
func costCommand(t testing.TB, name string, at float64) float64 {
	step := func(begin float64) float64 {
		if at >= begin-1e-12 {
			return 1
		}
		return 0
	}
	switch name {
	case "tau":
		return 10 * math.Sin(2*math.Pi*5*at)
	case "clutch1.f":
		return math.Sin(2*math.Pi*0.2*at + math.Pi/2)
	case "clutch2.f":
		return step(0.4)
	case "clutch3.f":
		return step(0.9)
	}
	t.Fatalf("no command for %q", name)
	return 0
}

func (d *costComparison) command(tick int, u []float64) {
	copy(u, d.commands[tick*len(u):])
}

// inC runs the C kernel. It returns the minimum time per step, ns, and the other lines of output.
func (d *costComparison) inC(t testing.TB, runs int, more ...string) (float64, []string) {
	t.Helper()
	out, err := exec.Command(d.binary, append([]string{"1000000", strconv.Itoa(costCTicks), strconv.Itoa(runs), d.feed}, more...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	ns, err := strconv.ParseFloat(lines[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return ns, lines[1:]
}

func (d *costComparison) inGo(runs int) float64 {
	if d.commands == nil {
		return d.RunCost(costCTicks, runs, nil)
	}
	return d.RunCost(costCTicks, runs, d.command)
}

// time runs both kernels alternately, so that other processes disturb both alike. It returns the
// minimum time per step of each, ns.
func (d *costComparison) time(t testing.TB, repeats int) (inGo, inC float64) {
	inGo, inC = math.Inf(1), math.Inf(1)
	for range repeats {
		c, _ := d.inC(t, 60)
		inGo, inC = min(inGo, d.inGo(60)), min(inC, c)
	}
	return inGo, inC
}

// compare checks that both kernels agree in every output at every tick, within 1e-6. It returns the
// largest difference.
func (d *costComparison) compare(t *testing.T) (worst float64) {
	t.Helper()
	_, lines := d.inC(t, 1, "trajectory")
	if len(lines) != costCTicks {
		t.Fatalf("the C kernel gives %d ticks, want %d", len(lines), costCTicks)
	}
	column := map[string]int{}
	for j, o := range d.Tables.Outputs {
		column[o.Name] = j
	}
	d.Reset()
	for k, line := range lines {
		if d.commands != nil {
			d.command(k, d.U)
		}
		d.Step(d.Y, d.U)
		for i, text := range strings.Split(line, ",") {
			want, err := strconv.ParseFloat(text, 64)
			j, ok := column[costC[i]]
			if err != nil || !ok {
				t.Fatalf("column %q: %v", costC[i], err)
			}
			e := math.Abs(d.Y[j] - want)
			worst = max(worst, e)
			if !(e <= 1e-6) {
				t.Fatalf("%s at %d ms is %.9g in Go and %.9g in C", costC[i], k+1, d.Y[j], want)
			}
		}
	}
	if events := d.Y[column["transitions"]]; !(events >= 8) {
		t.Fatalf("%g transitions, want at least 8", events)
	}
	return worst
}

// TestCostAgainstC compares the time of the Go kernel with that of a C kernel of the same method,
// in the same run. Several tries and costNoise keep other processes from failing the test.
func TestCostAgainstC(t *testing.T) {
	for _, feed := range []string{"sources", "commands"} {
		t.Run(feed, func(t *testing.T) {
			d, bound := newCostComparison(t, feed), costBound[feed]
			worst := d.compare(t)
			inGo, inC := math.Inf(1), math.Inf(1)
			for range 4 {
				g, c := d.time(t, 6)
				inGo, inC = min(inGo, g), min(inC, c)
				if inGo/inC <= bound {
					break
				}
			}
			t.Logf("per step of 1 ms: Go %.0f ns, C %.0f ns, ratio %.2f (bound %.1f); %d outputs agree within %.1e", inGo, inC, inGo/inC, bound, len(costC), worst)
			if !(inGo/inC <= bound*costNoise) {
				t.Errorf("the Go kernel takes %.2f times as long as the C kernel, want at most %.2f", inGo/inC, bound*costNoise)
			}
		})
	}
}

// BenchmarkCostAgainstC reports both times per step and their ratio.
func BenchmarkCostAgainstC(b *testing.B) {
	for _, feed := range []string{"sources", "commands"} {
		b.Run(feed, func(b *testing.B) {
			d := newCostComparison(b, feed)
			inGo, inC := math.Inf(1), math.Inf(1)
			for b.Loop() {
				g, c := d.time(b, 2)
				inGo, inC = min(inGo, g), min(inC, c)
			}
			b.ReportMetric(inGo, "ns/step")
			b.ReportMetric(inC, "ns/step-C")
			b.ReportMetric(inGo/inC, "x-C")
		})
	}
}
