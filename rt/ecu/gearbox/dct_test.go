package gearbox

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brutella/can"
	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// dctRig is a unit with a car that turns as its gears demand: sleeves follow the forks, and the engine the gear.
type dctRig struct {
	automaticRig
	d     *dct
	rail  [4]float64 // m
	out   float64    // rad/s
	raw   [2]float64 // added to the speeds of the input shafts, rad/s
	stop  bool       // the sleeves do not move
	lag   [2]float64 // by which the engine is faster than its gear, by the half of that, rad/s
	lost  uint32     // frame that is not sent
	key   uint64     // state of the ignition; unit.KeyUnknown: DctIgnition is not sent
	lever uint64
	pedal uint64 // bits of 0.4 %
	wish  uint64
}

func newDctRig(t *testing.T) *dctRig {
	t.Helper()
	g := &dctRig{automaticRig: automaticRig{t: t, line: &unittest.Line{T: t}, torque: 60}, lever: leverD, pedal: 75}
	u := newUnit(t, "dct7", g.line, &g.log)
	g.u, g.d = u, u.Law.(*dct)
	return g
}

// drive drives for a time, s, with the output speed from its present value to another, rad/s.
func (g *dctRig) drive(seconds, to float64) {
	g.t.Helper()
	from, n := g.out, int(seconds*100)
	for i := range n {
		g.k++
		g.line.Now = time.Duration(g.k) * 10 * time.Millisecond
		g.out = from + (to-from)*float64(i+1)/float64(n)
		in := [2]float64{}
		for h := range in {
			in[h] = dctRatio[g.d.engaged(h)]*g.out + g.raw[h]
		}
		engine := 80.0
		if g.d.gear != 0 {
			engine = max(engine, dctRatio[g.d.gear]*g.out+g.lag[half(g.d.gear)])
			if g.d.busy() && g.d.kind == byEngine && math.IsNaN(g.d.handed) { // it follows the plan
				engine = g.d.goal(g.d.aim) + g.d.slip - math.Copysign(g.d.path, g.d.slip)
			}
		}
		var speeds, rails, driver, motor unit.Payload
		speeds.SetBits(16, 16, uint64(int64(in[0]/automaticSpeed))&0xFFFF)
		speeds.SetBits(32, 16, uint64(int64(in[1]/automaticSpeed))&0xFFFF)
		speeds.SetBits(48, 16, uint64(int64(g.out/dctOutput))&0xFFFF)
		for r, s := range g.rail {
			rails.SetBits(16+12*r, 12, uint64(int64(math.Round(s/railStep)))&0xFFF)
		}
		driver.SetBits(12, 4, g.lever)
		driver.SetBits(16, 8, g.pedal)
		driver.SetBits(48, 4, g.wish)
		motor.SetBits(16, 16, uint64(int64(engine/automaticSpeed))&0xFFFF)
		motor.SetBits(32, 16, uint64(int64(g.torque/torqueStep))&0xFFFF)
		frames := map[uint32]unit.Payload{idDctSpeeds: speeds, idDctRails: rails, idDctDriver: driver, idDctEngine: motor}
		if g.key != unit.KeyUnknown {
			frames[idDctIgnition] = unit.Payload(g.key << 12)
		}
		for id, p := range frames {
			p.SetBits(8, 4, uint64(g.k%15))
			f := p.Frame(id)
			if id == g.lost {
				continue
			}
			f.Data[0] = unit.CRC1A(&f)
			g.u.Receive(unittest.Pack(g.t, f), g.line.Now-1)
		}
		if err := g.u.Tick(g.line.Now); err != nil {
			g.t.Fatal(err)
		}
		for j := len(g.line.All) - 1; j >= 0 && !g.stop; j-- {
			if f := g.line.All[j]; f.ID == idDctForks {
				for r := range g.rail {
					g.rail[r] = min(max(g.rail[r]+float64(unit.Signed(&f, 16+12*r, 12))*1e-5, -12e-3), 12e-3)
				}
				break
			}
		}
		for r, s := range g.rail { // the detent
			if math.Abs(s) < railDetent && g.d.want[r&1] != 0 && dctSleeve[g.d.want[r&1]] != r {
				g.rail[r] = 0
			}
		}
	}
}

