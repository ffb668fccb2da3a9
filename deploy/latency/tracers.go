package latency

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// tracer is a program that measures the CPU of the loop with a tracer of the kernel. It measures after
// the last round, once on the idle and once on the loaded host, for as long as cyclictest did.
type tracer struct {
	name    string // name of its figures
	program string
	kernel  string // tracer of the kernel
	pkg     string // Debian package of the program
	command func(s *session, seconds int) []string
	// parse reads the output of the program into the figures of a host.
	parse func(s *session, out string, to *tracerFigures) error
}

// tracerFigures holds what the tracers of the kernel measured on an idle or a loaded host.
type tracerFigures struct {
	irq, thread *record // of timerlat; nil: not measured
	OSNoise     *OSNoise
	Hardware    *HardwareLatency
}

// OSNoise is what took the CPU from a thread with the priority of the loop, which runs for most of each
// period.
type OSNoise struct {
	Periods   int64   `json:"periods"`
	Runtime   int64   `json:"runtime_ns"`        // time for which the thread wanted the CPU
	Noise     int64   `json:"noise_ns"`          // part of it that others took
	Available float64 `json:"available_percent"` // part of it that was left
	MaxNoise  int64   `json:"max_noise_ns"`      // in one period
	MaxSingle int64   `json:"max_single_ns"`     // at once
	Hardware  int64   `json:"hardware"`          // number of noises without a cause in the kernel
	NMI       int64   `json:"nmi"`               // numbers of noises by cause
	IRQ       int64   `json:"irq"`
	Softirq   int64   `json:"softirq"`
	Thread    int64   `json:"thread"`
}

// HardwareLatency is what took the CPU while its interrupts were off, which only the hardware and its
// firmware can.
type HardwareLatency struct {
	Samples   int64 `json:"samples"` // gaps above the threshold
	Max       int64 `json:"max_ns"`  // longest gap; 0: none above the threshold
	Threshold int64 `json:"threshold_ns"`
}

// hardwareThreshold is the shortest gap that hwlatdetect reports, the kernel's default.
const hardwareThreshold = 10 * time.Microsecond

// tracers lists the programs in the order of their turns.
var tracers = []tracer{
	{"timerlat", "rtla", "timerlat", "rtla", (*session).timerlatCommand, (*session).parseTimerlat},
	{"osnoise", "rtla", "osnoise", "rtla", (*session).osnoiseCommand, (*session).parseOSNoise},
	{"hwlatdetect", "hwlatdetect", "hwlat", "rt-tests", (*session).hwlatCommand, (*session).parseHwlat},
}

func (s *session) timerlatCommand(seconds int) []string {
	return []string{
		"timerlat", "hist", "--cpus", strconv.Itoa(s.CPU), "--period", strconv.FormatInt(s.Period.Microseconds(), 10),
		"--priority", fmt.Sprintf("f:%d", s.Priority), "--dma-latency", "0", "--entries", strconv.Itoa(cyclictestClasses),
		"--bucket-size", "1", "--duration", strconv.Itoa(seconds),
	}
}

// osnoiseCommand asks for nine tenths of each period, so that other threads get the rest. rtla refuses
// less than 100 µs.
func (s *session) osnoiseCommand(seconds int) []string {
	period := max(s.Period.Microseconds(), 200)
	return []string{
		"osnoise", "top", "--quiet", "--cpus", strconv.Itoa(s.CPU), "--period", strconv.FormatInt(period, 10),
		"--runtime", strconv.FormatInt(period*9/10, 10), "--priority", fmt.Sprintf("f:%d", s.Priority),
		"--duration", strconv.Itoa(seconds),
	}
}

// hwlatCommand sets a hard limit that no gap reaches: otherwise the exit status is that of a failure.
func (s *session) hwlatCommand(seconds int) []string {
	return []string{
		"--cpu-list=" + strconv.Itoa(s.CPU), fmt.Sprintf("--threshold=%dus", hardwareThreshold.Microseconds()),
		"--hardlimit=3600s", fmt.Sprintf("--duration=%ds", seconds),
	}
}

// prepareTracers finds the programs that can measure, and the reason for each that cannot.
func (s *session) prepareTracers() {
	state, err := s.host.ReadTracing()
	for i := range tracers {
		t := &tracers[i]
		if _, missing := exec.LookPath(t.program); missing != nil {
			s.skipTracer(t, fmt.Sprintf("%s is not installed: apt-get install %s", t.program, t.pkg))
		} else if reason := cannotTrace(state, err, t.kernel); reason != "" {
			s.skipTracer(t, reason)
		} else {
			s.tracers = append(s.tracers, t)
		}
	}
}

