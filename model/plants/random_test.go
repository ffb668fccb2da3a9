package plants_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// short is a number that its file gives in full.
func short(x float64) float64 {
	v, _ := strconv.ParseFloat(fmt.Sprintf("%.4g", x), 64)
	return v
}

// randomBends is a force of 1 to 4 borders, and its slopes and borders as in a file.
func randomBends(r *rand.Rand, stiff, wide float64) (f affine, slopes, borders string) {
	c, at := []float64{short(stiff * math.Exp(6*r.Float64()-3))}, []float64{}
	for b := 0.; len(at) == 0 || len(at) < 4 && r.IntN(2) == 0; {
		b = short(b + wide*(0.2+r.Float64()))
		c, at = append(c, short(stiff*math.Exp(6*r.Float64()-3))), append(at, b)
	}
	list := func(v []float64) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }
	return bends(c, at), list(c), list(at)
}

// randomSwing is an oscillator with friction of its own or in its spring, or none.
func randomSwing(r *rand.Rand) row {
	w := swing{x: short(0.4 * r.Float64())}
	spring, c, at := randomBends(r, 3, 0.1)
	damper, d, speeds := randomBends(r, 0.1, 0.2)
	w.spring, w.damper = spring, damper
	text := fmt.Sprintf("c: %s, borders: %s", c, at)
	others := []string{fmt.Sprintf("damper: {type: affine_damper, a: ground, b: body, d: %s, borders: %s}", d, speeds)}
	switch f := short(0.1 * r.Float64()); r.IntN(3) {
	case 0:
		w.friction, w.lock, w.slip = []float64{f}, "stick", "v_sign"
		others = append(others, fmt.Sprintf("friction: {type: support_friction, flange: body, f_Coulomb: %g, peak: 1}", f))
	case 1:
		w.friction, w.lock, w.slip = []float64{f}, "lock_spring", "slip_spring"
		text += fmt.Sprintf(", hysteresis: %g", 2*f)
	}
	slope := short(0.2*r.Float64() - 0.1) // a ramp is exact on any step
	w.also = func(t, _, _ float64) float64 { return slope * t }
	others = append(others, fmt.Sprintf("push: {type: force, flange: body, f: {ramp: {height: %g, duration: 100}}}", 100*slope))
	return row{"", oscillator(w.x, text, others...), w.solve(), 10, on(tenth, 1e-9, 1e-9, 1e-6, 1e-6)}
}

// randomCrash has any restitution, plastic and elastic ones more often.
func randomCrash(r *rand.Rand) row {
	size := func() float64 { return short(math.Exp(3 * r.Float64())) }
	damping := func() float64 { return short(r.Float64() * float64(r.IntN(2))) }
	p := crash{size(), size(), damping(), damping(), size(), size(), 1,
		[]float64{0, 1, short(r.Float64())}[r.IntN(3)], short(-0.1 - 0.4*r.Float64()), short(r.Float64() - 0.5)}
	return row{"", p.file(), p.solve(), 10, on(10*time.Millisecond, 1e-9, 1e-9, 1e-9, 1e-9)}
}

func TestRandomPlantsAgreeWithTheSecondSolver(t *testing.T) {
	for seed := range 40 {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		t.Run(fmt.Sprintf("swing %d", seed), randomSwing(r).check)
		t.Run(fmt.Sprintf("crash %d", seed), randomCrash(r).check)
	}
}
