package assemble_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
)

// The torques of gears, from the balance of a machine that is solved by hand.
func TestGearsExertTheirReactions(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
one: {type: inertia, J: 2}
two: {type: inertia, J: 3}
pair: {type: ideal_gear, a: one, b: wheel, ratio: 4, support: housing}
stiff: {type: ideal_gear, a: wheel, b: two, ratio: 1}
housing: {type: fixed}
push: {type: torque, flange: one, tau: 7}
stop: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 2}`, `
w: {speed: two}
on_one: {torque: pair, onto: one}
on_wheel: {torque: pair, onto: wheel}
on_housing: {torque: pair, onto: housing}
on_two: {torque: [stiff], onto: two}
net: {torque: two}
all: {torque: [pair, push], onto: one}
P: {power: stop}`), 5*time.Millisecond).To(1, nil)
	a := (7*4. - 2) / (3 + 2*16) // of two; the brake takes 2 N·m
	b.Is("w", a, 1e-12)
	b.Is("net", 3*a, 1e-12)
	b.Is("on_two", 3*a, 1e-12)
	b.Is("on_one", 2*4*a-7, 1e-12)
	b.Is("on_wheel", 3*a+2, 1e-12)
	b.Is("on_housing", -(2*4*a-7)-(3*a+2), 1e-12)
	b.Is("all", 2*4*a, 1e-12)
	b.Is("P", 2*a, 1e-12)
}

// tau_ring = g·tau_sun and tau_carrier = -(1+g)·tau_sun; on a rolling wheel
// 0 = radius·f + tau; the drive of a differential carries both sides.
func TestGearReactionsKeepTheirRatios(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
sun: {type: inertia, J: 1}
ring: {type: inertia, J: 2}
carrier: {type: inertia, J: 0.5}
set: {type: ideal_planetary, sun: sun, carrier: carrier, ring: ring, ratio: 2.5}
small: {type: inertia, J: 0.3}
twin: {type: ravigneaux, sun_small: small, sun_large: sun, carrier: left, ring: free, ratio_small: 3, ratio_large: 1.6}
free: {type: inertia, J: 0.7}
diff: {type: differential, drive: carrier, left: left, right: right, ratio: 4}
left: {type: inertia, J: 1}
right: {type: inertia, J: 4}
car: {type: mass, m: 100}
tyre: {type: ideal_rolling_wheel, a: right, b: car, radius: 0.3}
push: {type: torque, flange: sun, tau: 5}
pull: {type: torque, flange: ring, tau: -3}
hold: {type: brake, flange: left, mu: 1, cgeo: 1, fn: {sine: {amplitude: 3, f: 1}}}`, `
S: {torque: set, onto: sun}
R: {torque: set, onto: ring}
C: {torque: set, onto: carrier}
D: {torque: diff, onto: carrier}
L: {torque: diff, onto: left}
Q: {torque: diff, onto: right}
T: {torque: tyre, onto: right}
F: {force: tyre, onto: car}
m: {force: car}
s: {torque: twin, onto: small}
l: {torque: twin, onto: sun}
c: {torque: twin, onto: left}
r: {torque: twin, onto: free}`), 5*time.Millisecond)
	b.To(1, func(float64) {
		b.Is("R", 2.5*b.Get("S"), 1e-9)
		b.Is("C", -3.5*b.Get("S"), 1e-9)
		b.Is("L", -2*b.Get("D"), 1e-9)
		b.Is("Q", -2*b.Get("D"), 1e-9)
		b.Is("T", -0.3*b.Get("F"), 1e-9)
		b.Is("m", b.Get("F"), 1e-9)
		b.Is("r", 1.6*b.Get("l")-3*b.Get("s"), 1e-9)
		b.Is("c", -2.6*b.Get("l")+2*b.Get("s"), 1e-9)
	})
}

