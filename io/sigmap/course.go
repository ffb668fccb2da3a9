package sigmap

import (
	"math"
)

// Course is a value over time: straight lines between points. Before the first it is
// the first one's, after the last the last one's; where two have the same time it is
// the later one's from there on.
type Course struct {
	At     []int64   // ns, not decreasing, from 0 on
	Value  []float64 // as many
	Period int64     // ns; the points repeat; 0: they do not
}

// maxCourse bounds the points of a course.
const maxCourse = 1 << 16

// Sine is mean + amplitude·sin(2π·frequency·t), by 1024 lines a period, whose error is
// below 5e-6 of the amplitude. frequency, Hz, is positive.
func Sine(mean, amplitude, frequency float64) *Course {
	const n = 1024
	period := math.RoundToEven(1e9 / frequency)
	c := &Course{Period: int64(period)}
	for i := range n + 1 {
		c.At = append(c.At, int64(math.RoundToEven(period*float64(i)/n)))
		c.Value = append(c.Value, mean+amplitude*math.Sin(2*math.Pi*float64(i)/n))
	}
	return c
}

// Check tells what is wrong with c.
func (c *Course) Check() error {
	n := len(c.At)
	switch {
	case n < 1 || n > maxCourse || len(c.Value) != n:
		return problemf(ErrCourse, "a course has 1 to %d points, not %d", maxCourse, n)
	case c.At[0] < 0:
		return problemf(ErrCourse, "a course begins at 0 or later, not at %d ns", c.At[0])
	case c.Period < 0 || c.Period > 0 && c.Period < c.At[n-1]:
		return problemf(ErrCourse, "the period, %g s, is shorter than the course, %g s", float64(c.Period)/1e9, float64(c.At[n-1])/1e9)
	}
	for i, v := range c.Value {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return problemf(ErrCourse, "point %d of the course is not finite: %g", i+1, v)
		}
		if i > 0 && c.At[i] < c.At[i-1] {
			return problemf(ErrCourse, "point %d of the course, at %g s, is before the one before it, at %g s", i+1, float64(c.At[i])/1e9, float64(c.At[i-1])/1e9)
		}
	}
	return nil
}

// Eval is c at a time, ns.
//
//go:nosplit
func (c *Course) Eval(at int64) float64 {
	if c.Period > 0 {
		at %= c.Period
	}
	lo, hi := 0, len(c.At) // the first point after at is lo in the end
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
	return c.Value[lo-1] + float64((c.Value[lo]-c.Value[lo-1])*part) // no fused multiply-add: the same bits on every processor
}
