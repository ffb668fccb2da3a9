// Command signals compares signals code with the tables of the same maps. It decodes random frames
// and encodes random values both ways, and prints the first difference.
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

// input is the file that the test writes.
type input struct {
	Maps []*sigmap.Map
	M, P int // inputs, outputs
}

// load reads the file of the test.
func load(file string) (p input) {
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
	tables, copied := load(os.Args[1]), load(os.Args[1])
	code := newSignals(copied.Maps)
	seen := map[sigmap.Result]int{}
	for b := range tables.Maps {
		r := &comparison{table: tables.Maps[b], state: copied.Maps[b], code: code[b], rnd: rand.New(rand.NewPCG(1, uint64(b))), seen: seen}
		r.u, r.v, r.y = make([]float64, tables.M), make([]float64, tables.M), make([]float64, tables.P)
		for k := int64(1); k <= 3000; k++ {
			if err := r.tick(k); err != nil {
				fmt.Printf("bus %d, tick %d: %v\n", b, k, err)
				os.Exit(1)
			}
		}
	}
	fmt.Println(seen[sigmap.OK], seen[sigmap.Unknown], seen[sigmap.Short], seen[sigmap.Range], seen[sigmap.Invalid], seen[sigmap.Bad], seen[sigmap.WrongFormat], seen[sigmap.Rejected], encoded, refused)
	printSpeed(tables, code)
}

// encoded and refused count the messages that were encoded, and those that were not because of NaN.
var encoded, refused int

// comparison has one map twice: table decodes and encodes by itself, code uses state.
type comparison struct {
	table, state *sigmap.Map
	code         rt.Signals
	u, v, y      []float64 // inputs by the tables, inputs by the code, outputs
	forced       bool      // values are forced at this tick
	rnd          *rand.Rand
	seen         map[sigmap.Result]int
}

// tick decodes frames and encodes all messages of tick k.
func (r *comparison) tick(k int64) error {
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
		return fmt.Errorf("timeouts differ: inputs by the code %v, by the tables %v", r.v, r.u)
	}
	for i := range r.y {
		r.y[i] = r.value()
	}
	r.force()
	for i := range r.table.Tx {
		if a, b := r.code.Due(i, k, r.y, r.forced), r.table.Due(i, k, r.y, r.forced); a != b {
			return fmt.Errorf("message %s: due by the code %v, by the tables %v", r.table.Tx[i].Name, a, b)
		}
		var f, g can.Frame
		f.Data[63], g.Data[63] = 7, 7 // left over from another frame
		a, b := r.code.Encode(&f, i, k, r.y, r.forced), r.table.Encode(&g, i, k, r.y, r.forced)
		if a != b || f != g {
			return fmt.Errorf("message %s: by the code %v % X, by the tables %v % X; values %v", r.table.Tx[i].Name, a, f, b, g, r.y)
		}
		if a {
			encoded++
		} else {
			refused++
		}
	}
	if k%32 != 0 {
		return nil
	}
	return r.compare()
}

// compare compares the states of both maps.
func (r *comparison) compare() error {
	bare := func(m *sigmap.Map) sigmap.Map {
		c := *m
		c.Rx, c.Tx = append([]sigmap.Rx(nil), m.Rx...), append([]sigmap.Tx(nil), m.Tx...)
		for i := range c.Rx {
			c.Rx[i].Protect = strip(c.Rx[i].Protect)
		}
		for i := range c.Tx {
			c.Tx[i].Protect, c.Tx[i].LastDue = strip(c.Tx[i].Protect), 0 // the code has none for cyclic messages
			c.Tx[i].Fields = append([]sigmap.Field(nil), c.Tx[i].Fields...)
			for j := range c.Tx[i].Fields {
				c.Tx[i].Fields[j].Value = 0 // can be NaN
				if c.Tx[i].Send == sigmap.Cyclic {
					c.Tx[i].Fields[j].Sent = 0 // the code has none for cyclic messages
				}
			}
		}
		return c
	}
	a, b := bare(r.table), bare(r.state)
	if a.Saturated != b.Saturated || !equal(a.Rx, b.Rx) || !equal(a.Tx, b.Tx) {
		return fmt.Errorf("the states differ: by the tables\n%+v\nby the code\n%+v", a, b)
	}
	return nil
}

// equal reports whether two lists are deeply equal.
func equal[T any](a, b []T) bool { return reflect.DeepEqual(a, b) }

// strip returns protections without the compiled checksum and without unexported fields, which gob
// does not carry.
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

// same reports whether two vectors have the same bits.
func same(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}

// frame returns a random frame, usually of a message of the map. Its length or identifier is
// sometimes wrong, its checksum and counter are usually right.
func (r *comparison) frame() (f can.Frame) {
	f.ID, f.Len = uint32(r.rnd.IntN(0x800)), uint8(r.rnd.IntN(9))
	if len(r.table.Rx) == 0 || r.rnd.IntN(20) == 0 {
		return f
	}
	x := &r.table.Rx[r.rnd.IntN(len(r.table.Rx))]
	f.ID, f.Len, f.Flags = x.ID, uint8(x.Len), uint8(r.rnd.IntN(4))
	if x.FD == (r.rnd.IntN(30) > 0) {
		f.Flags |= can.FlagFDF
	}
	if f.ID&can.EFF != 0 && r.rnd.IntN(4) == 0 { // another priority, or another source address
		f.ID ^= uint32(r.rnd.IntN(8))<<26 | uint32(r.rnd.IntN(2))
	}
	switch r.rnd.IntN(40) {
	case 0:
		f.ID ^= can.EFF
	case 1:
		f.ID |= can.RTR
	}
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
				p.Next = (p.Last + 1 + uint64(max(0, r.rnd.IntN(9)-6))) % p.Modulus
			}
			p.Protect(&f.Data, int(f.Len), f.ID&can.MaskEFF)
		}
	}
	return f
}

// force forces values at random, in both maps.
func (r *comparison) force() {
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

// value returns a random number, sometimes a special one.
func (r *comparison) value() float64 {
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

// printSpeed prints the ratio of the encoding times: tables over code.
func printSpeed(p input, code []rt.Signals) {
	var f can.Frame
	y := make([]float64, p.P)
	measure := func(encode func(b, i int)) time.Duration {
		start := time.Now()
		for range 2000 {
			for b, m := range p.Maps {
				for i := range m.Tx {
					encode(b, i)
				}
			}
		}
		return time.Since(start)
	}
	var least [2]time.Duration
	for range 5 {
		a := measure(func(b, i int) { p.Maps[b].Encode(&f, i, 0, y, false) })
		b := measure(func(b, i int) { code[b].Encode(&f, i, 0, y, false) })
		if least[0] == 0 || a < least[0] {
			least[0] = a
		}
		if least[1] == 0 || b < least[1] {
			least[1] = b
		}
	}
	fmt.Printf("%.2f\n", float64(least[0])/float64(least[1]))
}
