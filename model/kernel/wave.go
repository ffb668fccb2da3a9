package kernel

import (
	"math"

	"lockstep/model"
)

// A wave is a source that is curved between its breakpoints: a sine, or a product of sources. Over
// a substep it is its Taylor polynomial to the degree of the state. Its first three coefficients
// are in w0 to w2, so that only the higher ones need the functions of this file.

// waves holds the polynomials of the waves over the current substep.
type waves struct {
	wave       []float64 // waves×(degree+1), coefficients in theta
	waveDegree int       // largest degree with a coefficient that is not 0
	waveGain   []float64 // mc, gain of a capacity that follows a wave; 0 while the wave is below its offset
	termOf     []float64 // m+mc, coefficient of w in waveTerms
	product    []float64 // degree+1, product of the factors so far
	factorPoly []float64 // degree+1, the next factor
}

// newWaves returns the working memory for the waves of t.
func newWaves(t *Tables) waves {
	width := t.Degree + 1
	return waves{
		wave: make([]float64, len(t.Waves)*width), waveGain: make([]float64, t.Mc), termOf: make([]float64, t.M+t.Mc),
		product: make([]float64, width), factorPoly: make([]float64, width),
	}
}

// bindWaves lists the waves and the friction elements whose capacity follows one.
func (t *Tables) bindWaves() {
	for j := range t.Signals[:t.FirstAffine] {
		if s := &t.Signals[j]; s.Input < 0 && !isStraight(&s.Source) {
			s.Wave = len(t.Waves)
			t.Waves = append(t.Waves, j)
			t.WaveRate = max(t.WaveRate, waveRate(&s.Source))
		}
	}

	for i, f := range t.Friction {
		if t.Signals[f.Signal].Wave >= 0 {
			t.WavePressed = append(t.WavePressed, i)
		}
	}
}

// waveRate returns the frequency of a source, rad/s: the largest sum of the frequencies in one of
// its products.
func waveRate(s *model.Source) float64 {
	if s.Amplitude != 0 {
		return sourceRate(s)
	}
	fastest := 0.0
	for _, factors := range s.Sum {
		rate := 0.0
		for i := range factors {
			rate += waveRate(&factors[i])
		}
		fastest = max(fastest, rate)
	}

	return fastest
}

// sourceRate returns the rate of the sine of a source, rad/s: with damping the absolute value of -Damping + 2π·Frequency·i.
//
//go:nosplit
func sourceRate(s *model.Source) float64 {
	rate := math.Abs(float64(2 * math.Pi * s.Frequency))
	if s.Damping == 0 {
		return rate
	}
	return math.Sqrt(float64(rate*rate) + float64(s.Damping*s.Damping))
}

// fastestWave returns the name of the signal with the fastest wave.
func (t *Tables) fastestWave(sys *model.System) string {
	for _, j := range t.Waves {
		if waveRate(&t.Signals[j].Source) == t.WaveRate {
			return sys.Signals[j].Name
		}
	}

	return ""
}

// isStraight reports whether s is a straight line between its breakpoints.
//
//go:nosplit
func isStraight(s *model.Source) bool {
	for _, factors := range s.Sum {
		if len(factors) > 1 || factors[0].Amplitude != 0 {
			return false
		}
	}
	return s.Amplitude == 0
}

// waveRow returns the coefficients of wave q.
//
//go:nosplit
func (k *Kernel) waveRow(q int) []float64 {
	width := k.t.Degree + 1
	return k.wave[q*width : (q+1)*width]
}

// waveTerm returns coefficient j of wave q.
//
//go:nosplit
func (k *Kernel) waveTerm(q, j int) float64 { return k.wave[q*(k.t.Degree+1)+j] }

