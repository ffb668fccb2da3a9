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

// packageVar is the environment variable with the path of the package to install in the lab.
const packageVar = "LOCKSTEP_LAB_PACKAGE"

// The test installs the package on a bare machine, runs the service and purges the package, in
// three boots.
func TestLabInstallServesFromBootAndLeavesNoTrace(t *testing.T) {
	if !onDebian(t) {
		return
	}
	for ; ; nextBoot(t) {
		switch boot(t) {
		case "":
			runTests(t, []subtest{
				{"StateOfTheBareSystemIsSaved", saveBefore},
				{"InterruptedInstallationIsRepairedByInstalling", interrupted},
				{"PackageWithLostFilesIsRepairedByInstalling", halfRemoved},
				{"InstallationStartsNoServiceAndChangesOnlyADevice", installed},
				{"EditedFileInEtcSurvivesAReinstallation", upgraded},
				{"BenchIsEnabledOnACard", enabled},
			})
		case "installed":
			runTests(t, []subtest{
				{"ServiceIsUpAfterBootOnTheCard", upAtBoot},
				{"StopLeavesSafeValuesThenSilence", stopped},
				{"PurgedPackageLeavesNothing", purged},
			})
		default:
			runTests(t, []subtest{{"NextBootHasNoTraceOfThePackage", forgotten}})
			return
		}
		if t.Failed() {
			return
		}
	}
}

// onDebian runs the calling test in a machine with Debian, where the package is at packageVar. It reports whether it is there.
func onDebian(t *testing.T) bool {
	debian := lab.Debian
	if os.Getenv(lab.InsideVar) != debian.Script {
		debian.Require(t)
		buildPackage(t)
		debian.Env = []string{packageVar + "=" + debian.HostFiles + installation.deb}
	}
	if !lab.Inside(t, debian, "qemu-system-x86_64") {
		return false
	}
	t.Setenv(lab.CommandVar, "/usr/bin/lockstep")
	// "degraded" if a unit of Debian has failed: state compares this with the time before.
	t.Logf("booted: %s", output(t, "systemctl is-system-running --wait || true"))
	return true
}

// subtest is a test of one boot.
type subtest struct {
	name  string
	check func(*testing.T)
}

// runTests runs the subtests of a boot in order.
func runTests(t *testing.T, list []subtest) {
	for _, f := range list {
		if !t.Run(f.name, f.check) {
			t.Log(output(t, "journalctl -b --no-pager -o short-monotonic -u 'lockstep*' -u systemd-networkd | tail -n 60"))
		}
	}
}

// bootFile holds the stage of the test over reboots.
const bootFile = "/run/lab/boot"

