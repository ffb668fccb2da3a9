package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/io/can"
)

// disk takes left bytes, then refuses like a full disk, in the middle of a write.
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

// run writes noisy ticks from a to b, each with a frame, and returns what was refused.
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

func TestFullDiskLosesACountedGapAndNothingElse(t *testing.T) {
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

func TestSeriesIsBoundedAndReadsAsOneRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	const most = 100_000
	for turn, keep := range []int{0, 3} {
		w, err := Create(path, header(1, 40, 0), Options{MaxBytes: most, Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		if err := write(w, 0, 3000); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "run.*.rec"))
		for _, name := range files {
			if info, err := os.Stat(name); err != nil || info.Size() > most {
				t.Errorf("%s: %d bytes, %v; want at most %d", name, info.Size(), err, most)
			}
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		all, err := readAll(r)
		if err != nil || r.Torn() != "" {
			t.Fatalf("%v, torn %q", err, r.Torn())
		}
		switch {
		case turn == 0 && (len(files) < 5 || len(all) != 6000 || r.Header.Part != 1):
			t.Errorf("%d files, %d entries from part %d; want all 6000", len(files), len(all), r.Header.Part)
		case turn == 1 && (len(files) != 3 || len(all) >= 6000 || len(all) < 500 || r.Header.Part < 2):
			t.Errorf("%d files, %d entries from part %d; want the end of the run in 3 files", len(files), len(all), r.Header.Part)
		}
		if want := "frame {0 false 2999"; !strings.HasPrefix(all[len(all)-1], want) {
			t.Errorf("the last entry is %q, want %q", all[len(all)-1], want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSecondRunOfASeriesLeavesTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	for range 2 {
		w, err := Create(path, header(1, 40, 0), Options{MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(write(w, 0, 10), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{path: 20, part(path, 1): 20, part(path, 2): 20} {
		r, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := readAll(r); err != nil || len(all) != want {
			t.Errorf("%s: %d entries, %v; want %d", name, len(all), err, want)
		}
		r.Close()
	}
}

func TestMissingFileOfASeriesIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	w, err := Create(path, header(1, 40, 0), Options{MaxBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(w, 0, 3000), w.Close()); err != nil {
		t.Fatal(err)
	}
	numbers, _ := parts(path)
	os.Remove(part(path, 2))
	os.Remove(part(path, numbers[len(numbers)-1]))
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := readAll(r)
	damage := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "Kind:damage") })
	if err != nil || damage < 0 || !strings.Contains(all[damage], "part 3 of the run follows part 1") {
		t.Errorf("%v, entry %d says that part 2 is missing", err, damage)
	}
	if !strings.Contains(r.Torn(), "the run goes on in a file that is missing") {
		t.Errorf("torn %q", r.Torn())
	}
}

func TestWriterToldOfNoWayOutSaysIt(t *testing.T) {
	if _, err := Create("/nowhere/run.rec", header(1, 1, 0), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := Create("/nowhere/run.rec", header(1, 1, 0), Options{MaxBytes: 1}); !errors.Is(err, os.ErrNotExist) {
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

func TestKilledWriterLeavesWhatItFlushed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.rec")
	w, err := Create(path, header(1, 40, 0), Options{})
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
	if err != nil || len(all) != 200 || !strings.Contains(r.Torn(), "without the writer's end") {
		t.Errorf("%d entries, %v, torn %q; want the 200 flushed ones", len(all), err, r.Torn())
	}
}

// trajectory is a plant's day in a hundred values: 20 inputs of which a few move, 40
// smooth outputs, 40 that are constant or switch.
func trajectory(t *Tick, k int64) {
	s := float64(k) * 0.005
	t.Index = k
	for i := range t.U {
		t.U[i] = 0
		if i < 5 {
			t.U[i] = math.Floor(100*(1+math.Sin(s*float64(i+1)/3))) * 0.05 // bar, from a bus
		}
	}
	for i := range t.Y {
		switch {
		case i < 40:
			t.Y[i] = 100*math.Exp(-s/float64(i+1)) + 10*math.Sin(s*float64(i+3)/7)
		case i < 60:
			t.Y[i] = float64(int(s) / (i - 39) % 3)
		default:
			t.Y[i] = float64(i)
		}
	}
	for i := range t.Phases {
		t.Phases[i] = 2000 + k*int64(i+7919)%977 + k*k*31%(1+int64(i)*100)
	}
}

func TestTickTakesAFewBytesPerMovingValue(t *testing.T) {
	const ticks, values, perSecond = 20_000, 100, 200
	var out bytes.Buffer
	w, err := New(&out, header(20, 80, 5))
	if err != nil {
		t.Fatal(err)
	}
	tick := Tick{U: make([]float64, 20), Y: make([]float64, 80), Phases: make([]int64, 5)}
	empty := out.Len()
	begin := time.Now()
	for k := range int64(ticks) {
		trajectory(&tick, k)
		if err := w.Tick(&tick); err != nil {
			t.Fatal(err)
		}
		if k%perSecond == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	spent := time.Since(begin)
	size := float64(out.Len()-empty) / ticks
	t.Logf("%.0f bytes per tick of %d values and 5 phases (%d bytes as they are), %.1f MB per hour at 5 ms, %.1f us per tick",
		size, values, 8*(values+5), size*3600*perSecond/1e6, float64(spent.Microseconds())/ticks)
	if !(size < 8*(values+5)/2) {
		t.Errorf("%.0f bytes per tick: less than half of the %d as they are was the point", size, 8*(values+5))
	}
}

func BenchmarkTick(b *testing.B) {
	for _, values := range []int{10, 100} {
		b.Run(fmt.Sprint(values), func(b *testing.B) {
			var out bytes.Buffer
			w, _ := New(&out, header(values/5, values*4/5, 5))
			tick := Tick{U: make([]float64, values/5), Y: make([]float64, values*4/5), Phases: make([]int64, 5)}
			for k := range int64(b.N) {
				trajectory(&tick, k)
				_ = w.Tick(&tick)
			}
			_ = w.Flush()
			b.ReportMetric(float64(out.Len())/float64(b.N), "B/tick")
		})
	}
}
