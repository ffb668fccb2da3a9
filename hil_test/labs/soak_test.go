package labs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// soakVar is how long each soak lasts, like 1h; hil_test/long sets it.
const soakVar = "LOCKSTEP_SOAK"

// soakFor is how long a soak lasts. None with a load runs beside another test: it takes all
// the time of all CPUs but one, and the other would be judged for it.
func soakFor(t *testing.T, usual time.Duration) time.Duration {
	t.Helper()
	d := usual
	if text := os.Getenv(soakVar); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", soakVar, err)
		}
	}
	if end, limited := t.Deadline(); limited && time.Until(end) < d+time.Minute {
		lab.Skip(t, fmt.Sprintf("soaks for %v, longer than the time limit of go test allows: use -timeout 40m", d))
	}
	return d
}

// verdict is what the tests need of `lockstep soak -report`.
type verdict struct {
	lab.Report
	TxRefused uint64 `json:"tx_refused"`
	TxLost    uint64 `json:"tx_lost"`
	Unit      string `json:"unit"`
	Soak      struct {
		Pass    bool
		Load    string
		Demands []struct {
			What, Demanded, Seen string
			Held                 bool
		}
	} `json:"soak"`
}

// demands are all that a soak with a unit makes, in order.
var demands = []string{
	"end", "ticks", "missed ticks", "ledger", "lag", "allocations", "page faults", "frames out", "bus", "frames in", "control unit",
	"supervisor memory", "supervisor files", "supervisor threads", "target memory", "target files", "target threads",
}

// awaitVerdict waits for the end of a soak and returns its verdict; the exit code must
// be the one that it means.
func awaitVerdict(b *lab.Bench) (v verdict) {
	b.T.Helper()
	code := b.WaitFor(b.For + 2*time.Minute)
	b.T.Logf("%s\n%s%s", b.Name, &b.Out, &b.Err)
	data, err := os.ReadFile(b.File)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		b.T.Fatalf("exit %d: %v", code, err)
	}
	var made, failed []string
	for _, d := range v.Soak.Demands {
		made = append(made, d.What)
		if !d.Held {
			failed = append(failed, d.What)
			lines := strings.Split(b.Err.String(), "\n")
			if !slices.ContainsFunc(lines, func(line string) bool {
				return strings.Contains(line, d.What) && strings.Contains(line, d.Demanded) && strings.Contains(line, d.Seen)
			}) {
				b.T.Errorf("standard error has no line with %q, %q and %q", d.What, d.Demanded, d.Seen)
			}
		}
	}
	// Of a run that ends too soon no growth can be told.
	const growth = 11 // index of the first of these demands
	legs := slices.Concat(demands, []string{"growth over legs"})
	if short := slices.Concat(demands[:growth], []string{"processes"}); !slices.Equal(made, demands) && !slices.Equal(made, short) && !slices.Equal(made, legs) {
		b.T.Errorf("demands %q, want %q, %q or %q", made, demands, short, legs)
	}
	if v.Soak.Pass != (failed == nil) || (code == 0) != v.Soak.Pass || code > 1 {
		b.T.Errorf("exit %d, pass %t, failed %q: they do not fit each other", code, v.Soak.Pass, failed)
	}
	return v
}

// failed are the demands that did not hold, but those that the host alone can
// break: a bus drops frames when the program at its other end is not given a CPU
// for long enough, 60 ms on the pair. Then both ends must have counted them: the
// unit hears two of the three messages, and misses at most what was dropped.
func (v *verdict) failed(t *testing.T) (list []string) {
	t.Helper()
	var cycles, missed, dropped, heard, malformed, lost uint64
	_, err := fmt.Sscanf(v.Unit, "powershift: %d cycles sent, %d missed, %d frames dropped, %d frames received, %d malformed, %d lost by",
		&cycles, &missed, &dropped, &heard, &malformed, &lost)
	host := err == nil && v.TxDropped > 0 && lost <= v.TxDropped && malformed == 0 &&
		(dropped == 0 || v.Missed > 0) && v.TxRefused == 0 && v.BusDown == 0
	for _, d := range v.Soak.Demands {
		switch {
		case d.Held:
		case host && (d.What == "bus" || d.What == "control unit"):
			t.Logf("the host was too late for the control unit: %s: %s", d.What, d.Seen)
		default:
			list = append(list, d.What)
		}
	}
	return list
}

// pauseTarget stops the target for a while, once it has ticked for two seconds. It may have
// ended before: the verdict tells.
func pauseTarget(b *lab.Bench, d time.Duration) {
	b.T.Helper()
	pid := lab.Child(b.T, b.Cmd.Process.Pid, "lockstep-target")
	b.AwaitTicks(400)
	err := syscall.Kill(pid, syscall.SIGSTOP)
	time.Sleep(d)
	if err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil && !errors.Is(err, syscall.ESRCH) {
		b.T.Fatal(err)
	}
}

