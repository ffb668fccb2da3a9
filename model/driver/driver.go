// Package driver owns a driver: a discrete controller that follows a target speed with the accelerator, the
// brake and the lever of an automatic gearbox.
//
// The driver looks ahead: a proportional-integral controller follows the target, and the slope of the target
// over the preview time is the acceleration that it wants in advance. The driver knows no cycle and no plant:
// its caller gives target and speed at each tick. Step does not allocate, and rounds each product, so the same
// inputs give the same bits on every processor.
package driver

import "fmt"

// Settings are the habits of a driver, and what the driver knows of the vehicle.
type Settings struct {
	Period       float64 // of the ticks, s; > 0
	Preview      float64 // how far the driver looks ahead, s; > 0
	Proportional float64 // acceleration per speed error, 1/s; >= 0
	Integral     float64 // rate of acceleration per speed error, 1/s²; >= 0

	Acceleration float64 // expected acceleration at full accelerator below Knee, m/s²; > 0
	Knee         float64 // speed above which it falls with 1/speed, as at constant power, m/s; > 0
	Deceleration float64 // expected deceleration at full brake, m/s²; > 0

	FootChange float64 // acceleration beyond which the foot changes the pedal, m/s²; >= 0
	PedalRate  float64 // fastest movement of a pedal, full travel per s; > 0
	Hold       float64 // brake pedal at standstill, 0 to 1
	LeverTime  float64 // time per position of the lever, s; >= 0
}

// Default returns the settings of an average driver in a passenger car, for ticks of a period, s.
func Default(period float64) Settings {
	return Settings{
		Period: period, Preview: 0.4, Proportional: 1.5, Integral: 0.3,
		Acceleration: 4, Knee: 12, Deceleration: 8,
		FootChange: 0.1, PedalRate: 5, Hold: 0.3, LeverTime: 0.2,
	}
}

// Limits of the settings.
const (
	MostPeriod  = 1   // s
	MostPreview = 60  // s
	Largest     = 1e6 // of a gain or an acceleration, SI
)

// Check returns an error if a setting is outside of its range; a NaN is.
func (s *Settings) Check() error {
	for _, x := range []struct {
		name  string
		value float64
		min   float64
		above bool // the value is above min, not at it
		max   float64
	}{
		{"the period (s)", s.Period, 0, true, MostPeriod},
		{"the preview time (s)", s.Preview, 0, true, MostPreview},
		{"the proportional gain (1/s)", s.Proportional, 0, false, Largest},
		{"the integral gain (1/s²)", s.Integral, 0, false, Largest},
		{"the acceleration at full accelerator (m/s²)", s.Acceleration, 0, true, Largest},
		{"the speed from which acceleration falls (m/s)", s.Knee, 0, true, Largest},
		{"the deceleration at full brake (m/s²)", s.Deceleration, 0, true, Largest},
		{"the acceleration at which the foot changes (m/s²)", s.FootChange, 0, false, Largest},
		{"the rate of a pedal (1/s)", s.PedalRate, 0, true, Largest},
		{"the brake at standstill", s.Hold, 0, false, 1},
		{"the time per position of the lever (s)", s.LeverTime, 0, false, 60},
	} {
		if !(x.value >= x.min && x.value <= x.max) || x.above && x.value == x.min {
			from := ""
			if x.above {
				from = "above "
			}
			return fmt.Errorf("driver: %s is %g, want %s%g to %g", x.name, x.value, from, x.min, x.max)
		}
	}
	return nil
}

// Lever is a position of the lever of an automatic gearbox.
type Lever uint8

// The positions of the lever, in the order of the gate.
const (
	Park Lever = iota
	Reverse
	Neutral
	Drive
)

func (l Lever) String() string { return "PRND"[min(l, Drive) : min(l, Drive)+1] }

// Input is what the driver sees at a tick.
type Input struct {
	Target float64 // target speed now, m/s; negative: backwards
	Ahead  float64 // target speed after the preview time, m/s
	Speed  float64 // speed of the vehicle, m/s
	Parked bool    // the lever belongs in park: a soak, or the end of the cycle
}

// Output is what the driver does until the next tick.
type Output struct {
	Accelerator float64 // pedal, 0 to 1
	Brake       float64 // pedal, 0 to 1
	Lever       Lever
}

