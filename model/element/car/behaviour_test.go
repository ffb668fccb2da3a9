package car_test

import (
	"cmp"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
)

// linear are edits that make the tyres linear and the normal forces constant: a friction of 100, a centre of
// gravity in the road, no slip along, and a track of 1 mm, since the spin of wheels beside the centre adds to the
// moment of inertia about z.
var linear = []string{"PDY1: 1,", "PDY1: 100,", "PDY2: -0.15", "PDY2: 0", "h: 0.55", "h: 0", "ackermann: 1", "ackermann: 0",
	"angle: steer}", "angle: steer, ackermann: 0}", "RBY1: 10", "RBY1: 0", "RBX1: 12", "RBX1: 0",
	"damping: 0.005", "damping: 0", "track_f: 1.5", "track_f: 0.001", "track_r: 1.5", "track_r: 0.001"}

// stiffness returns the cornering stiffness of an axle, N/rad.
func stiffness(fz float64) float64 {
	return 2 * 20 * nominal * math.Sin(2*math.Atan(fz/(1.8*nominal)))
}

// bicycle returns cornering stiffnesses and the understeer gradient of the linear bicycle, rad·s²/m (Pacejka, Tyre
// and Vehicle Dynamics, eq. 1.44 to 1.47).
func bicycle() (Cf, Cr, gradient float64) {
	length := front + rear
	Cf, Cr = stiffness(mass*gravity*rear/length/2), stiffness(mass*gravity*front/length/2)
	return Cf, Cr, mass / length * (rear/Cf - front/Cr)
}

// A steady turn with 1e-4 rad is that of the linear bicycle: yaw rate, side slip, and so the understeer gradient.
func TestSteadyTurnIsThatOfTheLinearBicycle(t *testing.T) {
	Cf, Cr, gradient := bicycle()
	const delta = 1e-4
	length := front + rear
	for _, v := range []float64{10, 25, 40} {
		b := modeltest.New(t, plant(v, linear...), 5*time.Millisecond)
		b.Set("steer", delta)
		b.To(3+v/20, nil)
		speed := b.Get("u")
		r := speed * delta / (length + gradient*speed*speed)
		for name, want := range map[string]float64{"r": r, "v": r * (rear - mass*front*speed*speed/(Cr*length))} {
			if got := b.Get(name); !(math.Abs(got-want) <= 1e-6*speed*delta/length) {
				t.Errorf("%g m/s: %s is %.12g, want %.12g", v, name, got, want)
			}
		}
		ay := b.Get("r") * speed
		if got := (delta - length*b.Get("r")/speed) / ay; !(math.Abs(got-gradient) <= 1e-5*gradient) {
			t.Errorf("%g m/s: understeer gradient %.9g rad.s2/m, want %.9g", v, got, gradient)
		}
	}
	if !(gradient > 0) || !(Cf > 0) {
		t.Errorf("the car oversteers: %g", gradient)
	}
}

