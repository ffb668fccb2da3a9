package plants_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"lockstep/model/kernel"
)

// Numbers of the plant buffers.
const (
	carMass, carInertia     = 40e3, 1.6e6
	lean, leanRate          = 1.2e8, 4e6 // of the suspension
	bufferLever, hookLever  = 0.75, 0.85
	chainC, returnC         = 8e6, 1.5e6
	plateMass, startOfTrain = 250.0, 2.0
)

var locomotive = [][2]float64{{1, 0}, {1.1, -150e3}, {2.5, -150e3}, {2.7, 200e3}, {5, 200e3}, {5.1, -250e3}, {6, -250e3}, {6.1, 0}}

// States of three cars: the speeds of cars, pitch and plates, then what these integrate to.
const (
	ofPitch = 3
	ofPlate = 6
	ofPlace = 8 // of the cars, since the start
	ofAngle = 11
	ofGap   = 14
	ofPress = 16 // of the buffers, from rest
)

// threeCars is the plant buffers written down by hand.
func threeCars() *second {
	s := &second{names: []string{"car1.v", "car2.v", "car3.v", "car1.w", "car2.w", "car3.w", "coupling1.plate", "coupling2.plate", "", "", "",
		"car1.phi", "car2.phi", "car3.phi", "coupling1.gap", "coupling2.gap"}, x: make([]float64, 18), step: 1e-3}
	for i, m := range []float64{carMass, carMass, carMass, carInertia, carInertia, carInertia, plateMass, plateMass} {
		s.inertia = append(s.inertia, make([]float64, 8))
		s.inertia[i][i] = m
		if i < ofPitch || i >= ofPlate {
			s.x[i] = startOfTrain
		}
	}
	s.x[ofGap], s.x[ofGap+1] = 10e-3, 1e-3
	taut := [2]float64{10e-3 - 15e-3, 1e-3 + 10e-3} // of the chains at the start
	stretch := func(x []float64, i int) float64 {
		return taut[i] + x[ofPlace+i+1] - x[ofPlace+i] + hookLever*(x[ofAngle+i+1]-x[ofAngle+i])
	}
	press := func(x []float64, i int) float64 { return x[ofPlate+i] - x[i] - bufferLever*x[ofPitch+i] }
	buffer := bends([]float64{2e5, 5e4}, []float64{0.05})
	for i := range 2 {
		touch := make([]float64, 8)
		touch[i+1], touch[ofPitch+i+1], touch[ofPlate+i] = 1, bufferLever, -1
		s.stops = append(s.stops, stop{name: []string{"coupling1.buffers", "coupling2.buffers"}[i], ks: 1, row: touch,
			gap: func(x []float64) float64 { return x[ofGap+i] }})
		s.borders = append(s.borders,
			border{name: "region", value: func(x []float64) float64 { return stretch(x, i) }, at: []float64{0}},
			border{name: "region", value: func(x []float64) float64 { return press(x, i) }, at: buffer.at})
	}
	for _, row := range locomotive {
		s.corners = append(s.corners, row[0])
	}
	s.motion = func(t float64, x, d []float64) {
		clear(d)
		push := along(locomotive, t)
		d[2], d[ofPitch+2] = push, hookLever*push
		for i := range 3 {
			d[ofPitch+i] -= lean*x[ofAngle+i] + leanRate*x[ofPitch+i]
			d[ofPlace+i], d[ofAngle+i] = x[i], x[ofPitch+i]
		}
		for i := range 2 {
			chain := chainC * stretch(x, i) * float64(s.borders[2*i].region)
			out := returnC*x[ofPress+i] + buffer.force(press(x, i), s.borders[2*i+1])
			d[i] += chain + out
			d[i+1] -= chain
			d[ofPlate+i] -= out
			d[ofPitch+i] += hookLever*chain + bufferLever*out
			d[ofPitch+i+1] -= hookLever * chain
			d[ofGap+i], d[ofPress+i] = dot(s.stops[i].row, x), press(x, i)
		}
	}
	return s.ready()
}

func TestBuffersAndChainsInAllCombinationsMatchAnIndependentSolution(t *testing.T) {
	other := row{name: "buffers", other: threeCars(), length: 8}
	tr, want := other.solved(t)
	want = other.inTime(want)
	for _, g := range everyWay([]grid{{period: time.Millisecond, tol: 1e-9, late: 1e-9}, {period: 5 * time.Millisecond, tol: 1e-9, late: 1e-9}, {period: 10 * time.Millisecond, tol: 1e-9, late: 1e-9}}) {
		worst, events, tables := run(t, load(t, "buffers"), g.opt, tr)
		within(t, g, tr.Names[1:], worst)
		have := other.inTime(happened(tables, events, want))
		for _, kind := range []string{"impact", "contact_begin", "separation", "region0", "region1"} {
			of := func(list []happening) []happening {
				return slices.DeleteFunc(slices.Clone(list), func(e happening) bool { return e.name != kind })
			}
			late := inOrder(t, g, of(want), of(have))
			t.Logf("%v: %d times %s within %.1e s", g, len(of(want)), kind, late)
		}
	}
}

