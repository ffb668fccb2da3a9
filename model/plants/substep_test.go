package plants_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// nonlinearChain returns 14 bodies on springs with loads that are not linear in the speed, and torques that
// jump. The rates of the loads are between 3 and 900 1/s, those of the springs between 10 and 600 rad/s.
func nonlinearChain(t *testing.T, seed uint64) *model.System {
	t.Helper()
	const bodies = 14
	r := rand.New(rand.NewPCG(seed, 3))
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	b.WriteString("plant: chain\nelements:\n")
	load, spring := 3*math.Pow(300, r.Float64()), 10*math.Pow(60, r.Float64())
	for i := range bodies {
		add("J%d: {type: inertia, J: %.4g, w_start: %.4g}", i, math.Exp(r.Float64()-0.5), 20*r.Float64()-10)
		if i > 0 {
			add("s%d: {type: spring_damper, a: J%d, b: J%d, c: %.4g, d: %.4g}",
				i, i-1, i, spring*spring*r.Float64()/3, spring*r.Float64()/10)
		}
		fastest := math.Exp(3 * r.Float64())
		switch ends := fmt.Sprintf("flange: J%d", i); r.IntN(3) {
		case 0:
			add("e%d: {type: eddy_current_torque, %s, tau_nominal: %.4g, w_nominal: %.4g}",
				i, ends, load*fastest*r.Float64()/2, fastest)
		case 1:
			add("e%d: {type: eddy_current_torque, %s, support: J%d, tau_nominal: %.4g, w_nominal: %.4g}",
				i, ends, (i+1)%bodies, load*fastest*r.Float64()/4, fastest)
		default:
			add("q%d: {type: quadratic_speed_dependent_torque, %s, tau_nominal: %.4g, w_nominal: 10, TorqueDirection: false}",
				i, ends, -load*10*r.Float64()/4)
		}
		var rows []string
		for at := 0.0; at < 1; {
			tau, next := 10*load*(r.Float64()-0.5), at+0.05+0.3*r.Float64()
			rows = append(rows, fmt.Sprintf("[%.4f, %.4g], [%.4f, %.4g]", at, tau, next, tau))
			at = next
		}
		add("t%d: {type: torque, flange: J%d, tau: {table: [%s]}}", i, i, strings.Join(rows, ", "))
	}
	b.WriteString("outputs:\n")
	for i := range bodies {
		add("w%d: {speed: J%d}", i, i)
		add("a%d: {acceleration: J%d}", i, i)
	}
	return assembled(t, "chain", []byte(b.String()))
}

// inSubsteps returns the outputs of the plant file at each step of 5 ms, in substeps that are shorter than those
// of the kernel by a factor.
func inSubsteps(t *testing.T, sys *model.System, ticks, shorter int) (rows [][]float64, tables *kernel.Tables) {
	t.Helper()
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond, Stepping: kernel.Sparse})
	if err != nil {
		t.Fatal(err)
	}
	tables.Split *= shorter
	tables.Delta /= float64(shorter)
	k, y := kernel.New(tables), make([]float64, len(tables.Outputs))
	for range ticks {
		k.Step(y, tables.Start)
		rows = append(rows, slices.Clone(y[:len(sys.Outputs)]))
	}
	return rows, tables
}

// outputError returns the largest difference of an output over its range. It leaves out instants of pulses,
// which are no function of one substep, and outputs that hardly change.
func outputError(sys *model.System, got, want [][]float64) (worst float64, at string) {
	for j, o := range sys.Outputs {
		if strings.HasSuffix(o.Name, ".age") || strings.HasSuffix(o.Name, ".period") {
			continue
		}
		low, high, apart := math.Inf(1), math.Inf(-1), 0.0
		for i := range want {
			low, high = min(low, want[i][j]), max(high, want[i][j])
			apart = max(apart, math.Abs(got[i][j]-want[i][j]))
		}
		if e := apart / (high - low); high-low > 1e-7 && !(e <= worst) {
			worst, at = e, o.Name
		}
	}
	return worst, at
}

// turnAndBrake returns car-esc in a turn, in which the driver brakes until wheels lock on ice on the left.
func turnAndBrake(t *testing.T) *model.System {
	t.Helper()
	text, err := plants.Read("car-esc")
	if err != nil {
		t.Fatal(err)
	}
	with := string(text)
	for _, edit := range [][2]string{
		{"steer: {unit: deg,", "default: {table: [[0, 0], [0.1 s, 0], [0.4 s, 40 deg]]}"},
		{"pedal: {unit: bar,", "default: {table: [[0, 0], [0.5 s, 0], [0.6 s, 60 bar]]}"},
		{"road.fl: {unit: \"1\",", "default: 0.1"}, {"road.rl: {unit: \"1\",", "default: 0.1"},
	} {
		line := with[strings.Index(with, edit[0]):]
		line = line[:strings.Index(line, "}\n")]
		with = strings.Replace(with, line, strings.TrimSuffix(line, ", default: 1")+", "+edit[1], 1)
	}
	return assembled(t, "car-esc", []byte(with))
}

// The error of the substeps of a plant stepped sparse, against substeps of a quarter. Preparation chooses them
// for 2e-5 of a linear law. It knows the slopes of a law and not its curvature: a load that is swept over the
// peak of an eddy current brake has a larger error.
func TestSubstepsOfSparsePlantsKeepTheErrorOfTheirLaws(t *testing.T) {
	type plant struct {
		name  string
		sys   *model.System
		ticks int
		most  float64
	}
	list := []plant{
		{"car-abs", load(t, "car-abs"), 1200, 1.2e-6}, {"rail17", load(t, "rail17"), 1200, 1e-5},
		{"car-esc", turnAndBrake(t), 300, 2e-6}, {"wsp-car", load(t, "wsp-car"), 300, 1e-7}, {"judder", load(t, "judder"), 200, 1e-7},
	}
	for seed := range uint64(8) {
		list = append(list, plant{fmt.Sprint("chain ", seed+1), nonlinearChain(t, seed+1), 100, 5e-4})
	}
	for _, p := range list {
		want, _ := inSubsteps(t, p.sys, p.ticks, 4)
		got, tables := inSubsteps(t, p.sys, p.ticks, 1)
		worst, at := outputError(p.sys, got, want)
		bound := math.Pow(tables.Steepness*tables.Delta, 4) / 720
		t.Logf("%-9s %2d substeps, steepness %4.0f rad/s: %.1e of its range (%s), %.3f of the bound of a linear law",
			p.name, tables.Split, tables.Steepness, worst, at, worst/bound)
		if !(worst <= p.most) {
			t.Errorf("%s: %s is off by %.1e of its range, want at most %.0e", p.name, at, worst, p.most)
		}
	}
}