// Yaw frequency and damping over speed are those of the linear bicycle with relaxation lengths: a step of 1e-5 rad
// follows its four equations within 1e-6 of the range, and the decay of the yaw rate has the two slow eigenvalues of
// their matrix: frequency and damping ratio. Both fall with the speed above 25 m/s.
func TestYawOscillationOverSpeedIsThatOfTheLinearBicycle(t *testing.T) {
	Cf, Cr, gradient := bicycle()
	const delta = 1e-5 // the car slows down with its square
	before := [2]float64{math.Inf(1), math.Inf(1)}
	for _, V := range []float64{10, 25, 35, 45} {
		rate := func(s [4]float64) (d [4]float64) { // v, r, deflections in front and rear
			v, r := s[0], s[1]
			Ff, Fr := -Cf*s[2]/sigmaY, -Cr*s[3]/sigmaY
			d[0], d[1] = (Ff+Fr)/mass-V*r, (front*Ff-rear*Fr)/jYaw
			d[2], d[3] = v+front*r-V*delta-V*s[2]/sigmaY, v-rear*r-V*s[3]/sigmaY
			return d
		}
		var s [4]float64
		worst, most, turns := 0.0, 0.0, 0
		b := newOwn(t, plant(V, append(linear, "max: 0.6}", "max: 0.6, default: 1e-5}")...), 5*time.Millisecond)
		last := 0.0
		var decay []float64 // yaw rate less the steady one
		steady := V * delta / (front + rear + gradient*V*V)
		b.To(1, func(float64) {
			decay = append(decay, b.Get("r")-steady)
			for range 20 {
				const h = 2.5e-4
				plus := func(k [4]float64, f float64) (out [4]float64) {
					for i := range out {
						out[i] = s[i] + f*k[i]
					}
					return out
				}
				k1 := rate(s)
				k2 := rate(plus(k1, h/2))
				k3 := rate(plus(k2, h/2))
				k4 := rate(plus(k3, h))
				for i := range s {
					s[i] += h / 6 * (k1[i] + 2*k2[i] + 2*k3[i] + k4[i])
				}
			}
			worst, most = max(worst, math.Abs(b.Get("r")-s[1])), max(most, math.Abs(s[1]))
			if d := rate(s)[1]; !(d*last >= 0) && !(math.Abs(d) <= 1e-10) {
				turns++
			}
			last = rate(s)[1]
		})
		t.Logf("%g m/s: off by %.1e, %d extremes of the yaw rate", V, worst/most, turns)
		if !(worst <= 1e-6*most) {
			t.Errorf("%g m/s: the yaw rate is off by %.2g of its range", V, worst/most)
		}
		if V > 40 && turns == 0 {
			t.Errorf("%g m/s: the yaw rate does not oscillate", V)
		}
		if V < 25 { // the eigenvalues are not apart
			continue
		}
		var A mat.Dense // of the four equations
		A.ReuseAs(4, 4)
		for j := range 4 {
			s := [4]float64{}
			s[j] = 1
			with, without := rate(s), rate([4]float64{})
			for i := range 4 {
				A.Set(i, j, with[i]-without[i])
			}
		}
		frequency, ratio := slowest(t, &A)
		gotFrequency, gotRatio := oscillation(decay)
		t.Logf("%g m/s: %.4f rad/s with damping ratio %.4f, want %.4f and %.4f", V, gotFrequency, gotRatio, frequency, ratio)
		if !(math.Abs(gotFrequency-frequency) <= 1e-3*frequency) || !(math.Abs(gotRatio-ratio) <= 1e-3*ratio) {
			t.Errorf("%g m/s: yaw frequency %g rad/s and damping ratio %g, want %g and %g", V, gotFrequency, gotRatio, frequency, ratio)
		}
		if !(frequency < before[0]) || !(ratio < before[1]) {
			t.Errorf("%g m/s: yaw frequency %g rad/s, damping ratio %g; at the lower speed %v", V, frequency, ratio, before)
		}
		before = [2]float64{frequency, ratio}
	}
}

// slowest returns the natural frequency, rad/s, and the damping ratio of the two slowest eigenvalues of a matrix.
func slowest(t *testing.T, A *mat.Dense) (frequency, ratio float64) {
	t.Helper()
	var e mat.Eigen
	if !e.Factorize(A, mat.EigenNone) {
		t.Fatal("no eigenvalues")
	}
	values := e.Values(nil)
	slices.SortFunc(values, func(a, b complex128) int { return cmp.Compare(cmplx.Abs(a), cmplx.Abs(b)) })
	frequency = math.Sqrt(real(values[0] * values[1]))
	return frequency, -real(values[0]+values[1]) / (2 * frequency)
}

// oscillation returns the natural frequency and the damping ratio of a decay that is sampled every 5 ms: after 0.25 s, where
// the fast eigenvalues have gone, y[k+2d] = p·y[k+d] - q·y[k] by least squares.
func oscillation(y []float64) (frequency, ratio float64) {
	const first, d = 50, 10
	var a11, a12, a22, b1, b2 float64
	for k := first; k+2*d < len(y); k++ {
		y0, y1, y2 := y[k], y[k+d], y[k+2*d]
		a11, a12, a22, b1, b2 = a11+y1*y1, a12-y1*y0, a22+y0*y0, b1+y1*y2, b2-y0*y2
	}
	det := a11*a22 - a12*a12
	p, q := (a22*b1-a12*b2)/det, (a11*b2-a12*b1)/det
	root := cmplx.Sqrt(complex(p*p/4-q, 0))
	const h = d * 5e-3
	l1, l2 := cmplx.Log(complex(p/2, 0)+root)/h, cmplx.Log(complex(p/2, 0)-root)/h
	frequency = math.Sqrt(real(l1 * l2))
	return frequency, -real(l1+l2) / (2 * frequency)
}

