package kernel

import (
	"math"

	"lockstep/model"
)

// A tick is quiet if no element changes its mode in it and its inputs are held. It is one product
// with Phi and Gamma0. It starts from the signals, capacities and torques of the last outputs, and
// its check for events gives the torques and slips of the next ones.

// canBeQuiet reports whether the plant can have quiet ticks: one substep per period, every lock set
// precomputed, and no events but those of clutches, brakes and freewheels.
func (t *Tables) canBeQuiet() bool {
	for _, d := range t.Delay {
		if d > 0 {
			return false
		}
	}
	return t.Modes != nil && t.Form == Projected && t.Split == 1 && t.FirstAffine == t.M && t.Partition == nil &&
		len(t.Switches) == 0 && len(t.Clearances) == 0 && len(t.Indicators) == 0 && len(t.Pulses) == 0
}

// isConstant reports whether a source has one value for all time.
//
//go:nosplit
func isConstant(s *model.Source) bool { return s.Amplitude == 0 && len(s.Sum) == 0 && len(s.T) <= 1 }

// stepQuiet advances the plant over a quiet tick and reports whether it has. Otherwise the tick may
// hold an event or a change, and the state is as before. History needs no entry: it is read only for
// the time between a plant time that lags and the grid.
//
//go:nosplit
func (k *Kernel) stepQuiet(u []float64) bool {
	if !(k.held && k.isHeld(u)) && !k.holdInputs(u) {
		return false
	}

	m := k.currentMode()
	mul(k.x1, m.Phi, k.x)
	mulAdd(k.x1, m.G0, k.w)
	for _, v := range k.x1 {
		if !(math.Abs(v) <= math.MaxFloat64) {
			k.held = false
			return false
		}
	}

	k.setRates(k.w)
	for i, mode := range k.mode {
		if mode != Free && !k.staysInMode(i) {
			k.held = false
			return false
		}
	}

	copy(k.x, k.x1)
	k.slips.mul(k.slip, k.x)
	k.latest = k.tick
	k.eta, k.coincident = 1, 0
	return true
}

// isHeld reports whether the inputs of a tick are those of the last one.
//
//go:nosplit
func (k *Kernel) isHeld(u []float64) bool {
	for i, v := range u {
		if v != k.current[i] {
			return false
		}
	}
	return true
}

// holdInputs sets the signals, capacities and torques of a tick from its inputs. It reports whether
// every element keeps its mode at the start of the tick.
//
//go:nosplit
func (k *Kernel) holdInputs(u []float64) bool {
	k.held = false
	if k.lag > 0 || k.fault != 0 {
		return false
	}
	for j := range k.t.Signals {
		if sig := &k.t.Signals[j]; sig.Input < 0 && k.input[j] < 0 && !isConstant(&sig.Source) {
			return false
		}
	}
	for _, v := range u {
		if !(math.Abs(v) <= math.MaxFloat64) {
			return false
		}
	}

	copy(k.current, u)
	for i, j := range k.t.InputSignal {
		if k.input[j] >= 0 {
			k.w[j] = u[i]
		}
	}
	k.setCapacities()
	for i := range k.mode {
		f := &k.t.Friction[i]
		k.limit[i] = max(float64(f.Peak*k.capNow[i]), f.Floor)
		if k.leavingZero[i] || (f.OneWay || k.capNow[i] > 0) == (k.mode[i] == Free) {
			return false
		}
	}
	k.calls.setTorques(k, k.x)
	for i, mode := range k.mode {
		if mode == Stuck && !(k.tau[i] <= k.limit[i] && k.tau[i] >= k.minTorque(i)) {
			return false
		}
	}

	k.held = true
	return true
}

// staysInMode reports whether active element i keeps its mode over a quiet tick from x to x1. It is
// the event check of mayHoldEvent with held inputs. It sets the torque of a lock at the end.
//
//go:nosplit
func (k *Kernel) staysInMode(i int) bool {
	if k.mode[i] != Stuck {
		d := k.direction(i)
		s1 := float64(d * k.slips.dot(i, k.x1))
		return s1 > 0 && !mayReachZero(float64(d*k.slip[i]), s1, float64(d*k.slips.dot(i, k.xd)*k.h))
	}
	if k.isIdle(i) {
		return true
	}

	m := k.currentMode()
	tau0, tau1, slope := k.tau[i], dotRow(m.T, i, k.x1)+dotRow(m.U, i, k.w), float64(dotRow(m.T, i, k.xd)*k.h)
	k.tau[i] = tau1
	side := math.Copysign(1, slope)
	return tau1 <= k.limit[i] && tau1 >= k.minTorque(i) &&
		!mayReachZero(k.limit[i]-float64(side*tau0), k.limit[i]-float64(side*tau1), -math.Abs(slope))
}
