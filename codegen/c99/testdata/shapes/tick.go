package shapes

// friction is what an element is made of.
type friction struct {
	Name   [2]int8 // not a text
	Peak   float64 // static over kinetic
	OneWay bool
}

// elements are the plant's friction elements.
var elements = [3]friction{
	{[2]int8{1, 2}, 1.1, false}, // clutch1
	// a freewheel, which has no peak
	{Name: [2]int8{3}, OneWay: true},
	{
		Peak: 1.25, // brake
	},
}

// spans has rows without a name of their type.
var spans = [...]struct {
	begin, end int
	by         [2][2]float64
}{
	{0, 2, [2][2]float64{{1, 2}, {3, 4}}},
	{begin: 2, end: 4},
	3: {1, 3, [2][2]float64{1: {0.5, 0.25}}},
}

var grid = [2][3]float64{
	{0.1, 0.2, 0.3}, // first
	{0.4, 0.5, 0.6}, // second
}

var empty [0]float64

var sparse = [16]float64{3: 1.5, 7: -2, 15: 0.125}

// long has more entries than a line holds.
var long = [40]float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 3.8, 3.9, 4.1, 4.2, 4.3, 4.4}

// piece is a part of a step; the kernel has its fields as its own.
type piece struct {
	c      [3][4]float64 // coefficients
	length float64
	nested inner
}

type inner struct {
	a [2]float64
	b bool
}

type nothing struct{}

// Event is what happened.
type Event struct {
	Time     float64 // s
	Friction int
	From, To int8
}

// jump holds the calls that start the stack anew.
var jump = struct {
	walk func(k *Kernel, theta float64) float64
	rest func(i int) float64
}{(*Kernel).walk, rest}

// Kernel has parts of all shapes.
type Kernel struct {
	piece
	save   piece
	parts  [2]inner
	none   [0]float64
	void   nothing
	on     [M]bool
	logged int
	log    [4]Event
	x      [4]float64
	t      float64
}

//go:nosplit
func (k *Kernel) create() { k.reset() }

//go:nosplit
func (k *Kernel) reset() {
	k.piece = piece{length: 1}
	k.save, k.t, k.logged = piece{}, 0, 0
	k.x = [4]float64{1, 2}
	k.parts = [2]inner{{b: true}, {a: [2]float64{3, 4}}}
	for i := range k.log {
		k.log[i] = Event{}
	}
	k.void = nothing{}
}

//go:nosplit
func (k *Kernel) step(y *[P]float64, u *[M]float64) {
	k.t += 0.005
	k.save = k.piece
	rotate(&k.x, u)
	k.c[1] = k.x
	row := k.c[1]
	row[2] += u[2]
	fill(&k.c[2], &row)
	k.length = norm(&k.x) + norm(&row) + norm(&quarter)
	k.parts[0], k.parts[1] = k.parts[1], k.parts[0]
	k.parts[0].turn(u[3])
	k.nested = k.parts[k.logged&1]
	k.nested.b = !k.nested.b
	y[0], y[1] = k.length, total(&k.c)+total2(&grid)
	y[2] = float64(k.compare())
	y[3] = jump.walk(k, u[0]) + jump.rest(2) + jumps.again(k, 3)
	k.event(Event{k.t, k.logged, -1, 1})
	y[4] = k.log[k.logged&3].Time + float64(k.log[1].To)
	y[5] = k.friction(u)
	y[6] = k.copies(u)
	for i := range k.none {
		y[7] = k.none[i] + empty[i]
	}
	y[8] = sparse[7] + sparse[int(k.t*100)&15] + long[39]
	p := &k.parts[1]
	p.a[0] += 1
	q := &p.a
	q[1] = 0.5 - q[0]*0.125
	y[9] = p.a[0] + q[1]
	var local inner
	local.a[1] = u[1]
	local.turn(2)
	y[10] = u[2]
	add(&y[10], local.a[0])
	k.output(y)
}

var quarter = [4]float64{0.25, 0.5, 0.75, 1}

// add adds to a number elsewhere.
//
//go:nosplit
func add(dst *float64, x float64) { *dst = *dst*0.5 + x }

