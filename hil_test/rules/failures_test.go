package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	scenarioName = regexp.MustCompile(`^\d{3}-[a-z-]+$`)
	scenarioRow  = regexp.MustCompile(`(?m)^\t\{"([02-689]\d\d-[a-z-]+)", .*, \w+, ""\},$`)
	quotedTest   = regexp.MustCompile("`(Test\\w+(?:/\\w+)?|\\d{3}-[a-z-]+)`")
)

// testFiles returns the text of the files that hold each test of the repository, by its name.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, s.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			texts[m[1]] = string(text)
		}
	}
	return texts
}

// Every entry of the guide names tests that exist, or says that it is not tested. A part of a test,
// and a scenario of hil_test/faults, is a row of a table.
func TestPromisesUnderFailuresNameTheirTests(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join(top, "deploy/FAILURES.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, used := testFiles(t), []string{}
	exists := func(name string) bool {
		if scenarioName.MatchString(name) {
			used = append(used, name)
			return strings.Contains(files["TestScenariosAreNumberedInOrder"], "\n\t{\""+name+`", `)
		}
		test, part, parted := strings.Cut(name, "/")
		text, ok := files[test]
		return ok && (!parted || strings.Contains(text, "\n\t\t{\""+part+`", `))
	}
	entries := 0
	for _, section := range strings.Split(string(guide), "\n## ")[1:] {
		for _, text := range strings.Split(section, "\n- ")[1:] {
			entries++
			what, _, _ := strings.Cut(text, ":")
			_, held, ok := strings.Cut(text, "\n  Held by: ")
			names := quotedTest.FindAllStringSubmatch(text, -1)
			if ok && len(quotedTest.FindAllString(held, -1)) == 0 || ok == strings.Contains(text, "\n  Not tested") {
				t.Errorf("%q names no test, or does not say whether it is tested", what)
			}
			for _, m := range names {
				if !exists(m[1]) {
					t.Errorf("%q: there is no test %s", what, m[1])
				}
			}
		}
	}
	if entries < 40 {
		t.Errorf("found %d entries, want at least 40", entries)
	}
	// The ends of a run (1) and the service manager (7) are no failures.
	for _, m := range scenarioRow.FindAllStringSubmatch(files["TestScenariosAreNumberedInOrder"], -1) {
		if !slices.Contains(used, m[1]) {
			t.Errorf("the guide does not name the scenario %s", m[1])
		}
	}
}
