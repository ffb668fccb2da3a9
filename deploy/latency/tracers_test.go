package latency

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
)

// Outputs of rtla 6.1 on Linux 6.12 and of hwlatdetect of rt-tests 2.4, with fewer classes.
const (
	timerlatReport = `# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:06
Index   IRQ-001   Thr-001
12            1         0 
30           59         0 
31           39        99 
9842          0         1 
18000         1         0 
over:         0         2 
count:      100       102 
min:         12        31 
avg:        480       535 
max:      18000    318080 
`
	osnoiseReport = "\x1b[2;37;40m                                          Operating System Noise                     \x1b[0;0;0m\n" +
		"duration:   0 00:00:03 | time is in us\n" +
		"\x1b[2;30;47mCPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ" +
		"      Softirq       Thread\x1b[0;0;0m\n" +
		"  0 #2           2002800      1585905    20.81560      811019        33424         880            0          225            0           65\n" +
		"  1 #2           2017867      1661562    17.65750      838313        28490        1577            5          283            6            8\n"
	hwlatReport = `hwlatdetect:  test duration 3 seconds
   detector: tracer
   parameters:
        CPU list:          1
        Latency threshold: 10us
        Sample window:     1000000us
        Sample width:      500000us
     Non-sampling period:  500000us
        Output File:       None

Starting test
test finished
Max Latency: 1234us
Samples recorded: 2
Samples exceeding threshold: 2
ts: 1778500000.123456789, inner:15, outer:1234
ts: 1778500001.123456789, inner:0, outer:11
`
)

// tracedSession returns a session of 1 s per tracer on CPU 1 of a host with some files of its tracing.
// Programs of these names and texts are the only ones.
func tracedSession(t *testing.T, files, programs map[string]string) *session {
	t.Helper()
	all := map[string]string{"available_tracers": "timerlat osnoise hwlat nop", "current_tracer": "nop", "tracing_on": "1", "osnoise/cpus": "0-3"}
	maps.Copy(all, files)
	below := map[string]string{}
	for name, text := range all {
		below["sys/kernel/tracing/"+name] = text + "\n"
	}
	bin := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	l := Measurement{For: time.Minute, Period: time.Millisecond, CPU: 1, Priority: 80}
	return &session{
		Measurement: l, ctx: t.Context(), host: hostinfo.Read(writeHost(t, below), 1), rounds: 1, turnLength: time.Second,
		traced: map[bool]*tracerFigures{false: {}, true: {}},
	}
}

// printing returns a script that prints a text.
func printing(text string) string { return "/bin/cat <<'END'\n" + text + "END\n" }

func TestTracersMeasureTheCPUOfTheLoop(t *testing.T) {
	s := tracedSession(t, nil, map[string]string{
		"rtla": `[ "$1 $2 $4 $6" = "timerlat hist 1 1000" ] && ` + printing(timerlatReport) +
			`[ "$1 $2 $5 $7" = "osnoise top 1 1000" ] && ` + printing(osnoiseReport) + "exit 0\n",
		"hwlatdetect": `[ "$1 $4" = "--cpu-list=1 --duration=1s" ] && ` + printing(hwlatReport),
	})
	s.prepareTracers()
	if err := s.runTracers(); err != nil || len(s.notMeasured) > 0 {
		t.Fatalf("%v; not measured %q", err, s.notMeasured)
	}
	f := s.traced[false]
	irq, thread := figures([]*record{f.irq}, nil), figures([]*record{f.thread}, nil)
	if irq.Samples != 100 || irq.Max != 18_000_000 || irq.OffChart != 1 || irq.Missed != 18 || irq.P50 < 30_000 || irq.P50 > 31_000 {
		t.Errorf("interrupts of timers: %+v", irq)
	}
	if thread.Samples != 102 || thread.Max != 318_080_000 || thread.OffChart != 2 || thread.OverPeriod != 3 || thread.Missed != 9+2*318 {
		t.Errorf("threads: %+v", thread)
	}
	if want := (OSNoise{2, 2_017_867_000, 1_661_562_000, 17.6575, 838_313_000, 28_490_000, 1577, 5, 283, 6, 8}); *f.OSNoise != want {
		t.Errorf("noise %+v, want %+v", *f.OSNoise, want)
	}
	if want := (HardwareLatency{2, 1_234_000, 10_000}); *f.Hardware != want {
		t.Errorf("hardware %+v, want %+v", *f.Hardware, want)
	}
	for text, words := range map[string]string{
		f.OSNoise.String():                             "17.657 % of the CPU left in 2 periods, at most 838313 us taken in one, 28490 us at once; noises: 1577 hardware, 5 NMI, 283 interrupts, 6 softirqs, 8 threads",
		f.Hardware.String():                            "2 gaps above 10.0 us with interrupts off, at most 1234 us",
		(&HardwareLatency{Threshold: 10_000}).String(): "no gap above 10.0 us with interrupts off",
	} {
		if text != words {
			t.Errorf("%q, want %q", text, words)
		}
	}
}

// A newer rtla has a column for threads of programs, "-" for what it did not measure, and the sums.
func TestParseTimerlatReadsNewerReports(t *testing.T) {
	s := &session{Measurement: Measurement{CPU: 12, Period: time.Millisecond}}
	var f tracerFigures
	err := s.parseTimerlat(`Index   IRQ-012   Thr-012   Usr-012
0          90         0         -
5           0        90        90
over:       0         0         -
count:     90        90        90
max:        0         5         5
ALL:        IRQ       Thr       Usr
count:     90        90        90
over:       7         7         7
max:       99        99        99
`, &f)
	if err != nil || f.irq.Samples != 90 || f.thread.Samples != 90 || f.irq.Max != 0 || f.thread.Max != 5000 || f.thread.Histogram[5] != 90 {
		t.Errorf("%v, %+v, %+v", err, f.irq, f.thread)
	}
}

