package integers

import (
	"math"
	"math/bits"
)

// Limits of the counters.
const (
	most    int8   = 127
	least          = -128
	far            = 1 << 40 // more than C's int
	mask           = 1<<3 - 1
	pattern uint64 = 0x9e3779b97f4a7c15
)

// steps is a table of whole numbers.
var steps = [8]int32{3, -1, 4, -1, 5, -9, 2, 6}

var wide = [4]uint64{0, 1, math.MaxUint64, 0x8000000000000000}

var signed = [3]int64{math.MinInt64, math.MaxInt64, -1}

// Kernel counts in all widths.
type Kernel struct {
	a       int   // wraps around
	b       int8  // likewise
	c       int16 `any:"tag"`
	d       int32
	e       int64
	p       uint64
	q       uint8
	r       uint32
	w       uint16
	driven_ [M]bool
	ring    [8]float64
	double  int // a keyword of C
	NAN     int // a macro
	tick    int64
}

//go:nosplit
func (k *Kernel) create() { k.reset() }

//go:nosplit
func (k *Kernel) reset() {
	k.a, k.b, k.c, k.d, k.e = math.MaxInt-5, most-2, 32760, math.MaxInt32-3, math.MinInt64+4
	k.p, k.q, k.r, k.w = pattern, 250, math.MaxUint32-2, 65530
	k.double, k.NAN, k.tick = 1, far, 0
	for i := range k.ring {
		k.ring[i] = 0
	}
	for i := range M {
		k.driven_[i] = false
	}
}

// bitsOf is the pattern of an input.
//
//go:nosplit
func bitsOf(x float64) int64 { return int64(math.Float64bits(x)) }

// step goes through operators, widths and shifts; nothing of it may overflow in C.
//
//go:nosplit
func (k *Kernel) step(y *[P]float64, u *[M]float64) {
	n, m := bitsOf(u[0]), bitsOf(u[1])
	s := uint64(m) % 70 // a shift, sometimes too far
	k.a++
	k.b += 3
	k.c *= 3
	k.d -= int32(n)
	k.e += n * m
	k.p = k.p*pattern + uint64(n)
	k.q++
	k.r *= 77
	k.w = k.w*k.w + 1
	k.double -= -k.double * 3
	k.NAN = k.NAN<<1 ^ int(n)
	k.tick++
	y[0] = float64(k.a) + float64(k.b) + float64(k.c) + float64(k.d)
	y[1] = float64(k.e % 1000003)
	y[2] = float64(k.p >> 11)
	y[3] = float64(k.q) + float64(k.r)*256 + float64(k.w)
	y[4] = float64(n<<s) + float64(n>>s)
	y[5] = float64(uint64(n)<<s | uint64(m)>>s)
	y[6] = float64(int8(n)) + float64(int16(n))*300 + float64(int32(n))
	y[7] = float64(uint8(n)) + float64(uint16(n))*300 + float64(uint32(n))
	y[8] = float64(k.b<<(s&7)) + float64(k.b>>(s&7)) + float64(int32(k.q)<<s)
	y[9] = k.divide(n, m)
	y[10] = float64(^n&m | n&^m ^ int64(k.b)&0x0f)
	y[11] = float64(-n) + float64(-k.b) + float64(^k.q)
	y[12] = k.rolled(int(n), y)
	y[13] = convert(u[2]) + convert(u[3])
	y[14] = long(uint64(n), uint64(m))
	y[15] = float64(k.NAN%7) + float64(k.double)
	y[16] = float64(min(n, m, 5)) + float64(max(k.b, -3, int8(n))) + float64(min(k.p, uint64(m)))
	y[17] = float64(one(int(s)))
	k.output(y)
}

//go:nosplit
func one(s int) int { return 1<<(s&31) + 1<<s }

// divide has divisors of all kinds; 0 is not among them, since Go would stop.
//
//go:nosplit
func (k *Kernel) divide(n, m int64) float64 {
	d := m | 1
	if k.tick%5 == 0 {
		d = -1
	}
	sum := float64(n/d) + float64(n%d)
	sum += float64(n/7) + float64(n%-7) + float64(uint64(n)/10) + float64(uint64(n)%uint64(d))
	b := k.b | 1
	return sum + float64(int8(n)/b) + float64(int8(n)%b) + float64(signed[0]/d)
}

// rolled sums over tables with indices that are masked.
//
//go:nosplit
func (k *Kernel) rolled(n int, y *[P]float64) float64 {
	k.ring[n&mask] = float64(n & mask)
	sum, index := 0.0, n
	for i := range 8 {
		sum += k.ring[(index+i)&7] * float64(steps[i])
		index += int(steps[i&3])
	}
	for i := 7; i >= 0; i-- {
		sum = sum*0.5 + float64(steps[i]*2+1)
	}
	for i, j := 0, 3; i < j; i, j = i+1, j-1 {
		sum += float64(wide[i] - wide[j])
	}
	y[18] = float64(index)
	return sum
}

// convert makes whole numbers of what may not fit.
//
//go:nosplit
func convert(x float64) float64 {
	sum := float64(int64(x)%1000) + float64(uint64(x)%1000) + float64(int32(x)%1000)
	return sum + float64(uint32(x)%1000) + float64(int8(x)) + float64(uint8(x)) + float64(int16(x)) + float64(uint16(x)) + float64(int(x)&255)
}

// long is arithmetic with more than 64 bits.
//
//go:nosplit
func long(a, b uint64) float64 {
	hi, lo := bits.Mul64(a, b)
	sum, carry := bits.Add64(lo, a, b&1)
	rest, borrow := bits.Sub64(hi, sum, carry)
	zeros := bits.LeadingZeros64(rest) + bits.TrailingZeros64(sum)*100
	_, low := bits.Mul64(rest, sum)
	return float64(low>>12) + float64(zeros) + float64(borrow) + float64(bits.OnesCount64(rest)) + float64(bits.Len64(lo>>7))
}

//go:nosplit
func (k *Kernel) output(y *[P]float64) {
	y[20] = float64(k.tick)
	y[P-1] = 0
}

//go:nosplit
func (k *Kernel) drive(i int, on bool) { k.driven_[i&3] = on }

//go:nosplit
func (k *Kernel) driven(i int) bool { return k.driven_[i&3] }

//go:nosplit
func (k *Kernel) own(i int) float64 { return float64(i) * 0.5 }
