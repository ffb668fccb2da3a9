package install

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/model/plants"
)

// emulator is QEMU's user emulation. It runs executables of arm64 and passes their system calls to
// this kernel.
const emulator = "qemu-aarch64-static"

// compileArm64 compiles a package for arm64 and returns the path of the executable. how are the
// first arguments of go: build or test -c.
func compileArm64(t *testing.T, pkg string, how ...string) string {
	t.Helper()
	lab.RequireProgram(t, emulator, "qemu-user-static")
	file := filepath.Join(t.TempDir(), "arm64")
	c := exec.Command("go", append(how, "-o", file, pkg)...)
	c.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s for arm64: %v\n%s", pkg, err, out)
	}
	return file
}

// onArm64 runs the tests of a package on arm64. without is a pattern of tests that need a real
// kernel of that architecture.
func onArm64(t *testing.T, pkg, without string, args ...string) {
	t.Helper()
	if without == "" {
		without = "^$"
	}
	c := exec.Command(emulator, append([]string{compileArm64(t, "../../"+pkg, "test", "-c"), "-test.short", "-test.skip", without}, args...)...)
	c.Dir = "../../" + pkg
	// Signals of the Go scheduler interrupt recvmmsg of the emulator, which is slow.
	c.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%s on arm64: %v\n%s", pkg, err, out)
	}
}

func TestFastPackagesPassTheirTestsOnArm64(t *testing.T) {
	t.Parallel()
	lab.RequireLong(t, "compiles seven packages for arm64, and emulates it")
	for _, p := range []struct{ name, without string }{
		// These execute themselves, which this kernel does not without binfmt_misc.
		// TestProcessesRunOnArm64 covers some of them. The emulator is too slow for the spin, and
		// /proc counts no page faults of it.
		{"sched", "Confine|Probe|Enter|Deadline|FreshMemory|SpinDoesNotDelay|Allow|Guard|FaultsCounts|LeavesAProcessor|UntilTwoPasses|UnusedEndOfTheHeap"},
		{"rt", "KilledProcess|OnTheRealClock|ThreadExitIsUnknown"},
		{"rt/target", ""},
		{"rt/fault", ""},
		{"io/can", "DropsAfterTheLastFrame"}, // the emulator lacks a socket option
		{"io/dbc", ""},
		{"io/j1939", ""},
	} {
		onArm64(t, p.name, p.without)
	}
}

// arm64Command compiles the command for arm64 and returns a function that runs it under the
// emulator.
func arm64Command(t *testing.T) func(args ...string) (out string, err error) {
	t.Helper()
	file := compileArm64(t, "../../rt/cmd/lockstep", "build", "-trimpath")
	return func(args ...string) (string, error) {
		out, err := exec.Command(emulator, append([]string{file}, args...)...).CombinedOutput()
		return string(out), err
	}
}

// playedBench is a bench around an embedded plant. It sends the counter of events, and plays a log
// with nothing for the plant.
const playedBench = `bench: played
plant: %s
period: 5 ms
overrun: stop
buses:
  drive:
    interface: file:%s
    database: played.dbc
    frames:
      State: {cycle: 5 ms}
    send:
      - events -> State.value
`

const playedDatabase = `VERSION ""
BU_: A B
BO_ 256 State: 8 A
 SG_ value : 0|32@1+ (1,0) [0|0] "" B
`

// recordedRuns returns the arguments of sim for runs of every embedded plant and bench. Together
// they have every form of the tick: dense, sparse and in parts, with laws, tyres and pulses.
func recordedRuns(t *testing.T) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	log := write("empty.log", "(0.000000) can0 001#\n")
	write("played.dbc", playedDatabase)
	runs := map[string][]string{
		"truck with faults":      {"truck-bench", "-scenario", "truck-ice-and-broken-shaft"},
		"powershift with faults": {"powershift-bench", "-scenario", "powershift-clutch-sticks"},
	}
	for _, e := range plants.List() {
		switch {
		case e.Name == "train20": // a longer train3, which the emulator takes half a minute to prepare
		case e.Kind == "plant":
			runs[e.Name] = []string{write(e.Name+".yaml", fmt.Sprintf(playedBench, e.Name, log)), "-for", "1s"}
		case e.Kind == "bench":
			runs[e.Name] = []string{e.Name, "-for", "2s"}
		}
	}
	return runs
}

