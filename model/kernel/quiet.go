package kernel

import (
	"math"
	"slices"

	"lockstep/model"
)

// A tick is quiet if no element changes its mode in it and its signals are constant. It is one product
// with Phi. It starts from the torques and slips of the last outputs, and its check for events gives
// those of the next ones. What the inputs alone decide is computed when one of them changes.

// held holds what follows from the inputs of a quiet tick.
type held struct {
	starts bool      // the tick starts as one with held inputs, but an element may change its mode in it
	ends   bool      // the tick ended with a substep without an event: signals, torques and slips are those at its end
	isSet  bool      // the last tick was quiet: the other fields, w, capNow, limit, tau and slip are of it
	until  float64   // the sources are constant in the ticks that start before, s
	move   []float64 // n, Gamma0·w
	rate   []float64 // n, B·w
	torque []float64 // mc, U·w of the locks that carry load, N·m; also while a substep of constant signals is checked
	slope  []float64 // mc, slope over a period of a slip, or of the torque of a lock: the part of w
	tol    float64   // torqueTol without the torques of freewheels, N·m
}

// canBeQuiet reports whether the plant can have quiet ticks: one substep per period, every lock set
// precomputed, and no events but those of clutches, brakes and freewheels.
func (t *Tables) canBeQuiet() bool {
	for _, d := range t.Delay {
		if d > 0 {
			return false
		}
	}
	return t.Modes != nil && t.Form == Projected && t.Split == 1 && t.FirstAffine == t.M && t.Partition == nil &&
		len(t.Switches) == 0 && len(t.Clearances) == 0 && len(t.Indicators) == 0 && len(t.Pulses) == 0 && len(t.Samples) == 0
}

// setSlopes sets R of a mode whose lock set is kappa.
func (t *Tables) setSlopes(m *Mode, kappa int) {
	m.R = make([]float64, t.Mc*t.N)
	h := float64(t.PeriodNs) * 1e-9
	for i := range t.Mc {
		row := t.W[i*t.N : (i+1)*t.N]
		if kappa>>i&1 == 1 {
			row = m.T[i*t.N : (i+1)*t.N]
		}
		copy(m.R[i*t.N:], scale(product(row, m.A, 1, t.N, t.N), h))
	}
}

// isTimed reports whether a signal follows a waveform over time where no input commands it.
func (t *Tables) isTimed() bool {
	return slices.ContainsFunc(t.Signals, func(s Signal) bool { return s.Input < 0 && !isConstant(&s.Source) })
}

// isSteady reports whether every signal of a dense plant is constant over each substep: a command or a source that never
// changes. Signals and capacities are then those at the start of the substep, as startSubstep has set them.
func (t *Tables) isSteady() bool {
	return t.decidesAlone() && t.FirstAffine == t.M && len(t.Indicators) == 0 && !t.AnyRamped &&
		!slices.ContainsFunc(t.Signals, func(s Signal) bool { return s.Input < 0 && !isConstant(&s.Source) || s.Wave >= 0 })
}

// isConstant reports whether a source has one value for all time.
//
//go:nosplit
func isConstant(s *model.Source) bool { return s.Amplitude == 0 && len(s.Sum) == 0 && len(s.T) <= 1 }

// isLevel reports whether every part of a source is constant between its breakpoints around time mid.
// Two equal values of a line do not show that: it may rise by less than a rounding.
//
//go:nosplit
func isLevel(s *model.Source, mid float64) bool {
	if !isStraight(s) {
		return false
	}
	if len(s.Sum) == 0 {
		return isLeafLevel(s, mid)
	}
	for _, factors := range s.Sum {
		if !isLeafLevel(&factors[0], mid) {
			return false
		}
	}
	return true
}

// isLeafLevel is isLevel for the table of a source without products.
//
//go:nosplit
func isLeafLevel(s *model.Source, mid float64) bool {
	if s.Period > 0 && mid >= s.Start {
		mid -= s.Start + float64(s.Period*floor((mid-s.Start)/s.Period))
	} else if s.Period > 0 {
		return true
	}
	i := tableRow(s.T, mid)
	return s.Held || i < 0 || i >= len(s.T)-1 || s.V[i] == s.V[i+1]
}

