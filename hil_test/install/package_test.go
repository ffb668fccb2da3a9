package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"lockstep/hil_test/lab"
)

// installation is the package of this tree, made by deploy/package.
var installation struct {
	once    sync.Once
	err     error
	deb     string
	tarball string
	client  string // Debian package of the client for Python
	version string
	root    string // folder of the unpacked tarball
}

// buildPackage builds the package and unpacks the tarball, once.
func buildPackage(t *testing.T) {
	t.Helper()
	lab.RequireLong(t, "builds the package")
	p := &installation
	p.once.Do(func() {
		var files []string
		if files, p.err = pack("../..", filepath.Join(lab.Scratch, "package"), "amd64"); p.err != nil {
			return
		}
		p.deb, p.tarball, p.client = files[0], files[1], files[2]
		p.version = strings.Split(filepath.Base(p.deb), "_")[1]
		p.root = filepath.Join(lab.Scratch, strings.TrimSuffix(filepath.Base(p.tarball), ".tar.gz"))
		p.err = exec.Command("tar", "-C", lab.Scratch, "-xzf", p.tarball).Run()
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
}

// pack runs deploy/package of a source tree and returns the paths of its files: Debian package, tarball,
// and Debian package of the client for Python.
func pack(source, dir, arch string, env ...string) ([]string, error) {
	cmd := exec.Command(filepath.Join(source, "deploy/package"), "-o", dir, "-arch", arch)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		err = fmt.Errorf("deploy/package: %w\n%s", err, e.Stderr)
	}
	files := strings.Fields(string(out))
	if err == nil && len(files) != 3 {
		err = fmt.Errorf("deploy/package printed %q, want three files", out)
	}
	return files, err
}

// unpack returns the headers and data of a tar archive by installed path.
func unpack(t *testing.T, r io.Reader, prefix string) (entries map[string]*tar.Header, data map[string][]byte) {
	t.Helper()
	entries, data = map[string]*tar.Header{}, map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return entries, data
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(h.Name, prefix)
		if data[name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
		entries[name] = h
	}
}

func TestPackageBuiltInAnotherFolderIsIdentical(t *testing.T) {
	t.Parallel()
	buildPackage(t)
	other := filepath.Join(t.TempDir(), "source")
	lab.MustOutput(t, "cp", "-r", "../..", other)
	files, err := pack(other, t.TempDir(), "amd64", "TZ=Asia/Kolkata", "LC_ALL=en_US.UTF-8", "GOFLAGS=-buildvcs=true", "GOAMD64=v3", "TMPDIR="+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, own := range []string{installation.deb, installation.tarball, installation.client} {
		a, err1 := os.ReadFile(own)
		b, err2 := os.ReadFile(files[i])
		if err1 != nil || err2 != nil || filepath.Base(own) != filepath.Base(files[i]) || !bytes.Equal(a, b) {
			t.Errorf("%s and %s differ: %v, %v", own, files[i], err1, err2)
		}
	}
}

func TestPackageHoldsTheFilesOfTheTarball(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "dpkg-deb", "dpkg")
	buildPackage(t)
	out, err := exec.Command("dpkg-deb", "--fsys-tarfile", installation.deb).Output()
	if err != nil {
		t.Fatal(err)
	}
	entries, data := unpack(t, bytes.NewReader(out), "./")
	f, err := os.Open(installation.tarball)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rest, content := unpack(t, z, filepath.Base(installation.root)+"/")
	for name, h := range rest {
		if h.Typeflag != tar.TypeDir {
			continue
		}
		if delete(rest, name); h.Mode&0o7777 != 0o755 || !strings.Contains(name, "/lockstep") {
			t.Errorf("the tarball changes the folder %s", name)
		}
	}
	for name, h := range entries {
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" && h.Uname != "" {
			t.Errorf("%s belongs to %d:%d (%s), want root", name, h.Uid, h.Gid, h.Uname)
		}
		if h.Typeflag == tar.TypeDir || strings.HasPrefix(name, "etc/") {
			continue
		}
		want := int64(0o644)
		if name == "usr/bin/lockstep" {
			want = 0o755
		}
		if h.Mode&0o7777 != want || !bytes.Equal(data[name], content[name]) || rest[name] == nil || !rest[name].ModTime.Equal(h.ModTime) {
			t.Errorf("%s: mode %o, want %o and the file of the tarball", name, h.Mode, want)
		}
		delete(rest, name)
	}
	if len(rest) != 0 || len(data) < 40 {
		t.Errorf("%d entries, want at least 40; only in the tarball: %v", len(data), slices.Sorted(maps.Keys(rest)))
	}
	if got := lab.MustOutput(t, "dpkg-deb", "--field", installation.deb, "Package", "Architecture", "Version"); got != "Package: lockstep\nArchitecture: amd64\nVersion: "+installation.version+"\n" {
		t.Errorf("fields: %q", got)
	}
}

