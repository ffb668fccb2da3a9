package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReportFileBelongsToOneRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(file, []byte("of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	one, err := CreateExclusive(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := one.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := CreateExclusive(file); !errors.Is(err, ErrFileTaken) {
		t.Errorf("the second: %v", err)
	}
	one.Close()
	two, err := CreateExclusive(file)
	if err != nil {
		t.Error(err)
	}
	two.Close()
	for range 2 { // several runs may write to a device
		f, err := CreateExclusive(os.DevNull)
		if err != nil {
			t.Error(err)
		}
		defer f.Close()
	}
}

// The folder may be a service's: a pipe would block root as long as its writer likes.
func TestOwnFileIsNeverAPipeOrALink(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), unix.Mkfifo(pipe, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if text, err := ReadOwn(file); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ReadOwn(pipe); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a pipe: %q, %v", text, err)
	}
	if text, err := ReadOwn(link); err == nil {
		t.Errorf("a link: %q", text)
	}
}

func TestControlDirDoesNotDependOnTheWorkingDirectory(t *testing.T) {
	for runtime, want := range map[string]string{"/run/user/7": "/run/user/7/lockstep", "": "/tmp/lockstep-7", "run/user/7": "/tmp/lockstep-7"} {
		if got := userControlDir(runtime, 7); got != want {
			t.Errorf("XDG_RUNTIME_DIR=%q: %s, want %s", runtime, got, want)
		}
	}
}
