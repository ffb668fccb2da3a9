package hiltest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Variables that the tests outside of the lab hand to themselves inside.
const (
	insideVar  = "LOCKSTEP_LAB"        // the lab
	commandVar = "LOCKSTEP_LAB_BINARY" // path of the lockstep command
	senderVar  = "LOCKSTEP_LAB_SENDER" // set: be the sender of sender_test.go
)

// scratch is a folder for what is built once for all tests.
var scratch string

func TestMain(m *testing.M) {
	if os.Getenv(unitVar) != "" {
		os.Exit(proofUnit(os.Args[1:]))
	}
	runTests(m)
}

// runTests is the TestMain of a package: it gives its tests a scratch folder, says what was
// skipped, and is the sender of sender_test.go if the test binary is started as that.
func runTests(m *testing.M) {
	if os.Getenv(senderVar) != "" {
		os.Exit(sender(os.Args[1:]))
	}
	var err error
	if scratch, err = os.MkdirTemp("", "lockstep"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	announce()
	os.Exit(code)
}

// unavailable are the tests that were skipped and why.
var (
	unavailable []string
	skipping    sync.Mutex
)

// skip skips a test for a reason that announce repeats.
func skip(t *testing.T, reason string) {
	t.Helper()
	skipping.Lock()
	unavailable = append(unavailable, fmt.Sprintf("SKIPPED %s: %s\n", t.Name(), reason))
	skipping.Unlock()
	t.Skip(reason)
}

// announce says on the terminal what was skipped. `go test ./...` without -v does
// not show what a test binary prints when it passes, so this goes to the standard
// error of the go command itself.
func announce() {
	parent := fmt.Sprintf("/proc/%d/", os.Getppid())
	name, _ := os.ReadFile(parent + "comm")
	if unavailable == nil || string(name) != "go\n" || testing.Verbose() {
		return
	}
	terminal, err := os.OpenFile(parent+"fd/2", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer terminal.Close()
	fmt.Fprintf(terminal, "%sThese, and the socket tests of io/can where the kernel has no CAN, need hil_test/all.\n", strings.Join(unavailable, ""))
}

// machine is a lab: a script beside this file that runs a command in it.
type machine struct {
	script  string
	limit   time.Duration // of a boot and what is done in it, real time
	needs   []string      // programs; nil: the script itself tells, with -install
	outside string        // where this machine's files are in there; "": where they are here
	more    []string      // of the environment, for the test inside
	turn    *sync.Mutex   // held while it runs: it takes all CPUs; nil: it idles most of its time
	paced   bool          // its facts need the pace of a machine of its own: nothing runs beside it
}

var (
	vcanLab  = machine{script: "vcan", limit: 4 * time.Minute, needs: []string{"linux.uml", "ip", "insmod"}}
	pacedLab = machine{script: "vcan", limit: vcanLab.limit, needs: vcanLab.needs, paced: true}
	rtLab    = machine{script: "preempt_rt", limit: 10 * time.Minute, turn: new(sync.Mutex)}
)

// inLab reports whether the test runs inside the vcan lab. Outside it runs the
// same test inside, takes over its result, and reports false: the test then
// returns. It skips where the lab or one of the programs the test needs is missing.
//
// Timing in a lab is meaningless, and most of its time it waits: other tests run beside.
func inLab(t *testing.T, needs ...string) bool {
	t.Helper()
	return inside(t, vcanLab, needs...)
}

func inside(t *testing.T, m machine, needs ...string) bool {
	t.Helper()
	if os.Getenv(insideVar) == m.script {
		return true
	}
	m.require(t, needs...)
	if !m.paced {
		t.Parallel()
	}
	m.more = append(slices.Clone(m.more), commandVar+"="+m.outside+command(t))
	out := m.run(t, ".", m.outside+os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+(m.limit-20*time.Second).String())
	if names := skipped(out); names != nil {
		t.Fatalf("skipped in the lab, where nothing may be: %v", names)
	}
	return false
}

func requireLab(t *testing.T, needs ...string) {
	t.Helper()
	vcanLab.require(t, needs...)
}

func (m machine) require(t *testing.T, needs ...string) {
	t.Helper()
	if testing.Short() {
		skip(t, "boots the "+m.script+" lab: not with -short")
	}
	packages := map[string]string{
		"linux.uml": "user-mode-linux", "candump": "can-utils", "cangw": "can-utils", "cansend": "can-utils", "canplayer": "can-utils",
		"j1939acd": "can-utils", "j1939spy": "can-utils", "testj1939": "can-utils", "tshark": "tshark",
		"ip": "iproute2", "insmod": "kmod", "rmmod": "kmod",
	}
	for _, program := range append(slices.Clone(m.needs), needs...) {
		if module, ok := strings.CutPrefix(program, "python3-"); ok {
			if err := exec.Command("/usr/bin/python3", "-c", "import "+module).Run(); err != nil {
				skip(t, program+" is missing: apt-get install "+program)
			}
			continue
		}
		if _, err := exec.LookPath(program); err != nil {
			skip(t, program+" is missing: apt-get install "+packages[program])
		}
	}
	if m.needs != nil {
		return
	}
	if out, err := exec.Command("./"+m.script, "-install").CombinedOutput(); err != nil {
		skip(t, strings.TrimSpace(string(out)))
	}
}

// wait waits for the turn of a lab, and returns what ends it.
func (m machine) wait() (end func()) {
	if m.turn == nil {
		return func() {}
	}
	m.turn.Lock()
	return m.turn.Unlock
}

// run runs a command inside the lab, in a folder, and returns what it printed.
// The test fails if the command fails.
func (m machine) run(t *testing.T, folder string, command ...string) string {
	t.Helper()
	defer m.wait()()
	ctx, cancel := context.WithTimeout(t.Context(), m.limit+30*time.Second)
	defer cancel()
	script, err := filepath.Abs(m.script)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, script, command...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), insideVar+"="+m.script, fmt.Sprintf("LAB_TIMEOUT=%.0f", m.limit.Seconds()))
	cmd.Env = append(cmd.Env, m.more...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // ends the lab, too
	cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("in the lab, %v, %v of a processor:\n%s", time.Since(begin).Round(time.Second/10), spent.Round(time.Second/10), out)
	if err != nil {
		t.Fatalf("in the lab: %v", err)
	}
	return string(out)
}

// skipped are the tests that were skipped in the output of a test binary.
func skipped(out string) (names []string) {
	for line := range strings.Lines(out) {
		if _, rest, ok := strings.Cut(line, "--- SKIP: "); ok {
			names = append(names, strings.Fields(rest)[0])
		}
	}
	return names
}

var built struct {
	once sync.Once
	path string
	err  error
}

// command returns the path of the lockstep command, built once, statically.
func command(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(commandVar); path != "" {
		return path
	}
	built.once.Do(func() {
		built.path = filepath.Join(scratch, "lockstep")
		built.err = build("build", "-o", built.path, "../rt/cmd/lockstep")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// build runs the go command for a static binary.
func build(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// process is a command that a test has started.
type process struct {
	t        *testing.T
	name     string
	cmd      *exec.Cmd
	out, err journal
	done     chan struct{}
}

// start starts a command; it is killed when the test ends.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: filepath.Base(name) + " " + strings.Join(args, " "), cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// signal sends a signal.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// wait returns the exit code; the test fails if the process does not end within d.
func (p *process) wait(d time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(d):
		p.t.Fatalf("%s: does not end within %v\n%s%s", p.name, d, &p.out, &p.err)
		return -1
	}
}

// await waits until the process has written text.
func (p *process) await(text string, d time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(d); ; time.Sleep(2 * time.Millisecond) {
		if strings.Contains(p.out.String(), text) || strings.Contains(p.err.String(), text) {
			return
		}
		select {
		case <-p.done:
			p.t.Fatalf("%s: ended without saying %q\n%s%s", p.name, text, &p.out, &p.err)
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: does not say %q within %v\n%s%s", p.name, text, d, &p.out, &p.err)
		}
	}
}

// journal is what a process writes; it may be read meanwhile.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}
