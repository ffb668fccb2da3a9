package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/rt/report"
)

var (
	program string // path of the command, built once
	demo    string // text of the demo bench
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lockstep-faults")
	if err == nil {
		program = filepath.Join(dir, "lockstep")
		err = exec.Command("go", "build", "-o", program, "lockstep/rt/cmd/lockstep").Run()
	}
	if err == nil {
		var text []byte
		text, err = exec.Command(program, "plants", "powershift-bench").Output()
		demo = string(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// timeout is how long a scenario waits for an expected condition.
const timeout = time.Minute

// attempt is one run of a scenario.
type attempt struct {
	*testing.T
	dir  string
	mark string   // name of the bench and value of LOCKSTEP_FAULT in the environment of all processes
	busy []string // failed checks of timing, which a busy host may explain

	attached int // number of attach commands so far; each writes its own report
}

// inTime checks a condition that a busy host may break. The scenario then runs again.
func (a *attempt) inTime(ok bool, format string, args ...any) {
	a.Helper()
	if !ok {
		a.busy = append(a.busy, fmt.Sprintf(format, args...))
	}
}

// giveUp ends an attempt on a host that is too busy for further checks.
func (a *attempt) giveUp(format string, args ...any) {
	a.Helper()
	a.inTime(false, format, args...)
	panic(givenUp{})
}

type givenUp struct{}

// perform runs a check, and ends all processes that remain.
func (a *attempt) perform(check func(*attempt)) {
	defer a.endProcesses()
	defer func() {
		if r := recover(); r != nil && r != (givenUp{}) {
			panic(r)
		}
	}()
	check(a)
}

// must checks a condition that holds on any host.
func (a *attempt) must(ok bool, format string, args ...any) {
	a.Helper()
	if !ok {
		a.Errorf(format, args...)
	}
}

// plan is how a scenario starts the command.
type plan struct {
	text   string   // text of the bench; "": the demo bench
	change []string // changes of the demo bench: old text, new text, ...
	args   []string // arguments after "run BENCH"
	env    []string
	out    *os.File // standard output; nil: session.out
	shell  string   // bash script that runs the command "$@"; "": the command runs directly
}

// defaults are the changes of the demo bench for all scenarios: it tolerates the stalls of a busy
// host, and its safe values differ from those of a plant and of a zeroed buffer.
var defaults = []string{
	"overrun: skip 200", "overrun: skip 1000",
	"values: {w1: 0, w2: 0, w3: 0, w4: 0, tau_engine: 0, tau_load: 0, tau_output: 0,",
	"values: {w1: 10 rad/s, w2: 20 rad/s, w3: 30 rad/s, w4: 4 rad/s, tau_engine: 100 N.m, tau_load: 200 N.m, tau_output: 300 N.m,",
}

// file writes the bench of a scenario and returns its path.
func (a *attempt) file(p plan) string {
	a.Helper()
	text := p.text
	if text == "" {
		text = change(a, demo, p.change, "bench: powershift-bench", "bench: "+a.mark)
		for i := 0; i < len(defaults); i += 2 {
			if !slices.Contains(p.change, defaults[i]) {
				text = change(a, text, defaults[i:i+2])
			}
		}
	}
	file := filepath.Join(a.dir, "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		a.Fatal(err)
	}
	return file
}

// change replaces old text by new, in pairs. The test fails if an old text is missing.
func change(t testing.TB, text string, list []string, more ...string) string {
	t.Helper()
	list = append(slices.Clone(list), more...)
	for i := 0; i < len(list); i += 2 {
		if !strings.Contains(text, list[i]) {
			t.Fatalf("the demo bench has no %q", list[i])
		}
		text = strings.Replace(text, list[i], list[i+1], 1)
	}
	return text
}

// session is a started command.
type session struct {
	*attempt
	cmd    *exec.Cmd
	bus    *unit // the other end of the bus; nil for attach
	out    text
	errors text
	report string        // path of the report
	over   chan struct{} // closed at the end of the command
}

// run starts `lockstep run` on a bus. The test is the control unit at the other end.
func (a *attempt) run(p plan) *session {
	a.Helper()
	product, test, err := can.Pair()
	if err != nil {
		a.Fatal(err)
	}
	defer product.Close()
	s := &session{attempt: a, bus: listen(a, test), report: filepath.Join(a.dir, "run.json")}
	args := []string{"run", a.file(p), "-bus", "fd:3", "-besteffort", "-report", s.report}
	s.start(p, []*os.File{product}, append(args, p.args...)...)
	return s
}

// attach starts `lockstep attach`.
func (a *attempt) attach(args ...string) *session {
	a.Helper()
	a.attached++
	s := &session{attempt: a, report: filepath.Join(a.dir, fmt.Sprintf("attach%d.json", a.attached))}
	s.start(plan{}, nil, append([]string{"attach", "-report", s.report}, args...)...)
	return s
}

// start starts the command in a process group of its own, as a shell does.
func (s *session) start(p plan, files []*os.File, args ...string) {
	s.Helper()
	s.cmd = exec.Command(program, args...)
	if p.shell != "" {
		s.cmd = exec.Command("bash", append([]string{"-c", p.shell, "bash", program}, args...)...)
	}
	s.cmd.Env = append(append(os.Environ(), "LOCKSTEP_FAULT="+s.mark), p.env...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errors
	if p.out != nil {
		s.cmd.Stdout = p.out
	}
	s.cmd.ExtraFiles = files
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.over = make(chan struct{})
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("output of %q:\n%s%s", args, s.out.String(), s.errors.String())
		}
	})
	go func() {
		_ = s.cmd.Wait() // ProcessState has the exit code
		close(s.over)
	}()
}

// text collects the output of a process.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(b)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// processes returns the process ids of the attempt that are alive. command is the first argument of
// lockstep; "": any process.
func (a *attempt) processes(command string) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, _ := os.ReadFile(file) // empty for a zombie
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if bytes.Contains(env, []byte("LOCKSTEP_FAULT="+a.mark+"\x00")) &&
			(command == "" || bytes.HasPrefix(args, []byte("lockstep\x00"+command+"\x00"))) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list = append(list, pid)
		}
	}
	return list
}

