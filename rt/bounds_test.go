package rt

import (
	"testing"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/sched"
)

// wide is a plant with many outputs.
type wide struct{ p int }

func (w wide) Dims() (m, p int)    { return 1, w.p }
func (w wide) Step(y, u []float64) {}

func TestNewTakesAsMuchAsTheStatusBlockHolds(t *testing.T) {
	for _, c := range []struct {
		outputs, buses, rx, tx int
		ok                     bool
	}{
		{MaxOutputs, MaxBuses, MaxRx, MaxTx, true},
		{MaxOutputs + 1, 1, 0, 0, false}, {1, MaxBuses + 1, 0, 0, false}, {1, 1, MaxRx + 1, 0, false}, {1, 1, 0, MaxTx + 1, false},
	} {
		maps := make([]*sigmap.Map, c.buses)
		for i := range maps {
			maps[i] = &sigmap.Map{}
		}
		maps[0].Rx, maps[0].Tx = make([]sigmap.Rx, c.rx), make([]sigmap.Tx, c.tx)
		_, err := New(Config{Period: period, Start: []float64{0}, Watch: unwatched()}, wide{c.outputs}, make([]*can.Bus, c.buses), maps,
			sched.NewVirtual(period), new(StatusBlock))
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Each received frame is counted once, by its result, and the frames of a tick are all counted.
func TestReceivedFramesAreCountedByTheirResult(t *testing.T) {
	b := newBench(t, Overrun{})
	b.maps[0].Rx[0].Fields[0].Invalid = [][2]uint64{{500, 600}}
	send := func(n int, f can.Frame) {
		for range n {
			b.unit.Send(&f)
		}
	}
	for range 2 {
		send(1, can.Frame{ID: 0x110, Len: 4})                             // 0 m/s
		send(2, can.Frame{ID: 0x110, Len: 4, Data: [64]byte{0xF4, 0x01}}) // 500: no value
		send(3, can.Frame{ID: 0x110, Len: 4, Data: [64]byte{0xFF, 0x7F}}) // out of range
		send(4, can.Frame{ID: 0x110, Len: 3})                             // short
		send(5, can.Frame{ID: 0x111, Len: 8})                             // unknown
		b.turn(1)
	}
	p := b.page
	got := [...]uint64{p.RxFrames.Load(), p.RxInvalid.Load(), p.RxRange.Load(), p.RxShort.Load(), p.RxUnknown.Load(), p.RxBad.Load()}
	if want := [...]uint64{30, 4, 6, 8, 10, 0}; got != want {
		t.Errorf("frames, invalid, out of range, short, unknown, bad: %v, want %v", got, want)
	}
}
