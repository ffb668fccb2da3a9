package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/unitprogram"
	"lockstep/rt/virtual"
)

// usePython lets programs import the client, with python-can if the test needs it. The file of the
// entry points is that of an installed package, made of pyproject.toml.
func usePython(t *testing.T, modules ...string) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		lab.Skip(t, "/usr/bin/python3 is missing: apt-get install python3")
	}
	for _, module := range modules {
		if exec.Command("/usr/bin/python3", "-c", "import "+module).Run() != nil {
			lab.Skip(t, "python3-"+module+" is missing: apt-get install python3-"+module)
		}
	}
	client, err := filepath.Abs("../../deploy/python")
	if err != nil {
		t.Fatal(err)
	}
	installed := t.TempDir()
	out, err := exec.Command("/usr/bin/python3", "-c", `
import pathlib, sys, tomllib
project = tomllib.loads(pathlib.Path(sys.argv[1], "pyproject.toml").read_text())["project"]
folder = pathlib.Path(sys.argv[2], "lockstep-1.dist-info")
folder.mkdir()
(folder / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (project["name"], project["version"]))
(folder / "entry_points.txt").write_text("".join("[%s]\n%s\n" % (group, "".join(
    "%s = %s\n" % item for item in items.items())) for group, items in project["entry-points"].items()))
`, client, installed).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PYTHONPATH", client+":"+installed)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
}

// absolute returns the absolute path of a file of the repository.
func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}

// benchOf returns a demo bench with a program as its control unit.
func benchOf(t *testing.T, words ...string) string {
	t.Helper()
	list, err := json.Marshal(words)
	if err != nil {
		t.Fatal(err)
	}
	return benchtest.DemoFile(t, "control_unit: powershift ", "control_unit: {exec: "+string(list)+", hang: 300 s} ",
		"overrun: skip 200", "overrun: skip 1000")
}

// simulate runs a bench in virtual time and returns its record and report.
func simulate(t *testing.T, file string, d time.Duration) ([]record.Entry, *report.Report) {
	t.Helper()
	rec := filepath.Join(t.TempDir(), "a.rec")
	r, err := virtual.Simulation{Plant: file, For: d, Every: 1, Record: rec}.Run()
	if err != nil {
		t.Fatalf("%v\n%+v", err, r)
	}
	same, err := virtual.Replay{Record: rec}.Run()
	if err != nil || same.Ticks != int64(r.Ticks) {
		t.Errorf("replay: %+v, %v", same, err)
	}
	return recordtest.Entries(t, rec), r
}

// Two implementations of one law, in Go and in Python, give the same record: all frames, inputs and
// transitions at the same ticks.
func TestPythonUnitShiftsAtTheTicksOfTheUnitInGo(t *testing.T) {
	usePython(t)
	want, r := simulate(t, "powershift-bench", 20*time.Second)
	if r.Transitions < 30 {
		t.Fatalf("%d transitions in 20 s: the unit did not shift", r.Transitions)
	}
	got, p := simulate(t, benchOf(t, absolute(t, "../../deploy/python/examples/powershift.py")), 20*time.Second)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d entries with the unit in Python, %d with the unit in Go, or different ones", len(got), len(want))
	}
	shifts := regexp.MustCompile(`(?m)^powershift: 0\.5[01] s: shift 1-3-6 -> 2-3-6$`)
	if !shifts.MatchString(p.UnitOutput) || !strings.Contains(p.Unit, ": 3998 frames sent, 8000 received, 0 dropped") {
		t.Errorf("unit %q, output %q", p.Unit, p.UnitOutput)
	}
}