func TestDctPreselectsAndShiftsThroughAllGears(t *testing.T) {
	g := newDctRig(t)
	g.drive(1, 1)
	if g.d.gear != 1 || g.d.preselected() != 2 {
		t.Fatalf("gear %s, %s preselected; want 1 and 2\n%s", dctNames[g.d.gear], dctNames[g.d.preselected()], g.log.String())
	}
	for gear := 2; gear <= 7; gear++ {
		g.drive(4, g.d.up()/dctRatio[gear-1]*1.02)
		if g.drive(1.5, g.out); g.d.gear != gear {
			t.Fatalf("gear %s at %g rad/s, want %d\n%s", dctNames[g.d.gear], g.out, gear, g.log.String())
		}
	}
	for gear := 6; gear >= 1; gear-- {
		g.drive(4, g.d.down()/dctRatio[gear+1]*0.98)
		if g.drive(1.5, g.out); g.d.gear != gear {
			t.Fatalf("gear %s at %g rad/s, want %d\n%s", dctNames[g.d.gear], g.out, gear, g.log.String())
		}
	}
	if codes := g.ask("19 02 0D"); codes != "59 02 FF" {
		t.Errorf("codes of a healthy drive: %s", codes)
	}
}

// A shift to the other half of the gearbox is one exchange. One within a half goes by a bridge gear between the two: that
// engaged in the other half, or the neighbour of the new one.
func TestDctSkipsGears(t *testing.T) {
	for _, c := range []struct {
		from, to uint64
		out      float64
		want     string
	}{
		{7, 4, 60, "7 -> 4"}, {5, 2, 50, "5 -> 2"}, {2, 5, 50, "2 -> 5"}, {3, 6, 60, "3 -> 6"}, {4, 7, 60, "4 -> 7"},
		{7, 3, 60, "7 -> 6, 6 -> 3"}, {6, 4, 60, "6 -> 5, 5 -> 4"}, {1, 3, 30, "1 -> 2, 2 -> 3"}, {5, 7, 60, "5 -> 6, 6 -> 7"},
	} {
		g := newDctRig(t)
		g.wish = c.from
		g.drive(8, c.out)
		g.drive(6, g.out)
		if g.d.gear != int(c.from) || !g.d.closed {
			t.Fatalf("gear %s, want %d\n%s", dctNames[g.d.gear], c.from, g.log.String())
		}
		g.log.Reset()
		g.wish = c.to
		g.drive(4, g.out)
		var swaps []string
		for line := range strings.Lines(g.log.String()) {
			if _, swap, ok := strings.Cut(line, ": shift "); ok {
				swaps = append(swaps, strings.TrimSpace(swap))
			}
		}
		if got := strings.Join(swaps, ", "); got != c.want || g.d.gear != int(c.to) || !g.d.closed {
			t.Errorf("%d-%d: %s, gear %s; want %s\n%s", c.from, c.to, got, dctNames[g.d.gear], c.want, g.log.String())
		}
	}
}

// A kickdown chooses the gear once the accelerator rests, and not those between.
func TestDctKicksDownInOneShift(t *testing.T) {
	g := newDctRig(t)
	g.pedal = 0
	g.drive(8, 52)
	g.drive(6, g.out)
	if g.d.gear != 5 {
		t.Fatalf("gear %s, want 5\n%s", dctNames[g.d.gear], g.log.String())
	}
	shifts := g.d.shifts
	for g.pedal < 250 {
		g.pedal += 25
		g.drive(0.02, g.out)
	}
	g.drive(3, g.out)
	if g.d.gear != 3 || g.d.shifts-shifts != 2 {
		t.Errorf("gear %s after %d exchanges, want 3 after two\n%s", dctNames[g.d.gear], g.d.shifts-shifts, g.log.String())
	}
}

