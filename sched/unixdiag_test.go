package sched

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHolderCountsOnlyIfItsUserHasBoundTheReservation(t *testing.T) {
	what := fmt.Sprintf("bus/h%d", os.Getpid())
	name := Reservation{What: what, Role: "supervisor", Process: 7, Owner: "a"}
	fd, err := Reserve(name.String())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := queryBoundNames(); err != nil {
		t.Skip("this kernel does not tell the users of sockets: ", err)
	}
	holds := func() bool {
		name.UID = os.Getuid()
		return slices.Contains(Reservations("/"), name)
	}
	if holds() {
		t.Error("a holder of what nobody has reserved")
	}
	held, err := Reserve(what)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)
	if uid := ReservationUser(what); !holds() || uid != os.Getuid() {
		t.Errorf("its holder is not listed, or is user %d", uid)
	}
}

// A path that looks like a name of the abstract namespace, and a name with a line end, are no names of it.
func TestNamesAreTakenFromTheKernelNotFromText(t *testing.T) {
	if _, err := queryBoundNames(); err != nil {
		t.Skip("this kernel does not tell the users of sockets: ", err)
	}
	t.Chdir(t.TempDir())
	what := fmt.Sprintf("bus/n%d", os.Getpid())
	if err := os.MkdirAll(filepath.Dir(ReservationRoot+what), 0o755); err != nil {
		t.Fatal(err)
	}
	bind := func(raw string) {
		t.Helper()
		fd, err := NewReservationSocket()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: raw}); err != nil {
			t.Fatal(err)
		}
	}
	bind("./" + ReservationRoot + what)
	bind("@x\n0: 2 0 0 5 1 1 " + ReservationRoot + what)
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil || !bytes.Contains(text, []byte(" "+ReservationRoot+what+"\n")) {
		t.Fatalf("/proc/net/unix does not show the line: %v", err)
	}
	for _, b := range boundNames("/") {
		if "@"+b.name == ReservationRoot+what {
			t.Errorf("%+v", b)
		}
	}
}

func FuzzUnixDiag(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x14\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	one := []byte("\x3c\x00\x00\x00\x14\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "\x01\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x0f\x00\x00\x00\x00lockstep/a\x00" + "\x08\x00\x07\x00\xe8\x03\x00\x00" + "\x04\x00\x06\x00")
	f.Add(one)
	if list, done, err := parseUnixDiag(one); len(list) != 1 || list[0] != (boundName{"lockstep/a", 1000}) || done || err != nil {
		f.Errorf("%+v, %t, %v", list, done, err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _, _ := parseUnixDiag(data)
		for _, b := range list {
			if b.name == "" || !bytes.Contains(data, []byte(b.name)) {
				t.Errorf("%+v", b)
			}
		}
	})
}

// Every process can bind names, so every line of /proc/net/unix is read without harm.
func FuzzReservations(f *testing.F) {
	f.Add("0000000000000000: 00000002 00000000 00000000 0005 01 51013 @lockstep/cpu/3/supervisor/812/car")
	f.Add("x @lockstep/cpu/3/supervisor/-1/ @lockstep/bus/a b/target/7/x/y\n@lockstep///9/")
	root := f.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/net"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(root, "proc/net/unix"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, r := range Reservations(root) {
			if r.UID != -1 || strings.Count(r.What, "/") != 1 || strings.Contains(r.Role, "/") || strings.Contains(r.What+r.Role+r.Owner, "\n") {
				t.Errorf("%+v", r)
			}
		}
	})
}
