package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/inspect"
	"lockstep/sched"
)

// nobody is the other user of these tests.
const nobody = 65534

// asNobody makes a command run as another user, and ends it with the test.
func asNobody(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Dir = "/"
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// startFakeTarget starts a process of another user with the name of a target, which inherits files
// as a target does. It returns its id.
func startFakeTarget(t *testing.T, files ...*os.File) int {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	dir := openDirOf(t, os.Getuid())
	name := filepath.Join(dir, sched.TargetName)
	if err := os.Symlink(sleep, name); err != nil { // the process has the name of the link
		t.Fatal(err)
	}
	cmd := asNobody(t, exec.Command(name, "1000"))
	cmd.Args[0], cmd.ExtraFiles = "sleep", files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// openDirOf returns a folder of a user that all users can enter.
func openDirOf(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, uid, -1)); err != nil {
		t.Skip("it takes root to be another user")
	}
	return dir
}

// block returns the content of a status block of a running target without a supervisor.
func block(t *testing.T) []byte {
	t.Helper()
	f, p, err := rt.CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.State.Store(uint64(rt.Running))
	p.Ticks.Store(7)
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	return data
}

// memory makes a file in memory of a user.
func memory(t *testing.T, uid int, data []byte, seals int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("lockstep-page", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	t.Cleanup(func() { f.Close() })
	_, err = f.Write(data)
	if err == nil {
		err = f.Chown(uid, -1)
	}
	if err == nil && seals != 0 {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pathOf opens a file without access to its content, as any user may.
func pathOf(t *testing.T, name string) *os.File {
	t.Helper()
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestHostileDescriptorsOfAnotherUsersProcessStayClosed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	dir, data := t.TempDir(), block(t)
	fifo, secret := filepath.Join(dir, "fifo"), filepath.Join(dir, "secret")
	if err := errors.Join(unix.Mkfifo(fifo, 0o666), os.WriteFile(secret, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	sealed := func(uid int) *os.File { return memory(t, uid, data, unix.F_SEAL_SHRINK|unix.F_SEAL_WRITE) }
	for name, c := range map[string]struct{ handover, status *os.File }{
		"a status that is a pipe":     {sealed(nobody), pathOf(t, fifo)},
		"a file of root":              {sealed(nobody), pathOf(t, secret)},
		"memory that can shrink":      {sealed(nobody), memory(t, nobody, data, 0)},
		"memory of root":              {sealed(nobody), memory(t, 0, data, unix.F_SEAL_SHRINK)},
		"a device":                    {sealed(nobody), device},
		"memory of another size":      {sealed(nobody), memory(t, nobody, data[:len(data)-8], unix.F_SEAL_SHRINK)},
		"memory that is no status":    {sealed(nobody), memory(t, nobody, make([]byte, len(data)), unix.F_SEAL_SHRINK)},
		"neither of both descriptors": {nil, nil},
	} {
		var files []*os.File
		if c.handover != nil {
			files = []*os.File{c.handover, c.status}
		}
		pid := startFakeTarget(t, files...)
		if i := slices.IndexFunc(List(), func(v ListedRun) bool { return v.Target == pid || v.Supervisor == pid }); i >= 0 {
			t.Errorf("%s: ps lists it", name)
		}
		for do, err := range map[string]error{
			"attach": func() error { _, err := FindOrphan(strconv.Itoa(pid)); return err }(),
			"open":   func() error { _, err := inspect.Open(pid); return err }(),
			"stop":   Stop(strconv.Itoa(pid), false, true, func(*Answer) {}),
		} {
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %s: %v", name, do, err)
			}
		}
		if !host.Alive(rt.Identity(pid, 0)) {
			t.Errorf("%s: root has killed a process that is no target", name)
		}
	}
	if now, err := os.ReadFile(secret); err != nil || !bytes.Equal(now, data) {
		t.Errorf("the file of root has changed, %v", err)
	}
}

// Root reads the hand-over of another user only if he names the process: it may be hostile.
func TestOrphanOfAnotherUserIsListedAndStoppedByItsStatusBlockAlone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	status := memory(t, nobody, block(t), unix.F_SEAL_SHRINK)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	pid := startFakeTarget(t, pathOf(t, fifo), status)
	which := strconv.Itoa(pid)
	list := List()
	i := slices.IndexFunc(list, func(v ListedRun) bool { return v.Target == pid })
	if i < 0 || list[i].State != "running" || list[i].Bench != unnamed || list[i].Ticks != 7 || list[i].Supervisor != 0 || list[i].Hint != "no supervisor: lockstep attach "+which {
		t.Fatalf("%+v", list)
	}
	if found, err := FindOrphan(which); err != nil || found != pid {
		t.Errorf("attach %d: %d, %v", pid, found, err)
	}
	if found, _ := FindOrphan(""); found == pid {
		t.Error("attach without a name takes the process of another user")
	}
	if _, err := inspect.Open(pid); !errors.Is(err, inspect.ErrForeign) {
		t.Errorf("opened: %v", err)
	}
	var ended *Answer
	if err := Stop(which, false, true, func(a *Answer) { ended = a }); err != nil || ended == nil || ended.Tick != 7 {
		t.Errorf("stop -now: %+v, %v", ended, err)
	}
	p, err := rt.CopyStatusBlock(status)
	if err != nil || p.Stop.Load() != rt.StopPlanned {
		t.Errorf("its status block says stop %d, %v", p.Stop.Load(), err)
	}
}

func TestTargetsOfAnotherUserBeyondALimitAreNotLookedAt(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	status := memory(t, nobody, block(t), unix.F_SEAL_SHRINK)
	for range maxRuns + 4 {
		startFakeTarget(t, status, status)
	}
	n := 0
	for _, p := range findTargets(nil, none) {
		if p.uid == nobody {
			n++
		}
	}
	if n == 0 || n > maxRuns {
		t.Errorf("%d targets of another user, want %d at most", n, maxRuns)
	}
}

// startOther runs a function of others in a process of another user, which lasts until the test ends.
func startOther(t *testing.T, what string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := asNobody(t, exec.Command("/proc/self/exe", "-test.run=^TestOtherUser$"))
	cmd.Env = append(os.Environ(), "LOCKSTEP_OTHER="+what, "LOCKSTEP_ARGS="+strings.Join(args, "\x01"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "other: "); found {
			if text != "ready" {
				t.Fatal(text)
			}
			return cmd
		}
	}
	t.Fatal("the process of the other user has ended")
	return nil
}

// others are what a process of another user does.
var others = map[string]func(args []string) error{
	"names": func(names []string) error { // binds names of the abstract namespace
		for _, name := range names {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
			if err == nil {
				err = unix.Bind(fd, &unix.SockaddrUnix{Name: strings.ReplaceAll(name, "MYSELF", strconv.Itoa(os.Getpid()))})
			}
			if err != nil {
				return err
			}
		}
		return nil
	},
	"sockets": func(args []string) error { // listens on sockets in a folder, and answers with a text; "": never
		for _, name := range args[2:] {
			l, err := net.Listen("unix", filepath.Join(args[0], name+socketEnd))
			if err != nil {
				return err
			}
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						if line, _ := bufio.NewReader(conn).ReadString('\n'); line != "" && args[1] != "" {
							fmt.Fprint(conn, httpAnswer(200, args[1]))
						}
						_, _ = io.Copy(io.Discard, conn)
					}()
				}
			}()
		}
		return nil
	},
	"listen": func(args []string) error { // must not use a folder that root has made
		_, _, err := listenControl(args[0], "b")
		if !errors.Is(err, host.ErrWritableByOthers) || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
			return fmt.Errorf("refused: %w", err)
		}
		return nil
	},
	"dial": func(args []string) error { // must not reach a socket
		conn, err := net.Dial("unix", args[0])
		if err == nil {
			_, _ = fmt.Fprint(conn, "POST /stop HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			return errors.New("another user has opened the socket")
		}
		if !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	},
}

