// Package lab owns the observation of the product from outside for tests: the labs, the lockstep
// command, a bench and its report, candump, and threads in /proc. It does not judge the product,
// except for the checks that each of these makes by itself.
package lab

import (
	"bytes"
	"context"
	"flag"
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
	InsideVar  = "LOCKSTEP_LAB"        // the lab
	CommandVar = "LOCKSTEP_LAB_BINARY" // path of the lockstep command
	timeVar    = "LOCKSTEP_ALL"        // set: do what takes minutes though no test is named
	SenderVar  = "LOCKSTEP_LAB_SENDER" // set: be the sender of sender.go
)

// Scratch is a folder for what is built once for all tests.
var Scratch string

// Main is the TestMain of a package: it gives its tests a scratch folder, says what was
// skipped, and is the sender of sender.go if the test binary is started as that.
func Main(m *testing.M) {
	if os.Getenv(SenderVar) != "" {
		os.Exit(sender(os.Args[1:]))
	}
	var err error
	if Scratch, err = os.MkdirTemp("", "lockstep"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	code := m.Run()
	os.RemoveAll(Scratch)
	announceSkipped()
	os.Exit(code)
}

// unavailable are the tests that were skipped and why.
var (
	unavailable []string
	skipping    sync.Mutex
)

// Skip skips a test for a reason that announceSkipped repeats.
func Skip(t testing.TB, reason string) {
	t.Helper()
	skipping.Lock()
	unavailable = append(unavailable, fmt.Sprintf("SKIPPED %s: %s\n", t.Name(), reason))
	skipping.Unlock()
	t.Skip(reason)
}

// announceSkipped says on the terminal what was skipped. `go test ./...` without -v does
// not show what a test binary prints when it passes, so this goes to the standard
// error of the go command itself.
func announceSkipped() {
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
	fmt.Fprintf(terminal, "%sThese, and the socket tests of io/can where the kernel has no CAN, need hil_test/all.\n",
		strings.Join(unavailable, ""))
}

// Machine is a lab: a script of hil_test that runs a command in it.
type Machine struct {
	Script  string
	Limit   time.Duration // of a boot and what is done in it, real time
	needs   []string      // programs; nil: the script itself tells, with -install
	Outside string        // where this machine's files are in there; "": where they are here
	More    []string      // of the environment, for the test inside
	alone   bool          // one at a time on this host: it takes all CPUs
	paced   bool          // its facts need the pace of a machine of its own: nothing runs beside it
}

var (
	VCAN      = Machine{Script: "vcan", Limit: 4 * time.Minute, needs: []string{"linux.uml", "ip", "insmod"}}
	VCANAlone = Machine{Script: "vcan", Limit: VCAN.Limit, needs: VCAN.needs, paced: true}
	PreemptRT = Machine{Script: "preempt_rt", Limit: 10 * time.Minute, alone: true}
)

// InVCAN reports whether the test runs inside the vcan lab. Outside it runs the
// same test inside, takes over its result, and reports false: the test then
// returns. It skips where the lab or one of the programs the test needs is missing.
//
// Timing in a lab is meaningless, and most of its time it waits: other tests run beside.
func InVCAN(t *testing.T, needs ...string) bool {
	t.Helper()
	return Inside(t, VCAN, needs...)
}

func Inside(t *testing.T, m Machine, needs ...string) bool {
	t.Helper()
	if os.Getenv(InsideVar) == m.Script {
		return true
	}
	m.Require(t, needs...)
	if !m.paced {
		t.Parallel()
	}
	m.More = append(slices.Clone(m.More), CommandVar+"="+m.Outside+Command(t))
	limit := "-test.timeout=" + (m.Limit - 20*time.Second).String()
	out := m.Run(t, ".", m.Outside+os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", limit)
	if names := Skipped(out); names != nil {
		t.Fatalf("skipped in the lab, where nothing may be: %v", names)
	}
	return false
}

func RequireVCAN(t *testing.T, needs ...string) {
	t.Helper()
	VCAN.Require(t, needs...)
}

func (m Machine) Require(t *testing.T, needs ...string) {
	t.Helper()
	RequireTime(t, "boots the lab "+m.Script)
	packages := map[string]string{
		"linux.uml": "user-mode-linux",
		"candump":   "can-utils", "cangw": "can-utils", "cansend": "can-utils", "canplayer": "can-utils",
		"j1939acd": "can-utils", "j1939spy": "can-utils", "testj1939": "can-utils", "tshark": "tshark",
		"ip": "iproute2", "insmod": "kmod", "rmmod": "kmod",
	}
	for _, program := range append(slices.Clone(m.needs), needs...) {
		if module, ok := strings.CutPrefix(program, "python3-"); ok {
			if err := exec.Command("/usr/bin/python3", "-c", "import "+module).Run(); err != nil {
				Skip(t, program+" is missing: apt-get install "+program)
			}
			continue
		}

		if _, err := exec.LookPath(program); err != nil {
			Skip(t, program+" is missing: apt-get install "+packages[program])
		}
	}

	if m.needs != nil {
		return
	}
	if out, err := exec.Command(m.path(t), "-install").CombinedOutput(); err != nil {
		Skip(t, strings.TrimSpace(string(out)))
	}
}

// RequireTime skips a test that does what takes minutes, or all CPUs, where nobody asks for
// it: hil_test/all does, and who names a test by -run. go test ./... leaves it out, so that it
// ends within four minutes.
func RequireTime(t *testing.T, does string) {
	t.Helper()
	if !Asked() {
		Skip(t, does+": hil_test/all, or -run with the name of the test")
	}
}

// Asked reports whether tests are to take the time they need. Else those that go through a
// list take its beginning.
func Asked() bool {
	names := flag.Lookup("test.run")
	return !testing.Short() && (os.Getenv(timeVar) != "" || names != nil && names.Value.String() != "")
}

// path returns the path of the lab's script: it is in hil_test of the module that the
// working folder is in.
func (m Machine) path(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "hil_test", m.Script)
		}
	}

	t.Fatal("the working folder is in no module")
	return ""
}

