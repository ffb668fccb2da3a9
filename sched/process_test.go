package sched

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
)

// The kernel reuses process ids: the start time tells the processes apart.
func TestProcessIsOpenedOnlyIfItStartedThen(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "a) S 1 (b")
	if err := os.Symlink(sleep, odd); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(odd, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pid := cmd.Process.Pid
	stat, err := hostinfo.ParseStat(hostinfo.Files("/").Text(fmt.Sprintf("proc/%d/stat", pid)))
	if err != nil {
		t.Fatal(err)
	}

	var o ProcessOpener
	began, before := uint32(stat.Start), openFiles(t)
	without := unix.Errno(0) // what a kernel without pidfds answers
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err != nil {
		without = err.(unix.Errno)
	} else {
		unix.Close(fd)
	}
	for _, c := range []struct {
		began uint32
		errno unix.Errno
	}{{began, without}, {0, without}, {began + 1, unix.ESRCH}, {began - 1, unix.ESRCH}} {
		fd, now, errno := o.Open(pid, c.began)
		if errno != c.errno || now != began || (fd >= 0) != (errno == 0) {
			t.Errorf("started at %d, opened as started at %d: descriptor %d, start %d, %v; want %v", began, c.began, fd, now, errno, c.errno)
		}
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _, _, _ = o.Open(pid, began+1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := openFiles(t); n != before {
		t.Errorf("%d descriptors stay open", n-before)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // closes a descriptor
	if fd, now, errno := o.Open(pid, began); without == 0 && (fd >= 0 || now != 0 || errno != unix.ESRCH) {
		t.Errorf("after its end: descriptor %d, start %d, %v", fd, now, errno)
	}
}

// openFiles returns how many descriptors this process has.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestStartTimeIsFieldTwentyTwo(t *testing.T) {
	const counts = " S 1 2 3 4 -1 4194304 18446744073709551615 2 3 4 5 6 7 8 20 0 1 0 "
	for text, want := range map[string]uint32{
		"7 (a)" + counts + "123 ":                             123,
		"7 (a) S 1 (b)" + counts + "4294967301 20 30":         5, // modulo 2^32
		"7 (" + strings.Repeat(")", 64) + ")" + counts + "9 ": 9,
		"7 (a)" + counts + "123":                              0, // the file may go on
		"7 (a)" + counts:                                      0,
		"7 (a":                                                0,
		"":                                                    0,
	} {
		if got := startInStat([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestPathOfAProcessHasItsID(t *testing.T) {
	var o ProcessOpener
	for _, pid := range []uint32{math.MaxUint32, 1, 9, 10, 4194304} {
		o.setPath(pid)
		got, _, _ := strings.Cut(string(o.path[:]), "\x00")
		if want := fmt.Sprintf("/proc/%d/stat", pid); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
