package driver

import "fmt"

// LaneSettings are the habits of a driver who steers along a path.
type LaneSettings struct {
	Period   float64 // of the ticks, s; > 0
	Preview  float64 // how far ahead the driver aims, s; > 0
	Gain     float64 // angle of the steering wheel per curvature, rad·m: ratio times wheelbase; > 0
	Reaction float64 // time constant of the hands, s; >= 0
	Rate     float64 // fastest turn of the steering wheel, rad/s; > 0
}

// DefaultLane returns the settings of an average driver in a passenger car, for ticks of a period, s.
func DefaultLane(period float64) LaneSettings {
	return LaneSettings{Period: period, Preview: 0.7, Gain: 45, Reaction: 0.1, Rate: 12}
}

// Check returns an error if a setting is outside of its range; a NaN is.
func (s *LaneSettings) Check() error {
	for _, x := range []struct {
		name            string
		value, low, top float64
	}{
		{"period (s)", s.Period, 1e-6, 1},
		{"preview (s)", s.Preview, 0.1, 10},
		{"gain (rad.m)", s.Gain, 0.1, 1e4},
		{"reaction (s)", s.Reaction, 0, 5},
		{"rate (rad/s)", s.Rate, 0.1, 100},
	} {
		if !(x.value >= x.low && x.value <= x.top) {
			return fmt.Errorf("driver: %s of the lane is %g, want %g to %g", x.name, x.value, x.low, x.top)
		}
	}
	return nil
}

// LaneInput is what the driver sees of the lane at a tick.
type LaneInput struct {
	Offset  float64 // from the car to the path ahead, to the left, m
	Heading float64 // of the car against the direction of the lane, to the left, rad
	Speed   float64 // m/s
}

// Lane is a driver who steers: he aims at a point of the path and turns the wheel for the circle that leads there. New
// begins straight ahead.
type Lane struct {
	s     LaneSettings
	angle float64 // of the steering wheel, to the left, rad
}

// NewLane returns a driver who steers.
func NewLane(s LaneSettings) (*Lane, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &Lane{s: s}, nil
}

// laneStill is the speed below which the driver leaves the steering wheel alone, m/s.
const laneStill = 1.0

// Step advances the driver by a tick and returns the angle of the steering wheel, to the left, rad. Values that are not
// numbers leave the wheel where it is, as standstill does.
//
//go:nosplit
func (d *Lane) Step(in *LaneInput) float64 {
	if !(in.Speed > laneStill) {
		return d.angle
	}
	ahead := float64(max(in.Speed, 2) * d.s.Preview)
	h := min(max(in.Heading, -1.5), 1.5)
	aside := in.Offset - float64(ahead*(h-float64(float64(h*h)*h)/6)) // sine
	want := float64(d.s.Gain*2*aside) / float64(ahead*ahead)
	move := float64((want - d.angle) * min(d.s.Period/max(d.s.Reaction, d.s.Period), 1))
	most := float64(d.s.Rate * d.s.Period)
	if move == move {
		d.angle += min(max(move, -most), most)
	}
	return d.angle
}
