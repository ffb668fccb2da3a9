package metrics

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A disk hangs until the test lets it go. Meanwhile ten answers come, without its free space, and only one
// call waits for it.
func TestADiskThatHangsDelaysNoAnswerForLong(t *testing.T) {
	run, _ := guarded(t)
	full(run)
	disk, release := NewDisk(t.TempDir()), make(chan struct{})
	var mu sync.Mutex
	calls := 0
	disk.statfs = func(path string, to *unix.Statfs_t) error {
		mu.Lock()
		calls++
		mu.Unlock()
		<-release
		return unix.Statfs(path, to)
	}
	run.Record = func() *Record {
		free, known := disk.Free()
		return &Record{Free: free, FreeKnown: known}
	}
	s, err := Open("127.0.0.1:0", run)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func() string {
		answer, err := http.Get(s.URL())
		if err != nil {
			t.Error(err)
			return ""
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}

	const figure = "lockstep_record_disk_free_bytes"
	for range 3 { // the answers of one round are the same one
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if text := get(); strings.Contains(text, figure) || !strings.Contains(text, "lockstep_record_incomplete") {
					t.Errorf("the answer while the disk hangs:\n%s", text)
				}
			})
		}
		all.Wait()
		time.Sleep(restTime + restTime/2)
	}
	http.DefaultClient.CloseIdleConnections()
	mu.Lock()
	if calls != 1 {
		t.Errorf("%d calls wait for the disk, want 1", calls)
	}
	mu.Unlock()
	if n := strings.Count(stacks(), "(*Disk).Free.func"); n == 0 || n > 2 { // its frame, and the line that has created it
		t.Errorf("%d lines of goroutines wait for the disk", n)
	}

	close(release)
	for until := time.Now().Add(30 * time.Second); !strings.Contains(get(), figure); time.Sleep(restTime) {
		if time.Now().After(until) {
			t.Fatal("no free space after the disk works again")
		}
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// The alert for a full disk compares this figure with a limit.
func TestFullDiskHasAFigure(t *testing.T) {
	run, _ := guarded(t)
	run.Record = func() *Record { return &Record{Free: 0, FreeKnown: true} }
	if text := string(run.Text()); !strings.Contains(text, "\nlockstep_record_disk_free_bytes 0\n") {
		t.Errorf("no free space has no figure:\n%s", text)
	}
}
