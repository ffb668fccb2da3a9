package main

import (
	"embed"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/codegen"
	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/rt/plot"
)

// peerSources are the programs of the peers in C++; peers/peer.h describes them.
//
//go:embed peers
var peerSources embed.FS

// peer is a program that steps the plants.
type peer struct {
	name, source  string   // heading; file in peers, without its extension
	flags         []string // of the compiler: definitions, folders, libraries
	pack, include string   // Debian package that has the engine, and one of its headers; "": none
	colour        string
}

var peersKnown = []peer{
	{"lockstep, own waveforms", "lockstep", []string{"-DOWN"}, "", "", "#000000"},
	{"lockstep, held, from the middle", "lockstep", nil, "", "", "#0050c0"},
	{"lockstep, held, from the start", "lockstep", []string{"-DINPUT_AT=0"}, "", "", "#60a0ff"},
	{"ODE", "ode", []string{"-lode"}, "libode-dev", "ode/ode.h", "#c03000"},
	{"Bullet", "bullet", []string{"-DBT_USE_DOUBLE_PRECISION", "-I/usr/include/bullet", "-lBulletDynamics-float64",
		"-lBulletCollision-float64", "-lLinearMath-float64"}, "libbullet-dev", "bullet/btBulletDynamicsCommon.h", "#e0a000"},
	{"MuJoCo", "mujoco", []string{"-lmujoco"}, "libmujoco-dev", "mujoco/mujoco.h", "#008030"},
	{"Siconos", "siconos", []string{"-I/usr/include/siconos", "-I/usr/include/siconos/numerics", "-lsiconos_numerics"},
		"libsiconos-numerics-dev", "siconos/numerics/RelayProblem.h", "#8000a0"},
	{"CVODE with roots, 1e-9", "cvode", []string{"-lsundials_cvode", "-lsundials_nvecserial", "-lsundials_sunmatrixdense",
		"-lsundials_sunlinsoldense"}, "libsundials-dev", "cvode/cvode.h", "#808080"},
}

// peerExtent is the extent of the comparison.
type peerExtent struct {
	steps          []time.Duration // step lengths; each divides 5 ms
	rounds, passes int             // rounds over all programs; passes of each
}

var wholePeers = peerExtent{[]time.Duration{500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond}, 7, 5}

// peerPlants are the plants, and the duration that they are compared for.
var peerPlants = []struct {
	name  string
	until time.Duration
	first int // index of the first speed among the outputs
	count int
}{{"coupled-clutches", 1500 * time.Millisecond, 1, 4}, {"friction", 3 * time.Second, 0, 3}}

// peerRun is a program on a plant with a step.
type peerRun struct {
	peer   *peer
	plant  string
	step   time.Duration
	binary string
	err    float64   // largest error of a speed at the 5 ms grid, rad/s
	ns     []float64 // mean time of a step, by round
	worst  float64   // slowest step, ns
}

type peerResult struct {
	runs    []*peerRun
	missing []string
}

// doPeers builds and runs all peers. Every round runs all programs once, on one CPU.
func doPeers(e peerExtent) *peerResult {
	dir := must(os.MkdirTemp("", "peers"))
	defer os.RemoveAll(dir)
	for _, f := range must(peerSources.ReadDir("peers")) {
		must(0, os.WriteFile(filepath.Join(dir, f.Name()), must(peerSources.ReadFile("peers/"+f.Name())), 0o666))
	}
	r := &peerResult{}
	truths := map[string][][]float64{}
	for _, p := range peerPlants {
		truths[p.name] = peerTruth(p.name, p.first, p.count, p.until)
	}
	for i := range peersKnown {
		p := &peersKnown[i]
		if p.include != "" && exec.Command("sh", "-c", "echo '#include <"+p.include+">' | g++ -E -I/usr/include/bullet -I/usr/include/siconos "+
			"-I/usr/include/siconos/numerics -x c++ -o /dev/null -").Run() != nil {
			r.missing = append(r.missing, fmt.Sprintf("%s is left out: apt-get install %s", p.name, p.pack))
			continue
		}
		for _, plant := range peerPlants {
			for _, step := range e.steps {
				r.runs = append(r.runs, &peerRun{p, plant.name, step, p.build(dir, plant.name, step), 0, nil, math.Inf(1)})
			}
		}
	}
	for range e.rounds {
		for _, run := range r.runs {
			run.measure(e.passes, truths[run.plant])
		}
	}
	return r
}

// peerSystem returns the text of a plant file.
func peerSystem(plant string) string {
	if plant == "friction" {
		return string(must(peerSources.ReadFile("peers/friction.yaml")))
	}
	return string(must(plants.Read(plant)))
}

// peerTruth returns the speeds every 5 ms of the table kernel in steps of 0.1 ms with its own
// waveforms. CVODE agrees with it within its tolerance.
func peerTruth(plant string, first, count int, until time.Duration) (rows [][]float64) {
	const fine = 100 * time.Microsecond
	k := must(rig.New(must(rig.Load(peerSystem(plant))), kernel.Options{Period: fine}, false))
	for tick := 1; tick <= int(until/fine); tick++ {
		k.Step(k.Y, k.U)
		if tick%50 == 0 {
			rows = append(rows, slices.Clone(k.Y[first:first+count]))
		}
	}
	return rows
}

