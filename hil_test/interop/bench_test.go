package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/virtual"
)

// runPython runs a script or a module of Python in a folder, and returns its output; fails: it ends with another
// status than 0.
func runPython(t *testing.T, dir string, fails bool, words ...string) string {
	t.Helper()
	t.Setenv("LOCKSTEP", lab.Command(t))
	cmd := exec.Command("/usr/bin/python3", words...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if (err != nil) != fails {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// pytest runs the tests of a file with pytest, and returns its output.
func pytest(t *testing.T, dir string, fails bool, file string, flags ...string) string {
	t.Helper()
	words := []string{"-m", "pytest", "-p", "no:cacheprovider", "-q", "--basetemp", filepath.Join(dir, "pytest"), file}
	return runPython(t, dir, fails, append(words, flags...)...)
}

func TestPytestSuiteRunsInVirtualTimeAndOnThePair(t *testing.T) {
	usePython(t, "pytest")
	file := benchtest.DemoFile(t, "overrun: skip 200", "overrun: skip 1000")
	for _, flags := range [][]string{{"--lockstep-virtual"}, {"--lockstep-flag=-besteffort"}} {
		out := pytest(t, t.TempDir(), false, absolute(t, "test_bench.py"), append(flags, "--lockstep-bench", file)...)
		if !strings.Contains(out, "5 passed") {
			t.Errorf("%s: %s", flags, out)
		}
	}
}

func TestPythonChangesTheIgnition(t *testing.T) {
	usePython(t, "pytest")
	out := pytest(t, t.TempDir(), false, absolute(t, "test_ignition.py"), "--lockstep-virtual", "--lockstep-bench", "automatic-bench")
	if !strings.Contains(out, "1 passed") {
		t.Error(out)
	}
}

// A failed test names the record, which replays, and shows the signals that it has used.
func TestFailedPythonTestReportsItsRecordAndSignals(t *testing.T) {
	usePython(t, "pytest")
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"pytest.ini": "[pytest]\nlockstep_bench = powershift-bench\n",
		"test_fails.py": `
def test_fails(virtual_bench):
    virtual_bench.wait_until("w1 > 1000 rpm", timeout="1 s")
    virtual_bench.fault(name="lost", frame="Speeds", drop=True)
    virtual_bench.advance("50 ms")
    virtual_bench.expect("w1 > 5000 rpm", within="1 s")
`, "powershift-bench": benchtest.DemoText(t)})
	out := pytest(t, dir, true, "test_fails.py")
	for _, want := range []string{
		`NotReached: w1 > 5000 rpm did not hold within 1 s; at 1\.\d+ s w1\[rpm\] is \d{4}\.\d+\n`,
		`-+ lockstep powershift-bench -+\nrecord: \S+/virtual.rec\nsignals: \S+/powershift-bench-signals.csv\n\n` +
			`tick  time\[s\]  w1\[rpm\]\n(\d+  1\.\d+  \d{4}\.?\d*\n){10}`,
		`\n1 failed in`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("want %s\n%s", want, out)
		}
	}
	folder := filepath.Join(dir, "pytest/test_fails0")
	table, err := os.ReadFile(filepath.Join(folder, "powershift-bench-signals.csv"))
	if lines := strings.Split(string(table), "\n"); err != nil || len(lines) < 150 ||
		!strings.HasPrefix(lines[0], "time[s],clutch1.pressure[bar],") || strings.Count(lines[9], ",") != strings.Count(lines[0], ",") {
		t.Errorf("%d lines of signals, %v: %.200s", len(lines), err, table)
	}
	rec := filepath.Join(folder, "virtual.rec")
	if _, err := (virtual.Replay{Record: rec}).Run(); err != nil {
		t.Error(err)
	}
	lost := false
	for _, e := range recordtest.Entries(t, rec) {
		lost = lost || e.Kind == record.EventEntry && strings.HasPrefix(e.Event.Text, "fault name=lost ")
	}
	if !lost {
		t.Error("the record has no fault")
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A script that takes random times gives the same record: changes have effect at the ticks at which the run
// stood, several of them at one tick. The replay needs no script.
func TestRecordOfAScriptDoesNotDependOnItsPauses(t *testing.T) {
	usePython(t)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"script.py": `
import random, sys, time
import lockstep
with lockstep.Bench.virtual("truck-bench", record=sys.argv[1]) as bench:
    def pause(): time.sleep(random.random() / 50)
    assert bench.read("v") is not None and bench.tick == 0
    ticks = []
    for i in range(20):
        pause()
        ticks.append(bench.write("throttle", 2 * i, "%"))
        pause()
        ticks.append(bench.fault(name="ice", input="mu_left", stuck=0.1 + i / 50, for_="20 ms"))
        pause()
        ticks.append(bench.mark(f"step {i}"))
        bench.advance(0.0335)
    assert bench.capture(["throttle", "v"], "100 ms").lost == 0
    bench.release("all")
    bench.advance("0.1 s")
    print(ticks)
print(bench.stop().clean)
`})
	var lists [2][]record.Entry
	var outs [2]string
	for i := range lists {
		rec := filepath.Join(dir, "a.rec")
		outs[i] = runPython(t, dir, false, "script.py", rec)
		lists[i] = recordtest.Entries(t, rec)
		if _, err := (virtual.Replay{Record: rec}).Run(); err != nil {
			t.Error(err)
		}
	}
	if !strings.HasPrefix(outs[0], "[1, 1, 1, ") || !strings.HasSuffix(outs[0], "]\nTrue\n") || outs[0] != outs[1] {
		t.Errorf("%s\n%s", outs[0], outs[1])
	}
	if len(lists[0]) < 200 || !reflect.DeepEqual(lists[0], lists[1]) {
		t.Errorf("%d and %d entries, or different ones", len(lists[0]), len(lists[1]))
	}
}

