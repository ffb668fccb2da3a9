package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTruncatedRecordYieldsItsBeginning(t *testing.T) {
	file, all := sample(t)
	want := texts(all)
	most := 0
	for n := range file {
		r, err := NewReader("r", bytes.NewReader(file[:n]))
		if err != nil {
			if most > 0 {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		got, err := readAll(r)
		if err != nil || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("cut at %d: %d entries, %v", n, len(got), err)
		}
		if len(got) < most {
			t.Fatalf("cut at %d: %d entries, a shorter file had %d", n, len(got), most)
		}
		most = len(got)
		if !tornBy(r, unended) && !tornBy(r, cutOff) {
			t.Fatalf("cut at %d: torn %q", n, r.Torn())
		}
		// A loss of power may leave the length of the file and zeros for what was in it.
		zeroed := append(slices.Clone(file[:n]), make([]byte, 4096)...)
		if bytes.HasPrefix(zeroed, file) {
			continue // the last byte of the file is 0
		}
		r, err = NewReader("r", bytes.NewReader(zeroed))
		if err != nil {
			t.Fatal(err)
		}
		if zeros, err := readAll(r); err != nil || !slices.Equal(zeros, got) || !tornBy(r, cutOff) {
			t.Fatalf("cut at %d, then zeros: %d entries, %v, torn %q; want the same %d", n, len(zeros), err, r.Torn(), len(got))
		}
	}
	if most != len(want) {
		t.Errorf("%d entries before the last byte, want all %d", most, len(want))
	}
}

func TestEveryFlippedBitIsDetected(t *testing.T) {
	file, all := sample(t)
	want := texts(all)
	for i := range len(file) * 8 {
		bad := slices.Clone(file)
		bad[i/8] ^= 1 << (i % 8)
		r, err := NewReader("r", bytes.NewReader(bad))
		if err != nil {
			continue // of magic or header
		}
		got, err := readAll(r)
		damage := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, "damage") })
		if err == nil && r.Torn() == "" && len(damage) == 0 {
			t.Fatalf("bit %d: nothing is said", i)
		}
		rest := slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, "damage") })
		at := 0
		for _, s := range rest { // the remaining ticks are in order and unchanged
			j := slices.Index(want[at:], s)
			if j < 0 {
				t.Fatalf("bit %d: %s was never written", i, s)
			}
			at += j + 1
		}
	}
}

