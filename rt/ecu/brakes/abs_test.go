package brakes

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// wheelFrame packs WheelSpeeds, rad/s; chassisFrame packs Chassis, bar.
func wheelFrame(w [4]float64, counter uint8) can.Frame {
	word := uint64(counter&15) << 60
	for i, v := range w {
		word |= uint64(int64(math.RoundToEven(v/wheelBit))&0x7FFF) << (15 * i)
	}
	return absFrame(idWheelSpeeds, word)
}

func chassisFrame(bar float64, counter uint8) can.Frame {
	return absFrame(idChassis, uint64(math.RoundToEven(bar/absBar))|uint64(counter&15)<<60)
}

func absFrame(id uint32, word uint64) can.Frame {
	f := can.Frame{ID: id, Length: 8}
	binary.LittleEndian.PutUint64(f.Data[:], word)
	return f
}

// absRig is the unit in a car of 1500 kg with load transfer to the front: wheels of 1 kg.m2, a road
// with its peak friction at a slip of 0.15, calipers with orifices and a spring.
type absRig struct {
	t        *testing.T
	u        *unittest.Unit
	line     *unittest.Line
	log      bytes.Buffer
	k        int
	road     [4]float64
	pedal    float64
	v, a     float64
	w, bar   [4]float64
	in, out  [4]float64
	deepest  float64 // slip of any wheel above 5 m/s
	distance float64
	away     bool // no frame in either direction
}

func newAbsRig(t *testing.T, v, road float64) *absRig {
	t.Helper()
	g := &absRig{t: t, line: &unittest.Line{T: t}, v: v, road: [4]float64{road, road, road, road}}
	for i := range g.w {
		g.w[i] = v / absRadius
	}
	g.u = newUnit(t, "abs", g.line, &g.log)
	return g
}

// cycle steps the car and the bus by 5 ms.
func (g *absRig) cycle() {
	g.t.Helper()
	for range 50 {
		g.euler(1e-4)
	}
	g.k++
	g.line.Now = time.Duration(g.k) * brakeCycle
	if g.away {
		return
	}
	g.u.Receive(unittest.Pack(g.t, wheelFrame(g.w, uint8(g.k-1))), g.line.Now-1)
	g.u.Receive(unittest.Pack(g.t, chassisFrame(g.pedal, uint8(g.k-1))), g.line.Now-1)
	read := len(g.line.All)
	if err := g.u.Tick(g.line.Now); err != nil {
		g.t.Fatal(err)
	}
	for _, f := range g.line.All[read:] {
		first := 2 * int(f.ID-idAbsFront)
		for i := range 2 {
			g.in[first+i] = float64(unit.Bits(&f, 20*i, 10)) * absShare
			g.out[first+i] = float64(unit.Bits(&f, 20*i+10, 10)) * absShare
		}
	}
}

func (g *absRig) euler(h float64) {
	sum, shift := 0.0, -g.a*1500*0.55/2.7/2
	for i := range g.w {
		slip := 0.0
		if g.v > 0.1 {
			slip = 1 - g.w[i]*absRadius/g.v
		}
		f := [2]float64{4087 + shift, 3270 - shift}[i/2] * g.road[i] * math.Sin(1.6*math.Atan(slip/0.15*1.5))
		torque := [2]float64{25, 8}[i/2] * g.bar[i]
		g.w[i] = max(0, g.w[i]+h*(f*absRadius-torque))
		flow := 130*(1-g.in[i])*math.Copysign(math.Sqrt(math.Abs(g.pedal-g.bar[i])), g.pedal-g.bar[i]) - 130*g.out[i]*math.Sqrt(g.bar[i])
		g.bar[i] = max(0, g.bar[i]+h*flow)
		sum += f
		if g.v > 5 {
			g.deepest = max(g.deepest, slip)
		}
	}
	g.a = -sum / 1500
	g.v = max(0, g.v+h*g.a)
	g.distance += h * g.v
}

func TestAbsKeepsWheelsTurningOnEveryRoad(t *testing.T) {
	for _, road := range []float64{1, 0.6, 0.3, 0.1} {
		g := newAbsRig(t, 28, road)
		for range 20 {
			g.cycle()
		}
		g.pedal, g.distance = 150, 0
		for range 8000 {
			if g.cycle(); g.v < 1 {
				break
			}
		}
		best := 28 * 28 / 2 / (9.81 * road)
		t.Logf("road %g: deepest slip %.2f, %.1f m, %.3f of the shortest", road, g.deepest, g.distance, g.distance/best)
		if list := g.u.Law.(*abs).Memory.Stored(); len(list) != 0 {
			t.Errorf("road %g: codes %v of a stop without a fault", road, list)
		}
		if !(g.v < 1) || !(g.deepest < 0.35) || !(g.distance < 1.08*best) {
			t.Errorf("road %g: slip up to %g, %g m to %g m/s; the shortest are %g m\n%s", road, g.deepest, g.distance, g.v, best, &g.log)
		}
	}
}

