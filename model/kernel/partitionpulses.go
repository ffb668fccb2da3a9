package kernel

import "math"

// cubic is the degree of the path on which a step in two parts counts pulses: through the
// angle and its rate at both ends of the step that moves it, a micro step for the active
// part, the period for the latent one.
const cubic = 3

// depart notes the angle and the rate from which some pulses go over length.
//
//go:nosplit
func (k *Kernel) depart(pulses []int) {
	n := k.t.N
	for _, i := range pulses {
		state := k.t.Pulses[i].State
		k.c[state], k.c[n+state] = k.x[state], k.angleRate(state)
	}
}

// arrive counts those pulses up to the present state; local is where they departed.
//
//go:nosplit
func (k *Kernel) arrive(pulses []int, local float64) {
	n := k.t.N
	for _, i := range pulses {
		state := k.t.Pulses[i].State
		way, r, s := k.x[state]-k.c[state], k.c[n+state], k.angleRate(state)
		k.c[2*n+state], k.c[3*n+state] = 3*way-2*r-s, r+s-2*way
		if math.Abs(k.c[state]) < farthest && math.Abs(k.x[state]) < farthest {
			k.calls.turns(k, i, local, 1)
		}
	}
}

// angleRate is the rate of an angle, per length, of the state and the signals.
//
//go:nosplit
func (k *Kernel) angleRate(state int) float64 {
	return k.length * (dotRow(k.t.Open.A, state, k.x) + dotRow(k.t.Open.B, state, k.w))
}
