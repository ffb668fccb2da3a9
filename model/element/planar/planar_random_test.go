package planar_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"lockstep/model/modeltest"
)

// flat is a random vehicle in the plane as M·q” + K·q' + S·q = F, with rows of C·q = 0
// (Gyebroszki, eq. 1.1.1 to 1.1.5), put together from its geometry alone; q are x, y and
// phi of each body, and free says which of them move.
type flat struct {
	m, force []float64
	free     []bool
	k, s     *mat.Dense
	joints   [][]float64
	places   []float64 // initial q: x, y, 0 of each body
	text     strings.Builder
}

// randomFlat makes bodies with some of their freedoms, places and nodes on them, springs
// and dampers along the axes and along lines, forces, and perhaps a joint.
func randomFlat(rnd *rand.Rand) *flat {
	bodies := 2 + rnd.IntN(3)
	if rnd.IntN(6) == 0 {
		bodies = 14
	}
	starts := []string{"", ", v_x_start: 0, v_y_start: 0, w_start: 0"}[rnd.IntN(2)] // written, they stay if they can
	n := 3 * bodies
	f := &flat{m: make([]float64, n), force: make([]float64, n), free: make([]bool, n), k: mat.NewDense(n, n, nil), s: mat.NewDense(n, n, nil)}
	places := make([][2]float64, bodies)
	var nodes []point
	f.line("ground: {type: fixed}")
	for b := range bodies {
		m, J := 1+9*rnd.Float64(), 0.5+3*rnd.Float64()
		f.m[3*b], f.m[3*b+1], f.m[3*b+2] = m, m, J
		var dof []string
		for i, name := range []string{"x", "y", "phi"} {
			if f.free[3*b+i] = rnd.IntN(4) > 0 || b == 0; f.free[3*b+i] {
				dof = append(dof, name)
			}
		}
		places[b] = [2]float64{3 * float64(b), rnd.Float64()}
		f.places = append(f.places, places[b][0], places[b][1], 0)
		var list []string
		for i := range 2 {
			p := point{fmt.Sprintf("b%d.n%d", b, i), b, [2]float64{rnd.Float64() - 0.5, rnd.Float64() - 0.5}}
			nodes = append(nodes, p)
			list = append(list, fmt.Sprintf("n%d: [%v, %v]", i, p.rel[0], p.rel[1]))
		}
		f.line("b%d: {type: body, m: %v, J: %v, dof: [%s], nodes: {%s}, x_start: %v, y_start: %v%s}", b, m, J, strings.Join(dof, ", "), strings.Join(list, ", "), places[b][0], places[b][1], map[bool]string{true: starts}[len(dof) == 3])
	}
	for i := range 2 * bodies {
		f.connect(rnd, i, nodes, places)
	}
	for i, name := range []string{"x", "y"} {
		p := nodes[rnd.IntN(len(nodes))]
		dir := [2]float64{}
		dir[i] = 1
		if r := f.row(p, dir); norm(r) > 0 {
			push := 20 * rnd.NormFloat64()
			f.line("push%d: {type: force, flange: %s.%s, f: %v}", i, p.name, name, push)
			for j := range r {
				f.force[j] += push * r[j]
			}
		}
	}
	for range bodies {
		if a, b := nodes[rnd.IntN(len(nodes))], nodes[rnd.IntN(len(nodes))]; a.body != b.body {
			f.guide(rnd, a, b, places)
		}
	}
	return f
}

// point is a node of a body.
type point struct {
	name string
	body int
	rel  [2]float64
}

func (f *flat) line(format string, args ...any) {
	fmt.Fprintf(&f.text, "  "+format+"\n", args...)
}

// row returns the derivative of a point's displacement in a direction by q.
func (f *flat) row(p point, dir [2]float64) []float64 {
	r := make([]float64, len(f.m))
	for i, c := range [3]float64{dir[0], dir[1], p.rel[0]*dir[1] - p.rel[1]*dir[0]} {
		if f.free[3*p.body+i] {
			r[3*p.body+i] = c
		}
	}
	return r
}

func norm(r []float64) (s float64) {
	for _, v := range r {
		s += v * v
	}
	return s
}

