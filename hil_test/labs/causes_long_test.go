//go:build long

package labs

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/deploy"
	"lockstep/hil_test/lab"
	"lockstep/rt/guide"
	"lockstep/sched/hostinfo"
)

// Linux 6.12 has PREEMPT_RT in its mainline, and osnoise can record without a measuring thread. The
// commands of the guide start the recording; then interrupts and a thread take the CPU of the loop, and
// the ledger names them.
func TestLabCausesOfLateTicksAreNamed(t *testing.T) {
	m := lab.PreemptRT
	m.Env = []string{"LAB_KERNEL=backports"}
	if !lab.Inside(t, m, "candump", "rtla", "hwlatdetect", "taskset", "chrt", "timeout") {
		return
	}
	if h := hostinfo.Read("/", -1); !h.PreemptRT() || !h.KernelAtLeast(6, 12) || hostinfo.FormatCPUs(h.Isolated) != lab.IsolatedCPU {
		t.Fatalf("%s, PREEMPT_RT %t, isolated CPUs %v; want Linux 6.12 with PREEMPT_RT", h.Release, h.PreemptRT(), h.Isolated)
	}
	t.Run("Latency", measureLatency)
	t.Run("Ledger", causes)
}

// measureLatency measures the tickers on the isolated CPU, which alone can have SCHED_DEADLINE, and asks the
// tracers of the kernel. The child refuses to measure under another policy. The tracing is then as before.
func measureLatency(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"rtla", "hwlatdetect"} { // no C programs: a compiler takes a minute in the emulator
		path, err := exec.LookPath(name)
		if err = errors.Join(err, os.Symlink(path, filepath.Join(folder, name))); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	before := tracing(t)
	file := filepath.Join(folder, "latency.json")
	p := lab.Start(t, lab.Command(t), "latency", "-period", "10ms", "-for", "4s", "-load=false", "-report", file)
	if code := p.WaitFor(3 * lab.Timeout); code != 0 {
		t.Fatalf("exit %d: %s", code, &p.Err)
	}
	type figures struct{ Samples int }
	var r struct {
		CPU            int
		NotMeasured    []string `json:"not_measured"`
		Reasons        []string
		Tickers        map[string]figures
		TimerlatIRQ    figures `json:"timerlat_irq"`
		TimerlatThread figures `json:"timerlat_thread"`
		OSNoise        struct{ Periods, IRQ int }
		Hwlatdetect    *struct{ Samples int }
	}
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, file)), &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"timerfd", "timerfd_deadline", "nanosleep", "nanosleep_deadline"} {
		if r.Tickers[name].Samples == 0 {
			t.Errorf("no figures of %s on CPU %d; not measured %q, reasons %q", name, r.CPU, r.NotMeasured, r.Reasons)
		}
	}
	if r.TimerlatIRQ.Samples == 0 || r.TimerlatThread.Samples == 0 || r.OSNoise.Periods == 0 || r.OSNoise.IRQ == 0 || r.Hwlatdetect == nil {
		t.Errorf("timerlat %+v %+v, osnoise %+v, hwlatdetect %+v; not measured %q", r.TimerlatIRQ, r.TimerlatThread, r.OSNoise, r.Hwlatdetect, r.NotMeasured)
	}
	if after := tracing(t); !maps.Equal(before, after) {
		t.Errorf("the kernel's tracing is %q, was %q", after, before)
	}
	t.Logf("%s", &p.Out)
}

// tracing returns the settings of the kernel's tracing that tracers change, and its instances.
func tracing(t *testing.T) map[string]string {
	t.Helper()
	const folder = "/sys/kernel/tracing/"
	all := map[string]string{"instances": strings.Join(hostinfo.Files("/").ReadDir(folder+"instances"), " ")}
	for _, name := range []string{"current_tracer", "tracing_on", "tracing_thresh", "tracing_cpumask", "osnoise/cpus", "osnoise/period_us", "osnoise/runtime_us", "osnoise/timerlat_period_us"} {
		all[name] = lab.ReadTrimmed(t, folder+name)
	}
	return all
}

// causes records the causes of late ticks.
func causes(t *testing.T) {
	section, ok := guide.Guide{Source: deploy.Host}.Section("causes-of-late-ticks")
	blocks := section.Blocks()
	if !ok || len(blocks) != 2 || !strings.Contains(blocks[0].Text, "echo 3 > osnoise/cpus") {
		t.Fatalf("the guide has %d blocks of commands, want the start and the end of a recording on CPU 3", len(blocks))
	}
	lab.Shell(t, "set -e; "+strings.Replace(blocks[0].Text, "echo 3 >", "echo "+lab.IsolatedCPU+" >", 1))
	if found := doctorSays(t, "tracing"); found != "the instance lockstep is on: osnoise records on CPU "+lab.IsolatedCPU {
		t.Errorf("doctor on a recording: %q", found)
	}
	b := runRT(t)
	for range 3 { // timeout, which ends the thread, needs a CPU without it; the emulator takes most of its time to start them
		hog := lab.Start(t, "timeout", "2", "taskset", "-c", lab.IsolatedCPU, "chrt", "-f", "95", "sh", "-c", "while :; do :; done")
		if code := hog.Wait(); code != 124 {
			t.Fatalf("the thread that takes the CPU: exit %d, want the 124 of timeout\n%s", code, &hog.Err)
		}
		b.AwaitTicks(40)
	}
	b.stop()
	r := reportOf(t, b.Bench)
	longest, named := map[string]int64{}, 0
	for _, e := range r.Ledger {
		for name, taken := range e.Taken {
			kind, _, _ := strings.Cut(name, " ")
			longest[kind] = max(longest[kind], taken)
			if name == "thread sh" && taken > int64(100*time.Millisecond) {
				named++
			}
		}
	}
	text, _ := json.Marshal(r.Ledger)
	t.Logf("%d late ticks; longest by kind, ns: %v\n%s", len(r.Ledger), longest, text)
	if named < 3 || longest["irq"] == 0 { // the softirqs of this kernel are threads
		t.Errorf("the thread is named in %d entries, want 3; longest by kind, ns: %v; want an interrupt, too", named, longest)
	}

	lab.Shell(t, "set -e; "+blocks[1].Text)
	if found := doctorSays(t, "tracing"); found != "no tracer is active" {
		t.Errorf("doctor after the recording: %q", found)
	}
	if _, err := os.Stat("/sys/kernel/tracing/instances/lockstep"); err == nil {
		t.Error("the instance is still there")
	}
}

// doctorSays returns what `lockstep doctor` has found in a check.
func doctorSays(t *testing.T, check string) string {
	t.Helper()
	p := lab.Start(t, lab.Command(t), "doctor", "-json", "-measure=false")
	p.Wait()
	var d struct {
		Checks []struct{ Name, Found string }
	}
	if err := json.Unmarshal([]byte(p.Out.String()), &d); err != nil {
		t.Fatalf("doctor -json: %v\n%s%s", err, &p.Out, &p.Err)
	}
	for _, c := range d.Checks {
		if c.Name == check {
			return c.Found
		}
	}
	t.Fatalf("doctor has no check %s", check)
	return ""
}
