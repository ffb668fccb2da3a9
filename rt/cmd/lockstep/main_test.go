package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/inputfile"
	"lockstep/io/yamlfile"
	"lockstep/model/plants"
	"lockstep/rt/bench"
	"lockstep/rt/report"
	"lockstep/rt/target"
)

// program is the path of the command, built once; the tests run it like a user.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue { // most tests wait for their processes
		_ = p.Value.Set("4")
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

// session is a running command.
type session struct {
	t           *testing.T
	cmd         *exec.Cmd
	out, errors bytes.Buffer
	seen        chan struct{} // closed after the first status line
	over        chan struct{} // closed when the command has ended; then err is valid
	err         error
}

// begin starts the command in its own process group, like a shell.
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

// statusLine matches the beginning of a status line after the first tick: the time.
var statusLine = regexp.MustCompile(`(?m)^ *\d+(\.\d)? s `)

// watched collects the standard output and reports the first tick.
type watched struct {
	s    *session
	told bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.s.out.Write(b)
	if !w.told && statusLine.Match(b) {
		w.told = true
		close(w.s.seen)
	}
	return len(b), nil
}

// patience is the longest wait for a condition. It is far longer than a loaded machine needs, so
// that no result depends on it.
const patience = time.Minute

// await waits until a condition is true; the test fails after patience.
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
	case <-time.After(5 * patience): // some commands compute that long
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

// find returns a running child of the session by its first argument; 0 if there is none.
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

// patientBench writes the demo bench with a policy that tolerates the stalls of a busy machine.
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

// readReport reads a report.
func readReport(t *testing.T, file string) (r report.Report) {
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
	for _, c := range []struct {
		line string
		is   func(error) bool // test of the error; nil: a run would begin in this process
		want string           // words of the line
	}{
		{"rum", as[usageError], `"rum" run?`},
		{"xyzzy", as[usageError], `"xyzzy" run, attach, ctl, ps, stop, sim, sweep, replay, export, check, gen, plants, ecu,`},
		{"run -fro 3s", as[usageError], "run: -fro -for?"},
		{"run -xyzzy", as[usageError], "run: -xyzzy -besteffort, -bus, -for, -junit, -kernel, -record, -report, -scenario"},
		{"run a b", as[usageError], `run: "b" [BENCH.yaml]`},
		{"run -for -3s", as[usageError], `run: "-3s" -for: 0`},
		{"run -for 5", as[usageError], `run: "5" -for: 5 needs a unit: 5 ms or 5 s?`},
		{"run -for NaN", as[usageError], `run: "NaN" -for: 10s 500ms`},
		{"run -for 9999999h", as[usageError], `run: "9999999h" -for: 2562047h`},
		{"run /dev/zero", is(inputfile.ErrNotRegular), "/dev/zero is a device"},
		{"run /tmp", is(syscall.EISDIR), "/tmp"},
		{"run -bus vcan0;reboot", nil, `run: -bus: "vcan0;reboot"`},
		{"run -for 1ms", nil, "run: 1ms 5ms"},
		{"run -bus x=y", nil, "run: -bus x=y: BUS=INTERFACE; drive"},
		{"run nosuch.yaml", as[*bench.NotFoundError], "nosuch.yaml,"},
		{"run -report /nosuch/r.json", nil, "run: /nosuch/r.json:"},
		{"sim", as[usageError], "sim: missing; PLANT|BENCH"},
		{"sim powershit", as[*bench.NotFoundError], "powershit, powershift?)"},
		{"sim powershift -step 0s", as[usageError], `sim: "0s" -step: 0`},
		{"sim powershift -step 1h -for 1s", nil, ""},
		{"sim powershift -every 0", as[usageError], "sim: -every 1"},
		{"sim powershift -scheme best", as[usageError], `sim: "best" -scheme: complete papers`},
		{"sim powershift-bench -step 1ms", nil, "sim: -step 1ms powershift-bench (period: 5 ms)"},
		{"sim powershift-bench -in automatic4-reverse", nil, "sim: -in automatic4-reverse powershift-bench stimuli"},
		{"sim powershift-bench -scheme papers", nil, "sim: -scheme papers powershift-bench (scheme: papers)"},
		{"sim powershift-bench -for 1ms", nil, "sim: 1ms 5ms"},
		{"sim powershift-bench -record /dev/shm/lockstep.o -report /dev/shm/lockstep.o", as[*sameFileError], "sim: -record -report /dev/shm/lockstep.o"},
		{"sim powershift-bench -scenario nosuch", as[*bench.NotFoundError], "nosuch,"},
		{"sim powershift-bench -record /nosuch/r.rec", is(fs.ErrNotExist), "/nosuch/r.rec:"},
		{"sim powershift -record r.rec", nil, "sim: -record r.rec powershift"},
		{"ctl", as[usageError], "ctl: 0 BENCH|PROCESS status faults"},
		{"sim automatic4-downshifts", as[*bench.KindError], "sim: automatic4-downshifts -in"},
		{"sim automatic4 -in automatic4-downshift", is(fs.ErrNotExist), "automatic4-downshift: automatic4-downshifts?)"},
		{"sim powershift -in automatic4-reverse", as[*yamlfile.FileError], `automatic4-reverse.csv:5:9: "throttle"`},
		{"sim powershift -out /dev/shm/lockstep.o -report /dev/shm/lockstep.o", as[*sameFileError], "sim: -out -report /dev/shm/lockstep.o"},
		{"sim powershift -out - -events -", as[*sameFileError], "sim: -out -events -"},
		{"sim powershift -in /nosuch.csv", is(fs.ErrNotExist), "/nosuch.csv:"},
		{"sim powershift -out /nosuch/o.csv", is(fs.ErrNotExist), "sim: /nosuch/o.csv:"},
		{"sim powershift.dbc", as[*bench.KindError], "sim: powershift.dbc database"},
		{"check automatic4-reverse", as[*bench.KindError], "check: automatic4-reverse sim PLANT -in"},
		{"check powershift -scheme x", as[usageError], `check: "x" -scheme:`},
		{"check nosuch", as[*bench.NotFoundError], "nosuch,"},
		{"plants powershif", nil, `plants: "powershif" ` + strings.Join(embedded, ", ") + ` powershift?)`},
		{"ecu powershift", as[usageError], "ecu: -bus INTERFACE"},
		{"ecu gearbox -bus vcan0", nil, `ecu: "gearbox"; powershift, truck, abs, wsp`},
		{"help nosuch", as[usageError], `"nosuch"`},
	} {
		out, errors, code := lockstep(t, strings.Fields(c.line)...)
		if code != 2 || out != "" || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(errors, "lockstep: ") || !has(errors, strings.Fields(c.want)...) {
			t.Errorf("lockstep %s: code %d, out %q\ngot  %swant %s", c.line, code, out, errors, c.want)
		}
		if c.is == nil {
			continue
		}
		if err := failure(strings.Fields(c.line)...); !c.is(err) {
			t.Errorf("lockstep %s: %T, %v", c.line, err, err)
		}
	}
}