func TestInvalidReportsOfTracersAreErrors(t *testing.T) {
	s := &session{Measurement: Measurement{CPU: 1, Period: time.Millisecond}}
	for i, good := range []string{timerlatReport, osnoiseReport, hwlatReport} {
		for _, text := range []string{"", "nonsense", good[:len(good)/3], strings.NewReplacer("-001", "-002", "  1 #2", "  2 #2", "Max", "Min").Replace(good)} {
			var f tracerFigures
			if err := tracers[i].parse(s, text, &f); err == nil || strings.Contains(err.Error(), "\n") || f != (tracerFigures{}) {
				t.Errorf("%s: %.60q gives %+v, %v; want an error of one line", tracers[i].name, text, f, err)
			}
		}
	}
}

func TestTracersThatCannotMeasureSayWhy(t *testing.T) {
	both := map[string]string{"rtla": "exit 0", "hwlatdetect": "echo broken >&2; exit 1"}
	for _, c := range []struct {
		name            string
		files, programs map[string]string
		want            []string // parts of the lines
	}{
		{"not installed", nil, nil, []string{
			"timerlat: rtla is not installed: apt-get install rtla", "osnoise: rtla is not installed", "hwlatdetect: hwlatdetect is not installed: apt-get install rt-tests",
		}},
		{"not in the kernel", map[string]string{"available_tracers": "function nop"}, both, []string{
			"timerlat: this kernel has no tracer timerlat", "osnoise: this kernel has no tracer osnoise", "hwlatdetect: this kernel has no tracer hwlat",
		}},
		{"in use", map[string]string{"instances/lockstep/current_tracer": "osnoise"}, both, []string{
			"timerlat: osnoise is active in /sys/kernel/tracing/instances/lockstep: `lockstep doctor`", "osnoise: osnoise is active", "hwlatdetect: osnoise is active",
		}},
		{"failed", nil, both, []string{
			"timerlat: idle, rtla timerlat hist ", "osnoise: idle, rtla osnoise top ", "--duration=1s: exit status 1: broken",
		}},
	} {
		s := tracedSession(t, c.files, c.programs)
		s.prepareTracers()
		if err := s.runTracers(); err != nil {
			t.Fatal(err)
		}
		if len(s.notMeasured) != len(c.want) {
			t.Errorf("%s: %q", c.name, s.notMeasured)
			continue
		}
		for i, words := range c.want {
			if !strings.Contains(s.notMeasured[i], words) {
				t.Errorf("%s: %q, want %q", c.name, s.notMeasured[i], words)
			}
		}
		if len(s.reasons) > 0 {
			t.Errorf("%s: the other figures are not representative: %q", c.name, s.reasons)
		}
	}
}

// The programs are interrupted, so that they turn off their tracers, and killed if that has no effect.
func TestATracerThatHangsIsKilled(t *testing.T) {
	for _, c := range []struct {
		ignores string
		within  time.Duration // the kill comes after patience
		killed  bool
	}{{":", 0, false}, {"trap '' INT", patience, true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		cmd := exec.Command("/bin/sh", "-c", c.ignores+"; exec sleep 1000")
		begin := time.Now()
		if _, err := outputUntil(ctx, cmd, unix.SIGINT); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", c.ignores, err)
		}
		if took := time.Since(begin); took < c.within || strings.Contains(cmd.ProcessState.String(), "killed") != c.killed {
			t.Errorf("%s: %s after %v", c.ignores, cmd.ProcessState, took)
		}
	}
}

// hwlatdetect restores no setting; a killed rtla leaves its instance and the CPUs of the tracer.
func TestSettingsThatATracerLeavesAreRestored(t *testing.T) {
	s := tracedSession(t, map[string]string{"instances/other/current_tracer": "nop"}, nil)
	at := func(name string) string { return s.host.Path("/sys/kernel/tracing/" + name) }
	write := func(name, text string) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(at(name)), 0o755)
		if err = errors.Join(err, os.WriteFile(at(name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	state, err := s.host.ReadTracing()
	if err != nil {
		t.Fatal(err)
	}
	saved := saveTracing(s.host.Files, state)
	for name, text := range map[string]string{
		"current_tracer": "hwlat", "tracing_on": "0", "osnoise/cpus": "1", "instances/timerlat_hist/current_tracer": "timerlat", "instances/other/current_tracer": "function",
	} {
		write(name, text)
	}
	if err := os.Mkdir(at("instances/osnoise_top"), 0o755); err != nil {
		t.Fatal(err)
	}
	saved.restore()
	for name, want := range map[string]string{
		"current_tracer": "nop", "tracing_on": "1", "osnoise/cpus": "0-3",
		"instances/timerlat_hist/current_tracer": "nop", "instances/other/current_tracer": "function",
	} {
		if got := s.host.Text("/sys/kernel/tracing/" + name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if list := s.host.ReadDir("/sys/kernel/tracing/instances"); slices.Contains(list, "osnoise_top") {
		t.Errorf("instances %q, want none of rtla", list)
	}
}
