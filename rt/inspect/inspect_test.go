package inspect

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// memory returns a descriptor of memory with seals.
func memory(t *testing.T, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("inspect-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestOnlySealedMemoryOfTheUserIsOpened(t *testing.T) {
	shrink, write := memory(t, unix.F_SEAL_SHRINK), memory(t, unix.F_SEAL_SHRINK|unix.F_SEAL_WRITE)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		what           string
		fd, uid, seals int
		opens          bool
	}{
		{"memory that cannot shrink, as a status block", shrink, os.Getuid(), 0, true},
		{"memory that others can write, as a hand-over", shrink, os.Getuid(), unix.F_SEAL_WRITE, false},
		{"sealed memory, as a hand-over", write, os.Getuid(), unix.F_SEAL_WRITE, true},
		{"memory that can shrink", memory(t, unix.F_SEAL_GROW), os.Getuid(), 0, false},
		{"memory of another user", shrink, os.Getuid() + 1, 0, false},
		{"a device", int(null.Fd()), os.Getuid(), 0, false},
	} {
		f, err := openSealed(os.Getpid(), c.fd, c.uid, os.O_RDONLY, c.seals)
		if (err == nil) != c.opens || err != nil && !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v; want it opened: %t", c.what, err, c.opens)
		}
		if err == nil {
			f.Close()
		}
	}
}
