package gearbox

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/rt/ecu/diagnosis"
)

// Every forward gear closes three elements, and the shares of the input torque that they carry balance the ratio: the
// torques on the housing, A and B, are the output torque less the input torque.
func TestEightSpeedGearsAreInBalance(t *testing.T) {
	for gear := 1; gear <= eightSpeedGears.top(); gear++ {
		closed := 0
		for i, p := range eightSpeedGears.held[gear] {
			if (p > 0) != (i < lockUp && share[gear][i] > 0) {
				t.Errorf("gear %d: element %d has %g bar and carries %g", gear, i, p, share[gear][i])
			}
			if p > 0 {
				closed++
			}
		}
		sign := map[bool]float64{true: 1, false: -1}[eightSpeedGears.ratios[gear] >= 1]
		if housing := sign * (share[gear][0] + share[gear][1]); closed != 3 || math.Abs(housing-(eightSpeedGears.ratios[gear]-1)) > 2e-4 {
			t.Errorf("gear %d: %d elements, the housing carries %.4f, want %.4f", gear, closed, housing, eightSpeedGears.ratios[gear]-1)
		}
	}
}

// These gears share two elements: BENCH.md and hp8.yaml list them.
func TestShiftsSkipGearsByOneSwap(t *testing.T) {
	var list []string
	for a := 1; a <= 8; a++ {
		for b := a + 1; b <= 8; b++ {
			_, _, up := eightSpeedGears.swap(a, b)
			on, off, down := eightSpeedGears.swap(b, a)
			if up != down || up && on == off {
				t.Errorf("%d-%d: %t, %t", a, b, up, down)
			}
			if up {
				list = append(list, fmt.Sprintf("%d-%d", a, b))
			}
		}
	}
	if got, want := strings.Join(list, " "), "1-2 1-3 1-5 1-7 2-3 2-4 2-8 3-4 3-5 3-6 4-5 4-6 4-8 5-6 5-7 6-7 6-8 7-8"; got != want {
		t.Errorf("swaps %s, want %s", got, want)
	}
	for _, c := range [][3]int{{8, 2, 2}, {8, 1, 2}, {7, 2, 5}, {5, 2, 3}, {7, 1, 1}, {6, 2, 3}, {1, 8, 7}, {2, 8, 8}} {
		if got := eightSpeedGears.toward(c[0], c[1]); got != c[2] {
			t.Errorf("from %d toward %d: %d, want %d", c[0], c[1], got, c[2])
		}
	}
	if got := fourSpeedGears.toward(4, 1); got != 3 {
		t.Errorf("the gearbox of four speeds goes from 4 toward 1 by %d, want 3", got)
	}
}

// eightRig is the unit hp8 with a running engine.
func eightRig(t *testing.T) *automaticRig {
	g := newRigOf(t, "hp8")
	g.torque, g.engine = 100, 150
	return g
}

func TestEightSpeedUnitKicksDownFromEighthToSecondGear(t *testing.T) {
	g := eightRig(t)
	g.drive(2, leverD, 0.1, 146, 2./3) // it takes over the moving car
	if u := g.u.Law.(*automatic); u.gear != 8 || u.shifts != 0 {
		t.Errorf("gear %d after %d shifts, want eighth gear after none", u.gear, u.shifts)
	}
	g.drive(2, leverD, 1, 146, inGear)
	if got := g.shifts(); got != "82" {
		t.Errorf("shifts %q, want 82", got)
	}
	g.drive(3, leverD, 0.1, 146, inGear)
	if got := g.shifts(); got != "82 24 46" {
		t.Errorf("shifts %q, want back by 4 and 6", got)
	}
}

// The bench opens the elements of a unit that sleeps: their pistons drain, and the unit fills them at its wake-up as empty
// ones. After a pause of 0.1 s they have lost 0.1/0.45 of the volume.
func TestEightSpeedUnitFillsThePistonsThatDrainedWhileItSlept(t *testing.T) {
	for _, c := range []struct{ pause, pulse float64 }{{0.1, 0.1 / drainTime * 0.13}, {5, 0.13}} {
		g := eightRig(t)
		g.drive(2, leverD, 0.1, 93, inGear)
		unit := g.u.Law.(*automatic)
		if unit.gear != 4 || unit.eight.filled[1] != 1 {
			t.Fatalf("gear %d, piston of B filled to %g", unit.gear, unit.eight.filled[1])
		}
		for unit.Awake { // no ShaftSpeeds
			g.k++
			g.line.Now = time.Duration(g.k) * 10 * time.Millisecond
			if err := g.u.Tick(g.line.Now); err != nil {
				t.Fatal(err)
			}
		}
		g.k += int(math.Round(c.pause*100)) - 1
		pulse := 0.0
		for range 30 {
			if g.drive(0.01, leverD, 0.1, 93, inGear); unit.eight.valve[1] == fillBar {
				pulse += 0.01
			}
		}
		if !(math.Abs(pulse-c.pulse) < 0.011) {
			t.Errorf("after a sleep of %g s the piston of B gets a pulse of %g s, want %.3f s", c.pause, pulse, c.pulse)
		}
	}
}

