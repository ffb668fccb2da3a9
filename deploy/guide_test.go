package deploy_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/deploy"
	"lockstep/deploy/certify"
	"lockstep/rt/guide"
	"lockstep/rt/guide/guidetest"
)

var certificateGuide = guide.Guide{Name: "certificate", Source: deploy.Certificate}

// same compares two lists in any order: documented is from the guide, actual from the code.
func same(t *testing.T, what string, documented, actual []string) {
	t.Helper()
	documented, actual = slices.Sorted(slices.Values(documented)), slices.Sorted(slices.Values(actual))
	if !slices.Equal(documented, actual) {
		t.Errorf("%s: the guide has %q, want %q", what, documented, actual)
	}
}

// command returns the arguments of lockstep in the n-th shell block of the guide, from 0.
func command(t *testing.T, n int) []string {
	t.Helper()
	for _, b := range certificateGuide.Blocks() {
		if b.Language == "sh" {
			if n--; n < 0 {
				return strings.Fields(b.Text)[1:]
			}
		}
	}
	t.Fatal("the guide has too few blocks for a shell")
	return nil
}

// The test makes the first certificate of the guide, without the load, and compares it with itself.
// Missed ticks on a shared machine may fail the run; the certificate is still written.
func TestTheCertificateOfTheGuideIsMadeAndCompared(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "lockstep")
	run := func(mayFail bool, name string, words ...string) string {
		t.Helper()
		out, err := exec.Command(name, words...).CombinedOutput()
		if exit := (&exec.ExitError{}); err != nil && !(mayFail && errors.As(err, &exit) && exit.ExitCode() == 1) {
			t.Fatalf("%s %q: %v\n%s", name, words, err, out)
		}
		return string(out)
	}
	run(false, "go", "build", "-o", program, "lockstep/rt/cmd/lockstep")
	var is, told []string
	for _, m := range regexp.MustCompile(`(?m)^  (-\w+)`).FindAllStringSubmatch(run(false, program, "certify", "-h"), -1) {
		is = append(is, m[1])
	}
	for _, name := range guidetest.FirstColumn(t, certificateGuide, "flags-of-certify", 0) {
		name, _, _ = strings.Cut(name, " ")
		told = append(told, name)
	}
	same(t, "flags", told, is)

	var source string // text of the files with the reasons
	for _, name := range []string{"certify/certificate.go", "certify/measure.go", "latency/host.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source += string(text)
	}

	t.Chdir(dir)
	run(true, program, append(command(t, 0), "-load=false")...)
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	is = nil
	for _, m := range regexp.MustCompile(`</div>|<h2>([^<]*)</h2>`).FindAllSubmatch(read("first.html"), -1) {
		if is = append(is, string(m[1])); m[1] == nil {
			is = nil // ignore the titles of the boxes before the sections
		}
	}
	same(t, "sections", guidetest.FirstColumn(t, certificateGuide, "sections-of-the-page", 0), is)
	c, err := certify.Read("first.json", read("first.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkReasons(t, c, source)
	checkKeys(t, read("first.json"))

	out := run(false, program, command(t, 2)...)
	for _, name := range guidetest.FirstColumn(t, certificateGuide, "compared-figures", 0) {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("the comparison has no %q\n%s", name, out)
		}
	}
	both, err := certify.Compare(c, c)
	if err != nil {
		t.Fatal(err)
	}
	is = nil
	for _, f := range both.Figures {
		is = append(is, f.Name)
	}
	same(t, "figures", guidetest.FirstColumn(t, certificateGuide, "compared-figures", 0), is)
	same(t, "verdicts", guidetest.FirstColumn(t, certificateGuide, "verdicts-of-a-comparison", 0), []string{
		string(certify.Same), string(certify.Noise), string(certify.Small), string(certify.Better), string(certify.Worse), string(certify.Open), string(certify.Unknown),
	})
}

// checkReasons checks that the source has the reasons of the guide, and that the guide has the
// reasons of a certificate.
func checkReasons(t *testing.T, c *certify.Certificate, source string) {
	t.Helper()
	told := guidetest.FirstColumn(t, certificateGuide, "representative", 0)
	for _, text := range told {
		if !strings.Contains(source, text) {
			t.Errorf("no reason is %q", text)
		}
	}
	var must []string
	for _, check := range c.Doctor.Checks {
		must = append(must, check.Name+": ")
	}
	for _, why := range c.Reasons {
		known := func(text string) bool { return strings.Contains(why, text) }
		of := func(check string) bool { return strings.HasPrefix(why, check) }
		if !slices.ContainsFunc(told, known) && !slices.ContainsFunc(must, of) {
			t.Errorf("the guide has no reason %q", why)
		}
	}
}

// checkKeys compares the keys of a certificate with those of the guide.
func checkKeys(t *testing.T, text []byte) {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	same(t, "keys", guidetest.FirstColumn(t, certificateGuide, "certificate-in-json", 0), slices.Collect(maps.Keys(tree)))
	s, _ := certificateGuide.Section("certificate-in-json")
	for _, of := range []any{certify.Distribution{}, certify.Beyond{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); !strings.Contains(string(s.Source), "`"+key+"`") {
				t.Errorf("the guide has no key %s", key)
			}
		}
	}
}
