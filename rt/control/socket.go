package control

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
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
	"lockstep/rt/diagnosis"
	"lockstep/rt/host"
)

// socketEnd is the suffix of a control socket's name.
const socketEnd = ".sock"

// maxPath is the longest path of a socket: struct sockaddr_un, less its last byte.
const maxPath = 107

// listenControl opens the control socket of a bench: NAME.sock, or NAME-PID.sock if another run has
// that name. It removes the sockets of killed supervisors.
func listenControl(dir, bench string) (*net.UnixListener, string, error) {
	lock, err := host.OwnDir(dir)
	if err != nil {
		return nil, "", err
	}
	defer lock.Close()
	// One run at a time may look for sockets; closing the file releases the lock.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, "", fmt.Errorf("%s: %w", dir, os.NewSyscallError("flock", err))
	}
	removeStaleSockets(dir)
	name := host.FileName(bench)
	for _, name := range []string{name, fmt.Sprintf("%s-%d", name, os.Getpid())} {
		path := filepath.Join(dir, name+socketEnd)
		if len(path) > maxPath {
			return nil, "", fmt.Errorf("%s: the path of a socket has %d bytes at most: set XDG_RUNTIME_DIR to a shorter folder", path, maxPath)
		}
		if isStale(path) {
			if err := os.Remove(path); err != nil {
				return nil, "", err
			}
		} else if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}

		l, err := listenPrivate(path)
		return l, path, err
	}

	return nil, "", fmt.Errorf("%s: this process has a run already", dir)
}

// removeStaleSockets removes sockets without a listener. If two kernels share the directory, such
// as user-mode Linux and its host, a socket of the other kernel looks stale too, so all sockets
// stay. The lock of listenControl ensures that no socket is caught before it listens.
func removeStaleSockets(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*"+socketEnd))
	if !onlyThisKernel(dir, len(files) == 0) {
		return
	}
	for _, file := range files {
		if info, err := os.Lstat(file); err == nil && info.Mode().Type() == fs.ModeSocket && isStale(file) {
			_ = os.Remove(file)
		}
	}
}

// isStale reports whether no process listens at a socket any more.
func isStale(path string) bool {
	conn, _, _, err := dialControl(path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}

// onlyThisKernel reports whether no other kernel has had sockets in dir. A file in dir lists the
// kernels, including this one from now on; the file is restarted when dir is empty.
func onlyThisKernel(dir string, empty bool) bool {
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
		_, _ = f.WriteString(this) // on an error no socket is removed
		f.Close()
	}

	return false // sockets may belong to a kernel that is not in the list
}

// listenPrivate listens on a socket that only its user can open, from the first moment on: Linux
// creates the file with the mode of the socket.
func listenPrivate(path string) (*net.UnixListener, error) {
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

// dialControl opens a control socket of user uid; pid is the process that listens there. Answers of
// another user are not to be trusted: only root asks that user's runs. The path may be in a folder
// of another user, so it is opened without following a link, and the listener must be that user's.
func dialControl(path string) (conn *net.UnixConn, pid, uid int, err error) {
	file, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(file)
	var s unix.Stat_t
	if err := unix.Fstat(file, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, 0, 0, &fs.PathError{Op: "dial", Path: path, Err: fs.ErrInvalid}
	}
	if uid = int(s.Uid); !mayAsk(os.Getuid(), uid) {
		return nil, 0, 0, &fs.PathError{Op: "dial", Path: path, Err: fs.ErrPermission}
	}
	// this path is short, and leads to the opened file whatever happens to its name
	conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d", file), Net: "unix"})
	if err != nil {
		return nil, 0, 0, err
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			c, e := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
			if e != nil || int(c.Uid) != uid {
				err = &fs.PathError{Op: "dial", Path: path, Err: fs.ErrInvalid}
				return
			}
			pid = int(c.Pid)
		})
	}
	if err != nil {
		conn.Close()
		return nil, 0, 0, err
	}

	return conn, pid, uid, nil
}

// mayAsk reports whether user me asks the runs of user uid.
func mayAsk(me, uid int) bool { return me == 0 || me == uid }

// socket is a control socket with a listener, or one that this user may not ask.
type socket struct {
	name   string // NAME or NAME-PID of the bench
	conn   *net.UnixConn
	pid    int
	uid    int            // user of the run
	system bool           // it is in the folder of services, where only root lets others write
	since  uint32         // start time of the process; 0: not known
	err    error          // why the socket cannot be asked
	orphan *targetProcess // target without a supervisor, process pid; it has no socket
}

// matches reports whether which names this run: name, NAME-PID or process id.
func (s *socket) matches(which string) bool {
	pid := strconv.Itoa(s.pid)
	return which == pid || s.name == host.FileName(which) || s.name == host.FileName(which)+"-"+pid
}

