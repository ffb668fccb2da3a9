//go:build long

package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// packageVar holds the path of the package to install in the lab.
const packageVar = "LOCKSTEP_LAB_PACKAGE"

// A box from the day it has nothing of this to the day it has nothing of it any more,
// in three boots.
func TestLabInstallServesFromBootAndLeavesNoTrace(t *testing.T) {
	debian := lab.Debian
	if os.Getenv(lab.InsideVar) != debian.Script {
		debian.Require(t)
		packed(t)
		debian.Env = []string{packageVar + "=" + debian.HostFiles + installation.deb}
	}
	if !lab.Inside(t, debian, "qemu-system-x86_64") {
		return
	}
	t.Setenv(lab.CommandVar, "/usr/bin/lockstep")
	// Still "degraded" where a unit of Debian's has failed: state holds that against before.
	t.Logf("booted: %s", output(t, "systemctl is-system-running --wait || true"))
	for ; ; nextBoot(t) {
		switch boot(t) {
		case "":
			box(t, []fact{
				{"BareSystemIsTaken", takeBefore},
				{"PackageKilledWhileItIsInstalledIsRepairedByInstalling", interrupted},
				{"PackageOfWhichFilesAreGoneIsRepairedByInstalling", halfRemoved},
				{"InstallingStartsNothingAndChangesNothingButADevice", installed},
				{"EditedFileOfEtcSurvivesTheSamePackage", upgraded},
				{"BenchIsEnabledOnACard", enabled},
			})
		case "installed":
			box(t, append(serviceFacts, fact{"PurgedPackageLeavesNothing", purged}))
		default:
			box(t, []fact{{"NextBootKnowsNothingOfIt", forgotten}})
			return
		}
		if t.Failed() {
			return
		}
	}
}

// fact is something that must be so; box looks at several of one boot, in order.
type fact struct {
	name  string
	check func(*testing.T)
}

func box(t *testing.T, facts []fact) {
	for _, f := range facts {
		if !t.Run(f.name, f.check) {
			t.Log(output(t, "journalctl -b --no-pager -o short-monotonic -u 'lockstep*' -u systemd-networkd | tail -n 60"))
		}
	}
}

// bootFile says, over reboots, how far the story is.
const bootFile = "/run/lab/boot"

