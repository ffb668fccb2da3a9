package labs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
)

// adapter emulates a CAN card on a serial line. Linux drives it with slcan, a real driver with the
// states, counters and error frames of all CAN drivers. The test sends the messages of the card.
type adapter struct {
	t       *testing.T
	line    *os.File
	bus     string
	written lab.Output // by the driver, to the card
}

// nSLCAN is the line discipline: linux/tty.h, N_SLCAN.
const nSLCAN = 17

// newAdapter connects an adapter to a pseudoterminal. Its interface is down. It is removed with the test.
func newAdapter(t *testing.T) *adapter {
	t.Helper()
	before := interfaces(t)
	// Blocking, and not in the poller of the Go runtime.
	open := func(path string) int {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return fd
	}
	line := open("/dev/ptmx")
	number, err := unix.IoctlGetInt(line, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(line, unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	end := open(fmt.Sprintf("/dev/pts/%d", number))
	t.Cleanup(func() { unix.Close(end) }) // the driver removes the interface, and the copy below ends
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
	go func() { _, _ = io.Copy(&a.written, a.line) }() // until the end of the line, which is an error
	return a
}

// speeds returns the frames Speeds that the card was given to send, without the first ones.
func (a *adapter) speeds(without int) *lab.Frames {
	a.t.Helper()
	f := new(lab.Frames)
	for frame := range strings.SplitSeq(a.written.String(), "\r") {
		if text, ok := strings.CutPrefix(frame, "t2008"); ok && len(text) == 16 {
			data, err := hex.DecodeString(text)
			if err != nil {
				a.t.Fatalf("%q: %v", frame, err)
			}
			f.Data = append(f.Data, data)
		}
	}
	f.Data = f.Data[min(without, len(f.Data)):]
	return f
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
