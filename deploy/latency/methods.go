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
	methodCyclictest = "cyclictest"
	methodTimerfdC   = "c_timerfd"
	methodNaive      = "naive"
)

// The two latencies of the kernel's timerlat tracer in the report.
const (
	methodTimerlatIRQ    = "timerlat_irq"
	methodTimerlatThread = "timerlat_thread"
)

// method is one way to wake up on a grid. The colour marks the system call, the dash its use.
type method struct {
	name         string
	against      string  // name of the C counterpart; "" for a C program
	idle, loaded float64 // weights of a turn; 0: no turn, as for a supervised ticker, which makes its own load
	child        string  // childMeasure, childSupervise; "" for a C program
	sleep        string  // system call of the ticker
	spin         bool
	deadline     bool   // thread under SCHED_DEADLINE instead of SCHED_FIFO
	tracer       bool   // measured by a tracer of the kernel, in turns of its own (tracers.go)
	colour       string // colour of Okabe and Ito's palette for the colour-blind
	dash         []float64
}

// methods lists the methods in the order of their turns and of every table.
var methods = []method{
	{name: methodTimerfdC, idle: 0.5, loaded: 1, colour: "#d55e00"},
	{
		name: sched.Timerfd, against: methodTimerfdC, idle: 0.5, loaded: 1,
		child: childMeasure, sleep: sched.Timerfd, colour: "#0072b2",
	},
	{
		name: sched.Timerfd + "_supervised", against: methodTimerfdC, loaded: 1,
		child: childSupervise, sleep: sched.Timerfd, colour: "#0072b2", dash: []float64{5, 2},
	},
	{
		name: sched.Timerfd + "_spin", against: methodTimerfdC, idle: 0.5, loaded: 0.5,
		child: childMeasure, sleep: sched.Timerfd, spin: true, colour: "#0072b2", dash: []float64{1, 2},
	},
	{
		name: sched.Timerfd + "_deadline", against: methodTimerfdC, idle: 0.5, loaded: 1, deadline: true,
		child: childMeasure, sleep: sched.Timerfd, colour: "#0072b2", dash: []float64{8, 2, 1, 2},
	},
	{
		name: methodNaive, against: methodTimerfdC, idle: 0.5, loaded: 0.5,
		child: childMeasure, sleep: sched.Timerfd, colour: "#cc79a7",
	},
	{name: methodCyclictest, idle: 0.5, loaded: 1, colour: "#000000"},
	{
		name: sched.Nanosleep, against: methodCyclictest, idle: 0.5, loaded: 1,
		child: childMeasure, sleep: sched.Nanosleep, colour: "#009e73",
	},
	{
		name: sched.Nanosleep + "_supervised", against: methodCyclictest, loaded: 1,
		child: childSupervise, sleep: sched.Nanosleep, colour: "#009e73", dash: []float64{5, 2},
	},
	{
		name: sched.Nanosleep + "_spin", against: methodCyclictest, idle: 0.5, loaded: 0.5,
		child: childMeasure, sleep: sched.Nanosleep, spin: true, colour: "#009e73", dash: []float64{1, 2},
	},
	{
		name: sched.Nanosleep + "_deadline", against: methodCyclictest, idle: 0.5, loaded: 1, deadline: true,
		child: childMeasure, sleep: sched.Nanosleep, colour: "#009e73", dash: []float64{8, 2, 1, 2},
	},
	{name: methodTimerlatIRQ, tracer: true, colour: "#56b4e9"},
	{name: methodTimerlatThread, tracer: true, colour: "#e69f00"},
}

// weight returns the weight of the method's turns on a loaded or an idle host.
func (m *method) weight(loaded bool) float64 {
	if loaded {
		return m.loaded
	}
	return m.idle
}

// measure runs the process of one turn. program is the path of a C program; its result goes to folder.
func (m *method) measure(ctx context.Context, program, folder string, t *turn) (*record, error) {
	switch m.name {
	case methodCyclictest:
		return runCyclictest(ctx, program, folder, t)
	case methodTimerfdC:
		return runRecord(ctx, timerfdCommand(program, t))
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

// runCyclictest runs cyclictest with its result in a folder. The main thread of cyclictest runs on
// another CPU if there is one.
func runCyclictest(ctx context.Context, program, folder string, t *turn, flags ...string) (*record, error) {
	other := -1
	if list := otherCPUs(t.CPU); len(list) > 0 {
		other = list[0]
	}
	result := filepath.Join(folder, "cyclictest.json")
	cmd := cyclictestCommand(program, result, t, other)
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

// errNoCompiler is the error of a host without cc, gcc and clang.
var errNoCompiler = errors.New("no C compiler: apt-get install gcc libc6-dev")

// compile builds the C program that waits on a timerfd, in folder, and returns its path.
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

// timerfdCommand returns the command of the C program for a turn.
func timerfdCommand(program string, t *turn) *exec.Cmd {
	var words []string
	for _, n := range []int64{int64(t.CPU), int64(t.Priority), t.Period, t.Warmup, t.Points} {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return exec.Command(program, words...)
}

// cyclictestClasses is the last class of cyclictest's histogram, µs. Missed grid points are counted
// from these classes, so the last one exceeds 10 ms, the end of lockstep's histogram.
const cyclictestClasses = 200_000

// cyclictestCommand returns the command of cyclictest for a turn: the same period, priority, CPU and
// locked memory. Cyclictest holds the DMA latency at 0 by itself and writes its result to file.
// Its main thread runs on the CPU other; -1 for any CPU.
func cyclictestCommand(program, file string, t *turn, other int) *exec.Cmd {
	words := []string{
		"--mlockall", "--quiet", "--threads=1", "--clock=0", "--histfile=/dev/null",
		"--histogram=" + strconv.Itoa(cyclictestClasses), "--json=" + file,
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

// parseCyclictest parses the report of cyclictest --json: one thread, classes of 1 µs, latencies
// truncated to whole µs. period is in ns.
func parseCyclictest(text []byte, period int64) (*record, error) {
	var report struct {
		Thread map[string]struct {
			Histogram map[int]int64 `json:"histogram"`
			Cycles    int64         `json:"cycles"`
			Max       int64         `json:"max"`
		} `json:"thread"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("cyclictest: invalid report: %w", err)
	}
	thread, ok := report.Thread["0"]
	if !ok || len(report.Thread) != 1 {
		return nil, fmt.Errorf("cyclictest: invalid report: expected thread 0 only, got %d threads", len(report.Thread))
	}
	r := &record{Counts: Counts{Max: thread.Max * 1000}, Histogram: map[int]int64{}}
	for class, n := range thread.Histogram {
		if class < 0 || n < 0 {
			return nil, fmt.Errorf("cyclictest: invalid report: %d wake-ups of %d us", n, class)
		}
		r.addClass(int64(class), n, period)
	}

	// Wake-ups beyond the histogram count as the largest: their classes are unknown.
	if beyond := thread.Cycles - r.Samples; beyond > 0 {
		r.addClass(max(thread.Max, cyclictestClasses), beyond, period)
	}
	if r.Samples == 0 {
		return nil, errors.New("cyclictest: invalid report: no wake-ups")
	}
	return r, nil
}