// target returns the process id of the target.
func (a *attempt) target() int {
	a.Helper()
	list := a.processes("target")
	if len(list) != 1 {
		a.Fatalf("there are %d target processes, want 1", len(list))
	}
	return list[0]
}

func (a *attempt) signal(pid int, s syscall.Signal) {
	a.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		a.Fatalf("process %d: %v", pid, err)
	}
}

// halt stops a process for a time.
func (a *attempt) halt(pid int, d time.Duration) {
	a.Helper()
	a.signal(pid, syscall.SIGSTOP)
	time.Sleep(d)
	a.signal(pid, syscall.SIGCONT)
}

// ctrlC signals the whole process group, as a terminal does.
func (s *session) ctrlC() {
	s.Helper()
	s.signal(-s.cmd.Process.Pid, syscall.SIGINT)
}

// ends waits for the end of the command and checks its exit code and its standard error: one line
// that contains want, or nothing if want is "".
func (s *session) ends(code int, want string) {
	s.Helper()
	select {
	case <-s.over:
	case <-time.After(timeout):
		s.Fatalf("the command does not end within %v:\n%s", timeout, s.out.String())
	}
	got := s.errors.String()
	if c := s.cmd.ProcessState.ExitCode(); c != code {
		s.Errorf("exit code %d, want %d: %s", c, code, got)
	}
	one := strings.HasPrefix(got, "lockstep: ") && strings.Count(got, "\n") == 1 && strings.Contains(got, want)
	if want == "" && got != "" || want != "" && !one {
		s.Errorf("standard error is %q; want one line with %q", got, want)
	}
	s.Logf("exit code %d: %s", s.cmd.ProcessState.ExitCode(), strings.TrimSpace(got))
}

// read decodes the report.
func (s *session) read() (r report.Report) {
	s.Helper()
	data, err := os.ReadFile(s.report)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		s.Fatalf("report: %v\n%s", err, data)
	}
	return r
}

// endProcesses kills all processes of the attempt. After a successful attempt it first waits for
// their end; a process that remains is an error.
func (a *attempt) endProcesses() {
	a.Helper()
	good := !a.Failed() && len(a.busy) == 0
	until := time.Now().Add(timeout)
	for good && len(a.processes("")) > 0 && time.Now().Before(until) {
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range a.processes("") {
		args, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		a.must(!good || len(args) == 0, "process %d still runs: %q", pid, args)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
