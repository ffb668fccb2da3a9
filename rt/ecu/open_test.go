package ecu

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestOpenNamesTheBusAndTheCommandThatHelps(t *testing.T) {
	_, err := Open("nocan9")
	switch {
	case errors.Is(err, ErrNoCAN): // this kernel has none; the command adds the remedy
	case errors.Is(err, errNoInterface):
		if !strings.Contains(err.Error(), "ip link add dev nocan9 type vcan") {
			t.Errorf("no helping command: %v", err)
		}
	default:
		t.Fatalf("Open = %v, want errNoInterface or ErrNoCAN", err)
	}
	if !strings.Contains(err.Error(), "nocan9") {
		t.Errorf("the bus is not named: %v", err)
	}
}

func TestOpenRefusesAnInvalidDescriptor(t *testing.T) {
	for _, bus := range []string{"fd:", "fd:x", "fd:-1", "fd:99999", "fd:3000000000"} {
		if _, err := Open(bus); err == nil || !strings.Contains(err.Error(), bus) {
			t.Errorf("Open(%q) = %v, want an error that names it", bus, err)
		}
	}
}

func TestOpenAcceptsADescriptor(t *testing.T) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fds[0])
	bus, err := Open("fd:" + strconv.Itoa(fds[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if _, err := bus.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesNamesThatAreCommands(t *testing.T) {
	for _, bus := range []string{"vcan0;reboot", "vcan$(id)", "", "-h", "vcan012345678901", "vcan\x1b[2J"} {
		_, err := Open(bus)
		if !errors.Is(err, errNoInterface) || strings.Contains(err.Error(), "ip link") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("Open %q gives %v", bus, err)
		}
	}
}
