package hiltest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	hiltest "lockstep/hil_test"
	"lockstep/hil_test/lab"
	"lockstep/rt/guide"
)

func TestMain(m *testing.M) { lab.Main(m) }

func section(t *testing.T, topic string) guide.Guide {
	t.Helper()
	s, ok := guide.Guide{Name: "labs", Source: hiltest.Labs}.Section(topic)
	if !ok {
		t.Fatalf("no section %s", topic)
	}
	return s
}

var (
	firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)`")
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// column returns the first column of table n, from 0, of a text.
func column(text string, n int) (list []string) {
	tables := strings.Split(text, "\n|---")
	if n+1 >= len(tables) {
		return nil
	}
	table, _, _ := strings.Cut(tables[n+1], "\n\n")
	for _, m := range firstCell.FindAllStringSubmatch(table, -1) {
		list = append(list, m[1])
	}
	return list
}

// same compares the list of the guide with the list of the files, in any order.
func same(t *testing.T, what string, listed, have []string) {
	t.Helper()
	listed, have = slices.Compact(slices.Sorted(slices.Values(listed))), slices.Compact(slices.Sorted(slices.Values(have)))
	if !slices.Equal(listed, have) {
		t.Errorf("%s: the guide lists %q, the files have %q", what, listed, have)
	}
}

func script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// scripts returns the names of the bash scripts of this folder.
func scripts(t *testing.T) (list []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !f.IsDir() && strings.HasPrefix(script(t, f.Name()), "#!/bin/bash") {
			list = append(list, f.Name())
		}
	}
	return list
}

// topic returns the section about a script. The section about soak has another name, since soak
// is also a command of lockstep.
func topic(script string) string {
	if script == "soak" {
		return "soak-in-a-lab"
	}
	return script
}

func TestGuideListsTheScripts(t *testing.T) {
	whole, _, _ := strings.Cut(string(hiltest.Labs), "\n## ")
	same(t, "scripts", column(whole, 0), scripts(t))
	for _, name := range scripts(t) {
		section(t, topic(name))
	}
	var folders []string
	for _, m := range regexp.MustCompile(`(?m)^//	(\w+)  `).FindAllStringSubmatch(script(t, "doc.go"), -1) {
		if m[1] != "study" { // no tests of the product
			folders = append(folders, m[1])
		}
	}
	same(t, "folders", column(string(section(t, "lab-tests").Source), 1), folders)
}

func TestGuideListsTheVariables(t *testing.T) {
	all := ""
	for _, name := range scripts(t) {
		all += script(t, name)
	}
	lab := regexp.MustCompile(`\bLAB_[A-Z]+\b`)
	same(t, "variables of the labs", column(string(section(t, "lab-rules").Source), 1), lab.FindAllString(all, -1))

	var tests []string
	for _, pattern := range []string{"labs/*_test.go", "proof/*_test.go", "mutants/*_test.go", "lab/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || files == nil {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			for _, m := range regexp.MustCompile(`Var *= "(LOCKSTEP_[A-Z_]+)"`).FindAllStringSubmatch(script(t, file), -1) {
				if !strings.HasPrefix(m[1], "LOCKSTEP_LAB") { // the tests set these themselves
					tests = append(tests, m[1])
				}
			}
		}
	}
	same(t, "variables of the tests", column(string(section(t, "lab-tests").Source), 0), tests)
}

