package progress

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudoterminal of a width, columns. far holds what is written to near.
func terminal(t *testing.T, width uint16) (far, near *os.File) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	n, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		near, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(near.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width})
	}
	if err != nil {
		t.Fatal(err)
	}
	return far, near
}

// readAll returns what was written to a terminal. It closes near.
func readAll(t *testing.T, far, near *os.File) string {
	t.Helper()
	near.Close()
	var all []byte
	for b := make([]byte, 4096); ; {
		n, err := far.Read(b)
		all = append(all, b[:n]...)
		if err != nil { // EIO: near is closed and nothing is left
			return string(all)
		}
	}
}

// begunBefore sets the begin of a line to an earlier time and makes it due at once.
func begunBefore(l *Line, ago time.Duration) *Line {
	l.begun = time.Now().Add(-ago)
	l.due = 0
	return l
}

// After 1 s of real time, 2 s of 10 s are simulated: 4 s are left.
func TestLineStatesTheTimeLeftAndIsCleared(t *testing.T) {
	far, near := terminal(t, 80)
	l := New(near, "sim")
	l.Begin(Work{Total: 2000, Unit: "s", Scale: 0.005, Digits: 1, Polled: true})
	l.estimate.begin(0, 0)
	begunBefore(l, time.Second-50*time.Millisecond).Poll(400) // up to 0.3 s more on a busy host
	l.End()
	if text, want := readAll(t, far, near), "\rsim: 2.0 of 10.0 s, 4 s left\x1b[K\r\x1b[K"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// A narrow terminal loses the note, then the name of the command, then the time left; no line wraps.
func TestLineFitsTheTerminal(t *testing.T) {
	for width, want := range map[uint16]string{
		80: "sweep größe: 120 of 1000 cases, 8 s left, 2 failed",
		45: "sweep größe: 120 of 1000 cases, 8 s left",
		30: "120 of 1000 cases, 8 s left",
		20: "120 of 1000 cases",
		10: "120 of 10",
		0:  "sweep größe: 120 of 1000 cases, 8 s left, 2 failed", // a terminal that does not say its width
	} {
		far, near := terminal(t, width)
		l := begunBefore(New(near, "sweep größe"), 0)
		l.Begin(Work{Total: 1000, Unit: "cases", Polled: true})
		l.Note("2 failed\x1b[2J\n")
		l.estimate = estimate{points: [64]point{{-time.Second, 0}}, n: 1, last: point{-time.Second, 0}}
		l.estimate.add(0, 120)
		l.Poll(120)
		text := strings.TrimSuffix(strings.TrimPrefix(readAll(t, far, near), "\r"), "\x1b[K")
		text = strings.ReplaceAll(text, "[2J", "") // without its control character
		if text != want {
			t.Errorf("%d columns: %q, want %q", width, text, want)
		}
	}
}

// What is printed stands where the line was, and a line that is drawn afterwards is below.
func TestPrintClearsTheLine(t *testing.T) {
	far, near := terminal(t, 80)
	l := begunBefore(New(near, "check"), 0)
	l.Begin(Work{What: "a", Polled: true})
	l.Poll(0)
	l.Print(func() { fmt.Fprint(near, "result") })
	l.Print(func() { fmt.Fprint(near, "more") })
	l.End()
	if text, want := readAll(t, far, near), "\rcheck: a\x1b[K\r\x1b[Kresultmore"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// A log has no line in the first 2 min, then whole lines, one per minute.
func TestALogGetsALinePerMinute(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := New(w, "sweep x")
	l.Begin(Work{Total: 8, Unit: "cases", Polled: true})
	for s := range 200 {
		l.begun = time.Now().Add(-time.Duration(s) * time.Second)
		l.Poll(int64(s / 25))
	}
	l.End()
	w.Close()
	text, err := io.ReadAll(r)
	// This test may lose the processor between its two clocks: a second more or less is right.
	want := regexp.MustCompile(`^sweep x: 4 of 8 cases, (79|80|81) s left\nsweep x: 7 of 8 cases, (19|20|21) s left\n$`)
	if err != nil || !want.Match(text) {
		t.Errorf("%q, %v; want %s", text, err, want)
	}
}

func TestPollDoesNotAllocate(t *testing.T) {
	_, near := terminal(t, 80)
	defer near.Close()
	l := begunBefore(New(near, "sim"), 0)
	l.every = 0
	l.Begin(Work{Total: 1 << 40, Unit: "s", Scale: 0.001, Digits: 1, Polled: true})
	done := int64(0)
	const draws = 50 // fewer bytes than a terminal holds
	if n := testing.AllocsPerRun(draws, func() { done += 1000; l.Poll(done) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestNilLineDoesNothing(t *testing.T) {
	var l *Line
	l.Begin(Work{})
	l.Add(1)
	l.Set(1)
	l.Count(1, 2)
	l.Note("x")
	l.Poll(1)
	printed := false
	if l.Print(func() { printed = true }); !printed || l.IsTerminal() || l.BeginPreparation("x") != nil || l.BeginReading("x") != nil {
		t.Error("a nil line is not as good as none")
	}
	l.ClearOnSignal()()
	l.End()
}

// A goroutine draws; many others count.
func TestWorkIsCountedFromManyGoroutines(t *testing.T) {
	far, near := terminal(t, 80)
	l := New(near, "sweep")
	l.every, l.due = time.Millisecond, 0
	l.Begin(Work{Total: 4000, Unit: "cases"})
	finished := make(chan struct{})
	go func() { // a terminal holds 4 kB
		defer close(finished)
		b := make([]byte, 4096)
		for {
			if _, err := far.Read(b); err != nil {
				return
			}
		}
	}()
	for range 4 {
		go func() {
			for range 1000 {
				l.Add(1)
				l.Print(func() {})
			}
		}()
	}
	for until := time.Now().Add(time.Minute); l.done.Load() < 4000; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d of 4000 items after a minute", l.done.Load())
		}
	}
	l.End()
	if l.shown {
		t.Error("the line stands after End")
	}
	near.Close()
	<-finished
}

// Each item costs 1 s; then each costs 3 s: the second half of the time tells.
func TestTimeLeftFollowsTheCostOfItems(t *testing.T) {
	var e estimate
	e.begin(0, 0)
	now := time.Duration(0)
	for i := int64(1); i <= 300; i++ {
		now += time.Second
		if i > 100 {
			now += 2 * time.Second
		}
		e.add(now, i)
		e.add(now, i) // no change
	}
	if left := e.left(now, 400); left < 290*time.Second || left > 310*time.Second {
		t.Errorf("%v left of 100 items of 3 s", left)
	}
	if a, b := e.left(now+time.Second, 400), e.left(now, 400); a != b-time.Second {
		t.Errorf("%v left, 1 s later %v", b, a)
	}
	if a, b := e.left(now+time.Hour, 400), e.left(now, 400); a < b-4*time.Second || a >= b {
		t.Errorf("%v left; %v left while an item takes an hour", b, a)
	}
	if n := e.points[:e.n]; !slices.IsSortedFunc(n, func(a, b point) int { return int(a.at - b.at) }) || e.n > len(e.points) {
		t.Errorf("points %v", n)
	}
}

// Items that an earlier run has done do not count for the rate; one long item among short ones hardly does.
func TestTimeLeftOfUnevenItems(t *testing.T) {
	var e estimate
	e.begin(0, 500)
	if left := e.left(time.Second, 1000); left != 0 {
		t.Errorf("%v left before the first item", left)
	}
	now := time.Duration(0)
	for i := range int64(200) {
		now += 100 * time.Millisecond
		if i == 150 {
			now += 2 * time.Second
		}
		e.add(now, 501+i)
	}
	if left := e.left(now, 1000); left < 30*time.Second || left > 40*time.Second {
		t.Errorf("%v left of 300 items of 0.1 s", left)
	}
}

func TestTimesArePlain(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", -time.Second: "0 s", time.Millisecond: "1 s", 99 * time.Second: "99 s", 100 * time.Second: "2 min", 3 * time.Minute: "3 min",
		99 * time.Minute: "99 min", 2*time.Hour + 5*time.Minute: "2 h 5 min", 24 * time.Hour: "24 h",
		48 * time.Hour: "2 d", 76*time.Hour - time.Minute: "3 d 4 h",
	} {
		if got := Text(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
