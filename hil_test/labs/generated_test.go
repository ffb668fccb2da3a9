package labs

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/rt/gen"
)

// targetVar is the path of the generated target, which is built outside of the lab.
const targetVar = "LOCKSTEP_LAB_TARGET"

// The test runs a generated kernel on a real bus and replays the record with the table kernel, bit
// for bit.
func TestLabGeneratedTargetDrivesOnVcanAndReplays(t *testing.T) {
	machine := lab.VCAN
	if os.Getenv(lab.InsideVar) == "" {
		lab.RequireVCAN(t)
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "target")
		if err := (gen.Request{Bench: "powershift-bench", Dir: dir}).Run(io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := lab.Build("build", "-C", dir, "-o", file, "."); err != nil {
			t.Fatal(err)
		}
		machine.Env = []string{targetVar + "=" + file}
	}
	if !lab.Inside(t, machine) {
		return
	}
	tcu, rec := lab.StartUnit(t, "vcan0"), filepath.Join(t.TempDir(), "run.rec")
	b := lab.StartDemoOn(t, "vcan0", 6*time.Second, nil, "-besteffort", "-kernel", os.Getenv(targetVar), "-record", rec)
	b.AwaitOutput("kernel generated, bus drive on vcan0")
	r := b.AwaitReport()
	tcu.Signal(syscall.SIGINT)
	tcu.Wait()
	if r.Transitions == 0 || r.RxFrames == 0 || r.TxFrames == 0 || r.RxUnknown+r.RxShort+r.RxRange != 0 || r.Allocs != 0 || r.GCCycles != 0 {
		t.Errorf("%+v: want transitions and frames, no wrong frame, no allocation and no collection", r)
	}
	replay := lab.Start(t, lab.Command(t), "replay", rec)
	if code := replay.Wait(); code != 0 {
		t.Errorf("replay: exit %d\n%s%s", code, &replay.Out, &replay.Err)
	}
}
