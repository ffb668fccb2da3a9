package fault

import (
	"errors"

	"lockstep/model/driver"
)

// maxPath bounds the points of a path, and so the search in the tick.
const maxPath = 64

// Lane is a driver who steers along a path: at each tick the driver sets an input of the plant that no bus drives from
// outputs of the tick before.
type Lane struct {
	Settings driver.LaneSettings // Period is that of the tick
	Steer    Pedal               // angle of the steering wheel, to the left
	X, Y     int                 // outputs: position along and across the lane, m
	Heading  int                 // output: to the left, rad
	Speed    int                 // output, m/s
	PathX    []float64           // m, rising; at most maxPath
	PathY    []float64           // m
}

// Drives reports whether the driver sets an input. The Lane may be nil.
func (l *Lane) Drives(input int) bool { return l != nil && l.Steer.Input == input }

// laneDriver is a Lane with its driver.
type laneDriver struct {
	Lane   `checkpoint:"-"`
	driver *driver.Lane
	in     driver.LaneInput
	angle  float64
}

// addLane checks a lane and notes its input.
func (s *Set) addLane(l *Lane) error {
	d, err := driver.NewLane(l.Settings)
	if err != nil {
		return err
	}
	for _, i := range []int{l.X, l.Y, l.Heading, l.Speed} {
		if i < 0 || i >= s.P {
			return errors.New("it reads what is no output of the plant")
		}
	}
	if n := len(l.PathX); n == 0 || n > maxPath || n != len(l.PathY) {
		return errors.New("the path needs 1 to 64 points")
	}
	for i := range l.PathX[1:] {
		if !(l.PathX[i+1] > l.PathX[i]) {
			return errors.New("the path does not rise along the lane")
		}
	}
	if err := s.addInput(l.Steer.Input); err != nil {
		return err
	}
	s.lane = &laneDriver{Lane: *l, driver: d}
	return nil
}

// stepLane lets the driver act in the step to tick k; y are the outputs at its start. Before tick 1 they are not known:
// the wheel is straight.
//
//go:nosplit
func (s *Set) stepLane(k int64, y []float64) {
	l := s.lane
	if k <= 1 {
		return
	}
	l.in.Heading, l.in.Speed = y[l.Heading], y[l.Speed]
	l.in.Offset = l.pathAt(y[l.X]+float64(max(l.in.Speed, 2)*l.Settings.Preview)) - y[l.Y]
	l.angle = l.driver.Step(&l.in)
}

// pathAt returns the place of the path across the lane, straight between its points and constant outside.
//
//go:nosplit
func (l *laneDriver) pathAt(x float64) float64 {
	n := len(l.PathX)
	if !(x > l.PathX[0]) {
		return l.PathY[0]
	}
	for i := 1; i < n; i++ {
		if x < l.PathX[i] {
			return l.PathY[i-1] + float64((l.PathY[i]-l.PathY[i-1])*((x-l.PathX[i-1])/(l.PathX[i]-l.PathX[i-1])))
		}
	}
	return l.PathY[n-1]
}

// set sets the input of the driver.
//
//go:nosplit
func (l *laneDriver) set(u []float64) {
	u[l.Steer.Input] = min(max(l.angle, l.Steer.Low), l.Steer.High)
}