// With a light pedal the caliper has the full pedal pressure before the wheel slips: on ice from the
// start, and on a patch of ice.
func TestAbsHoldsWheelsUnderALightPedal(t *testing.T) {
	for _, c := range []struct{ pedal, before float64 }{{15, 0.1}, {30, 0.1}, {40, 1}} {
		g := newAbsRig(t, 28, c.before)
		for range 20 {
			g.cycle()
		}
		g.pedal = c.pedal
		for k := range 1000 {
			if k == 100 {
				g.road = [4]float64{0.1, 0.1, 0.1, 0.1}
			}
			g.cycle()
		}
		if !(g.deepest < 0.45) || !(g.v < 25) {
			t.Errorf("pedal %g bar: slip up to %g at %g m/s", c.pedal, g.deepest, g.v)
		}
	}
}

func TestAbsDoesNotActWhereNoWheelSlips(t *testing.T) {
	g := newAbsRig(t, 28, 1)
	for i := range 400 {
		g.pedal = 20
		if g.cycle(); g.in != [4]float64{} || g.out != [4]float64{} {
			t.Fatalf("cycle %d: inlets %v, outlets %v", i, g.in, g.out)
		}
	}
	u := g.u.Law.(*abs)
	for i, w := range u.wheels {
		if w.cycles != 0 || u.stops != 0 {
			t.Errorf("wheel %s: %d cycles in control, %d stops, want none", absNames[i], w.cycles, u.stops)
		}
	}
}

// On a split road each front wheel reaches its own pressure within half a second. The rear wheels get the
// pressure of the one with less grip, and a slowly growing difference.
func TestAbsLimitsTheDifferenceOfTheRearBrakes(t *testing.T) {
	g := newAbsRig(t, 28, 1)
	g.road[0], g.road[2] = 0.1, 0.1
	g.pedal = 150
	for k := range 400 {
		g.cycle()
		at := float64(k) * brakeCycle.Seconds()
		if k > 20 && !(g.bar[3] < 40+65*at) {
			t.Fatalf("the rear brakes have %.1f bar after %.2f s", g.bar[2:], at)
		}
		if k == 100 && !(g.bar[1] > 40 && g.bar[0] < 12) {
			t.Errorf("after %.2f s %.1f bar", at, g.bar)
		}
	}
	if !(g.bar[3] > 75) || !(g.deepest < 0.5) {
		t.Errorf("pressures %.1f bar, slip up to %.2f", g.bar, g.deepest)
	}
}

// A slow lab pauses the unit: for 25 ms at a time it neither sends nor receives. Still no wheel locks,
// and the stopping distance is about the same.
func TestAbsToleratesAPauseOf25ms(t *testing.T) {
	for _, road := range []float64{1, 0.7, 0.1} {
		g := newAbsRig(t, 28, road)
		for range 20 {
			g.cycle()
		}
		g.pedal, g.distance = 150, 0
		for k := range 8000 {
			if g.away = k%80 >= 75; g.v < 1 {
				break
			}
			g.cycle()
		}
		best := 28 * 28 / 2 / (9.81 * road)
		t.Logf("road %g: deepest slip %.2f, %.3f of the shortest", road, g.deepest, g.distance/best)
		if !(g.v < 1) || !(g.deepest < 0.6) || !(g.distance < 1.09*best) {
			t.Errorf("road %g: slip up to %g, %g m to %g m/s; the shortest are %g m", road, g.deepest, g.distance, g.v, best)
		}
	}
}

// A lost or late frame must not look like a sudden change of speed.
func TestAbsWorksWithLostAndLateFrames(t *testing.T) {
	g := newAbsRig(t, 28, 1)
	g.pedal = 25
	counter := uint8(0)
	for k := range 400 {
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
		g.u.Receive(unittest.Pack(t, wheelFrame(g.w, counter)), at)
		g.u.Receive(unittest.Pack(t, chassisFrame(g.pedal, counter)), at)
		counter++
		if k%20 >= 9 {
			if err := g.u.Tick(now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if u := g.u.Law.(*abs); u.stops != 0 || u.Counts.Lost == 0 {
		t.Errorf("%d stops, %d frames lost; want none, and some", u.stops, u.Counts.Lost)
	}
}

func TestAbsFallsAsleepWithoutWheelSpeeds(t *testing.T) {
	g := newAbsRig(t, 28, 1)
	for range 10 {
		g.cycle()
	}
	sentSoFar := len(g.line.All)
	if err := g.u.Tick(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if n := len(g.line.All) - sentSoFar; n != 2*199 {
		t.Errorf("%d frames after the last WheelSpeeds, want those of a second, from the next cycle on", n)
	}
	if !strings.Contains(g.log.String(), "no WheelSpeeds (0x1A0) for 1s") {
		t.Error(g.log.String())
	}
	for i, f := range g.line.All {
		if want := uint8(i / 2 % 16); f.Data[7]>>4 != want || f.ID != idAbsFront+uint32(i%2) || f.Length != 8 {
			t.Fatalf("frame %d: 0x%X, counter %d", i, f.ID, f.Data[7]>>4)
		}
	}
}

func TestAbsCountsShortFrames(t *testing.T) {
	g := newAbsRig(t, 28, 1)
	f := wheelFrame(g.w, 0)
	f.Length = 7
	g.u.Receive(unittest.Pack(t, f), 0)
	if got := g.u.Counts; got != (unit.Counts{Received: 1, Malformed: 1}) {
		t.Errorf("%v; want 1 frame received and malformed", got)
	}
}