// build compiles the program of a peer and returns its path. The program of lockstep has its kernel
// in it.
func (p *peer) build(dir, plant string, step time.Duration) string {
	source, binary := p.source+".cpp", filepath.Join(dir, strings.ReplaceAll(p.source, " ", "")+".out")
	args := []string{"-O2", "-march=native", "-ffp-contract=off", "-o"}
	if p.source == "lockstep" {
		own := slices.Contains(p.flags, "-DOWN")
		k := must(rig.New(must(rig.Load(peerSystem(plant))), kernel.Options{Period: step}, !own))
		job := codegen.Job{Tables: k.Tables, Hash: codegen.HashOf(k.Tables), Command: "study peers", Package: "model"}
		made, report, err := codegen.GenerateGo(job)
		if err == nil {
			made, _, err = job.TranslateC(made, report)
		}
		must(0, err)
		dir = must(os.MkdirTemp(dir, "kernel"))
		for name, text := range made {
			must(0, os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o666))
		}
		must(0, command(dir, "gcc", "-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-c", "-o", "model.o", "model.c"))
		source, binary, args = "../"+source, filepath.Join(dir, "peer.out"), append([]string{"-I.", "model.o"}, args...)
	} else if _, err := os.Stat(binary); err == nil {
		return binary
	}
	must(0, command(dir, "g++", slices.Concat([]string{"-std=c++17", source}, args, []string{binary}, p.flags)...))
	return binary
}

// command runs a compiler in a folder; the error holds its output.
func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.2000s", name, err, out)
	}
	return nil
}

// measure runs the program once.
func (r *peerRun) measure(passes int, truth [][]float64) {
	cmd := exec.Command(r.binary, r.plant, strconv.FormatInt(r.step.Nanoseconds(), 10), strconv.Itoa(passes), strconv.Itoa(runtime.NumCPU()-1))
	cmd.Stderr = os.Stderr
	lines := strings.Split(strings.TrimSpace(string(must(cmd.Output()))), "\n")
	var mean, worst float64
	must(fmt.Sscan(lines[0], &mean, &worst))
	r.ns, r.worst, r.err = append(r.ns, mean), min(r.worst, worst), 0
	if len(lines) != len(truth)+1 {
		panic(fmt.Sprintf("study: %s gives %d rows of %s, want %d", r.peer.name, len(lines)-1, r.plant, len(truth)))
	}
	for i, want := range truth {
		for j, text := range strings.Fields(lines[i+1]) {
			if e := math.Abs(must(strconv.ParseFloat(text, 64)) - want[j]); !(e <= r.err) {
				r.err = e
			}
		}
	}
}

// median is the median time of a step, ns.
func (r *peerRun) median() float64 {
	ns := slices.Sorted(slices.Values(r.ns))
	return ns[len(ns)/2]
}

// of returns the run of a peer on a plant with a step; nil: there is none.
func (r *peerResult) of(name, plant string, step time.Duration) *peerRun {
	i := slices.IndexFunc(r.runs, func(q *peerRun) bool { return q.peer.name == name && q.plant == plant && q.step == step })
	if i < 0 {
		return nil
	}
	return r.runs[i]
}

func (r *peerResult) files() files {
	var md, csv page
	for _, line := range r.missing {
		md.line("%s", line)
	}
	csv.line("peer,plant,step_ms,error,ns_per_step,worst_ns")
	for _, plant := range peerPlants {
		base := r.of(peersKnown[1].name, plant.name, time.Millisecond)
		md.line("\n%s", plant.name)
		md.table("\n| engine | error at 1 ms, rad/s | at 5 ms | ns per step of 1 ms | over lockstep, held | worst step, us |")
		for i := range peersKnown {
			fast, slow := r.of(peersKnown[i].name, plant.name, time.Millisecond), r.of(peersKnown[i].name, plant.name, 5*time.Millisecond)
			if fast == nil || slow == nil || base == nil {
				continue
			}
			md.line("| %s | %.1e | %.1e | %.0f | %.1f | %.1f |", fast.peer.name, fast.err, slow.err, fast.median(),
				fast.median()/base.median(), fast.worst/1e3)
		}
	}
	for _, q := range r.runs {
		csv.line("%s,%s,%g,%.4g,%.1f,%.1f", strings.ReplaceAll(q.peer.name, ",", ""), q.plant, q.step.Seconds()*1e3, q.err, q.median(), q.worst)
	}
	out := files{"peers.md": md.Bytes(), "peers.csv": csv.Bytes()}
	for _, plant := range peerPlants {
		out["peers-"+plant.name+".svg"] = r.workPrecision(plant.name)
	}
	return out
}

// workPrecision draws the error of each peer over its cost.
func (r *peerResult) workPrecision(plant string) []byte {
	cost, errs := newSpan(), newSpan()
	var curves []plot.Curve
	for i := range peersKnown {
		var x, y []float64
		for _, q := range r.runs {
			if q.peer.name == peersKnown[i].name && q.plant == plant {
				x, y = append(x, q.median()/q.step.Seconds()/1e6), append(y, max(q.err, 1e-12))
				cost.add(x[len(x)-1])
				errs.add(y[len(y)-1])
			}
		}
		curves = append(curves, curve(peersKnown[i].name, peersKnown[i].colour, 2, x, y))
	}
	return draw(plot.Chart{
		Title:  plant + ": error over cost, steps from 0.5 ms to 5 ms",
		X:      plot.Axis{Name: "processor time per simulated second, ms", Low: cost.low / 2, High: cost.high * 2, Log: true},
		Y:      plot.Axis{Name: "largest error of a speed, rad/s", Low: errs.low / 2, High: errs.high * 2, Log: true},
		Curves: curves,
	})
}
