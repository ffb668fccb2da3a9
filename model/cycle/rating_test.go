package cycle

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

// car is a small passenger car.
var car = &Vehicle{Mass: 1500, F0: 120, F1: 1, F2: 0.4}

// follow drives a cycle with a speed over time up to an instant, ns. It returns the results of the parts.
func follow(c *Cycle, vehicle *Vehicle, end int64, v func(at int64) float64) (list []Result) {
	for _, p := range c.Parts() {
		f := Follow(c, p, vehicle)
		for at := int64(0); at <= end; at += stepOf(c) {
			f.Add(at, v(at))
		}
		list = append(list, f.Result())
	}
	return list
}

func TestRatingOfPerfectFollowingIsZero(t *testing.T) {
	for _, name := range Names() {
		c, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range follow(c, car, c.End(), c.Target.Eval) {
			if r.Phase == soak { // a ratio to zero
				continue
			}
			// the samples between two points of the target are interpolated once more: rounding only
			for figure, v := range map[string]float64{"ER": r.ER, "DR": r.DR, "EER": r.EER, "ASCR": r.ASCR, "IWR": r.IWR, "RMSSE": r.RMSSE} {
				if !scalar.EqualWithinAbs(v, 0, 1e-9) {
					t.Errorf("%s %s: %s is %v, want 0", name, r.Phase, figure, v)
				}
			}
			if !r.Passed() {
				t.Errorf("%s %s: %+v, want it passed", name, r.Phase, r.Judgement)
			}
		}
	}
}

// TestRatingOfAScaledSpeedHasItsClosedForm drives s times the target. Distance and speed changes grow by the factor
// s, work of inertia by s²; with a road load F1·v the tractive force grows by s, and its work by s².
func TestRatingOfAScaledSpeedHasItsClosedForm(t *testing.T) {
	c, err := Load("wltc-3b")
	if err != nil {
		t.Fatal(err)
	}
	const s = 1.01
	n := int(c.End()/int64(RatePeriod)) + 1
	target, driven := make([]float64, n), make([]float64, n)
	sum := 0.0
	for i := range target {
		target[i] = c.Target.Eval(int64(i) * int64(RatePeriod))
		driven[i] = s * target[i]
	}
	smoothed := smooth(target)
	for _, v := range smoothed {
		sum += v * v
	}
	r := Rate(driven, target, &Vehicle{Mass: 1500, F1: 20})
	// speeds just above 0.03 m/s are truncated in one trace only: 1e-3 % of the sums at most
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"DR", r.DR, 100 * (s - 1)}, {"ASCR", r.ASCR, 100 * (s - 1)}, {"IWR", r.IWR, 100 * (s*s - 1)},
		{"ER", r.ER, 100 * (s*s - 1)}, {"EER", r.EER, 100 * (1 - 1/s)},
		{"RMSSE", r.RMSSE, (s - 1) * math.Sqrt(sum/float64(n))},
	} {
		if !scalar.EqualWithinAbs(x.got, x.want, 1e-3) {
			t.Errorf("%s of %v times the target: %v, want %v", x.name, s, x.got, x.want)
		}
	}
}

// TestCycleEnergyOfARampHasItsClosedForm: the work at a constant acceleration a to the speed v is
// 1.015·m·v²/2 + ∫F·v dt, and a deceleration beyond the road load takes none.
func TestCycleEnergyOfARampHasItsClosedForm(t *testing.T) {
	const a, v, hold = 1.0, 20.0, 100.0 // m/s², m/s, s
	var trace []float64
	for i := range 2001 {
		at := float64(i) * 0.1
		trace = append(trace, max(min(a*(at-10), v, v-2*(at-10-v/a-hold)), 0))
	}
	got := Rate(trace, trace, car)
	load := func(x float64) float64 { return car.F0*x + car.F1*x*x + car.F2*x*x*x } // W
	// ∫ load dt over the ramp, as polynomial of v/a; then the constant speed
	want := 1.015*car.Mass*v*v/2 + (car.F0*v*v/2+car.F1*v*v*v/3+car.F2*v*v*v*v/4)/a + load(v)*hold
	if !scalar.EqualWithinRel(got.Target, want, 4e-3) { // the filter, 0.8 s wide, rounds the corners of 120 s
		t.Errorf("cycle energy %v J, want %v J", got.Target, want)
	}
}

func TestRatingWithoutAVehicleHasNoEnergy(t *testing.T) {
	c := steep(t)
	r := follow(c, nil, c.End(), c.Target.Eval)[0]
	if !math.IsNaN(r.ER) || !math.IsNaN(r.EER) || !scalar.EqualWithinAbs(r.IWR, 0, 1e-9) || !scalar.EqualWithinAbs(r.DR, 0, 1e-9) {
		t.Errorf("%+v, want ER and EER NaN, IWR and DR 0", r.Rating)
	}
	for _, bad := range []Vehicle{{}, {Mass: -1}, {Mass: math.NaN()}, {Mass: math.Inf(1)}, {Mass: 1, F1: math.NaN()}} {
		if bad.Check() == nil {
			t.Errorf("%+v: got no error", bad)
		}
	}
	if err := car.Check(); err != nil {
		t.Error(err)
	}
}

func TestUnfinishedPartIsNotRated(t *testing.T) {
	c, err := Load("wltc-3b")
	if err != nil {
		t.Fatal(err)
	}
	phases := follow(c, car, 700*second, c.Target.Eval)
	whole := phases[4]
	if whole.Passed() || !math.IsNaN(whole.RMSSE) {
		t.Errorf("whole cycle after 700 s: %+v, want it not passed and not rated", whole)
	}
	if !phases[0].Passed() || !scalar.EqualWithinAbs(phases[0].RMSSE, 0, 1e-9) || phases[1].Complete {
		t.Errorf("phases after 700 s: %+v, want the first one passed only", phases[:2])
	}
}

func TestASpeedThatIsNotFiniteFails(t *testing.T) {
	c := steep(t)
	for _, wrong := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, instant := range []int64{10 * second, c.End()} {
			whole := follow(c, car, c.End(), func(at int64) float64 {
				if at == instant {
					return wrong
				}
				return c.Target.Eval(at)
			})[0]
			if whole.Passed() || whole.Violations != 1 || !math.IsInf(whole.Largest, 1) || !math.IsNaN(whole.RMSSE) && !math.IsInf(whole.RMSSE, 1) {
				t.Errorf("%g at %d ns: %+v; want one violation, an infinite distance and no RMSSE", wrong, instant, whole)
			}
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	c := steep(t)
	f := Follow(c, c.Whole(), car)
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() { f.Add(at, c.Target.Eval(at)); at += tick }); n != 0 {
		t.Errorf("Add allocates %v times, want 0", n)
	}
}
