package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"lockstep/deploy/hostinfo"
	"lockstep/io/can"
)

// hands are what changes a host. Below another root than "/" only files can be
// written: the threads and interfaces of a folder are text.
type hands struct {
	write      func(path, text string) error
	schedule   func(tid, policy, priority, nice int) error
	bind       func(tid int, cpus []int) error
	link       func(name string) (can.Link, error)
	setRestart func(name string, ms uint32) error
}

// running are the hands of the kernel below this process.
func running() hands {
	return hands{write: write, schedule: schedule, bind: moveTo, link: askLink, setRestart: setRestart}
}

// errGone is what is no longer there: a thread that has ended, a card unplugged.
var errGone = errors.New("it is gone")

// errUp is a card whose restart-ms the kernel keeps as long as it is up.
var errUp = errors.New("the interface is up, and the kernel changes it only while it is down")

// reason is an error without the path, which is said beside it.
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
		return fmt.Errorf("%w: it takes root", fs.ErrPermission)
	}
	return err
}

// write gives a file of the kernel a value: one write, and no file is made.
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

func moveTo(tid int, cpus []int) error {
	set := unix.NewCPUSet(hostinfo.MaxCPUs)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinityDynamic(tid, set))
}

func askLink(name string) (can.Link, error) {
	links, err := can.OpenLinks()
	if err != nil {
		return can.Link{}, err
	}
	defer links.Close()
	link, err := links.Ask(name)
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
	link, err := links.Ask(name)
	if err != nil {
		return err
	}
	if err = links.SetRestart(link, ms); errors.Is(err, syscall.EBUSY) {
		return errUp
	}
	return err
}
