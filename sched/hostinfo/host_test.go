package hostinfo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMachineDescribesTheHost(t *testing.T) {
	b := Read("testdata/hosts/tuned", -1).Machine()
	if b.Processor != "11th Gen Intel(R) Core(TM) i5-1145GRE @ 2.60GHz" || !b.Realtime || b.CPUs != "0-3" || b.Cmdline == "" || b.Isolated != "3" || b.Governor != "performance" {
		t.Errorf("%+v", b)
	}
	if len(b.CAN) != 2 || b.CAN[0].Interface != "can0" || b.CAN[0].State != "up" || b.CAN[0].Queue < 100 {
		t.Errorf("cards %+v", b.CAN)
	}
	if empty := Read(t.TempDir(), 0).Machine(); empty.MemoryKB != 0 || empty.ID != "" || len(empty.CAN) != 0 {
		t.Errorf("an empty folder: %+v", empty)
	}
}

func TestStolenTicksCountsOneCPU(t *testing.T) {
	const stat = "cpu  10 0 20 30 0 0 0 99 0 0\ncpu0 5 0 10 15 0 0 0 92 0 0\ncpu1 5 0 10 15 0 0 0 7 0 0\ncpu10 1 1 1 1 1 1 1 5 0 0\nintr 1\n"
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "proc"), 0o755), os.WriteFile(filepath.Join(root, "proc/stat"), []byte(stat), 0o644)); err != nil {
		t.Fatal(err)
	}
	for cpu, want := range map[int]int64{0: 92, 1: 7, 10: 5, 2: 0} {
		if got := StolenTicks(root, cpu); got != want {
			t.Errorf("CPU %d: %d ticks stolen, want %d", cpu, got, want)
		}
	}
	if got := StolenTicks(t.TempDir(), 0); got != 0 {
		t.Errorf("without /proc: %d ticks", got)
	}
}

func TestKernelVersionsAreCompared(t *testing.T) {
	for release, want := range map[string]bool{
		"6.1.0-40-rt-amd64": false, "6.11.9": false, "6.12.0": true, "6.12.47+rpt-rpi-v8-rt": true, "6.12-rc1": true, "7.0.1": true, "5.15": false, "": false, "x.y": false,
	} {
		if got := (&Host{Release: release}).KernelAtLeast(6, 12); got != want {
			t.Errorf("%q at least 6.12: %t", release, got)
		}
	}
}
