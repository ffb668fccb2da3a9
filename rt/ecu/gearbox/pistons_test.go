package gearbox

import (
	"math"
	"testing"
)

// An empty piston gets the pulse for its fill time, one that has drained for a third of the drain time a third of it.
// Then the plates touch at the kiss pressure, and the pressure of the element comes on top.
func TestPistonsFillBeforeTheyTransmit(t *testing.T) {
	const dt = 0.01
	p := pistons{kiss: 1, fillTime: 0.15}
	pulse := func(bar float64) (cycles int) {
		for {
			p.command([6]float64{3: bar}, [6]bool{3: true}, dt)
			if p.valve[3] != fillBar {
				break
			}
			if current := p.currents()[3]; !(math.Abs(current-0.37) < 1e-12) { // 50 mA and 8 bar of 25 bar/A
				t.Fatalf("%g A in the pulse", current)
			}
			cycles++
		}
		return cycles
	}
	if n := pulse(0); n != 15 || p.valve[3] != 1 {
		t.Errorf("pulse of %d cycles, then %g bar; want 15 and the kiss pressure", n, p.valve[3])
	}
	if n := pulse(4); n != 0 || p.valve[3] != 5 {
		t.Errorf("pulse of %d cycles, %g bar; want 5 bar at once", n, p.valve[3])
	}
	for range 15 { // a third of the drain time
		p.command([6]float64{}, [6]bool{}, dt)
	}
	if list := p.currents(); list != [6]float64{} {
		t.Errorf("currents %v of open elements", list)
	}
	if n := pulse(0); n != 5 {
		t.Errorf("pulse of %d cycles after a third of the drain time, want 5", n)
	}
}
