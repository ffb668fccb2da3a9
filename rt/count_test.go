package rt

import (
	"testing"

	"lockstep/io/can"
)

// A gap of 10 points in 1000: the percentiles are of points, not of wake-ups, of
// which only one in 990 was late.
func TestWakeUpLatencyIsRecordedForEveryPointOfAGap(t *testing.T) {
	b := newBench(t, Overrun{Skip, 20}, func(cfg *Config, _ *integrator) { cfg.Ticks = 1000 })
	b.ticker.Miss(500, 10)
	b.turn(2000)
	late := &b.page.Late
	if late.N() != 1000 || late.Quantile(0.98) != 0 || late.Quantile(0.995) < int64(4*period) || late.Max() != int64(10*period) {
		t.Errorf("%d latenesses, p98 %d, p99.5 %d, max %d ns; want 1000, 0, at least 4 periods, 10 periods of %d ns",
			late.N(), late.Quantile(0.98), late.Quantile(0.995), late.Max(), int64(period))
	}
	b = newBench(t, Overrun{Skip, 20})
	b.ticker.Miss(5, 1e9)
	b.turn(5)
	if n := b.page.Late.N(); n != 4+maxOverrun+1 || Reason(b.page.SafeReason.Load()) != MissedLimit {
		t.Errorf("a gap of 1e9 points: %d latenesses, %v; want a bounded number, %d", n, Reason(b.page.SafeReason.Load()), 4+maxOverrun+1)
	}
}

// One of two signals out of range: the unit is there, the message is not silent.
func TestMessageWithASignalOutOfRangeCountsAsReceived(t *testing.T) {
	b := newBench(t, Overrun{})
	for _, c := range []struct {
		f    can.Frame
		want uint64
	}{
		{can.Frame{ID: 0x110, Len: 3}, 0},                                   // short
		{can.Frame{ID: 0x110, Len: 4, Data: [64]byte{0xff, 0x7f}}, 2},       // out of range
		{can.Frame{ID: 0x110, Len: 3}, 2},                                   // short again
		{can.Frame{ID: 0x110, Len: 8, Data: [64]byte{1, 0, 0, 0, 0xff}}, 4}, // longer than the message
	} {
		if !b.unit.Send(&c.f) {
			t.Fatal("the unit cannot send")
		}
		b.turn(1)
		if got := b.page.LastRx[0].Load(); got != c.want {
			t.Errorf("after a frame of %d bytes, % x, the message was last there at tick %d, want %d", c.f.Len, c.f.Data[:4], got, c.want)
		}
	}
}
