package rt

import (
	"math/rand/v2"
	"testing"

	"lockstep/io/can"
)

// Frames every 10 ms by a controller whose clock began at another time and runs 100 ppm
// off; the host stamps them up to 2 ms late, one in four at once. In 0.5 s without such a
// one the clocks seem to part by (1/4096 + 100e-6)·0.5 s = 172 us.
func TestControllerStampRemovesTheDelayOfTheHost(t *testing.T) {
	for _, drift := range []float64{-100e-6, 0, 100e-6} {
		random := rand.New(rand.NewPCG(1, 2))
		var c wireClock
		const start = int64(1.7e18)
		for i := range int64(20000) {
			wire := start + i*10e6
			hard := int64(float64(i*10e6)*(1+drift)) + 12345
			if i >= 10000 { // its clock is set
				hard -= 50e9
			}
			delay := int64(0)
			if random.IntN(4) > 0 && i != 10000 {
				delay = random.Int64N(2e6)
			}
			got := c.busTime(&can.Stamp{Soft: wire + delay, Hard: hard})
			if err := got - wire; i%10000 > 40 && !(err >= -172e3 && err <= 172e3) || got > wire+delay {
				t.Fatalf("drift %g, frame %d, stamped %d ns late: %d ns off", drift, i, delay, err)
			}
		}
	}
	var c wireClock
	if got := c.busTime(&can.Stamp{Soft: 5e9}); got != 5e9 {
		t.Errorf("without a stamp of the controller: %d", got)
	}
	if got := c.busTime(&can.Stamp{}); got != 0 {
		t.Errorf("without any: %d", got)
	}
}

// A frame without a stamp of the controller says nothing about its clock: the delay of the next frame
// is removed as before.
func TestFrameWithoutAControllerStampLeavesTheClockAlone(t *testing.T) {
	const start, delay = int64(1.7e18), int64(1e6)
	for _, between := range []can.Stamp{{Soft: start + 5e6}, {Hard: 5e6 + 1}, {}} {
		var c wireClock
		first := c.busTime(&can.Stamp{Soft: start, Hard: 1})
		if got := c.busTime(&between); got != between.Soft {
			t.Errorf("%+v: %d, want the kernel's stamp", between, got)
		}
		got := c.busTime(&can.Stamp{Soft: start + 10e6 + delay, Hard: 10e6 + 1})
		if err := got - (start + 10e6); first != start || err < 0 || err > (10e6+delay)>>12 {
			t.Errorf("after %+v a frame stamped %d ns late is %d ns off", between, delay, err)
		}
	}
}
