package report

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trace is the output of Linux 6.12 with PREEMPT_RT, shortened; the threads 218 and "a b: irq_noise: x"
// are added.
const trace = `# tracer: osnoise
#              | |         |   |||||||      |           |             |    |            |      |      |      |      |      |
          <idle>-0       [001] dNh2.   129.900762: irq_noise: local_timer:236 start 141.926449374 duration 143198 ns
          <idle>-0       [001] d..3.   129.901610: thread_noise: swapper/1:0 start 0.000000000 duration 141927807061 ns
     migration/1-35      [001] d..3.   129.901779: thread_noise: migration/1:35 start 141.927961541 duration 91110 ns
        ksoftirq-14      [001] ..s3.   129.902000: softirq_noise:   TIMER:1 start 141.928000000 duration 40000 ns
          <idle>-0       [001] d.Z3.   129.902100: nmi_noise: start 141.928000000 duration 7000 ns
 a b [001]-218   [001] d..3.   129.920000: thread_noise: a b: irq_noise: x:218 start 141.943306263 duration 10000000 ns
 lockstep-target-219     [001] d..3.   129.921000: thread_noise: lockstep-target:219 start 141.943306263 duration 900000 ns
`

// traced writes the files of the kernel's tracing for CPU 1.
func traced(t *testing.T, clock string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{"trace_clock": clock, "per_cpu/cpu1/trace": trace} {
		path := filepath.Join(root, noiseFolder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLateTickNamesWhatTookTheCPUOfTheLoop(t *testing.T) {
	const ms = 1_000_000
	root := traced(t, "local global counter uptime perf [mono] mono_raw boot tai x86-tsc\n")
	list := readNoise(root, 1, 219)
	for _, c := range []struct {
		from, to int64 // µs
		want     map[string]int64
	}{
		{129_900_000, 129_903_000, map[string]int64{
			"irq local_timer": 143198, "thread migration/1": 91110, "softirq TIMER": 40000, "nmi": 7000}},
		{129_915_000, 129_918_000, map[string]int64{"thread a b: irq_noise: x": 3 * ms}}, // part of its time
		{129_920_000, 129_921_000, map[string]int64{}},                                   // the loop itself
	} {
		got := takenBetween(list, c.from*1000, c.to*1000)
		if !maps.Equal(got, c.want) {
			t.Errorf("%d to %d us: %v, want %v", c.from, c.to, got, c.want)
		}
		v := LateTick{Taken: got}
		name := mostNoise(c.want)
		if text := fmt.Sprintf("; %s took %.3f ms", name, float64(c.want[name])/1e6); strings.Contains(v.String(), text) != (name != "") {
			t.Errorf("%q, want %q", v.String(), text)
		}
	}
}

func TestNoiseIsNotReadFromAnotherCPUOrClock(t *testing.T) {
	if list := readNoise(traced(t, "[local] global mono\n"), 1, 219); list != nil {
		t.Errorf("by another clock: %v", list)
	}
	if list := readNoise(traced(t, "[mono]\n"), 2, 219); list != nil {
		t.Errorf("of another CPU: %v", list)
	}
	if list := readNoise(t.TempDir(), 1, 219); list != nil {
		t.Errorf("without tracing: %v", list)
	}
}