// A run with left and right exchanged is the mirror image.
func TestMirroredRunIsTheMirrorImage(t *testing.T) {
	a, b := modeltest.New(t, plant(25), 5*time.Millisecond), modeltest.New(t, plant(25), 5*time.Millisecond)
	a.To(1.5, func(now float64) {
		b.To(now, nil)
		steer := 0.06 * math.Sin(5*now)
		a.Set("steer", steer)
		b.Set("steer", -steer)
		for i, w := range wheels {
			torque, road := -150*float64(i)*now, 1-0.2*float64(i%2)
			mirrored := []string{"fr", "fl", "rr", "rl"}[i]
			a.Set("T_"+w, torque)
			b.Set("T_"+mirrored, torque)
			a.Set("mu_"+w, road)
			b.Set("mu_"+mirrored, road)
		}
		for name, sign := range map[string]float64{"u": 1, "v": -1, "r": -1, "roll": -1, "pitch": 1, "psi": -1, "X": 1, "Y": -1, "a_y": -1} {
			x, y := a.Get(name), sign*b.Get(name)
			if !(math.Abs(x-y) <= 1e-11*(1+math.Abs(x))) {
				t.Fatalf("%s is %.17g and mirrored %.17g at %g s", name, x, y, now)
			}
		}
	})
	if !(math.Abs(a.Get("r")) > 0.01) {
		t.Errorf("the car does not turn: %g rad/s", a.Get("r"))
	}
}

// At rest on a slope with locked wheels the treads hold the car, also on ice: it comes to rest without jitter. On a slope
// that is steeper than the friction of ice it slides down.
func TestCarStandsOnASlope(t *testing.T) {
	held := func(v float64) *modeltest.Bench {
		var brakes []string
		for _, w := range wheels {
			brakes = append(brakes, "  t_"+w+": {type: torque, flange: w_"+w+", support: car.pitch, tau: T_"+w+"}",
				"  t_"+w+": {type: torque, flange: w_"+w+", support: car.pitch, tau: T_"+w+"}\n  b_"+w+": {type: brake, flange: w_"+w+", support: car.pitch, mu: 0.4, cgeo: 0.2 m, fn: 50 kN}")
		}
		return modeltest.New(t, plant(v, brakes...), 5*time.Millisecond)
	}
	icy := func(b *modeltest.Bench) *modeltest.Bench {
		for _, w := range wheels {
			b.Set("mu_"+w, 0.1)
		}
		return b
	}
	for _, steep := range []float64{-0.2, 0.06} {
		b := held(0)
		if steep > 0 {
			icy(b)
		}
		b.Set("slope", steep)
		b.To(3.5, nil)
		X := b.Get("X")
		fastest := 0.0
		b.To(3.8, func(float64) { fastest = max(fastest, math.Abs(b.Get("u"))) })
		if !(fastest < 1e-3) || !(math.Abs(b.Get("X")-X) < 1e-4) || !(math.Abs(X) < 0.05) {
			t.Errorf("slope %g: moves at %g m/s, from %g to %g m", steep, fastest, X, b.Get("X"))
		}
		sum := 0.0
		for _, w := range wheels {
			sum += b.Get("fx_" + w)
		}
		if want := mass * gravity * math.Sin(steep); !(math.Abs(sum-want) <= 1e-2*math.Abs(want)) {
			t.Errorf("slope %g: the treads hold %g N, want %g", steep, sum, want)
		}
		if got, want := b.Get("a_x"), gravity*math.Sin(steep); !(math.Abs(got-want) <= 1e-2) {
			t.Errorf("slope %g: the sensor reads %g m/s2, want %g", steep, got, want)
		}
	}
	// Locked wheels on ice slide with the sliding friction of the ice, straight.
	b := icy(held(10))
	b.To(1.5, nil)
	D := func(fz float64) float64 { fx, _ := magic(-1, 0, fz, 0.1); return fx }
	want := (2*D(b.Get("fn_fl")) + 2*D(b.Get("fn_rl"))) / mass
	if got := b.Get("a_x"); !(math.Abs(got-want) <= 2e-3*math.Abs(want)) ||
		!(math.Abs(b.Get("w_fl")-b.Get("q")) < 1e-9) || !(b.Get("v") == 0) {
		t.Errorf("on ice %g m/s2, want %g; wheel at %g rad/s, v %g m/s", got, want, b.Get("w_fl"), b.Get("v"))
	}
	b = icy(held(0))
	b.Set("slope", -0.2)
	b.To(1.5, nil)
	peak := 1.1 * 0.1 * gravity // PDX1, nearly
	if got, low, high := b.Get("u"), 1.5*(gravity*math.Sin(0.2)-peak), 1.5*(gravity*math.Sin(0.2)+want); !(got > low && got < high) {
		t.Errorf("on ice it slides down at %g m/s after 1.5 s, want %g to %g, with the largest and the sliding friction", got, low, high)
	}
}

