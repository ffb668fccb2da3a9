// Package latency owns the measurement of wake-up latency on this host. It compares the tickers of a
// run with cyclictest and with a C program on a timerfd, in short turns, idle and under a load.
// Reference measures cyclictest while a loop runs.
//
// The package does not judge the settings of a host (package doctor); it lists objections to its
// own figures. Package load provides the load.
//
// Reading order: latency.go (Measurement), methods.go (the compared methods and the C programs),
// child.go (the process of one turn), record.go (from histograms to figures), tracers.go (programs
// that measure with tracers of the kernel), timers.go (which of the two timers to take), reference.go
// (Reference), host.go (Objections), report.go (keys, text and picture of a report).
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

// Measurement measures the wake-up latency of the tickers and of C programs on this host. Each
// method runs in a process of its own, in short turns, one after the other, idle and under a
// load. A disturbance by other processes thus affects all methods alike.
type Measurement struct {
	For      time.Duration     // length of all turns together; > 0
	Period   time.Duration     // period of the grid, whole µs from 100 µs to 100 ms
	CPU      int               // measured CPU; -1 to choose one as a run does
	Priority int               // SCHED_FIFO priority, 1 to 99
	Load     bool              // measure under a load, too
	Progress func(text string) // called before each turn; may be nil
}

const (
	minTurn    = 750 * time.Millisecond // length of a turn of weight 1, if For is long enough
	minSamples = 10_000                 // wake-ups needed for a 99.9th percentile
)

var stateNames = map[bool]string{false: "idle", true: "loaded"}

// session is a running measurement.
type session struct {
	Measurement
	ctx        context.Context
	folder     string                        // folder of the C program and of cyclictest's result
	programs   map[string]string             // paths of the C programs by method
	loadCPUs   []int                         // all CPUs except the measured one
	rounds     int                           // rounds, with one turn of every method each
	turnLength time.Duration                 // length of a turn of weight 1
	records    map[bool]map[string][]*record // by state (true: loaded), method and round
	host       *hostinfo.Host
	tracers    []*tracer               // that can measure
	traced     map[bool]*tracerFigures // figures of the tracers by state
	reasons    []string                // reasons why the figures are not representative
	// Methods that the host does not allow, with the reason. They do not affect the other figures.
	notMeasured []string
	noDeadline  bool          // the host does not allow SCHED_DEADLINE
	left        time.Duration // length of the turns not yet run
}

// Run measures all methods. It returns ctx.Err() if ctx ends before.
func (l Measurement) Run(ctx context.Context) (*Report, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	l.CPU = sched.Thread{CPU: l.CPU, Priority: l.Priority}.ChooseCPU().CPU
	s := &session{
		Measurement: l, ctx: ctx, programs: map[string]string{}, records: map[bool]map[string][]*record{false: {}, true: {}},
		traced: map[bool]*tracerFigures{false: {}, true: {}},
		host:   hostinfo.Read("/", l.CPU), loadCPUs: otherCPUs(l.CPU), left: l.For,
	}
	if m := s.probeDeadline(); m != nil {
		s.noDeadline, s.notMeasured = true, []string{"methods named _deadline: " + m.What + ": " + m.Help}
	}
	s.prepareTracers()
	weight := s.roundWeight()
	s.rounds = max(1, int(float64(l.For)/weight/float64(minTurn)))
	s.turnLength = time.Duration(float64(l.For) / weight / float64(s.rounds))

	folder, err := os.MkdirTemp("", "lockstep-latency")
	if err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	defer os.RemoveAll(folder)
	s.folder = folder
	s.prepare()
	defer s.raiseTimers()()
	stolen := WatchStolen(s.CPU)
	for round := range s.rounds {
		if err := s.runRound(round); err != nil {
			return nil, err
		}
	}

	if err := s.runTracers(); err != nil {
		return nil, err
	}
	if text := stolen.Text(); text != "" {
		s.addReason(text)
	}
	return s.report()
}

// CheckPeriod returns an error, one line, if a period cannot be measured.
func CheckPeriod(p time.Duration) error {
	if p < 100*time.Microsecond || p > 100*time.Millisecond || p%time.Microsecond != 0 {
		return fmt.Errorf("latency: period %v: use whole us from 100us to 100ms", p)
	}
	return nil
}