// In random trees of gears, springs and clutches the torques at every node add up to
// J·w', and a gear takes no power.
func TestTorquesOfRandomTreesAreInBalance(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		var elements, outputs strings.Builder
		n := 3 + r.IntN(7)
		at := make([][]string, n) // elements at a node
		gears, parent := []int{}, make([]int, n)
		for i := range n {
			fmt.Fprintf(&elements, "n%d: {type: inertia, J: %v}\n", i, 0.1+r.Float64())
			if i == 0 {
				continue
			}
			parent[i] = r.IntN(i)
			name := fmt.Sprintf("g%d", i)
			kind := fmt.Sprintf("ideal_gear, ratio: %v", 0.3+2*r.Float64())
			switch r.IntN(4) {
			case 0:
				kind = "spring_damper, c: 20, d: 0.3"
			case 1:
				kind = "clutch, mu: 1, cgeo: 1, fn: {sine: {amplitude: 3, f: 2, phase: " + fmt.Sprint(r.Float64()) + "}}"
			default:
				gears = append(gears, i)
			}
			fmt.Fprintf(&elements, "%s: {type: %s, a: n%d, b: n%d}\n", name, kind, i, parent[i])
			at[i], at[parent[i]] = append(at[i], name), append(at[parent[i]], name)
		}
		for i := range n {
			name := fmt.Sprintf("t%d", i)
			fmt.Fprintf(&elements, "%s: {type: torque, flange: n%d, tau: {sine: {amplitude: %v, f: 3}}}\n", name, i, 5*r.NormFloat64())
			at[i] = append(at[i], name)
			fmt.Fprintf(&outputs, "sum%d: {torque: [%s], onto: n%d}\nnet%d: {torque: n%d}\nw%d: {speed: n%d}\n", i, strings.Join(at[i], ", "), i, i, i, i, i)
		}
		for _, i := range gears {
			fmt.Fprintf(&outputs, "a%d: {torque: g%d, onto: n%d}\nb%d: {torque: g%d, onto: n%d}\n", i, i, i, i, i, parent[i])
		}
		b := modeltest.New(t, modeltest.PlantOf(elements.String(), outputs.String()), 5*time.Millisecond)
		b.To(0.5, func(at float64) {
			for i := range n {
				b.Is(fmt.Sprintf("sum%d", i), b.Get(fmt.Sprintf("net%d", i)), 1e-9)
			}
			for _, i := range gears {
				p := b.Get(fmt.Sprintf("a%d", i))*b.Get(fmt.Sprintf("w%d", i)) + b.Get(fmt.Sprintf("b%d", i))*b.Get(fmt.Sprintf("w%d", parent[i]))
				if !scalar.EqualWithinAbs(p, 0, 1e-9) {
					t.Errorf("gear %d takes %g W", i, p)
				}
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, elements.String())
		}
	}
}

// The split of torque between gears in a closed loop is not determined; torques
// outside the loop, and of the loop as a whole, are.
func TestTorqueOfRedundantGearsIsRefused(t *testing.T) {
	text := func(output string) string {
		return modeltest.PlantOf(`
one: {type: inertia, J: 1}
two: {type: inertia, J: 1}
three: {type: inertia, J: 1}
g1: {type: ideal_gear, a: one, b: two, ratio: 2}
g2: {type: ideal_gear, a: one, b: two, ratio: 2}
g3: {type: ideal_gear, a: two, b: three, ratio: 2}
push: {type: torque, flange: one, tau: 6.5625}`, "M: "+output)
	}
	a := 6.5625 / (1 + 0.25 + 0.0625)
	modeltest.New(t, text("{torque: g3, onto: three}"), 5*time.Millisecond).Is("M", a/4, 1e-12)
	modeltest.New(t, text("{torque: [g1, g2], onto: one}"), 5*time.Millisecond).Is("M", a-6.5625, 1e-12)
	p, err := plantfile.Load("t.yaml", []byte(text("{torque: g1, onto: one}")), library.Elements())
	if err == nil {
		_, err = assemble.System(p)
	}
	want := `t.yaml:11:3: model: output "M": its torque is not determined: g1, g2 are a closed loop of rigid connections; make one of them elastic, or remove it`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Torque and power sensors cut a shaft. Their outputs can drive other elements.
func TestTorqueAndPowerSensorsMeasureTheirShaft(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
one: {type: inertia, J: 1, w_start: 2}
cut: {type: torque_sensor, a: one, b: middle}
power: {type: power_sensor, a: middle, b: two}
two: {type: inertia, J: 3}
push: {type: torque, flange: one, tau: 8}
wagon: {type: mass, m: 5}
coupler: {type: force_sensor, a: wagon, b: last}
last: {type: mass, m: 2}
tow: {type: force, flange: wagon, f: 14}
other: {type: inertia, J: 1}
feel: {type: torque, flange: other, tau: cut}`,
		"cut: {signal: cut}\nP: {signal: power}\nF: {signal: coupler}\nw: {speed: other}\nT: {torque: cut, onto: one}"), 5*time.Millisecond).To(1, nil)
	b.Is("cut", 6, 1e-12)
	b.Is("T", -6, 1e-12)
	b.Is("P", 6*4, 1e-12)
	b.Is("F", 4, 1e-12)
	b.Is("w", 6, 1e-12)
}

// The torque that a speed source exerts on its flange is the torque that drives it.
// Clutches and brakes report the power that they dissipate.
func TestFrictionReportsItsPower(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
motor: {type: speed, flange: shaft, w_ref: 10, exact: true}
grip: {type: clutch, a: shaft, b: drum, mu: 0.5, cgeo: 1, fn: 4}
drum: {type: inertia, J: 4}
wagon: {type: mass, m: 3, v_start: 5}
shoe: {type: brake, flange: wagon, mu: 0.5, fn: 12}`,
		"P: {power: grip}\nM: {torque: motor}\nT: {torque: motor, onto: shaft}\nB: {power: shoe}\nf: {force: shoe}\nv: {speed: wagon}"), 5*time.Millisecond)
	b.To(1, nil)
	b.Is("T", 2, 1e-12)
	b.Is("M", 2, 1e-12)
	b.Is("P", 2*(10-0.5), 1e-12)
	b.Is("v", 5-2, 1e-12)
	b.Is("B", 6*3, 1e-12)
	b.Is("shoe.f", 6, 1e-12)
	b.Is("shoe.v_rel", 3, 1e-12)
	b.To(30, nil)
	b.Is("P", 0, 1e-9)
	b.Is("B", 0, 1e-9)
	b.Is("T", 0, 1e-9)
}