// Full braking with locked wheels ends in a stop. The contacts spring back by the deflection of the carcasses, the force at
// the stop over their stiffness C_Fkappa/sigma: 13 mm on a dry road. Where the force is flat over the slip, the model adds up
// to a quarter. The body moves further by its pitch about the road, h·theta: 28 mm. Then the car rests.
func TestCarWithLockedWheelsSpringsBackByItsCarcasses(t *testing.T) {
	const stiffness = 25 * mass * gravity / sigmaX // PKX1·F_z/sigma of all wheels; PKX2 and PKX3 are small
	for _, road := range []float64{1, 0.3} {
		var brakes []string
		for _, w := range wheels {
			brakes = append(brakes, "  t_"+w+":", "  b_"+w+": {type: brake, flange: w_"+w+", support: car.pitch, mu: 0.4, cgeo: 0.2 m, fn: 50 kN}\n  t_"+w+":")
		}
		b := modeltest.New(t, plant(4, brakes...), 5*time.Millisecond)
		for _, w := range wheels {
			b.Set("mu_"+w, road)
		}
		contact := func() float64 { return b.Get("X") - height*b.Get("pitch") }
		top, force, turned, extreme := 0.0, 0.0, 0.0, 0.0 // at the largest X
		stop := 4/(0.9*road*gravity) + 0.3
		b.To(stop+1.8, func(float64) {
			if X := b.Get("X"); X > top {
				top, force, turned, extreme = X, -mass*b.Get("a_x"), b.Get("pitch"), contact()
			}
			extreme = min(extreme, contact())
		})
		X := b.Get("X")
		moved := 0.0
		b.To(stop+2.3, func(float64) { moved = max(moved, math.Abs(b.Get("X")-X)) })
		first := top - height*turned
		back, carcass := first-contact(), force/stiffness
		t.Logf("road %g: contacts spring back by %.2f mm, at most %.2f, carcasses %.2f; body by %.2f mm; then it moves by %.3f mm", road, 1e3*back, 1e3*(first-extreme), 1e3*carcass, 1e3*(top-X), 1e3*moved)
		if !(back > 0.9*carcass && back < 1.25*carcass) || !(first-extreme < 2*carcass) || !(force > 0.9*road*mass*gravity) {
			t.Errorf("road %g: contacts spring back by %g m, at most by %g, the carcasses by %g under %g N", road, back, first-extreme, carcass, force)
		}
		if !(top-X < carcass*1.25+height*turned+1e-3) || !(moved < 1e-3) || !(turned < 0.06) {
			t.Errorf("road %g: back from %g to %g m, and then by %g m; pitch %g rad", road, top, X, moved, turned)
		}
	}
}

