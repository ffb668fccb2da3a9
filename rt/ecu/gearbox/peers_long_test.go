//go:build long

package gearbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brutella/can"
)

// udsoncan over can-isotp, two independent programs, is the tester of the unit in real time. LOCKSTEP_PEERS names a
// folder with their checkouts, see io/README.md.
func TestUnitIsDiagnosedByUdsoncan(t *testing.T) {
	folder := os.Getenv("LOCKSTEP_PEERS")
	if folder == "" {
		t.Skip("LOCKSTEP_PEERS names no folder with checkouts of python-can-isotp and python-udsoncan: io/README.md")
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(pair[1], true); err != nil {
		t.Fatal(err)
	}
	line := os.NewFile(uintptr(pair[1]), "bus")
	u := newUnit(t, "automatic", line, &bytes.Buffer{})
	for range 100 { // a result counts for two cycles at most
		u.Law.(*automatic).Memory.Report(codeRatio, true, 10*time.Millisecond)
	}

	cmd := exec.Command("/usr/bin/python3", "testdata/tester.py")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(folder, "python-can-isotp")+":"+filepath.Join(folder, "python-udsoncan"))
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(pair[0]), "tester")}
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.ExtraFiles[0].Close()
	begun := time.Now()
	packets := make(chan []byte)
	go func() {
		defer close(packets)
		for {
			packet := make([]byte, 17)
			n, err := line.Read(packet)
			if err != nil {
				return
			}
			packets <- packet[:n]
		}
	}()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for open := true; open; {
		select {
		case p, ok := <-packets:
			if open = ok; ok {
				var f can.Frame
				if can.Unmarshal(p, &f) != nil {
					t.Fatalf("% X", p)
				}
				u.Receive(p, time.Since(begun))
			}
		case <-ticker.C:
		}
		if open && u.Tick(time.Since(begun)) != nil {
			open = false
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &failed)
	}
	want := "vin WLS00000000000027,supported 11,confirmed 073000 status AF,snapshot 8 gear 0," +
		"refused ServiceNotSupportedInActiveSession,vin ABCDEFGH123456789,checksum True,left 0"
	if got := strings.Join(strings.Split(strings.TrimSpace(out.String()), "\n"), ","); got != want {
		t.Errorf("the tester saw\n%s, want\n%s", got, want)
	}
}