// wait waits for the turn of a lab, and returns what ends it.
func (m Machine) wait(t *testing.T) (end func()) {
	t.Helper()
	if !m.alone {
		return func() {}
	}
	script, err := os.Open(m.path(t))
	if err == nil {
		err = syscall.Flock(int(script.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { script.Close() }
}

// Run runs a command inside the lab, in a folder, and returns what it printed.
// The test fails if the command fails.
func (m Machine) Run(t *testing.T, folder string, command ...string) string {
	t.Helper()
	defer m.wait(t)()
	ctx, cancel := context.WithTimeout(t.Context(), m.Limit+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.path(t), command...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), InsideVar+"="+m.Script, fmt.Sprintf("LAB_TIMEOUT=%.0f", m.Limit.Seconds()))
	cmd.Env = append(cmd.Env, m.More...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // ends the lab, too
	cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("in the lab, %v, %v of a processor:\n%s",
		time.Since(begin).Round(time.Second/10), spent.Round(time.Second/10), out)
	if err != nil {
		t.Fatalf("in the lab: %v", err)
	}
	return string(out)
}

// Skipped are the tests that were skipped in the output of a test binary.
func Skipped(out string) (names []string) {
	for line := range strings.Lines(out) {
		if _, rest, ok := strings.Cut(line, "--- SKIP: "); ok {
			names = append(names, strings.Fields(rest)[0])
		}
	}

	return names
}

// All are all of them; each script keeps the same promises.
var All = []Machine{VCAN, PreemptRT}

// RunScript runs a lab's script and returns what it leaves behind.
func (m Machine) RunScript(t *testing.T, environment []string, command ...string) (code int, out, err string) {
	t.Helper()
	defer m.wait(t)()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(m.path(t), command...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}
