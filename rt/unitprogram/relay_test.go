package unitprogram

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/sched"
)

// relayMain is the main function of a relay process.
func relayMain() {
	if err := Relay(os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "lockstep: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// relayProcess is a relay in a process of its own, as the supervisor starts it.
type relayProcess struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err string // files of its output
	status   *rt.StatusBlock
}

// startRelay starts a relay; files follow the status block, and are closed here.
func startRelay(t *testing.T, s Spec, files ...*os.File) *relayProcess {
	t.Helper()
	block, status, err := rt.CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &relayProcess{t: t, cmd: exec.Command(self, RelayCommand, s.Arg()), status: status,
		out: filepath.Join(dir, "out"), err: filepath.Join(dir, "err")}
	p.cmd.Env = append(os.Environ(), "UNITPROGRAM_RELAY=1")
	p.cmd.ExtraFiles = append([]*os.File{block}, files...)
	out, err1 := os.Create(p.out)
	errs, err2 := os.Create(p.err)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(p.cmd.ExtraFiles, out, errs) {
		f.Close()
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// text returns the content of a file of output.
func (p *relayProcess) text(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

// await waits until a file of output has a text.
func (p *relayProcess) await(file, text string) {
	p.t.Helper()
	for end := time.Now().Add(patient); !strings.Contains(p.text(file), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("no %q in %q; %q", text, p.text(p.out), p.text(p.err))
		}
	}
}

// A program on CAN interfaces is started with their names and without a socket. It gets SIGTERM when the
// supervisor ends.
func TestAProgramOnInterfacesOfTheHostNeedsNoProtocol(t *testing.T) {
	t.Parallel()
	s, _, _ := newUnit(t, "", patient)
	s.Path, s.Args = "/bin/sh", []string{"-c", `trap 'echo over; exit 0' TERM
echo "$LOCKSTEP_BUSES/$LOCKSTEP_FD/$CAN_INTERFACE/$CAN_CHANNEL"; while :; do sleep 0.05; done`}
	s.Buses = []Bus{{Name: "drive", Interface: "vcan0"}, {Name: "body", Interface: "vcan1"}}
	life, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := startRelay(t, s, life)
	p.await(p.err, "\n") // the program has set its trap
	ours.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, p.text(p.err))
	}
	if out := p.text(p.err); !strings.HasPrefix(out, "drive=vcan0,body=vcan1//socketcan/vcan0\n") || !strings.HasSuffix(out, "\nover\n") {
		t.Errorf("output %q", out)
	}
	if out := p.text(p.out); out != "./tcu: started on vcan0, vcan1\n./tcu: on vcan0, vcan1, exit status 0\n" {
		t.Errorf("lines %q", out)
	}
}

// pairRelay starts a relay with a program on a pair and returns the loop's end.
func pairRelay(t *testing.T, how string, hang time.Duration) (*relayProcess, *can.Bus) {
	t.Helper()
	s, _, _ := newUnit(t, how, hang)
	target, unit, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	loop, err := can.Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loop.Close() })
	p := startRelay(t, s, unit)
	return p, loop
}

// The relay ends a program that reads nothing for longer than it may, while the run goes on.
func TestAProgramThatReadsNothingIsNamedDuringTheRun(t *testing.T) {
	t.Parallel()
	p, loop := pairRelay(t, "deaf on the pair", 2*time.Second)
	p.await(p.out, "ready")
	p.status.StartNs.Store(uint64(sched.Now()))
	p.status.Ticks.Store(42)
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	for ended := false; !ended; time.Sleep(time.Millisecond) {
		loop.Send(&can.Frame{ID: 0x200, Len: 8})
		select {
		case err := <-done:
			if ended = true; err == nil {
				t.Error("exit status 0")
			}
		default:
		}
	}
	if want := "lockstep: ./tcu hangs: no answer after tick 42 (0.21 s) within 2 s\n"; p.text(p.err) != want {
		t.Errorf("%q, want %q", p.text(p.err), want)
	}
}

// A process that has left the group of the program ends with it, and does not hold the output of the
// relay, whose end the supervisor awaits.
func TestAProcessThatHasLeftTheGroupOfTheProgramEndsWithIt(t *testing.T) {
	t.Parallel()
	s, _, _ := newUnit(t, "escaped", patient)
	target, unit, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	block, _, err := rt.CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, RelayCommand, s.Arg())
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), "UNITPROGRAM_RELAY=1"), []*os.File{block, unit}
	var out, errs strings.Builder // the output is read from pipes until all their writers have ended
	ready := make(chan bool)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, noticed(ready)), &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	<-ready
	target.Close()
	select {
	case err := <-done:
		pid, late := 0, time.Now().Add(patient)
		_, scan := fmt.Sscan(errs.String(), &pid)
		for syscall.Kill(pid, 0) == nil && pid > 0 && time.Now().Before(late) { // whoever adopts the zombie reaps it
			time.Sleep(time.Millisecond)
		}
		if err != nil || scan != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
			t.Errorf("%v, %v; %q, %q", err, scan, out.String(), errs.String())
		}
	case <-time.After(patient):
		t.Error("the output of the relay has not ended")
	}
}

// The relay waits whether the run ends together with the program; the verdict has the tick before.
func TestVerdictNamesTheTickAtWhichTheProgramEnded(t *testing.T) {
	t.Parallel()
	s, _, _ := newUnit(t, "", patient)
	s.Path, s.Args = "/bin/sleep", []string{"1000"}
	block, status, err := rt.CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	block.Close()
	r := &relay{spec: s, status: status}
	if r.p, err = s.start(nil, io.Discard); err != nil {
		t.Fatal(err)
	}
	defer r.p.signal(syscall.SIGKILL)
	status.Ticks.Store(40)
	results, verdict := make(chan error), make(chan error)
	go func() { verdict <- r.await(nil, results) }()
	results <- errClosed
	time.Sleep(20 * time.Millisecond) // the relay waits for the end of the run
	results <- errClosed
	status.Ticks.Store(80)
	if err := <-verdict; err.Error() != "./tcu closed its socket after tick 40 (0.2 s)" {
		t.Error(err)
	}
}

// noticed is closed by the first output.
type noticed chan bool

func (n noticed) Write(b []byte) (int, error) {
	select {
	case <-n:
	default:
		close(n)
	}
	return len(b), nil
}

// A service manager that stops a run signals the program, too: that is no fault of the program.
func TestSignalOfAServiceManagerIsNoFaultOfTheProgram(t *testing.T) {
	t.Parallel()
	p, _ := pairRelay(t, "answers its pid", patient)
	p.await(p.out, "ready")
	p.await(p.err, "\n")
	var pid int
	if _, err := fmt.Sscan(p.text(p.err), &pid); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGTERM)
	_ = syscall.Kill(pid, syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, p.text(p.err))
	}
}
