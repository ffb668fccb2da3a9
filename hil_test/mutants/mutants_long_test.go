//go:build long

package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stages are the longest durations of the tests that run first, s: most mutants end there. The other tests
// run after them.
var stages = []float64{0.3, 3}

// Variables of the sample.
const (
	mutantsVar  = "LOCKSTEP_MUTANTS"
	seedVar     = "LOCKSTEP_SEED"
	packagesVar = "LOCKSTEP_PACKAGES"
	outcomesVar = "LOCKSTEP_OUTCOMES"
)

// TestTestsNoticeMutants draws LOCKSTEP_MUTANTS mutants (default 60) of each package with the seed
// LOCKSTEP_SEED (default 1). LOCKSTEP_PACKAGES limits it to some packages, "sched rt". It adds each outcome to
// the file LOCKSTEP_OUTCOMES, and does not judge again what stands there, so that a sample can be resumed.
func TestTestsNoticeMutants(t *testing.T) {
	n, seed := number(t, mutantsVar, 60), number(t, seedVar, 1)
	only := strings.Fields(os.Getenv(packagesVar))
	for _, p := range measured {
		if len(only) > 0 && !slices.Contains(only, p.folder) {
			continue
		}
		t.Run(p.folder, func(t *testing.T) {
			list, sources := mutantsOf(t, p.folder)
			rand.New(rand.NewPCG(uint64(seed), 0)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			s := sample{list: list, sources: sources, n: n, same: equivalents(t), known: readOutcomes(t)}
			for _, folder := range p.tests {
				r := &runner{folder: folder}
				r.measure(t)
				s.runners = append(s.runners, r)
			}
			begin := time.Now()
			var workers sync.WaitGroup
			for range p.workers {
				workers.Go(func() { s.judge(t) })
			}
			workers.Wait()
			killed, survived := s.count[noticed], s.count[unnoticed]
			score := 100 * float64(killed) / float64(max(1, killed+survived))
			t.Logf("%s: %d of %d mutants noticed, %.0f %%; %d more are equivalent; %d possible, %.0f s for each",
				p.folder, killed, killed+survived, score, s.count[equivalent], len(list),
				time.Since(begin).Seconds()/float64(max(1, killed+survived)))
			if !(score >= p.want) {
				t.Errorf("%s: %.0f %% of the mutants are noticed, want %.0f %%", p.folder, score, p.want)
			}
		})
	}
}

// sample is the mutants drawn of a package: the first n of list that compile.
type sample struct {
	list    []Mutant
	sources map[string][]byte
	n       int
	same    map[string]string // equivalent mutants
	known   map[string]string // outcomes of an earlier run
	runners []*runner

	mutex sync.Mutex
	next  int                // mutant of list that is judged next
	busy  int                // mutants that are being judged
	count [len(outcomes)]int // mutants by outcome
}

// judge judges mutants until n are drawn.
func (s *sample) judge(t *testing.T) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for s.next < len(s.list) {
		drawn := s.count[noticed] + s.count[unnoticed] + s.count[equivalent]
		switch {
		case drawn == s.n:
			return
		case drawn+s.busy == s.n: // a mutant under way may not compile
			s.mutex.Unlock()
			time.Sleep(time.Second)
			s.mutex.Lock()
			continue
		}
		m := &s.list[s.next]
		s.next++
		s.busy++
		s.mutex.Unlock()
		outcome := s.outcome(t, m)
		s.mutex.Lock()
		s.busy--
		s.count[outcome]++
		line := 1 + bytes.Count(s.sources[m.File][:m.From], []byte("\n"))
		if outcome == unnoticed {
			t.Logf("after %d noticed, not noticed: line %d of %v", s.count[noticed], line, m)
		}
		if outcome != equivalent && s.known[m.String()] == "" {
			addOutcome(t, fmt.Sprintf("%s\t%s\n", m, outcomes[outcome]))
		}
	}
}

// outcome returns what the tests say of a mutant.
func (s *sample) outcome(t *testing.T, m *Mutant) int {
	if s.same[m.String()] != "" {
		return equivalent
	}
	if known := slices.Index(outcomes[:], s.known[m.String()]); known >= 0 {
		return known
	}
	overlay := overlayOf(t, m, s.sources[m.File])
	for _, r := range s.runners {
		if outcome := r.outcome(t, overlay); outcome != unnoticed {
			return outcome
		}
	}
	return unnoticed
}

