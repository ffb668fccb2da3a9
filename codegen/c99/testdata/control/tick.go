package control

import "math"

// Modes of an element.
const (
	Backward int8 = -1 // slips backward
	Stuck    int8 = 0
	Forward  int8 = 1
	Free     int8 = 2
)

// Kernel goes all ways that a statement can take.
type Kernel struct {
	x     [4]float64
	mode  [4]int8
	n     int
	calls int
	on    [M]bool
	trace float64
}

//go:nosplit
func (k *Kernel) create() { k.reset() }

//go:nosplit
func (k *Kernel) reset() {
	*k = Kernel{}
	for i := range k.mode {
		k.mode[i] = Free // at first nothing is closed
	}
}

// note is a call that can be told from others by its order.
//
//go:nosplit
func (k *Kernel) note(i int) int {
	k.calls++
	k.trace = k.trace*0.75 + float64(i)
	return i
}

//go:nosplit
func (k *Kernel) is(i int, x float64) bool {
	k.note(i)
	return x > 0
}

// pair gives both of what it got, and counts.
//
//go:nosplit
func (k *Kernel) pair(a, b float64) (float64, float64) {
	k.calls += 2
	return b, a
}

// split has results with names.
//
//go:nosplit
func split(x float64) (whole int, rest float64, fits bool) {
	if !(math.Abs(x) < 1e15) {
		return 0, x, false
	}
	whole = int(math.Floor(x))
	rest, fits = x-float64(whole), true
	return
}

//go:nosplit
func (k *Kernel) twice(a, b float64) (float64, float64) { return k.pair(b, a) }

//go:nosplit
func (k *Kernel) step(y *[P]float64, u *[M]float64) {
	k.n++
	y[0] = k.loops(u)
	y[1] = k.switches(u)
	y[2] = k.order(u)
	y[3], y[4] = k.pair(u[0], u[1])
	y[4], y[3] = k.twice(y[3]+1, y[4])
	y[5], y[6], y[7] = u[2], u[0], u[1]
	y[5], y[6], y[7] = y[6], y[7], y[5]
	if whole, rest, ok := split(u[2]); ok {
		y[8] = float64(whole%64) + rest
	} else if _, other, fine := split(u[3]); fine && other > 0.5 {
		y[8] = other
	} else {
		y[8] = -1
	}
	y[9] = shadow(u[0], u[1])
	y[10] = k.labels(u)
	y[11] = k.ranges(u)
	k.tuples(y, u)
	k.output(y)
}

// loops has a loop of each form.
//
//go:nosplit
func (k *Kernel) loops(u *[M]float64) float64 {
	sum := 0.0
	for range 3 { // three times the same
		sum += 0.125
	}
	for i := range 4 {
		if i == 2 {
			continue
		}
		sum += u[i] * 1e-3
	}
	for i := range len(k.x) - 1 {
		i *= 2 // does not change how often
		sum += float64(i)
	}
	n := 5
	for i := range n {
		n--
		sum += float64(i)
	}
	for n > 0 {
		n -= 2
		if n == 1 {
			break
		}
	}
	for {
		n++
		if n > 3 {
			break
		}
	}
	for i := 0; i < 4; i++ {
		if i == 1 {
			i++
			continue
		}
		sum += k.x[i&3]
	}
	for k.is(n, 4-float64(n)) {
		n++
	}
	for i := k.note(1); i+k.note(1) < k.note(6); i, n = i+k.note(2), i {
		if n == 3 {
			continue
		}
		sum += float64(i + n)
	}
	var last int
	for last = range 5 {
		if u[0] < float64(last) {
			break
		}
	}
	var i8 int8
	for i8 = range int8(100) {
		sum += float64(i8) * 0.5
	}
	return sum + float64(n+last)
}

// switches has a switch of each form.
//
//go:nosplit
func (k *Kernel) switches(u *[M]float64) float64 {
	sum := 0.0
	for i := range k.mode {
		switch k.mode[i] {
		case Free:
			k.mode[i] = Forward
		case Forward, Backward: // it slips
			if u[i] < 0 {
				k.mode[i] = Stuck
				break
			}
			sum += 3
		case Stuck:
			k.mode[i] = Free
		default:
			sum = -100
		}
		switch {
		case u[i] > 1:
			if sum > 7 {
				break // out of the switch alone
			}
			sum += 1.5
		default:
			sum += 0.25
		case u[i] < -1, k.is(i, u[i]+0.5):
			if i == 3 {
				continue
			}
			sum -= 1
		}
		switch x := math.Floor(u[i]); x {
		case 0, 1:
			sum += 10
		case float64(k.note(2)):
			sum += 20
		}
		switch k.note(i) {
		}
		switch on := u[i] > 0; on {
		case true:
			sum++
		}
	}
	switch k.n & 7 {
	case 1:
	case 2, 3:
		return sum + 1
	case int(Free) + 2:
		sum += 2
	}
	return sum
}