// A client changes parameters, stores a state and returns to it while a program is the control unit in virtual time. The
// record is that of the run with the unit in Go and the same requests: the program sees the speeds after each change.
func TestParametersChangeInVirtualTimeBesideAProgram(t *testing.T) {
	usePython(t)
	program, err := json.Marshal([]string{absolute(t, "../../deploy/python/examples/powershift.py")})
	if err != nil {
		t.Fatal(err)
	}
	var lists [2][]record.Entry
	for i, unit := range []string{"control_unit: powershift ", "control_unit: {exec: " + string(program) + ", hang: 300 s} "} {
		name := fmt.Sprintf("param-%d-%d", i, os.Getpid())
		file := benchtest.DemoFile(t, "control_unit: powershift ", unit, "bench: powershift-bench", "bench: "+name)
		rec, ended := filepath.Join(t.TempDir(), "a.rec"), make(chan error)
		go func() {
			_, err := virtual.Simulation{Plant: file, Door: true, Every: 1, Record: rec}.Run()
			ended <- err
		}()
		ask := func(request string) string {
			var out strings.Builder
			if err := control.Ask(name, strings.Fields(request), control.Options{Out: &out}); err != nil {
				return err.Error()
			}
			return out.String()
		}
		for end := time.Now().Add(time.Minute); strings.Contains(ask("status"), "no bench") && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		for _, c := range []struct{ request, want string }{
			{"advance 1s", "advanced to tick 200"}, {"param mu_oil=0.07", "in effect from tick 201"},
			{"advance 3s", "advanced to tick 800"}, {"snapshot a", "in effect from tick 801"}, {"param mu_oil=0.14", "in effect from tick 801"},
			{"advance 2s", "advanced to tick 1200"}, {"reset a", "state carried over to the present parameters, in effect from tick 1201"},
			{"advance 2s", "advanced to tick 1600"}, {"reset", "in effect from tick 1601"},
			{"advance 2s", "advanced to tick 2000"}, {"stop wait", "stopped by ctl"},
		} {
			if got := ask(c.request); !strings.Contains(got, c.want) {
				t.Errorf("%s %s: %q, want %q", unit, c.request, got, c.want)
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", unit, err)
		}
		if same, err := (virtual.Replay{Record: rec}).Run(); err != nil || same.Ticks < 2000 {
			t.Errorf("%s: replay: %+v, %v", unit, same, err)
		}
		lists[i] = recordtest.Entries(t, rec)
	}
	if len(lists[0]) < 8000 || !reflect.DeepEqual(lists[0], lists[1]) {
		t.Errorf("%d entries with the unit in Python, %d with the unit in Go, or different ones", len(lists[1]), len(lists[0]))
	}
}

// Frames of a program that lie between two ticks act at their instants, as those of the unit in Go.
func TestFramesOfAProgramActAtTheirInstants(t *testing.T) {
	usePython(t)
	between := []string{"inputs_at: arrival\nscheduler: fifo ", "period: 7 ms", "cycle: 7 ms",
		"cycle: 14 ms, counter", "phase: 7 ms", "cycle: 14 ms, phase"}
	replace := func(text string) string {
		for i, old := range []string{"scheduler: fifo ", "period: 5 ms", "cycle: 5 ms",
			"cycle: 10 ms, counter", "phase: 5 ms", "cycle: 10 ms, phase"} {
			text = strings.ReplaceAll(text, old, between[i])
		}
		return text
	}
	var lists [2][]record.Entry
	for i, file := range []string{benchtest.DemoFile(t, "overrun: skip 200", "overrun: skip 1000"),
		benchOf(t, absolute(t, "../../deploy/python/examples/powershift.py"))} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(replace(string(text))), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		lists[i], _ = simulate(t, file, 4*time.Second)
	}
	inside := 0
	for i := range lists[0] {
		if e := &lists[0][i]; e.Kind == record.FrameEntry && !e.Frame.Sent && e.Frame.Acts%7e6 != 0 {
			inside++
		}
	}
	if inside < 500 || !reflect.DeepEqual(lists[0], lists[1]) {
		t.Errorf("%d frames inside of a step, want at least 500; the records of the two units must not differ", inside)
	}
}