func TestDamageLosesOneChunkOnly(t *testing.T) {
	file, all := sample(t)
	for _, bad := range [][]byte{
		flip(file, chunks(file)[3]+headSize+5),                                        // in the second data chunk
		flip(file, chunks(file)[3]+12),                                                // in its length
		append(slices.Clone(file[:chunks(file)[3]]), file[chunks(file)[4]:]...),       // gone
		slices.Concat(file[:chunks(file)[3]], []byte("junk"), file[chunks(file)[3]:]), // in between
	} {
		r, err := NewReader("r", bytes.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(r)
		if err != nil || r.Torn() != "" {
			t.Fatalf("%v, torn %q", err, r.Torn())
		}
		want := texts(all)
		i := slices.IndexFunc(got, func(s string) bool { return strings.Contains(s, "Kind:damage") })
		if i != 9 || !slices.Equal(got[:9], want[:9]) || !slices.Equal(got[10:], want[len(want)-len(got)+10:]) {
			t.Errorf("entry %d of %d is the damage, want entry 9 and the rest as written", i, len(got))
		}
	}
}

func flip(file []byte, i int) []byte {
	b := slices.Clone(file)
	b[i] ^= 0x10
	return b
}

// chunks returns the offsets of the chunks.
func chunks(file []byte) (at []int) {
	var u unpacker
	for i := int64(len(magic)); ; {
		f, err := u.read(bytes.NewReader(file), i)
		if err != nil {
			return at
		}
		at = append(at, int(i))
		i = f.next
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	file, _ := sample(t)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":   {nil, "the file is empty"},
		"cut":     {file[:5], "the header cannot be read: the file ends at byte 5"},
		"text":    {[]byte("period: 5 ms\nplant: x\n"), "not a record"},
		"version": {append([]byte("lockrec6"), file[8:]...), `the record has version "lockrec6", this program reads "lockrec8" only`},
		"header":  {flip(file, 60), "the header cannot be read"},
	} {
		_, err := NewReader("r", bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// A run that is killed as it starts leaves a record without a header, or with a part of it, as the newest
// file of a folder. It is neither missing nor a record without ticks, and the files before it are read.
func TestNewestRecordOfAFolderMayBeCutInItsHeader(t *testing.T) {
	file, all := sample(t)
	want := len(slices.DeleteFunc(all, func(e any) bool { return e == nil })) // nil: a flush
	at := chunks(file)
	for name, c := range map[string]struct {
		length      int
		error, torn string
	}{
		"empty":               {0, "the file is empty: its run ended before it wrote the header", ""},
		"cut in the magic":    {3, "the header cannot be read: the file ends at byte 3", ""},
		"magic only":          {len(magic), "the header cannot be read: the file ends here", ""},
		"cut in the head":     {len(magic) + headSize - 1, "the header cannot be read: the file ends within a chunk", ""},
		"cut in the header":   {at[1] - 1, "the header cannot be read: the file ends within a chunk", ""},
		"header only":         {at[1], "", "before the first tick, without an end chunk"},
		"cut in the handover": {at[2] - 1, "", "before the first tick"},
	} {
		dir := t.TempDir()
		for i, content := range [][]byte{file, file, file[:c.length]} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("leg-%06d.rec", i+1)), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list, err := filepath.Glob(filepath.Join(dir, "*.rec"))
		if err != nil || len(list) != 3 {
			t.Fatal(list, err)
		}
		for i, file := range list {
			r, err := Open(file)
			if i == 2 && c.error != "" {
				if err == nil || !strings.Contains(err.Error(), c.error) || !strings.Contains(err.Error(), file) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v; want %q", name, err, c.error)
				}
				if s, err := OpenSource(file, ""); err == nil {
					t.Errorf("%s: it is a source of frames: %+v", name, s)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			entries, err := readAll(r)
			r.Close()
			switch {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case i < 2 && (len(entries) != want || r.Torn() != ""):
				t.Errorf("%s: file %d has %d entries, torn %q; want %d", name, i, len(entries), r.Torn(), want)
			case i == 2 && (len(entries) != 0 || !strings.Contains(r.Torn(), c.torn)):
				t.Errorf("%s: %d entries, torn %q; want %q", name, len(entries), r.Torn(), c.torn)
			}
		}
	}
}

// Causes for which a record is torn.
const (
	unended = "without an end chunk"
	cutOff  = "cut off at byte"
)

// tornBy reports whether the record is torn for this reason.
func tornBy(r *Reader, why string) bool {
	return strings.HasPrefix(r.torn, r.name+": ") && strings.Contains(r.torn, why)
}

func TestTornReportsPositionAndCause(t *testing.T) {
	file, _ := sample(t)
	last := chunks(file)[len(chunks(file))-1]
	for _, c := range []struct {
		file []byte
		want string
	}{
		{file, ""},
		{file[:last], fmt.Sprintf("r: ends at byte %d, after tick 11 (0.055 s), without an end chunk: data after the writer's last flush is lost", last)},
		{append(slices.Clone(file), file...), fmt.Sprintf("r: the record ends at byte %d, after tick 11 (0.055 s), but the file goes on: the rest is not read", len(file))},
		{file[:last+1], fmt.Sprintf("r: cut off at byte %d, after tick 11 (0.055 s): the file ends within a chunk", last)},
	} {
		r, err := NewReader("r", bytes.NewReader(c.file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(r); err != nil || r.Torn() != c.want {
			t.Errorf("%v; torn %q, want %q", err, r.Torn(), c.want)
		}
	}
}

// A chunk whose payload is longer than its head says costs no more memory than an honest one.
func TestUnpackingNeedsMemoryForTheClaimedLengthOnly(t *testing.T) {
	const claimed = 8 << 20
	for name, c := range map[string]struct{ length, claimed, most int }{
		"as long":              {claimed, claimed, claimed + 1<<20},
		"longer":               {4 * claimed, claimed, claimed + 1<<20},
		"longer than possible": {1000, maxHandover, 1 << 20},
	} {
		var p packer
		packed := p.pack(handoverChunk, make([]byte, c.length))
		packed.unpackedLen = c.claimed
		file := packed.appendTo(nil, 1)
		var u unpacker
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := u.read(bytes.NewReader(file), 0)
		runtime.ReadMemStats(&after)
		if (err == nil) != (c.length == c.claimed) || err == nil && len(f.payload) != c.length {
			t.Errorf("%s: %d bytes, %v", name, len(f.payload), err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(c.most) {
			t.Errorf("%s: %d bytes of memory, want at most %d", name, used, c.most)
		}
	}
}
