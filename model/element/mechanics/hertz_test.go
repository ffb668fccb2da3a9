package mechanics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// A mass falls on a contact of exponent n: without damping it turns where the spring has its energy, and with it its motion is
// that of an independent integration.
func TestGapWithAnExponent(t *testing.T) {
	for _, n := range []float64{1.5, 2, 1.1, 3.3} {
		for _, d := range []float64{0, 40} {
			b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
floor: {type: fixed, s0: 0}
ball: {type: mass, m: 2 kg, s_start: 0.3 m, v_start: -1 m/s}
pad: {type: elasto_gap, a: floor, b: ball, c: 1, d: %g, s_rel0: 0.25 m, n: %g, f_ref: 80 N, s_ref: 0.05 m, s_range: 0.1 m}
`, d, n), "s: {position: ball}\nv: {speed: ball}\nf: {force: pad}\nE: {energy: pad}\nK: {energy: ball}\nD: {dissipated: pad}"), time.Millisecond)
			force := func(s, v float64) float64 { // on the ball
				if s >= 0.25 {
					return 0
				}
				fc := 80 * math.Pow((0.25-s)/0.05, n)
				return fc + min(max(-d*v, -fc), fc)
			}
			s, v := 0.3, -1.0
			const h = 1e-5
			for k := 1; k <= 400; k++ {
				for range 100 { // Runge and Kutta, 4th order
					a1 := force(s, v) / 2
					a2 := force(s+h/2*v, v+h/2*a1) / 2
					a3 := force(s+h/2*(v+h/2*a1), v+h/2*a2) / 2
					a4 := force(s+h*(v+h/2*a2), v+h*a3) / 2
					s += h * (v + h/6*(a1+a2+a3))
					v += h / 6 * (a1 + 2*a2 + 2*a3 + a4)
				}
				b.To(float64(k)*1e-3, nil)
				b.Is("s", s, 1e-6)
				b.Is("f", -force(b.Get("s"), b.Get("v")), 1e-9)
				if got := b.Get("E") + b.Get("K") + b.Get("D"); !(math.Abs(got-1) < 1e-5) {
					t.Errorf("%.9g J of 1 J at %d ms", got, k)
				}
				if t.Failed() {
					t.Fatalf("n %g, d %g N.s/m", n, d)
				}
			}
		}
	}
}

func TestExponentBelowOneIsRefused(t *testing.T) {
	const old = "  frame: {type: fixed}\n"
	const gap = "m: {type: mass, m: 1}\n  z: {type: fixed, s0: 0}\n  g: {type: elasto_gap, a: z, b: m, c: 1, d: 1, "
	for _, c := range [][2]string{
		{"n: «0.5»}", `element "g": n 0.5 is below 1 (exponent of the spring force)`},
		{"«s_ref»: 1}", `element "g": s_ref goes with n above 1`},
	} {
		modeltest.Refuse(t, modeltest.Train, old, old+"  "+gap+c[0]+"\n", c[1])
	}
}
