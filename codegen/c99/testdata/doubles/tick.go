package doubles

import "math"

// Constants that C must read back with the same bits.
const (
	tiny          = 0x1p-1074
	huge          = math.MaxFloat64
	third         = 1.0 / 3
	exact float64 = 0x1.8p52
	zero0         = 0
)

// numbers is a table of values whose decimal form needs many digits.
var numbers = [9]float64{0, 1, third, tiny, -huge, 0.1, 1e23, 2.2250738585072014e-308, 6.02214076e23}

// limits has values for which Go has no constants.
var limits = [4]float64{math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}

var scale = 2.5e-3 // of the inputs

// Kernel keeps a sum.
type Kernel struct {
	sum, last float64
	on        [M]bool
	tick      int64
}

//go:nosplit
func (k *Kernel) create() {
	k.last = 1
	k.reset()
}

//go:nosplit
func (k *Kernel) reset() {
	k.sum = 0
	k.tick = 0
	for i := range M {
		k.on[i] = false
	}
}

//go:nosplit
func (k *Kernel) step(y *[P]float64, u *[M]float64) {
	a := u[0]
	b := u[1]
	c := u[2]
	y[4] = math.Abs(a) + math.Copysign(1, b)
	y[6] = math.Sqrt(math.Abs(a))
	y[7] = a*b + c
	y[8] = float64(a*b) + c - a*(b*c)/(c+(a-b))
	y[9] = -a - -b + c
	y[10] = -(a * b)
	y[11] = math.Float64frombits(math.Float64bits(a) ^ 1<<63)
	y[12] = flags(a, b)
	y[15] = negative(c)
	s := 0.0
	for i := range 9 {
		s += numbers[i] * float64(i+1) * 1e-300
	}
	y[16] = s + limits[3]
	if k.tick&1 == 1 {
		y[16] = limits[k.tick>>1&3]
		if k.tick>>1&3 == 2 {
			y[16] = math.NaN()
		}
	}
	y[17] = a + (b + c)
	y[18] = a - (b - c) - (a - b)
	y[19] = a / b / c * (a / (b / c))
	k.sum += float64(scale*a) * 1e-9
	if !(math.Abs(k.sum) <= math.MaxFloat64) {
		k.sum = 0
	}
	k.tick += 1
	k.output(y)
}

// negative keeps -0.
//
//go:nosplit
func negative(x float64) float64 {
	zero := 0.0
	zero = -zero
	zero += math.Float64frombits(1 << 63)
	if x > 0 {
		return zero * x
	}
	return zero + 0*x
}

// flags returns a bit for each comparison; arguments may be NaN.
//
//go:nosplit
func flags(a, b float64) float64 {
	n := 0
	if a < b {
		n |= 1
	}
	if !(a <= b) {
		n |= 2
	}
	if a != a {
		n |= 4
	}
	if a == b || a > huge && b < -tiny {
		n |= 8
	}
	less := a < b
	same := (a < b) == (b < a)
	if less != same && (less || same) {
		n |= 16
	}
	if math.Float64bits(a)>>63 != 0 {
		n |= 32
	}
	return float64(n)
}

//go:nosplit
func (k *Kernel) output(y *[P]float64) {
	y[20] = k.sum
	y[21] = exact + third
	y[22] = k.last
	y[P-1] = zero0
}

//go:nosplit
func (k *Kernel) drive(i int, on bool) { k.on[i&3] = on }

//go:nosplit
func (k *Kernel) driven(i int) bool { return k.on[i&3] }

//go:nosplit
func (k *Kernel) own(i int) float64 { return numbers[(i&3)*2] }
