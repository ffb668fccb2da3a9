package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestProgramKnowsItsFileAndItsArchitecture(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got, err := Executable(); err != nil || got != hex.EncodeToString(sum[:]) {
		t.Errorf("the program is %s, %v; its file is %x", got, err, sum)
	}
	// Go notes the level of every build for these two.
	name, level, _ := strings.Cut(Arch(), " ")
	if name != runtime.GOARCH || (name == "amd64" || name == "arm64") && !strings.HasPrefix(level, "v") {
		t.Errorf("the architecture is %q on %s", Arch(), runtime.GOARCH)
	}
	if v := Version(); !strings.HasSuffix(v, runtime.Version()) {
		t.Errorf("version %q does not end with the compiler's, %s", v, runtime.Version())
	}
}
