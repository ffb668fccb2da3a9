package kernel

import (
	"math"
	"math/bits"
)

// The tick has its own elementary functions: those of package math may grow the stack,
// and on some processors they are assembly that gives other bits.
//
// sin, cos, exp and atan are good to one ulp over all float64 (the test allows
// two). This holds for sin and cos of large arguments and close to their zeros: the
// reduction takes as many bits of 4/pi as the argument needs. The remaining error is the
// rounding of the argument itself, 1e-7 rad at 1e9 rad. Special values are
// those of package math. No product is fused with an addition, so every processor
// and every GOAMD64 level gives the same bits.
//
// The polynomials are those of FreeBSD's msun (Sun Microsystems, 1993): k_sin.c,
// k_cos.c, e_exp.c, s_atan.c.

// axb returns a·x + b, rounded twice: the conversion prevents a fused operation.
//
//go:nosplit
func axb(a, x, b float64) float64 { return float64(a*x) + b }

// sin returns the sine of x, rad.
//
//go:nosplit
func sin(x float64) float64 {
	if math.Abs(x) <= math.Pi/4 {
		return nearSin(x, 0)
	}
	q, hi, lo := quadrant(x)
	return turned(q, hi, lo)
}

// cos returns the cosine of x, rad.
//
//go:nosplit
func cos(x float64) float64 {
	if math.Abs(x) <= math.Pi/4 {
		return nearCos(x, 0)
	}
	q, hi, lo := quadrant(x)
	return turned(q+1, hi, lo)
}

// turned returns the sine of q·pi/2 + hi + lo, with hi and lo as returned by quadrant.
//
//go:nosplit
func turned(q int, hi, lo float64) float64 {
	s := 0.0
	if q&1 == 0 {
		s = nearSin(hi, lo)
	} else {
		s = nearCos(hi, lo)
	}

	if q&2 != 0 {
		return -s
	}
	return s
}

// nearSin returns the sine of hi + lo, |hi| <= pi/4, lo below an ulp of hi.
//
//go:nosplit
func nearSin(hi, lo float64) float64 {
	z := float64(hi * hi)
	w, v := float64(z*z), float64(z*hi)
	r := axb(axb(2.75573137070700676789e-06, z, -1.98412698298579493134e-04), z, 8.33333333332248946124e-03)
	r += float64(z * w * axb(1.58969099521155010221e-10, z, -2.50507602534068634195e-08))
	t := float64(0.5*lo) - float64(v*r)
	return hi - (axb(z, t, -lo) + float64(v*1.66666666666666324348e-01))
}

// nearCos returns the cosine of hi + lo, |hi| <= pi/4, lo below an ulp of hi.
//
//go:nosplit
func nearCos(hi, lo float64) float64 {
	z := float64(hi * hi)
	w := float64(z * z)
	r := axb(axb(2.48015872894767294178e-05, z, -1.38888888888741095749e-03), z, 4.16666666666666019037e-02)
	t := axb(axb(-1.13596475577881948265e-11, z, 2.08757232129817482790e-09), z, -2.75573143513906633035e-07)
	r = float64(z*r) + float64(w*w*t)
	half := float64(0.5 * z)
	one := 1 - half
	return one + (((1 - one) - half) + (float64(z*r) - float64(hi*lo)))
}

// fourOverPi holds the binary digits of 4/pi, whole part first; no float64 needs further digits.
// The length avoids the index checks in quadrantFar.
var fourOverPi = [31 + 4]uint64{
	0x0000000000000001, 0x45f306dc9c882a53, 0xf84eafa3ea69bb81, 0xb6c52b3278872083,
	0xfca2c757bd778ac3, 0x6e48dc74849ba5c0, 0x0c925dd413a32439, 0xfc3bd63962534e7d,
	0xd1046bea5d768909, 0xd338e04d68befc82, 0x7323ac7306a673e9, 0x3908bf177bf25076,
	0x3ff12fffbc0b301f, 0xde5e2316b414da3e, 0xda6cfd9e4f96136e, 0x9e8c7ecd3cbfd45a,
	0xea4f758fd7cbe2f6, 0x7a0e73ef14a525d4, 0xd7f6bf623f1aba10, 0xac06608df8f6d757,
}

// quadrant reduces x, |x| > pi/4: x = q·pi/2 + hi + lo with |hi + lo| <= pi/4, to 2^-58 of hi + lo.
// The result is NaN where x is not finite.
//
//go:nosplit
func quadrant(x float64) (q int, hi, lo float64) {
	if math.Abs(x) < 1<<20 { // pi/2 in two parts: n times the first, of 33 bits, is exact
		n := axb(x, 2/math.Pi, 0x1.8p52) - 0x1.8p52
		r, w := x-float64(n*1.57079632673412561417e+00), float64(n*6.07710050650619224932e-11)
		if hi = r - w; math.Abs(hi) > 0x1p-8 { // below this too many digits cancel
			return int(n), hi, (r - hi) - w
		}
	}

	return quadrantFar(x)
}

