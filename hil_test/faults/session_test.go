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

// program is the command, built once; demo is the text of its demo bench.
var program, demo string

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

// patience is how long a scenario waits for what must come at some time.
const patience = time.Minute

// trial is one try of a scenario.
type trial struct {
	*testing.T
	dir  string
	mark string   // in the environment of all its processes
	busy []string // what this try fell short of and a busy host explains

	attached int // that have begun to attach, each with a report of its own
}

// inTime is Errorf for what depends on how busy the host is: another try may do.
func (a *trial) inTime(ok bool, format string, args ...any) {
	a.Helper()
	if !ok {
		a.busy = append(a.busy, fmt.Sprintf(format, args...))
	}
}

// giveUp ends a try in which a host that is too busy leaves nothing to see.
func (a *trial) giveUp(format string, args ...any) {
	a.Helper()
	a.inTime(false, format, args...)
	panic(givenUp{})
}

type givenUp struct{}

// try runs a check, and leaves no process behind.
func (a *trial) try(check func(*trial)) {
	defer a.alone()
	defer func() {
		if r := recover(); r != nil && r != (givenUp{}) {
			panic(r)
		}
	}()
	check(a)
}

// must is Errorf for what holds on any host.
func (a *trial) must(ok bool, format string, args ...any) {
	a.Helper()
	if !ok {
		a.Errorf(format, args...)
	}
}

// plan is how a scenario starts the command.
type plan struct {
	text   string   // of the bench; "" the demo bench
	change []string // in the bench: old text, new text, ...
	args   []string // after "run BENCH"
	env    []string
	out    *os.File // standard output; nil: it is kept
	shell  string   // runs the command, as "$@"; "" it is run directly
}

// patient are the changes of the demo bench for all scenarios: it rides out the
// stalls of a busy host, and no safe value is what a plant or a zeroed buffer
// would send.
var patient = []string{
	"overrun: skip 200", "overrun: skip 1000",
	"values: {w1: 0, w2: 0, w3: 0, w4: 0, tau_engine: 0, tau_load: 0, tau_output: 0,",
	"values: {w1: 10 rad/s, w2: 20, w3: 30, w4: 4, tau_engine: 100, tau_load: 200 N.m, tau_output: 300,",
}

// file writes the bench of a scenario.
func (a *trial) file(p plan) string {
	a.Helper()
	text := p.text
	if text == "" {
		text = change(a, demo, p.change, "bench: powershift-bench", "bench: "+a.mark)
		for i := 0; i < len(patient); i += 2 {
			if !slices.Contains(p.change, patient[i]) {
				text = change(a, text, patient[i:i+2])
			}
		}
	}
	file := filepath.Join(a.dir, "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		a.Fatal(err)
	}
	return file
}

// change replaces old text by new, in pairs; each must be there.
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

// session is a command that has been started.
type session struct {
	*trial
	cmd    *exec.Cmd
	bus    *unit // nil: it has none
	out    text
	errors text
	report string // file
	over   chan struct{}
}

// run starts `lockstep run` on a bus whose other end the test holds.
func (a *trial) run(p plan) *session {
	a.Helper()
	theirs, ours, err := can.Pair()
	if err != nil {
		a.Fatal(err)
	}
	defer theirs.Close()
	s := &session{trial: a, bus: listen(a, ours), report: filepath.Join(a.dir, "run.json")}
	args := []string{"run", a.file(p), "-bus", "fd:3", "-besteffort", "-report", s.report}
	s.start(p, []*os.File{theirs}, append(args, p.args...)...)
	return s
}

// attach starts `lockstep attach`.
func (a *trial) attach(args ...string) *session {
	a.Helper()
	a.attached++ // a report is of one run
	s := &session{trial: a, report: filepath.Join(a.dir, fmt.Sprintf("attach%d.json", a.attached))}
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
			s.Logf("%q said:\n%s%s", args, s.out.String(), s.errors.String())
		}
	})
	go func() {
		_ = s.cmd.Wait() // ProcessState says how
		close(s.over)
	}()
}

// text collects what a process writes.
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

// processes are those of the trial that are alive, with this first argument of the
// command; "" is any.
func (a *trial) processes(command string) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, _ := os.ReadFile(file) // empty of a zombie
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if bytes.Contains(env, []byte("LOCKSTEP_FAULT="+a.mark+"\x00")) &&
			(command == "" || bytes.HasPrefix(args, []byte("lockstep\x00"+command+"\x00"))) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list = append(list, pid)
		}
	}
	return list
}

// target is the process id of the target.
func (a *trial) target() int {
	a.Helper()
	list := a.processes("target")
	if len(list) != 1 {
		a.Fatalf("there are %d target processes, want 1", len(list))
	}
	return list[0]
}

func (a *trial) signal(pid int, s syscall.Signal) {
	a.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		a.Fatalf("process %d: %v", pid, err)
	}
}

// halt stops a process for a time.
func (a *trial) halt(pid int, d time.Duration) {
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

// ends waits for the end of the command and checks its exit code and what it wrote
// to standard error: nothing where want is "", else one line with it.
func (s *session) ends(code int, want string) {
	s.Helper()
	select {
	case <-s.over:
	case <-time.After(patience):
		s.Fatalf("the command does not end within %v:\n%s", patience, s.out.String())
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

// alone sees to it that no process of the trial is left.
func (a *trial) alone() {
	a.Helper()
	over := !a.Failed() && len(a.busy) == 0 // else they are not awaited
	until := time.Now().Add(patience)
	for over && len(a.processes("")) > 0 && time.Now().Before(until) {
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range a.processes("") {
		args, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		a.must(!over || len(args) == 0, "process %d was left behind: %q", pid, args)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
