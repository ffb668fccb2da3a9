package proof

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// In virtual time no grid point is lost. The sent frames, exported as a candump log and checked
// with python-can and crccheck, show each fault exactly as often as requested. Each value of the
// probe is exactly that of its fault.
func TestProofEveryKindOfFaultAppearsInVirtualTime(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"can", "crccheck"} {
		if exec.Command("/usr/bin/python3", "-c", "import "+module).Run() != nil {
			lab.Skip(t, "python3-"+module+" is missing: apt-get install python3-"+module)
		}
	}
	for _, name := range []string{"fd", "classic"} {
		r := &proofRun{T: t, name: name}
		scenario, dir := r.scenario(), t.TempDir()
		text, err := os.ReadFile(scenario)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ = bytes.Cut(text, []byte("\nexpect:")) // without the expectations, which need frames of the units
		if err := os.WriteFile(scenario, text, 0o666); err != nil {
			t.Fatal(err)
		}
		rec, log := filepath.Join(dir, "run.rec"), filepath.Join(dir, "run.log")
		for _, args := range [][]string{
			{"sim", "" + name + ".yaml", "-scenario", scenario, "-record", rec}, {"export", rec, "-o", log},
		} {
			p := lab.Start(t, lab.Command(t), args...)
			if code := p.WaitFor(2 * time.Minute); code != 0 {
				t.Fatalf("%s: exit %d\n%s", p.Name, code, &p.Err)
			}
		}
		out, err := exec.Command("/usr/bin/python3", "unit/unit.py", log).Output()
		if err != nil {
			t.Fatal(err)
		}
		e := &evidence{}
		if err := json.Unmarshal(out, &e.python); err != nil {
			t.Fatal(err)
		}
		e.wire.read(t, rec)
		if e.wire.ticks != 4800 || len(e.wire.missed) != 0 || e.wire.old != 6 {
			t.Errorf("%s: %d ticks, %d missed, %d frames late; want 4800, 0 and 6", name, e.wire.ticks, len(e.wire.missed), e.wire.old)
		}
		e.checkFrameFaults(t, "python-can", e.python.Frames, requested(name == "fd"))
		e.checkProbeFaults(t)
		checkReplay(t, rec)
	}
}
