package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/model/plants"
	"lockstep/rt/bench"
	"lockstep/rt/target"
)

// program is the command, built once; the tests run it as a user does.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue { // most wait for what they have started
		_ = p.Value.Set("6")
	}
	dir, err := os.MkdirTemp("", "lockstep")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "lockstep")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// session is one run of the command.
type session struct {
	t           *testing.T
	cmd         *exec.Cmd
	out, errors bytes.Buffer
	seen        chan struct{} // closed when the first line of status is out
	over        chan struct{} // closed when it has ended; err is valid then
	err         error
}

// begin starts the command in its own process group, as a shell does.
func begin(t *testing.T, files []*os.File, args ...string) *session {
	t.Helper()
	s := &session{t: t, cmd: exec.Command(program, args...), seen: make(chan struct{}), over: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &watched{s: s}, &s.errors
	s.cmd.ExtraFiles = files
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.over)
	}()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		<-s.over
		if t.Failed() {
			t.Logf("lockstep %q:\n%s%s", args, &s.out, &s.errors)
		}
	})
	return s
}

// watched is standard output; it tells when the plant has begun to move.
type watched struct {
	s    *session
	told bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.s.out.Write(b)
	if !w.told && bytes.Contains(b, []byte("missed")) {
		w.told = true
		close(w.s.seen)
	}
	return len(b), nil
}

// patience is how long a test awaits a fact that has to come true: far longer than it takes
// on a loaded machine, so that no result depends on it.
const patience = time.Minute

// await waits until a fact is true, and fails the test if it does not become true.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// running waits until the bench ticks.
func (s *session) running() {
	s.t.Helper()
	select {
	case <-s.seen:
	case <-s.over:
		s.t.Fatalf("the run ended before its first line of status: %v, %s", s.err, s.errors.String())
	case <-time.After(patience):
		s.t.Fatalf("no line of status within %v", patience)
	}
}

// end waits for the end and returns the exit code.
func (s *session) end() int {
	s.t.Helper()
	select {
	case <-s.over:
	case <-time.After(patience):
		s.t.Fatalf("the command does not end: %s", s.out.String())
	}
	var e *exec.ExitError
	if s.err != nil && !errors.As(s.err, &e) {
		s.t.Fatal(s.err)
	}
	for _, text := range []string{s.out.String(), s.errors.String()} {
		if strings.Contains(text, "goroutine ") || strings.Contains(text, "panic:") {
			s.t.Errorf("a stack trace reached the user:\n%s", text)
		}
	}
	return s.cmd.ProcessState.ExitCode()
}

// lockstep runs the command to its end.
func lockstep(t *testing.T, args ...string) (out, errors string, code int) {
	t.Helper()
	s := begin(t, nil, args...)
	code = s.end()
	return s.out.String(), s.errors.String(), code
}

// child awaits a running child of the session by its first argument.
func (s *session) child(name string) (pid int) {
	s.t.Helper()
	await(s.t, "there is a child process "+name, func() bool {
		pid = s.find(name)
		return pid != 0
	})
	return pid
}

