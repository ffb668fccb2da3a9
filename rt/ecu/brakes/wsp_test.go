package brakes

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// axleFrame packs AxleSpeeds, rad/s; demandFrame packs BrakeDemand, bar.
func axleFrame(w [4]float64, counter uint8) can.Frame {
	f := wheelFrame(w, counter)
	f.ID = idAxleSpeeds
	return f
}

func demandFrame(bar float64, counter uint8) can.Frame {
	return absFrame(idDemand, uint64(math.RoundToEven(bar/wspBar))|uint64(counter&15)<<60)
}

// wspRig is the unit in a train of four wheelsets of 11 t. The adhesion peaks at a creep of 0.3 m/s and
// falls to half; the valves react after 20 ms.
type wspRig struct {
	t        *testing.T
	u        *unittest.Unit
	line     *unittest.Line
	log      bytes.Buffer
	k        int
	rail     [4]float64 // largest adhesion
	demand   float64    // bar
	v        float64    // m/s
	rim, bar [4]float64 // m/s and bar
	valves   [5]uint8   // hold and vent of the axles, the latest first
	deepest  float64    // slip above 5 m/s, share of the speed
	distance float64
}

func newWspRig(t *testing.T, v, rail float64) *wspRig {
	t.Helper()
	g := &wspRig{t: t, line: &unittest.Line{T: t}, v: v, rail: [4]float64{rail, rail, rail, rail}, rim: [4]float64{v, v, v, v}}
	g.u = newUnit(t, "wsp", g.line, &g.log)
	return g
}

// cycle steps the train and the bus by 5 ms.
func (g *wspRig) cycle() {
	g.t.Helper()
	for range 50 {
		g.euler(1e-4)
	}
	g.k++
	g.line.Now = time.Duration(g.k) * brakeCycle
	g.sendInputs(uint8(g.k-1), g.line.Now-1)
	read := len(g.line.All)
	if err := g.u.Tick(g.line.Now); err != nil {
		g.t.Fatal(err)
	}
	copy(g.valves[1:], g.valves[:4])
	for _, f := range g.line.All[read:] {
		g.valves[0] = f.Data[0]
	}
}

// sendInputs sends the two frames.
func (g *wspRig) sendInputs(counter uint8, now time.Duration) {
	var w [4]float64
	for i, v := range g.rim {
		w[i] = v / wspRadius
	}
	g.u.Receive(unittest.Pack(g.t, axleFrame(w, counter)), now)
	g.u.Receive(unittest.Pack(g.t, demandFrame(g.demand, counter)), now)
}

func (g *wspRig) euler(h float64) {
	sum := 0.0
	for i := range g.rim {
		slip := g.v - g.rim[i]
		grip := min(1, slip/0.3) * (0.5 + 0.5*math.Exp(-max(0, slip-0.3)/4))
		f := 108e3 * g.rail[i] * grip
		g.rim[i] = max(0, g.rim[i]+h*(f-7.4e3*g.bar[i])/470)
		switch g.valves[4] >> (2 * i) & 3 {
		case 0:
			g.bar[i] += h * (g.demand - g.bar[i]) / 0.4
		case 3:
			g.bar[i] -= h * g.bar[i] / 0.2
		}
		if sum += f; g.v > 5 {
			g.deepest = max(g.deepest, slip/g.v)
		}
	}
	g.v = max(0, g.v-h*sum/44e3)
	g.distance += h * g.v
}

func TestWspKeepsAxlesTurningOnEveryRail(t *testing.T) {
	for _, rail := range []float64{0.2, 0.12, 0.08, 0.05, 0.03} {
		g := newWspRig(t, 28, rail)
		for range 20 {
			g.cycle()
		}
		g.demand, g.distance = 3.8, 0
		for range 40000 {
			if g.cycle(); g.v < 2 {
				break
			}
		}
		best := (28*28 - 2*2) / (2 * rail * 108e3 * 4 / 44e3)
		t.Logf("rail %g: deepest slip %.2f, %.1f m, %.3f of the shortest", rail, g.deepest, g.distance, g.distance/best)
		if !(g.v < 2) || !(g.deepest < 0.3) || !(g.distance < 1.15*best) {
			t.Errorf("rail %g: slip up to %g, %g m to %g m/s; the shortest are %g m\n%s", rail, g.deepest, g.distance, g.v, best, &g.log)
		}
	}
}

// After a change from ice to dry rail, the unit measures the deceleration of the train again.
func TestWspUsesTheAdhesionOfTheRail(t *testing.T) {
	g := newWspRig(t, 40, 0.2)
	for range 20 {
		g.cycle()
	}
	g.demand = 3.8
	for stretch, rail := range []float64{0.2, 0.04, 0.2, 0.03, 0.15} {
		g.rail = [4]float64{rail, rail, rail, rail}
		for range 500 { // to find it out
			g.cycle()
		}
		before := g.v
		for range 300 {
			g.cycle()
		}
		share := (before - g.v) / 1.5 / (rail * 108e3 * 4 / 44e3)
		t.Logf("rail %g: %.2f of what it holds, slip up to %.2f", rail, share, g.deepest)
		if !(share > 0.75) || !(g.deepest < 0.35) {
			t.Errorf("stretch %d: rail %g: %g of what it holds, slip up to %g\n%s", stretch, rail, share, g.deepest, &g.log)
		}
	}
}

