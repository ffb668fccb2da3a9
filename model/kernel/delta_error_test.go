package kernel

import (
	"math"
	"testing"

	"lockstep/hil_test/truth"
	"lockstep/model"
)

// damped is the oscillator of Reiter, table 17, state (x', x), with a region boundary at x = 0 that
// changes nothing: each crossing is an event.
func damped(x0 [2]float64) *model.System {
	r := rig{J: []float64{1}, Drag: []float64{5}, X0: x0[:], Springs: []spring{{-1, 0, 10, 0}}}
	sys := r.system()
	sys.B, sys.D = []float64{1, 0}, make([]float64, 2)
	sys.Signals = []model.Signal{{Name: "none", Affine: &model.Affine{Slope: []float64{0, 0}, Offset: []float64{0, 0}}}}
	sys.Switches = []model.Switch{{Name: "mark", Row: []float64{0, 1}, Borders: []float64{0}}}
	return sys
}

// dampedAt returns its state after t: exp(-2.5·t) times a rotation of 1.936 rad/s.
func dampedAt(x0 [2]float64, t float64) [2]float64 {
	w := math.Sqrt(10 - 2.5*2.5)
	e, s, c := math.Exp(-2.5*t), math.Sin(w*t)/w, math.Cos(w*t)
	v, x := x0[0], x0[1]
	return [2]float64{e * (v*c - (2.5*v+10*x)*s), e * (x*c + (v+2.5*x)*s)}
}

var deltaSteps = map[string]float64{"0031": 0.031, "0062": 0.0616, "0093": 0.093, "0154": 0.154, "01Teig": 0.32446229407788896}

// The part eta of a step in the held form is a straight line (Reiter, eq. 141): its error
// is at most e1_max (eq. 146), and equals it in some direction. The projected form
// has no such error.
func TestPartOfAHeldStepIsWithinTheBoundOfTheThesis(t *testing.T) {
	bounds := truth.Read(t, "testdata/C_error_bounds.csv").Columns()
	for name, h := range deltaSteps {
		h = period(h).Seconds()
		for i, eta := range bounds["eta"] {
			limit := bounds["e1max_Td_"+name][i]
			if eta == 0 || eta > 1 {
				continue // no substep of the kernel is longer than its step
			}
			held, exact := partError(t, h, eta, Held), partError(t, h, eta, Projected)
			if !(held <= limit*(1+1e-9)+1e-14) || !(held >= 0.999*limit-1e-14) {
				t.Errorf("step %g s, eta %g: error %.9g, the bound is %.9g", h, eta, held, limit)
			}
			if !(exact <= 1e-14) {
				t.Errorf("step %g s, eta %g: the projected form is off by %.2g", h, eta, exact)
			}
			if eta == 0.5 {
				t.Logf("half a step of %.4g s: held %.3g (bound %.3g), projected %.2g", h, held, limit, exact)
			}
		}
	}
}

// partError returns the largest error over all directions after the part eta of a step.
func partError(t *testing.T, h, eta float64, form Form) (worst float64) {
	k := start(t, damped([2]float64{0, 1}), Options{Period: period(h), Form: form})
	for a := range 2000 {
		angle := math.Pi * float64(a) / 2000
		x0 := [2]float64{math.Sin(angle), math.Cos(angle)}
		copy(k.x, x0[:])
		k.calls.setSignals(k.Kernel, k.x, 0, k.t.Delta)
		k.calls.startSubstep(k.Kernel, 0)
		k.calls.expand(k.Kernel, k.x)
		k.horner(k.x1, eta)
		want := dampedAt(x0, eta*k.t.Delta) // the projected form may need several substeps
		worst = max(worst, math.Hypot(k.x1[0]-want[0], k.x1[1]-want[1]))
	}
	return worst
}

// An event at eta of a step and the way back to the grid. The thesis takes the rest as
// one step of 2 - eta, with an error of at most e2_max = (1 - eta)²·|(Phi - 1)²| (eq.
// 155); the kernel takes a whole step and then 1 - eta, which makes eta·(1 - eta)
// of it: less up to eta = 1/2, and at its worst a quarter.
func TestHeldStepsBackToTheGridAreWithinTheBoundOfTheThesis(t *testing.T) {
	bounds := truth.Read(t, "testdata/C_error_bounds.csv").Columns()
	for name, h := range deltaSteps {
		h = period(h).Seconds()
		e2 := bounds["e2max_Td_"+name]
		for i, eta := range bounds["eta"] {
			if !(eta > 0 && eta < 1) {
				continue
			}
			for _, form := range []Form{Held, Projected} {
				off, met := backOnGrid(t, h, eta, form)
				limit := eta * (1 - eta) * e2[0]
				if form == Projected {
					limit = 1e-13
				}
				if !(off <= limit*(1+1e-9)) || !(eta > 0.5) && form == Held && !(off <= e2[i]*(1+1e-9)) {
					t.Errorf("%s, step %g s, eta %g: off by %.6g after two steps; %.6g is the bound, %.6g that of the thesis", form, h, eta, off, limit, e2[i])
				}
				if !met {
					t.Errorf("%s, step %g s: no event at eta %g", form, h, eta)
				}
			}
		}
	}
}

// backOnGrid starts so that the boundary is crossed at eta of the first step of the form. It
// returns the error after two steps, relative to the size of the start.
func backOnGrid(t *testing.T, h, eta float64, form Form) (off float64, met bool) {
	k := start(t, damped([2]float64{0, 1}), Options{Period: period(h), Form: form, Scheme: Papers})
	later := func(x0 [2]float64) float64 { // deflection at eta
		if form == Projected {
			return dampedAt(x0, eta*h)[1]
		}
		end := dampedAt(x0, h)
		return x0[1] + eta*(end[1]-x0[1])
	}
	a, b := later([2]float64{1, 0}), later([2]float64{0, 1}) // linear in the start
	x0 := [2]float64{-b, a}
	size := math.Hypot(x0[0], x0[1])
	copy(k.x, x0[:])
	k.setRegions(k.x)
	k.step()
	met = len(k.Events()) == 1 && math.Abs(k.eta-eta) < 1e-9 && math.Abs(k.lag-(1-eta)*h) < 1e-9
	k.step()
	met = met && k.lag == 0
	want := dampedAt(x0, 2*h)
	return math.Hypot(k.y[0]-want[0], k.y[1]-want[1]) / size, met
}