// Driver is a driver at work. New makes one that stands on the brake, in park.
type Driver struct {
	s        Settings
	out      Output
	integral float64 // of the controller, m/s²
	braking  bool    // the foot is at the brake
	holding  bool    // the driver holds the vehicle at standstill
	moved    float64 // time since the last movement of the lever, s
}

// Still is the speed below which the driver takes the vehicle as standing, m/s.
const Still = 0.2

// New returns a driver in park, with the foot on the brake.
func New(s Settings) (*Driver, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &Driver{s: s, out: Output{Brake: s.Hold, Lever: Park}, braking: true, holding: true}, nil
}

// Step advances the driver by a tick. A speed or a target that is NaN makes the driver brake.
//
//go:nosplit
func (d *Driver) Step(out *Output, in *Input) {
	target, ahead, v := in.Target, in.Ahead, in.Speed
	wanted := Drive
	switch {
	case in.Parked:
		wanted = Park
	case target < 0 || target == 0 && ahead < 0:
		wanted = Reverse
	}
	if d.out.Lever == Reverse { // backwards is forwards
		target, ahead, v = -target, -ahead, -v
	}

	d.updateHold(target, ahead, v, wanted)
	if d.holding {
		d.moveLever(wanted, v)
		d.hold()
	} else {
		d.control(target, ahead, v)
	}
	*out = d.out
}

// updateHold decides whether the driver holds the vehicle at standstill.
//
//go:nosplit
func (d *Driver) updateHold(target, ahead, v float64, wanted Lever) {
	switch {
	case !(target-target == 0 && ahead-ahead == 0 && v-v == 0): // not finite
		d.holding = true
	case d.holding:
		d.holding = !(ahead > 0 && wanted == d.out.Lever)
	default:
		d.holding = target <= 0 && ahead <= 0 && v < Still
	}
}

// hold takes the foot from the accelerator and holds the brake.
//
//go:nosplit
func (d *Driver) hold() {
	d.integral, d.braking = 0, true
	d.movePedals(0, d.s.Hold)
}

// moveLever moves the lever by one position towards the wanted one, at standstill and with the brake on.
//
//go:nosplit
func (d *Driver) moveLever(wanted Lever, v float64) {
	d.moved += d.s.Period
	if !(v < Still && v > -Still) || d.out.Brake < d.s.Hold || d.moved < d.s.LeverTime {
		return
	}
	switch {
	case d.out.Lever < wanted:
		d.out.Lever++
		d.moved = 0
	case d.out.Lever > wanted:
		d.out.Lever--
		d.moved = 0
	}
}

// control follows the target with the pedals.
//
//go:nosplit
func (d *Driver) control(target, ahead, v float64) {
	s := &d.s
	e := target - v
	wanted := (ahead-target)/s.Preview + float64(s.Proportional*e) + d.integral // acceleration, m/s²
	full := s.Acceleration
	if v > s.Knee {
		full = float64(full*s.Knee) / v
	}

	// anti-windup: the integrator stands while its error asks for more than a pedal can give
	saturated := wanted >= full && e > 0 || wanted <= -s.Deceleration && e < 0
	if !saturated {
		limit := s.Acceleration
		d.integral = min(max(d.integral+float64(float64(s.Integral*e)*s.Period), -limit), limit)
	}

	if d.braking && wanted > s.FootChange || !d.braking && wanted < -s.FootChange {
		d.braking = !d.braking
	}
	if d.braking {
		d.movePedals(0, min(max(-wanted/s.Deceleration, 0), 1))
	} else {
		d.movePedals(min(max(wanted/full, 0), 1), 0)
	}
}

// movePedals moves the pedals towards their positions as fast as the foot can. The foot presses the brake only when
// it has left the accelerator; at a launch it leaves the brake while the accelerator is pressed, as a hill holder does.
//
//go:nosplit
func (d *Driver) movePedals(accelerator, brake float64) {
	step := float64(d.s.PedalRate * d.s.Period)
	d.out.Accelerator = towards(d.out.Accelerator, accelerator, step)
	if d.out.Accelerator > 0 {
		brake = min(brake, d.out.Brake)
	}
	d.out.Brake = towards(d.out.Brake, brake, step)
}

// towards returns x moved to a value by at most step.
//
//go:nosplit
func towards(x, to, step float64) float64 { return min(max(to, x-step), x+step) }
