package sched

import (
	"bytes"
	"encoding/binary"
	"errors"
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

// The layouts are those of linux/netlink.h, rtnetlink.h and unix_diag.h.
func TestAnswersOfTheKernelAreReadByTheirLayout(t *testing.T) {
	order := binary.NativeEndian
	message := func(kind uint16, body ...byte) []byte {
		data := order.AppendUint16(order.AppendUint32(nil, uint32(16+len(body))), kind)
		data = append(append(data, make([]byte, 10)...), body...)
		return append(data, make([]byte, -len(data)&3)...)
	}
	attribute := func(kind uint16, value string) []byte {
		data := order.AppendUint16(order.AppendUint16(nil, uint16(4+len(value))), kind)
		return append(append(data, value...), make([]byte, -len(value)&3)...)
	}
	socket := func(attributes ...[]byte) []byte {
		return message(sockDiagByFamily, append(make([]byte, 16), bytes.Join(attributes, nil)...)...)
	}
	user := func(uid uint32) []byte { return attribute(unixDiagUID, string(order.AppendUint32(nil, uid))) }
	name, done := attribute(unixDiagName, "\x00ab"), message(unix.NLMSG_DONE, 0, 0, 0, 0)
	peer := attribute(2, string(order.AppendUint32(nil, 77)))
	for what, c := range map[string]struct {
		data []byte
		list []boundName
		done bool
		err  error
	}{
		"nothing":                   {},
		"a name and its user":       {data: socket(name, user(1000)), list: []boundName{{"ab", 1000}}},
		"the user first":            {data: socket(user(0), name), list: []boundName{{"ab", 0}}},
		"a peer of four bytes":      {data: socket(name, user(1000), peer), list: []boundName{{"ab", 1000}}},
		"a user of two bytes":       {data: socket(name, attribute(unixDiagUID, "\x01\x02")), list: []boundName{{"ab", -1}}},
		"no user":                   {data: socket(name), list: []boundName{{"ab", -1}}},
		"a path":                    {data: socket(attribute(unixDiagName, "/a"), user(1))},
		"the empty abstract name":   {data: socket(attribute(unixDiagName, "\x00"), user(1))},
		"a name of one byte":        {data: socket(attribute(unixDiagName, "\x00a"), user(1)), list: []boundName{{"a", 1}}},
		"two sockets and the end":   {data: slices.Concat(socket(name, user(1)), socket(name), done), list: []boundName{{"ab", 1}, {"ab", -1}}, done: true},
		"nothing after the end":     {data: slices.Concat(done, socket(name)), done: true},
		"an error":                  {data: message(unix.NLMSG_ERROR, order.AppendUint32(nil, ^uint32(unix.EPERM)+1)...), err: unix.EPERM},
		"an error without a number": {data: message(unix.NLMSG_ERROR, 1, 2, 3), err: errDiag},
		"another kind":              {data: message(99, make([]byte, 16)...), err: errDiag},
		"a socket cut off":          {data: message(sockDiagByFamily, make([]byte, 15)...), err: errDiag},
		"a socket without anything": {data: message(sockDiagByFamily, make([]byte, 16)...)},
		"a size below the header":   {data: order.AppendUint32(nil, 15), err: nil},
		"a header of size 15":       {data: append(order.AppendUint32(nil, 15), make([]byte, 12)...), err: errDiag},
		"a size beyond the data":    {data: append(order.AppendUint32(nil, 17), make([]byte, 12)...), err: errDiag},
	} {
		list, end, err := parseUnixDiag(c.data)
		if !slices.Equal(list, c.list) || end != c.done || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %t, %v; want %+v, %t, %v", what, list, end, err, c.list, c.done, c.err)
		}
	}
	for size, want := range map[uint16]string{3: "", 7: "ab", 8: ""} { // of the name's attribute, with its head of 4 bytes
		cut := slices.Clone(name[:7])
		order.PutUint16(cut, size)
		if got := parseUnixSocket(cut).name; got != want {
			t.Errorf("an attribute of size %d gives %q, want %q", size, got, want)
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
