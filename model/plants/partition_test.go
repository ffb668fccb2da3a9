package plants_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/truth"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// stepped is a plant on a grid with its outputs by name.
type stepped struct {
	*kernel.Kernel
	y, u   []float64
	column map[string]int
}

// inParts prepares the text of a plant, stepped in two parts with sub micro steps and
// iter iterations; sub 0: as one.
func inParts(t *testing.T, text string, h time.Duration, sub, iter int) *stepped {
	t.Helper()
	p, err := plantfile.Load("plant.yaml", []byte(text), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	if sub > 0 {
		sys.Partition = &model.Partition{Sub: sub, Iter: iter}
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: h})
	if err != nil {
		t.Fatal(err)
	}
	s := &stepped{kernel.New(tables), make([]float64, len(tables.Outputs)), slices.Clone(tables.Start), map[string]int{}}
	for j, o := range tables.Outputs {
		s.column[o.Name] = j
	}
	return s
}

func railText(t *testing.T, replace ...string) string {
	t.Helper()
	data, err := plants.Read("rail17")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(replace...).Replace(string(data))
}

// wheelSpeeds are the errors of the wheels' speeds at the rim over 8 s, m/s, against
// the independent solution: the mean and the largest.
func wheelSpeeds(t *testing.T, tr truth.Table, h time.Duration, sub, iter int) (mean, most float64) {
	t.Helper()
	s := inParts(t, railText(t), h, sub, iter)
	ticks := int(20 * time.Millisecond / h)
	for _, row := range tr.Rows[1:] {
		for range ticks {
			s.Step(s.y, s.u)
		}
		for c, name := range tr.Names {
			if len(name) != 2 || name[0] != 'u' {
				continue
			}
			e := math.Abs(s.y[s.column[name]] - row[c])
			if !(e <= 10) {
				t.Fatalf("%s is off by %g m/s", name, e)
			}
			mean, most = mean+e/4/float64(len(tr.Rows)-1), max(most, e)
		}
	}
	return mean, most
}

// What was measured on rail17, and a little more; its wheels run at up to 3.3 m/s.
func TestFourClassesOfSimulatorKeepTheirErrors(t *testing.T) {
	tr := truth.Read(t, "testdata/G_rail17.csv").AfterEvents()
	for _, c := range []struct {
		h         time.Duration
		sub, iter int
		most      float64 // m/s
	}{
		{5 * time.Millisecond, 1, 0, 0.15},
		{5 * time.Millisecond, 5, 0, 0.14},
		{5 * time.Millisecond, 1, 1, 0.015},
		{5 * time.Millisecond, 5, 1, 0.007},
		{10 * time.Millisecond, 5, 3, 0.012},
	} {
		if mean, most := wheelSpeeds(t, tr, c.h, c.sub, c.iter); !(most <= c.most && mean > 1e-6) {
			t.Errorf("%v, N_sub %d, N_iter %d: wheels are off by up to %.2g m/s, %.2g in the mean; want %g at most", c.h, c.sub, c.iter, most, mean, c.most)
		}
	}
}

func TestIterationsRaiseTheOrderOfTwoPartsAboveOne(t *testing.T) {
	tr := truth.Read(t, "testdata/G_rail17.csv").AfterEvents()
	order := func(iter int) float64 {
		coarse, _ := wheelSpeeds(t, tr, 10*time.Millisecond, 5, iter)
		fine, _ := wheelSpeeds(t, tr, 2500*time.Microsecond, 5, iter)
		return math.Log(coarse/fine) / math.Log(4)
	}
	one, two := order(0), order(3)
	t.Logf("the mean error of the wheels goes with the step to the power %.2f without and %.2f with three iterations", one, two)
	if !(one >= 0.8 && one <= 1.25 && two >= 1.25) {
		t.Errorf("the mean error of the wheels goes with the step to the power %.2f without and %.2f with three iterations", one, two)
	}
}

// A contact without T_sgn is a friction element between the wheel, which is active, and
// the axle, which is latent.
func TestRollingContactHoldsAcrossTheParts(t *testing.T) {
	text := railText(t, "T_sgn: 0.05 m/s, ", "")
	s, one := inParts(t, text, 5*time.Millisecond, 5, 2), inParts(t, text, 5*time.Millisecond, 0, 0)
	held := 0
	for range 1600 {
		s.Step(s.y, s.u)
		one.Step(one.y, one.u)
		for w := 1; w <= 4; w++ {
			j := s.column[fmt.Sprint("u", w)]
			if e := math.Abs(s.y[j] - one.y[j]); !(e <= 0.05) {
				t.Fatalf("u%d is off by %.2g m/s", w, e)
			}
		}
		if s.y[s.column["bogie1.rear.contact.mode"]] == 0 {
			held++
			if slip := s.y[s.column["bogie1.rear.contact.v_rel"]]; !(math.Abs(slip) <= 1e-9) {
				t.Fatalf("the contact sticks with a slip of %g m/s", slip)
			}
		}
	}
	if held < 400 {
		t.Errorf("the wheel rolls in %d of 1600 ticks only", held)
	}
}

