// Package latency owns the measurement of how late this host wakes a thread up on a grid. It
// compares the tickers of a run with cyclictest and with a C program on a timerfd, in short turns,
// idle and under a load. Reference measures cyclictest beside a loop that already ticks.
//
// It does not judge the settings of a host (package doctor); it says what speaks against its own
// figures. The load is that of package load.
//
// Reading order: latency.go (Measurement), child.go (the process of one turn), peer.go (the C
// programs), record.go (histograms to figures), reference.go (Reference), host.go (Objections),
// report.go, text.go and svg.go (what is shown).
package latency

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/deploy/hostinfo"
	"lockstep/deploy/load"
	"lockstep/sched"
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

	// Raise puts the timers of a CPU above a priority until lower is called; nil: sched.Timers
	// does, which a kill leaves as they are then.
	Raise func(cpu, priority int) (lower func(), m *sched.Missing)
}

// What a turn of full weight takes at least where -for allows it, and how many
// wake-ups make a 99.9th percentile.
const (
	turn   = 750 * time.Millisecond
	enough = 10_000
)

// method is one way to wake up on a grid.
type method struct {
	name    string
	against string  // its C counterpart; "" it is one
	weight  float64 // of its turns under load
	sleep   string  // the system call of our ticker; "" it is none
	spin    bool
	child   string // childMeasure, childSupervise
}

// The names of the C programs in the report.
const (
	peerCyclictest = "cyclictest"
	peerTimerfd    = "c_timerfd"
	naiveMethod    = "naive"
)

// methods lists them in the order of their turns: beside its counterpart.
func methods() []method {
	return []method{
		{sched.Timerfd, peerTimerfd, 1, sched.Timerfd, false, childMeasure},
		{peerTimerfd, "", 1, "", false, ""},
		{sched.Timerfd + "_supervised", peerTimerfd, 1, sched.Timerfd, false, childSupervise},
		{sched.Nanosleep + "_supervised", peerCyclictest, 1, sched.Nanosleep, false, childSupervise},
		{peerCyclictest, "", 1, "", false, ""},
		{sched.Nanosleep, peerCyclictest, 1, sched.Nanosleep, false, childMeasure},
		{sched.Timerfd + "_spin", peerTimerfd, 0.5, sched.Timerfd, true, childMeasure},
		{sched.Nanosleep + "_spin", peerCyclictest, 0.5, sched.Nanosleep, true, childMeasure},
		{naiveMethod, peerTimerfd, 0.5, sched.Timerfd, false, childMeasure},
	}
}

// share is the weight of a method's turns, idle ones being half as long; 0: none.
func (m method) share(loaded bool) float64 {
	switch {
	case loaded:
		return m.weight
	case m.child == childSupervise: // whose supervisor is a load
		return 0
	}
	return 0.5
}

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
	l.CPU = sched.Thread{CPU: l.CPU, Priority: l.Priority}.Choose().CPU
	s := &session{Measurement: l, ctx: ctx, peers: map[string]string{}, records: map[bool]map[string][]*record{false: {}, true: {}}}
	s.host = hostinfo.Read("/", l.CPU)
	s.plan()
	if err := s.allowed(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "lockstep-latency")
	if err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	defer os.RemoveAll(folder)
	s.folder = folder
	s.prepare()
	lower, refused := l.raise(min(l.Priority+1, 99))
	defer lower()
	if refused != nil {
		s.reason(refused.What + ": " + refused.Help)
	}
	begin, stolen := time.Now(), hostinfo.Stolen("/", s.CPU)
	for round := range s.rounds {
		if err := s.round(round); err != nil {
			return nil, err
		}
	}
	const tick = 10 * time.Millisecond // of /proc/stat
	if d := time.Duration(hostinfo.Stolen("/", s.CPU)-stolen) * tick; d > 0 {
		s.reason(fmt.Sprintf("the hypervisor kept CPU %d from running for %v of %v", s.CPU, d, time.Since(begin).Round(time.Second)))
	}
	return s.report()
}

// ArgError is a field of a measurement with a value that it cannot have.
type ArgError struct {
	Field string // of Measurement: "For", "Period", "CPU", "Priority"
	Text  string
	Least time.Duration // For must have at least; else 0
}

func (e *ArgError) Error() string { return "latency: " + e.Text }

