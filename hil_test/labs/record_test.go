package labs

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
)

// The test fills a real file system, makes room again, and compares the recorded ticks and the
// ticks reported as lost with all ticks.
func TestLabRecordContinuesAfterADiskWasFull(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	dir := t.TempDir()
	smallDisk(t, dir, "size=2m")
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run.rec")
	h := record.Header{Period: 5e6, Outputs: make([]record.Signal, 40)}
	w, err := record.Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	const full, all = 6000, 7000
	refused := 0
	for k := range int64(all) {
		if k == full {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatalf("with room again: %v", err)
			}
		}
		tick := record.Tick{Index: k, Y: make([]float64, 40)}
		for i := range tick.Y {
			tick.Y[i] = math.Sin(float64(k*1000 + int64(i)))
		}
		err := w.Tick(&tick)
		if k%20 == 0 && err == nil {
			err = w.Flush()
		}
		if err != nil && (k >= full || !errors.Is(err, syscall.ENOSPC)) {
			t.Fatalf("tick %d: %v", k, err)
		}
		if err != nil {
			refused++
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ticks, lost := counted(t, path)
	t.Logf("%d calls refused, %d ticks recorded, %d reported as lost", refused, ticks, lost)
	if refused == 0 || lost == 0 || ticks+lost != all {
		t.Errorf("%d calls refused, %d ticks recorded, %d lost; want all %d ticks recorded or lost", refused, ticks, lost, all)
	}
}

// counted returns the number of ticks in a record and the number of ticks reported as lost.
func counted(t *testing.T, path string) (ticks, lost int) {
	t.Helper()
	r, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Kind == record.TickEntry:
			if int(e.Tick.Index) != ticks+lost {
				t.Fatalf("tick %d in the place of %d", e.Tick.Index, ticks+lost)
			}
			ticks++
		case e.Kind == record.EventEntry && e.Event.Kind == record.Lost && strings.Contains(e.Event.Text, "no space left"):
			lost += int(e.Event.Count)
		default:
			t.Errorf("%+v", e)
		}
	}
	if r.Torn() != "" {
		t.Errorf("torn: %s", r.Torn())
	}
	return ticks, lost
}
