package latency

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/rt/host"
	"lockstep/sched"
)

// comparison returns the comparison of pairs of turns with these ratios of nanosleep to timerfd; each
// turn has 100 wake-ups of the same latency.
func comparison(ratios ...float64) TimerComparison {
	s := &session{Measurement: Measurement{Period: time.Millisecond}, records: map[bool]map[string][]*record{false: {}}}
	add := func(name string, ns float64) {
		late := slices.Repeat([]int64{int64(ns)}, 100)
		s.records[false][name] = append(s.records[false][name], recordOf(1_000_000, late...))
	}
	for _, r := range ratios {
		add(sched.Timerfd, 200_000)
		add(sched.Nanosleep, 200_000*r)
	}
	return s.compareTimers()
}

func TestVerdictNamesTheTimerThatIsBetterBeyondChance(t *testing.T) {
	repeat := func(n int, r float64, others ...float64) []float64 {
		return append(slices.Repeat([]float64{r}, n), others...)
	}
	for _, c := range []struct {
		ratios             []float64
		timerfd, nanosleep string // timer to take for a loop with a timerfd, and for one with nanosleep
		text               string // part of the text for a loop with a timerfd
	}{
		{repeat(10, 0.8), "nanosleep", "nanosleep", "take nanosleep: p99 of nanosleep is 0.80 of timerfd's at 1ms, lower in 10 of 10 pairs"},
		{repeat(9, 0.8, 30), "nanosleep", "nanosleep", "take nanosleep: "},
		{repeat(8, 0.8, 1.2, 1.2), "timerfd", "nanosleep", "no difference beyond chance: keep timerfd ("},
		{repeat(10, 0.95), "timerfd", "nanosleep", "no difference beyond chance: keep timerfd ("}, // always lower, by less than a tenth
		{repeat(10, 1), "timerfd", "nanosleep", "no difference beyond chance: keep timerfd ("},
		{repeat(10, 1.3), "timerfd", "timerfd", "keep timerfd: p99 of nanosleep is 1.30 of timerfd's at 1ms, lower in 0 of 10 pairs"},
		{repeat(5, 0.8), "nanosleep", "nanosleep", "take nanosleep: "},
		{repeat(4, 0.8, 1.2), "timerfd", "nanosleep", "no difference beyond chance: keep timerfd ("},
		{repeat(4, 0.1), "", "", "4 pairs of turns are too few to compare timerfd and nanosleep, 5 are needed"},
		{nil, "", "", "0 pairs of turns are too few"},
		{repeat(7000, 0.8, repeat(3000, 1.2)...), "nanosleep", "nanosleep", "lower in 7000 of 10000 pairs"},
	} {
		compared := comparison(c.ratios...)
		take, text := compared.Verdict(sched.Timerfd)
		if take != c.timerfd || !strings.Contains(text, c.text) {
			t.Errorf("%d pairs, timerfd: take %q: %s; want %q: %s", len(c.ratios), take, text, c.timerfd, c.text)
		}
		if take, text := compared.Verdict(sched.Nanosleep); take != c.nanosleep || c.nanosleep == "nanosleep" && !strings.Contains(text, "keep nanosleep") {
			t.Errorf("%d pairs, nanosleep: take %q: %s; want %q", len(c.ratios), take, text, c.nanosleep)
		}
	}
}

// Row n of Pascal's triangle counts the outcomes of n fair pairs by the number of wins.
func TestChanceReachesTheNeededPairsInAtMostOneOfTwentyComparisons(t *testing.T) {
	row := []float64{1}
	for n := range 40 {
		tail := func(wins int) (sum float64) { // probability of at least wins of n
			for _, count := range row[min(max(wins, 0), n+1):] {
				sum += count
			}
			return sum / math.Exp2(float64(n))
		}
		need := leastWins(n)
		if p := tail(need); !(p <= chance) {
			t.Errorf("%d of %d: chance reaches them with %g", need, n, p)
		}
		if p := tail(need - 1); !(p > chance) {
			t.Errorf("%d of %d are needed, but chance reaches one less with %g only", need, n, p)
		}
		next := []float64{1}
		for k := range n {
			next = append(next, row[k]+row[k+1])
		}
		row = append(next, 1)
	}
	if got := []int{leastWins(4), leastWins(5), leastWins(10), fewestPairs()}; !slices.Equal(got, []int{5, 5, 9, 5}) {
		t.Errorf("of 4, 5 and 10 pairs %v are needed, want 5 (too few), 5 and 9; 5 pairs at least", got)
	}
}

