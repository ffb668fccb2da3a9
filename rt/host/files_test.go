package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReportFileBelongsToOneRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(file, []byte("of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	one, err := CreateExclusive(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := one.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := CreateExclusive(file); !errors.Is(err, ErrFileTaken) {
		t.Errorf("the second: %v", err)
	}
	one.Close()
	two, err := CreateExclusive(file)
	if err != nil {
		t.Error(err)
	}
	two.Close()
	for range 2 { // several runs may write to a device
		f, err := CreateExclusive(os.DevNull)
		if err != nil {
			t.Error(err)
		}
		defer f.Close()
	}
}