// Each coupling has its chain slack or taut and its buffers apart or compressed. The plant passes
// through all four combinations, and its momentum is the impulse of the locomotive.
func TestCarsWithBuffersKeepMomentumAndGainNoEnergy(t *testing.T) {
	for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond} {
		tables, err := kernel.Prepare(load(t, "buffers"), kernel.Options{Period: period})
		if err != nil {
			t.Fatal(err)
		}
		c := &car{t: t, k: kernel.New(tables), tables: tables, u: make([]float64, 1), y: make([]float64, len(tables.Outputs))}
		given := func(at float64) (p float64) { // impulse of the locomotive
			for i, row := range locomotive[1:] {
				if was := locomotive[i]; at > was[0] {
					end := min(at, row[0])
					p += (end - was[0]) * (was[1] + along(locomotive, end)) / 2
				}
			}
			return p
		}
		seen, energy, most := map[[2]bool]int{}, math.Inf(1), 0.0
		for c.seconds() < 12-1e-9 {
			c.step()
			at := c.seconds()
			momentum, now := 0.0, 0.0
			for i, car := range []string{"car1", "car2", "car3"} {
				v, w, phi := c.get(car+".v"), c.get(car+".w"), c.get(car+".phi")
				momentum += carMass * v
				now += (carMass*v*v + carInertia*w*w + lean*phi*phi) / 2
				if i == 2 {
					continue
				}
				coupling := []string{"coupling1", "coupling2"}[i]
				v, pull, press := c.get(coupling+".plate"), c.get(coupling+".chain"), c.get(coupling+".return")
				momentum += plateMass * v
				now += (plateMass*v*v + pull*pull/chainC + press*press/returnC) / 2
				seen[[2]bool{pull > 0, c.get(coupling+".buffers") > 0}]++
			}
			want := (3*carMass+2*plateMass)*startOfTrain + given(at)
			most = max(most, math.Abs(momentum-want))
			if !(math.Abs(momentum-want) <= 1e-9*want) {
				t.Fatalf("%v: the train has the momentum %.12g at %g s, and was given %.12g", period, momentum, at, want)
			}
			if push := along(locomotive, at-period.Seconds()) != 0 || along(locomotive, at) != 0; push {
				energy = math.Inf(1)
			} else if !(now <= energy*(1+1e-12)) {
				t.Fatalf("%v: the train gains %g J of %g at %g s", period, now-energy, now, at)
			} else {
				energy = now
			}
		}
		for _, chain := range []bool{false, true} {
			for _, buffers := range []bool{false, true} {
				if seen[[2]bool{chain, buffers}] < 3 {
					t.Errorf("%v: chain %v and buffers %v in %d ticks only", period, chain, buffers, seen[[2]bool{chain, buffers}])
				}
			}
		}
		t.Logf("%v: momentum within %.1e N.s, ticks with chain, buffers: %v", period, most, seen)
	}
}

// yard pushes and pulls at the second of two cars.
var yard = [][2]float64{{0, 0}, {1, 1e5}, {2, -2e5}, {4, 2.5e5}, {6, -1e5}, {8, 0}}

// twoCars are coupled as in section 4.2 of the paper, without plates. The chain pulls at distances
// above slack; the buffers, with their own damper, push at distances below zero.
func twoCars(slack float64) *second {
	s := &second{names: []string{"one", "two", "d"}, inertia: [][]float64{{40e3, 0}, {0, 30e3}}, x: []float64{1.5, 0, 60e-3}, step: 1e-3}
	apart := func(x []float64) float64 { return x[2] }
	s.borders = []border{{name: "region", value: apart, at: []float64{slack}}, {name: "region", value: apart, at: []float64{0}}}
	for _, row := range yard {
		s.corners = append(s.corners, row[0])
	}
	s.motion = func(t float64, x, d []float64) {
		chain := 8e6 * (x[2] - slack) * float64(s.borders[0].region)
		buffers := (2e5*x[2] + 3e5*(x[1]-x[0])) * float64(1-s.borders[1].region)
		d[0], d[1], d[2] = chain+buffers, along(yard, t)-chain-buffers, x[1]-x[0]
	}
	return s.ready()
}

func TestFourCombinationsOfThePaperMatchAnIndependentSolution(t *testing.T) {
	for _, slack := range []float64{20e-3, -10e-3} {
		row{name: "coupling", text: fmt.Sprintf(`plant: coupling
elements:
  car1: {type: body, m: 40 t, dof: [x], v_x_start: 1.5 m/s}
  car2: {type: body, m: 30 t, dof: [x]}
  chain: {type: affine_spring, a: car1.x, b: car2.x, symmetric: false, borders: [0], c: [0, 8e6 N/m], s_rel0: %g, s_rel_start: 60 mm}
  buffers: {type: affine_spring, a: car1.x, b: car2.x, symmetric: false, borders: [0], c: [2e5 N/m, 0], d: [3e5 N.s/m, 0], s_rel_start: 60 mm}
  yard: {type: force, flange: car2.x, f: {table: %s}}
outputs: {one: {speed: car1.x}, two: {speed: car2.x}, d: {s_rel: chain}}
`, slack, table(yard)), other: twoCars(slack), length: 10, grids: everyWay([]grid{{period: time.Millisecond, tol: 1e-10, late: 1e-10},
			{period: 5 * time.Millisecond, tol: 3e-8, late: 3e-8}, {period: 10 * time.Millisecond, tol: 5e-7, late: 2e-7}})}.check(t)
	}
}
