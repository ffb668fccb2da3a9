package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/deploy"
	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/deploy/load"
	"lockstep/rt/guide"
	"lockstep/sched"
)

// rows returns the rows of table n, from 0, of a section of a guide, without the header.
func rows(t *testing.T, source []byte, topic string, n int) (list [][]string) {
	t.Helper()
	s, ok := guide.Guide{Name: "guide", Source: source}.Section(topic)
	if !ok {
		t.Fatalf("no section %s", topic)
	}
	before := ""
	for line := range strings.Lines(string(s.Source)) {
		if !strings.HasPrefix(line, "|") {
			before = ""
			continue
		}
		if strings.HasPrefix(line, "|---") {
			n--
		} else if before != "" && n == -1 {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			list = append(list, cells)
		}
		before = line
	}
	if len(list) == 0 {
		t.Fatalf("no such table in section %s", topic)
	}
	return list
}

var quoted = regexp.MustCompile("`([^`]+)`")

// names returns the texts in backquotes in the first column of a table.
func names(list [][]string) (all []string) {
	for _, row := range list {
		for _, m := range quoted.FindAllStringSubmatch(row[0], -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var hosts = []string{"tuned", "desktop", "container", "vm", "throttled", "mainline", "pi"}

// examine judges a host of the tests for a loop with a CAN bus.
func examine(t *testing.T, host string, buses ...string) doctor.Diagnosis {
	t.Helper()
	root := filepath.Join("..", "sched", "hostinfo", "testdata", "hosts", host)
	d, err := doctor.Examine(root, doctor.Requirements{CPU: -1, Priority: 80, Timer: sched.Timerfd, Buses: buses, Timers: &latency.TimerComparison{}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var interfaceName = regexp.MustCompile(`^(can|queue|restart) v?can\d+$`)

// general replaces the interface in the name of a check by NAME.
func general(name string) string { return interfaceName.ReplaceAllString(name, "$1 NAME") }

func TestHostGuideListsTheChecks(t *testing.T) {
	levels, changed := map[string][]doctor.Level{}, map[string]bool{}
	var have []string
	for _, host := range hosts {
		for _, c := range examine(t, host, "can0").Checks {
			name := general(c.Name)
			if !slices.Contains(have, name) {
				have = append(have, name)
			}
			levels[name] = append(levels[name], c.Level)
			changed[name] = changed[name] || len(c.Changes) > 0
		}
	}
	const live = "restart NAME" // only the running kernel has this check
	have = append(have, live)

	table := rows(t, deploy.Host, "checks", 0)
	same(t, "checks", names(table), have)
	var order []string
	for _, c := range examine(t, "tuned", "can0").Checks {
		if name := general(c.Name); !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	if told := names(table); !slices.Equal(told[:len(order)], order) {
		t.Errorf("the guide has the checks in the order %q, the report %q", told, order)
	}
	for i, name := range names(table) {
		if level := doctor.Level(table[i][1]); name != live && !slices.Contains(levels[name], level) {
			t.Errorf("%s: the guide says %s, the doctor %v", name, level, levels[name])
		}
		if changed[name] && table[i][2] != "yes" {
			t.Errorf("%s: -fix changes it, the guide says %s", name, table[i][2])
		}
		topic := strings.ReplaceAll(strings.TrimSuffix(name, " NAME"), " ", "-")
		section, ok := guide.Guide{Source: deploy.Host}.Section(topic)
		if text := string(section.Source); !ok || !strings.Contains(text, "- Wanted: ") && !strings.Contains(text, "\n- Wanted") {
			t.Errorf("the guide has no section %s with a line \"Wanted\"", topic)
		}
	}
}

// The example of the guide has lines of the report of a test host, in the same order.
func TestHostGuideShowsAReport(t *testing.T) {
	var out bytes.Buffer
	if err := examine(t, "desktop").Text(&out); err != nil {
		t.Fatal(err)
	}
	section, _ := guide.Guide{Source: deploy.Host}.Section("doctor-example")
	blocks := section.Blocks()
	if len(blocks) != 1 {
		t.Fatalf("%d blocks in the example", len(blocks))
	}
	rest := out.String()
	for line := range strings.Lines(blocks[0].Text) {
		_, after, ok := strings.Cut(rest, line)
		if !ok {
			t.Fatalf("the report does not have, in this order: %s", line)
		}
		rest = after
	}
}

var flagName = regexp.MustCompile(`a\.\w+\([^"\n]*"([a-z]+)[^"\n]*",`)

// flagsOf returns the flags that a file of the command defines.
func flagsOf(t *testing.T, file string) (list []string) {
	t.Helper()
	for _, m := range flagName.FindAllStringSubmatch(read(t, "rt/cmd/lockstep/"+file), -1) {
		list = append(list, m[1])
	}
	return list
}

// documentedFlags returns the flags in the first column of a table.
func documentedFlags(list [][]string) (all []string) {
	for _, name := range names(list) {
		word, _, _ := strings.Cut(strings.TrimPrefix(name, "-"), " ")
		all = append(all, word)
	}
	return all
}

func TestHostGuideListsTheFlags(t *testing.T) {
	same(t, "doctor", documentedFlags(rows(t, deploy.Host, "doctor", 0)), flagsOf(t, "doctor.go"))
	same(t, "latency", documentedFlags(rows(t, deploy.Host, "latency", 0)), flagsOf(t, "latency.go"))
	if text := rows(t, deploy.Host, "doctor", 0); !strings.Contains(text[12][1], doctor.UndoFile) {
		t.Errorf("-state is %s, not %s", text[12][1], doctor.UndoFile)
	}
}

func TestHostGuideListsTheOptionsOfTheKernel(t *testing.T) {
	plan, err := doctor.NewPlan(filepath.Join("..", "sched", "hostinfo", "testdata", "hosts", "pi"),
		doctor.Requirements{CPU: 3, Priority: 80, Timer: sched.Timerfd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "options", names(rows(t, deploy.Host, "command-line-of-the-kernel", 0)), append(plan.Boot.Wanted, "nosmt"))
}

var methodName = regexp.MustCompile(`(?m)name: ([^,]+),`)

func TestHostGuideListsMethodsAndLoads(t *testing.T) {
	source := read(t, "deploy/latency/methods.go")
	value := map[string]string{"sched.Timerfd": sched.Timerfd, "sched.Nanosleep": sched.Nanosleep}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) += "(\w+)"$`).FindAllStringSubmatch(source, -1) {
		value[m[1]] = m[2]
	}
	var have []string
	for _, m := range methodName.FindAllStringSubmatch(source, -1) {
		name := ""
		for part := range strings.SplitSeq(m[1], " + ") {
			if text, ok := value[part]; ok {
				name += text
			} else {
				name += strings.Trim(part, `"`)
			}
		}
		have = append(have, name)
	}
	if len(have) < 5 {
		t.Fatalf("methods.go has the methods %q", have)
	}
	if told := names(rows(t, deploy.Host, "methods", 0)); !slices.Equal(told, have) {
		t.Errorf("the guide lists %q, the code has %q", told, have)
	}
	if told := names(rows(t, deploy.Host, "load", 0)); !slices.Equal(told, load.Kinds()) {
		t.Errorf("the guide lists %q, the code has %q", told, load.Kinds())
	}
}

func TestHostGuideListsTheKeysOfTheReport(t *testing.T) {
	text, err := json.Marshal(latency.Report{Idle: &latency.ByMethod{}})
	keys := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for key := range keys {
		have = append(have, key)
	}
	same(t, "keys of the report", names(rows(t, deploy.Host, "results", 1)), have)

	text, err = json.Marshal(latency.Figures{})
	figures := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &figures)
	}
	if err != nil {
		t.Fatal(err)
	}
	for key := range figures {
		if !strings.HasPrefix(key, "ratio") && key != "histogram_us" && !strings.Contains(string(deploy.Host), fmt.Sprintf("`%s`", key)) {
			t.Errorf("the guide does not name %s", key)
		}
	}
}

func TestHostGuideNamesTheFilesForOtherTools(t *testing.T) {
	folder := filepath.Join("root", "usr", "share", "lockstep", "host")
	var have []string
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			path, err = filepath.Rel(folder, path)
			have = append(have, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", names(rows(t, deploy.Host, "at-each-boot", 0)), have)
}
