package fmu

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// slaveOptions are the compiler options of an FMU. Products and sums are not fused, so that the FMU
// gives the bits of the table kernel.
var slaveOptions = []string{"-std=c99", "-O2", "-ffp-contract=off"}

// Build compiles the sources of an FMU for this machine and adds the shared object to its files.
// gcc is the compiler, "" for "gcc"; more holds further options of the compiler. After an error the
// FMU has its sources only.
func Build(files map[string][]byte, gcc string, more ...string) error {
	if gcc == "" {
		gcc = "gcc"
	}
	version, folder := 3, map[string]string{"amd64": "x86_64-linux", "arm64": "aarch64-linux"}[runtime.GOARCH]
	if _, ok := files["sources/"+slaveFile(2)]; ok {
		version, folder = 2, map[string]string{"amd64": "linux64"}[runtime.GOARCH]
	}
	if folder == "" || runtime.GOOS != "linux" {
		return fmt.Errorf("codegen: FMI %d defines no folder for binaries of %s on %s: the FMU has its sources only",
			version, runtime.GOOS, runtime.GOARCH)
	}

	compiler, err := exec.LookPath(gcc)
	if err != nil {
		return fmt.Errorf("codegen: %s not found (Debian: apt install gcc libc6-dev): "+
			"the FMU has its sources only", gcc)
	}

	dir, err := os.MkdirTemp("", "fmu")
	if err != nil {
		return fmt.Errorf("codegen: %w", err)
	}
	defer os.RemoveAll(dir)
	for path, text := range files {
		if name, ok := strings.CutPrefix(path, "sources/"); ok {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				return fmt.Errorf("codegen: %w", err)
			}
		}
	}

	object, sources := "", sourcesOf(files)
	for _, s := range sources {
		if s != slaveFile(version) {
			object = strings.TrimSuffix(s, ".c") + ".so"
		}
	}

	shared := []string{
		"-fPIC", "-fvisibility=hidden", fmt.Sprintf("-DFMI%d_OVERRIDE_FUNCTION_PREFIX", version), "-shared", "-s",
	}
	args := slices.Concat(slaveOptions, shared, []string{"-o", object}, more, sources, []string{"-lm"})
	cmd := exec.Command(compiler, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		reason, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("codegen: %s: %w: %s: the FMU has its sources only", gcc, err, reason)
	}

	if files["binaries/"+folder+"/"+object], err = os.ReadFile(filepath.Join(dir, object)); err != nil {
		return fmt.Errorf("codegen: %w", err)
	}
	return nil
}

// Pack returns the file NAME.fmu, a zip. The same files give the same bytes.
func Pack(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var failed error
	for _, path := range slices.Sorted(maps.Keys(files)) {
		head := &zip.FileHeader{Name: path, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		head.SetMode(0o644)
		w, err := z.CreateHeader(head)
		if err == nil {
			_, err = w.Write(files[path])
		}
		failed = errors.Join(failed, err)
	}

	if err := errors.Join(failed, z.Close()); err != nil {
		return nil, fmt.Errorf("codegen: %w", err)
	}
	return b.Bytes(), nil
}
