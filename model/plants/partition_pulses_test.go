package plants_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
)

// A wheel that a brake slows down by 4 rad/s² beside a rotor that swings to and fro on a
// spring, both with 48 teeth.
const swinging = `plant: swinging
elements:
  ground: {type: fixed}
  rotor: {type: inertia, J: 2, w_start: 30}
  spring: {type: spring_damper, a: ground, b: rotor, c: 800, d: 0.5}
  wheel: {type: inertia, J: 2, w_start: 10}
  brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 8}
outputs:
  wheel: {pulses: wheel, teeth: 48}
  rotor: {pulses: rotor, teeth: 48}
`

func TestPulsesOfBrakedWheelInTwoPartsAreThoseOfItsClosedForm(t *testing.T) {
	const pitch = 2 * math.Pi / 48
	for _, c := range []struct{ sub, iter int }{{1, 0}, {3, 0}, {1, 2}, {4, 3}} {
		s := inParts(t, swinging, 20*time.Millisecond, c.sub, c.iter)
		for i := 1; i <= 124; i++ {
			s.Step(s.y, s.u)
			at := 0.02 * float64(i)
			edges := math.Floor((10*at-2*at*at)/pitch + 0.5)
			passed := func(edge float64) float64 { return (10 - math.Sqrt(100-8*(edge-0.5)*pitch)) / 4 }
			n, age, period := s.y[s.column["wheel"]], s.y[s.column["wheel.age"]], s.y[s.column["wheel.period"]]
			if n != edges || !(math.Abs(at-age-passed(edges)) <= 1e-10) {
				t.Fatalf("N_sub %d, N_iter %d: at %g s %g edges, the last at %.12g s; want %g and %.12g", c.sub, c.iter, at, n, at-age, edges, passed(edges))
			}
			if want := passed(edges) - passed(edges-1); !(edges <= 1) && !(math.Abs(period-want) <= 1e-10) {
				t.Fatalf("N_sub %d, N_iter %d: at %g s the period is %.12g s, want %.12g", c.sub, c.iter, at, period, want)
			}
		}
	}
}

// The rotor belongs to the latent part, which is exact here: what remains is the cubic
// between two grid times, of order four, also where the rotor turns back.
func TestPulsesOfLatentPartAreOfOrderFour(t *testing.T) {
	ages := func(h time.Duration, sub int) (list [][2]float64) {
		s := inParts(t, swinging, h, sub, 0)
		for at := h; at <= 2*time.Second; at += h {
			if s.Step(s.y, s.u); at%(20*time.Millisecond) == 0 {
				list = append(list, [2]float64{s.y[s.column["rotor"]], s.y[s.column["rotor.age"]]})
			}
		}
		return list
	}
	exact := ages(20*time.Millisecond, 0)
	off := func(h time.Duration) float64 {
		var errors []float64
		for i, a := range ages(h, 2) {
			if a[0] == exact[i][0] {
				errors = append(errors, math.Abs(a[1]-exact[i][1]))
			}
		}
		if len(errors) < len(exact)*9/10 {
			t.Errorf("%v: the count is that of the exact step at %d of %d instants", h, len(errors), len(exact))
		}
		slices.Sort(errors)
		return errors[len(errors)/2]
	}
	coarse, fine := off(20*time.Millisecond), off(5*time.Millisecond)
	order := math.Log(coarse/fine) / math.Log(4)
	t.Logf("an edge is off by %.2g s at 20 ms and %.2g s at 5 ms, order %.2f", coarse, fine, order)
	if !(coarse <= 2e-5 && order >= 3.3) {
		t.Errorf("an edge is off by %.2g s at 20 ms and %.2g s at 5 ms, order %.2f", coarse, fine, order)
	}
}