// cannotTrace returns why a tracer cannot be used; "": it can.
func cannotTrace(state *hostinfo.Tracing, err error, kernel string) string {
	switch {
	case err != nil:
		return err.Error()
	case !slices.Contains(state.Tracers, kernel):
		return "this kernel has no tracer " + kernel
	}
	for _, i := range state.Instances {
		if i.Active() {
			return fmt.Sprintf("%s is active in %s: `lockstep doctor` says how to turn it off",
				i.Tracer, filepath.Join(state.Folder, i.Path("")))
		}
	}

	return ""
}

// skipTracer notes why a tracer does not measure. The other figures are representative without it.
func (s *session) skipTracer(t *tracer, reason string) {
	if text := t.name + ": " + reason; !slices.Contains(s.notMeasured, text) {
		s.notMeasured = append(s.notMeasured, text)
	}
}

// tracerWeight returns the weight of the turn of a tracer: that of cyclictest.
func tracerWeight(loaded bool) float64 {
	i := slices.IndexFunc(methods, func(m method) bool { return m.name == methodCyclictest })
	return methods[i].weight(loaded)
}

// runTracers measures with every tracer once, idle and then loaded.
func (s *session) runTracers() error {
	if len(s.tracers) == 0 {
		return nil
	}
	lock, err := sched.Reserve("tracing/latency")
	if err != nil {
		for _, t := range s.tracers {
			s.skipTracer(t, "another `lockstep latency` uses the kernel's tracing")
		}
		return nil
	}
	defer unix.Close(lock)
	for _, loaded := range s.states() {
		seconds := int(math.Ceil(float64(s.rounds) * tracerWeight(loaded) * s.turnLength.Seconds()))
		err := s.underLoad(loaded, func() {
			for _, t := range s.tracers {
				s.runTracer(t, loaded, seconds)
			}
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// runTracer measures with a tracer once. A program that hangs is killed; what it has left in the
// kernel's tracing is restored.
func (s *session) runTracer(t *tracer, loaded bool, seconds int) {
	if s.ctx.Err() != nil {
		return
	}
	length := time.Duration(seconds) * time.Second
	if s.Progress != nil {
		s.Progress(fmt.Sprintf("%s: %s, %v", stateNames[loaded], t.name, length))
	}
	limit := 2*length + time.Minute // allows for an overloaded host
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	if tracing, err := s.host.ReadTracing(); err == nil {
		defer saveTracing(s.host.Files, tracing).restore()
	}
	cmd := exec.Command(t.program, t.command(s, seconds)...)
	out, err := outputUntil(ctx, cmd, unix.SIGINT) // as Ctrl-C, so that it turns off its tracer
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("did not end within %v", limit)
	case err == nil:
		err = t.parse(s, string(out), s.traced[loaded])
	}
	if err != nil && s.ctx.Err() == nil {
		s.skipTracer(t, fmt.Sprintf("%s, %s: %v", stateNames[loaded], strings.Join(cmd.Args, " "), err))
	}
}

// savedTracing is the state of the kernel's tracing before a tracer runs.
type savedTracing struct {
	files   hostinfo.Files
	tracing *hostinfo.Tracing
	values  map[string]string // by setting
}

// tracingSettings are the settings that the programs change. hwlatdetect restores none of them, rtla
// none after it was killed. The first one ends a tracer.
var tracingSettings = []string{
	"current_tracer", "tracing_thresh", "tracing_cpumask", "tracing_on", "osnoise/cpus", "osnoise/period_us", "osnoise/runtime_us",
	"osnoise/timerlat_period_us", "osnoise/stop_tracing_us", "osnoise/stop_tracing_total_us",
}

// rtlaInstances are the instances that rtla makes and, if it was not killed, removes.
var rtlaInstances = []string{"timerlat_hist", "osnoise_top"}

func saveTracing(files hostinfo.Files, tracing *hostinfo.Tracing) *savedTracing {
	s := &savedTracing{files, tracing, map[string]string{}}
	for _, name := range tracingSettings {
		if text, err := files.ReadFile(s.path(name)); err == nil {
			s.values[name] = text
		}
	}

	return s
}

func (s *savedTracing) path(name string) string { return filepath.Join(s.tracing.Folder, name) }

func (s *savedTracing) write(name, text string) {
	f, err := os.OpenFile(s.files.Path(s.path(name)), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return // `lockstep doctor` names what stays
	}
	defer f.Close()
	_, _ = f.WriteString(text + "\n")
}

// restore ends what a killed program has left running and restores the settings.
func (s *savedTracing) restore() {
	for _, name := range rtlaInstances {
		i := hostinfo.TracingInstance{Name: name}
		if !s.files.Exists(s.path(i.Path(""))) || slices.ContainsFunc(s.tracing.Instances, func(k hostinfo.TracingInstance) bool { return k.Name == name }) {
			continue
		}
		s.write(i.Path("current_tracer"), hostinfo.NoTracer)
		_ = os.Remove(s.files.Path(s.path(i.Path("")))) // `lockstep doctor` names what stays
	}

	for range 2 { // the kernel refuses a period below the runtime, whichever comes first
		for _, name := range tracingSettings {
			if was, ok := s.values[name]; ok && s.files.Text(s.path(name)) != was {
				s.write(name, was)
			}
		}
	}
}

// parseTimerlat reads the histograms of rtla timerlat hist, classes of 1 µs:
//
//	Index   IRQ-001   Thr-001
//	12            1         0
//	over:         0         0
//	max:         48        60
//
// A newer rtla adds columns, and the sums of all CPUs.
func (s *session) parseTimerlat(out string, to *tracerFigures) error {
	columns := map[string]int{}
	irq, thread := &record{Histogram: map[int]int64{}}, &record{Histogram: map[int]int64{}}
	list := map[string]*record{fmt.Sprintf("IRQ-%03d", s.CPU): irq, fmt.Sprintf("Thr-%03d", s.CPU): thread}
	beyond := map[string]int64{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) > 0 && f[0] == "ALL:" {
			break
		}
		if len(f) > 0 && f[0] == "Index" {
			for i, name := range f {
				columns[name] = i
			}
		}

		for name, r := range list {
			at, ok := columns[name]
			if !ok || at >= len(f) {
				continue
			}
			n, err := strconv.ParseInt(f[at], 10, 64)
			class, label := strconv.ParseInt(f[0], 10, 64)
			switch {
			case err != nil || n < 0: // the head, or "-": no value
			case label == nil && class >= 0 && n > 0:
				r.addClass(class, n, int64(s.Period))
			case f[0] == "over:":
				beyond[name] = n
			case f[0] == "max:":
				r.Max = n * 1000
			}
		}
	}

	for name, r := range list {
		if n := beyond[name]; n > 0 { // their classes are unknown: they count as the largest
			r.addClass(max(r.Max/1000, cyclictestClasses), n, int64(s.Period))
		}
		if r.Samples == 0 {
			return fmt.Errorf("invalid report: no latencies %s", name)
		}
	}

	to.irq, to.thread = irq, thread
	return nil
}

// osnoiseLine matches the figures of a CPU in the output of rtla osnoise top, times in µs:
//
//	CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread
//	  1 #4           3602956      2908842    19.26512      769913        44113        2854            0          449            0            1
var osnoiseLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^ *(\d+) #(\d+) +(\d+) +(\d+) +(\d+\.\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) *$`)
})