func TestBrakedWheelStandsStillBetweenMicroSteps(t *testing.T) {
	s := inParts(t, railText(t), 5*time.Millisecond, 2, 1)
	stood := 0
	for i := 1; i <= 1600; i++ {
		s.Step(s.y, s.u)
		mode, w := s.y[s.column["bogie1.rear.brake.mode"]], s.y[s.column["w1"]]
		if mode == 0 {
			stood++
			if !(math.Abs(w) <= 1e-12) {
				t.Fatalf("at %g s the wheel is locked and turns with %g rad/s", 5e-3*float64(i), w)
			}
		}
	}
	if stood < 200 || !(s.y[s.column["transitions"]] >= 4) || s.y[s.column["fault"]] != 0 {
		t.Errorf("the wheel stood in %d ticks, after %g transitions", stood, s.y[s.column["transitions"]])
	}
}

// separate has a linear part that no wheel touches: a mass on a spring, pushed by a
// source, beside a wheel that a brake stops.
const separate = `plant: separate
inputs:
  push: {unit: N, default: PUSH}
elements:
  ground: {type: fixed}
  body: {type: mass, m: 10}
  spring: {type: spring_damper, a: ground, b: body, c: 4000, d: 30}
  force: {type: force, flange: body, f: push}
  wheel: {type: inertia, J: 2, w_start: 10}
  brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 8}
outputs:
  v: {speed: body}
  w: {speed: wheel}
  phi: {angle: wheel}
`

func TestLinearPartIsExactUnderForcesOfLowDegree(t *testing.T) {
	for push, iter := range map[string]int{"300": 0, "{table: [[0, 0], [2, 800]]}": 1} {
		text := strings.Replace(separate, "PUSH", push, 1)
		a, b := inParts(t, text, 20*time.Millisecond, 3, iter), inParts(t, text, 20*time.Millisecond, 0, 0)
		for i := 1; i <= 100; i++ {
			a.Step(a.y, a.u)
			b.Step(b.y, b.u)
			if v, want := a.y[a.column["v"]], b.y[b.column["v"]]; !(math.Abs(v-want) <= 1e-11) {
				t.Fatalf("push %s: at %g s the speed is %.15g m/s, want %.15g", push, 0.02*float64(i), v, want)
			}
			w, phi, at := a.y[a.column["w"]], a.y[a.column["phi"]], 0.02*float64(i)
			if want := 10*at - 2*at*at; !(math.Abs(w-(10-4*at)) <= 1e-12 && math.Abs(phi-want) <= 1e-12) {
				t.Fatalf("at %g s the wheel turns with %.15g rad/s at %.15g rad, want %g and %g", at, w, phi, 10-4*at, want)
			}
		}
	}
}

func TestStepInTwoPartsAllocatesNothingAndRepeatsItsBits(t *testing.T) {
	s := inParts(t, railText(t), 10*time.Millisecond, 4, 2)
	run := func() (bits []uint64) {
		s.Reset()
		for range 300 {
			s.Step(s.y, s.u)
		}
		for _, v := range s.y {
			bits = append(bits, math.Float64bits(v))
		}
		return bits
	}
	if first, second := run(), run(); !slices.Equal(first, second) || !(s.y[s.column["transitions"]] >= 4) {
		t.Errorf("a second run gives other bits, or nothing happened in %g transitions", s.y[s.column["transitions"]])
	}
	s.Reset()
	if n := testing.AllocsPerRun(300, func() { s.Step(s.y, s.u) }); n != 0 {
		t.Errorf("%g allocations in a step", n)
	}
}

func TestPlantThatCannotBePartitionedIsRefused(t *testing.T) {
	for name, want := range map[string]string{
		"coupled-clutches": "no linear part",
		"hybrid-clearance": `element "stop.max" hits its stop`,
		"oscillator":       "no state is driven by laws and friction alone",
	} {
		data, err := plants.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plantfile.Load(name, data, library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		sys, err := assemble.System(p)
		if err != nil {
			t.Fatal(err)
		}
		sys.Partition = &model.Partition{Sub: 2, Place: name + ":1:1"}
		if _, err := kernel.Prepare(sys, kernel.Options{Period: time.Millisecond}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), name+":1:1: ") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
