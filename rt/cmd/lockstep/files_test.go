package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockstep/io/inputfile"
	"lockstep/rt/host"
)

// A FIFO without a writer would block a reader for ever, and /dev/zero would fill its memory.
func TestFilesThatCannotBeReadAreRefusedByEveryCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, err := range []error{
		syscall.Mkfifo(at("fifo"), 0o666), os.Symlink(at("loop"), at("loop")),
		os.WriteFile(at("sparse"), nil, 0o666), os.Truncate(at("sparse"), 1<<40),
		os.WriteFile(at("utf16"), []byte("\xff\xfep\x00l\x00a\x00n\x00t\x00:\x00"), 0o666),
		os.WriteFile(at("nul"), []byte("plant: a\x00b\nelements: {}\n"), 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]error{
		"/dev/zero": inputfile.ErrNotRegular, at("fifo"): inputfile.ErrNotRegular, at("socket"): inputfile.ErrNotRegular,
		dir: syscall.EISDIR, at("loop"): syscall.ELOOP, at("sparse"): nil, at("utf16"): nil, at("nul"): nil,
		"/proc/self/maps": nil,
	} {
		for _, line := range []string{
			"check FILE", "sim FILE", "sim powershift -in FILE", "sim powershift-bench -scenario FILE", "run FILE",
			"run powershift-bench -scenario FILE", "run -bus file:FILE", "run -kernel FILE", "gen FILE -o " + at("out"),
			"replay FILE", "export FILE -o " + at("out.csv"), "sweep FILE", "certify -compare FILE " + at("now.json"),
			"soak powershift-bench -for 10s -state FILE",
		} {
			if isRun := strings.HasPrefix(line, "soak"); isRun && want == nil {
				continue // -fresh would write such a file anew
			}
			err := failure(strings.Fields(strings.ReplaceAll(line, "FILE", file))...)
			var exit *host.Exit
			if err == nil || errors.As(err, &exit) && exit.Code != 2 || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s with %s: %v; want one line with the file, and code 2", line, file, err)
			}
			isKernel := strings.Contains(line, "-kernel") // it has errors of its own
			if want != nil && !isKernel && !errors.Is(err, want) {
				t.Errorf("%s with %s: %v, want %v", line, file, err, want)
			}
		}
	}
}
