package brakes

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
)

// geared is a wheel of radius 0.3 m with a sensor ring of 48 teeth.
type geared struct {
	angle func(t float64) float64 // rad
	count int64
	last  float64 // s, of the latest edge
	at    float64
}

const pitchAngle = 2 * math.Pi / 48

// frame advances the wheel by 5 ms and returns the frame of its edges.
func (g *geared) frame() *can.Frame {
	const h = 1e-6
	for range 5000 {
		if math.Floor(g.angle(g.at)/pitchAngle) != math.Floor(g.angle(g.at+h)/pitchAngle) {
			g.count++
			g.last = g.at + h
		}
		g.at += h
	}
	age := min(math.RoundToEven((g.at-g.last)/edgeBit), 65535)
	f := absFrame(idPulsesFront, uint64(uint8(g.count))|uint64(age)<<8)
	return &f
}

// Edge counts wrap, and ages end at 65.535 ms. The speed is the mean since the previous edge, 0 at rest,
// and positive in both directions.
func TestSensorComputesSpeedFromEdges(t *testing.T) {
	// 3 s at 40 rad/s and more, 1 s to rest, 0.5 s of rest, 1.5 s backwards.
	speed := func(at float64) float64 {
		switch {
		case at < 3:
			return 40 + 10*at
		case at < 4:
			return 70 * (4 - at)
		case at < 4.5:
			return 0
		}
		return -20 * (at - 4.5)
	}
	angle := func(at float64) float64 {
		a := min(at, 3)
		phi := 40*a + 5*a*a
		b := min(max(at-3, 0), 1)
		phi += 70*b - 35*b*b
		c := max(at-4.5, 0)
		return phi - 10*c*c
	}
	g := &geared{angle: angle}
	s := newSensors(0.3, 48, 1)
	rest, wraps := 0, uint8(0)
	for k := range 1200 {
		s.pairs[0].now = float64(k+1) * brakeCycle.Seconds()
		before := s.wheel[0].n
		s.updateEdges(g.frame(), 0)
		w := &s.wheel[0]
		if w.n < before {
			wraps++
		}
		switch at := s.pairs[0].now; {
		case at < 0.02: // no two edges were seen yet
		case at > 4.1 && at < 4.5:
			if rest++; w.v != 0 {
				t.Fatalf("at %.3f s %g m/s, and it stands", at, w.v)
			}
		case math.Abs(speed(at)) > 10:
			if want := 0.3 * math.Abs(speed(w.mid)); !scalar.EqualWithinAbs(w.v, want, 0.3*pitchAngle*2e-6/25e-6+0.005) {
				t.Fatalf("at %.3f s %g m/s, want %g", at, w.v, want)
			}
		}
	}
	if wraps < 3 || rest < 70 {
		t.Errorf("%d wraps, %d frames at rest", wraps, rest)
	}
}

// A restarted bench counts from 0, which must not look like a speed.
func TestSensorToleratesARestartedCount(t *testing.T) {
	g := &geared{angle: func(at float64) float64 { return 90 * at }}
	s := newSensors(0.3, 48, 1)
	for k := range 100 {
		if s.pairs[0].now += brakeCycle.Seconds(); k == 50 {
			g.count = 0
		}
		s.updateEdges(g.frame(), 0)
		if v := s.wheel[0].v; k > 2 && !(math.Abs(v-27) < 0.1) {
			t.Fatalf("frame %d: %g m/s", k, v)
		}
	}
}

// After a gap in which the counter has wrapped, the wheel must not seem to jump.
func TestSensorToleratesALongGap(t *testing.T) {
	g := &geared{angle: func(at float64) float64 { return 90 * at }}
	s := newSensors(0.3, 48, 1)
	d := brake{Base: &unit.Base{}}
	for k := range 100 {
		f := g.frame()
		f.Data[7] |= uint8(k&15) << 4
		if k > 40 && k < 58 { // 17 missing look like 1
			continue
		}
		d.updateClock(&s.pairs[0], f, time.Unix(0, 0).Add(time.Duration(k)*brakeCycle))
		s.updateEdges(f, 0)
		if v := s.wheel[0].v; k > 2 && !(math.Abs(v-27) < 0.1) {
			t.Fatalf("frame %d: %g m/s", k, v)
		}
	}
}

// The time since the last edge bounds the speed of a locking wheel; without edges the wheel stands.
func TestSensorDetectsALockedWheel(t *testing.T) {
	g := &geared{angle: func(at float64) float64 { return 60 * min(at, 0.1) }}
	s := newSensors(0.3, 48, 1)
	for range 36 {
		s.pairs[0].now += brakeCycle.Seconds()
		s.updateEdges(g.frame(), 0)
		if late := s.pairs[0].now - 0.1; !(late <= 0.005) && !(s.wheel[0].v <= 0.3*pitchAngle/late) {
			t.Fatalf("%g m/s %g s after it locked", s.wheel[0].v, late)
		}
	}
	if v := s.wheel[0].v; v != 0 {
		t.Errorf("%g m/s at the end", v)
	}
}

// Speed values are ignored while edges of the same wheels come.
func TestSensorUsesSpeedValuesWithoutEdges(t *testing.T) {
	g := &geared{angle: func(at float64) float64 { return 50 * at }}
	s := newSensors(0.3, 48, 1)
	for k := range 100 {
		s.values.now += brakeCycle.Seconds()
		s.updateSpeeds([4]float64{10, 10, 10, 10})
		if k >= 10 && k < 60 {
			s.pairs[0].now = s.values.now
			s.updateEdges(g.frame(), 0)
		}
		want := 10.0
		if k >= 13 && k < 60+maxIdleCycles {
			want = 15
		}
		if (k < 10 || k >= 13) && !(math.Abs(s.wheel[0].v-want) < 0.05) {
			t.Fatalf("cycle %d: %g m/s, want %g", k, s.wheel[0].v, want)
		}
	}
}
