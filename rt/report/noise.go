package report

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// noiseFolder is the instance of the kernel's tracing in which an administrator lets the osnoise tracer
// record what takes the CPU of a loop; HOST.md has the commands. A run only reads it.
const noiseFolder = "sys/kernel/tracing/instances/lockstep"

// noise is an interrupt, a softirq or the run of a thread on the loop's CPU.
type noise struct {
	name  string // "irq local_timer", "softirq TIMER", "thread ksoftirqd/1", "nmi"
	end   int64  // ns on CLOCK_MONOTONIC, whole µs
	taken int64  // CPU time, without that of interrupts within it, ns
}

// noiseLine matches an event of the osnoise tracer in the file trace:
//
//	<idle>-0  [001] dNh2.  129.900762: irq_noise: local_timer:236 start 141.926449374 duration 143198 ns
//
// The start is on another clock than the event. The name of a thread may hold any characters.
var noiseLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^.*-\d+ +\[\d+\] \S+ +(\d+)\.(\d{6}): (irq|softirq|thread|nmi)_noise: +` +
		`(?:(.*):(\d+) )?start \d+\.\d+ duration (\d+) ns$`)
})

// parseNoise reads an event, unless it is idle time or a run of the thread loop. ok: it is an event
// that took the CPU from the loop.
func parseNoise(line string, loop int) (n noise, ok bool) {
	f := noiseLine().FindStringSubmatch(line)
	if f == nil {
		return n, false
	}
	kind, pid := f[3], f[5]
	seconds, err1 := strconv.ParseInt(f[1], 10, 32)
	micros, err2 := strconv.ParseInt(f[2], 10, 32)
	taken, err3 := strconv.ParseInt(f[6], 10, 64)
	if err := cmp.Or(err1, err2, err3); err != nil || kind == "thread" && (pid == "0" || pid == strconv.Itoa(loop)) {
		return n, false
	}
	name := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, f[4])
	return noise{strings.TrimSpace(kind + " " + name), seconds*1e9 + micros*1e3, taken}, true
}

// readNoise returns what the kernel below root has recorded of a CPU; nil: nothing, or not by
// CLOCK_MONOTONIC. loop is the thread id of the loop.
func readNoise(root string, cpu, loop int) (list []noise) {
	folder := filepath.Join(root, noiseFolder)
	clock, err := os.ReadFile(filepath.Join(folder, "trace_clock"))
	if err != nil || !strings.Contains(string(clock), "[mono]") {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(folder, "per_cpu", fmt.Sprintf("cpu%d", cpu), "trace"))
	for line := range strings.Lines(string(text)) {
		if n, ok := parseNoise(strings.TrimSuffix(line, "\n"), loop); ok {
			list = append(list, n)
		}
	}

	return list
}

// takenBetween sums, by name, the CPU time taken between two instants, ns on CLOCK_MONOTONIC.
func takenBetween(list []noise, from, to int64) map[string]int64 {
	sum := map[string]int64{}
	for _, n := range list {
		if taken := min(n.end, to) - max(n.end-n.taken, from); taken > 0 {
			sum[n.name] += taken
		}
	}

	return sum
}

// mostNoise returns the name that took the most CPU time; "": there is none.
func mostNoise(taken map[string]int64) (name string) {
	for _, other := range slices.Sorted(maps.Keys(taken)) {
		if taken[other] > taken[name] {
			name = other
		}
	}

	return name
}
