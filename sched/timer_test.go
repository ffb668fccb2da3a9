package sched

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kinds are the combinations of sleep and spin of the tested timers.
var kinds = []struct {
	sleep string
	spin  time.Duration
}{
	{Timerfd, 0}, {Nanosleep, 0}, {Timerfd, 100 * time.Microsecond}, {Nanosleep, 100 * time.Microsecond},
}

// withTimer runs f with each kind of timer, started, of the given period.
func withTimer(t *testing.T, period time.Duration, f func(t *testing.T, tk *Timer)) {
	for _, k := range kinds {
		t.Run(fmt.Sprintf("%s spin %v", k.sleep, k.spin), func(t *testing.T) {
			tk, err := NewTimer(k.sleep, period, k.spin)
			if err != nil {
				t.Fatal(err)
			}
			defer tk.Close()
			if err := tk.Start(); err != nil {
				t.Fatal(err)
			}
			f(t, tk)
		})
	}
}

// point waits once and checks the result against the clock. Point k, the last counted point, has
// passed when Wait returns, and no point that had passed when Wait began is omitted. A late timer
// with spin counts the points whose wake-up time had come, so the last point may remain for the next
// Wait.
func point(t *testing.T, tk *Timer, k int64) int64 {
	t.Helper()
	g := tk.Grid()
	before := tk.Now()
	n := tk.Wait()
	after := tk.Now()
	if n < 1 || tk.Err() != nil {
		t.Fatalf("Wait = %d, %v", n, tk.Err())
	}
	if k += n; g.Due(k) > after || g.Due(k+1) <= before {
		t.Fatalf("Wait = %d: point %d is due %d ns after the start, Wait lasted from %d to %d ns",
			n, k, g.Due(k)-g.Start, before-g.Start, after-g.Start)
	}
	return n
}

// The number of points that Wait has returned is the number of points that have
// passed: never more than the clock says, never less than it said before Wait.
func TestTimerCountsEveryPointOnce(t *testing.T) {
	const period = time.Millisecond
	withTimer(t, period, func(t *testing.T, tk *Timer) {
		var k, most int64
		for range 60 {
			if rand.IntN(3) == 0 { // late on purpose, by no whole number of periods
				time.Sleep(time.Duration(rand.Int64N(int64(8 * period))))
			}
			n := point(t, tk, k)
			k += n
			most = max(most, n)
		}
		if most < 2 {
			t.Errorf("slept through several periods, but Wait never returned more than %d", most)
		}
	})
}

// lateness returns a quantile of the lateness of a timer over several hundred points, ns,
// which it counts as the clock does.
func lateness(t *testing.T, sleep string, spin, period time.Duration, quantile float64) int64 {
	t.Helper()
	tk, err := NewTimer(sleep, period, spin)
	if err != nil {
		t.Fatal(err)
	}
	defer tk.Close()
	if err := tk.Start(); err != nil {
		t.Fatal(err)
	}
	var h Histogram
	for k := int64(0); k < 300; {
		k += point(t, tk, k)
		h.Record(Now() - tk.Grid().Due(k))
	}
	return h.Quantile(quantile)
}

// A timer that slept for a period, not until an instant, would be late by anything
// up to a period, half of it in the median: its latenesses add up.
func TestTimerDoesNotDrift(t *testing.T) {
	for _, k := range kinds {
		// Beside the load of others the median is theirs, and a smaller part of a longer period.
		var late int64
		ms := time.Duration(1)
		for ; ms <= 8; ms *= 2 {
			if late = lateness(t, k.sleep, k.spin, ms*time.Millisecond, 0.5); late < int64(ms)*1e6/4 {
				break
			}
		}
		t.Logf("%s, spin %v: median lateness %d ns of a period of %d ms", k.sleep, k.spin, late, ms)
		if ms > 8 {
			t.Errorf("%s, spin %v: the median lateness is more than a quarter of any period", k.sleep, k.spin)
		}
	}
}

func TestSpinRemovesTheWakeUpLatency(t *testing.T) {
	for _, sleep := range []string{Timerfd, Nanosleep} {
		// The median may be that of the load of others; the fastest wake-ups are those of the timer.
		const fastest = 0.05
		var with, without int64
		for range 5 {
			with = lateness(t, sleep, 250*time.Microsecond, time.Millisecond, fastest)
			if without = lateness(t, sleep, 0, time.Millisecond, fastest); with < without/4 {
				break
			}
		}
		t.Logf("%s: lateness %d ns with a spin of 250 us, %d ns without", sleep, with, without)
		if !(with < without/4) {
			t.Errorf("%s: lateness %d ns with a spin, %d ns without; want less than a quarter", sleep, with, without)
		}
	}
}

