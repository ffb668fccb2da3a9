package brakes

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// escRig is the unit in a car that is a bicycle with two wheels on each axle: lateral forces that saturate with the
// friction, and longitudinal ones by slip. Calipers follow the valves by an orifice; the pump gives 100 bar.
type escRig struct {
	t          *testing.T
	u          *unittest.Unit
	line       *unittest.Line
	log        bytes.Buffer
	k          int
	v, vy, r   float64
	psi, y     float64
	ax, ay     float64
	grade      float64 // what a slope adds to the sensor, m/s2
	road       [4]float64
	w, bar     [4]float64
	steer      float64 // steering wheel, rad
	pedal      float64
	throttle   float64
	in, out    [4]float64
	iso, suck  [2]float64
	share      float64
	engine     float64 // force of the engine at full throttle, N
	top        float64 // mean speed of the front wheels at which the engine ends, rad/s; 0: none
	held       bool
	damaged    bool       // the checksums are wrong
	bias       [3]float64 // of the sensors of yaw rate, rad/s, lateral acceleration, m/s2, and steering angle, rad
	dead       [4]bool    // the sensor of the wheel reads 0
	swapped    [2]bool    // the sensors of an axle are swapped
	drag       float64    // torque with which the engine drags each front wheel, N·m
	silent     uint32     // frame that is not sent
	mostBraked [4]float64
}

func newEscRig(t *testing.T, v, road float64) *escRig {
	t.Helper()
	g := &escRig{t: t, line: &unittest.Line{T: t}, v: v, road: [4]float64{road, road, road, road}, share: 1}
	for i := range g.w {
		g.w[i] = v / escRadius
	}
	g.u = newUnit(t, "esc", g.line, &g.log)
	return g
}

// cycle steps the car and the bus by 5 ms.
func (g *escRig) cycle() {
	g.t.Helper()
	for range 20 {
		g.euler(2.5e-4)
	}
	g.k++
	g.line.Now = time.Duration(g.k) * brakeCycle
	for _, f := range g.frames() {
		if f.ID == g.silent {
			continue
		}
		g.u.Receive(unittest.Pack(g.t, f), g.line.Now-1)
	}
	read := len(g.line.All)
	if err := g.u.Tick(g.line.Now); err != nil {
		g.t.Fatal(err)
	}
	for _, f := range g.line.All[read:] {
		if unit.CRC1A(&f) != f.Data[0] {
			g.t.Fatalf("frame 0x%X has a wrong checksum", f.ID)
		}
		share := func(at int) float64 { return float64(unit.Bits(&f, at, 8)) * escShare }
		if f.ID == idEscPump {
			g.iso, g.suck = [2]float64{share(12), share(20)}, [2]float64{share(28), share(36)}
			g.share, g.held = share(52), unit.Bits(&f, 63, 1) == 1
			continue
		}
		first := 2 * int(f.ID-idEscFront)
		for i := range 2 {
			g.in[first+i], g.out[first+i] = share(12+16*i), share(20+16*i)
		}
	}
}

// frames packs what the sensors have.
func (g *escRig) frames() (list []can.Frame) {
	var wheels, motion, driver unit.Payload
	put := func(p *unit.Payload, at, n int, v, scale float64) {
		p.SetBits(at, n, uint64(int64(math.RoundToEven(v/scale))))
	}
	for i := range g.w {
		w := g.w[i]
		if g.swapped[i/2] {
			w = g.w[i^1]
		}
		if g.dead[i] {
			w = 0
		}
		put(&wheels, 12+13*i, 13, w, escWheelBit)
	}
	put(&motion, 12, 14, g.r+g.bias[0], escYawBit)
	put(&motion, 26, 12, g.ax+g.grade, escAccelBit)
	put(&motion, 38, 12, g.ay+g.bias[1], escAccelBit)
	put(&motion, 50, 12, g.pedal, escBar)
	put(&driver, 12, 16, g.steer+g.bias[2], escSteerBit)
	put(&driver, 28, 8, g.throttle, escShare)
	for i, p := range []unit.Payload{wheels, motion, driver} {
		p.SetBits(8, 4, uint64((g.k-1)%15))
		f := p.Frame(idEscWheels + uint32(i))
		if f.Data[0] = unit.CRC1A(&f); g.damaged {
			f.Data[0]++
		}
		list = append(list, f)
	}
	return list
}

