package fault

import (
	"errors"

	"lockstep/io/sigmap"
	"lockstep/model/driver"
)

// Cycle is a driver that follows a target speed: at each tick it sets inputs of the plant that no bus drives
// from an output of the tick before, as a stimulus would.
type Cycle struct {
	Settings    driver.Settings // Period is that of the tick
	Preview     int64           // Settings.Preview, ns
	Target      sigmap.Waveform // target speed, m/s, from tick 0
	Parked      [][2]int64      // start and end of the soaks, ns
	Speed       int             // output: speed of the vehicle, m/s
	Accelerator Pedal
	Brake       Pedal
	Lever       int // input: 0 park, 1 reverse, 2 neutral, 3 drive; -1: none
}

// Pedal is an input that a pedal moves in its range.
type Pedal struct {
	Input     int
	Low, High float64 // values at the ends of the travel, SI
}

// Drives reports whether the driver sets an input. The Cycle may be nil.
func (c *Cycle) Drives(input int) bool {
	return c != nil && (c.Accelerator.Input == input || c.Brake.Input == input || c.Lever == input)
}

// cycleDriver is a Cycle with its driver.
type cycleDriver struct {
	Cycle  `checkpoint:"-"`
	driver *driver.Driver
	in     driver.Input
	out    driver.Output
}

// addCycle checks a cycle and notes its inputs.
func (s *Set) addCycle(c *Cycle) error {
	d, err := driver.New(c.Settings)
	if err = errors.Join(err, c.Target.Check()); err != nil {
		return err
	}
	if c.Speed < 0 || c.Speed >= s.P {
		return errors.New("the speed is no output of the plant")
	}
	inputs := []int{c.Accelerator.Input, c.Brake.Input}
	if c.Lever >= 0 {
		inputs = append(inputs, c.Lever)
	}
	for _, i := range inputs {
		if err := s.addInput(i); err != nil {
			return err
		}
	}
	s.cycle = &cycleDriver{Cycle: *c, driver: d}
	return nil
}

// stepCycle lets the driver act in the step to tick k; y are the outputs at its start. The outputs before tick 1
// are not known: the vehicle has its target speed there.
//
//go:nosplit
func (s *Set) stepCycle(k int64, y []float64) {
	c := s.cycle
	at := (k - 1) * s.PeriodNs
	c.in.Target, c.in.Ahead = c.Target.Eval(at), c.Target.Eval(at+c.Preview)
	if c.in.Speed = c.in.Target; k > 1 {
		c.in.Speed = y[c.Speed]
	}
	c.in.Parked = at >= c.Target.At[len(c.Target.At)-1]
	for i := range c.Parked {
		if at >= c.Parked[i][0] && at < c.Parked[i][1] {
			c.in.Parked = true
		}
	}
	c.driver.Step(&c.out, &c.in)
}

// set sets the inputs of the driver.
//
//go:nosplit
func (c *cycleDriver) set(u []float64) {
	u[c.Accelerator.Input] = c.Accelerator.at(c.out.Accelerator)
	u[c.Brake.Input] = c.Brake.at(c.out.Brake)
	if c.Lever >= 0 {
		u[c.Lever] = float64(c.out.Lever)
	}
}

// at returns the value of the input at a position of the pedal, 0 to 1.
//
//go:nosplit
func (p *Pedal) at(x float64) float64 { return p.Low + float64((p.High-p.Low)*x) }
