package kernel

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// addLaw adds a law to a plant; by state, what the value of the law adds to the rate of the state.
func addLaw(s *model.System, law model.Program, gain map[int]float64) {
	n, m := len(s.X0), len(s.Signals)
	wider := func(a []float64, rows int) (out []float64) {
		for i := range rows {
			out = append(append(out, a[i*m:(i+1)*m]...), 0)
		}
		return out
	}
	s.B, s.D = wider(s.B, n), wider(s.D, len(s.Outputs))
	for i, g := range gain {
		s.B[i*(m+1)+m] = g
	}
	s.Signals = append(s.Signals, model.Signal{Name: "law", Law: &law})
}

// proportional is the law coef·x.
func proportional(coef float64, row ...float64) model.Program {
	return model.Program{
		Args: []model.Functional{{Row: row}}, Slopes: []float64{math.Abs(coef)},
		Ops: []model.Op{{Code: model.Arg}, {Code: model.Push, Value: coef}, {Code: model.Mul}},
	}
}

// creep is a wheel that a law -c·(w - v) couples to a body on a spring, by the scheme of Gyebroszki,
// section 7.2, for these three states alone: angular speeds w and v, deflection q.
type creep struct {
	J1, J2, c, stiffness float64
	tau, force           func(t float64) float64 // torques on the wheel and on the body
	w, v, q              float64
}

func (p *creep) law(w, v float64) float64 { return -p.c * (w - v) }

// step advances by a period h from t on.
func (p *creep) step(t, h float64, sub, iter int) {
	omega := math.Sqrt(p.stiffness / p.J2)
	c, s := math.Cos(omega*h), math.Sin(omega*h)/omega
	w0, v0, q0 := p.w, p.v, p.q
	f0 := (p.force(t) - p.law(w0, v0)) / p.J2
	tau0, dtau := p.tau(t), 0.0
	for pass := range iter + 1 {
		df := 0.0
		if pass > 0 {
			dtau = p.tau(t+h) - tau0
			df = (p.force(t+h)-p.law(p.w, p.v))/p.J2 - f0
		}
		v1 := v0*c - omega*omega*q0*s + f0*s + df*(1-c)/(omega*omega*h)
		q1 := q0*c + v0*s + f0*(1-c)/(omega*omega) + df*(h-s)/(omega*omega*h)
		p.w = w0
		rate := func(theta, w float64) float64 { return (tau0 + theta*dtau + p.law(w, v0+theta*(v1-v0))) / p.J1 }
		d := 1 / float64(sub)
		for i := range sub {
			theta := float64(i) * d
			k1 := rate(theta, p.w)
			k2 := rate(theta+d/2, p.w+d*h/2*k1)
			k3 := rate(theta+d/2, p.w+d*h/2*k2)
			k4 := rate(theta+d, p.w+d*h*k3)
			p.w += d * h / 6 * (k1 + 2*k2 + 2*k3 + k4)
		}
		p.v, p.q = v1, q1
	}
}

func TestTwoPartsFollowTheSchemeOfTheThesis(t *testing.T) {
	const h = 0.02
	ramp := func(a, b float64) (model.Source, func(float64) float64) {
		return table(0, a, 10, a+10*b), func(t float64) float64 { return a + b*t }
	}
	tau, tauAt := ramp(3, -1.5)
	force, forceAt := ramp(-2, 4)
	for _, c := range []struct{ sub, iter int }{{1, 0}, {2, 0}, {5, 0}, {1, 1}, {3, 1}, {1, 3}, {4, 2}, {20, 5}} {
		r := rig{
			J: []float64{0.3, 2}, Springs: []spring{{-1, 1, 700, 0}}, X0: []float64{6, -1, 0.02},
			Torques: []torque{{0, tau}, {1, force}},
		}
		sys := r.system()
		sys.Partition = &model.Partition{Sub: c.sub, Iter: c.iter}
		addLaw(sys, proportional(-9, 1, -1, 0), map[int]float64{0: 1 / 0.3, 1: -1. / 2})
		k := start(t, sys, Options{Period: period(h)})
		want := &creep{J1: 0.3, J2: 2, c: 9, stiffness: 700, tau: tauAt, force: forceAt, w: 6, v: -1, q: 0.02}
		for i := range 150 {
			k.step()
			want.step(float64(i)*h, h, c.sub, c.iter)
			for q, w := range []float64{want.w, want.v, want.q} {
				if !scalar.EqualWithinAbs(k.y[q], w, 1e-11) {
					t.Fatalf("%+v: at %g s state %d is %.15g, want %.15g", c, float64(i+1)*h, q, k.y[q], w)
				}
			}
		}
		if p := k.t.Partition; fmt.Sprint(p.Active, p.Latent) != "[0] [1 2]" {
			t.Errorf("active %d, latent %d; want the wheel alone active", p.Active, p.Latent)
		}
	}
}

