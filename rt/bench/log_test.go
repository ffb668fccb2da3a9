package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/record"
	"lockstep/io/yamlfile"
)

// withLog returns a bench of one bus, whose place a log takes.
func withLog(path string) *Bench {
	return &Bench{Buses: []Bus{{Name: yamlfile.Scalar{Text: "drive"}, Interface: yamlfile.Scalar{Text: LogPrefix + path}}}}
}

func TestABrokenLogIsRefusedBeforeTheRunWithItsLine(t *testing.T) {
	candump, asc := strings.Builder{}, strings.Builder{}
	asc.WriteString("date Fri Nov 20 04:59:45.931 2026\nbase hex  timestamps absolute\n")
	for i := range 5000 {
		fmt.Fprintf(&candump, "(%d.%03d) can0 100#1027\n", i/100, i%100*10)
		fmt.Fprintf(&asc, "  %d.%03d 1  100  Rx   d 2 10 27\n", i/100, i%100*10)
	}
	long := strings.ReplaceAll(strings.ReplaceAll(candump.String(), " can0", "  can0"), "100#1027", "   100   [2]  10 27")
	trc := strings.Repeat(" 1) 1.0 Rx 0100 2 10 27\n", 5000)
	dir := t.TempDir()
	for name, c := range map[string]struct{ whole, broken string }{
		"candump": {candump.String(), "(50.0) can0 100#1G27"}, "asc": {asc.String(), "rubbish"},
		"long": {long, "(50.0)  can0       100   [2]  10"}, "trc": {";$FILEVERSION=1.1\n" + trc, "5001) 1.0 Rx 0100 2 10"},
	} {
		path := filepath.Join(dir, name)
		lines := strings.Count(c.whole, "\n")
		for bad, text := range []string{c.whole, c.whole + c.broken + "\n" + c.whole[len(c.whole)-60:]} {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			err, want := withLog(path).CheckEnds(), fmt.Sprintf("bus drive: %s:%d: ", path, lines+1)
			if (err != nil) != (bad == 1) || err != nil && (!strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s, broken %d: %v; want %s", name, bad, err, want)
			}
		}
	}

	for name, content := range map[string]string{"empty": "", "unknown": "hello\n", "binary": "\x00\x01\x02", "csv": "time[s],x[1]\n0,1\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := withLog(path).CheckEnds(); err == nil || !strings.HasPrefix(err.Error(), "bus drive: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := withLog(filepath.Join(dir, "none")).CheckEnds(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing log: %v", err)
	}
}

func TestABrokenBinaryLogIsRefusedBeforeTheRunWithItsByte(t *testing.T) {
	h := &record.Header{Period: 5e6, Start: 1_700_000_000e9, Buses: []record.Bus{{Name: "drive", Interface: "can0"}}}
	for _, format := range []string{"blf", "mdf4"} {
		path := filepath.Join(t.TempDir(), "log."+format)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		x, err := record.NewExporter(format, f, h)
		if err != nil {
			t.Fatal(err)
		}
		for k := range int64(5000) {
			e := record.Entry{Kind: record.FrameEntry, Frame: record.Frame{Tick: k, Time: h.At(k)}}
			e.Frame.ID, e.Frame.Len = 0x100, 2
			err = errors.Join(err, x.Write(&e))
		}
		if err := errors.Join(err, x.Close()); err != nil {
			t.Fatal(err)
		}
		if err := withLog(path).CheckEnds(); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		info, err := f.Stat()
		if err == nil {
			err = f.Truncate(info.Size() - 40)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := withLog(path).CheckEnds(); err == nil || !strings.Contains(err.Error(), path+": byte ") {
			t.Errorf("%s, cut off: %v", format, err)
		}
	}
}