func (g *escRig) euler(h float64) {
	const m, J, lf, lr, half = 1500.0, 2500.0, 1.2, 1.5, 0.755
	delta := g.steer / escRatio
	var fx, fy, turn float64
	for i := range g.w {
		x, arm, angle, load := lf, -left[i]*half, delta, 4087-g.ax*150
		if i >= 2 {
			x, angle, load = -lr, 0, 3270+g.ax*150
		}
		along, across := g.v+arm*g.r, g.vy+x*g.r
		roll := max(math.Abs(along), 0.5)
		slip, side := (g.w[i]*escRadius-along)/roll, angle-math.Atan(across/roll)
		stiff := [2]float64{12, 14}[i/2] // it understeers
		total := math.Hypot(slip*stiff, side*stiff) + 1e-9
		grip := g.road[i] * load * math.Sin(1.35*math.Atan(total)) / total
		lx, ly := grip*slip*stiff, grip*side*stiff
		line := g.pedal
		if c := circuit(i); g.suck[c] > 0.5 {
			line = max(line, 100)
		} else if g.iso[c] > 0.5 {
			line = max(line, g.bar[i]) // what is in stays in
		}
		flow := 130 * (1 - g.in[i]) * math.Copysign(math.Sqrt(math.Abs(line-g.bar[i])), line-g.bar[i])
		g.bar[i] = max(0, g.bar[i]+h*(flow-130*g.out[i]*math.Sqrt(g.bar[i])))
		g.mostBraked[i] = max(g.mostBraked[i], g.bar[i])
		drive := 0.0
		if i < 2 {
			drive = g.engine*g.throttle*g.share*escRadius/2 - g.drag
			if g.top > 0 {
				drive *= min(max((g.top-(g.w[0]+g.w[1])/2)/10, 0), 1)
			}
		}
		brake := [2]float64{25, 8}[i/2] * g.bar[i]
		g.w[i] = max(0, g.w[i]+h*(drive-lx*escRadius-brake))
		x1, y1 := lx*math.Cos(angle)-ly*math.Sin(angle), lx*math.Sin(angle)+ly*math.Cos(angle)
		fx, fy, turn = fx+x1, fy+y1, turn+x*y1+arm*x1
	}
	g.ax, g.ay = fx/m, fy/m
	g.v, g.vy, g.r = max(0, g.v+h*(g.ax+g.r*g.vy)), g.vy+h*(g.ay-g.r*g.v), g.r+h*turn/J
	g.psi += h * g.r
	g.y += h * (g.v*math.Sin(g.psi) + g.vy*math.Cos(g.psi))
}

// sineWithDwell is the steering wheel of a sine with dwell of 0.7 Hz from 0.5 s on, rad.
func sineWithDwell(t, most float64) float64 {
	const period = 1 / 0.7
	switch t -= 0.5; {
	case t < 0:
		return 0
	case t < 0.75*period:
		return most * math.Sin(2*math.Pi*t/period)
	case t < 0.75*period+0.5:
		return -most
	case t < period+0.5:
		return most * math.Sin(2*math.Pi*(t-0.5)/period)
	}
	return 0
}

func TestEscKeepsTheCarFromSpinning(t *testing.T) {
	turned := func(enabled float64) float64 {
		g := newEscRig(t, 27, 0.9)
		g.u.Law.(*esc).tune.enabled = enabled
		for k := range 900 {
			g.steer = sineWithDwell(float64(k)*5e-3, 2.3)
			g.cycle()
		}
		t.Logf("enabled %g: turned by %.2f rad, yaw rate %.3f rad/s, pressures up to %.0f bar", enabled, g.psi, g.r, g.mostBraked)
		return math.Abs(g.psi)
	}
	if with, without := turned(1), turned(0); !(with < 0.5) || !(without > 1.5) {
		t.Errorf("turned by %g rad with the unit and %g without", with, without)
	}
}

