package metrics

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Disk measures the free space of the disk of a folder. The system call of a disk that hangs, such as one of the
// network, does not return: it runs in a goroutine of its own, and no second one starts before it has returned.
type Disk struct {
	folder string
	statfs func(path string, to *unix.Statfs_t) error
	busy   atomic.Bool // a call has not returned yet
}

// NewDisk returns the disk of a folder.
func NewDisk(folder string) *Disk { return &Disk{folder: folder, statfs: unix.Statfs} }

// diskTimeout is how long Free waits for the disk.
const diskTimeout = 200 * time.Millisecond

// Free returns the bytes free for this user; ok is false if they are not known: the disk is gone or hangs.
func (d *Disk) Free() (free uint64, ok bool) {
	if !d.busy.CompareAndSwap(false, true) {
		return 0, false
	}
	answer := make(chan uint64, 1)
	go func() {
		defer close(answer)
		var of unix.Statfs_t
		err := d.statfs(d.folder, &of)
		d.busy.Store(false)
		if err == nil {
			answer <- of.Bavail * uint64(of.Bsize)
		}
	}()
	select {
	case free, ok = <-answer:
		return free, ok
	case <-time.After(diskTimeout):
		return 0, false
	}
}
