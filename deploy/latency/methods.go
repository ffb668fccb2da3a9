package latency

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"lockstep/sched"
)

// The names of the C programs and of the naive loop in the report.
const (
	peerCyclictest = "cyclictest"
	peerTimerfd    = "c_timerfd"
	naiveMethod    = "naive"
)

// method is one way to wake up on a grid. Its colour says which clock, its dash how that is used.
type method struct {
	name         string
	against      string  // its C counterpart; "" it is one
	idle, loaded float64 // weight of its turns; 0: none, since its supervisor is a load
	child        string  // childMeasure, childSupervise; "" a C program
	sleep        string  // the system call of our ticker
	spin         bool
	colour       string // of Okabe and Ito's palette, which the colour-blind can tell apart
	dash         []float64
}

// methods lists them in the order of their turns and of every table, each with its counterpart.
var methods = []method{
	{name: peerTimerfd, idle: 0.5, loaded: 1, colour: "#d55e00"},
	{
		name: sched.Timerfd, against: peerTimerfd, idle: 0.5, loaded: 1,
		child: childMeasure, sleep: sched.Timerfd, colour: "#0072b2",
	},
	{
		name: sched.Timerfd + "_supervised", against: peerTimerfd, loaded: 1,
		child: childSupervise, sleep: sched.Timerfd, colour: "#0072b2", dash: []float64{5, 2},
	},
	{
		name: sched.Timerfd + "_spin", against: peerTimerfd, idle: 0.5, loaded: 0.5,
		child: childMeasure, sleep: sched.Timerfd, spin: true, colour: "#0072b2", dash: []float64{1, 2},
	},
	{
		name: naiveMethod, against: peerTimerfd, idle: 0.5, loaded: 0.5,
		child: childMeasure, sleep: sched.Timerfd, colour: "#cc79a7",
	},
	{name: peerCyclictest, idle: 0.5, loaded: 1, colour: "#000000"},
	{
		name: sched.Nanosleep, against: peerCyclictest, idle: 0.5, loaded: 1,
		child: childMeasure, sleep: sched.Nanosleep, colour: "#009e73",
	},
	{
		name: sched.Nanosleep + "_supervised", against: peerCyclictest, loaded: 1,
		child: childSupervise, sleep: sched.Nanosleep, colour: "#009e73", dash: []float64{5, 2},
	},
	{
		name: sched.Nanosleep + "_spin", against: peerCyclictest, idle: 0.5, loaded: 0.5,
		child: childMeasure, sleep: sched.Nanosleep, spin: true, colour: "#009e73", dash: []float64{1, 2},
	},
}

// share is the weight of the method's turns in one state of the host.
func (m *method) share(loaded bool) float64 {
	if loaded {
		return m.loaded
	}
	return m.idle
}

// measure runs the process of one turn; program is that of a C program, folder for its result.
func (m *method) measure(ctx context.Context, program, folder string, t *chore) (*record, error) {
	switch m.name {
	case peerCyclictest:
		return runCyclictest(ctx, program, folder, t)
	case peerTimerfd:
		return runRecord(ctx, timerfdC(program, t))
	}

	return runRecord(ctx, t.command(m.child))
}

