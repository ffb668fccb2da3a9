package sched

import (
	"math/rand/v2"
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

func TestVirtualPassesEveryPointAtItsInstant(t *testing.T) {
	v := NewVirtual(5 * time.Millisecond)
	for k := int64(1); k <= 100; k++ {
		if n, err := v.Wait(); n != 1 || err != nil {
			t.Fatalf("Wait %d = %d, %v, want 1", k, n, err)
		}
		if v.Now() != v.Grid().Due(k) || v.Now() != k*5_000_000 {
			t.Fatalf("at point %d the instant is %d ns", k, v.Now())
		}
	}
}

func TestVirtualInjectsMisses(t *testing.T) {
	v := NewVirtual(time.Millisecond)
	v.Miss(9, 5)
	v.Miss(3, 2) // in any order
	v.Miss(4, 1) // inside the one before: it extends it
	v.Miss(20, 0)
	want := []int64{1, 1, 1 + 2 + 1, 1, 1, 1 + 5, 1}
	var k int64
	for i, w := range want {
		n, _ := v.Wait()
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

// The number of points that Wait has returned is the number of points that have
// passed: never more than the clock says, never less than it said before Wait.
func TestTimerfdCountsEveryExpiration(t *testing.T) {
	const period = time.Millisecond
	tk, err := NewTimerfd(period)
	if err != nil {
		t.Fatal(err)
	}
	defer tk.Close()
	if err := tk.Start(); err != nil {
		t.Fatal(err)
	}
	g := tk.Grid()
	var k, most int64
	for range 60 {
		if rand.IntN(3) == 0 { // late on purpose
			time.Sleep(time.Duration(rand.IntN(8)) * period)
		}
		before := tk.Now()
		n, err := tk.Wait()
		if err != nil {
			t.Fatal(err)
		}
		after := tk.Now()
		k += n
		most = max(most, n)
		if n < 1 || g.Due(k) > after || g.Due(k+1) <= before {
			t.Fatalf("Wait = %d: point %d of %v is due %d ns after the start, Wait lasted from %d to %d ns",
				n, k, period, g.Due(k)-g.Start, before-g.Start, after-g.Start)
		}
	}
	if most < 2 {
		t.Errorf("slept through several periods, but Wait never returned more than %d", most)
	}
}

func TestTimerfdStartsAnewAtEachStart(t *testing.T) {
	tk, err := NewTimerfd(2 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer tk.Close()
	for range 3 {
		if err := tk.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := tk.Wait(); err != nil || tk.Now() < tk.Grid().Due(1) {
			t.Errorf("Wait returned %d ns before point 1, %v", tk.Grid().Due(1)-tk.Now(), err)
		}
		time.Sleep(5 * time.Millisecond) // expirations that the next Start forgets
	}
}

func TestTimerfdRefusesAPeriodThatIsNotPositive(t *testing.T) {
	for _, period := range []time.Duration{0, -time.Second} {
		if _, err := NewTimerfd(period); err == nil {
			t.Errorf("NewTimerfd(%v) succeeds", period)
		}
	}
}

func TestWaitAfterCloseIsAnError(t *testing.T) {
	tk, err := NewTimerfd(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := tk.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := tk.Wait(); err == nil {
		t.Errorf("Wait on a closed timer = %d without an error", n)
	}
}

func TestTickersDoNotAllocate(t *testing.T) {
	tk, err := NewTimerfd(100 * time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	defer tk.Close()
	v := NewVirtual(time.Millisecond)
	for k := int64(1); k < 1000; k += 10 {
		v.Miss(k, 3)
	}
	for _, c := range []Ticker{tk, v} {
		if n := testing.AllocsPerRun(5, func() { _ = c.Start() }); n != 0 {
			t.Errorf("%T.Start allocates %v times", c, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			_, _ = c.Wait()
			_ = c.Now() - c.Grid().Due(1)
		}); n != 0 {
			t.Errorf("%T.Wait allocates %v times", c, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Now(); Faults() }); n != 0 {
		t.Errorf("Now and Faults allocate %v times", n)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
