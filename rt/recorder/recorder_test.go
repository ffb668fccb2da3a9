package recorder

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/host"
)

func TestRecordsOfEarlierStartsAreKeptUpToANumber(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.rec")
	var last *os.File
	for i := range 6 {
		f, err := createRecord(file, 3)
		if err != nil {
			t.Fatal(err)
		}
		if i < 5 {
			fmt.Fprintf(f, "start %d", i)
		}
		if i == 2 { // while a run writes it, nothing is moved
			if _, err := createRecord(file, 3); !errors.Is(err, host.ErrFileTaken) {
				t.Errorf("the second: %v", err)
			}
		}
		last = f
		f.Close()
	}
	seen := map[string]string{}
	files, _ := filepath.Glob(file + "*")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		seen[strings.TrimPrefix(name, file)] = string(text)
	}
	if want := map[string]string{"": "", ".1": "start 4", ".2": "start 3", ".3": "start 2"}; !maps.Equal(seen, want) || last.Name() != file {
		t.Errorf("there are %q, want %q", seen, want)
	}
	for range 2 { // an empty one is of a start that was refused
		f, err := createRecord(file, 3)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if text, _ := os.ReadFile(file + ".1"); string(text) != "start 4" {
		t.Errorf("after an empty one FILE.1 has %q", text)
	}
	if f, err := createRecord(file+".1", 0); err != nil || f.Close() != nil {
		t.Error(err)
	}
	if info, err := os.Stat(file + ".1"); err != nil || info.Size() != 0 {
		t.Errorf("where none is kept it is begun anew: %v, %v", info, err)
	}
}