func TestWspDoesNotActWhereNoAxleSlides(t *testing.T) {
	g := newWspRig(t, 28, 0.2)
	for range 800 {
		g.demand = 2.5
		if g.cycle(); g.valves[0] != 0 {
			t.Fatalf("cycle %d: valves %08b", g.k, g.valves[0])
		}
	}
	u := g.u.Law.(*wsp)
	for i, a := range u.axles {
		if a.releases != 0 || u.stops != 0 {
			t.Errorf("axle %d: let go %d times, %d stops, want none", i+1, a.releases, u.stops)
		}
	}
}

// One axle on ice, the others on dry rail: only that one is released.
func TestWspReleasesOnlyTheSlidingAxle(t *testing.T) {
	g := newWspRig(t, 28, 0.2)
	g.rail[2] = 0.03
	g.demand = 2
	for range 800 {
		g.cycle()
	}
	u := g.u.Law.(*wsp)
	if u.axles[0].releases != 0 || u.axles[1].releases != 0 || u.axles[3].releases != 0 || !(g.bar[2] < 1) || !(g.bar[0] > 1.9) {
		t.Errorf("%s; pressures %.2f bar", g.u.Close(), g.bar)
	}
}

func TestWspOpensAllValvesWhenTheBrakeIsReleased(t *testing.T) {
	g := newWspRig(t, 28, 0.05)
	g.demand = 3.8
	seen := false
	for range 400 {
		g.cycle()
		seen = seen || g.valves[0] != 0
	}
	g.demand = 0
	if g.cycle(); !seen || g.valves[0] != 0 {
		t.Errorf("valves %08b, in use before: %v", g.valves[0], seen)
	}
}

// A vented cylinder is closed off from its supply. A valve keeps its position for 20 ms, unless an axle
// slides.
func TestWspNeverVentsAnOpenCylinder(t *testing.T) {
	g := newWspRig(t, 28, 0.05)
	g.demand = 3.8
	var states []uint8
	for range 2000 {
		g.cycle()
		for i := range 4 {
			states = append(states, g.valves[0]>>(2*i)&3)
		}
	}
	for _, want := range []uint8{0, 1, 3} {
		if !slices.Contains(states, want) {
			t.Errorf("no axle is ever in state %d", want)
		}
	}
	if slices.Contains(states, 2) {
		t.Error("vented and open to its supply")
	}
}

// A lost or late frame must not look like a sliding axle.
func TestWspWorksWithLostAndLateFrames(t *testing.T) {
	g := newWspRig(t, 28, 0.2)
	g.demand = 2.5
	counter := uint8(0)
	for k := range 600 {
		for range 50 {
			g.euler(1e-4)
		}
		now := time.Duration(k+1) * brakeCycle
		if g.line.Now = now; k%7 == 3 {
			counter++ // lost
			continue
		}
		at := now - 1
		if k%20 < 10 {
			at = time.Duration(k/20*20+10)*brakeCycle - 1 // all at once
		}
		g.sendInputs(counter, at)
		counter++
		if k%20 >= 9 {
			if err := g.u.Tick(now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if u := g.u.Law.(*wsp); u.stops != 0 || u.Counts.Lost == 0 {
		t.Errorf("%d stops, %d frames lost; want none, and some", u.stops, u.Counts.Lost)
	}
}

func TestWspFallsAsleepWithoutAxleSpeeds(t *testing.T) {
	g := newWspRig(t, 28, 0.2)
	for range 10 {
		g.cycle()
	}
	sentSoFar := len(g.line.All)
	if err := g.u.Tick(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if n := len(g.line.All) - sentSoFar; n != 199 {
		t.Errorf("%d frames after the last AxleSpeeds, want those of a second, from the next cycle on", n)
	}
	if g.u.Law.(*wsp).Awake {
		t.Errorf("the unit is awake:\n%s", &g.log)
	}
	for i, f := range g.line.All {
		if want := uint8(i % 16); f.Data[7]>>4 != want || f.ID != idValves || f.Length != 8 {
			t.Fatalf("frame %d: 0x%X, counter %d", i, f.ID, f.Data[7]>>4)
		}
	}
}

func TestWspCountsShortFrames(t *testing.T) {
	g := newWspRig(t, 28, 0.2)
	f := axleFrame([4]float64{}, 0)
	f.Length = 7
	g.u.Receive(unittest.Pack(t, f), 0)
	if got := g.u.Counts; got != (unit.Counts{Received: 1, Malformed: 1}) {
		t.Errorf("%v; want 1 frame received and malformed", got)
	}
}
