package sched

import (
	"testing"
	"time"
)

func TestGridPointsDoNotDrift(t *testing.T) {
	g := Grid{Start: 123_456_789, Period: 333_333} // no round part of a second
	due := g.Start
	for k := int64(1); k <= 1_000_000; k++ {
		due += g.Period // exact in integers
		if g.Due(k) != due {
			t.Fatalf("point %d is due at %d ns, want %d ns", k, g.Due(k), due)
		}
	}
	// A year of 1 ms ticks ends on the nanosecond.
	g = Grid{Start: 1, Period: 1_000_000}
	if year := int64(365 * 86_400); g.Due(year*1000) != 1+year*1_000_000_000 {
		t.Errorf("after a year the grid is at %d ns", g.Due(year*1000))
	}
}

func TestVirtualTickerPassesEveryPointAtItsInstant(t *testing.T) {
	v := NewVirtual(5 * time.Millisecond)
	for k := int64(1); k <= 100; k++ {
		if n := v.Wait(); n != 1 || v.Err() != nil {
			t.Fatalf("Wait %d = %d, %v, want 1", k, n, v.Err())
		}
		if v.Now() != v.Grid().Due(k) || v.Now() != k*5_000_000 {
			t.Fatalf("at point %d the instant is %d ns", k, v.Now())
		}
	}
}

func TestVirtualTickerInjectsMisses(t *testing.T) {
	v := NewVirtual(time.Millisecond)
	v.Miss(9, 5)
	v.Miss(3, 2) // in any order
	v.Miss(4, 1) // inside the one before: it extends it
	v.Miss(20, 0)
	want := []int64{1, 1, 1 + 2 + 1, 1, 1, 1 + 5, 1}
	var k int64
	for i, w := range want {
		n := v.Wait()
		if k += n; n != w {
			t.Errorf("Wait %d = %d, want %d", i+1, n, w)
		}
		if v.Now() != v.Grid().Due(k) {
			t.Errorf("after %d points the instant is %d ns", k, v.Now())
		}
	}
	if err := v.Start(); err != nil || v.Now() != 0 {
		t.Errorf("after Start the instant is %d ns, %v", v.Now(), err)
	}
}