// Each case is a text of the guide and the line of a script that it describes.
func TestGuideDescribesTheScripts(t *testing.T) {
	for _, c := range []struct{ topic, text, file, line string }{
		{"lab-rules", "120 in `vcan`", "vcan", "limit=${LAB_TIMEOUT:-120}"},
		{"lab-rules", "300 in `preempt_rt`", "preempt_rt", "limit=${LAB_TIMEOUT:-300}"},
		{"vcan", "512 MB", "vcan", "mem=512M"},
		{"vcan", "mtu 72", "vcan", "mtu 72 up"},
		{"preempt_rt", "2 GB", "preempt_rt", "-smp 2 -m 2048"},
		{"preempt_rt", "`isolcpus=managed_irq,domain,1 rcu_nocbs=1 irqaffinity=0`", "preempt_rt", "isolcpus=managed_irq,domain,1 rcu_nocbs=1 irqaffinity=0"},
		{"preempt_rt", "500 kbit/s", "preempt_rt", "bitrate 500000"},
		{"preempt_rt", "`kvaser_pci`", "preempt_rt", "-device kvaser_pci,canbus=bus -device kvaser_pci,canbus=bus"},
		{"soak", "90m on `vcan`", "soak", "vcan) time=90m"},
		{"soak", "30m on `preempt_rt`", "soak", "preempt_rt) time=30m"},
		{"soak", "2 minutes", "soak", "-leg 2m -load=false"},
		{"soak", "`overrun: skip 900`", "soak", "overrun: skip 900"},
		{"soak", "`LOCKSTEP`", "soak", "lockstep=${LOCKSTEP:-"},
		{"long", "(default 1h)", "long", "time=${1:-1h}"},
		{"long", "`FUZZ` (default 10m)", "long", "${FUZZ:-10m}"},
		{"all", "`N passed, N failed, N skipped`", "all", "$passed passed, $failed failed, $skipped skipped"},
	} {
		text := strings.Join(strings.Fields(string(section(t, topic(c.topic)).Source)), " ")
		if !strings.Contains(text, c.text) {
			t.Errorf("section %s does not say %s", c.topic, c.text)
		}
		if !strings.Contains(script(t, c.file), c.line) {
			t.Errorf("%s has no %s", c.file, c.line)
		}
	}
	for _, file := range column(string(section(t, topic("soak")).Source), 0) {
		if !strings.Contains(script(t, "soak"), file) && !strings.HasPrefix(file, "report.json") {
			t.Errorf("soak does not write %s", file)
		}
	}
}

func TestGuideListsThePackages(t *testing.T) {
	body, _, _ := strings.Cut(script(t, "all"), "\ninstall() {")
	_, table, _ := strings.Cut(body, "<<-END\n")
	table, rest, ok := strings.Cut(table, "\n\tEND\n")
	if !ok {
		t.Fatal("all lists no packages")
	}
	var have []string
	for line := range strings.Lines(table) {
		have = append(have, strings.Fields(line)[1:]...)
	}
	for _, m := range regexp.MustCompile(`\|\| echo (\S+)`).FindAllStringSubmatch(rest, -1) {
		have = append(have, m[1])
	}
	_, list, _ := strings.Cut(string(section(t, "all").Source), "The packages that `all` installs:")
	var listed []string
	for _, m := range quoted.FindAllStringSubmatch(list, -1) {
		listed = append(listed, m[1])
	}
	same(t, "packages", listed, have)
}

// The test runs each command of the first section in its lab and checks the output.
func TestGuideFirstRunWorks(t *testing.T) {
	t.Parallel()
	machines := []lab.Machine{lab.VCAN, lab.PreemptRT}
	for _, m := range machines {
		m.Require(t)
	}
	blocks := section(t, "first-lab-run").Blocks()
	commands, wanted := []string{}, ""
	for _, b := range blocks {
		if b.Language == "text" {
			wanted = b.Text
		}
		for line := range strings.Lines(b.Text) {
			if b.Language == "sh" && strings.HasPrefix(line, "hil_test/") {
				commands = append(commands, strings.TrimSpace(line))
			}
		}
	}
	if len(commands) != 3 || wanted == "" {
		t.Fatalf("the section has the commands %q", commands)
	}
	for _, line := range commands {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "hil_test/"), " ")
		i := slices.IndexFunc(machines, func(m lab.Machine) bool { return m.Script == name })
		if i < 0 {
			t.Fatalf("no lab %s", name)
		}
		_, words, _ := strings.Cut(line, " ")
		words = strings.ReplaceAll(words, "./lockstep", lab.Command(t))
		var command []string
		if before, quotedPart, ok := strings.Cut(words, " '"); ok {
			command = append(strings.Fields(before), strings.TrimSuffix(quotedPart, "'"))
		} else {
			command = strings.Fields(words)
		}
		code, out, errors := machines[i].RunScript(t, []string{"LAB_TIMEOUT=280"}, command...)
		if code != 0 {
			t.Fatalf("%s: exit %d\n%s%s", line, code, out, errors)
		}
		var lines []string
		switch {
		case strings.Contains(line, "-br link"):
			lines = strings.Split(strings.TrimSpace(wanted), "\n")
		case strings.Contains(line, "realtime"):
			lines = []string{"1\n1\n"}
		default:
			lines = []string{"best effort", "frames in ", "frames out ", "ticks            600"}
		}
		for _, want := range lines {
			if !strings.Contains(out+errors, want) {
				t.Errorf("%s does not print %q:\n%s%s", line, want, out, errors)
			}
		}
	}
}
