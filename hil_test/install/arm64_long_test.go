//go:build long

package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// The mathematics and the packages above it take minutes each under the emulator.
func TestSlowPackagesPassTheirTestsOnArm64(t *testing.T) {
	for _, p := range []string{"io/messages", "io/sigmap", "model/units", "model/plantfile", "model/assemble", "model/element/mechanics", "model/element/planar",
		"model/element/contact", "model/element/machine", "model/element/fluid", "model/kernel", "rt/ecu/gearbox", "rt/ecu/brakes", "deploy/doctor", "deploy/latency"} {
		t.Run(strings.ReplaceAll(p, "/", "-"), func(t *testing.T) { onArm64(t, p, "", "-test.timeout=1h") })
	}
	t.Run("io-record", func(t *testing.T) { onArm64(t, "io/record", "AfterKill", "-test.timeout=1h") })
}

// registerArm64 lets this kernel run executables of arm64, as QEMU's package does with systemd. The
// supervisor needs this, since it executes its own file again as the target.
func registerArm64(t *testing.T) {
	t.Helper()
	const misc = "/proc/sys/fs/binfmt_misc"
	if _, err := os.Stat(misc + "/qemu-aarch64"); err == nil {
		return
	}
	if _, err := os.Stat(misc + "/register"); err != nil {
		if err := syscall.Mount("binfmt_misc", misc, "binfmt_misc", 0, ""); err != nil {
			lab.Skip(t, "binfmt_misc cannot be mounted: sudo modprobe binfmt_misc")
		}
		t.Cleanup(func() { syscall.Unmount(misc, 0) })
	}
	rule := lab.ReadTrimmed(t, "/usr/lib/binfmt.d/qemu-aarch64.conf")
	if err := os.WriteFile(misc+"/register", []byte(rule), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(misc+"/qemu-aarch64", []byte("-1"), 0) })
}

// Both processes of a run work on arm64. The emulator allows no check of time, and it does not
// release the locks of a killed thread (robust futexes).
func TestProcessesRunOnArm64(t *testing.T) {
	file, dir := compileArm64(t, "../../rt/cmd/lockstep", "build", "-trimpath"), t.TempDir()
	registerArm64(t)
	rec, report := filepath.Join(dir, "run.rec"), filepath.Join(dir, "r.json")
	p := lab.Start(t, file, "run", "-record", rec, "-report", report)
	lab.AwaitFor(t, "eng", 3*time.Minute, func() bool { return strings.Contains(p.Out.String(), "eng") })
	pid := strconv.Itoa(p.Cmd.Process.Pid)
	for _, words := range [][]string{{"ctl", pid, "fault", "frame=Status", "drop", "for=2 frames"}, {"ps"}, {"stop", pid}} {
		if out, err := exec.Command(file, words...).CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("%q: %v, %s", words, err, out)
		}
	}
	if code := p.Wait(); code != 0 {
		t.Errorf("exit %d, %s", code, &p.Err)
	}
	var r struct {
		Ticks  uint64 `json:"ticks"`
		Allocs uint64 `json:"allocs"`
		GC     uint64 `json:"gc_cycles"`
	}
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, report)), &r); err != nil || r.Ticks == 0 || r.Allocs+r.GC != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if out, err := exec.Command(file, "replay", rec).CombinedOutput(); err != nil {
		t.Errorf("replay: %v, %s", err, out)
	}
	killed := lab.Start(t, file, "run", "-report", report)
	lab.AwaitFor(t, "eng", 3*time.Minute, func() bool { return strings.Contains(killed.Out.String(), "eng") })
	if err := syscall.Kill((&lab.Bench{Process: killed}).Target(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := killed.Wait(); code != 1 || !strings.Contains(killed.Out.String(), "frames sent by the supervisor") {
		t.Errorf("exit %d: no safe values after the kill\n%s%s", code, &killed.Out, &killed.Err)
	}
}