// On the host, where timing has a meaning, in two processes and under the whole
// load. That the target stands still for a while is part of it: it is counted, and
// the frames of these ticks with it, and nothing else breaks.
func TestSoakUnderLoadKeepsWhatARunPromises(t *testing.T) {
	lab.RequireTime(t, "soaks for a minute, under a load on all CPUs")
	const still = 200 * time.Millisecond
	b := lab.StartDemoWith(t, soakFor(t, time.Minute), nil, "soak", "-scenarios", "none", "-faults=false")
	pauseTarget(b, still)
	v := awaitVerdict(b)
	if failed := v.failed(t); failed != nil {
		t.Errorf("broken: %q", failed)
	}
	if want := uint64(still.Nanoseconds()/v.StepNs) - 1; v.Missed < want || v.TxLost < 2*want {
		t.Errorf("the target stood still for %v: missed %d, %d frames of theirs; want at least %d and twice as many", still, v.Missed, v.TxLost, want)
	}
	if !strings.HasPrefix(v.Soak.Load, "cpu, memory, scheduler, garbage on CPU ") {
		t.Errorf("load %q", v.Soak.Load)
	}
}

func TestSoakUnderStopFailsWithTheFirstMissedTick(t *testing.T) {
	b := lab.StartDemoWith(t, time.Minute, []lab.Edit{{"overrun: skip 200", "overrun: stop # not overrun: skip 200"}}, "soak", "-load=false")
	pauseTarget(b, 200*time.Millisecond)
	v := awaitVerdict(b)
	failed := v.failed(t)
	for _, want := range []string{"end", "ticks", "missed ticks"} {
		if !slices.Contains(failed, want) {
			t.Errorf("broken: %q; want %s among them", failed, want)
		}
	}
	if v.Missed == 0 {
		t.Errorf("%s: missed 0", v.Ended)
	}
}

// patientSockets lets the sockets of a lab hold what comes while it stands still, so that
// none is lost between its kernel and the control unit.
func patientSockets(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/core/rmem_default", []byte("8388608"), 0); err != nil {
		t.Fatal(err)
	}
}

// On SocketCAN: what is sent crosses a kernel. Timing means nothing there, so that
// no load is needed to make ticks late; frames and counters are exact.
func TestLabSoakOnVcanLosesNoFrame(t *testing.T) {
	d := soakFor(t, time.Minute)
	machine := lab.VCAN
	machine.Limit = d + 3*time.Minute
	if !lab.Inside(t, machine) {
		return
	}
	patientSockets(t)
	b := lab.StartDemoWith(t, d, nil, "soak", "-bus", "vcan0", "-besteffort", "-load=false")
	v := awaitVerdict(b)
	if failed := v.failed(t); failed != nil {
		t.Errorf("broken: %q", failed)
	}
}

// On PREEMPT_RT, with the drivers of two real cards, the unit at the other one. The
// emulator stands still for a second now and then, and the cards with it; that is
// load enough.
func TestLabSoakOnTwoCardsKeepsWhatARunPromises(t *testing.T) {
	d := soakFor(t, 30*time.Second)
	machine := lab.PreemptRT
	machine.Limit = d + 5*time.Minute
	if !lab.Inside(t, machine) {
		return
	}
	patientSockets(t)
	before := lab.CardCounters(t)
	b := lab.StartDemoWith(t, d, nil, "soak", "-bus", "can0", "-unitbus", "can1", "-load=false")
	v := awaitVerdict(b)
	now := lab.CardCounters(t)
	since := func(count string) int { return now[count] - before[count] }
	failed := v.failed(t)
	if slices.Equal(failed, []string{"control unit"}) && since("can1 rx_over_errors") > 0 {
		// What the emulated card of the unit has no room for is lost, by its driver's own count.
		var lost, malformed int
		_, said, _ := strings.Cut(v.Unit, "frames received, ")
		_, err := fmt.Sscanf(said, "%d malformed, %d lost", &malformed, &lost)
		if gone := since("can0 tx_packets") - since("can1 rx_packets"); err == nil && malformed == 0 && lost <= gone {
			t.Logf("the card of the unit overran %d times: %d frames did not reach the unit, %d of them by their counters", since("can1 rx_over_errors"), gone, lost)
			failed = nil
		}
	}
	if failed != nil {
		t.Errorf("broken: %q", failed)
	}
	if v.BestEffort {
		t.Error("best effort, on a machine that grants everything")
	}
}

// The lock of the state file is not seen from another kernel.
func TestASecondSoakOfALabInOneFolderIsRefused(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "vcan")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("../soak", "vcan", "10s", folder).CombinedOutput()
	var exit *exec.ExitError
	if want := "soak: " + dir + ": another soak goes on there\n"; !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != want {
		t.Errorf("%v, %q; want exit status 3, %q", err, out, want)
	}
}
