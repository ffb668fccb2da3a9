package deploy_test

import (
	"regexp"
	"strings"
	"testing"

	"lockstep/deploy"
)

// The guide lists the public members of Bench, and no others; so with the errors and the options of pytest.
func TestPythonGuideListsWhatTheClientHas(t *testing.T) {
	code := read(t, "deploy/python/lockstep/bench.py")
	_, class, _ := strings.Cut(code, "\nclass Bench:\n")
	class, _, _ = strings.Cut(class, "\n_Part = ")
	var have []string
	for _, m := range regexp.MustCompile(`(?m)^    def ([a-z]\w*)\(`).FindAllStringSubmatch(class, -1) {
		have = append(have, m[1])
	}
	doc, _, _ := strings.Cut(class[strings.Index(class, "    name  "):], `"""`)
	for _, m := range regexp.MustCompile(`(?m)^    (\w+)  +\S`).FindAllStringSubmatch(doc, -1) {
		have = append(have, m[1])
	}
	var told []string
	for _, name := range names(rows(t, deploy.Python, "bench", 1)) {
		name, _, _ = strings.Cut(name, "(")
		told = append(told, name)
	}
	same(t, "members", told, have)

	var errors []string
	for _, m := range regexp.MustCompile(`(?m)^class (\w+)\((?:Bench|Exception|BenchError).*\):`).FindAllStringSubmatch(code, -1) {
		errors = append(errors, m[1])
	}
	same(t, "errors", names(rows(t, deploy.Python, "bench", 2)), errors)
	var options []string
	for _, m := range regexp.MustCompile(`addoption\("(--[\w-]+)"`).FindAllStringSubmatch(read(t, "deploy/python/lockstep/pytest_plugin.py"), -1) {
		options = append(options, m[1])
	}
	same(t, "options", names(rows(t, deploy.Python, "pytest", 0)), options)
}