// A unit that wakes in a moving car takes the engaged gear over.
func TestDctTakesTheMovingCarOver(t *testing.T) {
	g := newDctRig(t)
	g.rail[3], g.out = 12e-3, 70
	g.d.gear, g.d.rail = 6, g.rail // engine and shafts of the rig turn with what the unit knows
	g.drive(0.5, 70)
	if g.d.gear != 6 || g.d.shifts != 0 || !g.d.closed {
		t.Errorf("gear %s after %d shifts, want 6 after none\n%s", dctNames[g.d.gear], g.d.shifts, g.log.String())
	}
}

func TestDctStoresFaults(t *testing.T) {
	for _, c := range []struct {
		name, code string
		change     func(g *dctRig)
	}{
		{"input shaft 1", "07 15 00", func(g *dctRig) { g.raw[0] = 60 }},
		{"input shaft 2", "27 65 00", func(g *dctRig) { g.raw[1] = 60 }},
		{"output shaft", "07 20 00", func(g *dctRig) { g.raw = [2]float64{60, 60} }},
		{"a sleeve that does not move", "09 19 00", func(g *dctRig) {
			g.stop = true
			g.drive(4, g.d.up()/dctRatio[1]*1.02)
		}},
	} {
		g := newDctRig(t)
		g.drive(2, 5)
		c.change(g)
		g.drive(2, g.out)
		g.drive(2, g.out)
		if codes := g.ask("19 02 08"); !strings.Contains(codes, c.code) {
			t.Errorf("%s: %s, want %s\n%s", c.name, codes, c.code, g.log.String())
		}
		if limp := g.ask("22 10 0A"); limp != "62 10 0A 01" {
			t.Errorf("%s: limp-home %s", c.name, limp)
		}
	}
}

// A clutch that does not close ends its exchange: after the longest time the gear before drives on, with P0811 and in
// limp-home. A closed clutch would let the engine flare. Once the code is cleared, the unit tries again. Neutral ends an
// exchange at once.
func TestDctEndsAnExchangeThatTheEngineDoesNotFollow(t *testing.T) {
	g := newDctRig(t)
	g.drive(1, 1)
	g.drive(4, g.d.up()/dctRatio[1]*0.99)
	if g.d.gear != 1 || !g.d.closed {
		t.Fatalf("gear %s, closed %t; want 1\n%s", dctNames[g.d.gear], g.d.closed, g.log.String())
	}
	exchanges := func() {
		t.Helper()
		if g.drive(0.5, g.d.up()/dctRatio[1]*1.01); g.d.gear != 2 || g.d.closed || !g.d.busy() {
			t.Fatalf("gear %s, closed %t; want an exchange to 2\n%s", dctNames[g.d.gear], g.d.closed, g.log.String())
		}
	}
	g.lag[1] = 60
	exchanges()
	if g.drive(swapMost+0.5, g.out); g.d.gear != 1 || !g.d.closed || g.d.busy() {
		t.Errorf("gear %s, closed %t; want 1 again\n%s", dctNames[g.d.gear], g.d.closed, g.log.String())
	}
	if codes := g.ask("19 02 08"); !strings.Contains(codes, "08 11 00") || g.ask("22 10 0A") != "62 10 0A 01" {
		t.Errorf("codes %s, want P0811 and limp-home\n%s", codes, g.log.String())
	}
	if g.drive(2, g.out); g.d.gear != 1 {
		t.Errorf("gear %s in limp-home, want 1\n%s", dctNames[g.d.gear], g.log.String())
	}
	if cleared := g.ask("14 FF FF FF"); cleared != "54" {
		t.Fatalf("clear: %s", cleared)
	}
	exchanges()
	g.lever = leverN
	if g.drive(0.05, g.out); g.d.gear != 0 {
		t.Errorf("gear %s in neutral", dctNames[g.d.gear])
	}
}

