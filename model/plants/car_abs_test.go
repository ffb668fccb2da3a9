package plants_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/units"
)

// Parameters of car-abs.yaml for the second solver, SI; front before rear.
const (
	carM, carJ           = 1500.0, 2300.0
	carG, carH, carR     = 9.81, 0.55, 0.3
	carFront, carRear    = 1.2, 1.5
	tyreLength, tyreDamp = 0.3, 10e-3
	tyreFast             = 50.0 // m/s
	brakeBend            = 2e5
)

var (
	carSprings  = [2]float64{50e3, 44e3}
	carDampers  = [2]float64{4e3, 3.6e3}
	carWheelJ   = [2]float64{1, 0.9}
	carLoads    = [2]float64{carM * carG * carRear / (carFront + carRear) / 2, carM * carG * carFront / (carFront + carRear) / 2}
	carDiscs    = [2]float64{0.35 * 0.24 * 30e-4, 0.35 * 0.24 * 9e-4}
	carCalipers = [2]float64{1, 0.35}
	storeOf     = [4]int{0, 1, 1, 0}
)

// carInputs are the inputs of the car; valves of fl, fr, rl, rr.
type carInputs struct {
	pedal, pump         float64
	inlet, outlet, road [4]float64
}

// carState is x, v, y, y', phi, phi', then w, k and V of the wheels, then V of the stores.
type carState [20]float64

// carTable is a function through points.
func carTable(x, z []float64, at float64) float64 {
	i := 0
	for i < len(x)-2 && at > x[i+1] {
		i++
	}
	return z[i] + (z[i+1]-z[i])/(x[i+1]-x[i])*(at-x[i])
}

func caliperPressure(size, v float64) float64 {
	return carTable([]float64{0, size * 0.4e-6, size * 1.2e-6, size * 3.2e-6}, []float64{0, 2e5, 30e5, 150e5}, v)
}

func storePressure(v float64) float64 {
	return carTable([]float64{0, 0.3e-6, 4e-6, 6e-6}, []float64{0, 2e5, 5e5, 30e5}, v)
}

func carFlow(area, dp float64) float64 {
	return 0.7 * area * math.Sqrt(2/1050.0) * dp / math.Pow(dp*dp+brakeBend*brakeBend, 0.25)
}

// rate is the derivative of the state while all wheels turn forward.
func (s carState) rate(u *carInputs) (d carState) {
	v, yd, phid := s[1], s[3], s[5]
	var spring [2]float64
	for axle, l := range [2]float64{carFront, -carRear} {
		spring[axle] = carSprings[axle]*(s[2]+l*s[4]) + carDampers[axle]*(yd+l*phid)
	}
	air := -0.5 * 1.2 * 0.65 * v * math.Abs(v)
	engine := carTable([]float64{0, 50, 160}, []float64{0, -60, -150}, (s[6]+s[7])/2)
	hub := v + (carH-carR)*phid
	pull, pitch := air, -spring[0]*carFront+spring[1]*carRear
	for i := range 4 {
		axle := i / 2
		w, k, V := s[6+i], s[10+i], s[14+i]
		p := caliperPressure(carCalipers[axle], V)
		store := storePressure(s[18+storeOf[i]])
		slip := carR*w - hub
		kappa := slip / max(math.Abs(hub), math.Abs(slip))
		g := math.Sin(1.9*math.Atan(10*kappa-0.97*(10*kappa-math.Atan(10*kappa)))) / 19
		path := math.Abs(hub) // of the tread
		if slip != 0 {
			path = math.Abs(slip / g)
		}
		rate := min(path, tyreFast) / tyreLength
		d[10+i] = rate * (g - k)
		load := carLoads[axle] - spring[axle]/2
		f := u.road[i] * max(0, load) * 19 * (k + min(1, max(tyreDamp*rate, 1-tyreFast/path))*(g-k))
		disc := carDiscs[axle] * max(0, p) * math.Copysign(1, w+phid)
		d[6+i] = (-carR*f - disc) / carWheelJ[axle]
		if axle == 0 {
			d[6+i] += engine / 2 / carWheelJ[0]
		}
		pull += f
		pitch += f*(carH-carR) - disc
		size := carCalipers[axle]
		out := carFlow(size*0.35e-6*u.outlet[i], p-store)
		d[14+i] = carFlow(size*0.26e-6*(1-u.inlet[i]), u.pedal-p) + carFlow(size*0.22e-6, min(0, u.pedal-p+1e4)) - out
		d[18+storeOf[i]] += out
	}
	for j := range 2 {
		d[18+j] -= 4e-6 * u.pump * min(1, max(0, storePressure(s[18+j])/1e5))
	}
	d[0], d[1], d[2], d[3], d[4], d[5] = v, pull/carM, yd, -(spring[0]+spring[1])/carM, phid, pitch/carJ
	return d
}

