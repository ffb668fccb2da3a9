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

// soakVar is the length of each soak, like 1h; hil_test/long sets it.
const soakVar = "LOCKSTEP_SOAK"

// soakFor returns the length of a soak. It skips the test if the time limit of go test is shorter.
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

// verdict is the part of `lockstep soak -report` that the tests read.
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

// criteria are the criteria of a soak with a unit, in order.
var criteria = []string{
	"end", "ticks", "missed ticks", "ledger", "lag", "allocations", "page faults", "frames out", "bus", "identifiers", "frames in", "control unit",
	"supervisor memory", "supervisor files", "supervisor threads", "target memory", "target files", "target threads",
}

// awaitVerdict waits for the end of a soak and returns its verdict. It checks that the exit code
// and standard error agree with the verdict.
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
	var found, failed []string
	for _, d := range v.Soak.Demands {
		found = append(found, d.What)
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
	// A run that ends early has no criteria of growth.
	const growth = 12 // index of the first criterion of growth
	legs := slices.Concat(criteria, []string{"growth over legs"})
	if short := slices.Concat(criteria[:growth], []string{"processes"}); !slices.Equal(found, criteria) && !slices.Equal(found, short) && !slices.Equal(found, legs) {
		b.T.Errorf("criteria %q, want %q, %q or %q", found, criteria, short, legs)
	}
	if v.Soak.Pass != (failed == nil) || (code == 0) != v.Soak.Pass || code > 1 {
		b.T.Errorf("exit %d, pass %t, failed %q contradict each other", code, v.Soak.Pass, failed)
	}
	return v
}

// failed returns the failed criteria, without those that only the host has broken: a bus drops
// frames if the program at its other end gets no CPU for long, 60 ms on the pair. In that case both
// ends must have counted the frames: the unit receives two of the three messages and misses at most
// the dropped frames and those that the card of the unit has lost by its own count.
func (v *verdict) failed(t *testing.T, lostByCard int) (list []string) {
	t.Helper()
	var cycles, missed, dropped, received, malformed, lost uint64
	_, err := fmt.Sscanf(v.Unit, "powershift: %d cycles sent, %d missed, %d frames dropped, %d frames received, %d malformed, %d lost by",
		&cycles, &missed, &dropped, &received, &malformed, &lost)
	gone := v.TxDropped + uint64(lostByCard)
	host := err == nil && gone > 0 && lost <= gone && malformed == 0 &&
		(dropped == 0 || v.Missed > 0) && v.TxRefused == 0 && v.BusDown == 0
	for _, d := range v.Soak.Demands {
		switch {
		case d.Held:
		case host && (d.What == "bus" || d.What == "control unit"):
			t.Logf("the host was too slow for the control unit: %s: %s", d.What, d.Seen)
		default:
			list = append(list, d.What)
		}
	}
	return list
}

// pauseTarget stops the target for a time d after two seconds of ticks. A target that has ended
// before is no error here: the verdict shows it.
func pauseTarget(b *lab.Bench, d time.Duration) {
	b.T.Helper()
	b.AwaitTicks(400)
	pid := lab.TargetOf(b.T, b.Cmd.Process.Pid)
	if pid == 0 {
		return
	}
	err := syscall.Kill(pid, syscall.SIGSTOP)
	time.Sleep(d)
	if err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil && !errors.Is(err, syscall.ESRCH) {
		b.T.Fatal(err)
	}
}