// A closed clutch that lets the engine flare is given up: the gear engaged in the other half drives on. At a stop its
// lowest gear does.
func TestDctDrivesInTheHalfWhoseClutchCloses(t *testing.T) {
	g := newDctRig(t)
	g.drive(1, 1)
	g.drive(4, g.d.up()/dctRatio[2]*1.05)
	if g.drive(2, g.out); g.d.gear != 3 {
		t.Fatalf("gear %s, want 3\n%s", dctNames[g.d.gear], g.log.String())
	}
	g.lag[0] = 60
	if g.drive(0.5, g.out); half(g.d.gear) != 1 || !g.d.closed {
		t.Errorf("gear %s, closed %t; want one of K2\n%s", dctNames[g.d.gear], g.d.closed, g.log.String())
	}
	g.drive(5, 0)
	if g.drive(2, 0); g.d.gear != 2 || g.d.carry[0] != 0 {
		t.Errorf("gear %s at rest, want 2\n%s", dctNames[g.d.gear], g.log.String())
	}
	if g.drive(5, 20); g.d.gear != 2 || !g.d.closed || g.d.engaged(0) != 0 {
		t.Errorf("gear %s, closed %t, gear %s of K1; want 2 alone\n%s", dctNames[g.d.gear], g.d.closed, dctNames[g.d.engaged(0)], g.log.String())
	}
	g.lag[1] = 60
	if g.drive(1, g.out); g.d.gear != 0 {
		t.Errorf("gear %s with two clutches that do not close", dctNames[g.d.gear])
	}
}

// An accelerator that no frame tells any more counts as released: the clutch gets the pressure for the drag of the engine.
func TestDctReleasesTheAcceleratorWithoutDctDriver(t *testing.T) {
	g := newDctRig(t)
	g.drive(1, 1)
	g.drive(2, g.d.up()/dctRatio[1]*0.7) // too slow for second gear with a released accelerator, too
	pressure := func() float64 {
		at := slices.IndexFunc(g.line.All[len(g.line.All)-2:], func(f can.Frame) bool { return f.ID == idDctClutches })
		return float64(unit.Bits(&g.line.All[len(g.line.All)-2+at], 32, 12)) * 0.01
	}
	closed := func(accelerator float64) float64 { return 1.5 + (250*accelerator+90)/30.24 } // a kiss point, torques, N.m per bar
	if p := pressure(); !scalar.EqualWithinAbs(p, closed(0.3), 0.011) {
		t.Fatalf("K1 has %g bar with 30 %% accelerator, want %g\n%s", p, closed(0.3), g.log.String())
	}
	g.lost = idDctDriver
	if g.drive(0.09, g.out); !scalar.EqualWithinAbs(pressure(), closed(0.3), 0.011) {
		t.Errorf("K1 has %g bar before the timeout, want %g", pressure(), closed(0.3))
	}
	if g.drive(0.05, g.out); !scalar.EqualWithinAbs(pressure(), closed(0), 0.011) {
		t.Errorf("K1 has %g bar without DctDriver, want %g", pressure(), closed(0))
	}
}

// A fork rests as soon as no frame tells where its sleeve is: it would push it through neutral into the other gear.
func TestDctForksRestWithoutTheirPositions(t *testing.T) {
	g := newDctRig(t)
	g.drive(1, 1)
	g.stop = true
	g.drive(3, g.d.up()/dctRatio[2]*1.1) // second gear, and third is to be engaged
	pushes := func() bool {
		at := slices.IndexFunc(g.line.All[len(g.line.All)-2:], func(f can.Frame) bool { return f.ID == idDctForks })
		f := &g.line.All[len(g.line.All)-2+at]
		return slices.ContainsFunc([]int{16, 28, 40, 52}, func(at int) bool { return unit.Signed(f, at, 12) != 0 })
	}
	if !pushes() {
		t.Fatalf("no fork moves\n%s", g.log.String())
	}
	g.lost = idDctRails
	if g.drive(0.05, g.out); pushes() {
		t.Error("a fork pushes 50 ms after the last DctRails")
	}
	g.lost = 0
	if g.drive(0.05, g.out); !pushes() {
		t.Error("no fork moves with DctRails")
	}
}

