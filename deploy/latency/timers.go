package latency

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"lockstep/rt/host"
	"lockstep/sched"
)

// TimerComparison compares the two timers of a loop. A pair of turns, one of each timer, gives a ratio;
// a disturbance by other processes thus affects single pairs only.
type TimerComparison struct {
	Period    int64            `json:"period_ns"`
	RatioP50  *float64         `json:"ratio_p50"`  // p50 of nanosleep over that of timerfd, median over the pairs; nil if not measured
	RatioP99  *float64         `json:"ratio_p99"`  // the same of p99
	RatiosP99 []float64        `json:"ratios_p99"` // ratio of p99 of each pair, in increasing order
	P50       map[string]int64 `json:"p50_ns"`     // over all turns, by timer
	P99       map[string]int64 `json:"p99_ns"`
	Reasons   []string         `json:"reasons"` // what was refused or failed: a run has other conditions
}

const (
	comparedRounds = 10                     // rounds of CompareTimers: pairs of turns
	comparedTurn   = 200 * time.Millisecond // shortest turn of CompareTimers
	comparedPoints = 20                     // fewest grid points of a turn of CompareTimers
	chance         = 0.05                   // share of the comparisons of equal timers that may find a difference
	leastGain      = 0.1                    // smallest gain that counts, as a share of p99
)

// CompareTimers measures the two timers on the host as it is, in short turns that alternate. It takes
// about 5 s, or 500 periods if that is longer. For and Load are not used. It refuses a CPU with the
// loop of a run, because the measurement would delay that loop.
func (l Measurement) CompareTimers(ctx context.Context) (*TimerComparison, error) {
	l.CPU = sched.Thread{CPU: l.CPU, Priority: l.Priority}.ChooseCPU().CPU
	if slices.Contains((&host.Reservations{}).OtherLoops(), l.CPU) {
		return nil, fmt.Errorf("latency: a bench runs on CPU %d: stop it before the timers are measured (lockstep ps)", l.CPU)
	}
	return l.measureTimers(ctx, comparedRounds)
}

// measureTimers measures the two timers in a number of rounds.
func (l Measurement) measureTimers(ctx context.Context, rounds int) (*TimerComparison, error) {
	turn := max(comparedTurn, comparedPoints*l.Period)
	l.For, l.Load = time.Duration(2*rounds)*turn, false
	if err := l.Check(); err != nil {
		return nil, err
	}
	s := &session{Measurement: l, ctx: ctx, records: map[bool]map[string][]*record{false: {}}, rounds: rounds, left: l.For}
	compared := slices.DeleteFunc(slices.Clone(methods), func(m method) bool {
		return m.name != sched.Timerfd && m.name != sched.Nanosleep
	})
	s.turnLength = time.Duration(float64(turn) / compared[0].weight(false))
	defer s.raiseTimers()()
	for round := range s.rounds {
		s.runTurns(compared, round, false)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}

	c := s.compareTimers()
	return &c, nil
}

// compareTimers compares the timers over all turns, idle and loaded.
func (s *session) compareTimers() TimerComparison {
	c := TimerComparison{
		Period: int64(s.Period), Reasons: append([]string{}, s.reasons...),
		P50: map[string]int64{}, P99: map[string]int64{},
	}
	var p50 []float64
	all := map[string][]*record{}
	for _, loaded := range s.states() {
		nanosleep, timerfd := s.records[loaded][sched.Nanosleep], s.records[loaded][sched.Timerfd]
		all[sched.Nanosleep] = append(all[sched.Nanosleep], nanosleep...)
		all[sched.Timerfd] = append(all[sched.Timerfd], timerfd...)
		p50 = append(p50, ratios(nanosleep, timerfd, 0.5)...)
		c.RatiosP99 = append(c.RatiosP99, ratios(nanosleep, timerfd, 0.99)...)
	}

	for name, rounds := range all {
		if r := pool(rounds); r.Samples > 0 {
			c.P50[name], c.P99[name] = int64(r.quantile(0.5)), int64(r.quantile(0.99))
		}
	}

	slices.Sort(p50)
	slices.Sort(c.RatiosP99)
	c.RatioP50, c.RatioP99 = median(p50), median(c.RatiosP99)
	return c
}

// Verdict returns the timer to take in place of timer, the one of the loop, and a line with the
// reason. It is another timer only if its p99 is lower by more than a tenth, and in more pairs than
// chance explains. take is "" if there are too few pairs to decide.
func (c *TimerComparison) Verdict(timer string) (take, text string) {
	n := len(c.RatiosP99)
	need := leastWins(n)
	if need > n {
		return "", fmt.Sprintf("%d pairs of turns are too few to compare timerfd and nanosleep, %d are needed", n, fewestPairs())
	}

	lower, higher := 0, 0 // pairs that each of the two wins; an equal pair counts for both as lost
	for _, r := range c.RatiosP99 {
		if r < 1 {
			lower++
		} else if r > 1 {
			higher++
		}
	}

	ratio := *median(c.RatiosP99)
	figures := fmt.Sprintf("p99 of nanosleep is %.2f of timerfd's at %v, lower in %d of %d pairs of turns; ",
		ratio, time.Duration(c.Period), lower, n)
	figures += fmt.Sprintf("all turns: p50 %s and %s us, p99 %s and %s us",
		us(c.P50[sched.Nanosleep]), us(c.P50[sched.Timerfd]), us(c.P99[sched.Nanosleep]), us(c.P99[sched.Timerfd]))
	switch {
	case lower >= need && ratio < 1-leastGain:
		take = sched.Nanosleep
	case higher >= need && 1/ratio < 1-leastGain:
		take = sched.Timerfd
	default:
		return timer, fmt.Sprintf("no difference beyond chance: keep %s (%s)", timer, figures)
	}

	verb := "take"
	if take == timer {
		verb = "keep"
	}
	return take, fmt.Sprintf("%s %s: %s", verb, take, figures)
}

// fewestPairs returns the fewest pairs with which a difference can be told from chance.
func fewestPairs() (n int) {
	for leastWins(n) > n {
		n++
	}

	return n
}

// leastWins returns the number of n pairs in which a timer must be the better one, so that equal timers
// reach it with a probability of at most chance: the sign test, one-sided. It is n+1 if even all
// pairs are too few.
func leastWins(n int) int {
	logFactorial := func(k int) float64 {
		v, _ := math.Lgamma(float64(k) + 1)
		return v
	}
	wins := n
	for tail := 0.0; wins >= 0; wins-- { // binomial distribution, by logarithms: 2^-n may be too small for a float64
		tail += math.Exp(logFactorial(n) - logFactorial(wins) - logFactorial(n-wins) - float64(n)*math.Ln2)
		if tail > chance {
			break
		}
	}

	return wins + 1
}
