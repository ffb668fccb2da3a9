package port

import (
	"sync/atomic"
	"testing"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// A message is due every 50 ms at 10 ms, another one on change. Frames of the port have 8 bytes and take up to
// 160 bits: 0.64 ms at 250 kbit/s.
func TestDelayIsTheTimeThatFramesOfThePortTookAheadOfThePlant(t *testing.T) {
	const cyclic, changed, ofPort = 0x0CF00400 | can.EFF, 0x0CF00500 | can.EFF, 0x1CEBFF00 | can.EFF
	m := &sigmap.Map{Tx: []sigmap.Tx{
		{Name: "Cyclic", ID: cyclic, CycleTicks: 10}, {Name: "Changed", ID: changed, CycleTicks: 1, Send: sigmap.OnChange},
	}}
	phases := make([]atomic.Uint64, 2)
	phases[0].Store(2)
	m.Tx[0].PhaseTicks = 5 // of the bench file; a switch-on of the ignition has moved it
	type seen struct {
		id uint32
		us int64
	}
	for _, c := range []struct {
		name   string
		frames []seen
		rate   float64
		want   DelayCounts
	}{
		{"no frame of the port", []seen{{cyclic, 10_200}, {cyclic, 60_200}}, 0, DelayCounts{2, 0, 0}},
		{"frames of the port behind the plant's", []seen{{cyclic, 10_200}, {ofPort, 10_800}, {cyclic, 60_200}}, 0, DelayCounts{2, 0, 0}},
		{"frames of the port before the grid point", []seen{{ofPort, 9_999}, {cyclic, 10_200}}, 0, DelayCounts{1, 0, 0}},
		{"two ahead", []seen{{ofPort, 10_500}, {ofPort, 11_100}, {cyclic, 11_700}}, 0, DelayCounts{1, 1, 1_100_000}},
		{"one ahead, and a late plant", []seen{{ofPort, 13_000}, {cyclic, 14_000}}, 250e3, DelayCounts{1, 1, 640_000}},
		{"ahead for several ticks", []seen{{ofPort, 11_000}, {ofPort, 16_000}, {ofPort, 22_000}, {cyclic, 22_700}}, 0, DelayCounts{1, 1, 12_000_000}},
		{"a frame on change belongs to the last tick", []seen{{ofPort, 14_000}, {ofPort, 15_400}, {changed, 15_900}}, 0, DelayCounts{1, 1, 400_000}},
	} {
		d := NewDelay(m, phases, 5e6, c.rate)
		for _, f := range c.frames {
			d.Note(&can.Frame{ID: f.id, Len: 8}, f.us*1000)
		}
		if d.Counts != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, d.Counts, c.want)
		}
	}
}
