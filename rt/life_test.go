package rt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestEndOfAKilledProcessWakesAnotherProcess runs this test again as the process.
func TestEndOfAKilledProcessWakesAnotherProcess(t *testing.T) {
	if os.Getenv("LOCKSTEP_MORTAL") != "" {
		runtime.LockOSThread()
		p, err := MapStatusBlock(os.NewFile(3, "page"))
		if err == nil {
			err = p.RegisterThreadExit()
		}
		if err != nil {
			t.Fatal(err)
		}
		p.State.Store(uint64(Running))
		time.Sleep(time.Hour)
	}
	f, p, err := CreateStatusBlock()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if died, known := p.WaitThreadExit(time.Hour); died || known {
		t.Fatalf("died %t, known %t, before there was a thread", died, known)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestEndOfAKilledProcessWakesAnotherProcess$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_MORTAL=1")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 6000 {
		if p.State.Load() == uint64(Running) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if died, known := p.WaitThreadExit(0); died || !known {
		t.Fatalf("died %t, known %t, of a process that lives", died, known)
	}
	told := make(chan bool, 1)
	go func() {
		for range 30 {
			if died, _ := p.WaitThreadExit(time.Second); died {
				told <- true
				return
			}
		}
		told <- false
	}()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !<-told {
		t.Error("the end of the process was not told")
	}
	_ = cmd.Wait() // it was killed
}

// A kernel that refuses a list of robust futexes is simulated by a seccomp filter in a process of its own.
func TestThreadExitIsUnknownToAnEmulatorAndAnErrorElsewhere(t *testing.T) {
	if code := os.Getenv("LOCKSTEP_REFUSED"); code != "" {
		errno, err := strconv.Atoi(code)
		if err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		refuseRobustList(t, unix.Errno(errno))
		p := new(StatusBlock)
		err = p.RegisterThreadExit()
		if died, known := p.WaitThreadExit(time.Hour); died || known {
			t.Errorf("died %t, known %t, want neither", died, known)
		}
		var call *os.SyscallError
		if refused := errors.As(err, &call) && call.Syscall == "set_robust_list" && errors.Is(err, unix.Errno(errno)); refused != (errno != int(unix.ENOSYS)) {
			t.Errorf("%v: %v", unix.Errno(errno), err)
		}
		return
	}
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EINVAL, unix.EPERM} {
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestThreadExitIsUnknownToAnEmulatorAndAnErrorElsewhere$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("LOCKSTEP_REFUSED=%d", int(errno)))
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte(noSeccomp)) {
			t.Skip(noSeccomp)
		}
		if err != nil {
			t.Errorf("%v: %v\n%s", errno, err, out)
		}
	}
}

// noSeccomp is why set_robust_list cannot be refused: an emulator has no filter.
const noSeccomp = "this kernel has no seccomp filter"

// refuseRobustList makes set_robust_list fail in this thread: seccomp(2).
func refuseRobustList(t *testing.T, errno unix.Errno) {
	t.Helper()
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SET_ROBUST_LIST, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		t.Skip(noSeccomp, ": ", err)
	}
}
