package kernel

import (
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// BenchmarkStep measures the cost of a tick of the powershift at 5 ms: in a quiet mode (a gear
// locked, without events) and in the worst tick of a whole run. Each is the least of many runs,
// which excludes the machine's other load. The reference in the same run is the least work of any
// step, by gonum: x⁺ = Phi·x + Gamma·w, an n×n and an n×(m+mc) product.
func BenchmarkStep(b *testing.B) {
	for _, scheme := range bothSchemes {
		b.Run(string(scheme)+"/quiet", func(b *testing.B) {
			k := start(b, powershift(), Options{Period: ms(5), Scheme: scheme, Driven: allDriven})
			for _, c := range []int{0, 2, 5} {
				k.u[c] = psFull[c]
			}
			plain := matvec(k)
			for b.Loop() {
				k.step()
			}
			if k.transOut() != 0 { // the gear is locked from the start
				b.Fatalf("%g transitions: not quiet", k.transOut())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/plain, "x-matvec")
		})
		b.Run(string(scheme)+"/worst", func(b *testing.B) {
			k := start(b, powershift(), Options{Period: ms(5), Scheme: scheme})
			least := make([]time.Duration, 700)
			for i := range least {
				least[i] = time.Hour
			}
			plain := matvec(k)
			for b.Loop() {
				k.Reset()
				for i := range least {
					at := time.Now()
					k.step()
					least[i] = min(least[i], time.Since(at))
				}
			}
			worst := time.Duration(0)
			for _, d := range least {
				worst = max(worst, d)
			}
			b.ReportMetric(float64(worst.Nanoseconds()), "ns/tick")
			b.ReportMetric(float64(worst.Nanoseconds())/plain, "x-matvec")
		})
	}
}

// matvec returns the time of x⁺ = Phi·x + Gamma·w by gonum, ns.
func matvec(k *run) float64 {
	n, mw := k.t.N, k.t.M+k.t.Mc
	m := &k.t.Modes[len(k.t.Modes)-1]
	phi := blas64.General{Rows: n, Cols: n, Stride: n, Data: m.Phi}
	gamma := blas64.General{Rows: n, Cols: mw, Stride: mw, Data: m.G0}
	vec := func(n int) blas64.Vector { return blas64.Vector{N: n, Inc: 1, Data: make([]float64, n)} }
	x, w, y := vec(n), vec(mw), vec(n)
	const loops = 20000
	best := time.Hour
	for range 5 {
		at := time.Now()
		for range loops {
			blas64.Gemv(blas.NoTrans, 1, phi, x, 0, y)
			blas64.Gemv(blas.NoTrans, 1, gamma, w, 1, y)
		}
		best = min(best, time.Since(at))
	}
	return float64(best.Nanoseconds()) / loops
}
