package kernel

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// bigPrec is the precision of the references, bits: up to 1100 that a sine loses to its argument,
// and 200 more.
const bigPrec = 1300

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(bigPrec).SetFloat64(x) }

func bigNew() *big.Float { return new(big.Float).SetPrec(bigPrec) }

// bigPi is pi by Machin: 16·atan(1/5) - 4·atan(1/239).
var bigPi = func() *big.Float {
	inverse := func(d int64) *big.Float {
		term := bigNew().Quo(bigFloat(1), bigFloat(float64(d)))
		square, sum := bigFloat(float64(d*d)), bigNew().Set(term)
		for i := 3; term.MantExp(nil) > -bigPrec; i += 2 {
			term.Quo(term, square).Neg(term)
			sum.Add(sum, bigNew().Quo(term, bigFloat(float64(i))))
		}
		return sum
	}
	a := bigNew().Mul(bigFloat(16), inverse(5))
	return a.Sub(a, bigNew().Mul(bigFloat(4), inverse(239)))
}()

// bigSinCos returns sine and cosine of x by their series, after removing whole multiples of pi/2.
func bigSinCos(x *big.Float) (sin, cos *big.Float) {
	half := bigNew().Quo(bigPi, bigFloat(2))
	turns, _ := bigNew().Add(bigNew().Quo(x, half), bigFloat(math.Copysign(0.5, float64(x.Sign())))).Int(nil)
	r := bigNew().Sub(x, bigNew().Mul(half, bigNew().SetInt(turns)))
	r.SetPrec(256) // the precision that remains after the reduction
	sums := [2]*big.Float{new(big.Float).SetPrec(256), new(big.Float).SetPrec(256).SetInt64(1)}
	term := new(big.Float).SetPrec(256).SetInt64(1)
	for i := 1; i < 70 && term.Sign() != 0; i++ {
		term.Mul(term, r).Quo(term, new(big.Float).SetInt64(int64(i)))
		if i&2 == 0 {
			sums[1-i&1].Add(sums[1-i&1], term)
		} else {
			sums[1-i&1].Sub(sums[1-i&1], term)
		}
	}
	sin, cos = sums[0], sums[1]
	switch new(big.Int).And(turns, big.NewInt(3)).Int64() {
	case 1:
		return cos, sin.Neg(sin)
	case 2:
		return sin.Neg(sin), cos.Neg(cos)
	case 3:
		return cos.Neg(cos), sin
	}
	return sin, cos
}

func bigSin(x float64) *big.Float { s, _ := bigSinCos(bigFloat(x)); return s }

func bigCos(x float64) *big.Float { _, c := bigSinCos(bigFloat(x)); return c }

