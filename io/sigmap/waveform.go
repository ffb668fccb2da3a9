package sigmap

import (
	"fmt"
	"math"
)

// Waveform is a value over time, linear between points. Before the first point it has the
// first value, after the last point the last value. Two points at the same time are a
// jump to the later value.
type Waveform struct {
	At     []int64   `checkpoint:"-"` // times of the points, ns, >= 0, not decreasing
	Value  []float64 `checkpoint:"-"` // values of the points, as many as At
	Period int64     // period of repetition, ns; 0: no repetition
	Whole  bool      // Raw has the constant value: a float64 is not exact beyond 2^53
	Raw    uint64    // raw bits of the value

	Held      bool    // the value is HeldValue at all times: it was set during the run
	HeldValue float64 // finite
	HeldWhole bool    // HeldRaw has the value: a float64 is not exact beyond 2^53
	HeldRaw   uint64  // raw bits of the value
}

// maxPoints limits the points of a waveform.
const maxPoints = 1 << 16

// Sine returns mean + amplitude·sin(2π·frequency·t) as 1024 lines per period, with an error
// below 5e-6 of the amplitude. frequency is in Hz, > 0.
func Sine(mean, amplitude, frequency float64) *Waveform {
	const n = 1024
	period := math.RoundToEven(1e9 / frequency)
	c := &Waveform{Period: int64(period)}
	for i := range n + 1 {
		c.At = append(c.At, int64(math.RoundToEven(period*float64(i)/n)))
		c.Value = append(c.Value, mean+amplitude*math.Sin(2*math.Pi*float64(i)/n))
	}

	return c
}

// Check returns an error if the points or the period of c are not possible.
func (c *Waveform) Check() error {
	n := len(c.At)
	switch {
	case n < 1 || n > maxPoints || len(c.Value) != n:
		return fmt.Errorf("a waveform has 1 to %d points, not %d", maxPoints, n)
	case c.At[0] < 0:
		return fmt.Errorf("a waveform begins at 0 or later, not at %d ns", c.At[0])
	case c.Period < 0 || c.Period > 0 && c.Period < c.At[n-1]:
		return fmt.Errorf("the period, %g s, is shorter than the waveform, %g s",
			float64(c.Period)/1e9, float64(c.At[n-1])/1e9)
	}

	for i, v := range c.Value {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("point %d of the waveform is not finite: %g", i+1, v)
		}
		if i > 0 && c.At[i] < c.At[i-1] {
			return fmt.Errorf("point %d of the waveform, at %g s, is earlier than the point before it, at %g s",
				i+1, float64(c.At[i])/1e9, float64(c.At[i-1])/1e9)
		}
	}

	return nil
}

// Eval returns the value of c at a time, ns.
//
//go:nosplit
func (c *Waveform) Eval(at int64) float64 {
	if c.Held {
		return c.HeldValue
	}
	if c.Period > 0 {
		at %= c.Period
	}
	lo, hi := 0, len(c.At) // binary search: lo becomes the first point after at
	for lo < hi {
		if mid := (lo + hi) / 2; c.At[mid] <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}

	if lo == 0 {
		return c.Value[0]
	}
	if lo == len(c.At) {
		return c.Value[lo-1]
	}
	part := float64(at-c.At[lo-1]) / float64(c.At[lo]-c.At[lo-1])

	// No fused multiply-add: the same bits on every processor.
	return c.Value[lo-1] + float64((c.Value[lo]-c.Value[lo-1])*part)
}
