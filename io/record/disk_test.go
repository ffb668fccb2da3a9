package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockstep/io/can"
)

// disk accepts left bytes, then fails like a full disk, in the middle of a write.
type disk struct {
	bytes.Buffer
	left int
}

func (d *disk) Write(b []byte) (int, error) {
	if len(b) <= d.left {
		d.left -= len(b)
		return d.Buffer.Write(b)
	}
	n, _ := d.Buffer.Write(b[:d.left])
	d.left = 0
	return n, syscall.ENOSPC
}

func TestQueuedChunkIsUnchanged(t *testing.T) {
	d := &disk{left: 1 << 20}
	w, err := New(d, header(0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	d.left = 10
	var want []string
	for i := range 20 { // small chunks, which deflating does not make smaller
		e := Event{Tick: int64(i), Text: fmt.Sprint(i)}
		if i == 10 {
			d.left = 1 << 20
		}
		err = errors.Join(err, w.Event(&e), w.Flush())
		want = append(want, same(&e))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want ENOSPC", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader("r", bytes.NewReader(d.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(r); err != nil || r.Torn() != "" || !slices.Equal(got, want) {
		t.Errorf("%v, torn %q\ngot  %v\nwant %v", err, r.Torn(), got, want)
	}
}

// write writes noisy ticks from a to b, each with a frame, and returns what was refused.
func write(w *Writer, a, b int64) (err error) {
	t := Tick{U: make([]float64, 1), Y: make([]float64, 40)}
	for k := a; k < b; k++ {
		t.Index = k
		for i := range t.Y {
			t.Y[i] = math.Sin(float64(k*1000 + int64(i)))
		}
		err = errors.Join(err, w.Tick(&t), w.Frame(&Frame{Tick: k, Frame: can.Frame{ID: uint32(k) & 0x7FF, Len: 8}}))
	}
	return err
}

func TestFullDiskLosesACountedGapOnly(t *testing.T) {
	d := &disk{left: 100_000}
	w, err := New(d, header(1, 40, 0))
	if err != nil {
		t.Fatal(err)
	}
	err = write(w, 0, 5000) // 1.5 MB
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want ENOSPC", err)
	}
	if len(w.raw) > maxData || len(w.queue) > 2*maxData || cap(w.raw) > maxData {
		t.Errorf("holds %d and %d bytes", cap(w.raw), len(w.queue))
	}
	if err := w.Flush(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Flush: %v, want ENOSPC", err)
	}
	d.left = 1 << 30
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := write(w, 5000, 5100); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader("r", bytes.NewReader(d.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	next, ticks, frames, lost := int64(0), 0, 0, uint64(0)
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		switch e.Kind {
		case TickEntry:
			if e.Tick.Index != next {
				t.Fatalf("tick %d where %d should be", e.Tick.Index, next)
			}
			next = e.Tick.Index + 1
			ticks++
		case FrameEntry:
			frames++
		case EventEntry:
			if e.Event.Kind != Lost || !strings.Contains(e.Event.Text, "no space left on device") || e.Event.Tick != next-1 && e.Event.Tick != next {
				t.Errorf("event %+v", e.Event)
			}
			lost += e.Event.Count
			next = 5000
		}
	}
	if r.Torn() != "" || lost == 0 || uint64(ticks+frames)+lost != 2*5100 {
		t.Errorf("%d ticks, %d frames, %d lost; want %d together; torn %q", ticks, frames, lost, 2*5100, r.Torn())
	}
}

func TestWriterReturnsTheErrorOfItsFile(t *testing.T) {
	if _, err := Create("/nowhere/run.rec", header(1, 1, 0)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	w, err := New(&disk{left: 0}, header(1, 1, 0))
	if w != nil || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if _, err := New(&disk{}, Header{}); err == nil || !strings.Contains(err.Error(), "period 0 ns") {
		t.Errorf("%v", err)
	}
}

func TestKilledWriterLeavesItsFlushedData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	w, err := Create(path, header(1, 40, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(w, 0, 100), w.Sync(), write(w, 100, 150)); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path) // as the file is when the process dies here
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(r)
	if err != nil || len(all) != 200 || !tornBy(r, unended) {
		t.Errorf("%d entries, %v, torn %q; want the 200 flushed ones", len(all), err, r.Torn())
	}
}

// killVar names the environment variable with the file that a killed writer writes.
const killVar = "LOCKSTEP_RECORD_KILL"

func TestMain(m *testing.M) {
	if path := os.Getenv(killVar); path != "" {
		w, err := Create(path, header(1, 40, 0))
		for k := int64(0); err == nil; k += 100 {
			if err = errors.Join(write(w, k, k+100), w.Flush()); err == nil {
				fmt.Println(k + 100)
			}
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestRecordIsCompleteUpToTheLastFlushAfterKill(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "run.rec")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killVar+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		flushed, lines := int64(0), bufio.NewScanner(out)
		for lines.Scan() {
			if _, err := fmt.Sscan(lines.Text(), &flushed); err != nil {
				t.Fatalf("the writer says %q", lines.Text())
			}
			if flushed == 2000 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		ticks := int64(0)
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == TickEntry {
				if e.Tick.Index != ticks {
					t.Fatalf("tick %d where %d should be", e.Tick.Index, ticks)
				}
				ticks++
			}
		}
		if r.Close(); ticks < flushed || flushed < 2000 || r.Torn() == "" {
			t.Errorf("%d ticks, %d were flushed, torn %q", ticks, flushed, r.Torn())
		}
	}
}

func TestFullDeviceIsRefusedAndNotRemoved(t *testing.T) {
	if _, err := Create("/dev/full", header(1, 1, 0)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want no space left on device", err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Error(err)
	}
}

func TestMemoryDoesNotGrowWithTheLengthOfTheRun(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	path := filepath.Join(t.TempDir(), "run.rec")
	w, err := Create(path, header(1, 40, 0))
	if err != nil {
		t.Fatal(err)
	}
	const slack = 1 << 20 // what other tests and the runtime still move
	if err := write(w, 0, 1000); err != nil {
		t.Fatal(err)
	}
	before := heap()
	if err := write(w, 1000, 30_000); err != nil {
		t.Fatal(err)
	}
	if grown := heap() - before; grown > slack {
		t.Errorf("the writer holds %d bytes more after 9 MB", grown)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	count := 0
	for ; ; count++ {
		if _, err := r.Next(); err != nil {
			break
		}
		if count == 1000 {
			before = heap()
		}
	}
	if grown := heap() - before; count != 60_000 || grown > slack {
		t.Errorf("the reader holds %d bytes more after %d of 60000 entries", grown, count)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(r)
}