// A program that takes random times for its answers, on a machine with other work, gives the same record.
func TestRecordOfAProgramDoesNotDependOnTheLoad(t *testing.T) {
	usePython(t)
	file := benchOf(t, absolute(t, "faulty.py"), "sluggish")
	want, _ := simulate(t, file, time.Second)
	for range 2 * runtime.NumCPU() {
		load := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := load.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = load.Process.Kill(); _ = load.Wait() }()
	}
	for range 2 {
		if got, _ := simulate(t, file, time.Second); !reflect.DeepEqual(got, want) {
			t.Errorf("the record under load has %d entries, without %d, or different ones", len(got), len(want))
		}
	}
}

// One script on python-can is the control unit in virtual time and, with the same text, on the pair.
func TestPythonCanScriptRunsInVirtualTimeAndOnThePair(t *testing.T) {
	usePython(t, "can")
	file := benchOf(t, absolute(t, "unit_can.py"))
	var outputs [2]string
	var records [2][]record.Entry
	for i := range outputs {
		var r *report.Report
		records[i], r = simulate(t, file, time.Second)
		outputs[i] = r.UnitOutput
		// From 0.052 s to 1 s every 10 ms; the answers to Status end with the tick before the last.
		if r.Messages[0].Frames != 95 || r.Messages[1].Frames < 90 {
			t.Errorf("%d and %d frames of the unit", r.Messages[0].Frames, r.Messages[1].Frames)
		}
	}
	if want := "waited 0.052 s until 0.052 s\n[512, 513, 514] the last at 1.000 s\n"; outputs[0] != want || outputs[1] != want {
		t.Errorf("output %q, want %q", outputs, want)
	}
	if !reflect.DeepEqual(records[0], records[1]) {
		t.Error("the records of two runs differ")
	}

	code, r, _ := run(t, file, "3s")
	if code != 0 || r.RxFrames < 20 || r.RxUnknown+r.RxShort+r.RxFormat != 0 || !strings.Contains(r.UnitOutput, "[512, 513, 514] the last at ") {
		t.Errorf("on the pair: code %d, %d frames in, unit %q, output %q", code, r.RxFrames, r.Unit, r.UnitOutput)
	}
}

// run runs a bench in real time and returns the exit code, the report and what lockstep printed as errors.
func run(t *testing.T, file, length string, flags ...string) (code int, r report.Report, errs string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.json")
	c := exec.Command(lab.Command(t), append([]string{"run", file, "-for", length, "-report", path}, flags...)...)
	var stderr strings.Builder
	c.Stderr = &stderr
	err := c.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	return code, r, stderr.String()
}

// On the pair the plant goes on without its unit; the verdict names the fault and the tick.
func TestFaultsOfAProgramOnThePairAreNamed(t *testing.T) {
	usePython(t)
	faulty := absolute(t, "faulty.py")
	for how, want := range map[string]string{
		"exit":      `faulty\.py ended after tick \d+ \(0\.\d+ s\): exit status 3`,
		"crash":     `faulty\.py ended after tick \d+ \(0\.\d+ s\): signal: segmentation fault( \(core dumped\))?`,
		"exception": `faulty\.py ended after tick \d+ \(0\.\d+ s\): exit status 1`,
		"garbage":   `faulty\.py sent after tick \d+ \(0\.\d+ s\) what the protocol does not have: a message of 11 bytes; a message has 80`,
		"hang":      `faulty\.py hangs: at the end of the run it had read nothing for \d\.\d+ s`,
	} {
		file := benchOf(t, faulty, how)
		code, r, errs := run(t, file, "3s")
		verdict := regexp.MustCompile(`^control unit ` + regexp.QuoteMeta(strings.TrimSuffix(faulty, "faulty.py")) + want + `$`)
		if code != 1 || r.Ticks+r.Missed < 600 || !verdict.MatchString(r.Ended) || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, r.Ended) {
			t.Errorf("%s: code %d, %d ticks, %q, %q; want %s", how, code, r.Ticks, r.Ended, errs, want)
		}
		if !strings.HasPrefix(r.UnitOutput, how+" on CPUs ") || how == "exception" && !strings.Contains(r.UnitOutput, "RuntimeError: no oil") ||
			how == "exit" && !strings.Contains(r.UnitOutput, "the pump is dry") {
			t.Errorf("%s: output %q", how, r.UnitOutput)
		}
	}
}