// runRecord runs a process that writes a record.
func runRecord(ctx context.Context, cmd *exec.Cmd) (*record, error) {
	out, err := output(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return parseRecord(out)
}

// runCyclictest runs cyclictest with its result in a folder; its housekeeping thread goes to
// another CPU where there is one.
func runCyclictest(ctx context.Context, program, folder string, t *chore, flags ...string) (*record, error) {
	other := -1
	if list := otherCPUs(t.CPU); len(list) > 0 {
		other = list[0]
	}
	result := filepath.Join(folder, "cyclictest.json")
	cmd := cyclictest(program, result, t, other)
	cmd.Args = append(cmd.Args, flags...)
	if _, err := output(ctx, cmd); err != nil {
		return nil, err
	}

	text, err := os.ReadFile(result)
	if err != nil {
		return nil, err
	}
	return parseCyclictest(text, t.Period)
}

//go:embed csource/timerfd.c
var timerfdSource []byte

// errNoCompiler is a host without cc, gcc and clang.
var errNoCompiler = errors.New("no C compiler: apt-get install gcc libc6-dev")

// compile makes the C program that waits on a timerfd, in folder. A nil program
// comes with the reason.
func compile(ctx context.Context, folder string) (program string, err error) {
	var cc string
	for _, name := range []string{"cc", "gcc", "clang"} {
		if cc, err = exec.LookPath(name); err == nil {
			break
		}
	}

	if cc == "" {
		return "", errNoCompiler
	}
	source := filepath.Join(folder, "timerfd.c")
	if err := os.WriteFile(source, timerfdSource, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(folder, "timerfd")
	cmd := exec.Command(cc, "-std=gnu11", "-O2", "-o", program, source)
	if _, err := output(ctx, cmd); err != nil {
		return "", fmt.Errorf("%s: %w (apt-get install gcc libc6-dev)", cc, err)
	}
	return program, nil
}

// timerfdC is the C program's turn at a chore.
func timerfdC(program string, t *chore) *exec.Cmd {
	var words []string
	for _, n := range []int64{int64(t.CPU), int64(t.Priority), t.Period, t.Warmup, t.Points} {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return exec.Command(program, words...)
}

// farthest is the last class of cyclictest's histogram, µs. It is longer than ours
// because the wake-ups over one period, and the points they missed, are counted
// from it.
const farthest = 200_000

// cyclictest is its turn at a chore: the same period, priority, CPU and locked
// memory; it holds the DMA latency at 0 by itself. It writes its result to file.
// Its housekeeping thread goes to another CPU, other; -1: there is none.
func cyclictest(program, file string, t *chore, other int) *exec.Cmd {
	words := []string{
		"--mlockall", "--quiet", "--threads=1", "--clock=0", "--histfile=/dev/null",
		"--histogram=" + strconv.Itoa(farthest), "--json=" + file,
		"--priority=" + strconv.Itoa(t.Priority), "--affinity=" + strconv.Itoa(t.CPU),
		"--interval=" + strconv.FormatInt(t.Period/1000, 10),
		"--loops=" + strconv.FormatInt(t.Points, 10),
	}
	if t.Priority > 0 {
		words = append(words, "--policy=fifo")
	}
	if other >= 0 {
		words = append(words, "--mainaffinity="+strconv.Itoa(other))
	}
	return exec.Command(program, words...)
}

// parseCyclictest reads what cyclictest --json wrote: one thread, classes of 1 µs,
// latencies cut to whole µs. period is in ns.
func parseCyclictest(text []byte, period int64) (*record, error) {
	var report struct {
		Thread map[string]struct {
			Histogram map[int]int64 `json:"histogram"`
			Cycles    int64         `json:"cycles"`
			Max       int64         `json:"max"`
		} `json:"thread"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("cyclictest: its report: %w", err)
	}
	thread, ok := report.Thread["0"]
	if !ok || len(report.Thread) != 1 {
		return nil, fmt.Errorf("cyclictest: its report has %d threads, not thread 0 alone", len(report.Thread))
	}
	r := &record{Counts: Counts{Max: thread.Max * 1000}, Histogram: map[int]int64{}}
	note := func(class, n int64) {
		points := class * 1000 / period // passed while it was late
		if class < sched.Micros {       // what is later is off the chart
			r.Histogram[int(class)] = n
		} else {
			r.OffChart += n
		}

		if points > 0 {
			r.OverPeriod += n
			r.Missed += n * points
		}

		r.Samples += n
	}

	for class, n := range thread.Histogram {
		if class < 0 || n < 0 {
			return nil, fmt.Errorf("cyclictest: its report counts %d wake-ups of %d us", n, class)
		}
		note(int64(class), n)
	}

	// What is beyond its histogram is only known to be at most the largest.
	if beyond := thread.Cycles - r.Samples; beyond > 0 {
		note(max(thread.Max, farthest), beyond)
	}
	if r.Samples == 0 {
		return nil, errors.New("cyclictest: its report has no wake-ups")
	}
	return r, nil
}
