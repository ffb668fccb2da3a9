package gearbox

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// logTo returns a function that writes lines of a law to a log.
func logTo(w io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
}

const euler = 1e-4 // s

// drive connects a unit to a gearbox for a while on the grid of the bus: speeds
// rounded to their bits, pressures every 10 ms, in effect half a cycle later.
// After every cycle it calls look.
func drive(t *testing.T, u *shiftLaw, g *gearbox, seconds float64, look func(now float64, p [8]float64)) {
	t.Helper()
	var sent, held [8]float64
	for k := range int(seconds / euler) {
		now := float64(k) * euler
		switch k % 100 {
		case 0:
			sent = u.step(now, g.measured(), true)
			look(now, sent)
			if k == 0 {
				held = sent
			}
		case 50:
			held = sent
		}
		if residual := g.advance(held, euler); !(residual < 1e-6) {
			t.Fatalf("%.4f s: the test's own gearbox did not converge: slip off by %g rad/s", now, residual)
		}
		if power := g.work(euler); !(power > -1e-3) {
			t.Fatalf("%.4f s: friction drives with %g W", now, power)
		}
	}
}

func TestSixtySecondsOfDrivingKeepShifting(t *testing.T) {
	log := &bytes.Buffer{}
	u, g := shiftLaw{logf: logTo(log)}, firstGear()
	u.begin(g.measured())
	var gears []string
	began := math.NaN()
	drive(t, &u, &g, 60, func(now float64, _ [8]float64) {
		limits := [4]float64{327, 163, 81, 16} // of the bus, rad/s
		for i, w := range g.w {
			if !(math.Abs(w) < limits[i]) {
				t.Fatalf("%.2f s: w%d = %v rad/s leaves the bus", now, i+1, w)
			}
		}
		if engine := g.w[0]; !(engine > 25 && engine < 300) {
			t.Fatalf("%.2f s: engine at %v rad/s", now, engine)
		}
		if u.busy {
			if math.IsNaN(began) {
				began = now
			}
			return
		}
		if !u.gear.engaged(g.w) {
			t.Fatalf("%.2f s: gear %v slips: %v rad/s", now, u.gear, g.w)
		}
		if !math.IsNaN(began) {
			if took := now - began; !(took > 0.1 && took < 0.6) {
				t.Errorf("%.2f s: the shift to %v took %.2f s", now, u.gear, took)
			}
			gears = append(gears, u.gear.String())
			began = math.NaN()
		}
	})
	opening := "2-3-6 1-5-6 2-4-7 "
	round := "2-5-7 2-5-8 2-4-7 "
	got := strings.Join(gears, " ") + " "
	if !strings.HasPrefix(got, opening+strings.Repeat(round, 4)) {
		t.Errorf("gears in 60 s: %s\nwant %s, then again and again %s", got, opening, round)
	}
	if strings.Contains(log.String(), "still slips") {
		t.Errorf("a shift was late:\n%s", log)
	}
}

func TestFirstThreeShiftsHappenAtTheTimesOfThePaper(t *testing.T) {
	log := &bytes.Buffer{}
	u, g := shiftLaw{logf: logTo(log)}, firstGear()
	u.begin(g.measured())
	engaged := map[string]float64{}
	drive(t, &u, &g, 3.5, func(now float64, _ [8]float64) {
		if _, ok := engaged[u.gear.String()]; !ok && !u.busy {
			engaged[u.gear.String()] = now
		}
	})
	// Begin of each swap in Morselli, section 5, and of the next one (3.5 s: the end).
	for g, between := range map[string][2]float64{"2-3-6": {0.5, 1.7}, "1-5-6": {1.7, 2.5}, "2-4-7": {2.5, 3.5}} {
		if at, ok := engaged[g]; !(ok && at > between[0] && at < between[1]) {
			t.Errorf("gear %s engaged at %v s, want between %v and %v s\n%s", g, at, between[0], between[1], log)
		}
	}
}