// rotate moves x on by one and takes in u.
//
//go:nosplit
func rotate(x, u *[4]float64) {
	x[0], x[1], x[2], x[3] = x[1], x[2], x[3], x[0]
	x[0] += u[0] * 0.001
	if !(x[0] < 1e6 && x[0] > -1e6) {
		*x = quarter
	}
}

//go:nosplit
func fill(dst, src *[4]float64) { *dst = *src }

// norm reads only.
//
//go:nosplit
func norm(x *[4]float64) (sum float64) {
	for _, v := range x {
		sum += v * v
	}
	return sum
}

//go:nosplit
func total(c *[3][4]float64) float64 {
	sum := 0.0
	for i := range c {
		sum += norm(&c[i]) * float64(i+1)
	}
	return sum
}

//go:nosplit
func total2(c *[2][3]float64) float64 {
	sum := 0.0
	for _, row := range c {
		for _, v := range row {
			sum += v
		}
	}
	return sum
}

// turn exchanges what a part has.
//
//go:nosplit
func (p *inner) turn(x float64) {
	p.a[0], p.a[1] = p.a[1]+x*1e-3, p.a[0]
	if p.norm() > 100 {
		*p = inner{b: p.b}
	}
}

//go:nosplit
func (p inner) norm() float64 { return p.a[0]*p.a[0] + p.a[1]*p.a[1] }

// compare compares structs and arrays.
//
//go:nosplit
func (k *Kernel) compare() int {
	n := 0
	if k.parts[0] == k.parts[1] {
		n |= 1
	}
	if k.c[1] != k.x {
		n |= 2
	}
	if k.save == k.piece {
		n |= 4
	}
	if k.nested == (inner{b: true}) {
		n |= 8
	}
	if k.c == k.save.c && k.void == (nothing{}) {
		n |= 16
	}
	return n
}

//go:nosplit
func (k *Kernel) walk(theta float64) float64 { return k.x[1]*theta + k.x[0] }

//go:nosplit
func rest(i int) float64 { return quarter[i&3] }

// event notes an event where there is room.
//
//go:nosplit
func (k *Kernel) event(e Event) {
	k.log[k.logged&3] = e
	k.logged++
}

// friction goes over elements.
//
//go:nosplit
func (k *Kernel) friction(u *[M]float64) float64 {
	sum := 0.0
	for i, f := range elements {
		if f.OneWay {
			sum -= u[i]
			continue
		}
		sum += f.Peak * u[i] * float64(f.Name[0])
	}
	for _, s := range spans {
		for i := s.begin; i < s.end; i++ {
			sum += k.x[i&3] * s.by[i&1][1]
		}
	}
	for _, p := range k.parts { // a copy, since it changes
		k.parts[1].a[0] = 1
		sum += p.a[0]
	}
	f := elements[1]
	f.Peak += 2
	return sum + f.Peak
}

// copies shows that arrays are values.
//
//go:nosplit
func (k *Kernel) copies(u *[M]float64) float64 {
	a := *u
	b := a
	a, b = b, a
	b[0]++
	a[1]--
	two := [2][4]float64{{1, 2, 3, 4}}
	two[1] = a
	c := two
	c[0], c[1] = c[1], c[0]
	x := k.x
	k.x[3] = 0.25
	return a[0] - b[0] + a[1]*0.5 + x[3] + c[0][1] + two[0][1]
}

//go:nosplit
func (k *Kernel) output(y *[P]float64) {
	y[20] = k.t
	for i := range k.x {
		y[11+i] = k.x[i]
	}
	y[P-1] = 0
}

//go:nosplit
func (k *Kernel) drive(i int, on bool) { k.on[i&3] = on }

//go:nosplit
func (k *Kernel) driven(i int) bool { return k.on[i&3] }

//go:nosplit
func (k *Kernel) own(i int) float64 { return elements[0].Peak * float64(i) }

// jumps is set when the package begins, since what it holds uses it.
var jumps struct {
	again func(k *Kernel, n int) float64
}

func init() {
	jumps.again = (*Kernel).again
}

//go:nosplit
func (k *Kernel) again(n int) float64 { return k.t * float64(n) }