// after is the state h later, by Runge and Kutta.
func (s carState) after(h float64, u *carInputs) carState {
	plus := func(a carState, f float64) carState {
		out := s
		for i := range out {
			out[i] += f * a[i]
		}
		return out
	}
	k1 := s.rate(u)
	k2 := plus(k1, h/2).rate(u)
	k3 := plus(k2, h/2).rate(u)
	k4 := plus(k3, h).rate(u)
	for i := range s {
		s[i] += h / 6 * (k1[i] + 2*k2[i] + 2*k3[i] + k4[i])
	}
	return s
}

// carSchedule is what happens to the car: braking, valves here and there, a split road.
func carSchedule(t float64) (u carInputs) {
	u.road = [4]float64{1, 1, 1, 1}
	if t >= 0.2 {
		u.pedal = 40e5
	}
	if t >= 0.8 {
		u.pump, u.inlet[0], u.outlet[0] = 1, 1, 1
		u.road[0], u.road[2] = 0.5, 0.5
	}
	if t >= 0.85 {
		u.inlet[0], u.outlet[0] = 0.9, 0
		u.inlet[2], u.outlet[2] = 1, 0.5
	}
	if t >= 1 {
		u.inlet[2], u.outlet[2] = 0.95, 0
		u.pedal = 60e5
	}
	if t >= 1.2 {
		u.pedal = 20e5
		u.inlet[1] = 1
	}
	return u
}

// car is a plant with all its inputs driven.
type car struct {
	t      *testing.T
	k      *kernel.Kernel
	tables *kernel.Tables
	u, y   []float64
	ticks  int
}

func newCar(t *testing.T, period time.Duration) *car {
	t.Helper()
	return driven(t, load(t, "car-abs"), period)
}

func driven(t *testing.T, sys *model.System, period time.Duration) *car {
	t.Helper()
	tables, err := kernel.Prepare(sys, kernel.Options{Period: period, Driven: slices.Repeat([]bool{true}, len(sys.Inputs))})
	if err != nil {
		t.Fatal(err)
	}
	return &car{t: t, k: kernel.New(tables), tables: tables, u: slices.Clone(tables.Start), y: make([]float64, len(tables.Outputs))}
}

func (c *car) port(list []units.Port, name string) int {
	c.t.Helper()
	i := slices.IndexFunc(list, func(p units.Port) bool { return p.Name == name })
	if i < 0 {
		c.t.Fatalf("no port %s", name)
	}
	return i
}

func (c *car) set(name string, v float64) { c.u[c.port(c.tables.Inputs, name)] = v }
func (c *car) get(name string) float64    { return c.y[c.port(c.tables.Outputs, name)] }
func (c *car) seconds() float64           { return float64(c.ticks) * float64(c.tables.PeriodNs) * 1e-9 }
func (c *car) step()                      { c.k.Step(c.y, c.u); c.ticks++ }
func (c *car) wheels(set func(i int, name string)) {
	for i, name := range []string{"fl", "fr", "rl", "rr"} {
		set(i, name)
	}
}

