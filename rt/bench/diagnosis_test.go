package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/model/plants"
)

// A tester that asks an address of the bench itself would never be answered.
func TestUnitOfADiagnosisFileIsNotTheBench(t *testing.T) {
	text, err := plants.Read("truck-bench")
	dir := t.TempDir()
	for address, want := range map[string]string{"0x03": "", "0x0B": "unit.yaml has the unit at address 0x0B, from which the bench itself sends HRW"} {
		err2 := os.WriteFile(filepath.Join(dir, "unit.yaml"), []byte("j1939: {address: "+address+"}"), 0o600)
		b, err3 := Parse("b.yaml", dir, []byte(strings.Replace(string(text), "truck-diagnosis.yaml", "unit.yaml", 1)))
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(b); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
