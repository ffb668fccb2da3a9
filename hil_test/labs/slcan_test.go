package labs

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
)

// adapter emulates a CAN card on a serial line. Linux drives it with slcan, a real driver with the
// states, counters and error frames of all CAN drivers. The test sends the messages of the card;
// frames sent to the card are discarded.
type adapter struct {
	t    *testing.T
	line *os.File
	bus  string
}

// nSLCAN is the line discipline: linux/tty.h, N_SLCAN.
const nSLCAN = 17

// newAdapter connects an adapter. Its interface is down.
func newAdapter(t *testing.T) *adapter {
	t.Helper()
	before := interfaces(t)
	if _, err := os.Stat("/sys/module/slcan"); err != nil { // the lab preempt_rt has loaded it
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			t.Fatal(err)
		}
		lab.Shell(t, fmt.Sprintf("insmod /usr/lib/uml/modules/%s/kernel/drivers/net/can/slcan/slcan.ko", unix.ByteSliceToString(u.Release[:])))
	}
	// Blocking, and not in the poller of the Go runtime.
	dir := t.TempDir()
	lab.Shell(t, "mount -t devpts -o ptmxmode=666 devpts "+dir)
	t.Cleanup(func() { lab.Shell(t, "umount -l "+dir) })
	line, err := unix.Open(dir+"/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("ptmx: %v", err)
	}
	if err := unix.IoctlSetPointerInt(line, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("unlock the terminal: %v", err)
	}
	end, err := unix.Open(dir+"/0", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("terminal: %v", err)
	}
	raw, err := unix.IoctlGetTermios(end, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	raw.Iflag, raw.Oflag, raw.Lflag, raw.Cflag = 0, 0, 0, unix.CS8|unix.CREAD|unix.B115200
	if err := unix.IoctlSetTermios(end, unix.TCSETS, raw); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(end, unix.TIOCSETD, nSLCAN); err != nil {
		t.Fatalf("slcan: %v", err)
	}
	a := &adapter{t: t, line: os.NewFile(uintptr(line), "adapter")}
	for _, name := range interfaces(t) {
		if !slices.Contains(before, name) {
			a.bus = name
		}
	}
	if a.bus == "" {
		t.Fatal("slcan made no interface")
	}
	go func() {
		for b := make([]byte, 4096); ; {
			if _, err := a.line.Read(b); err != nil {
				return
			}
		}
	}()
	return a
}

// interfaces returns the names of the network interfaces.
func interfaces(t *testing.T) (names []string) {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names
}

// report sends a message of the card: "sp000130" is error-passive with receive error count 0 and
// transmit error count 130, "e1a" is a missing acknowledgement.
func (a *adapter) report(text string) {
	a.t.Helper()
	if _, err := a.line.WriteString(text + "\r"); err != nil {
		a.t.Fatal(err)
	}
}

// awaitState waits until the driver reports a state.
func (a *adapter) awaitState(state string) {
	a.t.Helper()
	lab.Await(a.t, a.bus+" is "+state, func() bool {
		return strings.Contains(lab.MustOutput(a.t, "ip", "-details", "link", "show", a.bus), "can state "+state+" ")
	})
}
