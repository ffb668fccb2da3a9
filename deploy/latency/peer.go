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
)

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
	cmd := exec.CommandContext(ctx, cc, "-std=gnu11", "-O2", "-o", program, source)
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
	r := &record{Histogram: map[int]int64{}, Max: thread.Max * 1000}
	note := func(class, n int64) {
		points := class * 1000 / period // passed while it was late
		if class < classes {
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
