package driver

import (
	"math"
	"testing"
)

// The driver leads a car without side slip to a lane 3 m to the left, and does not allocate.
func TestLaneDriverReachesHisLane(t *testing.T) {
	const h, v, base, ratio = 5e-3, 20.0, 2.7, 16.0
	d, err := NewLane(DefaultLane(h))
	if err != nil {
		t.Fatal(err)
	}
	y, psi, most := 0.0, 0.0, 0.0
	in := LaneInput{Speed: v}
	for range 2000 {
		in.Offset, in.Heading = 3-y, psi
		angle := d.Step(&in)
		psi += h * v / base * math.Tan(angle/ratio)
		y += h * v * math.Sin(psi)
		most = max(most, y)
	}
	if !(math.Abs(y-3) < 0.01) || !(most < 3.5) {
		t.Errorf("at %g m, up to %g m, want 3 m", y, most)
	}
	if n := testing.AllocsPerRun(100, func() { d.Step(&in) }); n != 0 {
		t.Errorf("%g allocations in a step", n)
	}
}

func TestLaneDriverLeavesTheWheelAtStandstillAndWithoutNumbers(t *testing.T) {
	d, err := NewLane(DefaultLane(5e-3))
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []LaneInput{{Offset: 3, Speed: 0.5}, {Offset: math.NaN(), Speed: 20}, {Offset: 3, Speed: math.NaN()}} {
		if angle := d.Step(&in); angle != 0 {
			t.Errorf("%v: turned to %g rad", in, angle)
		}
	}
	if _, err := NewLane(LaneSettings{Period: 5e-3, Preview: math.NaN(), Gain: 45, Rate: 12}); err == nil {
		t.Error("a preview that is no number is taken")
	}
}