// order has calls whose order shows.
//
//go:nosplit
func (k *Kernel) order(u *[M]float64) float64 {
	a := float64(k.note(1)*10 + k.note(2)*3 - k.note(3))
	if k.is(4, u[0]) && k.is(5, u[1]) || k.is(6, u[2]) {
		a++
	}
	if k.note(1) < k.note(2) && (k.note(3) > k.note(4) || k.is(7, u[3])) {
		a += 2
	}
	k.x[k.note(1)&3] += float64(k.note(2))
	k.x[k.note(3)&3], k.x[k.note(0)&3] = float64(k.note(5)), float64(k.note(6))
	a += k.add(float64(k.note(1)), float64(k.note(2)), k.add(1, float64(k.note(8)), 2))
	v := [3]float64{float64(k.note(3)), float64(k.note(2)), float64(k.note(1))}
	ok := k.is(1, u[0]) != k.is(2, u[1])
	if !ok {
		a -= v[k.note(1)&1] + v[2]
	}
	return a + k.trace
}

//go:nosplit
func (k *Kernel) add(a, b, c float64) float64 {
	k.trace += a - b*c
	return a + b + c
}

// shadow has variables that hide others.
//
//go:nosplit
func shadow(x, int_ float64) float64 {
	y := x
	{
		x := x * 2
		y += x
		if x := x + 1; x > 0 {
			x := -x
			y -= x
		}
	}
	for x := range 3 {
		x := float64(x) + int_
		y += x
	}
	register, note, min2, sin := 1.0, x, 3.0, 4.0 // keywords and functions of C
	return y + register*note + min2 - sin
}

// labels has jumps out of nests.
//
//go:nosplit
func (k *Kernel) labels(u *[M]float64) float64 {
	sum := 0.0
outer:
	for i := range 4 {
	inner:
		for j := range 4 {
			switch {
			case j > i:
				continue outer
			case u[j] > 2:
				break inner
			case u[j] < -2:
				break outer
			}
			switch j {
			case 2:
				if u[i] > 0 {
					break
				}
				continue
			case 3:
				break outer
			}
			sum += float64(i*4 + j)
		}
		sum *= 0.5
	}
choice:
	switch {
	case sum > 1:
		for i := range 4 {
			if u[i] > 1 {
				break choice
			}
		}
		sum += 100
	}
	return sum
}

// ranges goes over arrays that change meanwhile.
//
//go:nosplit
func (k *Kernel) ranges(u *[M]float64) float64 {
	sum := 0.0
	for i, v := range k.x { // over a copy
		k.x[3-i] = v + u[i]*1e-6
		sum += v
	}
	for i, v := range u { // over the array itself
		sum += v * float64(i)
	}
	p := &k.x
	for i, v := range p {
		p[3-i] = v * 0.5
		sum -= v
	}
	for i := range p {
		if !(math.Abs(p[i]) < 1e9) {
			p[i] = 0
		}
	}
	return sum
}

// tuples assigns several places at once.
//
//go:nosplit
func (k *Kernel) tuples(y *[P]float64, u *[M]float64) {
	a, b := u[0], u[1]
	a, b = b, a
	i, j := 1, 2
	i, k.x[i] = j, a
	k.x[j], j = b, i
	k.x[0], k.x[1], k.x[2] = k.x[2], k.x[0], k.x[1]
	y[12], y[13], y[14] = a, float64(i*4+j), k.x[1]
	_, c := k.pair(a, b)
	_ = k.note(3)
	k.note(4)
	k.pair(1, 2)
	var d, e = c, 2.0
	var f float64
	var g [2]float64
	g[k.n&1] = d * e
	y[15] = f + g[0] - g[1]*3
	const local = 3
	y[16] = local * e
	unread := 1
	unread++
	_ = unread
	y[17] = k.trace
}

//go:nosplit
func (k *Kernel) output(y *[P]float64) {
	y[20], y[21] = float64(k.calls), float64(k.n)
	y[22] = k.x[0] + k.x[1]*2 + k.x[2]*3 + k.x[3]*4
	y[P-1] = float64(k.n / 1000000)
}

//go:nosplit
func (k *Kernel) drive(i int, on bool) { k.on[i&3] = on }

//go:nosplit
func (k *Kernel) driven(i int) bool { return k.on[i&3] }

//go:nosplit
func (k *Kernel) own(_ int) float64 { return 1 }
