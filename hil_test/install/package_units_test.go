package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

func TestServiceManagerAcceptsTheUnits(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "systemd-analyze", "systemd")
	buildPackage(t)
	units, err := filepath.Glob(filepath.Join(installation.root, "usr/lib/systemd/system/*"))
	if err != nil || len(units) < 2 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	for _, file := range units {
		unit := strings.Replace(filepath.Base(file), "@.", "@demo.", 1)
		cmd := exec.Command("systemd-analyze", "verify", "--recursive-errors=no", "--man=no", "--root="+installation.root, unit)
		if out, err := cmd.CombinedOutput(); err != nil || len(strings.TrimSpace(string(out))) != 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// systemd rates the exposure of the service from 0 to 10, which is root without limits. The service
// may have only the rights of the list, which a run needs.
func TestServiceHasOnlyTheRightsOfARun(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "systemd-analyze", "systemd")
	buildPackage(t)
	out := lab.MustOutput(t, "systemd-analyze", "security", "--no-pager", "--offline=yes", "--root="+installation.root, "lockstep@demo.service")
	found := regexp.MustCompile(`exposure level for lockstep@demo.service: ([0-9.]+)`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no verdict:\n%s", out)
	}
	if level, err := strconv.ParseFloat(found[1], 64); err != nil || !(level <= 2.5) {
		t.Errorf("exposure %s, want at most 2.5:\n%s", found[1], out)
	}
	for line := range strings.Lines(out) {
		needs := regexp.MustCompile(`AmbientCapabilities|CAP_IPC_LOCK|CAP_SYS_\(NICE|CAP_NET_ADMIN|AF_NETLINK|AF_UNIX|~…|RestrictRealtime|@resources|@privileged|PrivateDevices|PrivateMounts|DeviceAllow|ProtectProc|ProcSubset|PrivateNetwork|PrivateUsers|RootDirectory|UMask`)
		if strings.HasPrefix(line, "✗") && !needs.MatchString(line) {
			t.Errorf("right that a run does not need: %s", line)
		}
	}
}

// The unit allows the system calls of all processes of a run.
func TestServiceAllowsTheSystemCallsOfARun(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "systemd-analyze", "systemd")
	lab.RequireProgram(t, "strace", "strace")
	buildPackage(t)
	unit, err := os.ReadFile(filepath.Join(installation.root, "usr/lib/systemd/system/lockstep@.service"))
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	groups := systemCalls(t)
	groups.set(allowed, "@default", true) // systemd.exec(5): always allowed
	for _, m := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`).FindAllStringSubmatch(string(unit), -1) {
		for _, name := range strings.Fields(m[2]) {
			groups.set(allowed, name, m[1] == "")
		}
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	cmd := exec.Command("strace", "-f", "-o", log, filepath.Join(installation.root, "usr/bin/lockstep"),
		"run", "-for", "1s", "-report", filepath.Join(dir, "report.json"), "-record", filepath.Join(dir, "drive.rec"))
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	out, _ := cmd.CombinedOutput() // under strace a run may miss too many ticks
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\d+ +(?:<\.\.\. )?(\w+)[( ]`).FindAllStringSubmatch(string(text), -1) {
		if made[m[1]] = true; !allowed[m[1]] {
			t.Errorf("the unit does not allow %s", m[1])
		}
	}
	for _, name := range []string{"sched_setattr", "mlock", "timerfd_settime", "memfd_create", "pidfd_send_signal", "bind"} {
		if !made[name] && name != "pidfd_send_signal" {
			t.Errorf("no %s in %d system calls of the run\n%s", name, len(made), out)
		}
	}
	if allowed["ptrace"] || allowed["mount"] || allowed["bpf"] || allowed["init_module"] || allowed["setuid"] {
		t.Error("the filter allows ptrace, mount, bpf, init_module or setuid, which no run needs")
	}
}

// callGroups are systemd's groups of system calls with their members.
type callGroups map[string][]string

func systemCalls(t *testing.T) callGroups {
	t.Helper()
	groups, name := callGroups{}, ""
	for line := range strings.Lines(lab.MustOutput(t, "systemd-analyze", "--no-pager", "syscall-filter")) {
		switch word := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "@"):
			name = word
		case word != "" && !strings.HasPrefix(word, "#"):
			groups[name] = append(groups[name], word)
		}
	}
	if !slices.Contains(groups["@system-service"], "@network-io") {
		t.Fatalf("systemd-analyze syscall-filter: %d groups, @system-service without @network-io", len(groups))
	}
	return groups
}

// set sets a system call, or all calls of a group, to allowed or not.
func (g callGroups) set(calls map[string]bool, name string, allowed bool) {
	if !strings.HasPrefix(name, "@") {
		calls[name] = allowed
		return
	}
	for _, member := range g[name] {
		g.set(calls, member, allowed)
	}
}

