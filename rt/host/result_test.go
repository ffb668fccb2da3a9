package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func contentOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestResultFileHasItsOldContentUntilTheNewIsComplete(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "r.json"), filepath.Join(dir, "link.json")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o644), os.Symlink("r.json", link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link} {
		r, err := CreateResult(name, ReportSpace)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := CreateResult(file, 0); !errors.Is(err, ErrFileTaken) {
			t.Errorf("a second writer: %v", err)
		}
		if _, err := io.WriteString(r, "half"); err != nil || contentOf(t, file) != "old" {
			t.Errorf("%v; the file is %q before the end", err, contentOf(t, file))
		}
		r.Close()
		if list, _ := os.ReadDir(dir); len(list) != 2 || contentOf(t, file) != "old" {
			t.Errorf("an abandoned file leaves %v, %q", list, contentOf(t, file))
		}
	}
	broken := errors.New("broken")
	r, err := CreateResult(file, ReportSpace)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Save(func(io.Writer) error { return broken }); !errors.Is(err, broken) || contentOf(t, file) != "old" {
		t.Errorf("%v; the file is %q", err, contentOf(t, file))
	}
	r.Close()
	if err := Replace(link, []byte("new")); err != nil || contentOf(t, file) != "new" {
		t.Errorf("%v; the file is %q, want new", err, contentOf(t, file))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

// A run that fills the disk with its record still writes its report.
func TestResultFileHasItsSpaceBeforeItIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	r, err := CreateResult(file, ReportSpace)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var s unix.Stat_t
	if err := unix.Stat(file+".part", &s); err != nil || s.Blocks*512 < ReportSpace {
		t.Errorf("%v; %d bytes are allocated, want %d", err, s.Blocks*512, ReportSpace)
	}
	if err := r.Save(func(to io.Writer) error { _, err := io.WriteString(to, "new"); return err }); err != nil || contentOf(t, file) != "new" {
		t.Errorf("%v; the file is %q", err, contentOf(t, file))
	}
}

func TestResultGoesDirectlyToAPipeOrDevice(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := Replace(pipe, []byte("new")); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 9)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "new" {
		t.Errorf("%v; the pipe has %q", err, text[:n])
	}
	if err := Replace("/dev/full", []byte("new")); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("/dev/full: %v", err)
	}
	if err := Replace(os.DevNull, []byte("new")); err != nil {
		t.Error(err)
	}
}

func TestOutputKeepsItsFirstError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	folded, plain := NewOutput(full)
	if folded.Err() != nil || plain.Err() != nil {
		t.Error("an error before the first write")
	}
	_, _ = io.WriteString(plain, "a line\n")
	if err := folded.Err(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("after a write to a full device: %v", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader.Close()
	folded, _ = NewOutput(writer)
	if _, err := io.WriteString(folded, "a line\n"); !errors.Is(err, unix.EPIPE) || folded.Err() != nil {
		t.Errorf("a reader that has ended: %v, %v", err, folded.Err())
	}
}

// fallocate on tmpfs ends with EINTR where a signal arrives, as the runtime sends them to its threads.
func TestSpaceIsReservedThoughASignalInterrupts(t *testing.T) {
	defer func() { fallocate = unix.Fallocate }()
	calls := 0
	fallocate = func(fd int, mode uint32, offset, length int64) error {
		if calls++; calls < 3 {
			return unix.EINTR
		}
		return unix.Fallocate(fd, mode, offset, length)
	}
	r, err := CreateResult(filepath.Join(t.TempDir(), "report.json"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
}
