// Package latency owns the measurement of how late this host wakes a thread up on a grid. It
// compares the tickers of a run with cyclictest and with a C program on a timerfd, in short turns,
// idle and under a load. Reference measures cyclictest beside a loop that already ticks.
//
// It does not judge the settings of a host (package doctor); it lists objections to its own
// figures. Package load makes the load.
//
// Reading order: latency.go (Measurement), methods.go (the table of the methods compared, and the C
// programs), child.go (the process of one turn), record.go (histograms to figures), reference.go
// (Reference), host.go (Objections), report.go (keys, text and plot).
package latency

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"lockstep/deploy/load"
	"lockstep/rt/host"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Measurement is a measurement of how late the tickers of this host wake up, beside C
// programs that do the same. Each method is measured by a process of its own, in
// short turns, one after the other, idle and under a load, so that what else
// happens on the host falls on all alike.
type Measurement struct {
	For      time.Duration     // all turns together; > 0
	Period   time.Duration     // of the grid, whole µs from 100 µs to 100 ms
	CPU      int               // where they wake up; -1: chosen as for a run
	Priority int               // of SCHED_FIFO, 1 to 99
	Load     bool              // measure under a load, too
	Progress func(text string) // is told what comes; nil: nobody is
}

// What a turn of full weight takes at least where -for allows it, and how many
// wake-ups make a 99.9th percentile.
const (
	turn   = 750 * time.Millisecond
	enough = 10_000
)

var stateNames = map[bool]string{false: "idle", true: "loaded"}

// session is a measurement under way.
type session struct {
	Measurement
	ctx     context.Context
	folder  string // for the C program and what cyclictest writes
	peers   map[string]string
	others  []int         // CPUs for the load: all but the measured one
	rounds  int           // each with one turn of every method
	unit    time.Duration // a turn of weight 1
	records map[bool]map[string][]*record
	host    *hostinfo.Host
	reasons []string
	left    time.Duration
}

// Run measures. The error of a context that has ended is its own.
func (l Measurement) Run(ctx context.Context) (*Report, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	l.CPU = sched.Thread{CPU: l.CPU, Priority: l.Priority}.ChooseCPU().CPU
	s := &session{
		Measurement: l, ctx: ctx, peers: map[string]string{}, records: map[bool]map[string][]*record{false: {}, true: {}},
		host: hostinfo.Read("/", l.CPU), others: otherCPUs(l.CPU), left: l.For,
	}
	units := l.units()
	s.rounds = max(1, int(float64(l.For)/units/float64(turn)))
	s.unit = time.Duration(float64(l.For) / units / float64(s.rounds))

	folder, err := os.MkdirTemp("", "lockstep-latency")
	if err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	defer os.RemoveAll(folder)
	s.folder = folder
	s.prepare()
	lower, refused := host.RaiseTimers(l.CPU, min(l.Priority+1, 99), "latency")
	defer lower()
	if refused != nil {
		s.reason(refused.What + ": " + refused.Help)
	}
	stolen := WatchStolen(s.CPU)
	for round := range s.rounds {
		if err := s.round(round); err != nil {
			return nil, err
		}
	}

	if text := stolen.Text(); text != "" {
		s.reason(text)
	}
	return s.report()
}

// Check says in a line what is wrong with the measurement that is asked for.
func (l *Measurement) Check() error {
	const least = 20 // ticks of the shortest turn
	if l.Period < 100*time.Microsecond || l.Period > 100*time.Millisecond || l.Period%time.Microsecond != 0 {
		return fmt.Errorf("latency: period %v: use whole us from 100us to 100ms", l.Period)
	}
	if l.Priority < 1 || l.Priority > 99 {
		return fmt.Errorf("latency: priority %d of SCHED_FIFO: use 1 to 99", l.Priority)
	}
	online := hostinfo.Read("/", l.CPU).Online // empty where the host does not say
	if l.CPU >= 0 && len(online) > 0 && !slices.Contains(online, l.CPU) {
		return fmt.Errorf("latency: CPU %d: use one that this host has: %s", l.CPU, hostinfo.FormatCPUs(online))
	}
	if need := time.Duration(math.Ceil(2*least*l.units())) * l.Period; l.For < need {
		const text = "latency: %v is too short for turns of %d ticks of %v: use at least %v"
		return fmt.Errorf(text, l.For, least, l.Period, need)
	}

	return nil
}

// units is the weight of all turns of a round together.
func (l *Measurement) units() (sum float64) {
	for _, loaded := range l.states() {
		for _, m := range methods {
			sum += m.share(loaded)
		}
	}

	return sum
}

// states are idle and, if asked for, loaded.
func (l *Measurement) states() []bool {
	if l.Load {
		return []bool{false, true}
	}
	return []bool{false}
}

// reason notes why the figures are not representative, once.
func (s *session) reason(text string) {
	if !slices.Contains(s.reasons, text) {
		s.reasons = append(s.reasons, text)
	}
}