// beside adds a body on a spring, which is the linear part of a plant in two parts.
func (r rig) beside() rig {
	r.J = append(r.J, 5)
	r.Springs = append(r.Springs, spring{-1, len(r.J) - 1, 300, 2})
	r.Frictions = slices.Clone(r.Frictions)
	for i := range r.Frictions {
		r.Frictions[i].W = append(r.Frictions[i].W, 0)
	}
	return r
}

// In two parts a brake stops a wheel at the end of the micro step in which its slip changes its sign,
// and a load breaks the lock at the first micro step at which it exceeds the capacity.
func TestBrakeLocksAndBreaksBetweenMicroSteps(t *testing.T) {
	const J, K, h = 2.0, 8.0, 0.02
	for _, sub := range []int{1, 3, 10} {
		for _, iter := range []int{1, 2} {
			for _, sign := range []float64{1, -1} {
				micro := h / float64(sub)
				after := func(t float64) float64 { return math.Ceil(t/micro-1e-9) * micro }
				w0, rise := 4.013*sign, 10*sign
				const from = 2.0001 // s, begin of the load
				locks, breaks := after(4.013*J/K), after(from+K/10)
				load := table(from, 0, from+10, 10*rise)
				r := rig{J: []float64{J}, X0: []float64{w0}, Frictions: []contact{{W: []float64{1}, K: always(K)}}, Torques: []torque{{0, load}}}.beside()
				r.X0 = append(r.X0, 0.5, 0)
				sys := r.system()
				sys.Partition = &model.Partition{Sub: sub, Iter: iter}
				k := start(t, sys, Options{Period: period(h)})
				var events []Event
				for range 200 {
					k.step()
					events = append(events, k.Events()...)
					now := float64(k.tick) * h
					want := 0.0
					switch {
					case now < locks-1e-9:
						want = w0 - sign*K/J*now
					case now > breaks:
						a, b := breaks-from, now-from
						want = (rise*(b*b-a*a)/2 - sign*K*(now-breaks)) / J
					}
					if !scalar.EqualWithinAbs(k.y[0], want, 1e-11) {
						t.Fatalf("%d micro steps, %d iterations: w(%g s) = %.15g, want %.15g rad/s", sub, iter, now, k.y[0], want)
					}
				}
				slips := map[bool]int8{true: Forward, false: Backward}[sign > 0]
				want := []transition{{locks, 0, slips, Stuck}, {breaks, 0, Stuck, slips}}
				if len(events) != 2 || k.transOut() != 2 {
					t.Fatalf("%d micro steps: transitions %v, want %v", sub, events, want)
				}
				for i, e := range events {
					if w := want[i]; e.Friction != w.friction || e.From != w.from || e.To != w.to || !scalar.EqualWithinAbs(e.Time, w.t, 1e-9) {
						t.Errorf("%d micro steps, %d iterations: transition %v, want %v", sub, iter, e, w)
					}
				}
			}
		}
	}
}

// The wheel of the active part and the body of the latent part turn with constant accelerations, so
// that the path between two steps is exact.
func TestPulsesOfTwoPartsAreAtTheRoots(t *testing.T) {
	const h, until = 0.01, 1.2
	for _, sub := range []int{1, 4} {
		for _, iter := range []int{0, 2} {
			r := rig{
				J: []float64{2, 3, 1}, Springs: []spring{{1, 2, 5000, 10}}, // no deflection: both bodies accelerate alike
				Frictions: []contact{{W: []float64{1, 0, 0}, K: always(12)}}, Torques: []torque{{1, always(-21)}, {2, always(-7)}},
				X0: []float64{30, 5, 5, 0, 0.2, -1.3, 0},
			}
			sensors := []model.Pulses{{Teeth: 48, Runout: 0.2}, {Teeth: 100}}
			sys := r.sensed(sensors...)
			sys.Partition = &model.Partition{Sub: sub, Iter: iter}
			phi := []func(float64) float64{
				func(t float64) float64 { return 0.2 + 30*t - 3*t*t },
				func(t float64) float64 { return -1.3 + 5*t - 3.5*t*t },
			}
			for i := range sensors {
				k := start(t, sys, Options{Period: period(h)})
				edges := edgeTimes(sensors[i], phi[i], until, 5./7)
				follows(t, fmt.Sprintf("sensor %d, %d micro steps, %d iterations", i, sub, iter), k, i, edges, until)
				if len(edges) < 40 {
					t.Errorf("only %d edges", len(edges))
				}
				if p := k.t.Partition; fmt.Sprint(p.Active, p.Wheels, p.Bodies) != "[0 4] [0] [1]" {
					t.Errorf("active %d, wheels %d, bodies %d", p.Active, p.Wheels, p.Bodies)
				}
			}
		}
	}
}

