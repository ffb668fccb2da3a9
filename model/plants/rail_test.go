package plants_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// wheelLocks are when the wheels of rail17 lock and turn again, of its independent
// solution.
var wheelLocks = []string{
	"0.02922761617783 slip bogie1.front.brake", "0.02922802939195 slip bogie2.front.brake",
	"0.02923096150968 slip bogie1.rear.brake", "0.02923137542681 slip bogie2.rear.brake",
	"2.245748336271 lock bogie1.rear.brake", "2.314462756688 lock bogie1.front.brake",
	"2.34636385647 lock bogie2.rear.brake", "2.411854384136 lock bogie2.front.brake",
	"3.138233190146 slip bogie1.rear.brake", "3.182749436138 slip bogie1.front.brake",
	"3.23739889421 slip bogie2.rear.brake", "3.280688015672 slip bogie2.front.brake",
	"7.568182295457 lock bogie1.rear.brake", "7.568804037324 lock bogie2.rear.brake",
	"7.57342086911 lock bogie1.front.brake", "7.57392336521 lock bogie2.front.brake",
}

// train is train3 without brakes, locomotive and bearing friction; car1 runs into the other cars at
// 1 m/s. All stores of energy are outputs.
type train struct {
	t      *testing.T
	k      *kernel.Kernel
	y, u   []float64
	column map[string]int
}

func newTrain(t *testing.T, replace ...string) *train {
	t.Helper()
	data, err := plants.Read("train3")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(data))
	for c := 1; c <= 3; c++ {
		bodies := []string{fmt.Sprintf("car%d.body", c), fmt.Sprintf("car%d.bogie1.frame", c), fmt.Sprintf("car%d.bogie2.frame", c)}
		for _, b := range bodies {
			for _, c := range []string{"x", "y", "phi"} {
				text += fmt.Sprintf("  %s.%s: {speed: %s.%s}\n", b, c, b, c)
			}
		}
		for _, b := range bodies[1:] {
			bogie := strings.TrimSuffix(b, ".frame")
			for _, spring := range []string{"secondary_x", "secondary_y", "rear.primary_x", "rear.primary_y", "front.primary_x", "front.primary_y"} {
				text += fmt.Sprintf("  %s.%s: {s_rel: %s.%s}\n", bogie, spring, bogie, spring)
			}
			for _, w := range []string{"rear", "front"} {
				text += fmt.Sprintf("  %s.%s.axle: {speed: %s.%s.axle}\n  %s.%s.wheel: {speed: %s.%s.wheel}\n", bogie, w, bogie, w, bogie, w, bogie, w)
			}
		}
	}
	p, err := plantfile.Load("train3.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := &train{t, kernel.New(tables), make([]float64, len(tables.Outputs)), make([]float64, len(tables.Inputs)), map[string]int{}}
	for j, o := range tables.Outputs {
		r.column[o.Name] = j
	}
	r.k.Output(r.y)
	return r
}

// sum adds up f over the outputs whose names end so.
func (r *train) sum(end string, f func(v float64) float64) (total float64) {
	found := false
	for name, j := range r.column {
		if strings.HasSuffix(name, end) {
			total += f(r.y[j])
			found = true
		}
	}
	if !found {
		r.t.Fatalf("no output ends in %q", end)
	}
	return total
}

// The force between wheel and rail changes the momentum of the axle and J·w/r of the wheel by
// opposite amounts, for any adhesion. So only the locomotive and the brakes change their sum over the
// train.
const wheelRadius, wheelJ = 0.46, 100.0

func times(m float64) func(float64) float64 { return func(v float64) float64 { return m * v } }

func square(m float64) func(float64) float64 { return func(v float64) float64 { return m * v * v / 2 } }

func (r *train) momentum() float64 {
	return r.sum(".body.x", times(32000)) + r.sum(".frame.x", times(3000)) + r.sum(".axle", times(1500)) + r.sum(".wheel", times(wheelJ/wheelRadius))
}

