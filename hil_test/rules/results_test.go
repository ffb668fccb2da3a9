package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// Two packages have a TestSame; that of p/b is skipped everywhere. TestOnBus is skipped outside
// of the lab and passes inside. TestTwice also runs with the race detector.
const (
	plainLog = `{"Action":"pass","Package":"p/a","Test":"TestSame"}
{"Action":"skip","Package":"p/b","Test":"TestSame"}
{"Action":"skip","Package":"p/c","Test":"TestOnBus"}
{"Action":"pass","Package":"p/a","Test":"TestTwice/part"}
{"Action":"pass","Package":"p/a","Test":"TestTwice"}
{"Action":"output","Package":"p/lab","Test":"TestLab","Output":"    x.go:1: in the lab run the tests of p/c\n"}
{"Action":"output","Package":"p/lab","Test":"TestLab","Output":"        --- PASS: TestOnBus (0.00s)\n"}
{"Action":"output","Package":"p/lab","Test":"TestLab","Output":"        --- PASS: TestSame (0.00s)\n"}
{"Action":"pass","Package":"p/lab","Test":"TestLab"}
{"Action":"pass","Package":"p/lab"}
`
	raceLog = `{"Action":"pass","Package":"p/a","Test":"TestTwice"}
{"Action":"output","Package":"p/a","Test":"TestGood","Output":"all is well\n"}
{"Action":"pass","Package":"p/a","Test":"TestGood"}
{"Action":"output","Package":"p/a","Test":"TestBad/part","Output":"      got 1, want 2\n"}
{"Action":"fail","Package":"p/a","Test":"TestBad/part"}
{"Action":"fail","Package":"p/a","Test":"TestBad"}
{"Action":"output","Package":"p/a","Test":"TestLab","Output":"=== RUN   TestLab/calm\n    x.go:1: long talk\n"}
{"Action":"output","Package":"p/a","Test":"TestLab","Output":"=== RUN   TestLab/bad\n    x.go:2: too slow\n2\n3\n4\n5\n6\n7\n8\n9\n10\nthe cause\n"}
{"Action":"output","Package":"p/a","Test":"TestLab","Output":"--- FAIL: TestLab (1.00s)\n    --- PASS: TestLab/calm (0.50s)\n    --- FAIL: TestLab/bad (0.50s)\n"}
{"Action":"fail","Package":"p/a","Test":"TestLab"}
{"Action":"output","Package":"p/a","Test":"TestDead","Output":"panic: no\n"}
message of a compiler
`
)

func TestResultsAreCountedByPackageAndTest(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		lab.Skip(t, "python3 is missing: apt-get install python3")
	}
	dir := t.TempDir()
	plain, race := filepath.Join(dir, "tests"), filepath.Join(dir, "tests-for-races")
	for file, text := range map[string]string{plain: plainLog, race: raceLog} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		out, err := exec.Command("/usr/bin/python3", append([]string{"../results.py"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	// Passed: TestSame of p/a and p/c, TestTwice, TestOnBus, TestLab and TestGood.
	if got, want := run("count", plain, race), "     p/b TestSame\n6 2 2 1\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	got := run("failures", race)
	for _, want := range []string{"got 1, want 2\n", "FAIL: TestLab/bad\n    x.go:2: too slow\n2\n3\n4\n    ...\n6\n", "10\nthe cause\n", "panic: no\n", "message of a compiler\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	for _, logged := range []string{"all is well", "long talk"} {
		if strings.Contains(got, logged) {
			t.Errorf("%q shows the output of a passed test", got)
		}
	}
}