// readOutcomes reads the file LOCKSTEP_OUTCOMES: a mutant, a tab and its outcome on each line.
func readOutcomes(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv(outcomesVar))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, outcome, _ := strings.Cut(strings.TrimSpace(line), "\t")
		known[name] = outcome
	}
	return known
}

// addOutcome adds a line to the file LOCKSTEP_OUTCOMES.
func addOutcome(t *testing.T, line string) {
	path := os.Getenv(outcomesVar)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = f.WriteString(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Error(err)
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
	equivalent
)

var outcomes = [...]string{"not noticed", "noticed", "does not compile", "equivalent"}

// runner runs the tests of a folder.
type runner struct {
	folder string
	stages [][]string    // arguments that choose the tests of each stage
	limit  time.Duration // of all tests
}

var passedTest = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([0-9.]+)s\)`)

// measure runs the tests on the source as it is, times them, and divides them into stages.
func (r *runner) measure(t *testing.T) {
	t.Helper()
	binary, out, err := r.build(t, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	begin := time.Now()
	if out, err = r.run(binary, time.Hour, "-test.v"); err != nil {
		t.Fatalf("the tests fail without a mutant: %v\n%s", err, out)
	}
	r.limit = 2*time.Minute + 4*time.Since(begin)

	names, done := make([][]string, len(stages)), []string{}
	for _, m := range passedTest.FindAllStringSubmatch(string(out), -1) {
		elapsed, _ := strconv.ParseFloat(m[2], 64)
		for i, limit := range stages {
			if elapsed <= limit {
				names[i] = append(names[i], m[1])
				done = append(done, m[1])
				break
			}
		}
	}
	for _, list := range names {
		r.stages = append(r.stages, []string{"-test.run", anyOf(list)})
	}
	r.stages = append(r.stages, []string{"-test.skip", anyOf(done)})
}

// anyOf returns the expression of tests by their names.
func anyOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// overlayOf writes a mutant and the overlay that puts it in place of its file.
func overlayOf(t *testing.T, m *Mutant, source []byte) string {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(filepath.Join(root, m.File))
	if err != nil {
		t.Error(err)
	}
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	text, _ := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err := errors.Join(os.WriteFile(changed, m.Apply(source), 0o666), os.WriteFile(overlay, text, 0o666)); err != nil {
		t.Error(err)
	}
	return overlay
}

// outcome runs the tests on the mutant of an overlay, the quickest first.
func (r *runner) outcome(t *testing.T, overlay string) int {
	t.Helper()
	binary, _, err := r.build(t, overlay)
	if err != nil {
		return invalid
	}
	defer os.Remove(binary)
	for i, tests := range r.stages {
		limit := r.limit
		if i == 0 {
			limit = time.Minute
		}
		if out, err := r.run(binary, limit, append(tests, "-test.failfast")...); err != nil && r.failsAgain(binary, limit, out) {
			return noticed
		}
	}

	return unnoticed
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// failsAgain reports whether the tests that failed on a mutant fail once more. A busy machine may have
// failed a test of time; then the mutant counts as unnoticed by that stage, as the tests after that one did not run.
func (r *runner) failsAgain(binary string, limit time.Duration, out []byte) bool {
	var names []string
	for _, m := range failedTest.FindAllSubmatch(out, -1) {
		names = append(names, string(m[1]))
	}
	if names == nil {
		return true // a crash, or a test that does not end
	}
	_, err := r.run(binary, limit, "-test.run", anyOf(names))
	return err != nil
}

// build compiles the tests with an overlay and returns the program; "": the source as it is.
func (r *runner) build(t *testing.T, overlay string) (binary string, out []byte, err error) {
	binary = filepath.Join(t.TempDir(), "tests")
	out, err = command(time.Hour, root, "go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, r.folder)
	return binary, out, err
}

// run runs the tests of a program.
func (r *runner) run(binary string, limit time.Duration, args ...string) ([]byte, error) {
	return command(limit+time.Minute, filepath.Join(root, r.folder), binary, append(args, fmt.Sprintf("-test.timeout=%v", limit))...)
}

// command runs a program in a process group of its own, so that no process of it survives.
func command(limit time.Duration, dir, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = kill()
	}
	return out, err
}