// Without DctEngine the engine has the speed of the closed clutch: its slip is not judged, and the clutch opens at a stop.
func TestDctDrivesWithoutDctEngine(t *testing.T) {
	g := newDctRig(t)
	g.drive(1, 1)
	g.drive(2, 10)
	if !g.d.closed {
		t.Fatalf("the clutch slips\n%s", g.log.String())
	}
	g.lost = idDctEngine
	g.drive(3, 20)
	if codes := g.ask("19 02 08"); !strings.Contains(codes, "D1 02 00") || strings.Contains(codes, "08 11 00") {
		t.Errorf("codes %s, want U1102 alone", codes)
	}
	g.pedal = 0
	if g.drive(4, 0); g.d.closed {
		t.Errorf("the clutch is closed at a stop\n%s", g.log.String())
	}
}

// A value that names no gear is no wish.
func TestGearWishNamesAForwardGear(t *testing.T) {
	for wish, want := range []int{0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0} {
		var p unit.Payload
		p.SetBits(48, 4, uint64(wish))
		f := p.Frame(idDctDriver)
		if got := gearWish(&f, 48, 7); got != want {
			t.Errorf("wish %d: gear %d, want %d", wish, got, want)
		}
	}
}

// A frame is taken without an allocation: no table is built, and no bytes are copied to the heap.
func TestReceivingAllocatesNothing(t *testing.T) {
	for name, id := range map[string]uint32{"dct7": idDctDriver, "automatic": idPedals, "hp8": idEngineTorque} {
		u := newUnit(t, name, io.Discard, io.Discard)
		f := unit.Payload(0).Frame(id)
		f.Data[0] = unit.CRC1A(&f)
		now := time.Unix(0, 0)
		if n := testing.AllocsPerRun(100, func() { u.Law.Receive(&f, now) }); n != 0 {
			t.Errorf("%s: %g allocations per frame", name, n)
		}
	}
}

// Backwards, a shaft may differ from the ratio of its gear by the same share of its speed as forwards, and one that
// differs more is stored with its own code alone.
func TestDctJudgesTheReverseGear(t *testing.T) {
	const out = -16
	share := [2]float64{0.1 * -out * dctRatio[1], 0.1 * out * dctRatio[dctReverse]} // above 20 rad/s, the least tolerance
	if !(share[0] > 21 && share[1] > 21) {
		t.Fatalf("tolerances %g rad/s", share)
	}
	for _, c := range []struct {
		code string
		raw  [2]float64
		lag  float64
	}{
		{"", [2]float64{}, 0}, {"", [2]float64{(20 + share[0]) / 2, 0}, 0}, {"", [2]float64{0, (20 + share[1]) / 2}, (20 + share[1]) / 2},
		{"07 15 00", [2]float64{share[0] + 2, 0}, 0}, {"27 65 00", [2]float64{0, share[1] + 2}, share[1] + 2},
		{"07 20 00", [2]float64{share[0] + 2, share[1] + 2}, share[1] + 2}, {"08 11 00", [2]float64{}, 60},
	} {
		g := newDctRig(t)
		g.lever = leverR
		g.drive(2, 0)
		g.drive(3, out)
		if g.d.gear != dctReverse || !g.d.closed {
			t.Fatalf("gear %s, closed %t; want R\n%s", dctNames[g.d.gear], g.d.closed, g.log.String())
		}
		g.raw, g.lag[1] = c.raw, c.lag
		g.drive(3, g.out)
		want := "59 02 FF"
		if c.code != "" {
			want += " " + c.code
		}
		codes := g.ask("19 02 08")
		if c.code != "" && len(codes) == len(want)+3 { // the status of the code
			codes = codes[:len(want)]
		}
		if codes != want {
			t.Errorf("shafts off by %g rad/s, slip %g rad/s: codes %s, want %s\n%s", c.raw, c.lag, codes, want, g.log.String())
		}
	}
}

