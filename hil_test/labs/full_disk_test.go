package labs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
)

// smallDisk mounts a file system on a folder. limits are mount options of tmpfs(5).
func smallDisk(t *testing.T, dir, limits string) {
	t.Helper()
	if err := unix.Mount("small", dir, "tmpfs", 0, limits); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// mountFullDisk mounts a full file system on a folder. Files can be created there, but not written.
func mountFullDisk(t *testing.T, dir string) {
	t.Helper()
	smallDisk(t, dir, "size=64k,mode=755")
	if err := os.WriteFile(filepath.Join(dir, "x"), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLabFullDiskIsReportedInOneLineForEveryFile(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	rec, dir := filepath.Join(t.TempDir(), "run.rec"), t.TempDir()
	if _, errors, code := lab.Run(t, "sim", "powershift-bench", "-for", "100ms", "-record", rec); code != 0 {
		t.Fatalf("exit %d, %s", code, errors)
	}
	mountFullDisk(t, dir)
	for _, c := range []struct {
		line string // arguments; FULL is the full disk
		code int
	}{
		{"sim powershift -for 1s -out FULL/o.csv", 1},
		{"sim powershift -for 1s -report FULL/o.json", 3},
		{"sim powershift-bench -for 1s -record FULL/r.rec", 1},
		{"sim powershift-bench -scenario powershift-clutch-sticks -junit FULL/j.xml", 3},
		{"run -for 300ms -record FULL/rr.rec", 1},
		{"run -for 300ms -report FULL/r.json", 3},
		{"export RECORD -o FULL/e.csv", 1},
		{"export RECORD -o FULL/e.mf4", 1},
		{"gen powershift -o FULL/gen", 2},
	} {
		line := strings.NewReplacer("FULL", dir, "RECORD", rec).Replace(c.line)
		_, errors, code := lab.Run(t, strings.Fields(line)...)
		if code != c.code || strings.Count(errors, "\n") != 1 || !strings.Contains(errors, "no space left on device") || !strings.Contains(errors, dir) {
			t.Errorf("lockstep %s: exit %d, %q; want %d and one line with the file", line, code, errors, c.code)
		}
	}
	if left, _ := filepath.Glob(dir + "/gen*"); len(left) != 0 {
		t.Errorf("files left behind: %q", left)
	}
}

func TestLabRunContinuesWithoutRoomForItsControlSocket(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	const dir = "/run/lockstep"
	smallDisk(t, dir, "nr_inodes=1,mode=755") // one inode, for the folder itself
	p := lab.Start(t, lab.Command(t), "run", "-for", "500ms")
	if code := p.Wait(); code != 0 || strings.Count(p.Out.String(), "lockstep ctl cannot reach this run: ") != 1 ||
		!strings.Contains(p.Out.String(), "no space left on device") {
		t.Errorf("exit %d, %s\n%s", code, &p.Err, &p.Out)
	}
}

func TestLabReadOnlyDiskIsRefusedBeforeTheFirstTick(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	for _, flag := range []string{"-record", "-report"} {
		file := filepath.Join(dir, "file")
		out, errors, code := lab.Run(t, "run", "-for", "300ms", flag, file)
		if code != 2 || strings.Count(errors, "\n") != 1 || !strings.Contains(errors, file+": read-only file system") || strings.Contains(out, "frames out") {
			t.Errorf("%s: exit %d, %q; want 2 and one line with the file\n%s", flag, code, errors, out)
		}
	}
}