// The soak runs on the host, where timing has a meaning, in two processes under the full load. The
// test stops the target for a while: these ticks and their frames are counted as missed, and no
// other criterion fails.
func TestSoakUnderLoadMeetsAllCriteria(t *testing.T) {
	lab.RequireLong(t, "soaks for a minute, under a load on all CPUs")
	const still = 200 * time.Millisecond
	b := lab.StartDemoWith(t, soakFor(t, time.Minute), nil, "soak", "-scenarios", "none", "-faults=false")
	pauseTarget(b, still)
	v := awaitVerdict(b)
	if failed := v.failed(t, 0); failed != nil {
		t.Errorf("failed criteria: %q", failed)
	}
	if want := uint64(still.Nanoseconds()/v.StepNs) - 1; v.Missed < want || v.TxLost < 2*want {
		t.Errorf("the target was stopped for %v: %d ticks missed with %d frames; want at least %d and twice as many", still, v.Missed, v.TxLost, want)
	}
	if !strings.HasPrefix(v.Soak.Load, "cpu, memory, scheduler, garbage on CPU ") {
		t.Errorf("load %q", v.Soak.Load)
	}
}

func TestSoakUnderStopFailsWithTheFirstMissedTick(t *testing.T) {
	b := lab.StartDemoWith(t, time.Minute, []lab.Edit{{"overrun: skip 200", "overrun: stop # not overrun: skip 200"}}, "soak", "-load=false")
	pauseTarget(b, 200*time.Millisecond)
	v := awaitVerdict(b)
	failed := v.failed(t, 0)
	for _, want := range []string{"end", "ticks", "missed ticks"} {
		if !slices.Contains(failed, want) {
			t.Errorf("failed criteria: %q; want %s among them", failed, want)
		}
	}
	if v.Missed == 0 {
		t.Errorf("%s: no missed tick, want some", v.Ended)
	}
}

// enlargeSockets enlarges the receive buffers of the lab, so that the control unit loses no frame
// while the lab stalls.
func enlargeSockets(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/core/rmem_default", []byte("8388608"), 0); err != nil {
		t.Fatal(err)
	}
}

// On vcan frames cross a kernel and counters are exact. Ticks are late even without a load.
func TestLabSoakOnVcanLosesNoFrame(t *testing.T) {
	d := soakFor(t, time.Minute)
	machine := lab.VCAN
	machine.Limit = d + 10*time.Minute
	if !lab.Inside(t, machine) {
		return
	}
	enlargeSockets(t)
	b := lab.StartDemoWith(t, d, nil, "soak", "-bus", "vcan0", "-besteffort", "-load=false")
	v := awaitVerdict(b)
	if failed := v.failed(t, 0); failed != nil {
		t.Errorf("failed criteria: %q", failed)
	}
}

// The soak runs on PREEMPT_RT with the drivers of two cards; the unit is at the second card. No
// load is needed, since the emulator and its cards stall even when nothing else runs here; beside
// other labs they stall for so long that the driver's queue overflows.
func TestLabSoakOnTwoCardsMeetsAllCriteria(t *testing.T) {
	d := soakFor(t, 30*time.Second)
	machine := lab.PreemptRTSerial
	machine.Limit = d + 12*time.Minute
	if !lab.Inside(t, machine) {
		return
	}
	enlargeSockets(t)
	before := lab.CardCounters(t)
	b := lab.StartDemoWith(t, d, nil, "soak", "-bus", "can0", "-unitbus", "can1", "-load=false")
	v := awaitVerdict(b)
	now := lab.CardCounters(t)
	since := func(count string) int { return now[count] - before[count] }
	lostByCard := 0
	if since("can1 rx_over_errors") > 0 {
		lostByCard = max(0, since("can0 tx_packets")-since("can1 rx_packets"))
		t.Logf("the card of the unit overran: %d frames did not reach the unit", lostByCard)
	}
	if failed := v.failed(t, lostByCard); failed != nil {
		t.Errorf("failed criteria: %q", failed)
	}
	if v.BestEffort {
		t.Error("best effort, although the lab grants all rights")
	}
}

// The script has a lock of its own, since the lock of the state file does not work across kernels.
func TestSecondSoakOfALabInOneFolderIsRefused(t *testing.T) {
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
	if want := "soak: " + dir + ": another soak is running in this folder\n"; !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != want {
		t.Errorf("%v, %q; want exit status 3, %q", err, out, want)
	}
}