func TestEscRestsInAnOrdinaryTurn(t *testing.T) {
	g := newEscRig(t, 25, 1)
	g.u.Law.(*esc).tune.stiffness = 0 // this car steers neutrally
	for k := range 800 {
		g.steer = 0.4 * min(float64(k)*5e-3, 1)
		g.cycle()
	}
	if g.mostBraked != [4]float64{} || !(g.ay > 2.5) {
		t.Errorf("pressures up to %v bar at %g m/s2\n%s", g.mostBraked, g.ay, &g.log)
	}
}

func TestEscReducesAnEngineThatSpinsTheWheels(t *testing.T) {
	g := newEscRig(t, 5, 0.2)
	g.engine, g.throttle = 6000, 1
	most := 0.0
	for k := range 600 {
		if g.cycle(); k > 200 {
			most = max(most, g.w[0]*escRadius-g.v)
		}
	}
	if t.Logf("slip up to %.2f m/s at %.1f m/s", most, g.v); !(most < 0.3*g.v) || !(g.v > 7) {
		t.Errorf("slip up to %g m/s, speed %g m/s\n%s", most, g.v, &g.log)
	}
}

// With ice under one driven wheel the differential gives the other one no more than the ice carries, unless the unit brakes
// the wheel on ice.
func TestEscBrakesADrivenWheelThatSpinsOnOneSide(t *testing.T) {
	drive := func(enabled float64) *escRig {
		g := newEscRig(t, 1, 1)
		g.u.Law.(*esc).tune.enabled = enabled
		g.road[0], g.road[2] = 0.1, 0.1
		g.engine, g.throttle, g.top = 4000, 1, 100
		for range 600 {
			g.cycle()
		}
		return g
	}
	with, without := drive(1), drive(0)
	t.Logf("%.2f m/s with the unit, %.2f without; pressures up to %.1f bar", with.v, without.v, with.mostBraked)
	if !(with.v > 2*without.v) || !(with.mostBraked[0] > 5 && with.mostBraked[1] < 1 && with.mostBraked[3] < 5) || without.mostBraked != [4]float64{} {
		t.Errorf("%g m/s with the unit, %g without; pressures up to %v bar\n%s", with.v, without.v, with.mostBraked, &with.log)
	}
}

func TestEscHoldsTheCarOnASlope(t *testing.T) {
	g := newEscRig(t, 0, 1)
	g.grade = 1.4
	g.pedal = 40
	run := func(seconds float64) {
		for range int(seconds / 5e-3) {
			g.cycle()
		}
	}
	run(1)
	g.pedal = 0
	run(1)
	if !g.held || !(g.bar[0] > 20) {
		t.Errorf("held %v with %g bar 1 s after the pedal", g.held, g.bar[0])
	}
	run(2)
	if g.held {
		t.Error("it still holds 3 s after the pedal")
	}
}

func TestEscDoesNotUseFramesWithAWrongChecksum(t *testing.T) {
	g := newEscRig(t, 20, 1)
	g.cycle()
	g.cycle()
	g.damaged = true
	g.pedal = 100
	g.cycle()
	if e := g.u.Law.(*esc); e.master != 0 || e.Counts.Malformed != 3 {
		t.Errorf("master %g bar, %d malformed frames", e.master, e.Counts.Malformed)
	}
	if last := g.u.Close(); !strings.Contains(last, "3 malformed") {
		t.Error(last)
	}
}

func TestEscIsDeterministic(t *testing.T) {
	var runs [2][]byte
	for i := range runs {
		g := newEscRig(t, 27, 0.9)
		for k := range 400 {
			g.steer = sineWithDwell(float64(k)*5e-3, 2.6)
			g.cycle()
		}
		for _, f := range g.line.All {
			runs[i] = append(runs[i], f.Data[:]...)
		}
	}
	if !bytes.Equal(runs[0], runs[1]) {
		t.Error("two equal drives differ")
	}
}