func boot(t *testing.T) string {
	text, err := os.ReadFile(bootFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// nextBoot boots the machine again, to the next part of the story; this process ends.
func nextBoot(t *testing.T) {
	next := map[string]string{"": "installed", "installed": "purged"}[boot(t)]
	if err := os.WriteFile(bootFile, []byte(next), 0o666); err != nil {
		t.Fatal(err)
	}
	output(t, "systemctl --no-block reboot")
	time.Sleep(5 * time.Minute)
	t.Fatal("the machine does not boot again")
}

// output runs a line of shell and returns what it prints.
func output(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("bash", "-c", "exec 2>&1; "+line).Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// keep and kept hold something over reboots.
func keep(t *testing.T, name string, all map[string]string) {
	t.Helper()
	data, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile("/run/lab/"+name, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func kept(t *testing.T, name string) (all map[string]string) {
	t.Helper()
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, "/run/lab/"+name)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func takeBefore(t *testing.T) {
	if list := left(t, "lockstep"); list != nil {
		t.Fatalf("there is something of it before it was installed: %q", list)
	}
	all := snapshot(t)
	t.Logf("%d paths", len(all))
	keep(t, "files", all)
	keep(t, "state", state(t))
}

// same holds files and settings against those before the package.
func same(t *testing.T) {
	t.Helper()
	for _, line := range append(diff(kept(t, "files"), snapshot(t)), diff(kept(t, "state"), state(t))...) {
		t.Error(line)
	}
	for _, line := range left(t, "lockstep") {
		t.Error("left: " + line)
	}
}

// dpkgStatus is what the package manager thinks of the package.
func dpkgStatus(t *testing.T) string {
	return output(t, "dpkg-query -W -f '${Status}' lockstep || true")
}

// installPackage installs the package, over itself where it is there, and wants it whole. It
// is dpkg that repairs: apt does nothing after it was interrupted.
func installPackage(t *testing.T) {
	t.Helper()
	out := output(t, "dpkg -i "+os.Getenv(packageVar))
	if got := dpkgStatus(t); got != "install ok installed" {
		t.Fatalf("the package is %q:\n%s", got, out)
	}
	if bad := output(t, "dpkg --audit; dpkg --verify lockstep | grep -v ' c /etc/'; true"); bad != "" {
		t.Errorf("after installing:\n%s", bad)
	}
}

func purgePackage(t *testing.T) {
	t.Helper()
	out := output(t, "dpkg --purge lockstep")
	if strings.Contains(out, "warning") {
		t.Errorf("purge:\n%s", out)
	}
}

// interrupted has the package manager killed, with all its children, in the middle of
// what it does, by a program that it or a script of the package calls.
func interrupted(t *testing.T) {
	for _, k := range []struct{ program, text, line, state string }{
		{"dpkg-deb", `[ "$1" != --fsys-tarfile ] || { /usr/bin/dpkg-deb "$@" | head -c 3000000; kill -9 0; }; exec /usr/bin/dpkg-deb "$@"`,
			"dpkg -i " + os.Getenv(packageVar), "install reinstreq half-installed"},
		{"systemd-sysusers", "kill -9 0", "dpkg -i " + os.Getenv(packageVar), "install ok half-configured"},
		{"systemctl", "kill -9 0", "dpkg --remove lockstep", "deinstall ok half-configured"},
		{"userdel", "kill -9 0", "dpkg --purge lockstep", "purge ok config-files"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, k.program), []byte("#!/bin/sh\n"+k.text+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", "-c", "PATH="+dir+":$PATH; "+k.line)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.CombinedOutput()
		got := dpkgStatus(t)
		t.Logf("%s, killed in %s: %s", k.line, k.program, got)
		if err == nil || got != k.state {
			t.Errorf("%s: %v, and the package is %q; want it killed and %q\n%s", k.line, err, got, k.state, out)
		}
		installPackage(t)
	}
}

// halfRemoved takes files of the package away, as somebody does who has no patience.
func halfRemoved(t *testing.T) {
	lab.Shell(t, "rm -rf /usr/bin/lockstep /usr/lib/systemd/system/*lockstep* /usr/share/doc/lockstep /etc/lockstep && systemctl daemon-reload")
	installPackage(t)
	lab.Shell(t, "systemctl cat lockstep@.service >/dev/null && lockstep version")
	lab.Shell(t, "rm -rf /usr/bin/lockstep /usr/lib/systemd/system/*lockstep* /usr/lib/sysusers.d/lockstep.conf /etc/lockstep && systemctl daemon-reload")
	purgePackage(t)
	same(t)
}

func installed(t *testing.T) {
	t.Log(output(t, "apt-get install -y --no-install-recommends "+os.Getenv(packageVar)))
	installPackage(t)
	if got := output(t, "systemctl list-units --all --no-legend --type=service 'lockstep*'"); got != "" {
		t.Errorf("installing has started %s", got)
	}
	now := state(t)
	for _, line := range diff(kept(t, "state"), now) {
		if !strings.HasPrefix(line, "user lockstep:") && !strings.HasPrefix(line, "device /dev/cpu_dma_latency ") {
			t.Error(line)
		}
	}
	t.Log(output(t, "lockstep version; id lockstep; systemctl list-unit-files --no-legend 'lockstep*'; dpkg -L lockstep"))
}

// upgraded edits a file of the package's in /etc and installs the package again.
func upgraded(t *testing.T) {
	files := strings.Fields(output(t, "dpkg-query -W -f '${Conffiles}' lockstep | awk '{print $1}'"))
	if len(files) == 0 {
		t.Fatal("the package has no file of configuration")
	}
	before := map[string]string{}
	for _, file := range files {
		lab.Shell(t, "echo '# edited' >>"+file)
		before[file] = lab.ReadTrimmed(t, file)
	}
	installPackage(t)
	for _, file := range files {
		if got := lab.ReadTrimmed(t, file); got != before[file] {
			t.Errorf("%s was edited and is now\n%s", file, got)
		}
	}
}

func purged(t *testing.T) {
	lab.Shell(t, "systemctl start lockstep@lab") // removing stops it
	purgePackage(t)
	undoNetwork(t)
	same(t)
}

func forgotten(t *testing.T) {
	same(t)
	if got := output(t, "journalctl -b -o cat --no-pager | grep -i lockstep | grep -v TestLab || true"); got != "" {
		t.Errorf("the journal of this boot:\n%s", got)
	}
}