// Check returns an error, one line, if a field of the measurement is out of range.
func (l *Measurement) Check() error {
	const minTicks = 20 // ticks of the shortest turn
	if err := CheckPeriod(l.Period); err != nil {
		return err
	}
	if l.Priority < 1 || l.Priority > 99 {
		return fmt.Errorf("latency: priority %d of SCHED_FIFO: use 1 to 99", l.Priority)
	}
	online := hostinfo.Read("/", l.CPU).Online // empty if unknown
	if l.CPU >= 0 && len(online) > 0 && !slices.Contains(online, l.CPU) {
		return fmt.Errorf("latency: CPU %d: use one of this host's CPUs: %s", l.CPU, hostinfo.FormatCPUs(online))
	}
	if need := time.Duration(math.Ceil(2*minTicks*(&session{Measurement: *l}).roundWeight())) * l.Period; l.For < need {
		const text = "latency: %v is too short for turns of %d ticks of %v: use at least %v"
		return fmt.Errorf(text, l.For, minTicks, l.Period, need)
	}

	return nil
}

// roundWeight returns the sum of the weights of the turns of a round on this host.
func (s *session) roundWeight() (sum float64) {
	for _, loaded := range s.states() {
		for _, m := range methods {
			if s.allows(&m) {
				sum += m.weight(loaded)
			}
		}

		sum += float64(len(s.tracers)) * tracerWeight(loaded)
	}

	return sum
}

// allows reports whether the host allows a method.
func (s *session) allows(m *method) bool { return !m.deadline || !s.noDeadline }

// probeDeadline asks the host for SCHED_DEADLINE and returns its refusal; nil: it is granted.
func (s *session) probeDeadline() *sched.Missing {
	t := turn{Sleep: sched.Nanosleep, Period: int64(s.Period), CPU: s.CPU, Priority: s.Priority, Runtime: int64(s.runtime())}
	return refusedDeadline(sched.Probe(t.thread()))
}

// states lists the measured states of the host: idle (false) and, with Load, loaded (true).
func (l *Measurement) states() []bool {
	if l.Load {
		return []bool{false, true}
	}
	return []bool{false}
}

// raiseTimers raises the kernel timers of the measured CPU, as a run does; lower restores them.
func (s *session) raiseTimers() (lower func()) {
	lower, refused := host.RaiseTimers(s.CPU, sched.TimerPriority(s.Priority), "latency")
	if refused != nil {
		s.addReason(refused.What + ": " + refused.Help)
	}
	return lower
}

// addReason adds a reason why the figures are not representative, unless it is known.
func (s *session) addReason(text string) {
	if !slices.Contains(s.reasons, text) {
		s.reasons = append(s.reasons, text)
	}
}

// prepare finds the C programs and collects the objections to the host.
func (s *session) prepare() {
	for _, o := range Objections(s.host) {
		s.addReason(o.Text)
	}
	if path, err := exec.LookPath(methodCyclictest); err == nil {
		s.programs[methodCyclictest] = path
	} else {
		s.addReason("no cyclictest to compare with: apt-get install rt-tests")
	}

	if path, err := compile(s.ctx, s.folder); err == nil {
		s.programs[methodTimerfdC] = path
	} else {
		s.addReason("no C program on a timerfd to compare with: " + err.Error())
	}
}

// runRound measures every method once, idle and then loaded.
func (s *session) runRound(round int) error {
	for _, loaded := range s.states() {
		err := s.underLoad(loaded, func() { s.runTurns(methods, round, loaded) })
		if err != nil {
			return err
		}
	}

	return nil
}

// runTurns measures each method of a list once. The order is reversed in every other round, so that
// the predecessor of a method alternates.
func (s *session) runTurns(list []method, round int, loaded bool) {
	for i := range list {
		if round%2 == 1 {
			i = len(list) - 1 - i
		}
		s.runTurn(&list[i], round, loaded)
	}
}

// underLoad measures while the load runs, or on the idle host.
func (s *session) underLoad(loaded bool, measure func()) error {
	stop := func() error { return nil }
	if loaded {
		var err error
		if stop, err = load.Start(s.loadCPUs, load.Kinds()...); err != nil {
			return err
		}
	}

	measure()
	if err := stop(); err != nil {
		return err
	}
	return s.ctx.Err()
}