// bigExp is the series at x/2^10, squared ten times.
func bigExp(x float64) *big.Float {
	small := new(big.Float).SetPrec(256).SetFloat64(x)
	small.SetMantExp(small, -10)
	sum := new(big.Float).SetPrec(256).SetInt64(1)
	term := new(big.Float).SetPrec(256).SetInt64(1)
	for i := 1; i < 80; i++ {
		term.Mul(term, small).Quo(term, new(big.Float).SetInt64(int64(i)))
		sum.Add(sum, term)
	}
	for range 10 {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigAtan corrects the standard library's: x = tan(a + e), so that
// tan e = (x·cos a - sin a)/(cos a + x·sin a), and e is tiny.
func bigAtan(x float64) *big.Float {
	a := new(big.Float).SetPrec(256).SetFloat64(math.Atan(x))
	s, c := bigSinCos(a)
	v := new(big.Float).SetPrec(256).SetFloat64(x)
	up := new(big.Float).Sub(new(big.Float).Mul(v, c), s)
	down := new(big.Float).Add(c, new(big.Float).Mul(v, s))
	e := new(big.Float).Quo(up, down)
	cube := new(big.Float).Mul(e, new(big.Float).Mul(e, e))
	return a.Add(a, e.Sub(e, cube.Quo(cube, new(big.Float).SetInt64(3))))
}

// ulps is the distance of got from want in units in the last place of want.
func ulps(got float64, want *big.Float) float64 {
	near, _ := want.Float64()
	if math.IsInf(near, 0) || math.IsInf(got, 0) || math.IsNaN(got) {
		if got == near {
			return 0
		}
		return math.Inf(1)
	}
	unit := math.Nextafter(math.Abs(near), math.Inf(1)) - math.Abs(near)
	off := bigNew().Sub(bigFloat(got), want)
	f, _ := off.Quo(off, bigFloat(unit)).Float64()
	return math.Abs(f)
}

// hard are the arguments at which something changes: ends of intervals, the smallest and the
// largest numbers, and the places where sine and cosine are closest to zero (Muller, Elementary
// Functions, table 11.1: 6381956970095103·2^797 is the worst of all).
var hard = []float64{
	5e-324, 1e-310, 0x1p-1022, 1e-300, 1e-20, 1e-8, 1e-3, 0.3, 7. / 16, 11. / 16, math.Pi / 4, 19. / 16, math.Pi / 2, 2,
	39. / 16, 3 * math.Pi / 4, math.Pi, 2 * math.Pi, 4, 7, 11, 22, 355, 52174, 1 << 19, 1e6, 1e9, 1 << 29, 1 << 53, 1e15, 1e22,
	math.Ldexp(6381956970095103, 797), math.Ldexp(5.319372648326541, 255), 1e300, math.MaxFloat64,
	0.5 * math.Ln2, 1.5 * math.Ln2, 700, 709.7827128933839, 709.782712893384, 708.39641853226, 744.4400719213812, 745.1332191019411, 745.2, 746,
}

// worst returns the largest error over hard arguments and random ones: uniform up to the size given
// and up to the change of the reduction, over all exponents, and next to multiples of pi/2. It
// fails above two ulp.
func worst(t *testing.T, f func(float64) float64, want func(float64) *big.Float, size float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	most, at := 0.0, 0.0
	check := func(x float64) {
		for _, x := range [2]float64{x, -x} {
			if e := ulps(f(x), want(x)); !(e <= most) && !math.IsNaN(most) {
				most, at = e, x
			}
		}
	}
	for _, x := range hard {
		for _, x := range [3]float64{math.Nextafter(x, 0), x, math.Nextafter(x, 1e308)} {
			check(x)
		}
	}
	for range 1500 {
		check(size * r.Float64())
		check(0x1p21 * r.Float64())
		if x := math.Float64frombits(r.Uint64() >> 1); x <= math.MaxFloat64 {
			check(x)
		}
		near := float64(1+r.Uint64N(1<<r.IntN(50))) * math.Pi / 2
		check(near * (1 + float64(r.IntN(9)-4)*0x1p-52))
	}
	t.Logf("largest error %.3f ulp, at %v (%x)", most, at, at)
	if !(most <= 2) {
		t.Errorf("%.3f ulp at %v (%x): %v", most, at, at, f(at))
	}
}

func TestElementaryFunctionsAreAccurateToTwoUlp(t *testing.T) {
	t.Run("sin", func(t *testing.T) { worst(t, sin, bigSin, 20) })
	t.Run("cos", func(t *testing.T) { worst(t, cos, bigCos, 20) })
	t.Run("exp", func(t *testing.T) { worst(t, exp, clampExp, 745) })
	t.Run("atan", func(t *testing.T) { worst(t, atan, bigAtan, 10) })
}

// clampExp is bigExp within the range of float64, +Inf or 0 far beyond.
func clampExp(x float64) *big.Float {
	switch {
	case x > 800:
		return new(big.Float).SetInf(false)
	case x < -800:
		return new(big.Float)
	}
	return bigExp(x)
}

// same compares bits: a NaN equals a NaN, -0 differs from 0.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

func TestElementaryFunctionsTreatSpecialValuesAsPackageMath(t *testing.T) {
	pairs := map[string][2]func(float64) float64{
		"sin": {sin, math.Sin}, "cos": {cos, math.Cos}, "exp": {exp, math.Exp}, "atan": {atan, math.Atan}, "floor": {floor, math.Floor},
	}
	for name, f := range pairs {
		for _, x := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()} {
			if got, want := f[0](x), f[1](x); !same(got, want) {
				t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
			}
		}
	}
}

// The sum of the bits is the same wherever the test runs: with GOAMD64=v3 and on
// arm64 the compiler fuses products and additions unless it is told not to.
func TestElementaryFunctionsGiveTheSameBitsOnEveryProcessor(t *testing.T) {
	sum := fnv.New64a()
	for i := range 20000 {
		x := float64(i-10000) / 2500
		for _, f := range [4]func(float64) float64{sin, cos, exp, atan} {
			fmt.Fprintf(sum, "%x ", math.Float64bits(f(x)))
		}
	}
	if got := sum.Sum64(); got != 0x688c7f674feed9f0 {
		t.Errorf("checksum %#x", got)
	}
}

func TestFloorIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 200000 {
		x := math.Float64frombits(r.Uint64())
		if i%2 == 0 {
			x = math.Ldexp(2*r.Float64()-1, r.IntN(60))
		}
		for _, x := range [3]float64{x, math.Trunc(x), math.Nextafter(math.Trunc(x), math.Inf(-1))} {
			if got, want := floor(x), math.Floor(x); !same(got, want) {
				t.Fatalf("floor(%v) = %v, want %v", x, got, want)
			}
		}
	}
}

// BenchmarkElementary compares the tick's functions with those of package math in the same run.
func BenchmarkElementary(b *testing.B) {
	for _, c := range []struct {
		name      string
		own, std  func(float64) float64
		low, high float64
	}{
		{"sin", sin, math.Sin, 0, 100}, {"cos", cos, math.Cos, 0, 100}, {"exp", exp, math.Exp, -20, 20}, {"atan", atan, math.Atan, -5, 5},
	} {
		b.Run(c.name, func(b *testing.B) {
			loop := func(f func(float64) float64) (s float64) {
				for i := range 1000 {
					s += f(c.low + (c.high-c.low)*float64(i)/1000)
				}
				return s
			}
			plain := time.Hour
			for range 200 {
				at := time.Now()
				loop(c.std)
				plain = min(plain, time.Since(at))
			}
			for b.Loop() {
				loop(c.own)
			}
			own := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(own/1000, "ns/value")
			b.ReportMetric(own/float64(plain.Nanoseconds()), "x-math")
		})
	}
}