func (c *car) apply(u *carInputs) {
	c.set("pedal", u.pedal)
	c.set("pump", u.pump)
	c.wheels(func(i int, name string) {
		c.set(name+".inlet", u.inlet[i])
		c.set(name+".outlet", u.outlet[i])
		c.set("road."+name, u.road[i])
	})
}

// The whole car against Runge and Kutta at 10 us, written from the equations: body, load
// transfer, tyres, brakes, accumulators, dead time of the valves.
func TestBrakingCarAgreesWithASecondSolver(t *testing.T) {
	const h = 1e-5
	for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		c := newCar(t, period)
		s := carState{1: 100 / 3.6}
		for i := range 4 {
			s[6+i] = s[1] / carR
		}
		worst, most := map[string]float64{}, 0.0
		off := func(name string, want, span float64) {
			worst[name] = max(worst[name], math.Abs(c.get(name)-want)/span)
		}
		for c.seconds() < 1.5 {
			at := c.seconds()
			now := carSchedule(at + 1e-9)
			c.apply(&now)
			for j := range int(math.Round(period.Seconds() / h)) {
				before := carSchedule(at + float64(j)*h - 3e-3 + 1e-9)
				u := now
				u.inlet, u.outlet = before.inlet, before.outlet
				s = s.after(h, &u)
			}
			c.step()
			most = max(most, s[18])
			off("v", s[1], 28)
			off("s", s[0], 40)
			off("dive", -s[4], 0.04)
			off("heave", s[2], 0.01)
			off("V_1", s[18], 1e-6)
			off("V_2", s[19], 1e-6)
			c.wheels(func(i int, name string) {
				off("w_"+name, s[6+i]+s[5], 93)
				off("p_"+name, caliperPressure(carCalipers[i/2], s[14+i]), 60e5)
			})
		}
		for name, e := range worst {
			t.Logf("%v: %s off by %.1e of its range", period, name, e)
			if !(e <= 5e-5) { // pieces of 1.25 ms, of order four
				t.Errorf("%v: %s is off by %.2g of its range", period, name, e)
			}
		}
		if !(most > 0.05e-6) || !(s[6] < 0.97*s[7]) {
			t.Errorf("nothing happened: wheels at %g and %g rad/s, at most %g m3 in the store", s[6], s[7], most)
		}
	}
}

// On locked wheels the braking force is the sliding friction of the weight, for any motion of the
// springs. The load of the front axle rises by m·a·h/L; the load of the rear axle falls by as much.
func TestLockedWheelsSlideAndTakeLoadToTheFront(t *testing.T) {
	for _, road := range []float64{1, 0.7} {
		c := newCar(t, 5*time.Millisecond)
		c.wheels(func(_ int, name string) { c.set("road."+name, road) })
		c.set("pedal", 150e5)
		sum, front, n := 0.0, 0.0, 0
		for c.seconds() < 2.5 {
			c.step()
			if at := c.seconds(); at > 1 {
				v := c.get("v")
				sum += c.get("a") + 0.39*v*v/carM
				front -= c.get("lifted_front")
				n++
			}
		}
		a := sum / float64(n)
		if want := -0.9145219580128047 * road * carG; !(math.Abs(a-want) <= 0.01) {
			t.Errorf("road %g: %g m/s2, want %g", road, a, want)
		}
		want := -carM * a * carH / (carFront + carRear) // and a little for the air, which pulls at the centre
		if got := front / float64(n); !(math.Abs(got-want) <= 0.02*want) {
			t.Errorf("road %g: the front axle carries %g N more, want %g", road, got, want)
		}
		c.wheels(func(_ int, name string) {
			if mode := c.get(name + ".disc.mode"); mode != 0 {
				t.Errorf("%s is not locked: mode %g", name, mode)
			}
		})
	}
}