func minus(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i, v := range b {
		out[i] -= v
	}
	return out
}

// connect puts a spring and damper with an initial force between two nodes, or a node and the
// ground: along x, y, their line or an angle.
func (f *flat) connect(rnd *rand.Rand, i int, nodes []point, places [][2]float64) {
	a, b := nodes[rnd.IntN(len(nodes))], nodes[rnd.IntN(len(nodes))]
	c, d, pull := 100+400*rnd.Float64(), 3*rnd.Float64(), 0.1*rnd.NormFloat64()
	at := func(p point, dir [2]float64) float64 {
		return dir[0]*(places[p.body][0]+p.rel[0]) + dir[1]*(places[p.body][1]+p.rel[1])
	}
	if a.body == b.body {
		axis := rnd.IntN(2)
		dir := [2]float64{}
		dir[axis] = 1
		if r := f.row(a, dir); norm(r) > 0 {
			f.line("s%d: {type: spring_damper, a: ground, b: %s.%s, c: %v, d: %v, s_rel0: %v}", i, a.name, [2]string{"x", "y"}[axis], c, d, at(a, dir)-pull)
			f.add(r, c, d, pull)
		}
		return
	}
	angle := 2 * math.Pi * rnd.Float64()
	given := fmt.Sprintf(", angle: %v", angle)
	dir := [2]float64{math.Cos(angle), math.Sin(angle)}
	if rnd.IntN(2) == 0 {
		given = ""
		x, y := at(b, [2]float64{1, 0})-at(a, [2]float64{1, 0}), at(b, [2]float64{0, 1})-at(a, [2]float64{0, 1})
		dir = [2]float64{x / math.Hypot(x, y), y / math.Hypot(x, y)}
	}
	if r := minus(f.row(b, dir), f.row(a, dir)); norm(r) > 1e-6 {
		f.line("l%d: {type: line, a: %s, b: %s%s}", i, a.name, b.name, given)
		f.line("s%d: {type: spring_damper, a: ground, b: l%d, c: %v, d: %v, s_rel0: %v}", i, i, c, d, at(b, dir)-at(a, dir)-pull)
		f.add(r, c, d, pull)
	}
}

// add puts c·(r·q + pull) + d·r·q' to the matrices.
func (f *flat) add(r []float64, c, d, pull float64) {
	for i, u := range r {
		for j, v := range r {
			f.s.Set(i, j, f.s.At(i, j)+c*u*v)
			f.k.Set(i, j, f.k.At(i, j)+d*u*v)
		}
		f.force[i] -= c * pull * u
	}
}

// guide adds a translational joint along the axis from a to b if the joint removes a degree of
// freedom. The joint may also lock the rotation.
func (f *flat) guide(rnd *rand.Rand, a, b point, places [][2]float64) {
	x, y := places[b.body][0]+b.rel[0]-places[a.body][0]-a.rel[0], places[b.body][1]+b.rel[1]-places[a.body][1]-a.rel[1]
	length := math.Hypot(x, y)
	across := [2]float64{-y / length, x / length}
	r := minus(f.row(b, across), f.row(a, across))
	if f.free[3*a.body+2] {
		r[3*a.body+2] -= length
	}
	joints, rotation := append(slices.Clone(f.joints), r), "free"
	if turn := minus(f.turn(b), f.turn(a)); rnd.IntN(3) == 0 {
		joints, rotation = append(joints, turn), "locked"
	}
	if f.moves(joints) {
		f.line("guide%d: {type: translational_joint, a: %s, b: %s, angle: %v, rotation: %s}", len(f.joints), a.name, b.name, math.Atan2(y, x), rotation)
		f.joints = joints
	}
}

// turn returns the derivative of the angle of a point's body by q.
func (f *flat) turn(p point) []float64 {
	r := make([]float64, len(f.m))
	if f.free[3*p.body+2] {
		r[3*p.body+2] = 1
	}
	return r
}