func TestEightSpeedUnitTakesTheDriversGear(t *testing.T) {
	g := eightRig(t)
	g.drive(1, leverD, 0.2, 120, inGear)
	for _, wish := range []uint64{2, 8, 4, 1} {
		g.more = wish << 51
		g.drive(6, leverD, 0.2, 120, inGear)
		if u := g.u.Law.(*automatic); u.gear != int(wish) {
			t.Errorf("wish %d: gear %d; shifts %s", wish, u.gear, g.shifts())
		}
	}
	g.more = 1 << 51
	g.drive(3, leverD, 0.2, 200, inGear)
	if u := g.u.Law.(*automatic); u.gear != 2 {
		t.Errorf("gear %d, want second gear where first one is too fast", u.gear)
	}
}

// requests returns the last request to the engine.
func (g *automaticRig) request() (limit float64, on, starter bool) {
	for i := len(g.line.All) - 1; i >= 0; i-- {
		if f := g.line.All[i]; f.ID == idEngineRequest {
			return float64(f.Data[2]) * limitStep, f.Data[3]&1 != 0, f.Data[3]&2 != 0
		}
	}
	g.t.Fatal("no request to the engine")
	return 0, false, false
}

func TestEightSpeedUnitStopsAndStartsTheEngine(t *testing.T) {
	g := eightRig(t)
	const pressed, fast = 20 << 24, 2000 << 32 // brake 20 bar; 20 km/h
	g.more = fast
	g.drive(2, leverD, 0.1, 20, inGear)
	g.more = pressed
	g.drive(0.8, leverD, 0, 0, 1)
	if _, on, _ := g.request(); !on {
		t.Error("the engine stops before the delay is over")
	}
	g.drive(2, leverD, 0, 0, 1)
	if _, on, starter := g.request(); on || starter {
		t.Errorf("at standstill: engine on %t, starter %t; want it stopped", on, starter)
	}
	g.more, g.engine = 0, 0
	g.drive(0.1, leverD, 0, 0, 1)
	if _, on, starter := g.request(); !on || !starter {
		t.Errorf("without the brake: engine on %t, starter %t; want both", on, starter)
	}
	g.engine = 80
	g.drive(0.1, leverD, 0, 0, 1)
	if _, on, starter := g.request(); !on || starter {
		t.Errorf("with a running engine: on %t, starter %t", on, starter)
	}
	g.more = pressed
	g.drive(4, leverD, 0, 0, 1)
	if _, on, _ := g.request(); !on {
		t.Error("the engine stops again although the car was not driven")
	}
}

func TestEightSpeedUnitCutsTheThrottleDuringAnUpshiftUnderLoad(t *testing.T) {
	g := eightRig(t)
	g.drive(1, leverD, 0.6, 60, inGear)
	g.drive(2, leverD, 0.6, 110, 22./7)
	least := 1.0
	for range 100 {
		g.drive(0.01, leverD, 0.6, 170, 22./7)
		limit, _, _ := g.request()
		least = min(least, limit)
	}
	if !(math.Abs(least-0.3) < 0.01) || !strings.HasSuffix(g.shifts(), "23") {
		t.Errorf("throttle limited to %.3f in the shifts %s, want half of the accelerator of 0.6", least, g.shifts())
	}
	g.drive(2, leverD, 0.6, 170, inGear)
	if limit, _, _ := g.request(); limit != 1 {
		t.Errorf("throttle limited to %g after the shift", limit)
	}
}

func TestEightSpeedUnitFindsALockUpClutchThatSlipsAndALostTorque(t *testing.T) {
	for _, c := range []struct {
		slip float64
		lost bool
		want string
	}{{0, false, "[]"}, {5, false, "[]"}, {40, false, "[74100]"}, {0, true, "[D10200]"}} {
		g := eightRig(t)
		g.engine = 93 * 5. / 3
		g.drive(3, leverD, 0.1, 93, inGear)
		u := g.u.Law.(*automatic)
		if g.engine = 93*u.ratios[u.gear] + c.slip; c.lost {
			g.torque = math.NaN()
		}
		g.drive(3, leverD, 0.1, 93, inGear)
		if got := fmt.Sprintf("%X", u.Memory.Numbers(diagnosis.TestFailed)); got != c.want {
			t.Errorf("slip %g rad/s, torque lost %t: codes %s, want %s", c.slip, c.lost, got, c.want)
		}
	}
}

// The check of the clutches engages all nine gears, and tells each one that stops the input shaft.
func TestEightSpeedUnitChecksEveryGear(t *testing.T) {
	g := eightRig(t)
	g.more = 20 << 24
	g.drive(1, leverP, 0, 0, 1)
	u := g.u.Law.(*automatic)
	routines := u.routines()
	if _, refusal := routines[1].Start(nil); refusal != 0 {
		t.Fatalf("refused with %#x", refusal)
	}
	g.drive(30, leverP, 0, 0, 1)
	if data, _ := routines[1].Results(); fmt.Sprintf("%X", data) != "00FF01" {
		t.Errorf("results %X, want 00FF01: passed, nine gears", data)
	}
}
