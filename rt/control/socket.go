package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// socketEnd ends the name of a control socket.
const socketEnd = ".sock"

// maxPath is the longest path of a socket: struct sockaddr_un, less its last byte.
const maxPath = 107

// listenControl opens the control socket of a bench: NAME.sock, or NAME-PID.sock beside
// another run of that name. What supervisors that were killed have left goes.
func listenControl(dir, bench string) (*net.UnixListener, string, error) {
	lock, err := host.OwnDir(dir)
	if err != nil {
		return nil, "", err
	}
	defer lock.Close()
	// One run at a time looks which sockets there are; the lock goes with its file.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, "", fmt.Errorf("%s: %w", dir, os.NewSyscallError("flock", err))
	}
	sweep(dir)
	name := host.FileName(bench)
	for _, name := range []string{name, fmt.Sprintf("%s-%d", name, os.Getpid())} {
		path := filepath.Join(dir, name+socketEnd)
		if len(path) > maxPath {
			return nil, "", fmt.Errorf("%s: the path of a socket has %d bytes at most", path, maxPath)
		}
		conn, _, err := dialControl(path)
		switch {
		case errors.Is(err, unix.ECONNREFUSED): // nobody listens there any more
			if err := os.Remove(path); err != nil {
				return nil, "", err
			}
		case errors.Is(err, fs.ErrNotExist):
		default:
			if err == nil {
				conn.Close()
			}
			continue
		}
		l, err := listenAlone(path)
		return l, path, err
	}
	return nil, "", fmt.Errorf("%s: there is a run of this process", dir)
}

// sweep removes sockets at which nobody listens any more. In a directory that two kernels
// share, as a user-mode Linux may with its host, one of the other kernel looks like that:
// there all stay. Nobody else is between making a socket and listening: see the lock.
func sweep(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*"+socketEnd))
	if !thisKernels(dir, len(files) == 0) {
		return
	}
	for _, file := range files {
		if info, err := os.Lstat(file); err != nil || info.Mode().Type() != fs.ModeSocket {
			continue
		}
		if conn, _, err := dialControl(file); err == nil {
			conn.Close()
		} else if errors.Is(err, unix.ECONNREFUSED) {
			_ = os.Remove(file)
		}
	}
}

// thisKernels says that no other kernel has had sockets in dir. A file there lists those
// that had, this one from now on; it begins anew when dir is empty.
func thisKernels(dir string, empty bool) bool {
	mode, this, file := os.O_APPEND, host.BootID()+"\n", filepath.Join(dir, "kernels")
	text, _ := host.ReadOwn(file)
	switch {
	case string(text) == this:
		return true
	case empty:
		mode = os.O_TRUNC
	case strings.Contains(string(text), this):
		return false
	}
	if f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW|mode, 0o600); err == nil {
		_, _ = f.WriteString(this) // without it nothing is removed
		f.Close()
	}
	return false // what is there may be of a kernel that has not said so
}

// listenAlone listens on a socket that only its user can open, from its first moment on:
// Linux makes the file with the mode of the socket.
func listenAlone(path string) (*net.UnixListener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if e := raw.Control(func(fd uintptr) { err = os.NewSyscallError("fchmod", unix.Fchmod(int(fd), 0o600)) }); e != nil {
			return e
		}
		return err
	}}
	l, err := c.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// dialControl opens a control socket; pid is the process that listens there. One of another
// user says what it likes: only root asks it.
func dialControl(path string) (conn *net.UnixConn, pid int, err error) {
	if conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return nil, 0, err
	}
	uid := -1
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if c, e := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); e == nil {
				pid, uid = int(c.Pid), int(c.Uid)
			}
		})
	}
	if err == nil && !asks(os.Getuid(), uid) {
		err = &fs.PathError{Op: "dial", Path: path, Err: fs.ErrPermission}
	}
	if err != nil {
		conn.Close()
		return nil, 0, err
	}
	return conn, pid, nil
}

// asks tells whether user me talks to what user uid runs.
func asks(me, uid int) bool { return me == 0 || me == uid }

// socket is a control socket at which somebody answers, or may not be asked.
type socket struct {
	name  string // of the bench, or NAME-PID
	conn  *net.UnixConn
	pid   int
	since uint32       // when that process began; 0: not known
	err   error        // why it cannot be asked
	lone  *report.View // there is no socket: a target without a supervisor, process pid
}

// is says that the socket is meant.
func (s *socket) is(which string) bool {
	pid := strconv.Itoa(s.pid)
	return which == pid || s.name == host.FileName(which) || s.name == host.FileName(which)+"-"+pid
}

func (s *socket) String() string { return fmt.Sprintf("%s (process %d)", s.name, s.pid) }

