package integers

import (
	"math"
	"math/bits"
)

// Limits of the counters.
const (
	far            = 1 << 40 // more than C's int
	mask           = 1<<3 - 1
	pattern uint64 = 0x9e3779b97f4a7c15
)

// steps is a table of integers.
var steps = [8]int32{3, -1, 4, -1, 5, -9, 2, 6}

var wide = [4]uint64{0, 1, 1<<64 - 1, 0x8000000000000000}

var signed = [3]int64{-1 << 63, math.MaxInt, -1}

// Kernel counts in 64 bits and holds values of other widths.
type Kernel struct {
	a       int  // wraps around
	b       int8 `any:"tag"`
	e       int64
	p       uint64
	q       uint8
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
	k.a = math.MaxInt - 5
	k.b = 125
	k.e = -1<<63 + 4
	k.p = pattern
	k.q = 250
	k.double = 1
	k.NAN = far
	k.tick = 0
	for i := range 8 {
		k.ring[i] = 0
	}
	for i := range M {
		k.driven_[i] = false
	}
}

// bitsOf returns the bits of an input.
//
//go:nosplit
func bitsOf(x float64) int64 { return int64(math.Float64bits(x)) }

// step uses all operators, widths and shifts; none may overflow in C.
//
//go:nosplit
func (k *Kernel) step(y *[P]float64, u *[M]float64) {
	n := bitsOf(u[0])
	m := bitsOf(u[1])
	s := uint64(m) % 70 // count of a shift, sometimes above 63
	k.a += 1
	k.b = int8(int64(k.b) + 3)
	k.e += n * m
	k.p = k.p*pattern + uint64(n)
	k.q = uint8(uint64(k.q) + 1)
	k.double -= -k.double * 3
	k.NAN = k.NAN<<1 ^ int(n)
	k.tick += 1
	y[0] = float64(k.a) + float64(k.b)
	y[1] = float64(k.e % 1000003)
	y[2] = float64(k.p >> 11)
	y[3] = float64(k.q)
	y[4] = float64(n<<s) + float64(n>>s)
	y[5] = float64(uint64(n)<<s | uint64(m)>>s)
	y[6] = float64(int8(n))
	y[7] = float64(uint8(n))
	y[8] = float64(int(k.b)<<(s&7)) + float64(int(k.b)>>(s&7)) + float64(int(k.q)<<s)
	y[9] = k.divide(n, m)
	y[10] = float64(n&m | n&^m ^ int64(k.b)&0x0f)
	y[11] = float64(-n) + float64(-k.b)
	y[12] = k.rolled(int(n), y)
	y[13] = convert(u[2]) + convert(u[3])
	y[14] = long(uint64(n), uint64(m))
	y[15] = float64(k.NAN%7) + float64(k.double)
	y[16] = float64(min(n, m, 5)) + float64(max(int(k.b), -3, int(n)))
	y[17] = float64(one(int(s)))
	k.output(y)
}

//go:nosplit
func one(s int) int { return 1<<(s&31) + 1<<s }

// divide has constant, signed and variable divisors except 0, at which Go panics.
//
//go:nosplit
func (k *Kernel) divide(n, m int64) float64 {
	d := m | 1
	if k.tick%5 == 0 {
		d = -1
	}
	sum := float64(n/d) + float64(n%d)
	sum += float64(n/7) + float64(n%-7) + float64(uint64(n)/10)
	b := int64(k.b) | 1
	return sum + float64(int64(int8(n))/b) + float64(int64(int8(n))%b) + float64(signed[0]/d)
}

// rolled sums over tables with indices that are masked.
//
//go:nosplit
func (k *Kernel) rolled(n int, y *[P]float64) float64 {
	k.ring[n&mask] = float64(n & mask)
	sum := 0.0
	index := n
	for i := range 8 {
		sum += k.ring[(index+i)&7] * float64(steps[i])
		index += int(steps[i&3])
	}
	i := 7
	for ; i >= 0; i -= 1 {
		sum = sum*0.5 + float64(int(steps[i])*2+1)
	}
	j := 0
	for ; j < 3-j; j += 1 {
		sum += float64(wide[j] - wide[3-j])
	}
	y[18] = float64(index)
	return sum
}

// convert converts numbers to integers that may be too small for them.
//
//go:nosplit
func convert(x float64) float64 {
	return float64(int64(x)%1000) + float64(int(x)&255) + float64(int8(int64(x))) + float64(uint8(int64(x)))
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
	return float64(low>>12) + float64(zeros) + float64(borrow) + float64(bits.OnesCount64(rest))
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
