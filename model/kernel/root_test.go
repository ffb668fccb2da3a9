package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

func TestFirstRootIsTheFirstChangeOfSign(t *testing.T) {
	k := prepare(t, powershift(), Options{Period: ms(5)})
	for name, c := range map[string]struct {
		p    []float64
		want float64 // 1.5: none
	}{
		"none":                     {[]float64{1, 0, 1}, 1.5},
		"negative from the start":  {[]float64{-1e-18, 1}, 0},
		"line":                     {[]float64{0.3, -1}, 0.3},
		"at the end":               {[]float64{1, -1}, 1},
		"leaves zero":              {[]float64{0, 1, -2}, 0.5},
		"first of three":           {[]float64{0.2 * 0.5 * 0.8, -(0.2*0.5 + 0.5*0.8 + 0.2*0.8), 1.5, -1}, 0.2},
		"dip between two samples":  {[]float64{0.71*0.71 - 1e-6, -1.42, 1}, 0.709},
		"dip in the first samples": {[]float64{0.03*0.03 - 1e-6, -0.06, 1}, 0.029},
		"falls, quartic":           {[]float64{0.5, -1, -0.1, 0.02, 0.05}, 0.481722588},
		"falls to zero":            {[]float64{0, -1, 0.1}, 0},
		"falls, no root":           {[]float64{1, -0.9, 0.05}, 1.5},
		"touches from above":       {[]float64{0.71*0.71 + 1e-12, -1.42, 1}, 1.5},
		"bends upwards from zero":  {[]float64{1e-9, 1e-10, 0.007, -1e-8, 1e-13}, 1.5},
		"bends upwards, returns":   {[]float64{1e-9, 1e-10, 0.5, -0.6}, 0.8333333358},
		"cubic, late":              {[]float64{1e-9, 1e-3, 0, -1.1e-3}, 0.953463},
	} {
		k.poly = append(c.p, make([]float64, 2+len(c.p)%2)...)
		got, ok := k.firstRoot(polynomial)
		if ok != (c.want <= 1) || ok && !scalar.EqualWithinAbs(got, c.want, 1e-6) {
			t.Errorf("%s: root at %.9g (%t), want %g", name, got, ok, c.want)
		}
		if ok && got > rootTol && !(k.curveAt(polynomial, got) <= 0 && k.curveAt(polynomial, got*(1-2*rootTol)) >= 0) {
			t.Errorf("%s: %g at the root, %g before it; want a change of sign",
				name, k.curveAt(polynomial, got), k.curveAt(polynomial, got*(1-2*rootTol)))
		}
	}
}

// A falling polynomial has one root: the exact value of the polynomial changes its sign there, to the rounding of
// its terms. Coefficients are of all sizes, some denormal; the slope may come close to zero at the end.
func TestFallingRootIsTheChangeOfSignOfTheExactPolynomial(t *testing.T) {
	k, r := rootFinder(), rand.New(rand.NewPCG(5, 6))
	exact := func(theta float64) (value, noise float64) {
		sum, power := new(big.Float).SetPrec(2000), new(big.Float).SetPrec(2000).SetFloat64(1)
		at := new(big.Float).SetFloat64(theta)
		for _, c := range k.poly {
			term := new(big.Float).SetPrec(2000).Mul(new(big.Float).SetFloat64(c), power)
			sum.Add(sum, term)
			size, _ := term.Float64()
			noise += math.Abs(size)
			power.Mul(power, at)
		}
		value, _ = sum.Float64()
		return value, noise*0x1p-49 + 0x1p-1060
	}
	found := 0
	for i := range 5_000 {
		n := 4 + 2*r.IntN(6)
		k.poly = make([]float64, n)
		others := 0.0
		for j := 2; j < n; j++ {
			k.poly[j] = r.NormFloat64() * math.Pow(10, -6*r.Float64())
			others += float64(j) * math.Abs(k.poly[j])
		}
		k.poly[1] = -others * (1 + math.Pow(10, 3-14*r.Float64()))
		k.poly[0] = -k.poly[1] * []float64{r.Float64(), math.Pow(10, -300*r.Float64()), 0.5 + r.Float64()/2}[i%3]
		scale := []float64{1, 1e-12, 1e140, 1e-310}[r.IntN(4)]
		for j := range k.poly {
			k.poly[j] *= scale
		}
		if !k.falls() || k.poly[0] == 0 {
			continue
		}
		theta, ok := k.firstRoot(polynomial)
		if !ok {
			if end, noise := exact(1); !(end >= -noise) {
				t.Fatalf("%g: no root, but %g at the end", k.poly, end)
			}
			continue
		}
		found++
		at, noise := exact(theta)
		before, _ := exact(theta * (1 - 2*rootTol))
		if !(theta >= 0 && theta <= 1 && at <= noise && before >= -noise) {
			t.Fatalf("%g: root at %.17g: %g there, %g before it, rounding %g", k.poly, theta, at, before, noise)
		}
	}
	if found < 1000 {
		t.Errorf("only %d polynomials have a root", found)
	}
}

// rootFinder returns a kernel without a plant, which finds roots of polynomials.
func rootFinder() *Kernel {
	k := &Kernel{t: new(Tables)}
	k.calls.refineRoot = (*Kernel).refineRoot
	return k
}

// A coefficient that is not a number gives no root; an infinite one gives a place in the substep.
func TestFirstRootBearsCoefficientsThatAreNotFinite(t *testing.T) {
	k := rootFinder()
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for i := range 6 {
			for _, poly := range [][]float64{{0.5, -1, 0.1, 0.01, 0, 0}, {0.5, 1, 0, 0, 0, 0}, {0.5, -1, 1, 0.1, 0, 0}} {
				k.poly = poly
				k.poly[i] = bad
				if theta, ok := k.firstRoot(polynomial); !(theta >= 0 && theta <= 1) || ok && math.IsNaN(bad) {
					t.Errorf("%g: root at %g (%t)", poly, theta, ok)
				}
			}
		}
	}
}

// TestEventCheckSuspectsEverySineThatDips draws sines of at most one radian over the substep that are
// positive at both ends. The check suspects each one that dips below zero in between.
func TestEventCheckSuspectsEverySineThatDips(t *testing.T) {
	r, dips := rand.New(rand.NewPCG(1, 2)), 0
	for range 2_000_000 {
		span, phase, offset := r.Float64(), 2*math.Pi*r.Float64(), 1-math.Pow(10, -6*r.Float64())
		at := func(theta float64) float64 { return offset + math.Cos(phase+span*theta) }
		least := (math.Pi - phase) / span // place of the only minimum, -1
		if !(least > 0 && least < 1 && at(0) > 0 && at(1) > 0 && at(least) < 0) {
			continue
		}
		dips++
		if !mayReachZero(at(0), at(1), -span*math.Sin(phase)) {
			t.Fatalf("%.17g + cos(%.17g + %.17g·theta) dips to %g unseen", offset, phase, span, at(least))
		}
	}
	if dips < 1000 {
		t.Errorf("only %d sines dip", dips)
	}
}

// TestEventCheckPassesStraightLines draws lines that end clear of zero, with values rounded as the
// kernel rounds them.
func TestEventCheckPassesStraightLines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		a := math.Pow(10, 8*r.Float64()-4)
		fall := -a * r.Float64() * 0.9
		if b := (a + fall) * (1 + 1e-16*r.Float64()); mayReachZero(a, b, fall*(1+1e-13*r.NormFloat64())) {
			t.Fatalf("the line from %g to %g is suspected", a, b)
		}
	}
}