func TestFailedTurnsAndLoadedRoundsFormNoFalsePairs(t *testing.T) {
	turn := func(us int64) *record { return recordOf(1_000_000, slices.Repeat([]int64{us * 1000}, 100)...) }
	s := &session{
		Measurement: Measurement{Period: time.Millisecond, Load: true}, reasons: []string{"a turn failed"},
		records: map[bool]map[string][]*record{
			false: {sched.Timerfd: {turn(100), nil, turn(300)}, sched.Nanosleep: {turn(50), turn(1), turn(300)}},
			true:  {sched.Timerfd: {turn(400)}, sched.Nanosleep: {turn(800), turn(1)}},
		},
	}
	c := s.compareTimers()
	want := []float64{0.5, 1, 2}
	if !slices.EqualFunc(c.RatiosP99, want, func(a, b float64) bool { return scalar.EqualWithinRel(a, b, 0.02) }) ||
		!scalar.EqualWithinRel(*c.RatioP50, 1, 0.02) || !scalar.EqualWithinRel(*c.RatioP99, 1, 0.02) || len(c.Reasons) != 1 {
		t.Errorf("ratios %v, medians %v and %v, reasons %q; want %v, 1, 1, one reason", c.RatiosP99, *c.RatioP50, *c.RatioP99, c.Reasons, want)
	}
}

func TestBothTimersAreMeasuredInTurns(t *testing.T) {
	var order []string
	l := Measurement{Period: time.Millisecond, CPU: -1, Priority: 80}
	l.Progress = func(text string) { order = append(order, text) }
	const rounds = 3
	c, err := l.measureTimers(t.Context(), rounds)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.RatiosP99) == 0 || len(c.RatiosP99) > rounds || c.RatioP50 == nil || !(*c.RatioP50 > 0) || c.Period != 1_000_000 {
		t.Errorf("%+v; want up to %d pairs", c, rounds)
	}
	if len(order) != 2*rounds || !strings.Contains(order[0], "timerfd") || !strings.Contains(order[1], "nanosleep") ||
		!strings.Contains(order[2], "nanosleep") || !strings.Contains(order[3], "timerfd") {
		t.Errorf("turns %q", order)
	}
	if left := children(t); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestTimersAreNotMeasuredBesideALoop(t *testing.T) {
	const cpu = 1000 // no test runs a loop there
	name := sched.Reservation{What: host.CPUPrefix + strconv.Itoa(cpu), Role: "supervisor", Process: os.Getpid(), Owner: "test"}
	for _, what := range []string{name.What, name.String()} {
		fd, err := sched.Reserve(what)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	_, err := Measurement{Period: time.Millisecond, CPU: cpu, Priority: 80}.CompareTimers(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a bench runs on CPU 1000") {
		t.Errorf("%v", err)
	}
}

func TestReportEndsWithTheVerdictOnTheTimers(t *testing.T) {
	r := sampleReport()
	r.Timers = comparison(slices.Repeat([]float64{0.8}, 10)...)
	var out bytes.Buffer
	r.Text(&out)
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.HasSuffix(text, "timer: take nanosleep: p99 of nanosleep is 0.80 of timerfd's at 1ms, lower in 10 of 10 pairs of turns; all turns: p50 160.0 and 200.0 us, p99 160.0 and 200.0 us") {
		t.Errorf("the report ends with %q", text[max(0, len(text)-200):])
	}
}
