// Package lab owns the tools with which tests observe the product from outside: the labs, the
// lockstep command, a bench and its report, candump, and threads in /proc. It holds no tests.
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

// Environment variables. A test binary outside of the lab sets those that begin with LOCKSTEP_LAB
// for the same test inside.
const (
	InsideVar  = "LOCKSTEP_LAB"        // script of the lab in which the test runs
	CommandVar = "LOCKSTEP_LAB_BINARY" // path of the lockstep command
	allVar     = "LOCKSTEP_ALL"        // set: run the tests that take minutes without -run, too
	SenderVar  = "LOCKSTEP_LAB_SENDER" // set: the test binary is the sender of sender.go
)

// Scratch is a folder for files that are built once for all tests.
var Scratch string

// Main is the TestMain of a package. It makes the scratch folder, runs the tests and prints the
// skipped ones. With SenderVar set, the test binary is the sender of sender.go instead.
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

var (
	skipped   []string // a line for each skipped test, with the reason
	skippedMu sync.Mutex
)

// Skip skips a test. Main prints the reason at the end, too.
func Skip(t testing.TB, reason string) {
	t.Helper()
	skippedMu.Lock()
	skipped = append(skipped, fmt.Sprintf("SKIPPED %s: %s\n", t.Name(), reason))
	skippedMu.Unlock()
	t.Skip(reason)
}

