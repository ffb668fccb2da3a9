package cost

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/sched"
)

// statusBytes returns a size from /proc/PID/status, bytes.
func statusBytes(t *testing.T, pid int, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, text)
	}
	kB, _ := strconv.Atoi(string(m[1]))
	return kB << 10
}

// maxResident is the memory that the target of the demo may hold, bytes.
const maxResident = 40 << 20

// The memory of a run is what its tick reaches. The runtime reserves gigabytes. The least of three starts
// counts: one start in six has half a megabyte more, of pages of the executable beside those that it read.
func TestTheTargetHoldsAndLocksLittleMemory(t *testing.T) {
	lab.RequireLong(t, "starts a run")
	least := math.MaxInt
	for try := 0; try < 3 && least > maxResident; try++ {
		b := lab.StartDemoWith(t, lab.UntilStopped, nil, "run")
		b.AwaitTicking()
		target := lab.Child(t, b.Cmd.Process.Pid, "lockstep-target")
		locked, resident := statusBytes(t, target, "VmLck"), statusBytes(t, target, "VmRSS")
		b.Stop()
		t.Logf("%d MB locked, %d MB resident", locked>>20, resident>>20)
		if locked > sched.LockedMemory {
			t.Errorf("%d bytes are locked, more than the limit that doctor asks for, %d", locked, sched.LockedMemory)
		}
		least = min(least, resident)
	}
	if least > maxResident {
		t.Errorf("%d bytes are resident, want at most %d", least, maxResident)
	}
}