// Springs and dampers with regions enter the linear part at their steepest, and the rest of their force
// is held over a step: without iterations the error falls with the step.
func TestSpringWithRegionsOfTheLinearPartConverges(t *testing.T) {
	const J, soft, hard, border = 2.0, 100.0, 900.0, 0.1
	energy := func(v, q float64) float64 {
		out := max(0, math.Abs(q)-border)
		return J*v*v/2 + soft*q*q/2 + (hard-soft)*out*out/2
	}
	worst := map[float64]float64{}
	for _, h := range []float64{0.002, 0.0005} {
		r := rig{J: []float64{1, J}, X0: []float64{1, 3, 0}, Springs: []spring{{-1, 1, 0, 0}}, Frictions: []contact{{W: []float64{1, 0}, K: always(0.01)}}}
		sys := r.system()
		sys.Switches = []model.Switch{{Name: "k", Row: []float64{0, 0, 1}, Borders: []float64{-border, border}}}
		n, m := 3, 1
		b := make([]float64, n*(m+1))
		b[1*(m+1)+m] = -1 / J
		sys.B, sys.D = b, make([]float64, n*(m+1))
		step := (hard - soft) * border
		sys.Signals = append(sys.Signals, model.Signal{Name: "k", Affine: &model.Affine{Slope: []float64{hard, soft, hard}, Offset: []float64{step, 0, -step}}})
		sys.Partition = &model.Partition{Sub: 1, Iter: 1}
		k := start(t, sys, Options{Period: period(h)})
		want := energy(3, 0)
		for range int(2 / h) {
			k.step()
			worst[h] = max(worst[h], math.Abs(energy(k.y[1], k.y[2])/want-1))
		}
	}
	t.Logf("the energy is off by %.2g of itself at 2 ms, %.2g at 0.5 ms", worst[0.002], worst[0.0005])
	if !(worst[0.002] < 0.05 && worst[0.0005] < worst[0.002]/3) {
		t.Errorf("the energy is off by %.2g of itself at 2 ms, %.2g at 0.5 ms; want less than 0.05, and a third of it", worst[0.002], worst[0.0005])
	}
}

func TestPlantWithoutTwoPartsNamesTheReason(t *testing.T) {
	parts := func(r rig, opt Options) error {
		sys := r.system()
		sys.Partition = &model.Partition{Sub: 2, Place: "car.yaml:3:1"}
		opt.Period = ms(5)
		_, err := Prepare(sys, opt)
		return err
	}
	wheel := rig{J: []float64{1}, Frictions: []contact{{W: []float64{1}, K: always(1)}}}
	body := rig{J: []float64{1}, Springs: []spring{{-1, 0, 100, 0}}}
	for _, c := range []struct {
		r    rig
		opt  Options
		want string
	}{
		{wheel.beside(), Options{}, ""},
		{wheel.beside(), Options{Form: Held}, `form "held" cannot step a plant in two parts`},
		{wheel.beside(), Options{Stepping: Sparse}, `stepping "sparse" cannot step a plant in two parts`},
		{body, Options{}, "no state is driven by laws and friction alone"},
		{wheel, Options{}, "there is no linear part"},
	} {
		err := parts(c.r, c.opt)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "car.yaml:3:1: ")) {
			t.Errorf("%+v: %v; want %q", c.opt, err, c.want)
		}
	}
}

// The largest eigenvalue of [8 6; 1.5 1.5]: a law of 3 N·m·s/rad between wheels of 0.5 and 2 kg·m², and a
// drag of 1 N·m·s/rad at the first.
func TestDecayOfTheActivePartIsItsFastestRate(t *testing.T) {
	r := rig{J: []float64{0.5, 2, 5}, Drag: []float64{1, 0, 0}, Springs: []spring{{-1, 2, 300, 2}}}
	sys := r.system()
	sys.Partition = &model.Partition{Sub: 1}
	addLaw(sys, proportional(-3, 1, -1, 0, 0), map[int]float64{0: 1 / 0.5, 1: -1. / 2})
	k := start(t, sys, Options{Period: ms(5)})
	if want := (9.5 + math.Sqrt(9.5*9.5-12)) / 2; !scalar.EqualWithinRel(k.t.Partition.Decay, want, 1e-6) {
		t.Errorf("the active part decays with %.9g 1/s, want %.9g", k.t.Partition.Decay, want)
	}
}

// Two laws between the same wheels add up to the law of the test before.
func TestDecayOfTheActivePartCountsEveryLaw(t *testing.T) {
	r := rig{J: []float64{0.5, 2, 5}, Drag: []float64{1, 0, 0}, Springs: []spring{{-1, 2, 300, 2}}}
	sys := r.system()
	sys.Partition = &model.Partition{Sub: 1}
	addLaw(sys, proportional(-1, 1, -1, 0, 0), map[int]float64{0: 1 / 0.5, 1: -1. / 2})
	addLaw(sys, proportional(-2, 1, -1, 0, 0), map[int]float64{0: 1 / 0.5, 1: -1. / 2})
	k := start(t, sys, Options{Period: ms(5)})
	if want := (9.5 + math.Sqrt(9.5*9.5-12)) / 2; !scalar.EqualWithinRel(k.t.Partition.Decay, want, 1e-6) {
		t.Errorf("the active part decays with %.9g 1/s, want %.9g", k.t.Partition.Decay, want)
	}
}
