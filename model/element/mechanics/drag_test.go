package mechanics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// The open clutch of the tests: 8 gaps of 0.2 mm between 70 and 90 mm.
const (
	dragGaps, dragInner, dragOuter, dragGap, dragRho = 8, 0.07, 0.09, 2e-4, 850.
	openClutch                                       = `drag: {type: clutch_drag, a: ground, b: plate, surfaces: 8, r_inner: 70 mm, r_outer: 90 mm, gap: 0.2 mm, `
)

// dragTorque is the torque of the test clutch, from the radius of the film instead of its share.
func dragTorque(w, mu, flow float64) float64 {
	full := math.Pi * math.Pow(dragGap, 3) * dragRho * w * w * (dragOuter*dragOuter - dragInner*dragInner) /
		(40 * mu * math.Log(dragOuter/dragInner)) // m³/s in one gap
	film := dragOuter
	if share := flow / dragGaps / full; share < 1 {
		film = math.Sqrt(dragInner*dragInner + share*(dragOuter*dragOuter-dragInner*dragInner))
	}
	return dragGaps * math.Pi * mu * (math.Pow(film, 4) - math.Pow(dragInner, 4)) / (2 * dragGap) * w
}

// Up to the slip at which the plates discharge more than the flow, the torque is that of full gaps; then it falls.
func TestDragTorqueRisesWithSlipAndFallsWithAir(t *testing.T) {
	for _, flow := range []float64{0, 1e-6, 3e-5, 8e-4} {
		for _, temperature := range []float64{280, 300, 330, 400} {
			mu := 0.06 - 0.048*min(max(temperature-300, 0), 60)/60
			peak := 0.0
			for _, w := range []float64{-400, -20, 0, 0.5, 40, 450} {
				b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
ground: {type: fixed}
plate: {type: inertia, J: 0.01, w_start: %g}
%soil_flow: %g, viscosity: [[300 K, 0.06], [360 K, 0.012]], temperature: %g K}`, w, openClutch, flow, temperature),
					"tau: {torque: drag}\nfilled: {signal: drag.filled}\nlost: {signal: drag.lossPower}"), 5*time.Millisecond)
				want := 0.0
				if w != 0 && flow > 0 {
					want = dragTorque(w, mu, flow)
				}
				if got := b.Get("tau"); !scalar.EqualWithinAbsOrRel(got, want, 1e-12, 1e-12) {
					t.Errorf("at %g rad/s, %g K and %g m3/s the torque is %.15g N·m, want %.15g", w, temperature, flow, got, want)
				}
				b.Is("lost", want*w, 1e-12)
				peak = max(peak, math.Abs(want))
				if w == 450 && flow > 0 && flow < 1e-4 && !(b.Get("tau") < peak && b.Get("filled") < 0.5) {
					t.Errorf("at %g K and %g m3/s no air enters: %g N·m after %g N·m", temperature, flow, b.Get("tau"), peak)
				}
			}
		}
	}
}

// An open clutch brakes a disc. With air in the gaps tau = K·ring·w·(a·q + 1)/q², where q = (w/w_c)² and
// a = hole/ring: so F(q), the integral of q/(a·q + 1), falls at the constant rate 2·K·ring/J. With full gaps the speed
// decays as an exponential. The energy that the disc loses is dissipated, and warms the oil.
func TestDragStopsADiscInTheTimeOfItsClosedForm(t *testing.T) {
	const J, mu, flow, start = 0.01, 0.03, 2e-5, 300.
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
plate: {type: inertia, J: 0.01, w_start: 300}
`+openClutch+`oil_flow: 2e-5, viscosity: 0.03, heat_port: oil}
oil: {type: heat_capacitor, C: 100, T_start: 300}`,
		"w: {speed: plate}\nE: {energy: plate}\nD: {dissipated: drag}\nT: {signal: oil}"), 5*time.Millisecond)
	ring, hole := dragOuter*dragOuter-dragInner*dragInner, 2*dragInner*dragInner
	K := dragGaps * math.Pi * mu * ring / (2 * dragGap)
	wc := math.Sqrt(flow / dragGaps * 40 * mu * math.Log(dragOuter/dragInner) / (math.Pi * math.Pow(dragGap, 3) * dragRho * ring))
	a := hole / ring
	F := func(w float64) float64 { // of q = w²/w_c²: the integral of q/(a·q + 1)·dq
		q := w * w / (wc * wc)
		return q/a - math.Log(a*q+1)/(a*a)
	}
	rate := 2 * K * ring / J // of F
	until := (F(start) - F(wc)) / rate
	rows, slow := 0, 0
	b.To(2*until, func(at float64) {
		w := b.Get("w")
		if at < until {
			rows++
			if got, want := F(start)-F(w), rate*at; !scalar.EqualWithinAbs(got, want, 1e-7*F(start)) {
				t.Errorf("at %g s F has fallen by %.9g, want %.9g", at, got, want)
			}
		} else {
			slow++
			b.Is("w", wc*math.Exp(-K*(hole+ring)/J*(at-until)), 1e-6)
		}
		lost := J/2*start*start - b.Get("E")
		b.Is("D", lost, 1e-5)
		b.Is("T", 300+lost/100, 1e-7)
	})
	if rows < 20 || slow < 20 {
		t.Errorf("%d rows with air and %d without", rows, slow)
	}
}

func TestBadDragIsRefused(t *testing.T) {
	const old = "  drag: {type: damper, a: frame, b: wheel, d: 0.01}"
	const good = "  drag: {type: clutch_drag, a: frame, b: wheel, surfaces: 8, r_inner: 70 mm, r_outer: 90 mm, gap: 0.2 mm, "
	for _, c := range [][3]string{
		{good, "oil_flow: 1e-5, viscosity: «0»", `viscosity 0 Pa.s is not positive (dynamic viscosity; [temperature, viscosity])`},
		{good, "oil_flow: 1e-5, viscosity: «[[300, 0.05]]»", `viscosity needs temperature (a temperature over time, K) or heat_port`},
		{good, "oil_flow: 1e-5, viscosity: 0.05, «temperature: 300 K»", `temperature goes with rows of viscosity`},
		{good, "oil_flow: «-1e-5», viscosity: 0.05", `oil_flow can be -1e-05 m3/s; it must not be negative (flow of oil into all gaps)`},
		{"  drag: {type: clutch_drag, a: frame, b: wheel, surfaces: «7.5», r_inner: 70 mm, r_outer: 90 mm, gap: 0.2 mm, ",
			"oil_flow: 1e-5, viscosity: 0.05", `surfaces 7.5 is not a whole number`},
		{"  drag: {type: clutch_drag, a: frame, b: wheel, surfaces: 8, r_inner: 70 mm, r_outer: «60 mm», gap: 0.2 mm, ",
			"oil_flow: 1e-5, viscosity: 0.05", `r_outer 0.06 m is not above r_inner 0.07 m`},
	} {
		modeltest.Refuse(t, modeltest.Train, old, c[0]+c[1]+"}", `element "drag": `+c[2])
	}
}