// TestOtherUser is the process of another user; it tests nothing by itself.
func TestOtherUser(t *testing.T) {
	do := others[os.Getenv("LOCKSTEP_OTHER")]
	if do == nil {
		return
	}
	if err := do(strings.Split(os.Getenv("LOCKSTEP_ARGS"), "\x01")); err != nil {
		fmt.Printf("other: %v\n", err)
		os.Exit(1)
	}
	fmt.Println("other: ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func TestNamesThatAnotherUserBindsAreNoRuns(t *testing.T) {
	mine := &host.Reservations{Owner: "mine"}
	defer mine.Close()
	me := os.Getpid()
	name := func(format string, args ...any) string { return fmt.Sprintf(sched.ReservationRoot+format, args...) }
	bus := fmt.Sprintf("bus/x%d", me)
	fd, err := sched.Reserve(bus)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	startOther(t, "names",
		name("cpu/%d/supervisor/%d/evil", 10000+me, me),                      // nothing is reserved
		name("cpu/%d/target/1/evil", 20000+me),                               // nothing is reserved
		name("%s/supervisor/%d/evil", bus, me),                               // root has reserved it
		name("%s/supervisor/MYSELF/evil", bus),                               // root has reserved it
		name("cpu/%d/target/MYSELF/evil", 60000+me),                          // nothing is reserved
		name("cpu/%d", 30000+me), name("cpu/%d/supervisor/1/evil", 30000+me), // reserved, by a process that is not his
		"@x\n0: 2 0 0 5 1 1 "+name("cpu/%d/supervisor/%d/evil", 40000+me, me), // a line of /proc/net/unix
		name("cpu/%d/supervisor/%d/mine", 50000+me, me),                       // the name of a run to come
	)
	for _, v := range List() {
		if v.Bench == "evil" || v.Supervisor == me || v.Supervisor == 1 || v.Target == 1 {
			t.Errorf("ps lists %+v", v)
		}
	}
	held := func(cpu int) *host.Holder {
		for _, h := range host.Holders() {
			if h.What == host.CPUPrefix+strconv.Itoa(cpu) {
				return &h
			}
		}
		return nil
	}
	if h := held(30000 + me); h == nil || h.PID() != 0 || h.UID != nobody || h.String() != "evil of user 65534, whose process is not visible here" {
		t.Errorf("a CPU that another user holds: %v", h)
	}
	if cpu, _, err := mine.Reserve(host.Request{CPU: 50000 + me}); err != nil || cpu != 50000+me {
		t.Errorf("another user has bound the name of its holder: %v", err)
	}
	if _, _, err := new(host.Reservations).Reserve(host.Request{CPU: 30000 + me}); err == nil || !strings.Contains(err.Error(), "evil of user 65534") {
		t.Errorf("the refusal does not name the user: %v", err)
	}
}

func TestSocketsOfAnotherUserDoNotMisleadRoot(t *testing.T) {
	dir, own := openDirOf(t, nobody), t.TempDir()
	mine, path, err := listenControl(own, "mine")
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if err := os.Symlink(path, filepath.Join(dir, "trap"+socketEnd)); err != nil {
		t.Fatal(err)
	}
	lie := fmt.Sprintf(`{"run":{"bench":"a\nb","supervisor":%[1]d,"target":%[1]d,"buses":["c\nd"],"hint":"do"}}`, os.Getpid())
	liar := startOther(t, "sockets", dir, lie, "mine", "liar")
	list := sockets(own, dir)
	names := []string{}
	for i := range list {
		names = append(names, fmt.Sprintf("%s %d", list[i].name, list[i].uid))
	}
	if want := []string{"mine 0", "liar 65534", "mine 65534"}; !slices.Equal(names, want) {
		t.Fatalf("%q, want %q: a link leads to another socket", names, want)
	}
	if s, err := chooseRun(list, "mine"); err != nil || s.uid != 0 {
		t.Errorf("%v, %v; want root's run before another user's", s, err)
	}
	if s, err := chooseRun(list, "liar"); err != nil || s.pid != liar.Process.Pid {
		t.Errorf("%v, %v", s, err)
	}
	closeAll(list)
	runs := askStatus(sockets(dir))
	if len(runs) != 2 || runs[0].Supervisor != liar.Process.Pid || runs[0].Target != 0 || runs[0].Hint != "" {
		t.Errorf("%+v; want no process that is not the user's", runs)
	}
	var text strings.Builder
	if err := Table(&text, runs); err != nil || strings.Count(text.String(), "\n") != 3 || !strings.Contains(text.String(), "ab ") {
		t.Errorf("%v\n%s\nwant a line per run", err, &text)
	}
	var silent []string
	for i := range maxRuns + 4 {
		silent = append(silent, fmt.Sprintf("silent%d", i))
	}
	startOther(t, "sockets", append([]string{dir, ""}, silent...)...)
	if runs := askStatus(sockets(dir)); len(runs) == 0 || len(runs) > maxRuns { // at once, not one after the other
		t.Errorf("%d runs of another user, want %d at most", len(runs), maxRuns)
	}
	mine.SetDeadline(time.Now())
	for { // the sockets that this test has asked
		conn, err := mine.Accept()
		if err != nil {
			break
		}
		if text, _ := io.ReadAll(conn); len(text) > 0 {
			t.Errorf("root has written %q to his own socket behind the link", text)
		}
	}
}

func TestAnotherUserCannotOpenTheSocketOfARun(t *testing.T) {
	c := newControlled(t)
	if err := os.Chmod(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	startOther(t, "dial", c.s.path)
	if len(c.stop) != 0 {
		t.Error("another user has stopped the run")
	}
}

// In /tmp another user can make the folder first, and only its owner can remove it.
func TestFolderOfAnotherUserIsRefusedWithARemedy(t *testing.T) {
	startOther(t, "listen", openDirOf(t, 0))
}

// The working directory may be another user's, with a file of that name.
func TestNameOfARunningBenchIsNotReadAsAFile(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	l, _, err := listenControl(dir, "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(filepath.Join(work, "demo"), []byte("bench: other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	list := sockets(dir)
	defer closeAll(list)
	if which, err := benchName("demo", hasOwn(list, "demo")); which != "demo" || err != nil {
		t.Errorf("%q, %v", which, err)
	}
}

func TestTargetOfThisUserIsReadByItsDescriptors(t *testing.T) {
	h := openControlled(t)
	handover, err := h.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer handover.Close()
	f, p, err := rt.CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.Ticks.Store(9)
	child, err := host.Spawn("/bin/sleep", nil, []*os.File{handover, f}, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Kill()
	one := targetProcess{pid: child.PID, since: child.Since, uid: os.Getuid()}
	if one.read(); one.err != nil || one.bench != h.Bench.Name || one.Status.Ticks.Load() != 9 || !one.isOrphan() {
		t.Errorf("%+v", one)
	}
	v, err := inspect.Open(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	if v.Status.Stop.Store(rt.StopPlanned); p.Stop.Load() != rt.StopPlanned {
		t.Error("its status block is not shared")
	}
	if one.since--; one.since != 0 { // the id is another process's now
		if one.read(); !errors.Is(one.err, host.ErrEnded) {
			t.Errorf("a later process with its id: %v", one.err)
		}
	}
}