// A bias of the acceleration sensor, or a road that begins to rise or to fall, makes the car seem faster or slower than it
// is while the slip of all wheels is controlled. The brakes must not stay released for it, nor the rear wheels lock.
func TestEscBrakesWithAWrongAcceleration(t *testing.T) {
	const seconds = 2.5
	lost := func(bias, road float64) float64 {
		g := newEscRig(t, 27, road)
		e := g.u.Law.(*esc)
		for range 200 {
			g.cycle()
		}
		g.pedal, g.grade = 120, bias
		v := g.v
		for range int(seconds / brakeCycle.Seconds()) {
			if g.cycle(); g.v > 5 && !(min(g.w[2], g.w[3])*escRadius > 0.6*g.v) || !(math.Abs(e.v-g.v) < 2.1) {
				t.Fatalf("road %g, bias %g m/s2: %.1f m/s, estimated %.1f m/s, rear wheels at %.1f and %.1f m/s",
					road, bias, g.v, e.v, g.w[2]*escRadius, g.w[3]*escRadius)
			}
		}
		return v - g.v
	}
	for _, road := range []float64{0.1, 0.2, 0.5, 0.9} {
		want := lost(0, road)
		if most := road * gravity * seconds; !(want > 0.9*most) {
			t.Errorf("road %g: the car loses %.1f m/s, and the road gives %.1f m/s", road, want, most)
		}
		for _, bias := range []float64{-3, -2, -1, 1, 2, 3} {
			if got := lost(bias, road); !(got > 0.9*want) {
				t.Errorf("road %g, bias %g m/s2: the car loses %.1f m/s in 2.5 s, without a bias %.1f m/s", road, bias, got, want)
			}
		}
	}
}

// While a wheel rolls and the others slip, the speed follows it, so that the error of the acceleration a moves it by
// a·(1-exp(-trust·t))/trust only, not by a·t. When the unit later learns a from that error, it must know so.
func TestEscLearnsTheAccelerationByWhatTheWheelsHaveNotCorrected(t *testing.T) {
	const bias, decel = 1.0, 3.0
	e := newEscRig(t, 50, 1).u.Law.(*esc)
	e.v, e.ax, e.master, e.bar = 50, bias-decel, 100, [4]float64{50, 50, 50, 50}
	v, dt := 50.0, brakeCycle.Seconds()
	brake := func(seconds float64) {
		for range int(seconds / dt) {
			v -= decel * dt
			e.speed, e.rate = [4]float64{0.9 * v, 0.9 * v, 0.9 * v, v}, [4]float64{-decel, -decel, -decel, -decel}
			e.estimate(dt)
		}
	}
	e.slipping = [4]bool{true, true, true, false}
	brake(3)
	if want := bias * (1 - math.Exp(-3*escTrust)) / escTrust; !(math.Abs(e.v-v-want) < 0.01) || e.grade != 0 {
		t.Errorf("the speed is wrong by %.3f m/s, want %.3f, slope %g m/s2", e.v-v, want, e.grade)
	}
	e.slipping[3], e.bar[3] = true, 0
	brake(2 * escRollsTime)
	if !(math.Abs(e.grade-bias) < 1e-9) || !(math.Abs(e.v-v) < 1e-9) {
		t.Errorf("a wrong acceleration of %g m/s2 is learned as %g m/s2, the speed is wrong by %g m/s", bias, e.grade, e.v-v)
	}
}

// On ice the engine drags the front wheels below the speed of the car, although their brakes are released. They must not
// pull the estimated speed down: all wheels would lock.
func TestEscDoesNotTakeADraggedWheelForTheSpeed(t *testing.T) {
	for _, road := range []float64{0.1, 0.2} {
		for _, share := range []float64{0.7, 0.8, 0.97} { // of what the road carries
			g := newEscRig(t, 27, 1)
			e := g.u.Law.(*esc)
			for range 200 {
				g.cycle()
			}
			g.road, g.drag, g.pedal = [4]float64{road, road, road, road}, share*road*4087*escRadius, 120
			for range 500 {
				if g.cycle(); !(math.Abs(e.v-g.v) < 0.5) || !(g.w[2]*escRadius > 0.8*g.v) {
					t.Fatalf("road %g, drag %g N·m: %.1f m/s, estimated %.1f m/s, rear wheels at %.1f m/s", road, g.drag, g.v, e.v, g.w[2]*escRadius)
				}
			}
		}
	}
}