// stepQuiet advances the plant over a quiet tick, writes its outputs, and reports whether it has.
// Otherwise the tick may hold an event or a change, and the state is as before. History needs no entry: it is read only for
// the time between a plant time that lags and the grid.
//
//go:nosplit
func (k *Kernel) stepQuiet(y, u []float64) bool {
	if !(k.held.isSet && k.isHeld(u)) && !k.calls.holdInputs(k, u) {
		return false
	}

	k.held.isSet, k.held.starts = false, true
	if !k.moveInLockSet(y, int(k.kappa[0])) {
		return false
	}
	k.held.starts = false
	step := y[len(y)-5:]
	events, transitions := int(k.events), int(k.transitions) // only a signed number converts in one instruction
	step[0], step[1], step[2], step[3], step[4] = 1, 0, float64(events), float64(transitions), 0
	return true
}

// startHeld starts the substep over a tick with held inputs that may hold an event, which stepQuiet has found. The signals,
// capacities, limits and slips at its start are set, and no element changes its mode there.
//
//go:nosplit
func (k *Kernel) startHeld() {
	k.length, k.waveDegree = k.t.Delta, 0
	copy(k.w0, k.w)
	clear(k.w1)
	clear(k.w2)
	copy(k.kinetic, k.capNow)
	copy(k.applied, k.w[k.t.M:])
	m := k.currentMode()
	for i := range k.mode {
		k.capC[3*i], k.capC[3*i+1], k.capC[3*i+2] = k.capNow[i], 0, 0
		k.tau[i] = k.w[k.t.M+i]
		if k.carriesLoad(i) {
			k.tau[i] = dotRow(m.T, i, k.x) + k.held.torque[i]
		}
	}
	k.startTorques()
}

// moveHeld sets the rates at the start of a substep that startHeld has started, and the state at its end.
//
//go:nosplit
func (k *Kernel) moveHeld() {
	k.held.starts = false
	m := k.currentMode()
	mulPlus(k.xd, m.A, k.x, k.held.rate)
	mulPlus(k.x1, m.Phi, k.x, k.held.move)
}

// moveInLockSet moves the plant over a tick in the mode of lock set number set, with held inputs, and
// writes its outputs. It reports whether every element certainly keeps its mode: the event check is that of mayHoldEvent
// without the parabola of a curve close to zero. The whole tick has that, and the code here stays without calls.
//
//lockstep:modes
//go:nosplit
func (k *Kernel) moveInLockSet(y []float64, set int) bool {
	m := &k.t.Modes[set]
	mulPlus(k.x1, m.Phi, k.x, k.held.move)
	if !hasFiniteSum(k.x1) {
		return false
	}
	k.slips.mul(k.slip1, k.x1)
	tol := k.held.tol
	for i, mode := range k.mode {
		locked := set>>i&1 == 1
		if k.t.Friction[i].OneWay {
			tol = max(tol, float64(torqueNoise*math.Abs(k.tau[i])))
		}
		if !locked && (mode == Free || mode == Stuck) { // or it idles
			continue
		}
		slope := dotRow(m.R, i, k.x) + k.held.slope[i]
		if !locked {
			if !staysSlipping(float64(mode), k.slip[i], k.slip1[i], slope) {
				return false
			}
			continue
		}

		before := k.tau[i]
		tau := dotRow(m.T, i, k.x1) + k.held.torque[i]
		k.tau[i] = tau
		if k.t.Friction[i].OneWay && !staysInSprag(k.limit[i], before, tau, slope) ||
			!k.t.Friction[i].OneWay && !staysLocked(k.limit[i], before, tau, slope) {
			return false
		}
	}

	writeState(k, y, k.x1, k.slip1)
	copy(k.x, k.x1)
	copy(k.slip, k.slip1)
	k.latest, k.torqueTol = k.tick, tol
	k.eta, k.coincident, k.held.isSet = 1, 0, true
	return true
}

// hasFiniteSum reports whether the sum of a vector is finite, and so all of its elements. Four sums grow
// side by side. It is a function, for generated code, as writeState is.
//
//go:nosplit
func hasFiniteSum(x []float64) bool {
	s0, s1, s2, s3, four := 0.0, 0.0, 0.0, 0.0, len(x)&^3
	for i := 0; i < four; i += 4 {
		s0 += x[i]
		s1 += x[i+1]
		s2 += x[i+2]
		s3 += x[i+3]
	}
	for i := four; i < len(x); i++ {
		s0 += x[i]
	}
	sum := (s0 + s1) + (s2 + s3)
	return sum <= math.MaxFloat64 && sum >= -math.MaxFloat64
}