// boot returns the stage of the test: "", installed or purged.
func boot(t *testing.T) string {
	text, err := os.ReadFile(bootFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// nextBoot reboots the machine for the next stage. The reboot ends this process.
func nextBoot(t *testing.T) {
	next := map[string]string{"": "installed", "installed": "purged"}[boot(t)]
	if err := os.WriteFile(bootFile, []byte(next), 0o666); err != nil {
		t.Fatal(err)
	}
	output(t, "systemctl --no-block reboot")
	time.Sleep(5 * time.Minute)
	t.Fatal("the machine does not reboot within 5 min")
}

// output runs a line of bash and returns its output.
func output(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("bash", "-c", "exec 2>&1; "+line).Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// save writes values to a file that survives reboots; saved reads them.
func save(t *testing.T, name string, all map[string]string) {
	t.Helper()
	data, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile("/run/lab/"+name, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func saved(t *testing.T, name string) (all map[string]string) {
	t.Helper()
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, "/run/lab/"+name)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func saveBefore(t *testing.T) {
	if list := traces(t, "lockstep"); list != nil {
		t.Fatalf("traces of lockstep before its installation: %q", list)
	}
	all := snapshot(t)
	t.Logf("%d paths", len(all))
	save(t, "files", all)
	save(t, "state", state(t))
}

// checkUnchanged compares files and settings with those before the installation.
func checkUnchanged(t *testing.T) {
	t.Helper()
	for _, line := range append(diff(saved(t, "files"), snapshot(t)), diff(saved(t, "state"), state(t))...) {
		t.Error(line)
	}
	for _, line := range traces(t, "lockstep") {
		t.Error("left behind: " + line)
	}
}

// dpkgStatus returns the state of the package in dpkg.
func dpkgStatus(t *testing.T) string {
	return output(t, "dpkg-query -W -f '${Status}' lockstep || true")
}

// installPackage installs the package, also over itself, and checks that it is complete. It uses
// dpkg, since apt does nothing after an interruption.
func installPackage(t *testing.T) {
	t.Helper()
	out := output(t, "dpkg -i "+os.Getenv(packageVar))
	if got := dpkgStatus(t); got != "install ok installed" {
		t.Fatalf("state %q of the package, want installed:\n%s", got, out)
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

// interrupted kills the package manager with all its children, by a program that the package
// manager or a script of the package calls, and repairs the package.
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
			t.Errorf("%s: %v, state %q of the package; want it killed and %q\n%s", k.line, err, got, k.state, out)
		}
		installPackage(t)
	}
}

// halfRemoved deletes files of the package by hand and repairs the package.
func halfRemoved(t *testing.T) {
	lab.Shell(t, "rm -rf /usr/bin/lockstep /usr/lib/systemd/system/*lockstep* /usr/share/doc/lockstep /etc/lockstep && systemctl daemon-reload")
	installPackage(t)
	lab.Shell(t, "systemctl cat lockstep@.service >/dev/null && lockstep version")
	lab.Shell(t, "rm -rf /usr/bin/lockstep /usr/lib/systemd/system/*lockstep* /usr/lib/sysusers.d/lockstep.conf /etc/lockstep && systemctl daemon-reload")
	purgePackage(t)
	checkUnchanged(t)
}

func installed(t *testing.T) {
	t.Log(output(t, "apt-get install -y --no-install-recommends "+os.Getenv(packageVar)))
	installPackage(t)
	if got := output(t, "systemctl list-units --all --no-legend --type=service 'lockstep*'"); got != "" {
		t.Errorf("the installation has started %s", got)
	}
	now := state(t)
	for _, line := range diff(saved(t, "state"), now) {
		if !strings.HasPrefix(line, "user lockstep:") && !strings.HasPrefix(line, "device /dev/cpu_dma_latency ") {
			t.Error(line)
		}
	}
	t.Log(output(t, "lockstep version; id lockstep; systemctl list-unit-files --no-legend 'lockstep*'; dpkg -L lockstep"))
}

// upgraded edits the configuration files of the package and installs the package again.
func upgraded(t *testing.T) {
	files := strings.Fields(output(t, "dpkg-query -W -f '${Conffiles}' lockstep | awk '{print $1}'"))
	if len(files) == 0 {
		t.Fatal("the package has no configuration file")
	}
	before := map[string]string{}
	for _, file := range files {
		lab.Shell(t, "echo '# edited' >>"+file)
		before[file] = lab.ReadTrimmed(t, file)
	}
	installPackage(t)
	for _, file := range files {
		if got := lab.ReadTrimmed(t, file); got != before[file] {
			t.Errorf("%s lost its edit and is now\n%s", file, got)
		}
	}
}

func purged(t *testing.T) {
	lab.Shell(t, "systemctl start lockstep@lab") // the removal stops it
	purgePackage(t)
	undoNetwork(t)
	checkUnchanged(t)
}

func forgotten(t *testing.T) {
	checkUnchanged(t)
	if got := output(t, "journalctl -b -o cat --no-pager | grep -i lockstep | grep -v TestLab || true"); got != "" {
		t.Errorf("the journal of this boot:\n%s", got)
	}
}