// announceSkipped prints the skipped tests on the terminal. `go test ./...` without -v hides
// the output of a test binary that passes, so the text goes to the standard error of the go
// command itself.
func announceSkipped() {
	parent := fmt.Sprintf("/proc/%d/", os.Getppid())
	name, _ := os.ReadFile(parent + "comm")
	if skipped == nil || string(name) != "go\n" || testing.Verbose() {
		return
	}
	terminal, err := os.OpenFile(parent+"fd/2", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer terminal.Close()
	fmt.Fprintf(terminal, "%sTo run these tests, and the socket tests of io/can on a kernel without CAN: hil_test/all\n",
		strings.Join(skipped, ""))
}

// Machine is a lab: a script of hil_test that runs a command in it.
type Machine struct {
	Script    string        // name of the script
	Limit     time.Duration // time limit of boot and command, real time
	programs  []string      // programs that the lab needs; nil: the script checks them with -install
	HostFiles string        // path of the host's root in the lab; "": the same paths as on the host
	Env       []string      // additional environment of the test inside, NAME=VALUE
	exclusive bool          // one at a time on this host: the lab takes all CPUs
	serial    bool          // not parallel to other tests of the package, which would slow it down
}

var (
	VCAN       = Machine{Script: "vcan", Limit: 20 * time.Minute, programs: []string{"linux.uml", "ip", "insmod"}}
	VCANSerial = Machine{Script: "vcan", Limit: VCAN.Limit, programs: VCAN.programs, serial: true}
	PreemptRT  = Machine{Script: "preempt_rt", Limit: 25 * time.Minute, exclusive: true}
	// PreemptRTSerial is for tests that fail if the emulated cards stall.
	PreemptRTSerial = Machine{Script: PreemptRT.Script, Limit: PreemptRT.Limit, exclusive: true, serial: true}
)

// InVCAN is Inside for the lab vcan.
func InVCAN(t *testing.T, needs ...string) bool {
	t.Helper()
	return Inside(t, VCAN, needs...)
}

// Inside reports whether the test runs inside a lab. Outside, it runs the same test inside,
// adopts the result and returns false; the test then returns. It skips the test if the lab or
// one of the needed programs is missing.
//
// Times in a lab have no meaning, and a lab mostly waits, so labs run in parallel unless the
// machine is serial.
func Inside(t *testing.T, m Machine, needs ...string) bool {
	t.Helper()
	if os.Getenv(InsideVar) == m.Script {
		return true
	}
	m.Require(t, needs...)
	if !m.serial {
		t.Parallel()
	}
	m.Env = append(slices.Clone(m.Env), CommandVar+"="+m.HostFiles+Command(t))
	limit := "-test.timeout=" + (m.Limit - 20*time.Second).String()
	out := m.Run(t, ".", m.HostFiles+os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", limit)
	if names := Skipped(out); names != nil {
		t.Fatalf("skipped in the lab: %v; want no skipped test there", names)
	}
	return false
}

// RequireVCAN is Machine.Require for the lab vcan.
func RequireVCAN(t *testing.T, needs ...string) {
	t.Helper()
	VCAN.Require(t, needs...)
}

// Require skips a test if long tests are off, or if the lab or one of the needed programs is
// missing. python3-MODULE is a module of Python.
func (m Machine) Require(t *testing.T, needs ...string) {
	t.Helper()
	RequireLong(t, "boots the lab "+m.Script)
	packages := map[string]string{
		"linux.uml": "user-mode-linux",
		"candump":   "can-utils", "cangw": "can-utils", "cansend": "can-utils", "canplayer": "can-utils",
		"isotpsend": "can-utils", "isotprecv": "can-utils", "j1939acd": "can-utils", "j1939spy": "can-utils", "testj1939": "can-utils", "j1939cat": "can-utils", "tshark": "tshark",
		"ip": "iproute2", "insmod": "kmod", "rmmod": "kmod", "rtla": "rtla", "hwlatdetect": "rt-tests",
	}
	for _, program := range append(slices.Clone(m.programs), needs...) {
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

	if m.programs != nil {
		return
	}
	install := exec.Command(m.path(t), "-install")
	install.Env = append(os.Environ(), m.Env...)
	if out, err := install.CombinedOutput(); err != nil {
		Skip(t, strings.TrimSpace(string(out)))
	}
}

// RequireLong skips a test that takes minutes, or all CPUs, unless LongTests. The text says what
// the test does. Without these tests go test ./... ends within four minutes.
func RequireLong(t *testing.T, does string) {
	t.Helper()
	if !LongTests() {
		Skip(t, does+": hil_test/all, or -run with the name of the test")
	}
}

// LongTests reports whether long tests run: in hil_test/all, and with -run. Otherwise a test of
// many cases runs only the first ones.
func LongTests() bool {
	names := flag.Lookup("test.run")
	return !testing.Short() && (os.Getenv(allVar) != "" || names != nil && names.Value.String() != "")
}

// path returns the path of the lab's script, in hil_test of the module of the working folder.
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

	t.Fatal("no go.mod above the working folder")
	return ""
}

// lock waits until no other test uses an exclusive lab, and returns the function that releases
// the lab.
func (m Machine) lock(t *testing.T) (unlock func()) {
	t.Helper()
	if !m.exclusive {
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

// Run runs a command inside the lab, in a folder, and returns its output.
// The test fails if the command fails.
func (m Machine) Run(t *testing.T, folder string, command ...string) string {
	t.Helper()
	defer m.lock(t)()
	ctx, cancel := context.WithTimeout(t.Context(), m.Limit+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.path(t), command...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), InsideVar+"="+m.Script, fmt.Sprintf("LAB_TIMEOUT=%.0f", m.Limit.Seconds()))
	cmd.Env = append(cmd.Env, m.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the script then ends the lab
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

// Skipped returns the names of the skipped tests in the output of a test binary.
func Skipped(out string) (names []string) {
	for line := range strings.Lines(out) {
		if _, rest, ok := strings.Cut(line, "--- SKIP: "); ok {
			names = append(names, strings.Fields(rest)[0])
		}
	}

	return names
}

// All lists the labs whose scripts are tested; the long tests add those that take long to boot. LABS.md
// describes what the scripts have in common.
var All = []Machine{VCAN}

// RunScript runs a lab's script and returns its exit status, standard output and standard error.
func (m Machine) RunScript(t *testing.T, environment []string, command ...string) (code int, out, err string) {
	t.Helper()
	defer m.lock(t)()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(m.path(t), command...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}
