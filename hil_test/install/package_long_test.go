//go:build long

package install

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// The network files set up a CAN card with Debian's udev and systemd-networkd, on a real driver.
func TestLabNetworkFilesSetUpACard(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT, "ip") {
		return
	}
	root, err := filepath.Abs("../../deploy/root")
	if err != nil {
		t.Fatal(err)
	}
	sh := func(script string) string { return lab.MustOutput(t, "bash", "-ec", script) }
	sh(`ip link set can0 down
		groupadd --system lockstep
		mkdir -p /etc/systemd/network /run/systemd/netif/{links,leases,lldp}
		chown -R systemd-network /run/systemd/netif
		cp ` + root + `/usr/share/lockstep/network/70-can.network /etc/systemd/network/
		cp ` + root + `/usr/share/lockstep/network/70-can.rules ` + root + `/usr/lib/udev/rules.d/70-lockstep.rules /etc/udev/rules.d/
		/lib/systemd/systemd-udevd --daemon
		udevadm trigger --action=add --subsystem-match=net --subsystem-match=misc
		udevadm settle`)
	daemon := lab.Start(t, "/lib/systemd/systemd-networkd")
	want := []string{"UP", "qlen 100", "state ERROR-ACTIVE", "restart-ms 100", "bitrate 500000"}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		card := sh("ip -d link show can0")
		missing := ""
		for _, w := range want {
			if !strings.Contains(card, w) {
				missing = w
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no %s:\n%s%s%s", missing, card, &daemon.Out, &daemon.Err)
		}
	}
	if out := daemon.Out.String() + daemon.Err.String(); strings.Contains(out, "70-can.network:") {
		t.Errorf("systemd-networkd complains: %s", out)
	}
	if got := sh("stat -c '%U:%G %a' /dev/cpu_dma_latency"); got != "root:lockstep 660\n" {
		t.Errorf("/dev/cpu_dma_latency: %q, want root:lockstep 660", got)
	}
}

func TestPackageForArm64RunsThere(t *testing.T) {
	lab.RequireProgram(t, "dpkg-deb", "dpkg")
	lab.RequireProgram(t, "qemu-aarch64-static", "qemu-user-static")
	dir := t.TempDir()
	files, err := pack("../..", dir, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	deb, tarball := files[0], files[1]
	if got := lab.MustOutput(t, "dpkg-deb", "--field", deb, "Architecture"); got != "arm64\n" {
		t.Errorf("architecture %q", got)
	}
	lab.MustOutput(t, "tar", "-C", dir, "-xzf", tarball)
	program := filepath.Join(dir, strings.TrimSuffix(filepath.Base(tarball), ".tar.gz"), "usr/bin/lockstep")
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 {
		t.Fatalf("the binary is for %v", f.Machine)
	}
	out, err := exec.Command("qemu-aarch64-static", program, "sim", "powershift-bench", "-for", "2s").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ticks            400 ") {
		t.Errorf("%v\n%s", err, out)
	}
}