func (r *train) energy() float64 {
	e := r.sum(".body.x", square(32000)) + r.sum(".body.y", square(32000)) + r.sum(".body.phi", square(1.6e6)) +
		r.sum(".frame.x", square(3000)) + r.sum(".frame.y", square(3000)) + r.sum(".frame.phi", square(2500)) +
		r.sum(".axle", square(1500)) + r.sum(".wheel", square(wheelJ)) +
		r.sum(".secondary_x", square(4e6)) + r.sum(".secondary_y", square(0.6e6)) + r.sum(".primary_x", square(15e6)) + r.sum(".primary_y", square(1.4e6))
	return e + r.sum("coupler1.s", coupler) + r.sum("coupler2.s", coupler)
}

// coupler is the energy in a coupler, J.
func coupler(s float64) float64 {
	borders, c := []float64{0, 0.010, 0.011, 0.060}, []float64{0, 30e6, 4e6, 40e6}
	if s < 0 {
		s, borders, c = -s, []float64{0, 0.001, 0.060}, []float64{20e6, 3e6, 40e6}
	}
	force, energy := 0.0, 0.0
	for i, from := range borders {
		to := s
		if i+1 < len(borders) {
			to = min(s, borders[i+1])
		}
		if d := to - from; d > 0 {
			energy += force*d + c[i]*d*d/2
			force += c[i] * d
		}
	}
	return energy
}

func TestMomentumOfATrainIsTheImpulseOfItsLocomotive(t *testing.T) {
	r := newTrain(t, "F_res: 100 N ", "F_res: 0 N ")
	given, slack := 0.0, 0.0
	for tick := 1; tick <= 300; tick++ {
		r.k.Step(r.y, r.u)
		at := float64(tick) * 5e-3
		if given = 1e5 * at * at; at > 0.5 {
			given = 1e5 * (at - 0.25)
		}
		if p := r.momentum(); !(math.Abs(p-given) <= 1e-10*given+1e-9) {
			t.Fatalf("at %g s the momentum is %.12g N.s, want %.12g", at, p, given)
		}
		slack = max(slack, r.sum("coupler1.s", times(1)))
	}
	if !(slack > 0.011) {
		t.Errorf("the rear coupler opens to %g m only: its chain pulls nothing", slack)
	}
}

func TestTrainThatRunsUpLosesEnergyAndNoMomentum(t *testing.T) {
	r := newTrain(t, "F_res: 100 N ", "F_res: 0 N ", "[0.5, 100000], [3.5, 100000]", "[0.5, 0], [3.5, 0]",
		"car1: {type: car, ", "car1: {type: car, v: 1 m/s, ")
	momentum, first := r.momentum(), r.energy()
	last, pressed, pulled := first, 0.0, 0.0
	for range 400 {
		r.k.Step(r.y, r.u)
		if p := r.momentum(); !(math.Abs(p-momentum) <= 1e-11*momentum) {
			t.Fatalf("the momentum is %.12g N.s, at the start %.12g", p, momentum)
		}
		e := r.energy()
		if !(e <= last*(1+1e-12)) {
			t.Fatalf("the energy grows from %.15g to %.15g J", last, e)
		}
		last = e
		pressed, pulled = min(pressed, r.sum("coupler2.s", times(1))), max(pulled, r.sum("coupler1.s", times(1)))
	}
	all := 3 * (32000 + 2*3000 + 4*(1500+wheelJ/wheelRadius/wheelRadius))
	if least := momentum * momentum / 2 / all; !(last >= least && last <= 0.6*first) {
		t.Errorf("of %g J %g J are left; together the cars would have %g J", first, last, least)
	}
	if !(pressed < -0.001 && pulled > 0.01) {
		t.Errorf("the couplers reach %g m and %g m only", pressed, pulled)
	}
}
