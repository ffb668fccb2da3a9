package rt

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
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