// interrupt sends a signal that the runtime ignores (SIGURG) to the thread of the
// caller every 300 us, until stop is called; sent counts them.
func interrupt(t *testing.T) (sent *atomic.Int64, stop func()) {
	t.Helper()
	runtime.LockOSThread()
	procs := runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))) // a timer keeps one while it sleeps
	self, end, done := unix.Gettid(), make(chan bool), make(chan bool)
	sent = new(atomic.Int64)
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(300 * time.Microsecond):
				_ = unix.Tgkill(unix.Getpid(), self, unix.SIGURG)
				sent.Add(1)
			}
		}
	}()
	return sent, func() {
		runtime.UnlockOSThread()
		runtime.GOMAXPROCS(procs)
		close(end)
		<-done
	}
}

func TestSignalNeitherEndsNorShiftsAWait(t *testing.T) {
	const period = 10 * time.Millisecond
	withTimer(t, period, func(t *testing.T, tk *Timer) {
		sent, stop := interrupt(t)
		defer stop()
		var k int64
		for k < 15 || sent.Load() < 15 && k < 3000 { // a busy host sends them late
			k += point(t, tk, k)
		}
		if n := sent.Load(); n < 15 {
			t.Errorf("only %d signals were sent in %d points of %v", n, k, period)
		}
	})
}

func TestTimerRestartsAtEachStart(t *testing.T) {
	withTimer(t, 2*time.Millisecond, func(t *testing.T, tk *Timer) {
		for range 3 {
			if err := tk.Start(); err != nil {
				t.Fatal(err)
			}
			point(t, tk, 0)
			time.Sleep(5 * time.Millisecond) // points that the next Start forgets
		}
	})
}

// A timer that wakes up late between the wake-up and the instant of a point does
// not wait for it: that point is the next Wait's, together with those that have
// passed until then.
func TestSpinDoesNotDelayALatePoint(t *testing.T) {
	const period = 20 * time.Millisecond
	for _, sleep := range []string{Timerfd, Nanosleep} {
		tk, err := NewTimer(sleep, period, MaxSpin)
		if err != nil {
			t.Fatal(err)
		}
		defer tk.Close()
		for _, pause := range []time.Duration{0, period * 5 / 2} {
			if !lateBeforePoint2(t, tk) {
				t.Errorf("%s: 100 times Wait, called %v before point 2, ended after it", sleep, MaxSpin*3/4)
			}
			time.Sleep(pause)
			point(t, tk, 1)
		}
	}
}

// lateBeforePoint2 calls the first Wait after the wake-up for point 2, which then
// returns 1 before that point; false: the host is late whenever it is tried.
func lateBeforePoint2(t *testing.T, tk *Timer) bool {
	t.Helper()
	for range 100 {
		if err := tk.Start(); err != nil {
			t.Fatal(err)
		}
		due := tk.Grid().Due(2)
		// A busy host lets a thread run soon that has slept, and one that spins for long not.
		time.Sleep(time.Duration(due-Now()) - MaxSpin)
		for Now() < due-int64(MaxSpin)*3/4 {
		}
		if n, after := tk.Wait(), Now(); after < due {
			if n != 1 {
				t.Errorf("Wait before point 2 = %d", n)
			}
			return true
		}
	}
	return false
}

func TestNewTimerRefusesInvalidPeriods(t *testing.T) {
	for _, c := range []struct {
		sleep        string
		period, spin time.Duration
		want         string
	}{
		{Timerfd, 0, 0, "period 0s"},
		{Nanosleep, -time.Second, 0, "period -1s"},
		{Timerfd, time.Millisecond, 251 * time.Microsecond, "use 0 to 250µs"},
		{Timerfd, time.Second, 1001 * time.Microsecond, "use 0 to 1ms"},
		{Nanosleep, time.Second, -1, "spin -1ns"},
		{"", time.Second, 0, `timer "": use timerfd or nanosleep`},
	} {
		tk, err := NewTimer(c.sleep, c.period, c.spin)
		if err == nil {
			tk.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewTimer(%q, %v, %v): %v, want: %s", c.sleep, c.period, c.spin, err, c.want)
		}
	}
}

