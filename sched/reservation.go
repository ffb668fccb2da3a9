package sched

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReservationRoot is the prefix of all reservation names in the kernel's abstract namespace of
// sockets. A name exists as long as a process holds its socket, however the process ends. The
// namespace belongs to a network namespace and is shared by all users.
const ReservationRoot = "@lockstep/"

// HostSettings is the reservation held while host settings change.
const HostSettings = "host/settings"

// TargetName is the process name of a target and its threads in ps and chrt; 15 letters at most.
const TargetName = "lockstep-target"

// maxName is the longest name of a socket: struct sockaddr_un, less its first byte.
const maxName = 107

// NewReservationSocket opens a socket that serves only to carry a name.
func NewReservationSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}

// NameReservation binds a socket to the name of a reservation.
func NameReservation(fd int, what string) error {
	name := ReservationRoot + what
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: name[:min(len(name), maxName)]}))
}

// Reserve reserves KIND/NAME for as long as the returned socket is open. The error is
// unix.EADDRINUSE if another process holds the reservation.
func Reserve(what string) (int, error) {
	fd, err := NewReservationSocket()
	if err != nil {
		return -1, err
	}
	if err := NameReservation(fd, what); err != nil {
		unix.Close(fd)
		return -1, err
	}

	return fd, nil
}

// Reservation is a reservation and its holder, in the name of a second socket.
type Reservation struct {
	What    string // KIND/NAME
	Role    string // role of the process
	Process int    // process id, as the holder states it
	Owner   string // bench or command that holds the reservation
	UID     int    // user who holds the reservation; -1: not known
}

// String returns the name of the second socket.
func (c Reservation) String() string {
	return fmt.Sprintf("%s/%s/%d/%s", c.What, c.Role, c.Process, c.Owner)
}

// Reservations lists the reservations on the host below root, "/" for the running one, that name
// their holder. Any user can bind any name. So a holder counts only if its user has bound the
// reservation, too, as far as the kernel tells users.
func Reservations(root string) (list []Reservation) {
	users := map[string]int{} // by reservation
	for _, b := range boundNames(root) {
		what, found := strings.CutPrefix("@"+b.name, ReservationRoot)
		if !found {
			continue
		}
		users[what] = b.uid
		parts := strings.SplitN(what, "/", 5)
		if len(parts) != 5 { // kind, name, role, process, owner
			continue
		}
		if pid, err := strconv.Atoi(parts[3]); err == nil {
			list = append(list, Reservation{parts[0] + "/" + parts[1], parts[2], pid, parts[4], b.uid})
		}
	}

	return slices.DeleteFunc(list, func(r Reservation) bool {
		uid, bound := users[r.What]
		return r.UID >= 0 && (!bound || uid != r.UID)
	})
}

// ReservationUser returns the user who holds a reservation; -1: there is none, or the kernel does
// not tell.
func ReservationUser(what string) int {
	for _, b := range boundNames("/") {
		if "@"+b.name == ReservationRoot+what {
			return b.uid
		}
	}

	return -1
}