// prepare looks for what to compare with, and for what speaks against the host.
func (s *session) prepare() {
	for _, o := range Objections(s.host) {
		s.reason(o.Text)
	}
	if path, err := exec.LookPath(peerCyclictest); err == nil {
		s.peers[peerCyclictest] = path
	} else {
		s.reason("no cyclictest to compare with: apt-get install rt-tests")
	}

	if path, err := compile(s.ctx, s.folder); err == nil {
		s.peers[peerTimerfd] = path
	} else {
		s.reason("no C program on a timerfd to compare with: " + err.Error())
	}
}

// round gives every method its turn, idle and then loaded. The order is reversed
// in every other round, so that no method always has the same one before it.
func (s *session) round(round int) error {
	for _, loaded := range s.states() {
		stop := func() error { return nil }
		if loaded {
			var err error
			if stop, err = load.Start(s.others, load.Kinds()...); err != nil {
				return err
			}
		}

		for i := range methods {
			if round%2 == 1 {
				i = len(methods) - 1 - i
			}
			s.turn(&methods[i], round, loaded)
		}

		if err := stop(); err != nil {
			return err
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}

	return nil
}

// turn measures a method once; one that fails leaves nil and a reason.
func (s *session) turn(m *method, round int, loaded bool) {
	share := m.share(loaded)
	_, there := s.peers[m.name]
	if share == 0 || s.ctx.Err() != nil || (m.child == "" && !there) {
		return
	}
	length := time.Duration(share * float64(s.unit))
	if s.Progress != nil {
		s.Progress(fmt.Sprintf("round %d of %d, %s: %s, %v to go",
			round+1, s.rounds, stateNames[loaded], m.name, s.left.Round(time.Second)))
	}

	s.left -= length
	t := &chore{
		Sleep: m.sleep, Naive: m.name == naiveMethod, Busy: m.name == naiveMethod && loaded,
		Period: int64(s.Period), Points: int64(share * float64(s.unit) / float64(s.Period)), CPU: s.CPU, Priority: s.Priority,
		Warmup: min(max(int64(50*time.Millisecond/s.Period), 5), 500),
	}
	if m.spin {
		t.Spin = int64(s.spin())
	}
	// An overloaded host is late, not stuck.
	ctx, cancel := context.WithTimeout(s.ctx, 10*length+20*time.Second)
	defer cancel()
	r, err := m.measure(ctx, s.peers[m.name], s.folder, t)
	if err != nil && s.ctx.Err() == nil {
		s.reason(fmt.Sprintf("a turn of %s failed: %v", m.name, err))
	}
	if r != nil {
		for _, missing := range r.Missing {
			text := missing.What + ": " + missing.Help
			if m.child == "" {
				text = m.name + ": " + text
			}
			s.reason(text)
		}
	}

	list := s.records[loaded]
	list[m.name] = append(list[m.name], make([]*record, round-len(list[m.name]))...)
	list[m.name] = append(list[m.name], r)
}

// spin is how long before the grid point the spinning tickers wake up.
func (s *session) spin() time.Duration {
	return min(50*time.Microsecond, s.Period/4)
}

// loadText says what the load was.
func (s *session) loadText() string {
	if !s.Load {
		return noLoad
	}
	where := "the only CPU"
	if len(s.others) > 0 {
		where = "CPU " + hostinfo.FormatCPUs(s.others)
	}
	return fmt.Sprintf("%s on %s, as processes without priority", strings.Join(load.Kinds(), ", "), where)
}

// report sums up.
func (s *session) report() (*Report, error) {
	state := func(loaded bool) *ByMethod {
		all := map[string]*Figures{}
		for _, m := range methods {
			if f := figures(s.records[loaded][m.name], s.records[loaded][m.against]); f != nil {
				f.Against = m.against
				all[m.name] = f
			}
		}

		list := &ByMethod{Tickers: all, Cyclictest: all[peerCyclictest], CTimerfd: all[peerTimerfd]}
		delete(all, peerCyclictest)
		delete(all, peerTimerfd)
		return list
	}

	r := &Report{
		Idle: state(false), Load: s.loadText(), Ratios: ratioText, Host: facts(s.host),
		Period: int64(s.Period), Spin: int64(s.spin()), CPU: s.CPU, Priority: s.Priority,
		Rounds: s.rounds, Seconds: s.For.Seconds(),
	}
	r.ByMethod = *r.Idle
	if s.Load {
		r.ByMethod = *state(true)
	}
	for _, name := range []string{sched.Timerfd, sched.Nanosleep} {
		if r.Tickers[name] == nil {
			return nil, fmt.Errorf("latency: %s could not be measured: %s", name, strings.Join(s.reasons, "; "))
		}
	}

	least := int64(enough)
	for _, list := range []*ByMethod{r.Idle, &r.ByMethod} {
		for m, f := range list.all() {
			if m.name != naiveMethod { // it misses most of its own
				least = min(least, f.Samples)
			}
		}
	}

	if least < enough {
		need := time.Duration(float64(s.For) * 1.02 * enough / float64(least)).Round(time.Second)
		s.reason(fmt.Sprintf("p99.9 and max rest on %d wake-ups in places, fewer than %d: -for %v "+
			"gives them", least, enough, need))
	}

	r.Reasons, r.Representative = s.reasons, len(s.reasons) == 0
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	return r, nil
}