// The run of a program that is killed goes on; another one finds it and ends it.
func TestBenchOutlivesItsClient(t *testing.T) {
	usePython(t)
	dir := t.TempDir()
	text := regexp.MustCompile(`(?m)^bench: \S+`).ReplaceAllString(benchtest.DemoText(t, "overrun: skip 200", "overrun: skip 1000"), "bench: outlives")
	writeFiles(t, dir, map[string]string{"bench.yaml": text, "dies.py": `
import os, signal
import lockstep
bench = lockstep.Bench.start("bench.yaml", "-besteffort")
bench.fault(name="lost", frame="Speeds", drop=True)
os.kill(os.getpid(), signal.SIGKILL)
`, "finds.py": `
import lockstep
with lockstep.Bench.attach("outlives") as bench:
    first = bench.tick
    bench.advance("50 ms")
    assert bench.tick >= first + 10 and bench.faults()[0]["name"] == "lost"
    assert not bench.is_virtual
with lockstep.Bench.attach("outlives") as bench:
    report = bench.stop()
assert report.clean and report.ended == "stopped by ctl", report
try:
    lockstep.Bench.attach("outlives")
except lockstep.BenchError as e:
    print(e)
`})
	runPython(t, dir, true, "dies.py")
	if out := runPython(t, dir, false, "finds.py"); out != "no bench outlives runs: lockstep ps lists the runs\n" {
		t.Error(out)
	}
}

// A supervisor that dies in the middle of an answer has ended the run for its clients.
func TestAnswerThatIsCutEndsTheRun(t *testing.T) {
	usePython(t)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"cut.py": `
import os, socket, threading
import lockstep

path = os.path.join(os.getcwd(), "cut.sock")
door = socket.socket(socket.AF_UNIX)
door.bind(path)
door.listen()
head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
description = b'{"bench": "cut", "period_s": 0.005, "signals": []}'
answers = [head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(description), description), head + b"40\r\n{\"sig", head + b"40\r\n{\"tick"]

def serve():
    for answer in answers:
        with door.accept()[0] as c:
            c.recv(4096)
            c.sendall(answer)

threading.Thread(target=serve, daemon=True).start()
bench = lockstep.Bench(path)
bench.close()
try:
    bench.faults()
except lockstep.BenchEnded as e:
    print(e)
stream = bench._send(lockstep.bench._Connection(path, 30), "GET", "/stream")
try:
    bench._sample(stream)
except lockstep.BenchEnded as e:
    print(e)
`})
	out := runPython(t, dir, false, "cut.py")
	if strings.Count(out, "cut: the run has ended") != 2 {
		t.Error(out)
	}
}
