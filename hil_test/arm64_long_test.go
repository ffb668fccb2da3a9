//go:build long

package hiltest

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
)

// The mathematics and what is built on it: minutes each under the emulator.
func TestSlowPackagesPassTheirTestsOnArm64(t *testing.T) {
	for _, p := range []string{"io/messages", "io/sigmap", "model", "model/kernel", "rt/ecu", "deploy"} {
		t.Run(strings.ReplaceAll(p, "/", "-"), func(t *testing.T) { onArm64(t, p, "", "-test.timeout=1h") })
	}
	t.Run("io-record", func(t *testing.T) { onArm64(t, "io/record", "Kill9", "-test.timeout=1h") })
}

// registered has this kernel run executables of arm64, as QEMU's package does where
// systemd runs: the target process is the supervisor's own file, executed again.
func registered(t *testing.T) {
	t.Helper()
	const misc = "/proc/sys/fs/binfmt_misc"
	if _, err := os.Stat(misc + "/qemu-aarch64"); err == nil {
		return
	}
	if _, err := os.Stat(misc + "/register"); err != nil {
		if err := syscall.Mount("binfmt_misc", misc, "binfmt_misc", 0, ""); err != nil {
			skip(t, "binfmt_misc cannot be mounted: sudo modprobe binfmt_misc")
		}
		t.Cleanup(func() { syscall.Unmount(misc, 0) })
	}
	rule := content(t, "/usr/lib/binfmt.d/qemu-aarch64.conf")
	if err := os.WriteFile(misc+"/register", []byte(rule), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(misc+"/qemu-aarch64", []byte("-1"), 0) })
}

// Both processes of a run on arm64, as far as an emulator can be a host: nothing is
// said of time, and what a killed thread leaves to the kernel (robust futexes) it does
// not have.
func TestProcessesRunOnArm64(t *testing.T) {
	file, dir := compiled(t, "../rt/cmd/lockstep", "build", "-trimpath"), t.TempDir()
	registered(t)
	rec, report := filepath.Join(dir, "run.rec"), filepath.Join(dir, "r.json")
	p := start(t, file, "run", "-record", rec, "-report", report)
	p.await("eng", 3*time.Minute)
	pid := strconv.Itoa(p.cmd.Process.Pid)
	for _, words := range [][]string{{"ctl", pid, "fault", "frame=Status", "drop", "for=2 frames"}, {"ps"}, {"stop", pid}} {
		if out, err := exec.Command(file, words...).CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("%q: %v, %s", words, err, out)
		}
	}
	if code := p.wait(time.Minute); code != 0 {
		t.Errorf("exit %d, %s", code, &p.err)
	}
	var r struct {
		Ticks  uint64 `json:"ticks"`
		Allocs uint64 `json:"allocs"`
		GC     uint64 `json:"gc_cycles"`
	}
	if err := json.Unmarshal([]byte(content(t, report)), &r); err != nil || r.Ticks == 0 || r.Allocs+r.GC != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if out, err := exec.Command(file, "replay", rec).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "identical: ") {
		t.Errorf("replay: %v, %s", err, out)
	}
	killed := start(t, file, "run", "-report", report)
	killed.await("eng", 3*time.Minute)
	if err := syscall.Kill((&bench{process: killed}).target(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := killed.wait(time.Minute); code != 1 || !strings.Contains(killed.out.String(), "frames sent by the supervisor") {
		t.Errorf("exit %d: no safe values after the kill\n%s%s", code, &killed.out, &killed.err)
	}
}
