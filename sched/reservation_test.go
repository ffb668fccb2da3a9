package sched

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The lines are those of /proc/net/unix: a path follows the number of the inode.
func TestReservationsNameTheirHolder(t *testing.T) {
	const line = "0000000000000000: 00000002 00000000 00010000 0005 01 12345"
	want := []Reservation{
		{"cpu/3", "target", 4711, "bench.yaml", -1},
		{"bus/can0", "supervisor", 1, "a/b c", -1},
		{"host/settings", "doctor", 99, "", -1},
	}
	text := "Num       RefCount Protocol Flags    Type St Inode Path\n" + line + "\n" + line + " /run/other/cpu/3/target/1/x\n"
	for _, r := range want {
		text += line + " " + ReservationRoot + r.String() + "\n"
	}
	for _, other := range []string{"cpu/3", "cpu/3/target/4711", "cpu/3/target/x/bench.yaml"} {
		text += line + " " + ReservationRoot + other + "\n"
	}
	got := Reservations(tree(t, map[string]string{"proc/net/unix": text}))
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := Reservations(t.TempDir()); got != nil {
		t.Errorf("without /proc: %+v", got)
	}
}

func TestReservationHasOneHolderUntilItsSocketIsClosed(t *testing.T) {
	what := fmt.Sprintf("test/%d-%d", os.Getpid(), Now())
	fd, err := Reserve(what)
	if err != nil {
		t.Fatal(err)
	}
	sockets := descriptors(t, "socket:")
	if again, err := Reserve(what); again != -1 || !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a second holder has descriptor %d, %v", again, err)
	}
	if n := descriptors(t, "socket:"); n != sockets {
		t.Errorf("a refused reservation leaves %d sockets open", n-sockets)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	fd, err = Reserve(what)
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	defer unix.Close(fd)

	// A holder in the name of a socket is listed, as far as the name goes: sun_path of unix(7) has 108 bytes.
	const longest = 107
	holder := Reservation{what, "tester", os.Getpid(), strings.Repeat("o", longest), ReservationUser(what)}
	if holder.UID != os.Getuid() && holder.UID != -1 { // -1: this kernel tells no users
		t.Errorf("%s is held by user %d", what, holder.UID)
	}
	named, err := NewReservationSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(named)
	if err := NameReservation(named, holder.String()); err != nil {
		t.Fatal(err)
	}
	holder.Owner = holder.Owner[:longest-len(ReservationRoot+holder.String())+len(holder.Owner)]
	if list := Reservations("/"); !slices.Contains(list, holder) {
		t.Errorf("%+v is not among %+v", holder, list)
	}
}