func TestUnitKilledMidShiftResumesTheDrive(t *testing.T) {
	for _, at := range []float64{0.55, 1.8, 2.6, 17.48} { // s, within each kind of shift
		u, g := shiftLaw{logf: logTo(&bytes.Buffer{})}, firstGear()
		u.begin(g.measured())
		var last [8]float64
		drive(t, &u, &g, at, func(_ float64, p [8]float64) { last = p })
		if !u.busy {
			t.Fatalf("%v s is not within a shift", at)
		}
		for range int(1 / euler) { // the bench goes on with the last command
			g.advance(last, euler)
		}
		log := &bytes.Buffer{}
		u = shiftLaw{logf: logTo(log)}
		u.begin(g.measured())
		var gears []gear
		drive(t, &u, &g, 20, func(_ float64, _ [8]float64) {
			if !u.busy && (len(gears) == 0 || gears[len(gears)-1] != u.gear) {
				gears = append(gears, u.gear)
			}
		})
		if len(gears) < 3 || !u.gear.engaged(g.w) && !u.busy {
			t.Errorf("killed at %v s: gears afterwards %v\n%s", at, gears, log)
		}
	}
}

func TestUnitThatStartsLateTakesOverTheVehicle(t *testing.T) {
	// Nobody shifts: in first gear the engine races beyond what the bus can say
	// (327 rad/s after 2.5 s, and after 8 s the wheel, too, with 16 rad/s).
	for _, late := range []int{3, 8} { // s
		g := firstGear()
		for range int(float64(late) / euler) {
			g.advance([8]float64{0: 18, 2: 17.5, 5: 18}, euler)
		}
		log := &bytes.Buffer{}
		u := shiftLaw{logf: logTo(log)}
		u.begin(g.measured())
		calm := 0.0 // s, when the speeds were back on the bus
		drive(t, &u, &g, 60, func(now float64, _ [8]float64) {
			if !(math.Abs(g.w[0]) < 327 && math.Abs(g.w[3]) < 16) {
				calm = now
			}
		})
		if !(calm < 30) || !u.busy && !u.gear.engaged(g.w) {
			t.Errorf("%d s late: off the bus until %.1f s, then %v rad/s\n%s", late, calm, g.w, log)
		}
	}
}

func TestOwnGearboxAgreesWithTheReference(t *testing.T) {
	// Tangential forces, N, over time, s, of Morselli, section 5 as an accurate
	// integrator was given them, and the speeds it found at 3.5 s, rad/s.
	profile := [8][][2]float64{
		{{0.5, 900}, {0.56, 0}, {1.7, 0}, {1.9, 450}, {2, 900}, {2.5, 900}, {2.56, 0}},
		{{0.5, 0}, {0.7, 620}, {0.8, 1200}, {1.7, 1200}, {1.76, 0}, {2.5, 0}, {2.72, 650}, {2.9, 1200}},
		{{1.7, 3500}, {1.76, 0}},
		{{2.5, 0}, {2.74, 1800}, {2.9, 3500}},
		{{1.7, 0}, {1.9, 1700}, {2, 3500}, {2.5, 3500}, {2.56, 0}},
		{{2.5, 9000}, {2.56, 0}},
		{{2.5, 0}, {2.76, 4500}, {2.95, 9000}},
		{{1.1, 0}, {1.2, 60}},
	}
	want := [4]float64{97.04370186309161, -48.52185093154579, 16.173950310515714, -8.086975155257953}
	g := firstGear()
	for k := range int(3.5 / euler) {
		var p [8]float64
		for i, rows := range profile {
			p[i] = between(rows, (float64(k)+0.5)*euler) / force[i]
		}
		g.advance(p, euler)
	}
	for i := range want {
		if !(math.Abs(g.w[i]/want[i]-1) < 1e-6) {
			t.Errorf("w%d at 3.5 s = %v rad/s, want %v", i+1, g.w[i], want[i])
		}
	}
}

// between interpolates a table linearly; it is constant outside its rows.
func between(rows [][2]float64, t float64) float64 {
	last := rows[0]
	for _, row := range rows {
		if t < row[0] {
			if last == row {
				return row[1]
			}
			return last[1] + (row[1]-last[1])*(t-last[0])/(row[0]-last[0])
		}
		last = row
	}
	return last[1]
}