func TestNewTimerAcceptsTheBoundsOfPeriodAndSpin(t *testing.T) {
	for _, c := range []struct{ period, spin time.Duration }{
		{1, 0}, {time.Millisecond, 250 * time.Microsecond}, {time.Second, MaxSpin},
	} {
		tk, err := NewTimer(Nanosleep, c.period, c.spin)
		if err != nil {
			t.Fatal(err)
		}
		if err := tk.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWaitAfterCloseFailsWithAnError(t *testing.T) {
	withTimer(t, time.Millisecond, func(t *testing.T, tk *Timer) {
		point(t, tk, 0)
		if err := tk.Close(); err != nil {
			t.Fatal(err)
		}
		n := tk.Wait()
		if n == 1 { // a point that it had woken up for before, late
			n = tk.Wait()
		}
		if n != 0 || !errors.Is(tk.Err(), unix.EBADF) {
			t.Errorf("Wait on a closed timer = %d, %v", n, tk.Err())
		}
	})
}

func TestErrorOfATimerNamesItsSystemCall(t *testing.T) {
	for sleep, want := range map[string]string{Timerfd: "read", Nanosleep: "clock_nanosleep"} {
		tk, err := NewTimer(sleep, time.Millisecond, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := tk.Err(); err != nil {
			t.Errorf("%s, before an error: %v", sleep, err)
		}
		tk.errno = unix.EINVAL
		var call *os.SyscallError
		if err := tk.Err(); !errors.As(err, &call) || call.Syscall != want || !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v, want an error of %s", sleep, err, want)
		}
		if err := tk.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A clock that does not reach the grid point costs a spin as many readings as fit in it, counted in the time
// of the thread.
func TestSpinEndsAlsoBeforeItsGridPoint(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cost := func(f func()) int64 {
		var before, after unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before)
		f()
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after)
		return after.Nano() - before.Nano()
	}
	tk := &Timer{spin: int64(200 * time.Microsecond)}
	times := math.Inf(1)
	for range 25 { // the host may count time of others
		readings := cost(func() {
			for range tk.spin / minClockRead {
				Now()
			}
		})
		times = min(times, float64(cost(func() { tk.spinUntil(math.MaxInt64) }))/float64(readings))
		if times < 10 {
			break
		}
	}
	if !(times < 10) {
		t.Errorf("a spin takes %.1f times as long as its readings", times)
	}
}

// The kernel names what a descriptor is: proc_pid_fd(5).
func TestTimerSleepsInTheSystemCallOfItsName(t *testing.T) {
	for _, sleep := range []string{Timerfd, Nanosleep} {
		before := descriptors(t, "timerfd")
		tk, err := NewTimer(sleep, time.Millisecond, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := descriptors(t, "timerfd") - before
		if err := tk.Close(); err != nil {
			t.Fatal(err)
		}
		left := descriptors(t, "timerfd") - before
		if want := map[string]int{Timerfd: 1, Nanosleep: 0}[sleep]; n != want || left != 0 {
			t.Errorf("a timer that sleeps in %s has %d timerfds and leaves %d; want %d, 0", sleep, n, left, want)
		}
	}
}

// descriptors returns how many descriptors of a kind this process has.
func descriptors(t *testing.T, kind string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range list {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(name, kind) {
			n++
		}
	}
	return n
}

func TestTickersDoNotAllocate(t *testing.T) {
	v := NewVirtual(time.Millisecond)
	for k := int64(1); k < 1000; k += 10 {
		v.Miss(k, 3)
	}
	tickers := []Ticker{v}
	for _, k := range kinds {
		tk, err := NewTimer(k.sleep, 400*time.Microsecond, k.spin)
		if err != nil {
			t.Fatal(err)
		}
		defer tk.Close()
		tickers = append(tickers, tk)
	}
	for _, c := range tickers {
		if n := testing.AllocsPerRun(5, func() { _ = c.Start() }); n != 0 {
			t.Errorf("%T.Start allocates %v times", c, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			_ = c.Wait()
			_ = c.Now() - c.Grid().Due(1)
		}); n != 0 {
			t.Errorf("%T.Wait allocates %v times", c, n)
		}
	}
	var u Usage
	if n := testing.AllocsPerRun(100, func() { Now(); Faults(); u.Read() }); n != 0 {
		t.Errorf("Now, Faults and Usage.Read allocate %v times", n)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}

func BenchmarkUsage(b *testing.B) {
	var u Usage
	for b.Loop() {
		u.Read()
	}
}