func (s *socket) String() string { return fmt.Sprintf("%s (process %d)", s.name, s.pid) }

// rank orders runs of the same name: this user's, services', other users'. A run of a higher rank
// does not hide or disturb one of a lower rank.
func (s *socket) rank() int {
	switch {
	case s.uid == os.Getuid():
		return 0
	case s.system:
		return 1
	}

	return 2
}

// sockets returns the control sockets of this user and, as far as visible, of other users.
func sockets(dirs ...string) (list []socket) {
	for _, dir := range dirs {
		list = append(list, socketsIn(dir)...)
	}
	return list
}

// socketsIn returns the control sockets in a folder. In the folder of another user it looks at maxRuns
// files, and trusts only sockets of that user.
func socketsIn(dir string) (list []socket) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	var owner unix.Stat_t
	if unix.Fstat(int(f.Fd()), &owner) != nil || owner.Mode&0o022 != 0 {
		return nil // listenControl makes no socket in such a folder
	}
	most := -1 // all
	if int(owner.Uid) != os.Getuid() {
		most = maxRuns
	}
	names, _ := f.Readdirnames(most)
	slices.Sort(names)
	for _, name := range names {
		name, found := strings.CutSuffix(name, socketEnd)
		if !found || name != host.FileName(name) {
			continue // no run makes such a name
		}
		s := socket{name: name, system: dir == host.ServicesDir}
		s.conn, s.pid, s.uid, s.err = dialControl(fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), name+socketEnd))
		if s.err == nil && s.uid != int(owner.Uid) && !s.system {
			s.conn.Close()
			continue
		}
		if s.err == nil || errors.Is(s.err, fs.ErrPermission) {
			list = append(list, s)
		}
	}

	return list
}

// controlDirs returns all directories with control sockets that this user may see: the folder of
// services, and each user's own ones.
func controlDirs() []string {
	dirs := []string{host.ControlDir()}
	for _, pattern := range []string{host.ServicesDir, host.ServicesDir + "-0", "/run/user/*/lockstep", "/tmp/lockstep-*"} {
		more, _ := filepath.Glob(pattern)
		for _, dir := range more {
			if !slices.Contains(dirs, dir) && isUsersDir(dir) {
				dirs = append(dirs, dir)
			}
		}
	}

	return dirs
}

// isUsersDir reports whether a folder of sockets belongs to the user whose it is by its name.
func isUsersDir(dir string) bool {
	var s unix.Stat_t
	if unix.Lstat(dir, &s) != nil {
		return false
	}
	return slices.Contains([]string{host.ServicesDir, host.ServicesDir + "-0",
		fmt.Sprintf("/run/user/%d/lockstep", s.Uid), fmt.Sprintf("/tmp/lockstep-%d", s.Uid)}, dir)
}

// Ask sends a request of `lockstep ctl` to the supervisor of a bench and prints its answer. which is the
// bench's name, its file, or a process id. An *Exit has code 3 if there is no such run, if it belongs to
// another user or has no supervisor, and 1 if it does not answer; a refusal has code 2.
func Ask(which string, words []string, o Options) error {
	list := sockets(controlDirs()...)
	if !hasOwn(list, which) { // a run with a socket needs nothing else of this host
		list = withOrphans(list)
	}
	return ask(list, which, words, o)
}

// benchName returns the name of the bench if which is its file, else which. If this user's run has
// the name, it is no file: the working directory may be another user's.
func benchName(which string, runs bool) (string, error) {
	if info, err := os.Stat(which); runs || err != nil || !info.Mode().IsRegular() {
		return which, nil
	}
	b, err := bench.Load(which)
	if err != nil {
		return "", err
	}
	return b.Name, nil
}

func ask(list []socket, which string, words []string, o Options) error {
	defer closeAll(list)
	which, err := benchName(which, hasOwn(list, which))
	if err != nil {
		return err
	}
	s, err := chooseRun(list, which)
	if err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	if s.orphan != nil {
		return host.Exitf(3, "ctl: %s has no supervisor: lockstep attach %d takes it over, lockstep stop %d ends it", s, s.pid, s.pid)
	}
	v, c, err := prepare(words, &o)
	if err == nil {
		err = s.perform(v, c, &o)
	}
	if err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	return nil
}

// perform sends a request and prints the answer.
func (s *socket) perform(v *verb, c call, o *Options) error {
	if v.answer == nil {
		from, err := s.openStream(c)
		if err != nil {
			return err
		}
		return s.printStream(from, o)
	}
	a := v.answer()
	limit := answerTimeout
	switch r := c.body.(type) {
	case StopRequest:
		if r.Wait {
			limit = s.endLimit()
		}
	case AdvanceRequest, diagnosis.UnitRequest: // as long as the simulation, or the unit, takes
		limit = s.endLimit()
	}
	switch err := s.ask(limit, c, a); {
	case err != nil:
		return err
	case o.JSON:
		return json.NewEncoder(o.Out).Encode(a)
	}
	if err := printText(o.Out, a); err != nil {
		return err
	}
	if f, ok := a.(*diagnosisAnswer); ok {
		return f.failed()
	}
	return nil
}

