//go:build long

package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quick is the longest duration of a test that runs before the others: most mutants end there.
const quick = 0.3 // s

// Variables of the sample.
const (
	mutantsVar  = "LOCKSTEP_MUTANTS"
	seedVar     = "LOCKSTEP_SEED"
	packagesVar = "LOCKSTEP_PACKAGES"
)

// TestTestsNoticeMutants draws LOCKSTEP_MUTANTS mutants (default 60) of each package with the seed
// LOCKSTEP_SEED (default 1). LOCKSTEP_PACKAGES limits it to some packages, "sched rt".
func TestTestsNoticeMutants(t *testing.T) {
	n, seed := number(t, mutantsVar, 60), number(t, seedVar, 1)
	only := strings.Fields(os.Getenv(packagesVar))
	same := equivalents(t)
	for _, p := range measured {
		if len(only) > 0 && !slices.Contains(only, p.folder) {
			continue
		}
		t.Run(p.folder, func(t *testing.T) {
			list, sources := mutantsOf(t, p.folder)
			rand.New(rand.NewPCG(uint64(seed), 0)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			r := runner{tests: p.tests}
			r.measure(t)
			killed, survived, alike, begin := 0, 0, 0, time.Now()
			for i := range list {
				if killed+survived+alike == n {
					break
				}
				m := &list[i]
				if same[m.String()] != "" {
					alike++
					continue
				}
				switch r.outcome(t, m, sources[m.File]) {
				case noticed:
					killed++
				case unnoticed:
					survived++
					line := 1 + bytes.Count(sources[m.File][:m.From], []byte("\n"))
					t.Logf("after %d noticed, not noticed: line %d of %v", killed, line, m)
				}
			}
			score := 100 * float64(killed) / float64(max(1, killed+survived))
			t.Logf("%s: %d of %d mutants noticed, %.0f %%; %d more are equivalent; %d possible, %.0f s for each",
				p.folder, killed, killed+survived, score, alike, len(list), time.Since(begin).Seconds()/float64(max(1, killed+survived)))
			if !(score >= p.want) {
				t.Errorf("%s: %.0f %% of the mutants are noticed, want %.0f %%", p.folder, score, p.want)
			}
		})
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// What the tests say of a mutant.
const (
	unnoticed = iota
	noticed
	invalid // it does not compile
)

// runner runs the tests of a package.
type runner struct {
	tests []string
	quick string        // expression of the quick tests
	limit time.Duration // of all tests
}

// measure runs the tests on the source as it is, and times them.
func (r *runner) measure(t *testing.T) {
	t.Helper()
	begin := time.Now()
	out, err := r.run(time.Hour, "-json")
	if err != nil {
		t.Fatalf("the tests fail without a mutant: %v\n%s", err, out)
	}
	r.limit = 2*time.Minute + 4*time.Since(begin)
	var names []string
	for line := range bytes.Lines(out) {
		var e struct {
			Action, Test string
			Elapsed      float64
		}
		if json.Unmarshal(line, &e) == nil && e.Action == "pass" && e.Test != "" && !strings.Contains(e.Test, "/") && e.Elapsed <= quick {
			names = append(names, e.Test)
		}
	}
	r.quick = "^(" + strings.Join(names, "|") + ")$"
}

// outcome runs the tests on a mutant.
func (r *runner) outcome(t *testing.T, m *Mutant, source []byte) int {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(filepath.Join(root, m.File))
	if err != nil {
		t.Fatal(err)
	}
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	text, _ := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err := os.WriteFile(changed, m.Apply(source), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tests := range [][]string{{"-run", r.quick}, nil} {
		limit := r.limit
		if len(tests) > 0 {
			limit = time.Minute
		}
		out, err := r.run(limit, append(tests, "-failfast", "-overlay", overlay)...)
		switch {
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			return invalid
		case err != nil && r.failsAgain(limit, out, overlay):
			return noticed
		}
	}

	return unnoticed
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// failsAgain reports whether the tests that failed on a mutant fail once more. A busy machine may have
// failed a test of time; then the mutant counts as unnoticed, as the tests after that one did not run.
func (r *runner) failsAgain(limit time.Duration, out []byte, overlay string) bool {
	var names []string
	for _, m := range failedTest.FindAllSubmatch(out, -1) {
		names = append(names, string(m[1]))
	}
	if names == nil {
		return true // a crash, or a test that does not end
	}
	_, err := r.run(limit, "-run", "^("+strings.Join(names, "|")+")$", "-overlay", overlay)
	return err != nil
}

// run runs the tests in a process group of their own, so that no process of theirs survives.
func (r *runner) run(limit time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	args = slices.Concat([]string{"test", "-count=1", "-vet=off", fmt.Sprintf("-timeout=%v", limit)}, args, r.tests)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.SysProcAttr = root, &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = kill()
	}
	return out, err
}