// find is child without waiting; 0 when there is none.
func (s *session) find(name string) int {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		args, _ := os.ReadFile(file)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, after, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(after) // state, parent, ...
		if len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(s.cmd.Process.Pid) &&
			strings.HasPrefix(string(args), "lockstep\x00"+name+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// patientBench is the demo bench that rides out the stalls of a busy machine.
func patientBench(t *testing.T, replace ...string) string {
	t.Helper()
	text, _, code := lockstep(t, "plants", "powershift-bench")
	if code != 0 {
		t.Fatalf("plants: exit code %d", code)
	}
	text = strings.NewReplacer(append(replace, "overrun: skip 200", "overrun: skip 1000")...).Replace(text)
	file := filepath.Join(t.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// readReport decodes a report, strictly by the keys of the contract.
func readReport(t *testing.T, file string) (r bench.Report) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, data)
	}
	return r
}

func TestWrongCommandLinesEndWithOneLineAndCode2(t *testing.T) {
	var embedded []string
	for _, e := range plants.List() {
		embedded = append(embedded, e.Name)
	}
	for _, c := range []struct{ line, want string }{
		{"rum", `unknown command "rum" (did you mean run?)`},
		{"xyzzy", `unknown command "xyzzy"; known are run, attach, ctl, ps, stop, sim, sweep, replay, export, check, gen, plants, ecu, `},
		{"run -fro 3s", "run: unknown flag -fro (did you mean -for?)"},
		{"run -xyzzy", "run: unknown flag -xyzzy; its flags are -besteffort, -bus, -for, -junit, -kernel, -record, -report, -scenario"},
		{"run a b", "run: 2 names given; usage: lockstep run [BENCH.yaml]"},
		{"run -for -3s", `run: invalid value "-3s" for flag -for: it must be more than 0`},
		{"run -for NaN", `run: invalid value "NaN" for flag -for: a time is wanted, like 10s or 500ms`},
		{"run -for 9999999h", `run: invalid value "9999999h" for flag -for: it is too long; at most 2562047h are counted`},
		{"run /dev/zero", "bench: /dev/zero: too large"},
		{"run /tmp", "bench: /tmp is a directory"},
		{"run -bus vcan0;reboot", `run: -bus: "vcan0;reboot" cannot be the name of a CAN interface`},
		{"run -for 1ms", "run: 1ms is shorter than the period, 5ms"},
		{"run -bus x=y", "run: -bus x=y: write -bus BUS=INTERFACE; the bench's buses are drive"},
		{"run nosuch.yaml", "bench: no file nosuch.yaml, and nothing embedded of that name"},
		{"run -report /nosuch/r.json", "run: report: open /nosuch/r.json: no such file or directory"},
		{"sim", "sim: 0 names given; usage: lockstep sim PLANT|BENCH"},
		{"sim powershit", "bench: no file powershit, and nothing embedded of that name (did you mean powershift?)"},
		{"sim powershift -step 0s", `sim: invalid value "0s" for flag -step: it must be more than 0`},
		{"sim powershift -step 1h -for 1s", ""},
		{"sim powershift -every 0", "sim: -every must be at least 1"},
		{"sim powershift -scheme best", `sim: invalid value "best" for flag -scheme: it must be complete or papers`},
		{"sim powershift-bench -step 1ms", "sim: -step 1ms is for a plant; powershift-bench is a bench, and its file says it (period: 5 ms)"},
		{"sim powershift-bench -in automatic4-reverse", "sim: -in automatic4-reverse is for a plant; powershift-bench is a bench, and its inputs come from its buses and from a scenario's stimuli"},
		{"sim powershift-bench -scheme papers", "sim: -scheme papers is for a plant; powershift-bench is a bench, and its file says it (scheme: papers)"},
		{"sim powershift-bench -for 1ms", "sim: 1ms is shorter than the period, 5ms"},
		{"sim powershift-bench -record /dev/shm/lockstep.o -report /dev/shm/lockstep.o", "sim: -report and -record are the same file, /dev/shm/lockstep.o"},
		{"sim powershift-bench -scenario nosuch", "bench: no file nosuch, and nothing embedded of that name"},
		{"sim powershift-bench -record /nosuch/r.rec", "run: record: open /nosuch/r.rec: no such file or directory"},
		{"sim powershift -record r.rec", "sim: -record r.rec is for a bench; powershift is a plant"},
		{"ctl", "ctl: 0 names given; usage: lockstep ctl BENCH|PROCESS status | faults"},
		{"sim automatic4-downshifts", "sim: automatic4-downshifts is a file of inputs: lockstep sim PLANT -in automatic4-downshifts"},
		{"sim automatic4 -in automatic4-downshift", "bench: inputs: open automatic4-downshift: no such file or directory (did you mean automatic4-downshifts?)"},
		{"sim powershift -in automatic4-reverse", "automatic4-reverse.csv:5:9: bench: the plant has no input \"throttle\""},
		{"sim powershift -out /dev/shm/lockstep.o -report /dev/shm/lockstep.o", "sim: -out and -report are the same file, /dev/shm/lockstep.o"},
		{"sim powershift -out - -events -", "sim: -out and -events are the same file, -"},
		{"sim powershift -in /nosuch.csv", "bench: inputs: open /nosuch.csv: no such file or directory"},
		{"sim powershift -out /nosuch/o.csv", "sim: open /nosuch/o.csv: no such file or directory"},
		{"sim powershift.dbc", "sim: powershift.dbc is a database; sim takes a plant"},
		{"check automatic4-reverse", "check: automatic4-reverse: a file of inputs is checked with its plant: lockstep sim PLANT -in automatic4-reverse"},
		{"check powershift -scheme x", `check: invalid value "x" for flag -scheme`},
		{"check nosuch", "bench: no file nosuch, and nothing embedded of that name"},
		{"plants powershif", `plants: "powershif" is not embedded; there are ` + strings.Join(embedded, ", ") + ` (did you mean powershift?)`},
		{"ecu powershift", "ecu: -bus is missing, like -bus vcan0"},
		{"ecu gearbox -bus vcan0", `ecu: no control unit "gearbox"; there are: powershift, truck, abs, wsp`},
		{"help nosuch", `unknown command "nosuch"`},
	} {
		out, errors, code := lockstep(t, strings.Fields(c.line)...)
		if code != 2 || out != "" || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(errors, "lockstep: "+c.want) {
			t.Errorf("lockstep %s: code %d, out %q\ngot  %swant lockstep: %s...", c.line, code, out, errors, c.want)
		}
	}
}

func TestUnknownInterfaceIsRefusedWithTheCommandThatHelps(t *testing.T) {
	for _, line := range []string{"run -bus lockstep9", "run -bus lockstep9 -besteffort", "ecu powershift -bus lockstep9"} {
		_, errors, code := lockstep(t, strings.Fields(line)...)
		for end := time.Now().Add(time.Minute); strings.Contains(errors, "held by a loop") && time.Now().Before(end); { // of another test
			_, errors, code = lockstep(t, strings.Fields(line)...)
		}
		named := strings.Contains(errors, "lockstep9") && strings.Contains(errors, "no such CAN interface") && strings.Contains(errors, "ip link add dev")
		none := strings.Contains(errors, "AF_CAN") && strings.Contains(errors, "modprobe")
		if code != 3 || !(named || none) || strings.Count(errors, "\n") != 1 {
			t.Errorf("lockstep %s: code %d, %s", line, code, errors)
		}
	}
}

func TestHelpListsEveryCommandButNotTheTarget(t *testing.T) {
	out, _, code := lockstep(t, "help")
	for _, c := range commands() {
		if !strings.Contains(out, "lockstep "+c.name) {
			t.Errorf("help does not mention %s", c.name)
		}
		flags, errors, code := lockstep(t, "help", c.name)
		if code != 0 || errors != "" || !strings.HasPrefix(flags, "usage: lockstep "+c.usage+"\n") {
			t.Errorf("help %s: code %d, %q, %q", c.name, code, flags, errors)
		}
	}
	if code != 0 || strings.Contains(out, "lockstep "+target.Command) {
		t.Errorf("code %d; the hidden command is shown or help fails:\n%s", code, out)
	}
}

func TestPlantsPrintsFilesThatWork(t *testing.T) {
	t.Parallel()
	out, _, code := lockstep(t, "plants")
	if code != 0 || strings.Count(out, "\n") < 3 {
		t.Fatalf("code %d, %q", code, out)
	}
	dir := t.TempDir()
	for name, file := range map[string]string{"powershift": "powershift", "powershift-bench": "b.yaml", "powershift.dbc": "powershift.dbc"} {
		text, _, code := lockstep(t, "plants", name)
		if code != 0 || len(text) < 500 {
			t.Fatalf("plants %s: code %d, %d bytes", name, code, len(text))
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, errors, code := lockstep(t, "check", filepath.Join(dir, "powershift"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "powershift.dbc"))
	for _, want := range []string{"plant powershift", "256", "bench powershift-bench", "TCU_Pressure_1.pressure_C1", "clutch1.pressure[Pa]", "400 frames/s", "54.0 kbit/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("check does not say %q", want)
		}
	}
	if code != 0 || errors != "" {
		t.Errorf("check: code %d, %s", code, errors)
	}
}
