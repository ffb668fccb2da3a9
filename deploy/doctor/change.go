package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/sched/hostinfo"
	"lockstep/sched/journal"
)

// Setting identifies a setting of the running kernel.
type Setting = journal.Setting

// Change is a change of a setting by -fix.
type Change struct {
	Setting
	Check   string `json:"check"`   // name of the check that needs the change
	Now     string `json:"now"`     // value before the change
	Then    string `json:"then"`    // value after the change
	Command string `json:"command"` // shell command with the same effect
}

// threadSetting returns a setting of a thread.
func threadSetting(t hostinfo.Thread, kind journal.Kind) Setting {
	return Setting{Kind: kind, File: "/" + t.Dir, Thread: t.Name, Start: t.Start}
}

// addChange adds the change of a setting to a check, unless the setting has the value or does not
// exist.
func (h *host) addChange(c Check, s Setting, then string) Check {
	now, err := h.current(s)
	if err != nil || s.Equal(now, then) {
		return c
	}
	c.Changes = append(c.Changes, Change{Setting: s, Check: c.Name, Now: now, Then: then, Command: s.Command(then)})
	return c
}

// wrongSetting returns a check with the verdict Wrong, the change of its setting and the command that
// does the same.
func (h *host) wrongSetting(c Check, s Setting, then, found string) Check {
	return h.addChange(c, s, then).wrong(found, s.Command(then), Now)
}

// fileSetting returns the setting of a file with one word; file is relative to the root.
func fileSetting(file string) Setting { return Setting{Kind: journal.Value, File: "/" + file} }

// current reads the value of a setting. The error is errGone if the thread or the interface is gone.
func (h *host) current(s Setting) (string, error) {
	switch s.Kind {
	case journal.Scheduling, journal.Affinity:
		return h.currentOfThread(s)
	case journal.RestartMs:
		if h.operations.link == nil {
			return "", errGone
		}
		link, err := h.operations.link(path.Base(s.File))
		return strconv.Itoa(link.RestartMs), err
	}

	text, err := h.ReadFile(s.File)
	if _, rest, found := strings.Cut(text, "["); found && s.Kind == journal.Choice {
		text, _, _ = strings.Cut(rest, "]")
	}
	return text, err
}

func (h *host) currentOfThread(s Setting) (string, error) {
	t, err := h.Thread(strings.TrimPrefix(s.File, "/"))
	switch {
	case err != nil || t.Start != s.Start || t.Name != s.Thread:
		return "", errGone
	case s.Kind == journal.Affinity:
		return hostinfo.FormatCPUs(t.CPUs), nil
	}

	return hostinfo.FormatPolicy(t.Policy, t.Priority), nil
}

// change writes a value to a setting and reads it back.
func (h *host) change(s Setting, value string) error {
	var err error
	if !s.Allowed() {
		return fmt.Errorf("lockstep does not change the setting %s", s)
	}
	if _, err = h.current(s); err == nil {
		err = h.write(s, value)
	}
	if err != nil {
		return reason(err)
	}
	switch now, err := h.current(s); {
	case err != nil:
		return reason(err)
	case !s.Equal(now, value):
		return &readBackError{now}
	}

	return nil
}

// readBackError is the error of a setting that has another value than the one written.
type readBackError struct{ got string }

func (e *readBackError) Error() string { return fmt.Sprintf("the value read back is %q", e.got) }

func (h *host) write(s Setting, value string) error {
	tid, _ := strconv.Atoi(path.Base(s.File)) // for a setting of a thread
	switch s.Kind {
	case journal.Scheduling:
		policy, priority, err := hostinfo.ParsePolicy(value)
		if err != nil {
			return err
		}
		t, err := h.Thread(strings.TrimPrefix(s.File, "/"))
		if err != nil {
			return err
		}
		return h.operations.schedule(tid, policy, priority, t.Nice)
	case journal.Affinity:
		cpus, err := hostinfo.ParseCPUs(value)
		if err != nil {
			return err
		}
		return h.operations.setAffinity(tid, cpus)
	case journal.RestartMs:
		ms, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return err
		}
		return h.operations.setRestart(path.Base(s.File), uint32(ms))
	}

	return h.operations.write(h.Path(s.File), value)
}

// operations changes the settings of a host. Below another root than "/" only write is set.
type operations struct {
	write       func(path, text string) error
	schedule    func(tid, policy, priority, nice int) error
	setAffinity func(tid int, cpus []int) error
	link        func(name string) (can.Link, error)
	setRestart  func(name string, ms uint32) error
}

// kernelOperations returns the operations of the running kernel.
func kernelOperations() operations {
	return operations{write: write, schedule: schedule, setAffinity: setAffinity, link: queryLink, setRestart: setRestart}
}

// errGone is the error of a thread that has ended or of a CAN interface that was removed.
var errGone = errors.New("the thread or interface no longer exists")

// errLinkUp is the error of setting restart-ms of an interface that is up.
var errLinkUp = errors.New("the interface is up; the kernel changes restart-ms only while the interface is down")

// reason returns an error without its path, for messages that name the setting.
func reason(err error) error {
	var file *fs.PathError
	var call *os.SyscallError
	switch {
	case errors.As(err, &file):
		err = file.Err
	case errors.As(err, &call):
		err = call.Err
	}

	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("%w: run as root", fs.ErrPermission)
	}
	return err
}

// write writes a value to a file of the kernel with one write; it does not create the file.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

func schedule(tid, policy, priority, nice int) error {
	attr := unix.SchedAttr{Policy: uint32(policy), Priority: uint32(priority), Nice: int32(nice)}
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(tid, &attr, 0))
}

func setAffinity(tid int, cpus []int) error {
	set := unix.NewCPUSet(hostinfo.MaxCPUs)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinityDynamic(tid, set))
}

func queryLink(name string) (can.Link, error) {
	links, err := can.OpenLinks()
	if err != nil {
		return can.Link{}, err
	}
	defer links.Close()
	link, err := links.Query(name)
	if errors.Is(err, can.ErrNoInterface) {
		err = errGone
	}
	return link, err
}

func setRestart(name string, ms uint32) error {
	links, err := can.OpenLinks()
	if err != nil {
		return err
	}
	defer links.Close()
	link, err := links.Query(name)
	if err != nil {
		return err
	}
	if err = links.SetRestart(link, ms); errors.Is(err, syscall.EBUSY) {
		return errLinkUp
	}
	return err
}
