package record

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/can"
)

func TestAFileThatBecomesShorterIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("(1.0) can0 1#\n", 100_000)), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(path, 90_000*14); err != nil {
		t.Fatal(err)
	}
	for _, err = s.Next(); err == nil; _, err = s.Next() {
	}
	if err == io.EOF || !strings.Contains(err.Error(), path+":90001: ") {
		t.Errorf("%v; want file and line 90001", err)
	}
}

// A frame may follow up to 255 frames that are later than it.
func TestFrameOfALogIsOutOfOrderByAtMost255Frames(t *testing.T) {
	for later, disorder := range map[int]int{0: 0, 1: 0, 255: 0, 256: 1} {
		var text strings.Builder
		for i := range later {
			fmt.Fprintf(&text, "(100.%06d) can0 001#\n", i+5)
		}
		fmt.Fprintf(&text, "(100.000000) can0 002#\n")
		for i := range 300 {
			fmt.Fprintf(&text, "(101.%06d) can0 003#\n", i)
		}
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSource(path, "")
		if err != nil {
			t.Fatal(err)
		}
		first, err := s.Next()
		if err != nil || first.Time != 0 || (first.ID == 2) != (disorder == 0) {
			t.Errorf("a frame after %d later ones: the first is %X at %d ns, %v", later, first.ID, first.Time, err)
		}
		n, last := 1, first
		for ; ; n++ {
			f, err := s.Next()
			if err != nil {
				break
			}
			last = f
		}
		start := map[bool]int64{true: 0, false: 5000}[disorder == 0] // ns, of the earliest frame
		if n != later+301 || s.Disorder != disorder || last.Time != 1e9+299e3-start {
			t.Errorf("a frame after %d later ones: %d frames, %d in disorder, the last at %d ns; want %d, %d, %d",
				later, n, s.Disorder, last.Time, later+301, disorder, int64(1e9+299e3)-start)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSourceOfALogIsInTheOrderOfTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	const n = 2000
	for i := range n { // two queues; the second is read later
		fmt.Fprintf(&text, "(100.%06d) can%d %03X#\n", i-i%2*100+1000, i%2, i)
	}
	text.WriteString("(1.0) can0 7FF#\n(200.0) can0 20000004#0000000000000000\n") // far too late, and an error frame
	if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	last, count := int64(0), 0
	for {
		f, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil || f.Time < last || f.ID&can.ERR != 0 {
			t.Fatalf("%v, frame %X at %d ns after %d ns", err, f.ID, f.Time, last)
		}
		last = f.Time
		count++
	}
	if count != n+1 || s.Disorder != 1 {
		t.Errorf("%d frames, %d in disorder; want %d and 1", count, s.Disorder, n+1)
	}
}

func TestSourceErrorsNameTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("(1.0) can0 1#\n(2.0) can0 1#1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(); err != nil {
		t.Errorf("the first frame: %v", err)
	}
	if _, err := s.Next(); err == nil || !strings.Contains(err.Error(), path+":2: ") {
		t.Errorf("%v; want file and line 2", err)
	}
	if _, err := OpenSource("/nowhere/log", ""); !os.IsNotExist(unwrapped(err)) {
		t.Errorf("%v", err)
	}
}

func unwrapped(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}
