package brakes

// Limits of traction control by the brakes.
const (
	escSpinSpeed = 25.0 // speed up to which a spinning wheel is braked, m/s
	escSpinSlip  = 0.5  // speed over that of the other driven wheel that is allowed, m/s
	escSpinShare = 2.0  // pressure per speed beyond it, bar per m/s
	escSpinGain  = 12.0 // pressure rate per speed beyond it, bar/s per m/s
	escSpinBar   = 60.0 // largest pressure, bar
	escSpinFast  = 5.0  // speed over that of the other wheel from which the engine is reduced, too, m/s
)

// brakeSpin lets the pump brake a driven wheel that turns faster than the other one of its axle: the differential then
// gives the other one the torque of the brake in addition. It rests while the driver brakes and while yaw control acts.
func (s *esc) brakeSpin(dt float64) {
	rests := s.tune.enabled == 0 || s.Memory.LimpHome() || s.active[0] || s.active[1] || s.master > s.tune.pedal || s.throttle < 0.02 || s.v > escSpinSpeed
	for i := 1; i < len(s.inputs); i++ {
		rests = rests || s.inputs[i].Late(s.LastCycle)
	}
	s.spun = false
	for i := range s.spinBar {
		faster := min(max(s.spin(i)-max(s.spin(1-i), 0)-escSpinSlip, -3), 6)
		rate := escSpinGain * faster
		if rests {
			rate = -600
		}
		s.spinBar[i] = min(max(s.spinBar[i]+dt*rate, 0), escSpinBar)
		if !rests {
			s.demand(i, s.spinBar[i]+escSpinShare*faster, escSpinBar)
			s.spun = s.spun || s.active[circuit(i)]
		}
	}
	if s.spun {
		s.counts3[2]++
	}
}

// yawing reports whether yaw control builds pressure.
func (s *esc) yawing() bool { return (s.active[0] || s.active[1]) && !s.spun }

// spin returns the slip speed of the driven wheel i, m/s.
func (s *esc) spin(i int) float64 { return s.speed[i] - s.ground(i) }

// engineSpin returns the slip speed that the engine answers: that of the faster driven wheel, or that of the slower one while
// the brake holds the faster one.
func (s *esc) engineSpin() float64 {
	fast, slow := max(s.spin(0), s.spin(1)), min(s.spin(0), s.spin(1))
	if s.spun {
		return max(slow, fast-escSpinFast)
	}
	return fast
}
