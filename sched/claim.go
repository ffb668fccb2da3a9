package sched

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ClaimRoot begins the names of what processes of this host have for themselves, in the
// kernel's abstract namespace of sockets: a name is there as long as somebody has the socket,
// however he ends, and no longer. The namespace is that of the network, and shared by all
// users.
const ClaimRoot = "@lockstep/"

// HostSettings is what has who changes the settings of this host.
const HostSettings = "host/settings"

// maxName is the longest name of a socket: struct sockaddr_un, less its first byte.
const maxName = 107

// Nameless makes a socket that is good for a name only.
func Nameless() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}

// Name gives a socket the name of a claim.
func Name(fd int, what string) error {
	name := ClaimRoot + what
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: name[:min(len(name), maxName)]}))
}

// Claim takes something, KIND/NAME, for as long as the socket is open that it returns; it is
// unix.EADDRINUSE where somebody else has it.
func Claim(what string) (int, error) {
	fd, err := Nameless()
	if err != nil {
		return -1, err
	}
	if err := Name(fd, what); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Claimed is a claim that says whose it is, in the name of a socket of its own.
type Claimed struct {
	What    string // KIND/NAME
	Role    string // of the process
	Process int
	Owner   string // a bench, or a command
}

// String is that name. Any user may make one: what is read of it is not to be believed.
func (c Claimed) String() string {
	return fmt.Sprintf("%s/%s/%d/%s", c.What, c.Role, c.Process, c.Owner)
}

// Claims lists what is claimed on the host below root, "/" for the running one, as far as it
// says so.
func Claims(root string) (list []Claimed) {
	text, _ := os.ReadFile(filepath.Join(root, "proc/net/unix"))
	for line := range strings.Lines(string(text)) {
		at := strings.Index(line, ClaimRoot)
		if at < 0 {
			continue
		}
		parts := strings.SplitN(strings.TrimSpace(line[at+len(ClaimRoot):]), "/", 5)
		if len(parts) != 5 { // kind, name, role, process, owner
			continue
		}
		if pid, err := strconv.Atoi(parts[3]); err == nil {
			list = append(list, Claimed{parts[0] + "/" + parts[1], parts[2], pid, parts[4]})
		}
	}
	return list
}
