package fault

import (
	"math"

	"lockstep/io/sigmap"
)

// DisturbInputs returns the inputs of the step that ends at tick k, from the inputs u that frames
// have brought. They are valid until the next call.
//
//go:nosplit
func (s *Set) DisturbInputs(k int64, u []float64) []float64 {
	copy(s.u, u)
	for i := range s.stim {
		s.u[s.stim[i].Input] = s.stim[i].Waveform.Eval(k * s.PeriodNs)
	}
	if s.cycle != nil {
		s.cycle.set(s.u)
	}
	if s.lane != nil {
		s.lane.set(s.u)
	}
	for i := range s.inputs {
		if in := &s.inputs[i]; in.set {
			s.u[i] = in.value
		}
	}

	l := &s.on[Input]
	for i := range l.n {
		x := &s.slots[l.at[i]]
		at := x.Input
		if in := &s.inputs[at]; !in.bus && !in.set && !in.stimulus && in.seen != k {
			in.seen, s.u[at] = k, s.Plant.Own(at)
		}
		lo, hi := s.inputRange(at)
		s.u[at] = s.disturbed(x, s.u[at], lo, hi)
	}

	return s.u
}

// LastInputs returns the inputs of the last step, as DisturbInputs made them.
func (s *Set) LastInputs() []float64 { return s.u }

// DisturbSignals applies value faults to the signals of the messages sent at tick k, where the
// outputs are y.
//
//go:nosplit
func (s *Set) DisturbSignals(k int64, y []float64) {
	l := &s.on[Signal]
	for i := range l.n {
		x := &s.slots[l.at[i]]
		s.Maps[x.Bus].Tx[x.Message].Fields[x.Field].Force = sigmap.NoForce
	}

	for i := range l.n {
		x := &s.slots[l.at[i]]
		m := s.Maps[x.Bus]
		t := &m.Tx[x.Message]
		d := &t.Fields[x.Field]
		if d.Force == sigmap.NoForce {
			d.Value = m.Value(t, d, k, y)
		}
		lo, hi := FieldRange(d)
		v := s.disturbed(x, d.Value, lo, hi)
		switch {
		case x.state != Active:
		case x.Kind == Open:
			d.Force = sigmap.ForceOnes
		case d.Force != sigmap.ForceOnes || x.Kind == Stuck || x.Kind == Short:
			d.Force, d.Value = sigmap.ForceValue, v
		}
	}
}

// FieldRange returns the range of a field of a message sent, in the unit of its value.
//
//go:nosplit
func FieldRange(d *sigmap.Field) (lo, hi float64) {
	lo, hi = float64(d.Lo*d.Factor)+d.Offset, float64(d.Hi*d.Factor)+d.Offset
	return min(lo, hi), max(lo, hi)
}

// inputRange returns the range of input i; an input without a range has infinite ends.
//
//go:nosplit
func (s *Set) inputRange(i int) (lo, hi float64) {
	if i < len(s.ranges) {
		return s.ranges[i][0], s.ranges[i][1]
	}
	return math.Inf(-1), math.Inf(1)
}

// disturbed returns the value v of this tick with the fault applied, in a range from lo to hi. An
// active fault gets and returns values within the Limits of the range. NaN stays NaN.
//
//go:nosplit
func (s *Set) disturbed(x *slot, v, lo, hi float64) float64 {
	if x.state != Active {
		return s.apply(x, v, lo, hi)
	}
	least, most := Limits(lo, hi)
	return min(max(s.apply(x, min(max(v, least), most), lo, hi), least), most)
}

// apply returns the value v with the fault applied.
//
//go:nosplit
func (s *Set) apply(x *slot, v, lo, hi float64) float64 {
	if x.Kind == Delay {
		late := x.delayed(s.tick, v)
		if x.state != Active {
			return v
		}
		return late
	}

	if x.unused {
		x.unused, x.value = false, v
		if x.Kind == Leak {
			x.share = 1 - decay(s.h/x.B)
		}
	} else if x.Kind == Leak {
		share := x.share
		if n := s.tick - x.last; n != 1 { // a received signal has a value at each frame only
			share = 1 - decay(float64(float64(n)*s.h)/x.B)
		}
		x.value += float64((float64((1-x.A)*v) - x.value) * share)
	}
	x.last = s.tick

	since := float64(float64(s.tick-x.began) * s.h)
	switch x.Kind {
	case Stuck:
		return x.A
	case Hold, Leak:
		return x.value
	case Offset:
		return v + x.A
	case Gain:
		return float64(v * x.A)
	case Noise:
		return v + float64(x.A*x.normal())
	case Ramp:
		return x.value + float64(x.A*since)
	case Drift:
		return v + float64(x.A*since)
	case Floor:
		return max(v, x.A)
	case Ceiling:
		return min(v, x.A)
	case Open:
		return min(max(0, lo), hi)
	case Short:
		if x.N == 0 {
			return lo
		}
		return hi
	}

	return v
}

// delayed stores the value of tick k and returns the value of N ticks before. In ticks since the
// last call the value was that of the last call.
//
//go:nosplit
func (x *slot) delayed(k int64, v float64) float64 {
	const n = int64(len(x.past))
	if x.since == 0 {
		x.since = k
	} else {
		before := x.past[x.last%n]
		for at := max(x.last+1, k-MaxDelay); at < k; at++ {
			x.past[at%n] = before
		}
	}
	x.past[k%n], x.last = v, k
	return x.past[max(k-x.N, x.since)%n]
}

// normal returns a random number of mean 0 and deviation 1: the sum of 12 uniform numbers, each of
// variance 1/12, less its mean.
//
//go:nosplit
func (x *slot) normal() float64 {
	sum := -6.0
	for range 12 {
		sum += float64(float64(x.draw()>>11) * 0x1p-53)
	}
	return sum
}

// draw returns the next 64 random bits: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
//
//go:nosplit
func (x *slot) draw() uint64 {
	x.random += 0x9e3779b97f4a7c15
	z := x.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// decay returns e^-x for x >= 0, accurate to 1e-15: the Taylor polynomial of x/2^n <= 1/8, squared
// n times. Package math's Exp may grow the stack.
//
//go:nosplit
func decay(x float64) float64 {
	if !(x < 64) { // e^-64 is below the rounding of 1; also for x = +Inf
		return 0
	}
	n := 0
	for ; x > 0.125; n++ {
		x = float64(x / 2)
	}
	e := 1.0
	for i := 12; i > 0; i-- {
		e = 1 - float64(x*e)/float64(i)
	}
	for range n {
		e = float64(e * e)
	}
	return e
}