// At 0.1 km/h, and through zero into reverse, speed and forces are smooth.
func TestCarCreepsAndReversesWithoutJitter(t *testing.T) {
	const v = 0.1 / 3.6
	for _, road := range []float64{1, 0.1} {
		b := modeltest.New(t, plant(v), 5*time.Millisecond)
		b.Set("steer", 0.3)
		for _, w := range wheels {
			b.Set("mu_"+w, road)
		}
		b.To(3, nil)
		if u := b.Get("u"); !(math.Abs(u-v) < 0.1*v) || !(b.Get("r") > 0.8*u*math.Tan(0.3)/(front+rear)) {
			t.Errorf("road %g: creeps at %g m/s, turns at %g rad/s", road, u, b.Get("r"))
		}
	}
	b := modeltest.New(t, plant(0.5), 5*time.Millisecond)
	b.Set("steer", 0.2)
	for _, w := range wheels {
		b.Set("T_"+w, -40)
	}
	last, jump, signs, sign := 0.5, 0.0, 0, 1.0
	b.To(0.5, nil)
	last = b.Get("u")
	b.To(4, func(float64) {
		u := b.Get("u")
		jump = max(jump, math.Abs(u-last))
		if last = u; u*sign < 0 {
			signs++
			sign = -sign
		}
	})
	mean := 4 * 40 / radius / mass * 0.005 // in a tick
	if !(jump < 2*mean) || signs != 1 || !(b.Get("u") < -0.8) {
		t.Errorf("changes by up to %g m/s in a tick, in the mean %g; %d changes of sign, %g m/s at the end", jump, mean, signs, b.Get("u"))
	}
}

// withLosses adds blocks that integrate what tyres and dampers dissipate, for energy.
func withLosses(text string) string {
	var blocks, losses strings.Builder
	for _, w := range wheels {
		blocks.WriteString(strings.ReplaceAll(`
  w_@_s: {type: speed_sensor, flange: w_@}
  rim_@: {type: gain, u: w_@_s, k: 0.3 m}
  slip_@: {type: sum, u: [@.v_x, rim_@], k: [1, -1]}
  along_@: {type: product, u: [@.f_x, slip_@]}
  across_@: {type: product, u: [@.f_y, @.v_y]}`, "@", w))
		losses.WriteString(", along_" + w + ", across_" + w)
	}
	blocks.WriteString(`
  p_roll: {type: speed_sensor, flange: car.roll}
  p_pitch: {type: speed_sensor, flange: car.pitch}
  d_roll: {type: product, u: [6 kN.m.s/rad, p_roll, p_roll]}
  d_pitch: {type: product, u: [14 kN.m.s/rad, p_pitch, p_pitch]}
  given: {type: sum, u: [` + losses.String()[2:] + `]}
  tyres: {type: integrator, u: given}
  taken: {type: sum, u: [d_roll, d_pitch]}
  dampers: {type: integrator, u: taken}
outputs:
  E_tyres: {signal: tyres}
  E_dampers: {signal: dampers}
`)
	return strings.Replace(text, "outputs:\n", blocks.String()[1:], 1)
}

// energy returns the energy of the car plus what tyres and dampers have dissipated, J.
func energy(b *modeltest.Bench) float64 {
	sq := func(name string) float64 { return b.Get(name) * b.Get(name) }
	e := mass*(sq("u")+sq("v")) + jYaw*sq("r") + jRoll*sq("p") + jPitch*sq("q") +
		(cRoll-mass*gravity*height)*sq("roll") + (cPitch-mass*gravity*height)*sq("pitch")
	for _, w := range wheels {
		e += jWheel * sq("w_"+w)
	}
	return e/2 - b.Get("E_tyres") + b.Get("E_dampers")
}

// Motion, treads, suspension and what they dissipate add up: without drive the energy of the body plus the losses,
// which blocks of the plant integrate, stays.
func TestEnergyCloses(t *testing.T) {
	b := modeltest.New(t, withLosses(plant(25)), 5*time.Millisecond)
	first := energy(b)
	b.To(2, func(now float64) { b.Set("steer", 0.07*math.Sin(4*now)) })
	lost := math.Abs(b.Get("E_tyres")) + b.Get("E_dampers")
	if e := math.Abs(energy(b) - first); !(e <= 1e-7*first) || !(lost > 0.05*first) {
		t.Errorf("%.3g of %.6g J are missing; %.4g J lost to tyres and dampers", e, first, lost)
	}
}