// readManual returns a manual page as man shows it in 80 columns. man and mandoc must report no
// warning.
func readManual(t *testing.T, page string) string {
	t.Helper()
	cmd := exec.Command("man", "--warnings", "-l", page)
	cmd.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "warning:") {
		t.Errorf("man: %v\n%s", err, out)
	}
	plain := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(page), ".gz"))
	if err := os.WriteFile(plain, []byte(lab.MustOutput(t, "zcat", page)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := exec.Command("mandoc", "-Tlint", "-W", "warning", plain).CombinedOutput(); len(out) != 0 {
		t.Errorf("mandoc: %s", out)
	}
	return string(out)
}

func TestEveryGuideIsInstalledAsManualPageAndHTML(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "man", "man-db")
	lab.RequireProgram(t, "mandoc", "mandoc")
	buildPackage(t)
	program := filepath.Join(installation.root, "usr/bin/lockstep")
	var names []string
	for line := range strings.Lines(lab.MustOutput(t, program, "complete", "man", "")) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		names = append(names, name)
	}
	if !slices.Contains(names, "plant") {
		t.Fatalf("guides %q", names)
	}
	for _, name := range names {
		page := filepath.Join(installation.root, "usr/share/man/man7/lockstep-"+name+".7.gz")
		html := filepath.Join(installation.root, "usr/share/doc/lockstep", name+".html")
		if _, err := os.Stat(page); err != nil {
			t.Error(err)
			continue
		}
		readManual(t, page)
		if text, err := os.ReadFile(html); err != nil || !strings.Contains(string(text), "<h2 id=") {
			t.Errorf("%s: %v, %.200s", html, err, text)
		}
	}
}

func TestManualNamesEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "man", "man-db")
	lab.RequireProgram(t, "mandoc", "mandoc")
	buildPackage(t)
	text := readManual(t, filepath.Join(installation.root, "usr/share/man/man1/lockstep.1.gz"))
	program := filepath.Join(installation.root, "usr/bin/lockstep")
	sections := map[string]string{} // by command
	heads := regexp.MustCompile(`(?m)^   (\w+)$`).FindAllStringSubmatchIndex(text, -1)
	for i, at := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		sections[text[at[2]:at[3]]] = text[at[1]:end]
	}
	names := regexp.MustCompile(`(?m)^  lockstep (\w+) `).FindAllStringSubmatch(lab.MustOutput(t, program, "help"), -1)
	if len(names) < 10 {
		t.Errorf("%d commands, want at least 10", len(names))
	}
	for _, name := range names {
		section, there := sections[name[1]]
		if !there {
			t.Errorf("the manual has no %s", name[1])
		}
		for _, flag := range regexp.MustCompile(`(?m)^  (-\w+)`).FindAllStringSubmatch(lab.MustOutput(t, program, "help", name[1]), -1) {
			if !regexp.MustCompile(`(?m)^ +` + flag[1] + `( |$)`).MatchString(section) {
				t.Errorf("the manual has no %s of %s", flag[1], name[1])
			}
		}
	}
}

// The completion of each shell works with the files of the package.
func TestShellsCompleteCommandsFlagsAndNames(t *testing.T) {
	t.Parallel()
	lab.RequireProgram(t, "bash", "bash")
	lab.RequireProgram(t, "zsh", "zsh")
	lab.RequireProgram(t, "fish", "fish")
	buildPackage(t)
	root := installation.root
	share := filepath.Join(root, "usr/share")
	environment := append(os.Environ(), "PATH="+filepath.Join(root, "usr/bin")+":"+os.Getenv("PATH"), "HOME="+t.TempDir())
	shells := map[string]func(words []string) string{
		"bash": func(words []string) string {
			return fmt.Sprintf(`source %s/bash-completion/completions/lockstep; COMP_WORDS=(%s); COMP_CWORD=%d; $(complete -p lockstep | sed -E 's/.*-F (\S+).*/\1/'); printf '%%s\n' "${COMPREPLY[@]}"`,
				share, quoted(words), len(words)-1)
		},
		// _describe and _files belong to the line editor of zsh, which shows their arguments.
		"zsh": func(words []string) string {
			return fmt.Sprintf(`compdef() { :; }; _describe() { print -l -- ${(P)2%%%%:*}; }; _files() { print -l -- ${words[CURRENT]}*(N); }; source %s/zsh/vendor-completions/_lockstep; words=(%s); CURRENT=%d; _lockstep`,
				share, quoted(words), len(words))
		},
		"fish": func(words []string) string {
			return fmt.Sprintf(`source %s/fish/vendor_completions.d/lockstep.fish; complete -C %s | string replace -r '\t.*' ''`,
				share, quoted([]string{strings.Join(words, " ")}))
		},
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for shell, script := range shells {
		for line, want := range map[string]string{
			"lockstep ch":                        "check",
			"lockstep run -bes":                  "-besteffort",
			"lockstep run -kernel ta":            "table",
			"lockstep run -for 2s powershift-b":  "powershift-bench",
			"lockstep run -scenario abs-sp":      "abs-split",
			"lockstep sim coup":                  "coupled-clutches",
			"lockstep sim automatic4 -in automa": "",
			"lockstep sim -scheme pa":            "papers",
			"lockstep sweep automatic4-r":        "automatic4-ramps",
			"lockstep ecu trac":                  "",
			"lockstep ecu pow":                   "powershift",
			"lockstep plants powershift.d":       "powershift.dbc",
			"lockstep ctl mine rel":              "release",
			"lockstep help sim":                  "sim",
			"lockstep check mi":                  "mine.yaml",
			"lockstep nosuch -":                  "",
		} {
			cmd := exec.Command(shell, "-c", script(strings.Split(line, " ")))
			cmd.Dir, cmd.Env = dir, environment
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); got != want {
				t.Errorf("%s: %q<Tab> gives %q, want %q (%v)", shell, line, got, want, err)
			}
		}
	}
}

// quoted returns words in single quotes for a shell.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = "'" + w + "'"
	}
	return strings.Join(list, " ")
}
