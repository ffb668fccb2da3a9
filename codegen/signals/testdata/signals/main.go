// Command signals moves random frames and values through signal maps twice, by their
// tables and by the code that was generated for them, and says where the two differ.
package main

import (
	"encoding/gob"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"time"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
)

// pack is what the test hands over.
type pack struct {
	Maps []*sigmap.Map
	M, P int // inputs, outputs
}

func load(file string) (p pack) {
	f, err := os.Open(file)
	if err == nil {
		err = gob.NewDecoder(f).Decode(&p)
	}
	if err != nil {
		panic(err)
	}
	return p
}

func main() {
	one, other := load(os.Args[1]), load(os.Args[1])
	code := newSignals(other.Maps)
	seen := map[sigmap.Result]int{}
	for b := range one.Maps {
		r := &rig{table: one.Maps[b], state: other.Maps[b], code: code[b], rnd: rand.New(rand.NewPCG(1, uint64(b))), seen: seen}
		r.u, r.v, r.y = make([]float64, one.M), make([]float64, one.M), make([]float64, one.P)
		for k := int64(1); k <= 3000; k++ {
			if err := r.tick(k); err != nil {
				fmt.Printf("bus %d, tick %d: %v\n", b, k, err)
				os.Exit(1)
			}
		}
	}
	fmt.Println(seen[sigmap.OK], seen[sigmap.Unknown], seen[sigmap.Short], seen[sigmap.Range], seen[sigmap.Invalid], seen[sigmap.Bad], made, refused)
	speed(one, code)
}

var made, refused int

// rig is one map twice.
type rig struct {
	table, state *sigmap.Map
	code         rt.Signals
	u, v, y      []float64
	forced       bool // values are forced at this tick
	rnd          *rand.Rand
	seen         map[sigmap.Result]int
}

func (r *rig) tick(k int64) error {
	for range 3 {
		f := r.frame()
		i, got := r.code.Decode(r.v, &f)
		j, want := r.table.Decode(r.u, &f)
		r.seen[want]++
		if i != j || got != want || !same(r.u, r.v) {
			return fmt.Errorf("frame %X of %d bytes % X: code %d, %v, %v; table %d, %v, %v", f.ID, f.Len, f.Data, i, got, r.v, j, want, r.u)
		}
	}
	if r.table.Tick(r.u, k) != r.state.Tick(r.v, k) || !same(r.u, r.v) {
		return fmt.Errorf("judged otherwise")
	}
	for i := range r.y {
		r.y[i] = r.value()
	}
	r.force()
	for i := range r.table.Tx {
		if a, b := r.code.Due(i, k, r.y, r.forced), r.table.Due(i, k, r.y, r.forced); a != b {
			return fmt.Errorf("message %s: due %v, by the table %v", r.table.Tx[i].Name, a, b)
		}
		var f, g can.Frame
		f.Data[63], g.Data[63] = 7, 7 // of the frame before
		a, b := r.code.Encode(&f, i, k, r.y, r.forced), r.table.Encode(&g, i, k, r.y, r.forced)
		if a != b || f != g {
			return fmt.Errorf("message %s: %v % X, by the table %v % X; values %v", r.table.Tx[i].Name, a, f, b, g, r.y)
		}
		if a {
			made++
		} else {
			refused++
		}
	}
	if k%32 != 0 {
		return nil
	}
	return r.compare()
}

// compare compares all that the maps keep.
func (r *rig) compare() error {
	bare := func(m *sigmap.Map) sigmap.Map {
		c := *m
		c.Rx, c.Tx = append([]sigmap.Rx(nil), m.Rx...), append([]sigmap.Tx(nil), m.Tx...)
		for i := range c.Rx {
			c.Rx[i].Protect = strip(c.Rx[i].Protect)
		}
		for i := range c.Tx {
			c.Tx[i].Protect, c.Tx[i].LastDue = strip(c.Tx[i].Protect), 0 // nobody asks it of a cyclic one
			c.Tx[i].Fields = append([]sigmap.Field(nil), c.Tx[i].Fields...)
			for j := range c.Tx[i].Fields {
				c.Tx[i].Fields[j].Value = 0 // can be NaN
				if c.Tx[i].Send == sigmap.Cyclic {
					c.Tx[i].Fields[j].Sent = 0 // likewise
				}
			}
		}
		return c
	}
	a, b := bare(r.table), bare(r.state)
	if a.Saturated != b.Saturated || !equal(a.Rx, b.Rx) || !equal(a.Tx, b.Tx) {
		return fmt.Errorf("the maps keep\n%+v\n%+v", a, b)
	}
	return nil
}

