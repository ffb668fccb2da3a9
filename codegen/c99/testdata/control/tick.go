package control

// Kernel uses every form of statement.
type Kernel struct {
	x     [4]float64 // a state
	n     int
	calls int
	on    [M]bool
	trace float64
	row   [11]float64
	saved [M]bool
}

//go:nosplit
func (k *Kernel) create() { k.reset() }

//go:nosplit
func (k *Kernel) reset() {
	k.n = 0
	k.calls = 0
	k.trace = 0
	for i := range 4 {
		// all speeds are zero
		k.x[i] = 0
		k.on[i] = false
	}
}

// note records its argument and the order of its calls.
//
//go:nosplit
func (k *Kernel) note(i int) int {
	k.calls += 1
	k.trace = k.trace*0.75 + float64(i)
	return i
}

//go:nosplit
func (k *Kernel) is(i int, x float64) bool {
	k.note(i)
	return x > 0
}

// pair swaps its arguments and counts the call.
//
//go:nosplit
func (k *Kernel) pair(a, b float64) (float64, float64) {
	k.calls += 2
	return b, a
}

//go:nosplit
func (k *Kernel) twice(a, b float64) (float64, float64) {
	c, d := k.pair(b, a)
	return c, d
}

//go:nosplit
func (k *Kernel) step(y *[P]float64, u *[M]float64) {
	k.n += 1
	y[0] = k.loops(u)
	y[1] = k.order(u)
	a, b := k.pair(u[0], u[1])
	y[3] = a
	y[4] = b
	c, _ := k.twice(y[3]+1, y[4])
	y[5] = c
	if u[2] > 1 {
		y[6] = 1
	} else if u[2] > 0 && u[3] > 0 {
		y[6] = 2
	} else if k.note(1) < k.note(2)*k.calls&1 {
		y[6] = 3
	} else if u[3] > 0 {
		y[6] = 4
	} else {
		y[6] = -1
	}
	y[7] = hidden(u[0], u[1])
	y[8] = k.blocks(u)
	y[23] = k.ends(u)
	k.output(y)
}

// ends has blocks whose end is the target of jumps.
//
//go:nosplit
func (k *Kernel) ends(u *[M]float64) float64 {
	sum := 0.0
	{
		for i := range 4 {
			if u[i] > 2 {
				sum = float64(i)
				goto above
			}
		}
		{
			if u[0] > 0 {
				goto inner
			}
			sum = -1
		}
	inner:
		if u[1] > 0 {
			goto above
		}
		sum -= 2
	}
above:
	{
		if sum < 0 {
			goto below
		}
		sum += 0.5
	}
below:
	return sum
}

// loops has a loop of each form.
//
//go:nosplit
func (k *Kernel) loops(u *[M]float64) float64 {
	sum := 0.0
	// range without a variable
	for range 3 {
		sum += 0.125
	}
	for i := range 4 {
		if i == 2 {
			continue
		}
		sum += u[i] * 1e-3
	}
	n := 5
	for i := range n {
		n -= 1
		sum += float64(i)
	}
	n = 9
	for n > 0 {
		n -= 2
		if n == 1 {
			break
		}
	}
	r := uint64(k.calls) & 0xff
	for ; r != 0; r &= r - 1 {
		if r&3 == 3 {
			continue
		}
		sum += float64(r & -r)
	}
	for i := range int8(100) {
		sum += float64(i) * 0.5
	}
	return sum + float64(n)
}

// starts are numbers that blocks copies.
var starts = [4]float64{7, 6, 5, 4}

// blocks clears and copies parts of arrays.
//
//go:nosplit
func (k *Kernel) blocks(u *[M]float64) float64 {
	_ = *k
	sum := 0.0
	from := k.n & 7
	for i := range 11 {
		sum += k.row[i] * float64(i+1)
	}
	copy(k.row[from:from+4], u[:4])
	clear(k.row[5:7])
	copy(k.row[8:10], starts[1:3])
	copy(k.saved[:M], k.on[:M])
	clear(k.on[k.n&1 : k.n&1+2])
	if k.saved[1] {
		sum += 1
	}
	if k.saved[2] {
		sum += 2
	}
	k.tail(&k.row)
	return sum
}

// tail clears the end of a row.
//
//go:nosplit
func (k *Kernel) tail(row *[11]float64) {
	if k.n&3 == 3 {
		clear(row[9:11])
	}
}

// order has calls whose order changes the result.
//
//go:nosplit
func (k *Kernel) order(u *[M]float64) float64 {
	a := float64(k.note(1)*10 + k.note(2)*3 - k.note(3))
	if k.is(4, u[0]) && k.is(5, u[1]) || k.is(6, u[2]) {
		a += 1
	}
	if k.note(1) < k.note(2) && (k.note(3) > k.note(4) || k.is(7, u[3])) {
		a += 2
	}
	k.x[k.note(1)&3] += float64(k.note(2))
	k.x[k.note(3)&3] = float64(k.note(5))
	a += k.add(float64(k.note(1)), float64(k.note(2)), k.add(1, float64(k.note(8)), 2))
	ok := k.is(1, u[0]) != k.is(2, u[1])
	if !ok {
		a -= u[k.note(1)&1] + u[2]
	}
	_ = k.note(3)
	k.note(4)
	k.pair(1, 2)
	return a + k.trace
}

//go:nosplit
func (k *Kernel) add(a, b, c float64) float64 {
	k.trace += a - b*c
	return a + b + c
}

// hidden has variables that hide others, and names that C reserves.
//
//go:nosplit
func hidden(x, int_ float64) float64 {
	y := x
	if x > 0 {
		x := x * 2
		y += x
	}
	for x := range 3 {
		x := float64(x) + int_
		y += x
	}
	register := 1.0
	note := x
	min2 := 3.0
	sin := 4.0
	return y + register*note + min2 - sin
}

//go:nosplit
func (k *Kernel) output(y *[P]float64) {
	y[20] = float64(k.calls)
	y[21] = float64(k.n)
	y[22] = k.x[0] + k.x[1]*2 + k.x[2]*3 + k.x[3]*4
	y[P-1] = float64(k.n / 1000000)
}

//go:nosplit
func (k *Kernel) drive(i int, on bool) { k.on[i&3] = on }

//go:nosplit
func (k *Kernel) driven(i int) bool { return k.on[i&3] }

//go:nosplit
func (k *Kernel) own(_ int) float64 { return 1 }
