package gearbox

// Nominal hydraulics of hp8.yaml: what the calibration of the unit knows of its gearbox.
const (
	solenoidOpens = 0.05  // current up to which a pressure regulator gives no pressure, A
	barPerAmpere  = 25.0  // bar per A above
	solenoidStep  = 0.004 // A per bit of SolenoidCurrents

	fillBar   = 8.0  // pressure of the fill pulse, bar
	drainTime = 0.45 // time in which a piston drains, s
	actuation = 0.02 // delay of the pressure behind the command, s
)

// fillShare is the time in which a piston fills over that of B, D and E: their orifices, and the stroke of TCC, differ.
var fillShare = [6]float64{5 / 5.4, 1, 5 / 4.6, 1, 1, 0.5}

// pistons turns the pressures that the elements need above their kiss point into currents. It fills a piston with a
// pulse of pressure, and keeps the plates in touch by the kiss pressure. No sensor shows the pressures: the unit
// counts how far it has filled each piston.
type pistons struct {
	kiss     float64    // pressure at which the plates touch, bar
	fillTime float64    // time in which the pulse fills an empty piston of B, D or E, s
	filled   [6]float64 // share of the volume up to the kiss point, 0 to 1
	valve    [6]float64 // pressures that the regulators set in this cycle, bar
}

// left returns the time that the pulse still takes, s.
func (p *pistons) left(i int) float64 { return (1 - p.filled[i]) * p.fillTime * fillShare[i] }

// drain counts how far the pistons have drained in a time without pressure, s.
func (p *pistons) drain(passed float64) {
	for i := range p.filled {
		p.filled[i] = max(0, p.filled[i]-passed/drainTime)
	}
}

// command sets the pressures of the regulators for the pressures above the kiss point, bar. Elements with closes keep
// their pistons filled.
func (p *pistons) command(bar [6]float64, closes [6]bool, dt float64) {
	for i := range bar {
		switch {
		case bar[i] <= 0 && !closes[i]:
			p.valve[i], p.filled[i] = 0, max(0, p.filled[i]-dt/drainTime)
		case p.left(i) >= dt/2:
			p.valve[i], p.filled[i] = fillBar, min(1, p.filled[i]+dt/(p.fillTime*fillShare[i]))
		default:
			p.valve[i], p.filled[i] = p.kiss+bar[i], 1
		}
	}
}

// currents returns the currents of the solenoids, A.
func (p *pistons) currents() (list [6]float64) {
	for i, bar := range p.valve {
		if bar > 0 {
			list[i] = solenoidOpens + bar/barPerAmpere
		}
	}
	return list
}