// sockets finds the control sockets of this user and, as far as it may look, of others.
func sockets(dirs ...string) (list []socket) {
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*"+socketEnd))
		for _, file := range files {
			s := socket{name: strings.TrimSuffix(filepath.Base(file), socketEnd)}
			if s.name != host.FileName(s.name) {
				continue // it is none that a run makes
			}
			if s.conn, s.pid, s.err = dialControl(file); s.err == nil || errors.Is(s.err, fs.ErrPermission) {
				list = append(list, s)
			}
		}
	}
	return list
}

// controlDirs are all directories with control sockets that this user may see.
func controlDirs() []string {
	dirs := []string{host.ControlDir()}
	for _, pattern := range []string{host.ServicesDir, host.ServicesDir + "-0", "/run/user/*/lockstep", "/tmp/lockstep-*"} {
		more, _ := filepath.Glob(pattern)
		for _, dir := range more {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// Ask sends a request to the supervisor of the bench called which, a name or a process
// id, and returns its answer. An *Exit carries exit code 3 where there is no such run or
// it belongs to somebody else, 1 where it gives no answer; what it refuses has code 2.
//
// which may be the bench's file, too.
func Ask(which string, words []string) (*Answer, error) {
	which, err := nameOf(which)
	if err != nil {
		return nil, err
	}
	return ask(sockets(controlDirs()...), which, words)
}

// nameOf is the name of a bench, where which is its file.
func nameOf(which string) (string, error) {
	if info, err := os.Stat(which); err != nil || !info.Mode().IsRegular() {
		return which, nil
	}
	b, err := bench.Load(which)
	if err != nil {
		return "", err
	}
	return b.Name, nil
}

func ask(list []socket, which string, words []string) (*Answer, error) {
	defer closeAll(list)
	s, err := choose(list, which)
	if err != nil {
		return nil, fmt.Errorf("ctl: %w", err)
	}
	_ = s.conn.SetDeadline(time.Now().Add(patient))
	a, err := s.ask(words...)
	if err != nil {
		return nil, fmt.Errorf("ctl: %w", err)
	}
	return a, nil
}

func closeAll(list []socket) {
	for _, s := range list {
		if s.conn != nil {
			s.conn.Close()
		}
	}
}

// ask sends a request and waits for its answer.
func (s *socket) ask(words ...string) (*Answer, error) {
	if err := s.send(words...); err != nil {
		return nil, err
	}
	return s.hear()
}

func (s *socket) send(words ...string) error {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = scenario.QuoteWord(w)
	}
	if _, err := s.conn.Write([]byte(strings.Join(quoted, " ") + "\n")); err != nil {
		return &host.Exit{Code: 1, Err: fmt.Errorf("%s %w: %w", s, ErrNoAnswer, err)}
	}
	return nil
}

func (s *socket) hear() (*Answer, error) {
	text, err := bufio.NewReader(io.LimitReader(s.conn, maxAnswer)).ReadBytes('\n')
	a := &Answer{}
	if err == nil {
		err = json.Unmarshal(text, a)
	}
	if err != nil {
		return nil, &host.Exit{Code: 1, Err: fmt.Errorf("%s %w: %w", s, ErrNoAnswer, err)}
	}
	if !a.OK {
		return nil, fmt.Errorf("%s: %s", s.name, host.Printable(a.Error))
	}
	return a, nil
}

// maxAnswer is the longest answer, bytes.
const maxAnswer = 4 << 20

// patient is how long an answer may take: a change waits for one or two before it, and
// for the longest period.
const patient = 40 * time.Second

// ErrNoAnswer says that a run was asked and does not answer.
var ErrNoAnswer = errors.New("gives no answer")

// SeveralError says that several runs have a name.
type SeveralError struct {
	Name string
	Runs []string // as NAME (process PID)
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%s runs several times: name the process: %s", e.Name, strings.Join(e.Runs, ", "))
}

// choose finds the run that is meant.
func choose(list []socket, which string) (*socket, error) {
	var found []*socket
	var names, plain []string
	for i := range list {
		s := &list[i]
		if s.err == nil {
			names, plain = append(names, s.String()), append(plain, s.name)
		}
		if s.is(which) {
			found = append(found, s)
		}
	}
	foreign := func(s *socket) bool { return s.err != nil }
	if !slices.ContainsFunc(found, func(s *socket) bool { return !foreign(s) }) {
		found = found[:min(1, len(found))]
	} else {
		found = slices.DeleteFunc(found, foreign) // who has one of his own means that
	}
	switch {
	case len(found) == 1 && found[0].err != nil:
		return nil, &host.Exit{Code: 3, Err: fmt.Errorf("%s is another user's run: use sudo, or ask as that user", found[0].name)}
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var several []string
		for _, s := range found {
			several = append(several, s.String())
		}
		return nil, &SeveralError{which, several}
	case len(names) == 0:
		return nil, &host.Exit{Code: 3, Err: fmt.Errorf("no bench %q runs; none does", which)}
	}
	return nil, &host.Exit{Code: 3, Err: fmt.Errorf("no bench %q runs%s; there are %s", which, units.Meant(host.FileName(which), plain), strings.Join(names, ", "))}
}