func TestAProgramThatEndsBeforeTheRunOnThePairIsNamedOnce(t *testing.T) {
	file := benchOf(t, "sh", "-c", "exit 5")
	c := exec.Command(lab.Command(t), "run", file, "-for", "1s")
	var stderr strings.Builder
	c.Stderr = &stderr
	_ = c.Run()
	want := "lockstep: run: control unit sh ended before its greeting: exit status 5\n"
	if code := c.ProcessState.ExitCode(); code != 1 || stderr.String() != want {
		t.Errorf("code %d, %q, want %q", code, &stderr, want)
	}
}

// A program that does not greet has a minute to do so. Ctrl-C does not wait for it.
func TestASignalEndsTheWaitForAProgram(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	file := benchOf(t, "sh", "-c", "touch "+started+"; sleep 50")
	c := exec.Command(lab.Command(t), "run", file, "-for", "1s")
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 400 { // the command listens to signals before it starts the program
		if _, err := os.Stat(started); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = c.Process.Signal(os.Interrupt)
	_ = c.Wait()
	want := "lockstep: run: control unit sh had not answered when the run was stopped: interrupt\n"
	if code := c.ProcessState.ExitCode(); code != 1 || stderr.String() != want {
		t.Errorf("code %d, %q, want %q", code, &stderr, want)
	}
}

// The program and its children stay off the loop's CPU and end with the run.
func TestAProgramOnThePairLeavesTheLoopItsCPU(t *testing.T) {
	usePython(t)
	text, err := os.ReadFile(benchOf(t, absolute(t, "faulty.py"), "child"))
	if err != nil {
		t.Fatal(err)
	}
	last := runtime.NumCPU() - 1
	file := filepath.Join(t.TempDir(), "bench.yaml")
	pinned := strings.Replace(string(text), "cpu: auto ", fmt.Sprintf("cpu: %d ", last), 1)
	if err := os.WriteFile(file, []byte(pinned), 0o644); err != nil {
		t.Fatal(err)
	}
	code, r, errs := run(t, file, "2s", "-besteffort") // another test may use the CPU
	if code != 0 {
		t.Fatalf("code %d, %q, %s", code, r.Ended, errs)
	}
	if used := fmt.Sprintf("%d]", last); last > 0 && strings.Contains(strings.SplitN(r.UnitOutput, "\n", 2)[0], used) {
		t.Errorf("the program may use CPU %d of the loop: %s", last, r.UnitOutput)
	}
	child := regexp.MustCompile(`child (\d+)`).FindStringSubmatch(r.UnitOutput)
	if child == nil {
		t.Fatalf("no child: %q", r.UnitOutput)
	}
	pid, _ := strconv.Atoi(child[1])
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("the child %d outlives the run: %s", pid, state)
	}
}