// Check says what is wrong with the measurement that is asked for, as an *ArgError.
func (l *Measurement) Check() error {
	const least = 20 // ticks of the shortest turn
	if l.Period < 100*time.Microsecond || l.Period > 100*time.Millisecond || l.Period%time.Microsecond != 0 {
		return &ArgError{Field: "Period", Text: fmt.Sprintf("period %v: use whole us from 100us to 100ms", l.Period)}
	}
	if l.Priority < 1 || l.Priority > 99 {
		return &ArgError{Field: "Priority", Text: fmt.Sprintf("priority %d of SCHED_FIFO: use 1 to 99", l.Priority)}
	}
	online := hostinfo.Read("/", l.CPU).Online // empty where the host does not say
	if l.CPU >= 0 && len(online) > 0 && !slices.Contains(online, l.CPU) {
		return &ArgError{Field: "CPU", Text: fmt.Sprintf("CPU %d: use one that this host has: %s", l.CPU, hostinfo.FormatCPUs(online))}
	}
	if need := time.Duration(math.Ceil(2*least*l.units())) * l.Period; l.For < need {
		return &ArgError{Field: "For", Least: need, Text: fmt.Sprintf("%v is too short for turns of %d ticks of %v: use at least %v", l.For, least, l.Period, need)}
	}
	return nil
}

// units is the weight of all turns of a round together.
func (l *Measurement) units() (sum float64) {
	for _, m := range methods() {
		for _, loaded := range l.states() {
			sum += m.share(loaded)
		}
	}
	return sum
}

// plan divides the time into rounds and turns.
func (s *session) plan() {
	round := s.units() * float64(turn)
	s.rounds = max(1, int(float64(s.For)/round))
	s.unit = time.Duration(float64(s.For) / s.units() / float64(s.rounds))
	s.left = s.For
}

func (s *session) points(weight float64) int64 {
	return int64(weight * float64(s.unit) / float64(s.Period))
}

// states are idle and, if asked for, loaded.
func (l *Measurement) states() []bool {
	if l.Load {
		return []bool{false, true}
	}
	return []bool{false}
}

// allowed finds the CPUs for the load: those that the process starts with, which
// has no isolated ones.
func (s *session) allowed() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("latency: %w", os.NewSyscallError("sched_getaffinity", err))
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) && cpu != s.CPU {
			s.others = append(s.others, cpu)
		}
	}
	return nil
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
		list := methods()
		if round%2 == 1 {
			slices.Reverse(list)
		}
		for _, m := range list {
			s.turn(m, round, loaded)
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
func (s *session) turn(m method, round int, loaded bool) {
	share := m.share(loaded)
	_, there := s.peers[m.name]
	if share == 0 || s.ctx.Err() != nil || (m.child == "" && !there) {
		return
	}
	length := time.Duration(share * float64(s.unit))
	if s.Progress != nil {
		s.Progress(fmt.Sprintf("round %d of %d, %s: %s, %v to go", round+1, s.rounds, stateName(loaded), m.name, s.left.Round(time.Second)))
	}
	s.left -= length
	t := &chore{
		Sleep: m.sleep, Naive: m.name == naiveMethod, Busy: m.name == naiveMethod && loaded,
		Period: int64(s.Period), Points: s.points(share), CPU: s.CPU, Priority: s.Priority,
		Warmup: min(max(int64(50*time.Millisecond/s.Period), 5), 500),
	}
	if m.spin {
		t.Spin = int64(s.spin())
	}
	// An overloaded host is late, not stuck.
	ctx, cancel := context.WithTimeout(s.ctx, 10*length+20*time.Second)
	defer cancel()
	r, err := s.measure(ctx, m, t)
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

// stateName is idle or loaded.
func stateName(loaded bool) string {
	if loaded {
		return "loaded"
	}
	return "idle"
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
		for _, m := range methods() {
			f := figures(s.records[loaded][m.name], s.records[loaded][m.against])
			if f != nil {
				f.Against = m.against
				all[m.name] = f
			}
		}
		list := &ByMethod{Cyclictest: all[peerCyclictest], CTimerfd: all[peerTimerfd], Tickers: all}
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
		for name, f := range list.all() {
			if name != naiveMethod { // it misses most of its own
				least = min(least, f.Samples)
			}
		}
	}
	if least < enough {
		need := time.Duration(float64(s.For) * 1.02 * enough / float64(least)).Round(time.Second)
		s.reason(fmt.Sprintf("p99.9 and max rest on %d wake-ups in places, fewer than %d: -for %v gives them", least, enough, need))
	}
	r.Reasons, r.Representative = s.reasons, len(s.reasons) == 0
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	return r, nil
}

// measure runs the process of a turn.
func (s *session) measure(ctx context.Context, m method, t *chore) (*record, error) {
	var cmd *exec.Cmd
	result := filepath.Join(s.folder, "cyclictest.json")
	switch {
	case m.name == peerCyclictest:
		other := -1
		if len(s.others) > 0 {
			other = s.others[0]
		}
		cmd = cyclictest(s.peers[m.name], result, t, other)
		bind(cmd)
	case m.name == peerTimerfd:
		cmd = timerfdC(s.peers[m.name], t)
		bind(cmd)
	default:
		cmd = t.command(m.child)
	}
	out, err := output(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if m.name == peerCyclictest {
		if out, err = os.ReadFile(result); err != nil {
			return nil, err
		}
		return parseCyclictest(out, t.Period)
	}
	return parseRecord(out)
}
