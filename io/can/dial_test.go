package can

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// descriptors counts the open file descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	return len(list)
}

func TestDialReportsAKernelWithoutCAN(t *testing.T) {
	fd, missing := unix.Socket(unix.AF_CAN, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.CAN_RAW)
	if missing == nil {
		unix.Close(fd)
	}
	b, err := Dial("vcan0", nil)
	if b != nil {
		b.Close()
	}
	if errors.Is(err, ErrNoCAN) != (missing != nil) {
		t.Fatalf("Dial gives %v on a kernel that says %v", err, missing)
	}
	if missing == nil {
		return
	}
	for _, part := range []string{"can: dial vcan0: ", HelpWithoutCAN()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

// A user may paste the command of a help text into a shell.
func TestHelpTextQuotesNoShellCommands(t *testing.T) {
	for _, name := range []string{"vcan0;reboot", "vcan$(id)", "vcan0 up", "", ".", "..", "-h", "vcan012345678901", "vcan\x1b[2J"} {
		if LegalName(name) {
			t.Errorf("%q passes for the name of an interface", name)
		}
		if got := suggestInterface(name); strings.Contains(got, "ip link") && !strings.Contains(got, "add dev vcan0 type vcan && ip link set vcan0 up") {
			t.Errorf("help for %q: %q", name, got)
		}
		if _, err := Dial(name, nil); !errors.Is(err, ErrNoInterface) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("Dial %q gives %v", name, err)
		}
	}
	for _, name := range []string{"vcan0", "can0", "slcan_1", "can.A-2"} {
		if !LegalName(name) {
			t.Errorf("%q is refused", name)
		}
	}
}

func TestDialRefusesMoreFiltersThanTheKernelTakes(t *testing.T) {
	_, err := Dial("vcan0", make([]Filter, 513))
	if err == nil || !strings.Contains(err.Error(), "513 filters, the kernel takes 512") {
		t.Errorf("error %v", err)
	}
}

func TestDialTakesAnInheritedDescriptor(t *testing.T) {
	target, unit, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	defer unit.Close()
	fd, err := unix.FcntlInt(target.Fd(), unix.F_DUPFD, 10)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Dial(fmt.Sprintf("fd:%d", fd), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor flags %d, %v: it would leak into a child", flags, err)
	}
	if b.Fd() != fd || !b.FD || !b.Send(&Frame{ID: 3}) {
		t.Errorf("bus %d, FD %v, %+v: not the inherited pair", b.Fd(), b.FD, b.Stats)
	}
}

func TestDialRefusesDescriptorsOfOtherKinds(t *testing.T) {
	plain, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	before := descriptors(t)
	for name, want := range map[string]string{
		"fd:":                            "needs a number from 3 on",
		"fd:x":                           "needs a number from 3 on",
		"fd:-1":                          "needs a number from 3 on",
		"fd:1":                           "needs a number from 3 on",
		"fd:1000000":                     "bad file descriptor",
		fmt.Sprintf("fd:%d", plain.Fd()): "socket operation on non-socket",
		fmt.Sprintf("fd:%d", stream(t)):  "neither a raw CAN socket nor one end of a pair",
	} {
		b, err := Dial(name, nil)
		if b != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "can: dial "+name) {
			t.Errorf("Dial %s gives %v, %v, want an error with %q", name, b, err, want)
		}
	}
	if after := descriptors(t); after != before+2 {
		t.Errorf("%d descriptors, %d before and 2 of the test", after, before)
	}
}

// stream returns a stream socket, which cannot be a bus.
func stream(t *testing.T) int {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Close(fds[0])
		unix.Close(fds[1])
	})
	return fds[0]
}

func TestInheritClosesTheFileOnlyOnSuccess(t *testing.T) {
	before := descriptors(t)
	target, unit, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	if target.Close() == nil {
		t.Error("the file is still open")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	unit.Close()

	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Inherit(plain); b != nil || err == nil || !strings.HasPrefix(err.Error(), "can: inherit "+plain.Name()) {
		t.Errorf("Inherit of a plain file gives %v, %v", b, err)
	}
	if err := plain.Close(); err != nil {
		t.Errorf("the refused file is not the caller's any more: %v", err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func TestFileIsASecondDescriptorOfTheBus(t *testing.T) {
	b, unit := pair(t)
	f, err := b.File()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Inherit(f)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	writeRaw(t, unit, frameBytes(Frame{ID: 9}))
	dst := make([]Frame, 2)
	if n := second.Recv(dst); n != 1 || dst[0].ID != 9 {
		t.Errorf("%d frames through the duplicate, want 1", n)
	}
	second.Close()
}

// More frames than the buffers of a pair hold are sent to an end that nobody reads.
func TestFramesToAnEndThatDropsThemAreTaken(t *testing.T) {
	target, unit, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer unit.Close()
	if err := DropReceived(unit); err != nil {
		t.Fatal(err)
	}
	bus, err := Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	const frames = 100_000
	for i := range frames {
		if f := (Frame{ID: 0x200, Len: 64, Flags: FlagFDF}); !bus.Send(&f) {
			t.Fatalf("frame %d is not taken: %+v", i, bus.Stats)
		}
	}
	var f [1]Frame
	if n := bus.Recv(f[:]); n != 0 || bus.Stats.Tx != frames || bus.Stats.Down != 0 {
		t.Errorf("received %d frames; %+v", n, bus.Stats)
	}
	bus.Close()
	if n, _ := unit.Read(make([]byte, 72)); n != 0 {
		t.Errorf("the end that drops frames has one of %d bytes", n)
	}
}