// recordLiveChanges records a run with live changes whose numbers are expressions, and returns the
// records: package math has other last bits on arm64 for each of them. The second record starts while the run lasts.
// Both have new tables.
func recordLiveChanges(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	rec, second := filepath.Join(dir, "live.rec"), filepath.Join(dir, "second.rec")
	b := lab.StartDemoWith(t, lab.UntilStopped, []lab.Edit{{"bench: powershift-bench", fmt.Sprintf("bench: live-%d", os.Getpid())}}, "run", "-record", rec)
	b.AwaitTicking()
	pid := strconv.Itoa(b.Cmd.Process.Pid)
	ctl := func(line string) { lab.MustRun(t, append([]string{"ctl", pid}, strings.Fields(line)...)...) }
	for i, factor := range []string{"exp(1.5)", "sin(0.77)", "cos(0.8)"} {
		lab.MustRun(t, "ctl", pid, "fault", fmt.Sprintf("name=%d", i),
			fmt.Sprintf("input=clutch%d.pressure", i+1), "stuck="+factor+"*65536 Pa", "for=20 ticks")
	}
	for _, line := range []string{"param mu_oil=0.1*exp(0.2)", "snapshot a", "record off", "record on " + second, "param mu_oil=0.14"} {
		ctl(line)
	}
	// A snapshot in which the plant owes time is refused now: the parameters have changed since.
	if _, _, code := lab.Run(t, "ctl", pid, "reset", "a"); code != 0 {
		ctl("snapshot a")
		ctl("reset a")
	}
	b.Stop()
	return []string{rec, second}
}

// Each architecture prepares a plant with other last bits; a replay takes the tables of the record.
func TestRecordReplaysOnTheOtherArchitectureBitForBit(t *testing.T) {
	t.Parallel()
	arm64 := arm64Command(t)
	amd64 := func(args ...string) (string, error) {
		out, errors, code := lab.Run(t, args...)
		if code != 0 {
			return out, fmt.Errorf("exit %d, %s", code, errors)
		}
		return out, nil
	}
	t.Run("live changes", func(t *testing.T) {
		t.Parallel()
		for _, rec := range recordLiveChanges(t) {
			if out, err := arm64("replay", rec); err != nil || !strings.HasPrefix(out, "identical: ") {
				t.Errorf("%s: %v, %s", filepath.Base(rec), err, out)
			}
		}
	})
	for name, run := range recordedRuns(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for of, c := range map[string]struct {
				record, replay func(args ...string) (string, error)
			}{
				"amd64": {amd64, arm64}, "arm64": {arm64, amd64},
			} {
				file := filepath.Join(t.TempDir(), "run.rec")
				if out, err := c.record(append([]string{"sim"}, append(run, "-record", file)...)...); err != nil {
					t.Fatalf("%s: %v\n%s", of, err, out)
				}
				if out, err := c.replay("replay", file); err != nil || !strings.HasPrefix(out, "identical: ") {
					t.Errorf("record of %s on the other architecture: %v, %s", of, err, out)
				}
			}
		})
	}
}

// The two architectures prepare tables that differ in the last bits, so results do, too.
func TestPlantsAgreeOnArm64WithinRounding(t *testing.T) {
	t.Parallel()
	arm64, dir := arm64Command(t), t.TempDir()
	for _, plant := range []string{"powershift", "coupled-clutches", "rail17"} {
		onArm, onAmd := filepath.Join(dir, "arm64.csv"), filepath.Join(dir, "amd64.csv")
		if out, err := arm64("sim", plant, "-for", "2s", "-step", "5ms", "-out", onArm); err != nil {
			t.Fatalf("%s: %v\n%s", plant, err, out)
		}
		if _, errors, code := lab.Run(t, "sim", plant, "-for", "2s", "-step", "5ms", "-out", onAmd); code != 0 {
			t.Fatalf("%s: exit %d, %s", plant, code, errors)
		}
		a, b := columns(t, onArm), columns(t, onAmd)
		differ, worst := 0, 0.0
		for name, x := range a {
			y := b[name]
			if len(x) != len(y) {
				t.Fatalf("%s: %s has %d values on arm64, %d on amd64", plant, name, len(x), len(y))
			}
			lo, hi := y[0], y[0]
			for _, v := range y {
				lo, hi = min(lo, v), max(hi, v)
			}
			scale := max(hi-lo, 1e-3) // a constant signal has range 0
			for i := range x {
				if x[i] != y[i] {
					differ++
				}
				if d := max(x[i]-y[i], y[i]-x[i]) / scale; !(d <= 1e-9) {
					t.Fatalf("%s: %s in row %d is %v on arm64, %v on amd64", plant, name, i, x[i], y[i])
				} else {
					worst = max(worst, d)
				}
			}
		}
		t.Logf("%s: %d of %d values differ, at most %.1e of their range", plant, differ, len(a)*len(a["time[s]"]), worst)
	}
}

// columns returns the columns of a CSV file by the names in its first row.
func columns(t *testing.T, file string) map[string][]float64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: %d rows, %v", file, len(rows), err)
	}
	list := map[string][]float64{}
	for _, row := range rows[1:] {
		for i, text := range row {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			list[rows[0][i]] = append(list[rows[0][i]], v)
		}
	}
	return list
}