// The skew of the curvature, PEY3, has the sign of the slip angle, not that of the force.
func TestCurvatureIsSkewedByTheSignOfTheSlipAngle(t *testing.T) {
	b := modeltest.New(t, plant(20, "PEY2: -0.3", "PEY2: -0.3, PEY3: 0.5", "RBY3: 0,", "RBY3: 0.01, RVY1: 0, RVY4: 12, RVY5: 1.9, RVY6: -10, LYKA: 1, PHY1: 0,"), 5*time.Millisecond)
	most := 0.0
	b.To(0.6, func(now float64) {
		b.Set("steer", 0.12*math.Sin(9*now))
		alpha := b.Get("alpha_fl")
		_, want := skewed(b.Get("kappa_fl"), alpha, b.Get("fn_fl"), 1, 0.5, 0.01)
		if got := b.Get("fy_fl"); !(math.Abs(got-want) <= 1e-6) {
			t.Fatalf("%g s: %.9g N at a slip angle of %g, want %.9g", now, got, alpha, want)
		}
		most = max(most, math.Abs(alpha))
	})
	if !(most > 0.05) {
		t.Errorf("the slip angle reaches only %g", most)
	}
}

const tyreFile = `[UNITS]
LENGTH = 'mm'
FORCE = 'kN'
[MODEL]
FITTYP = 61
TYRESIDE = 'LEFT'
[VERTICAL]
FNOMIN = 4
[STRUCTURAL]
LONGITUDINAL_STIFFNESS = 0.4
LATERAL_STIFFNESS = 0.2
[ALL]
`

// load loads the plant with front left data from a file in dir.
func load(t *testing.T, dir, text string) (string, error) {
	t.Helper()
	i := strings.Index(text, "  fl: {type: mf_tyre")
	line := text[i:]
	line = line[:strings.IndexByte(line, '\n')]
	edited := strings.Replace(line, "coefficients: "+coefficients, "tyre: own.tir", 1)
	edited = strings.Replace(edited, "FNOMIN: 4000, relaxation_x: 0.3, relaxation_y: 0.5, ", "", 1)
	text = strings.Replace(text, line, edited, 1)
	_, err := plantfile.Load(filepath.Join(dir, "t.yaml"), []byte(text), library.Elements())
	return text, err
}

func TestTyreFileGivesTheData(t *testing.T) {
	dir := t.TempDir()
	keys := strings.NewReplacer("{", "", "}", "", ": ", " = ", ", ", "\n").Replace(coefficients)
	write := func(content string) {
		if err := os.WriteFile(filepath.Join(dir, "own.tir"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(tyreFile + keys)
	if _, err := load(t, dir, plant(20)); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "t.yaml")
	file := filepath.Join(dir, "own.tir")
	for _, c := range []struct{ old, new, want string }{
		{"PKY1 = -20\n", "", file + ": tir: PKY1 is missing"},
		{"PKY1 = -20\n", "PKY1 = -2000\n", file + ":30: tir: PKY1 -2000 is outside ±1000"},
		{"FITTYP = 61", "FITTYP = 21", file + ":5: tir: FITTYP 21 is not read; it is 52, 6, 61 or 62, or give version: 5.2 or 6.1"},
		{"FNOMIN = 4", "FNOMIN = 0", file + ":8: tir: FNOMIN 0 is not positive"},
		{"FORCE = 'kN'", "ANGLE = 'degree'", file + `:3: tir: ANGLE "degree": the coefficients must be those for radians`},
		{"[ALL]", "LMUV = 0.1", file + `:12: tir: LMUV 0.1 is not supported: friction does not fall with the slip speed; write 0`},
	} {
		write(strings.Replace(tyreFile+keys, c.old, c.new, 1))
		_, err := load(t, dir, plant(20))
		if err == nil || !strings.HasPrefix(err.Error(), at+":") || !strings.HasSuffix(err.Error(), `element "fl": tyre: `+c.want) {
			t.Errorf("%q: got %v\nwant %s", c.new, err, c.want)
		}
	}
}

func TestErrorsOfCarsHaveAPosition(t *testing.T) {
	text := plant(20)
	for _, c := range []struct{ name, old, new, want string }{
		{"tyre without a car", "b: car.fl, ", "b: «car.fx», ", `element "fl": b: "car.fx" is no wheel of a planar_car (did you mean car.fl?)`},
		{"steering without a car", "{type: steering, car: car", "{type: steering, car: «cra»", `element "rack": car: "cra" is no planar_car (did you mean car?)`},
		{"soft suspension", "c_roll: 85000", "c_roll: «5000»", `element "car": c_roll 5000 N.m/rad does not carry the body: m*g*h is 8093.25 N.m/rad`},
	} {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, text, c.old, c.new, c.want) })
	}
}
