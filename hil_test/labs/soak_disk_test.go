package labs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// processesNamed returns the stat lines of the running processes with a name.
func processesNamed(name string) (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		if text := string(data); strings.Contains(text, "("+name+") ") && !strings.Contains(text, ") Z ") {
			list = append(list, text)
		}
	}
	return list
}

// The record of the first segment fills a disk of 200 kB, and the soak is killed in the second
// segment. The soak stops recording, keeps its totals and leaves no process on the bus; the same
// command resumes it.
func TestLabSoakSurvivesAFullDiskAndAKill(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	small := t.TempDir()
	smallDisk(t, small, "size=200k")
	state := filepath.Join(small, "state")
	args := []string{"soak", "-bus", "vcan0", "-besteffort", "-load=false", "-leg", "12s", "-faults=false", "-scenarios", "none", "-state", state, "-record", small}
	first := lab.StartDemoWith(t, 28*time.Second, nil, args...)
	first.AwaitOutput("no space left on device")
	first.AwaitOutput("soak continues without records")
	first.AwaitOutput("leg 1, plain: ")
	first.AwaitOutput("leg 2, plain, for 16s")
	lab.Await(t, "one unit and one target run", func() bool {
		return len(processesNamed("lockstep-ecu")) == 1 && len(processesNamed("lockstep-target")) == 1
	})
	first.Signal(syscall.SIGKILL)
	lab.Await(t, "no unit and no target run", func() bool { return len(processesNamed("lockstep-ecu"))+len(processesNamed("lockstep-target")) == 0 })
	second := lab.StartDemoWith(t, 28*time.Second, nil, args...)
	code := second.WaitFor(2 * time.Minute)
	t.Logf("%s%s%s%s", &first.Out, &first.Err, &second.Out, &second.Err)
	var v struct {
		lab.Report
		Soak struct {
			Pass         bool
			Legs, Starts int
			Cut          int `json:"legs_cut"`
			Demands      []struct {
				What, Seen string
				Held       bool
			}
		}
	}
	data, err := os.ReadFile(second.File)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	if v.Ticks != 5600 || v.Soak.Legs != 2 || v.Soak.Cut != 1 || v.Soak.Starts != 2 || (code == 0) != v.Soak.Pass || code > 1 {
		t.Errorf("exit %d, %d ticks, %+v; want 5600 of 2 legs, one cut, 2 starts", code, v.Ticks, v.Soak)
	}
	for _, d := range v.Soak.Demands {
		if (d.What == "ticks" || d.What == "ledger" || d.What == "end" || d.What == "page faults" || d.What == "frames out") && !d.Held {
			t.Errorf("%s: seen %s", d.What, d.Seen)
		}
	}
	if list, _ := filepath.Glob(filepath.Join(small, "*.rec")); len(list) > 0 {
		t.Errorf("incomplete records were kept: %q", list)
	}
}