func equal[T any](a, b []T) bool { return reflect.DeepEqual(a, b) }

// strip drops what only one way uses: the code, and, by way of gob, the register.
func strip(list []sigmap.Protection) (bare []sigmap.Protection) {
	for _, p := range list {
		p.Compiled = nil
		v := reflect.New(reflect.TypeFor[sigmap.Protection]()).Elem()
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				v.Field(i).Set(reflect.ValueOf(p).Field(i))
			}
		}
		bare = append(bare, v.Interface().(sigmap.Protection))
	}
	return bare
}

func same(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}

// frame is one of the map with random bytes, sometimes of another length or identifier,
// and sometimes one that its protection takes.
func (r *rig) frame() (f can.Frame) {
	f.ID, f.Len = uint32(r.rnd.IntN(0x800)), uint8(r.rnd.IntN(9))
	if len(r.table.Rx) == 0 || r.rnd.IntN(20) == 0 {
		return f
	}
	x := &r.table.Rx[r.rnd.IntN(len(r.table.Rx))]
	f.ID, f.Len = x.ID, uint8(x.Len)
	switch fill := r.rnd.IntN(8); {
	case fill == 0:
		for i := range f.Data {
			f.Data[i] = 0xFF
		}
	case fill > 1:
		for i := range f.Data {
			f.Data[i] = byte(r.rnd.Uint32())
		}
	}
	if r.rnd.IntN(30) == 0 {
		f.Len = uint8(r.rnd.IntN(65))
	}
	if r.rnd.IntN(10) > 0 {
		for i := range x.Protect {
			p := x.Protect[i]
			p.Next = p.Last
			if p.Modulus > 0 {
				p.Next = (p.Last + 1 + uint32(max(0, r.rnd.IntN(9)-6))) % p.Modulus
			}
			p.Protect(&f.Data, int(f.Len), f.ID&can.MaskEFF)
		}
	}
	return f
}

// force stands for values now and then, in both maps.
func (r *rig) force() {
	r.forced = r.rnd.IntN(4) > 0
	for i := range r.table.Tx {
		for j := range r.table.Tx[i].Fields {
			if r.rnd.IntN(50) == 0 {
				how, v := sigmap.Force(r.rnd.IntN(3)), r.value()
				for _, m := range []*sigmap.Map{r.table, r.state} {
					m.Tx[i].Fields[j].Force, m.Tx[i].Fields[j].Value = how, v
				}
			} else {
				r.table.Tx[i].Fields[j].Force, r.state.Tx[i].Fields[j].Force = 0, 0
			}
		}
	}
}

func (r *rig) value() float64 {
	switch r.rnd.IntN(60) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1)
	case 2:
		return math.Inf(-1)
	case 3:
		return math.Copysign(0, -1)
	case 4:
		return math.Float64frombits(r.rnd.Uint64())
	case 5:
		return float64(r.rnd.IntN(9)) + 0.5
	}
	return math.Ldexp(r.rnd.Float64()-0.3, r.rnd.IntN(34))
}

// speed says how much longer the tables take, per frame.
func speed(p pack, code []rt.Signals) {
	var f can.Frame
	y := make([]float64, p.P)
	turn := func(encode func(b, i int)) time.Duration {
		begun := time.Now()
		for range 2000 {
			for b, m := range p.Maps {
				for i := range m.Tx {
					encode(b, i)
				}
			}
		}
		return time.Since(begun)
	}
	var least [2]time.Duration
	for range 5 {
		a := turn(func(b, i int) { p.Maps[b].Encode(&f, i, 0, y, false) })
		b := turn(func(b, i int) { code[b].Encode(&f, i, 0, y, false) })
		if least[0] == 0 || a < least[0] {
			least[0] = a
		}
		if least[1] == 0 || b < least[1] {
			least[1] = b
		}
	}
	fmt.Printf("%.2f\n", float64(least[0])/float64(least[1]))
}
