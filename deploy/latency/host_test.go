package latency

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/sched/hostinfo"
)

// writeHost writes the files of a host below a temporary root and returns the root.
func writeHost(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFiguresOfATunedHostAreRepresentative(t *testing.T) {
	tuned := map[string]string{
		"proc/sys/kernel/osrelease":                            "6.12.43+deb13-rt-amd64\n",
		"sys/kernel/realtime":                                  "1\n",
		"sys/devices/system/cpu/online":                        "0-3\n",
		"sys/devices/system/cpu/isolated":                      "2-3\n",
		"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "performance\n",
		"proc/cpuinfo":                                         "processor\t: 0\nmodel name\t: Some CPU @ 2.4 GHz\nflags\t\t: fpu vme tsc\n",
		"sys/class/dmi/id/product_name":                        "OptiPlex 7090\n",
		"sys/class/dmi/id/sys_vendor":                          "Dell Inc.\n",
	}
	h := hostinfo.Read(writeHost(t, tuned), 3)
	if list := Objections(h); len(list) != 0 {
		t.Errorf("a tuned host: %q", list)
	}
	if f := hostOf(h); f.Processor != "Some CPU @ 2.4 GHz" || f.CPUs != "0-3" || !f.Realtime || f.Hypervisor != "" || f.Kernel != "6.12.43+deb13-rt-amd64" {
		t.Errorf("a tuned host: %+v", f)
	}
	for _, c := range []struct {
		file, text  string
		check, says string // check and part of the text of the objection
		cpu         int
	}{
		{"sys/kernel/realtime", "0\n", "kernel", "PREEMPT_RT", 3},
		{"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "schedutil\n", "governor", "CPU 3 is schedutil", 3},
		{"sys/devices/system/cpu/isolated", "\n", "isolation", "CPU 3", 3},
		{"sys/kernel/realtime", "1\n", "isolation", "CPU 1", 1},
		{"proc/cpuinfo", "model name\t: x\nflags\t\t: fpu hypervisor tsc\n", "virtualisation", "", 3},
		{"sys/class/dmi/id/product_name", "VirtualBox\n", "virtualisation", "VirtualBox", 3},
		{"sys/hypervisor/type", "xen\n", "virtualisation", "xen", 3},
	} {
		files := map[string]string{}
		for name, text := range tuned {
			files[name] = text
		}
		files[c.file] = c.text
		list := Objections(hostinfo.Read(writeHost(t, files), c.cpu))
		if len(list) != 1 || list[0].Check != c.check || !strings.Contains(list[0].Text, c.says) || list[0].Text == "" {
			t.Errorf("%s %q, CPU %d: %q, want one to the %s that says %q", c.file, c.text, c.cpu, list, c.check, c.says)
		}
	}
}

func TestAHostWithoutFrequencyControlHasNoObjectionToItsGovernor(t *testing.T) {
	h := hostinfo.Read(writeHost(t, map[string]string{"sys/kernel/realtime": "1", "sys/devices/system/cpu/isolated": "1"}), 1)
	if list := Objections(h); len(list) != 0 {
		t.Errorf("%q", list)
	}
}
