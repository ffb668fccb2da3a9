package report

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt"
	"lockstep/rt/bench"
)

func TestInterruptsAreCountedForTheCPUOfTheLoop(t *testing.T) {
	root := t.TempDir()
	text := `           CPU0       CPU2
  1:          9          7   IO-APIC   1-edge      i8042
 42:         12        345   PCI-MSI 49154-edge      can0, can1
NMI:          0          0   Non-maskable interrupts
LOC:     100000     200000   Local timer interrupts
ERR:          3
MIS:          0
`
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/interrupts"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{"1 i8042": 7, "42 can1": 345, "NMI interrupts": 0, "LOC interrupts": 200000}
	if got := interrupts(root, 2); !maps.Equal(got, want) {
		t.Errorf("CPU 2 had %v, want %v", got, want)
	}
	for _, cpu := range []int{1, 3, -1} {
		if got := interrupts(root, cpu); got != nil {
			t.Errorf("absent CPU %d had %v", cpu, got)
		}
	}
	if got := interrupts(t.TempDir(), 0); got != nil {
		t.Errorf("a host without the file had %v", got)
	}
}

func TestLateTickIsPrintedAsASentence(t *testing.T) {
	b, err := bench.Load("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	e := rt.LateTick{Tick: 400, Lost: 2, LateNs: 11e6, Involuntary: 3, Major: 1}
	e.Spent[rt.Receive], e.Spent[rt.WakeUp] = 9e6, 2e6
	e.Sent[0], e.Unsent[0] = 0b001, 0b110
	v := NewLateTick(h, &e, nil)
	if v.Time != 2 || strings.Join(v.Late, " ") != "Speeds" || strings.Join(v.Unsent, " ") != "Torque Status" || v.Spent.Receive != 9e6 {
		t.Errorf("%+v; want at 2 s, Speeds late, Torque and Status not sent, 9 ms in receiving", v)
	}
	want := "tick 400 at 2.000 s: 11.000 ms late, 2 grid points lost, most time in receiving; " +
		"preempted 3 times; 1 page faults"
	if got := v.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