// runTurn measures a method once. A failed turn has a nil record and adds a reason.
func (s *session) runTurn(m *method, round int, loaded bool) {
	weight := m.weight(loaded)
	_, found := s.programs[m.name]
	if weight == 0 || !s.allows(m) || s.ctx.Err() != nil || (m.child == "" && !found) {
		return
	}
	length := time.Duration(weight * float64(s.turnLength))
	if s.Progress != nil {
		s.Progress(fmt.Sprintf("round %d of %d, %s: %s, %v left",
			round+1, s.rounds, stateNames[loaded], m.name, s.left.Round(time.Second)))
	}

	s.left -= length
	t := &turn{
		Sleep: m.sleep, Naive: m.name == methodNaive, Busy: m.name == methodNaive && loaded,
		Period: int64(s.Period), Points: int64(weight * float64(s.turnLength) / float64(s.Period)), CPU: s.CPU, Priority: s.Priority,
		Warmup: min(max(int64(50*time.Millisecond/s.Period), 5), 500),
	}
	if m.spin {
		t.Spin = int64(s.spin())
	}
	if m.deadline {
		t.Runtime = int64(s.runtime())
	}
	// The limit allows for an overloaded host.
	ctx, cancel := context.WithTimeout(s.ctx, 10*length+20*time.Second)
	defer cancel()
	r, err := m.measure(ctx, s.programs[m.name], s.folder, t)
	if err != nil && s.ctx.Err() == nil {
		s.addReason(fmt.Sprintf("a turn of %s failed: %v", m.name, err))
	}
	if r != nil {
		for _, missing := range r.Missing {
			text := missing.What + ": " + missing.Help
			if m.child == "" {
				text = m.name + ": " + text
			}
			s.addReason(text)
		}
	}

	list := s.records[loaded]
	list[m.name] = append(list[m.name], make([]*record, round-len(list[m.name]))...)
	list[m.name] = append(list[m.name], r)
}

// spin returns the time by which the spinning tickers wake up before the grid point.
func (s *session) spin() time.Duration {
	return min(50*time.Microsecond, s.Period/4)
}

// runtime returns the CPU time that the tickers under SCHED_DEADLINE ask for in each period, as a run
// without a tick budget does.
func (s *session) runtime() time.Duration { return s.Period / 2 }

// loadText describes the load.
func (s *session) loadText() string {
	if !s.Load {
		return noLoad
	}
	where := "the only CPU"
	if len(s.loadCPUs) > 0 {
		where = "CPU " + hostinfo.FormatCPUs(s.loadCPUs)
	}
	return fmt.Sprintf("%s on %s, as processes without priority", strings.Join(load.Kinds(), ", "), where)
}

// report summarizes the records of all turns.
func (s *session) report() (*Report, error) {
	state := func(loaded bool) *ByMethod {
		all, traced := map[string]*Figures{}, s.traced[loaded]
		all[methodTimerlatIRQ] = figures([]*record{traced.irq}, nil)
		all[methodTimerlatThread] = figures([]*record{traced.thread}, nil)
		for _, m := range methods {
			if f := figures(s.records[loaded][m.name], s.records[loaded][m.against]); f != nil {
				f.Against = m.against
				all[m.name] = f
			}
		}

		list := &ByMethod{
			Tickers: all, Cyclictest: all[methodCyclictest], CTimerfd: all[methodTimerfdC],
			TimerlatIRQ: all[methodTimerlatIRQ], TimerlatThread: all[methodTimerlatThread],
			OSNoise: traced.OSNoise, Hardware: traced.Hardware,
		}
		for _, m := range methods {
			if m.child == "" {
				delete(all, m.name)
			}
		}

		return list
	}

	r := &Report{
		Idle: state(false), Load: s.loadText(), Ratios: ratioText, Host: hostOf(s.host),
		Period: int64(s.Period), Spin: int64(s.spin()), Runtime: int64(s.runtime()), NotMeasured: s.notMeasured, CPU: s.CPU, Priority: s.Priority,
		Rounds: s.rounds, Seconds: s.For.Seconds(), Timers: s.compareTimers(),
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

	fewest := int64(minSamples)
	for _, list := range []*ByMethod{r.Idle, &r.ByMethod} {
		for m, f := range list.all() {
			if m.name != methodNaive && !m.tracer { // the naive loop misses most grid points
				fewest = min(fewest, f.Samples)
			}
		}
	}

	if fewest < minSamples {
		need := time.Duration(float64(s.For) * 1.02 * minSamples / float64(fewest)).Round(time.Second)
		s.addReason(fmt.Sprintf("p99.9 and max need %d wake-ups; a method has only %d: use -for %v", minSamples, fewest, need))
	}

	r.Reasons, r.Representative = s.reasons, len(s.reasons) == 0
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	if r.NotMeasured == nil {
		r.NotMeasured = []string{}
	}
	return r, nil
}
