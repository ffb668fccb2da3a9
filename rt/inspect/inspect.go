// Package inspect owns the opening of the memory of running targets: hand-over, status block, tables and copied state.
//
// Any user can give a process the name of a target, and descriptors of any kind, to mislead or block root. So a
// descriptor is opened only if it is sealed memory of the user of that process. The package does not choose the
// process, and does not say what its memory means.
package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/checkpoint"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/tableset"
	"lockstep/rt/target"
)

// Open opens the memory of a target: hand-over, status block, tables, and the copy of its state.
func Open(pid int) (v report.View, err error) {
	uid := host.OwnerOf(pid)
	if v.Handover, err = Handover(pid, uid); err == nil {
		v.Status, err = MapStatus(pid, uid)
	}
	if err == nil && v.Handover.TableSetFD != 0 {
		v.TableSets, err = mapMemory(pid, uid, v.Handover.TableSetFD, tableset.Map)
	}
	if err == nil && v.Handover.StateFD != 0 {
		v.Checkpoint, err = mapMemory(pid, uid, v.Handover.StateFD, checkpoint.Map)
	}
	return v, err
}

// mapMemory maps memory that a target of a user shares with its supervisor.
func mapMemory[T any](pid, uid, fd int, mapFile func(*os.File) (*T, error)) (*T, error) {
	f, err := openSealed(pid, fd, uid, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mapFile(f)
}

// Handover reads the hand-over of a target of a user.
func Handover(pid, uid int) (*bench.Handover, error) {
	f, err := openSealed(pid, target.HandoverFD, uid, os.O_RDONLY, unix.F_SEAL_WRITE)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := bench.LoadHandover(f)
	if err == nil && h.Bench == nil {
		err = ErrForeign
	}
	if err != nil {
		return nil, fmt.Errorf("%w: attach with the binary that started it", err)
	}
	return h, nil
}

// CopyStatus copies the status block of a target of a user.
func CopyStatus(pid, uid int) (*rt.StatusBlock, error) {
	f, err := openSealed(pid, target.StatusFD, uid, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rt.CopyStatusBlock(f)
}

// MapStatus maps the status block of a target of a user.
func MapStatus(pid, uid int) (*rt.StatusBlock, error) {
	f, err := openSealed(pid, target.StatusFD, uid, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rt.MapStatusBlock(f)
}

// ErrForeign reports a process that has the name of a target and is not a target.
var ErrForeign = errors.New("lockstep did not start this process")

// openSealed opens a descriptor of a process if it is a file in memory (memfd_create(2)) of the user
// of that process, whose size is sealed: a mapping of it cannot fail later. seals are further seals
// that it must have. Anything else stays closed: opening a pipe may block, and opening a device acts
// on it.
func openSealed(pid, fd, uid, mode, seals int) (*os.File, error) {
	link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	name, err := os.Readlink(link)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: use sudo", err)
	}
	if err == nil && !strings.HasPrefix(name, "/memfd:") {
		err = ErrForeign
	}
	if err != nil {
		return nil, err
	}
	path, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0) // opens no file yet
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	defer unix.Close(path)
	var s unix.Stat_t
	if err := unix.Fstat(path, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG || int(s.Uid) != uid {
		return nil, ErrForeign
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", path), mode|unix.O_NONBLOCK, 0) // a lease could block it
	if err != nil {
		return nil, err
	}
	seals |= unix.F_SEAL_SHRINK
	if has, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0); err != nil || has&seals != seals {
		f.Close()
		return nil, ErrForeign
	}

	return f, nil
}

// SupervisorOf returns the process id of the supervisor; 0: there is none.
func SupervisorOf(p *rt.StatusBlock) int {
	pid, _ := rt.SplitIdentity(p.Supervisor.Load())
	return pid
}