// isHeld reports whether the inputs of a tick are those of the last one, without a change inside of the
// tick, and the sources constant.
//
//go:nosplit
func (k *Kernel) isHeld(u []float64) bool {
	if k.changes || k.t.Timed && !(k.gridTime() < k.held.until) {
		return false
	}
	for i, v := range u {
		if v != k.current[i] {
			return false
		}
	}
	return true
}

// holdSources sets the signals that no input commands, and until. It reports whether all of them are
// constant over the tick, and no source has a breakpoint in it or at its end.
//
//go:nosplit
func (k *Kernel) holdSources() bool {
	start := k.gridTime()
	for j := range k.t.Signals {
		sig := &k.t.Signals[j]
		if sig.Input >= 0 || k.input[j] >= 0 {
			continue
		}
		mid := start + float64(k.h/2)
		k.w[j] = sourceAt(&sig.Source, start, mid)
		if !isLevel(&sig.Source, mid) {
			return false
		}
	}
	if k.t.Timed {
		k.nextChange(0)
		k.held.until = k.nextBreakpoint - float64(k.h+float64(3*k.timeTol))
		return start < k.held.until
	}
	return true
}

// holdInputs sets the signals, capacities and torques of a tick from its inputs. It reports whether
// every element keeps its mode at the start of the tick.
//
//go:nosplit
func (k *Kernel) holdInputs(u []float64) bool {
	k.held.isSet = false
	if k.lag > 0 || k.fault != 0 || k.changes || !k.holdSources() {
		return false
	}
	for _, v := range u {
		if !(math.Abs(v) <= math.MaxFloat64) {
			return false
		}
	}

	copy(k.current, u)
	k.places = 0
	clear(k.currentSlope)
	for i, j := range k.t.InputSignal {
		if k.input[j] >= 0 {
			k.w[j] = u[i]
		}
	}
	k.setCapacities()
	for i := range k.mode {
		f := &k.t.Friction[i]
		k.limit[i] = k.lockLimit(i)
		if k.leavingZero[i] || (f.OneWay || k.capNow[i] > 0) == (k.mode[i] == Free) {
			return false
		}
	}

	m := k.currentMode()
	for i, mode := range k.mode {
		k.tau[i] = k.w[k.t.M+i]
		if mode == Stuck && !k.isIdle(i) {
			k.held.torque[i] = dotRow(m.U, i, k.w)
			k.tau[i] = dotRow(m.T, i, k.x) + k.held.torque[i]
			if !k.isWithinLimit(i) {
				return false
			}
		}
	}

	largest := 0.0
	for i, limit := range k.limit {
		if limit > largest {
			largest = limit
		}
		if v := math.Abs(k.tau[i]); !k.t.Friction[i].OneWay && v > largest { // within the limit, but for a rounding of an idle torque
			largest = v
		}
	}
	k.held.tol = float64(torqueNoise * largest)

	mul(k.held.move, m.G0, k.w)
	mul(k.held.rate, m.B, k.w)
	for i, mode := range k.mode {
		if mode == Stuck {
			k.held.slope[i] = float64(k.h * dotRow(m.T, i, k.held.rate))
		} else {
			k.held.slope[i] = float64(k.h * k.slips.dot(i, k.held.rate))
		}
	}
	k.held.isSet = true
	return true
}

// isWithinLimit reports whether stuck element i can carry its torque.
//
//go:nosplit
func (k *Kernel) isWithinLimit(i int) bool {
	return k.tau[i] <= k.limit[i] && k.tau[i] >= k.minTorque(i)
}

// staysSlipping reports whether a slip in direction d, 1 or -1, keeps its sign over a tick: from s0 to
// s1, rad/s, with slope at its start.
//
//go:nosplit
func staysSlipping(d, s0, s1, slope float64) bool {
	end := float64(d * s1)
	return end > 0 && staysClear(float64(d*s0), end, float64(d*slope))
}

// staysLocked reports whether the torque of a lock keeps within its limit over a tick: from tau0 to
// tau1, N·m, with slope at its start.
//
//go:nosplit
func staysLocked(limit, tau0, tau1, slope float64) bool {
	return tau1 <= limit && tau1 >= -limit &&
		(slope < 0 || staysClear(limit-tau0, limit-tau1, -slope)) &&
		(slope >= 0 || staysClear(limit+tau0, limit+tau1, slope))
}

// staysInSprag is staysLocked for a freewheel, whose torque has no lower bound.
//
//go:nosplit
func staysInSprag(limit, tau0, tau1, slope float64) bool {
	return tau1 <= limit && (slope < 0 || staysClear(limit-tau0, limit-tau1, -slope))
}