// buildC builds a program in C on the header.
func buildC(t *testing.T, source string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		lab.Skip(t, "gcc is missing, which builds the C program: apt-get install gcc libc6-dev")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lockstep.h"), unitprogram.Header, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "unit")
	out, err := exec.Command(gcc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-I", dir, "-o", binary, source).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return binary
}

func TestProgramInCIsAControlUnit(t *testing.T) {
	source := filepath.Join(t.TempDir(), "tcu.c")
	if err := os.WriteFile(source, unitprogram.Example, 0o644); err != nil {
		t.Fatal(err)
	}
	file := benchOf(t, buildC(t, source))
	list, r := simulate(t, file, 2*time.Second)
	if again, _ := simulate(t, file, 2*time.Second); !reflect.DeepEqual(list, again) {
		t.Error("the records of two runs differ")
	}
	// The last cycle before the last grid point, 2 s, is that at 1.99 s; the first gear stays locked.
	if r.RxFrames != 2*199 || r.Transitions != 0 || r.RxBad+r.RxShort+r.RxRange != 0 ||
		r.UnitOutput != "tcu: 400 frames with speeds, the last at 2.000 s\n" {
		t.Errorf("%d frames in, %d transitions, output %q", r.RxFrames, r.Transitions, r.UnitOutput)
	}
	code, p, errs := run(t, file, "2s")
	if code != 0 || p.RxFrames < 50 || p.Transitions != 0 || !strings.HasPrefix(p.UnitOutput, "tcu: ") {
		t.Errorf("on the pair: code %d, %d frames in, %d transitions, %q, %s", code, p.RxFrames, p.Transitions, p.UnitOutput, errs)
	}
}

func TestFloodOfAProgramEndsIt(t *testing.T) {
	file := benchOf(t, buildC(t, "testdata/flood.c"))
	code, r, errs := run(t, file, "3s")
	if want := regexp.MustCompile(`^control unit .* floods: it sent after tick \d+ \(.* s\) more than 2500 frames within 100ms$`); code != 1 || !want.MatchString(r.Ended) {
		t.Errorf("code %d, %q, %s", code, r.Ended, errs)
	}
	if r.Missed > 500 {
		t.Errorf("%d ticks missed of 600: the flood reached the loop", r.Missed)
	}
	_, err := virtual.Simulation{Plant: file, For: time.Second, Every: 1}.Run()
	exit := (*host.Exit)(nil)
	if !errors.As(err, &exit) || exit.Code != 1 || !strings.Contains(err.Error(), "floods: it sent before tick 1 (0.005 s) more than 256 frames on drive") {
		t.Errorf("in virtual time: %v", err)
	}
}

// A sweep starts the program for each case; a replay needs none.
func TestSweepsAndSoaksTakePrograms(t *testing.T) {
	usePython(t)
	dir := t.TempDir()
	unit := filepath.Join(dir, "tcu.py")
	example, err := os.ReadFile("../../deploy/python/examples/powershift.py")
	if err != nil {
		t.Fatal(err)
	}
	text := benchtest.DemoText(t, "control_unit: powershift ", "control_unit: {exec: ./tcu.py} ", "overrun: skip 200", "overrun: skip 1000")
	for name, content := range map[string]string{
		"bench.yaml": text, "builtin.yaml": benchtest.DemoText(t, "overrun: skip 200", "overrun: skip 1000"),
		"s.yaml": "sweep: s\nbench: bench.yaml\nfor: 2 s\nparameters:\n  mu: {of: clutch2.mu, from: 0.1, to: 0.12, steps: 3}\nresults:\n  end: {final: w4}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(unit, example, 0o755); err != nil {
		t.Fatal(err)
	}
	out := lab.MustRun(t, "sweep", filepath.Join(dir, "s.yaml"), "-o", dir)
	if !strings.Contains(out, "3 cases") {
		t.Errorf("sweep: %s", out)
	}
	rec := filepath.Join(dir, "a.rec")
	lab.MustRun(t, "sim", filepath.Join(dir, "bench.yaml"), "-for", "2s", "-record", rec)
	lab.MustRun(t, "check", filepath.Join(dir, "bench.yaml"))
	lab.MustRun(t, "soak", filepath.Join(dir, "bench.yaml"), "-for", "10s", "-load=false", "-faults=false", "-scenarios", "none")
	if err := os.Remove(unit); err != nil {
		t.Fatal(err)
	}
	lab.MustRun(t, "replay", rec)
}