// setWave sets the polynomial of wave q over the substep that starts at time t, on the smooth part
// that holds at time mid.
//
//go:nosplit
func (k *Kernel) setWave(q int, t, mid float64) {
	s, row := &k.t.Signals[k.t.Waves[q]].Source, k.waveRow(q)
	clear(row)
	if len(s.Sum) == 0 {
		k.waveDegree = max(k.waveDegree, k.leafPoly(row, s, t, mid))
		return
	}

	for _, factors := range s.Sum {
		degree := k.leafPoly(k.product, &factors[0], t, mid)
		for i := 1; i < len(factors); i++ {
			degree = k.multiply(degree, k.leafPoly(k.factorPoly, &factors[i], t, mid))
		}
		for j := 0; j <= degree; j++ {
			row[j] += k.product[j]
		}
		k.waveDegree = max(k.waveDegree, degree)
	}
}

// multiply multiplies product by factorPoly and returns the degree. Terms above the degree of the
// state are below rounding.
//
//go:nosplit
func (k *Kernel) multiply(degree, factor int) int {
	top := min(degree+factor, k.t.Degree)
	for j := top; j >= 0; j-- {
		sum := 0.0
		for i := max(0, j-factor); i <= min(j, degree); i++ {
			sum += float64(k.product[i] * k.factorPoly[j-i])
		}
		k.product[j] = sum
	}

	return top
}

// waveRemainder is the part of a sine's amplitude below which its polynomial ends.
const waveRemainder = 1e-18

// leafPoly sets dst to the polynomial of a source without products over the substep, and returns
// its degree.
//
//go:nosplit
func (k *Kernel) leafPoly(dst []float64, s *model.Source, t, mid float64) int {
	dst[0] = tableAt(s, t, mid)
	dst[1] = tableAt(s, t+k.length, mid) - dst[0]
	if s.Amplitude == 0 || mid < s.Start {
		return 1
	}

	rate := float64(2 * math.Pi * s.Frequency)
	phase, amplitude := float64(rate*(t-s.Start))+s.Phase, amplitudeAt(s, t)
	value, slope := float64(amplitude*sin(phase)), float64(amplitude*cos(phase))
	dst[0] += value
	// Derivative j of the wave is swift^j·value: value and slope turn by a quarter, or with damping by more.
	swift, turn, damp := rate, 1.0, 0.0
	if s.Damping != 0 {
		swift = sourceRate(s)
		turn, damp = rate/swift, s.Damping/swift
	}
	part, degree := 1.0, 1
	for j := 1; j < len(dst); j++ {
		part = float64(part * (swift * k.length / float64(j)))
		if j > 1 && math.Abs(part) < waveRemainder {
			break
		}
		if j > 1 {
			dst[j] = 0
		}
		value, slope = float64(turn*slope)-float64(damp*value), float64(-turn*value)-float64(damp*slope)
		dst[j] += float64(part * value)
		degree = j
	}

	return degree
}

// waveAbove returns the part of wave q at theta that is of degree 3 and more.
//
//go:nosplit
func (k *Kernel) waveAbove(q int, theta float64) float64 {
	sum, row := 0.0, k.waveRow(q)
	for j := k.waveDegree; j > 2; j-- {
		sum = float64(sum*theta) + row[j]
	}
	return float64(sum * theta * theta * theta)
}

// waveTerms returns coefficient j of w, from 3 to waveDegree.
//
//go:nosplit
func (k *Kernel) waveTerms(j int) []float64 {
	for q, s := range k.t.Waves {
		k.termOf[s] = k.waveTerm(q, j)
	}
	for _, i := range k.t.WavePressed {
		k.termOf[k.t.M+i] = float64(k.torqueShare(i) * k.capacityTerm(i, j))
	}
	return k.termOf
}

// capacityTerm returns coefficient j of the kinetic capacity of element i, N·m; j from 3 on.
//
//go:nosplit
func (k *Kernel) capacityTerm(i, j int) float64 {
	q := k.t.Signals[k.t.Friction[i].Signal].Wave
	if q < 0 || j > k.waveDegree {
		return 0
	}
	return float64(k.waveGain[i] * k.waveTerm(q, j))
}