// quadrantFar is quadrant for every x, to 2^-62 of hi + lo (Payne and Hanek, SIGNUM Newsletter 18,
// 1983). It ends the longest call chain of a step. It shares no memory, and the race detector's
// calls would not fit the stack.
//
//go:nosplit
//go:norace
func quadrantFar(x float64) (q int, hi, lo float64) {
	b := math.Float64bits(x)
	e := int(b>>52&0x7ff) - 1023 - 52 // |x| = m·2^e
	if e > 1023-52 {
		return 0, math.NaN(), 0
	}
	m := b&(1<<52-1) | 1<<52
	d, s := uint(e+61)/64&31, uint(e+61)%64
	z0 := fourOverPi[d]<<s | fourOverPi[d+1]>>(64-s)
	z1 := fourOverPi[d+1]<<s | fourOverPi[d+2]>>(64-s)
	z2 := fourOverPi[d+2]<<s | fourOverPi[d+3]>>(64-s)
	// x·4/pi modulo 8 in fixed point: three bits of octants, 125 of their fraction.
	up, low := bits.Mul64(z1, m)
	carry, _ := bits.Mul64(z2, m)
	low, carry = bits.Add64(low, carry, 0)
	up += z0*m + carry
	octant := up >> 61
	up, low = up<<3|low>>61, low<<3
	sign := b >> 63
	if octant&1 == 1 { // reduce from the next even octant, backwards
		octant++
		sign ^= 1
		low, carry = bits.Sub64(0, low, 0)
		up, _ = bits.Sub64(0, up, carry)
	}

	zeros := bits.LeadingZeros64(up)
	up = up<<zeros | low>>(64-zeros)
	up, _ = bits.Mul64(up, 0xc90fdaa22168c234) // pi/4
	unit := math.Float64frombits(uint64(1023-64-zeros)<<52 | sign<<63)
	q = int(octant >> 1)
	if b>>63 == 1 {
		q = -q
	}
	return q, float64(float64(int64(up&^0x7ff>>1)) * (2 * unit)), float64(float64(int64(up&0x7ff)) * unit)
}

// exp returns e to the power of x.
//
//go:nosplit
func exp(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x > 709.782712893383973096:
		return math.Inf(1)
	case x < -745.133219101941108420:
		return 0
	}

	near := axb(math.Log2E, x, 0.5)
	k := int(near) // towards 0
	whole := float64(k)
	if whole > near {
		k, whole = k-1, whole-1
	}
	hi := x - float64(whole*6.93147180369123816490e-01) // exact: the constant has 32 bits
	lo := float64(whole * 1.90821492927058770002e-10)
	r := hi - lo
	z := float64(r * r)
	c := axb(axb(4.13813679705723846039e-08, z, -1.65339022054652515390e-06), z, 6.61375632143793436117e-05)
	c = r - float64(z*axb(axb(c, z, -2.77777777770155933842e-03), z, 1.66666666666666019037e-01))
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	return float64(y * power2(k>>1) * power2(k-k>>1)) // rounded only once where the result is below 2^-1022
}

// power2 returns 2^k, -1022 <= k <= 1023.
//
//go:nosplit
func power2(k int) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

// atan returns the arc tangent of x, rad.
//
//go:nosplit
func atan(x float64) float64 {
	a := math.Abs(x)
	hi, lo := 0.0, 0.0 // atan(a) = hi + lo + atan(r)
	r := a
	switch {
	case a < 7./16:
	case a < 11./16:
		hi, lo, r = 4.63647609000806093515e-01, 2.26987774529616870924e-17, (float64(2*a)-1)/(2+a)
	case a < 19./16:
		hi, lo, r = 7.85398163397448278999e-01, 3.06161699786838301793e-17, (a-1)/(a+1)
	case a < 39./16:
		hi, lo, r = 9.82793723247329054082e-01, 1.39033110312309984516e-17, (a-1.5)/axb(1.5, a, 1)
	default:
		hi, lo, r = 1.57079632679489655800e+00, 6.12323399573676603587e-17, -1/a
	}

	z := float64(r * r)
	w := float64(z * z)
	s := axb(axb(axb(1.62858201153657823623e-02, w, 4.97687799461593236017e-02), w, 6.66107313738753120669e-02), w, 9.09088713343650656196e-02)
	s = axb(axb(s, w, 1.42857142725034663711e-01), w, 3.33333333333329318027e-01)
	t := axb(axb(axb(-3.65315727442169155270e-02, w, -5.83357013379057348645e-02), w, -7.69187620504482999495e-02), w, -1.11111104054623557880e-01)
	t = axb(t, w, -1.99999999998764832476e-01)
	s = float64(z*s) + float64(w*t)
	return math.Copysign(hi-((float64(r*s)-lo)-r), x)
}

// floor returns the largest whole number that is not above x. Package math's floor may grow the
// stack on a processor without SSE 4.1.
//
//go:nosplit
func floor(x float64) float64 {
	if !(math.Abs(x) < 1<<52) { // whole already, or NaN
		return x
	}
	whole := float64(int64(x))
	if whole > x {
		whole--
	}
	return math.Copysign(whole, x) // -0 stays
}