func (s *session) parseOSNoise(out string, to *tracerFigures) error {
	for _, f := range osnoiseLine().FindAllStringSubmatch(out, -1) {
		var n [13]int64
		for i := range f {
			n[i], _ = strconv.ParseInt(f[i], 10, 64) // the line has digits only, and a share
		}
		available, err := strconv.ParseFloat(f[5], 64)
		if n[1] != int64(s.CPU) || err != nil {
			continue
		}
		to.OSNoise = &OSNoise{
			Periods: n[2], Runtime: n[3] * 1000, Noise: n[4] * 1000, Available: available, MaxNoise: n[6] * 1000,
			MaxSingle: n[7] * 1000, Hardware: n[8], NMI: n[9], IRQ: n[10], Softirq: n[11], Thread: n[12],
		}
		return nil
	}

	return fmt.Errorf("invalid report: no line of CPU %d", s.CPU)
}

// hwlatLine matches the results in the output of hwlatdetect.
var hwlatLine = regexp.MustCompile(`(?m)^(Max Latency|Samples exceeding threshold): (Below threshold|\d+)(?:us)?$`)

func (s *session) parseHwlat(out string, to *tracerFigures) error {
	values := map[string]string{}
	for _, f := range hwlatLine.FindAllStringSubmatch(out, -1) {
		values[f[1]] = f[2]
	}
	samples, err := strconv.ParseInt(values["Samples exceeding threshold"], 10, 64)
	longest, ok := values["Max Latency"]
	if err != nil || !ok {
		return errors.New("invalid report: no samples or no longest latency")
	}
	most, _ := strconv.ParseInt(longest, 10, 64) // else below the threshold
	to.Hardware = &HardwareLatency{Samples: samples, Max: most * 1000, Threshold: int64(hardwareThreshold)}
	return nil
}