// has reports whether a text contains all words.
func has(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// failure returns the error of a command line that is refused.
func failure(words ...string) error {
	c, err := find(words[0])
	if err == nil {
		err = c.args().execute(words[1:])
	}
	return err
}

// as reports whether an error has type T.
func as[T error](err error) bool {
	var e T
	return errors.As(err, &e)
}

// is returns a test for an error.
func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

func TestUnknownInterfaceIsRefusedWithTheCommandThatCreatesIt(t *testing.T) {
	for _, line := range []string{"run -bus lockstep9", "run -bus lockstep9 -besteffort", "ecu powershift -bus lockstep9"} {
		_, errors, code := lockstep(t, strings.Fields(line)...)
		for end := time.Now().Add(time.Minute); !has(errors, "lockstep9") && !has(errors, "AF_CAN") && time.Now().Before(end); { // other tests may hold every CPU
			_, errors, code = lockstep(t, strings.Fields(line)...)
		}
		named := has(errors, "lockstep9", "ip link add dev")
		none := has(errors, "AF_CAN", can.HelpWithoutCAN())
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
		if code != 0 || errors != "" || !strings.HasPrefix(flags, "usage: lockstep "+c.args().usage()+"\n") {
			t.Errorf("help %s: code %d, %q, %q", c.name, code, flags, errors)
		}
	}
	if code != 0 || strings.Contains(out, "lockstep "+target.Command) {
		t.Errorf("code %d; the hidden command is shown or help fails:\n%s", code, out)
	}
}

func TestPrintedPlantsPassCheck(t *testing.T) {
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
	for _, want := range []string{"plant powershift", "256", "bench powershift-bench", "TCU_Pressure_1.pressure_C1", "clutch1.pressure[bar]", "400 frames/s", "54.0 kbit/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("check does not say %q", want)
		}
	}
	if code != 0 || errors != "" {
		t.Errorf("check: code %d, %s", code, errors)
	}
}