// hasOwn reports whether which names a run of this user.
func hasOwn(list []socket, which string) bool {
	return slices.ContainsFunc(list, func(s socket) bool { return s.err == nil && s.rank() == 0 && s.matches(which) })
}

func closeAll(list []socket) {
	for _, s := range list {
		if s.conn != nil {
			s.conn.Close()
		}
	}
}

// noAnswer marks a run that was asked and does not answer.
const noAnswer = "gives no answer"

func (s *socket) noAnswerError(err error) error {
	return host.Exitf(1, "%s %s: %w", s, noAnswer, err)
}

// ask sends a request and reads its answer, within d; d 0: without a limit.
func (s *socket) ask(d time.Duration, c call, a any) error {
	var end time.Time
	if d > 0 {
		end = time.Now().Add(d)
	}
	_ = s.conn.SetDeadline(end)
	r, _, err := s.send(c)
	if err != nil {
		return err
	}
	return s.parseAnswer(r.StatusCode, r.Body, a)
}

// openStream sends a request for a stream, and returns its lines. Header and start come within answerTimeout.
func (s *socket) openStream(c call) (io.Reader, error) {
	_ = s.conn.SetDeadline(time.Now().Add(answerTimeout))
	r, limit, err := s.send(c)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, s.parseAnswer(r.StatusCode, r.Body, nil)
	}
	_ = s.conn.SetDeadline(time.Time{})
	limit.N = math.MaxInt64 // the reader bounds the lines
	return r.Body, nil
}

// send sends a request and reads the header of its answer. limit is what of the answer may still be read.
func (s *socket) send(c call) (r *http.Response, limit *io.LimitedReader, err error) {
	var body []byte
	if c.body != nil {
		if body, err = json.Marshal(c.body); err != nil {
			return nil, nil, err
		}
	}
	request, err := http.NewRequest(c.method, "http://lockstep"+c.path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if err := request.Write(s.conn); err != nil && !errors.Is(err, unix.EPIPE) { // a refusal may come before all is written
		return nil, nil, s.noAnswerError(err)
	}
	limit = &io.LimitedReader{R: s.conn, N: maxAnswer}
	if r, err = http.ReadResponse(bufio.NewReader(limit), request); err != nil {
		return nil, nil, s.noAnswerError(err)
	}
	return r, limit, nil
}

// parseAnswer reads an answer, which may be another user's, into a.
func (s *socket) parseAnswer(code int, from io.Reader, a any) error {
	refusal := Refusal{}
	if code != http.StatusOK {
		a = &refusal
	}
	if err := json.NewDecoder(io.LimitReader(from, maxAnswer)).Decode(a); err != nil {
		return s.noAnswerError(err)
	}
	switch code {
	case http.StatusOK:
		return nil
	case http.StatusGatewayTimeout: // not refused: the change is under way
		return host.Exitf(1, "%s: %s", s.name, host.PrintableLine(refusal.Error))
	}
	return fmt.Errorf("%s: %s", s.name, host.PrintableLine(refusal.Error))
}

// maxAnswer is the longest answer, bytes.
const maxAnswer = 4 << 20

// answerTimeout is the longest time to an answer: a change waits for one or two earlier ones, each
// of which may take the longest period.
const answerTimeout = 40 * time.Second

// chooseRun returns the run that which names.
func chooseRun(list []socket, which string) (*socket, error) {
	var found []*socket // of the lowest rank
	var foreign *socket
	var names, plain []string
	for i := range list {
		s := &list[i]
		if s.err == nil {
			names, plain = append(names, s.String()), append(plain, s.name)
		}
		switch {
		case !s.matches(which):
		case s.err != nil:
			foreign = cmp.Or(foreign, s)
		case len(found) == 0 || s.rank() < found[0].rank():
			found = []*socket{s}
		case s.rank() == found[0].rank():
			found = append(found, s)
		}
	}

	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var several []string
		for _, s := range found {
			several = append(several, s.String())
		}
		return nil, fmt.Errorf("%s runs several times: name the process: %s", which, strings.Join(several, ", "))
	case foreign != nil:
		return nil, host.Exitf(3, "%s is another user's run: use sudo, or ask as that user", foreign.name)
	case len(names) == 0:
		return nil, host.Exitf(3, "no bench %q runs; no bench runs at all", which)
	}

	near := units.Meant(host.FileName(which), plain)
	return nil, host.Exitf(3, "no bench %q runs%s; there are %s", which, near, strings.Join(names, ", "))
}
