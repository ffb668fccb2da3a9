package doctor

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// onAnotherThread runs f on a thread that is not the first one of this process.
func onAnotherThread(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f()
	}()
	<-done
}

// The affinity of the process's first thread must not matter.
func TestTheDoctorAgreesWithTheRunOnThisHost(t *testing.T) {
	onAnotherThread(func() {
		var first, one unix.CPUSet
		if err := unix.SchedGetaffinity(os.Getpid(), &first); err != nil {
			t.Error(err)
			return
		}
		for cpu := 0; one.Count() == 0; cpu++ {
			if first.IsSet(cpu) {
				one.Set(cpu)
			}
		}
		if err := unix.SchedSetaffinity(os.Getpid(), &one); err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = unix.SchedSetaffinity(os.Getpid(), &first) }()

		d, err := Examine("/", demo)
		if err != nil {
			t.Error(err)
			return
		}
		loop := sched.Thread{CPU: -1, Priority: 80}.ChooseCPU()
		if d.Host.CPU != loop.CPU {
			t.Errorf("the doctor judges CPU %d, the loop takes %d", d.Host.CPU, loop.CPU)
		}
		if refused := sched.Probe(loop); len(refused) > 0 && d.Fit {
			t.Errorf("fit, but a run is refused: %+v", refused)
		}
	})
}