// Where the lever is moved to R in a car that rolls forwards, or to D in reverse gear, the clutches open: the accelerator
// would drive the car against the lever.
func TestDctDrivesNotAgainstTheLever(t *testing.T) {
	g := newDctRig(t)
	g.drive(2, 10)
	g.lever = leverR
	if g.drive(0.5, 10); g.d.gear != 0 || g.d.carry != [2]float64{} {
		t.Errorf("gear %s with R at 10 rad/s forwards\n%s", dctNames[g.d.gear], g.log.String())
	}
	if g.drive(3, 0); g.d.gear != dctReverse {
		t.Errorf("gear %s with R at rest\n%s", dctNames[g.d.gear], g.log.String())
	}
	g.drive(2, -10)
	g.lever = leverD
	if g.drive(0.01, -10); g.d.gear == dctReverse {
		t.Error("reverse gear with D")
	}
}

// Without the ignition the clutches open, and after its after-run the unit is silent, whatever the bench sends. Speeds wake
// it when the ignition is on again.
func TestDctFollowsTheIgnition(t *testing.T) {
	g := newDctRig(t)
	last := func(id uint32) (at float64) { at, _ = g.last(id); return at }
	g.key = unit.KeyRun
	g.drive(2, 5)
	if g.d.gear != 1 {
		t.Fatalf("gear %s, want 1\n%s", dctNames[g.d.gear], g.log.String())
	}
	g.key = unit.KeyOff
	if g.drive(0.1, g.out); g.d.gear != 0 {
		t.Errorf("gear %s without ignition", dctNames[g.d.gear])
	}
	g.drive(5.9, 0)
	if at := last(idDctClutches); at < 4.97 || at > 5.01 {
		t.Errorf("the last pressures are sent at %g s; want 5 s: 3 s after the end of the ignition", at)
	}
	if at := last(unit.IDNMUnit); at < 4.8 || at > 5.01 {
		t.Errorf("the last NM message is sent at %g s; want the last 100 ms before 5 s", at)
	}
	g.key = unit.KeyRun
	if g.drive(1, 0); last(idDctClutches) < 8.9 {
		t.Errorf("the last pressures are sent at %g s; want 9 s: the ignition is on again", last(idDctClutches))
	}
	if codes := g.ask("19 02 0D"); codes != "59 02 FF" {
		t.Errorf("codes of a healthy drive: %s", codes)
	}
}

// After its code is cleared, a fork that has rested pushes again, for the time of a whole attempt.
func TestDctForkPushesAgainAfterItsCodeIsCleared(t *testing.T) {
	g := newDctRig(t)
	g.drive(2, 5)
	g.stop = true
	g.drive(4, g.d.up()/dctRatio[1]*1.02)
	g.drive(4, g.out)
	if codes := g.ask("19 02 08"); !strings.Contains(codes, "09 19 00") {
		t.Fatalf("codes %s\n%s", codes, g.log.String())
	}
	if cleared := g.ask("14 FF FF FF"); cleared != "54" {
		t.Fatalf("clear: %s", cleared)
	}
	for range 2 { // less than the time of an attempt, and then the sleeve moves
		g.drive(1, g.out)
		if codes := g.ask("19 02 09"); strings.Contains(codes, "09 19 00") {
			t.Fatalf("the code is back: %s\n%s", codes, g.log.String())
		}
		g.stop = false
	}
}