// moves reports whether every joint removes a degree of freedom, and every body keeps at least one.
func (f *flat) moves(joints [][]float64) bool {
	v := f.left(joints)
	_, z := v.Dims()
	for b := range len(f.m) / 3 {
		part := v.(*mat.Dense).Slice(3*b, 3*b+3, 0, z)
		if has := slices.Contains(f.free[3*b:3*b+3], true); has && mat.Norm(part, 2) < 1e-6 {
			return false
		}
	}
	_, before := f.left(nil).Dims()
	return z == before-len(joints)
}

// left returns a basis of all motions that the degrees of freedom and joints allow, from a singular
// value decomposition.
func (f *flat) left(joints [][]float64) mat.Matrix {
	n := len(f.m)
	rows := mat.NewDense(n+len(joints), n, nil)
	for i, free := range f.free {
		if !free {
			rows.Set(i, i, 1)
		}
	}
	for i, r := range joints {
		rows.SetRow(n+i, r)
	}
	var svd mat.SVD
	svd.Factorize(rows, mat.SVDFullV)
	var v mat.Dense
	svd.VTo(&v)
	rank := 0
	for _, s := range svd.Values(nil) {
		if s > 1e-6 {
			rank++
		}
	}
	return v.Slice(0, n, rank, n)
}

// motion is q at time t from rest: by the exponential of the motion in such a basis.
func (f *flat) motion(t float64) []float64 {
	n := len(f.m)
	basis := f.left(f.joints)
	_, z := basis.Dims()
	onto := func(a mat.Matrix) *mat.Dense {
		var out mat.Dense
		out.Product(basis.T(), a, basis)
		return &out
	}
	mass := onto(mat.NewDiagDense(n, f.m))
	var load mat.Dense
	load.Mul(basis.T(), mat.NewDense(n, 1, slices.Clone(f.force)))
	big := mat.NewDense(2*z+1, 2*z+1, nil) // q, q', 1
	for _, part := range []struct {
		what mat.Matrix
		at   int
		sign float64
	}{{onto(f.s), 0, -1}, {onto(f.k), z, -1}, {&load, 2 * z, 1}} {
		var x mat.Dense
		if err := x.Solve(mass, part.what); err != nil {
			panic(err)
		}
		r, c := x.Dims()
		for i := range r {
			for j := range c {
				big.Set(z+i, part.at+j, part.sign*x.At(i, j)*t)
			}
		}
	}
	for i := range z {
		big.Set(i, z+i, t)
	}
	var whole, q mat.Dense
	whole.Exp(big)
	q.Mul(basis, whole.Slice(0, z, 2*z, 2*z+1))
	return mat.Col(nil, 0, &q)
}

func TestRandomVehiclesFollowTheirMatrices(t *testing.T) {
	rnd := rand.New(rand.NewPCG(17, 51))
	joints, fixed, farthest := 0, 0, 0.0
	for range 60 {
		f := randomFlat(rnd)
		joints += len(f.joints)
		text := "plant: t\nelements:\n" + f.text.String() + "outputs:\n"
		for i, free := range f.free {
			if name := [3]string{"x", "y", "phi"}[i%3]; free {
				text += fmt.Sprintf("  q%d: {%s: b%d.%s}\n", i, map[bool]string{true: "angle", false: "position"}[name == "phi"], i/3, name)
			} else {
				fixed++
			}
		}
		b := modeltest.New(t, text, 10*time.Millisecond)
		for _, at := range []float64{0.1, 1} {
			q := f.motion(at)
			b.To(at, nil)
			column := 0
			for i, free := range f.free {
				if !free {
					continue
				}
				if got, want := b.Y[column], f.places[i]+q[i]; !scalar.EqualWithinAbs(got, want, 1e-10*(1+math.Abs(q[i]))) {
					t.Fatalf("coordinate %d is at %.12g after %g s, want %.12g\n%s", i, got, at, want, text)
				}
				farthest = max(farthest, math.Abs(q[i]))
				column++
			}
		}
	}
	if joints < 10 || fixed < 50 || !(farthest > 0.1) {
		t.Errorf("%d joints, %d fixed coordinates, motion up to %g: too little is tried", joints, fixed, farthest)
	}
	t.Logf("60 vehicles, %d joints, %d fixed coordinates, motion up to %.2g", joints, fixed, farthest)
}