// addWaves adds the waves to w and capNow at theta, which hold their terms up to degree 2.
//
//go:nosplit
func (k *Kernel) addWaves(theta float64) {
	if k.waveDegree <= 2 {
		return
	}
	for q, s := range k.t.Waves {
		k.w[s] += k.waveAbove(q, theta)
	}
	for _, i := range k.t.WavePressed {
		above := float64(k.waveGain[i] * k.waveAbove(k.t.Signals[k.t.Friction[i].Signal].Wave, theta))
		k.capNow[i] = max(0, k.capC[3*i]+float64(theta*(k.capC[3*i+1]+float64(theta*k.capC[3*i+2])))+above)
		k.w[k.t.M+i] += float64(k.torqueShare(i) * above)
	}
}

// expandWaveCapacity sets the capacity of element i over the substep, which follows wave q: the
// wave crosses its offset at its ends only.
//
//go:nosplit
func (k *Kernel) expandWaveCapacity(i, q int) {
	f := &k.t.Friction[i]
	j := f.Signal
	k.waveGain[i], k.capC[3*i], k.capC[3*i+1], k.capC[3*i+2] = 0, 0, 0, 0
	if k.w0[j]+float64(k.w1[j]/2)+float64(k.w2[j]/4)+k.waveAbove(q, 0.5) > f.Offset {
		k.waveGain[i] = f.Gain
		k.capC[3*i] = float64(f.Gain * (k.w0[j] - f.Offset))
		k.capC[3*i+1], k.capC[3*i+2] = float64(f.Gain*k.w1[j]), float64(f.Gain*k.w2[j])
	}
}

// torqueShare returns the torque of element i outside kappa as part of its capacity: the same over
// a whole substep.
//
//go:nosplit
func (k *Kernel) torqueShare(i int) float64 {
	switch {
	case !k.isIdle(i):
		return k.direction(i)
	case k.idleShare[i] < 0 && k.t.Friction[i].OneWay:
		return 0 // a torque that is constant
	}

	return k.idleShare[i]
}

// zeroNoise is the rounding of a wave's value, as part of its terms.
const zeroNoise = 1e-14

// firstZero returns the first place within the substep at which a wave crosses the offset of a
// capacity that follows it; 1 for none.
//
//go:nosplit
func (k *Kernel) firstZero() float64 {
	first := 1.0
	for _, i := range k.t.WavePressed {
		if !k.reservePoly(i) {
			continue
		}
		if at, ok := k.calls.firstRoot(k, polynomial); ok {
			first = min(first, at)
		}
	}

	return first
}

// reservePoly sets poly to the distance of the wave of element i from the offset of its capacity,
// positive from the start of the substep on. A distance that the wave covers within timeTol is
// zero. It reports false where the distance is zero throughout.
//
//go:nosplit
func (k *Kernel) reservePoly(i int) bool {
	f := &k.t.Friction[i]
	row, size, soon := k.waveRow(k.t.Signals[f.Signal].Wave), math.Abs(f.Offset), k.timeTol/k.length
	clear(k.poly)
	copy(k.poly, row)
	for _, c := range row {
		size += math.Abs(c)
	}
	k.poly[0] -= f.Offset
	for j, c := range row[:len(row)-1] {
		if math.Abs(k.poly[j]) <= float64(zeroNoise*size)+float64(float64(j+1)*math.Abs(row[j+1])*soon) {
			k.poly[j] = 0
			continue
		}
		if j == 0 {
			c = k.poly[0]
		}
		if c < 0 {
			scaleIn(k.poly, -1)
		}
		return true
	}

	return false
}

// endsAtZero reports whether a wave is at the offset of a capacity that follows it at the end of
// the substep.
//
//go:nosplit
func (k *Kernel) endsAtZero() bool {
	for _, i := range k.t.WavePressed {
		f := &k.t.Friction[i]
		if k.input[f.Signal] >= 0 {
			continue
		}
		distance, slope, size := -f.Offset, 0.0, math.Abs(f.Offset)
		for j, c := range k.waveRow(k.t.Signals[f.Signal].Wave) {
			distance, slope, size = distance+c, slope+float64(float64(j)*c), size+math.Abs(c)
		}
		if math.Abs(distance) <= float64(zeroNoise*size)+math.Abs(slope)*k.timeTol/k.length {
			return true
		}
	}

	return false
}
