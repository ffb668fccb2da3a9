package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Shell runs a line of bash, which must succeed.
func Shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("bash", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// CheckRefused runs the command and checks that it is refused, as CheckRefusal does.
func CheckRefused(t *testing.T, want []string, args ...string) {
	t.Helper()
	Start(t, Command(t), args...).CheckRefusal(want)
}

// CheckRefusal awaits the end of a process and checks for exit 3 and one line with all of want.
func (p *Process) CheckRefusal(want []string) {
	p.T.Helper()
	code := p.Wait()
	text := strings.TrimSpace(p.Err.String())
	if code != 3 || strings.Count(text, "\n") != 0 {
		p.T.Errorf("%s: exit %d, want 3 and one line:\n%s", p.Name, code, text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			p.T.Errorf("%s: no %q in %s", p.Name, w, text)
		}
	}
}

// Timeout is how long a test waits for an expected condition. It is far longer than needed on a
// loaded machine, so that no result depends on it.
const Timeout = 3 * time.Minute

// MustRun runs the command, which must succeed, and returns its standard output.
func MustRun(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(Command(t), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("lockstep %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

var built struct {
	once sync.Once
	path string
	err  error
}

// Command returns the path of the lockstep command, built once, statically.
func Command(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(CommandVar); path != "" {
		return path
	}
	built.once.Do(func() {
		built.path = filepath.Join(Scratch, "lockstep")
		built.err = Build("build", "-o", built.path, "lockstep/rt/cmd/lockstep")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// Build runs the go command for a static binary.
func Build(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Process is a command that a test has started.
type Process struct {
	T        *testing.T
	Name     string
	Cmd      *exec.Cmd
	Out, Err Output
	Done     chan struct{} // closed at the end of the process
}

// Start starts a command; it is killed when the test ends.
func Start(t *testing.T, name string, args ...string) *Process {
	t.Helper()
	p := &Process{
		T: t, Name: filepath.Base(name) + " " + strings.Join(args, " "),
		Cmd: exec.Command(name, args...), Done: make(chan struct{}),
	}
	p.Cmd.Stdout, p.Cmd.Stderr = &p.Out, &p.Err
	if err := p.Cmd.Start(); err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	go func() {
		p.Cmd.Wait()
		close(p.Done)
	}()

	t.Cleanup(func() {
		p.Cmd.Process.Kill()
		<-p.Done
	})
	return p
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.T.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.T.Fatalf("%s: %v", p.Name, err)
	}
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Wait waits for the end of a process, at most for Timeout, and returns the exit code.
func (p *Process) Wait() int {
	p.T.Helper()
	return p.WaitFor(Timeout)
}

// WaitFor waits for the end of a process and returns the exit code. The test fails if the process
// does not end within d.
func (p *Process) WaitFor(d time.Duration) int {
	p.T.Helper()
	select {
	case <-p.Done:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(d):
		p.T.Fatalf("%s: does not end within %v\n%s%s", p.Name, d, &p.Out, &p.Err)
		return -1
	}
}

// AwaitOutput waits until the process has written text.
func (p *Process) AwaitOutput(text string) {
	p.T.Helper()
	p.AwaitOutputs(text, 1)
}

// AwaitOutputs waits until the process has written text at least n times.
func (p *Process) AwaitOutputs(text string, n int) {
	p.T.Helper()
	for end := time.Now().Add(Timeout); ; time.Sleep(2 * time.Millisecond) {
		ended := false
		select {
		case <-p.Done: // the output is complete
			ended = true
		default:
		}

		switch {
		case max(strings.Count(p.Out.String(), text), strings.Count(p.Err.String(), text)) >= n:
			return
		case ended:
			p.T.Fatalf("%s: ended before it wrote %q %d times\n%s%s", p.Name, text, n, &p.Out, &p.Err)
		case time.Now().After(end):
			p.T.Fatalf("%s: has not written %q %d times within %v\n%s%s", p.Name, text, n, Timeout, &p.Out, &p.Err)
		}
	}
}

// Output collects the output of a process. It may be read while the process runs.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// RequireProgram skips a test if a program is missing; pkg are the Debian packages to install.
func RequireProgram(t *testing.T, name, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		Skip(t, name+" is missing: apt-get install "+pkg)
	}
}

// MustOutput runs a program, which must succeed, and returns its output.
func MustOutput(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Await waits until a condition holds, and fails the test if it does not hold within Timeout.
func Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	AwaitFor(t, what, Timeout, holds)
}

// AwaitFor is Await with a time limit d.
func AwaitFor(t *testing.T, what string, d time.Duration, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// Run runs the command to its end, and returns standard output, standard error and the exit code.
func Run(t *testing.T, args ...string) (out, errors string, code int) {
	t.Helper()
	p := Start(t, Command(t), args...)
	code = p.Wait()
	return p.Out.String(), p.Err.String(), code
}