func TestPulsesInTwoPartsAreCountedOnceAndChangeNothing(t *testing.T) {
	const pitch = 2 * math.Pi / 96
	look := "\noutputs:\n  phi: {angle: bogie1.rear.wheel}\n"
	bare, with := railText(t, "\noutputs:\n", look), railText(t, "\noutputs:\n", look+"  teeth: {pulses: bogie1.rear.wheel, teeth: 96}\n")
	for _, c := range []struct{ sub, iter int }{{1, 0}, {5, 0}, {1, 2}, {5, 2}} {
		a, b := inParts(t, bare, 10*time.Millisecond, c.sub, c.iter), inParts(t, with, 10*time.Millisecond, c.sub, c.iter)
		count, phi, w := 0.0, 0.0, b.y[b.column["w1"]]
		for i := range 800 {
			a.Step(a.y, a.u)
			b.Step(b.y, b.u)
			for name, j := range a.column {
				if math.Float64bits(a.y[j]) != math.Float64bits(b.y[b.column[name]]) {
					t.Fatalf("tick %d: %s is %g without and %g with a sensor", i, name, a.y[j], b.y[b.column[name]])
				}
			}
			before, speed := phi, w
			phi, w = b.y[b.column["phi"]], b.y[b.column["w1"]]
			n, age := b.y[b.column["teeth"]], b.y[b.column["teeth.age"]]
			edge := math.Floor(phi/pitch + 0.5)
			if want := math.Abs(edge - math.Floor(before/pitch+0.5)); !(speed*w <= 0) && n-count != want {
				t.Fatalf("N_sub %d, N_iter %d, tick %d: %g edges between %g and %g rad, want %g", c.sub, c.iter, i, n-count, before, phi, want)
			}
			if off := phi - (edge-0.5)*pitch - w*age; !(n <= count) && !(min(speed, w) <= 0.1) && i > 0 && !(math.Abs(off) <= (math.Abs(w-speed)+0.1)*age) {
				t.Fatalf("N_sub %d, N_iter %d, tick %d: %g s ago the wheel was %g rad off its edge", c.sub, c.iter, i, age, off)
			}
			count = n
		}
		if !(count >= 100) {
			t.Errorf("N_sub %d, N_iter %d: %g edges", c.sub, c.iter, count)
		}
	}
}

// longTrain is a row of cars on springs, one of them with a wheel that a brake stops.
func longTrain(cars int) string {
	var b strings.Builder
	b.WriteString("plant: train\nelements:\n  wheel: {type: inertia, J: 2, w_start: 10}\n  brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 8}\n  car0: {type: mass, m: 1000, v_start: 1}\n")
	for i := 1; i < cars; i++ {
		fmt.Fprintf(&b, "  car%d: {type: mass, m: 1000}\n  coupler%d: {type: spring_damper, a: car%d, b: car%d, c: 100000, d: 500}\n", i, i, i-1, i)
	}
	fmt.Fprintf(&b, "outputs:\n  w: {speed: wheel}\n  v: {speed: car%d}\n", cars-1)
	return b.String()
}

func TestLongPlantInTwoPartsIsSteppedDense(t *testing.T) {
	sys := assembled(t, "train.yaml", []byte(longTrain(60)))
	options := kernel.Options{Period: 10 * time.Millisecond, Memory: 1} // too little for matrices of lock sets
	one, err := kernel.Prepare(sys, options)
	if err != nil {
		t.Fatal(err)
	}
	sys.Partition = &model.Partition{Sub: 2, Iter: 1, Place: "train.yaml:9:1"}
	parts, err := kernel.Prepare(sys, options)
	if err != nil {
		t.Fatal(err)
	}
	if one.Sparse == nil || parts.Sparse != nil || parts.Partition == nil {
		t.Fatalf("sparse as one: %v, sparse in two parts: %v", one.Sparse != nil, parts.Sparse != nil)
	}
	a, b := kernel.New(one), kernel.New(parts)
	y, got := make([]float64, len(one.Outputs)), make([]float64, len(one.Outputs))
	for i := range 400 {
		a.Step(y, nil)
		b.Step(got, nil)
		if w := y[0]; !(math.Abs(got[1]-y[1]) <= 1e-10 && math.Abs(got[0]-w) <= 1e-10) {
			t.Fatalf("tick %d: w %.15g and v %.15g, want %.15g and %.15g", i, got[0], got[1], w, y[1])
		}
	}
	options.Stepping = kernel.Sparse
	_, err = kernel.Prepare(sys, options)
	var at *kernel.PlaceError
	if !errors.As(err, &at) || at.Place != "train.yaml:9:1" || !strings.Contains(err.Error(), `: partition: stepping "sparse" `) {
		t.Errorf("%v, want stepping sparse refused at train.yaml:9:1", err)
	}
}
