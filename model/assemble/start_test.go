package assemble_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/network"
	"lockstep/model/plantfile"
)

// networkOf returns the network of a plant with these elements and outputs.
func networkOf(t *testing.T, elements, outputs string) *network.Plant {
	t.Helper()
	p, err := plantfile.Load("t.yaml", []byte(modeltest.PlantOf(elements, outputs)), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// startOf returns the start of a plant by name.
func startOf(t *testing.T, p *network.Plant) map[string]assemble.StartValue {
	t.Helper()
	list, err := assemble.StartOf(p)
	if err != nil {
		t.Fatalf("%v", err)
	}
	start := map[string]assemble.StartValue{}
	for _, s := range list {
		start[s.Name] = s
	}
	return start
}

// The first three cases are those of elements between the same nodes, of an end without a start,
// and of gears. The others are every other way to place something.
func TestStartAgreesOverAllElements(t *testing.T) {
	for _, c := range []struct {
		name, elements string
		want           map[string]float64
	}{
		{"damper beside a spring", `
m: {type: mass, m: 1}
g: {type: fixed}
k: {type: spring, a: g, b: m, c: 10, s_rel_start: 0.3}
d: {type: deflection_damper, a: g, b: m, d_delta: 1}
e: {type: elasto_gap, a: g, b: m, c: 10, d: 0, s_rel0: 0.1}
j: {type: affine_spring, a: g, b: m, c: [1, 2], borders: [0.2]}
o: {type: clearance, a: g, b: m, s_min: -1}`,
			map[string]float64{"m.s": 0.3, "k.twist": 0.3, "d.twist": 0.3, "e.twist": 0.2, "j.twist": 0.3, "o.play": 1.3}},
		{"end without a start", `
m: {type: mass, m: 1, s_start: 5}
n: {type: mass, m: 1}
k: {type: spring, a: m, b: n, c: 10, s_rel0: 0.1}`, map[string]float64{"n.s": 5.1, "k.twist": 0}},
		{"gear", `
m: {type: inertia, J: 1}
n: {type: inertia, J: 1, phi_start: 2}
x: {type: ideal_gear, a: m, b: n, ratio: -3}`, map[string]float64{"m.phi": -6}},
		{"gear on a turned support", `
m: {type: inertia, J: 1}
n: {type: inertia, J: 1, phi_start: 2}
g: {type: fixed, phi0: 0.5}
x: {type: ideal_gear, a: m, b: n, ratio: 3, support: g}`, map[string]float64{"m.phi": 5}},
		{"planetary set", `
sun: {type: inertia, J: 1, phi_start: 1, w_start: 4}
carrier: {type: inertia, J: 1, phi_start: 2}
ring: {type: inertia, J: 1, w_start: 1}
x: {type: ideal_planetary, sun: sun, carrier: carrier, ring: ring, ratio: 2}`,
			map[string]float64{"ring.phi": 2.5, "carrier.w": 2}},
		{"planetary set with one start speed", `
sun: {type: inertia, J: 1, w_start: 4}
carrier: {type: inertia, J: 1}
ring: {type: inertia, J: 1}
x: {type: ideal_planetary, sun: sun, carrier: carrier, ring: ring, ratio: 2}`,
			map[string]float64{"sun.w": 4, "carrier.w": 0, "ring.w": -2}},
		{"vehicle on a wheel", `
rim: {type: inertia, J: 1}
car: {type: vehicle, flange: rim, m: 1000, R: 0.5, Cr: 0, s_start: 10, v_start: 3}`,
			map[string]float64{"rim.phi": 20, "rim.w": 6}},
		{"springs of a body", `
g: {type: fixed}
car: {type: body, m: 100, J: 10, dof: [y, phi], nodes: {front: [1, 0], rear: [-1, 0]}}
f: {type: spring, a: g, b: car.front.y, c: 10, s_rel0: 0.3}
r: {type: spring, a: g, b: car.rear.y, c: 10, s_rel0: 0.1}`,
			map[string]float64{"car.y.s": 0.2, "car.phi.phi": 0.1, "f.twist": 0, "r.twist": 0}},
		{"springs of an upright body", `
g: {type: fixed}
car: {type: body, m: 100, J: 10, dof: [y, phi], y_start: 0.5, nodes: {front: [1, 0]}}
f: {type: spring, a: g, b: car.front.y, c: 10, s_rel0: 0.3}`,
			map[string]float64{"car.y.s": 0.5, "car.phi.phi": 0, "f.twist": 0.2}},
		{"two springs between the same nodes share", `
g: {type: fixed}
m: {type: mass, m: 1}
k: {type: spring, a: g, b: m, c: 100, s_rel0: 0.1}
l: {type: spring, a: g, b: m, c: 300, s_rel0: 0.2}
e: {type: elasto_gap, a: g, b: m, c: 1e9, d: 0, s_rel0: 9}`, map[string]float64{"m.s": 0.175}},
		{"massless node between springs", `
g: {type: fixed}
m: {type: mass, m: 1, s_start: 1}
k: {type: spring, a: g, b: n, c: 100, s_rel0: 0.1}
l: {type: spring, a: n, b: m, c: 300, s_rel0: 0.2}`, map[string]float64{"k.twist": 0.525, "l.twist": 0.175}},
		{"exact source", `
m: {type: inertia, J: 1}
n: {type: inertia, J: 1}
s: {type: position, flange: m, exact: true, phi_ref: {sine: {amplitude: 3, f: 0.5, offset: 7}}}
k: {type: spring, a: m, b: n, c: 1, phi_rel0: 1}`, map[string]float64{"m.phi": 7, "m.w": 3 * math.Pi, "n.phi": 8}},
		{"filtered source", `
m: {type: inertia, J: 1, phi_start: 2, w_start: 3}
s: {type: position, flange: m, phi_ref: 9}`, map[string]float64{"s.phi": 2, "s.w": 3}},
		{"volume", `
tank: {type: low_pressure_accumulator, p_V: [[0, 0], [3 cm3, 6 bar]], V_start: 2 cm3}
m: {type: inertia, J: 1}
grip: {type: brake, flange: m, mu: 1, cgeo: 1, area: 1 cm2, pressure: tank}`, map[string]float64{"tank.V": 2e-6}},
		{"short distance far from the origin", `
m: {type: mass, m: 1, s_start: 1024}
n: {type: mass, m: 1, s_start: 1024.000000476837158203125}
k: {type: spring, a: m, b: n, c: 10}`, map[string]float64{"k.twist": 0x1p-21}},
		{"unused place", `
wall: {type: fixed, s0: 3}
m: {type: mass, m: 1}`, map[string]float64{"m.s": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := startOf(t, networkOf(t, c.elements+"\nfree: {type: inertia, J: 1}", "w: {speed: free}"))
			for name, want := range c.want {
				if got, ok := start[name]; !ok || !scalar.EqualWithinAbsOrRel(got.Value, want, 1e-15, 1e-14) {
					t.Errorf("%s starts at %.17g (%s), want %.17g", name, got.Value, got.Origin, want)
				}
			}
		})
	}
}

// What the file gives is taken to the last bit, also where other values lead to it.
func TestGivenStartIsExact(t *testing.T) {
	start := startOf(t, networkOf(t, `
m: {type: mass, m: 1, s_start: 0.1}
n: {type: mass, m: 1}
k: {type: spring, a: m, b: n, c: 10, s_rel_start: 0.3}
d: {type: clearance, a: m, b: n, s_min: 0}`, "s: {s_rel: k}"))
	for name, want := range map[string]float64{"k.twist": 0.3, "d.play": 0.3} {
		if s := start[name]; s.Value != want || s.Origin != "s_rel_start of k" {
			t.Errorf("%s starts at %.17g (%s)", name, s.Value, s.Origin)
		}
	}
}

// A start that cannot be is refused with all that contradicts it.
func TestContradictoryStartsAreRefused(t *testing.T) {
	for _, c := range []struct{ elements, want string }{
		{`
m: {type: mass, m: 1, s_start: 0.1}
n: {type: mass, m: 1, s_start: 0.5}
k: {type: spring, a: m, b: n, c: 10, s_rel_start: «0.3»}`,
			`element "k": s_rel_start 0.3 m contradicts s_start 0.1 m of "m" and s_start 0.5 m of "n", which make it 0.4 m`},
		{`
m: {type: mass, m: 1, s_start: 1024}
n: {type: mass, m: 1, s_start: 1024.000000476837158203125}
k: {type: spring, a: m, b: n, c: 10, s_rel_start: «0»}`,
			`element "k": s_rel_start 0 m contradicts s_start 1024 m of "m" and s_start 1024 m of "n", which make it 4.76837158e-07 m`},
		{`
m: {type: mass, m: 1}
g: {type: fixed, s0: 1}
k: {type: spring, a: g, b: m, c: 10, s_rel_start: 0.3}
o: {type: clearance, a: m, b: g, s_min: -1, s_rel_start: «0.3»}`,
			`element "o": s_rel_start 0.3 m contradicts s_rel_start 0.3 m of "k", which makes it -0.3 m`},
		{`
m: {type: inertia, J: 1, phi_start: 1}
n: {type: inertia, J: 1, phi_start: «1»}
o: {type: inertia, J: 1, phi_start: 5}
x: {type: ideal_gear, a: m, b: n, ratio: 2}`,
			`element "n": phi_start 1 rad contradicts phi_start 1 rad of "m", which makes it 0.5 rad`},
		{`
m: {type: inertia, J: 1, w_start: 1}
n: {type: inertia, J: 1, w_start: 2}
o: {type: inertia, J: 1, w_start: «3»}
x: {type: differential, drive: m, left: n, right: o}`,
			`element "o": w_start 3 rad/s contradicts w_start 1 rad/s of "m" and w_start 2 rad/s of "n", which make it 0 rad/s`},
		{`
m: {type: mass, m: 1, s_start: 0.1}
s: {type: position, flange: m, exact: true, s_ref: «2 m»}`,
			`element "s": s_ref 2 m contradicts s_start 0.1 m of "m", which makes it 0.1 m`},
		{`
m: {type: mass, m: 1}
g: {type: fixed}
k: {type: spring, a: g, b: n, c: 10, s_rel_start: 0.3}
l: {type: spring, a: n, b: m, c: 10, s_rel_start: «0.1»}`,
			`element "l": s_rel_start 0.1 m contradicts the balance of springs at a massless node and ` +
				`s_rel_start 0.3 m of "k", which make it 0.3 m`},
		{`
m: {type: mass, m: 1}
g: {type: fixed}
car: {type: body, m: 1, J: 1, x_start: 1, y_start: 0, phi_start: 0.1, nodes: {tip: [1, 0]}}
k: {type: spring, a: g, b: car.tip.y, c: 10, s_rel_start: «0.3»}`,
			`element "k": s_rel_start 0.3 m contradicts y_start 0 m of "car" and phi_start 0.1 rad of "car", which make it 0.1 m`},
		{`
m: {type: mass, m: 1}
base: {type: body, dof: [], x_start: 0, y_start: 0}
car: {type: body, m: 1, J: 1, x_start: 1, y_start: 0, v_y_start: «2»}
j: {type: translational_joint, a: base, b: car, angle: 0}`,
			`element "car": v_y_start 2 m/s contradicts the gears and joints, which make it 0 m/s`},
		{`
m: {type: inertia, J: 1}
n: {type: inertia, J: 1}
g: {type: fixed, phi0: 1}
x: {type: ideal_gear, a: m, b: n, ratio: 2}
«y»: {type: ideal_gear, a: m, b: n, ratio: 2, support: g}`,
			`element "y": the other gears, or where the bodies start, hold its ends 1 rad apart; correct where they start`},
	} {
		_, at := modeltest.CutMarks("plant: t\nelements:\n  " + strings.ReplaceAll(strings.TrimSpace(c.elements), "\n", "\n  "))
		plain, _ := modeltest.CutMarks(c.elements)
		err := modeltest.Check(modeltest.PlantOf(plain, "w: {speed: m}"))
		if want := "t.yaml:" + at + ": model: " + c.want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A massless node between springs of very different stiffness swings as the springs in series do, and
// both carry the same force. Where rounding would lose the softer one, the plant is refused.
func TestMasslessNodeBetweenSoftAndStiffSpring(t *testing.T) {
	const elements = `
g: {type: fixed}
m: {type: mass, m: 1, s_start: 1}
k: {type: spring, a: g, b: n, c: 1}
«l»: {type: spring, a: n, b: m, c: %g, s_rel0: 0.2}`
	for _, stiff := range []float64{1e3, 1e9, 9e10} {
		plain, _ := modeltest.CutMarks(fmt.Sprintf(elements, stiff))
		start := startOf(t, networkOf(t, plain, "s: {position: m}"))
		soft, hard := start["k.twist"].Value, stiff*start["l.twist"].Value
		if !scalar.EqualWithinRel(soft, 0.8/(1+1/stiff), 1e-12) || !scalar.EqualWithinRel(hard, soft, 1e-5) {
			t.Errorf("%g N/m: the springs start with %.9g N and %.9g N", stiff, soft, hard)
		}
	}

	for _, c := range []struct{ elements, want string }{
		{fmt.Sprintf(elements, 1e12),
			`element "l": at massless node "n" it is 1e+12 times as stiff as "k", whose force would be lost in rounding; ` +
				`leave "l" out, or give "n" an inertia`},
		{`
m: {type: inertia, J: 1}
g: {type: fixed}
x: {type: ideal_gear, a: n, b: m, ratio: 1000}
«k»: {type: spring, a: g, b: q, c: 1e13}
l: {type: spring_damper, a: q, b: r, c: 1e6, d: 1}
j: {type: spring, a: r, b: m, c: 1}
i: {type: spring, a: n, b: q, c: 10}`,
			`element "k": at massless node "q" it is 1e+13 times as stiff as "j", whose torque would be lost in rounding; ` +
				`leave "k" out, or give "q" an inertia`},
	} {
		_, at := modeltest.CutMarks("plant: t\nelements:\n  " + strings.ReplaceAll(strings.TrimSpace(c.elements), "\n", "\n  "))
		plain, _ := modeltest.CutMarks(c.elements)
		err := modeltest.Check(modeltest.PlantOf(plain, "w: {speed: m}"))
		if want := "t.yaml:" + at + ": model: " + c.want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Guesses come after what the file gives and before the springs, by their weight. Later sources of
// start conditions add theirs to the same list.
func TestGuessesYieldToGivenValuesOnly(t *testing.T) {
	p := networkOf(t, `
g: {type: fixed}
m: {type: mass, m: 1}
n: {type: mass, m: 1, s_start: 4}
o: {type: mass, m: 1}
k: {type: spring, a: g, b: m, c: 1e9, s_rel0: 7}
l: {type: spring, a: m, b: o, c: 10, s_rel0: 2}`, "w: {speed: m}")
	for _, s := range []network.StartCondition{
		{Row: network.RowOf(1), Value: 1, Weight: 3}, {Row: network.RowOf(1), Value: 2, Weight: 1},
		{Row: network.RowOf(2), Value: 9, Weight: 1e6}, {Row: network.RowOf(3), Speed: true, Value: 5, Weight: 1},
	} {
		s.Rank = network.StartGuess
		p.Starts = append(p.Starts, s)
	}
	start := startOf(t, p)
	for name, want := range map[string]float64{"m.s": 1.25, "n.s": 4, "o.s": 3.25, "o.v": 5, "m.v": 0} {
		if got := start[name].Value; !scalar.EqualWithinAbsOrRel(got, want, 1e-14, 1e-14) {
			t.Errorf("%s starts at %.17g, want %g", name, got, want)
		}
	}
}

// randomStart is a random network of masses with springs, gears between their positions, and start
// values that agree.
type randomStart struct {
	elements  strings.Builder
	exact     [][]float64 // rows over the positions, then the value
	springs   [][]float64
	stiffness []float64
	n         int
}

func newRandomStart(rnd *rand.Rand) *randomStart {
	r := &randomStart{n: 3 + rnd.IntN(10)}
	truth := make([]float64, r.n) // a place that satisfies all that is given
	line := func(format string, args ...any) { fmt.Fprintf(&r.elements, format+"\n", args...) }
	row := func(a, b int, ratio float64) []float64 {
		v := make([]float64, r.n+1)
		if a >= 0 {
			v[a] = -ratio
		}
		v[b] += 1
		return v
	}
	for i := range truth {
		truth[i] = rnd.NormFloat64()
	}

	geared := r.n/2 + rnd.IntN(r.n/2) // the nodes from here on hang on a gear to an earlier one
	for i := geared; i < r.n; i++ {
		a, ratio := rnd.IntN(geared), math.Exp(rnd.NormFloat64())
		truth[i] = truth[a] * ratio
		r.exact = append(r.exact, row(a, i, ratio))
		line("g%d: {type: ideal_gear, a: m%d, b: m%d, ratio: %.17g}", i, i, a, ratio)
	}
	line("ground: {type: fixed, phi0: 0}")
	for i := range truth {
		given := ""
		if rnd.IntN(4) == 0 {
			v := row(-1, i, 0)
			v[r.n] = truth[i]
			r.exact = append(r.exact, v)
			given = fmt.Sprintf(", phi_start: %.17g", truth[i])
		}
		line("m%d: {type: inertia, J: 1%s}", i, given)
	}
	for range 2 * r.n {
		a, b := rnd.IntN(r.n+1)-1, rnd.IntN(r.n)
		if a == b {
			b = (b + 1) % r.n
			if a == b {
				continue
			}
		}
		end, from := fmt.Sprintf("m%d", a), 0.0
		if a < 0 {
			end = "ground"
		} else {
			from = truth[a]
		}
		c, rest, given := math.Exp(2*rnd.NormFloat64()), rnd.NormFloat64(), ""
		v := row(a, b, 1)
		if v[r.n] = rest; rnd.IntN(6) == 0 {
			v[r.n] = truth[b] - from
			r.exact = append(r.exact, v)
			given = fmt.Sprintf(", phi_rel_start: %.17g", v[r.n])
		}
		r.springs, r.stiffness = append(r.springs, append(v[:r.n:r.n], rest)), append(r.stiffness, c)
		line("k%d: {type: spring, a: %s, b: m%d, c: %.17g, phi_rel0: %.17g%s}", len(r.springs)-1, end, b, c, rest, given)
	}
	return r
}

// solve returns the deflection of each spring by dense linear algebra: the least energy of the springs
// over the null space of what is given.
func (r *randomStart) solve() []float64 {
	q, null := mat.NewVecDense(r.n, nil), mat.DenseCopyOf(eye(r.n))
	if len(r.exact) > 0 {
		a, b := split(r.exact, r.n)
		q = pseudoSolve(a, b)
		null = nullSpace(a)
	}

	a, b := split(r.springs, r.n)
	_, free := null.Dims()
	if free > 0 {
		var left, reduced mat.Dense
		var off mat.VecDense
		reduced.Mul(a, null)
		off.MulVec(a, q)
		off.SubVec(b, &off)
		scale := mat.NewDiagDense(len(r.springs), nil)
		for i, c := range r.stiffness {
			scale.SetDiag(i, math.Sqrt(c))
		}
		left.Mul(scale, &reduced)
		off.MulVec(scale, &off)
		var move mat.VecDense
		move.MulVec(null, pseudoSolve(&left, &off))
		q.AddVec(q, &move)
	}

	var deflection mat.VecDense
	deflection.MulVec(a, q)
	return deflection.RawVector().Data
}

func eye(n int) *mat.DiagDense {
	d := mat.NewDiagDense(n, nil)
	for i := range n {
		d.SetDiag(i, 1)
	}
	return d
}

// split parts rows from their values.
func split(rows [][]float64, n int) (*mat.Dense, *mat.VecDense) {
	a, b := mat.NewDense(len(rows), n, nil), mat.NewVecDense(len(rows), nil)
	for i, r := range rows {
		a.SetRow(i, r[:n])
		b.SetVec(i, r[n])
	}
	return a, b
}

// singular returns the singular value decomposition of a and its rank.
func singular(a mat.Matrix) (*mat.SVD, int) {
	var svd mat.SVD
	svd.Factorize(a, mat.SVDFull)
	rank := 0
	for _, v := range svd.Values(nil) {
		if v > 1e-9 {
			rank++
		}
	}
	return &svd, rank
}

func pseudoSolve(a mat.Matrix, b *mat.VecDense) *mat.VecDense {
	_, n := a.Dims()
	x := mat.NewVecDense(n, nil)
	if svd, rank := singular(a); rank > 0 {
		svd.SolveVecTo(x, b, rank)
	}
	return x
}

func nullSpace(a mat.Matrix) *mat.Dense {
	svd, rank := singular(a)
	var v mat.Dense
	svd.VTo(&v)
	n, _ := v.Dims()
	if rank == n {
		return &mat.Dense{}
	}
	return mat.DenseCopyOf(v.Slice(0, n, rank, n))
}

func TestRandomNetworksStartWithTheLeastEnergy(t *testing.T) {
	strained := 0
	for seed := range uint64(400) {
		r := newRandomStart(rand.New(rand.NewPCG(seed, 20)))
		text := r.elements.String()
		start := startOf(t, networkOf(t, text, "w: {speed: m0}"))
		for i, want := range r.solve() {
			got := start[fmt.Sprintf("k%d.twist", i)].Value + r.springs[i][r.n]
			if !scalar.EqualWithinAbsOrRel(got, want, 1e-8, 1e-8) {
				t.Fatalf("seed %d: k%d starts at phi_rel %.12g, want %.12g\n%s", seed, i, got, want, text)
			}
			if !scalar.EqualWithinAbs(want, r.springs[i][r.n], 1e-3) {
				strained++
			}
		}
		for _, row := range r.exact {
			sum := -row[r.n]
			for j, c := range row[:r.n] {
				sum += c * start[fmt.Sprintf("m%d.phi", j)].Value
			}
			if !(math.Abs(sum) <= 1e-8) {
				t.Fatalf("seed %d: a given value is missed by %g\n%s", seed, sum, text)
			}
		}
	}

	if strained < 1000 {
		t.Errorf("only %d springs start under load", strained)
	}
}