// The client of the unpacked package operates the installed command; pytest and python-can find its entry points.
func TestPackageOfThePythonClient(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "dpkg-deb", "dpkg")
	lab.RequireProgram(t, "/usr/bin/python3", "python3")
	buildPackage(t)
	fields := lab.MustOutput(t, "dpkg-deb", "--field", installation.client, "Package", "Architecture", "Version", "Depends")
	if fields != "Package: python3-lockstep\nArchitecture: all\nVersion: "+installation.version+"\nDepends: python3 (>= 3.11)\n" {
		t.Errorf("fields: %q", fields)
	}
	root := t.TempDir()
	lab.MustOutput(t, "dpkg-deb", "--extract", installation.client, root)
	cmd := exec.Command("/usr/bin/python3", "-c", `
import importlib.metadata, lockstep
for p in importlib.metadata.entry_points(name="lockstep"):
    print(p.group, p.value)
with lockstep.Bench.virtual("powershift-bench") as bench:
    bench.wait_until("w1 > 1000 rpm", "2 s")
print(bench.stop().clean, lockstep.__file__)
`)
	packages := filepath.Join(root, "usr/lib/python3/dist-packages")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "LOCKSTEP="+filepath.Join(installation.root, "usr/bin/lockstep"))
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"can.interface lockstep.python_can:LockstepBus\n", "pytest11 lockstep.pytest_plugin\n",
		"True " + packages + "/lockstep/__init__.py\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v, want %s\n%s", err, want, out)
		}
	}
}

// The test runs the command of the README twice, on a root with other modes.
func TestTarballUnpackedAgainLeavesOptionsAndFolders(t *testing.T) {
	t.Parallel()
	buildPackage(t)
	root := t.TempDir()
	options := filepath.Join(root, "etc/lockstep/options")
	unpack := func() {
		lab.MustOutput(t, "tar", "-C", root, "--no-overwrite-dir", "--strip-components=1", "-xzf", installation.tarball)
	}
	unpack()
	if err := errors.Join(os.WriteFile(options, []byte("OPTIONS=-bus can0\n"), 0o600), os.Chmod(filepath.Join(root, "etc/lockstep"), 0o750)); err != nil {
		t.Fatal(err)
	}
	unpack()
	text, err := os.ReadFile(options)
	if err != nil || string(text) != "OPTIONS=-bus can0\n" {
		t.Errorf("the options are %q, %v", text, err)
	}
	for name, want := range map[string]os.FileMode{"etc/lockstep/options": 0o600, "etc/lockstep": 0o750, "usr/bin/lockstep": 0o755} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %o", name, info, err, want)
		}
	}
}

func TestTarballRunsWhereItIsUnpacked(t *testing.T) {
	t.Parallel()
	buildPackage(t)
	program := filepath.Join(installation.root, "usr/bin/lockstep")
	binary, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) != 0 {
		t.Errorf("the binary needs %v, %v; want a static one", libraries, err)
	}
	if got := lab.MustOutput(t, program, "version"); !strings.HasPrefix(got, "lockstep "+installation.version+" ") {
		t.Errorf("version: %q, want that of the package, %s", got, installation.version)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command(program, "run", "-for", "2s", "-report", report)
	cmd.Dir, cmd.Env = t.TempDir(), []string{} // the command needs no file of this folder and no environment
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	var r struct{ Ticks int }
	if text, err := os.ReadFile(report); err != nil || json.Unmarshal(text, &r) != nil || r.Ticks != 400 {
		t.Errorf("%d ticks, want 400: %v", r.Ticks, err)
	}
}

func TestExamplesRunWhenCopied(t *testing.T) {
	t.Parallel()
	buildPackage(t)
	program, examples := filepath.Join(installation.root, "usr/bin/lockstep"), filepath.Join(installation.root, "usr/share/lockstep/benches")
	for _, c := range []struct {
		bench, scenario string
		plant           string
		database        string
	}{
		{"powershift-bench", "powershift-clutch-sticks", "powershift", "powershift"},
		{"abs-bench", "abs-dry", "car-abs", "abs"},
		{"wsp-bench", "wsp-dry", "wsp-car", "wsp"},
		{"truck-bench", "truck-ice-and-broken-shaft", "truck", "j1939"},
	} {
		t.Run(c.bench, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{c.bench + ".yaml", c.scenario + ".yaml", c.plant + ".yaml", c.database + ".dbc"} {
				lab.MustOutput(t, "cp", filepath.Join(examples, name), dir)
			}
			scenario := filepath.Join(dir, c.scenario+".yaml")
			lab.MustOutput(t, program, "sim", filepath.Join(dir, c.bench+".yaml"), "-scenario", scenario)
			for _, file := range []string{c.plant + ".yaml", c.database + ".dbc"} { // the bench uses the copies
				name := filepath.Join(dir, file)
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte("no such thing"), 0o644); err != nil {
					t.Fatal(err)
				}
				out, err := exec.Command(program, "sim", filepath.Join(dir, c.bench+".yaml"), "-for", "1s").CombinedOutput()
				if err == nil || !strings.Contains(string(out), file) {
					t.Errorf("with a broken copy of %s: %v\n%s", file, err, out)
				}
				if err := os.WriteFile(name, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestPackageScriptRefusesWrongArguments(t *testing.T) {
	for line, want := range map[string]string{
		"-arch sparc":         "-arch sparc: use amd64 or arm64",
		"-version next":       "-version next: use a digit, then",
		"-version":            "-version: a value is missing",
		"-colour red":         "unknown flag -colour",
		"-version 1 -arch x,": "-arch x,: use amd64 or arm64",
	} {
		cmd := exec.Command("../../deploy/package", strings.Fields(line)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.HasPrefix(string(out), "package: "+want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("package %s: code %d, %q, want 2 and %q", line, cmd.ProcessState.ExitCode(), out, want)
		}
	}
}
