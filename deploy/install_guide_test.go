package deploy_test

import (
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/deploy"
	"lockstep/model/plants"
	"lockstep/rt/guide"
)

// installed returns the installed paths of the files of deploy/root.
func installed(t *testing.T) (list []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("root"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, "/"+path)
		}
		return err
	})
	if err != nil || len(list) == 0 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	return list
}

func TestInstallGuideListsTheFiles(t *testing.T) {
	same(t, "files of deploy/root", names(rows(t, deploy.Install, "files", 0)), installed(t))

	script := read(t, "deploy/package")
	script = strings.NewReplacer("$share", "/usr/share", "$doc", "/usr/share/doc/lockstep", "$2/usr", "/usr", "$packages", "/usr/lib/python3/dist-packages").Replace(script)
	made := names(rows(t, deploy.Install, "files", 1))
	for _, file := range made {
		if !strings.Contains(script, file) {
			t.Errorf("deploy/package does not make %s", file)
		}
	}
	for _, m := range regexp.MustCompile(`>"(/usr/[^"]+)"`).FindAllStringSubmatch(script, -1) {
		if !slices.ContainsFunc(made, func(told string) bool { return strings.HasPrefix(m[1], told) }) {
			t.Errorf("the guide does not list %s", m[1])
		}
	}
}

// Each file that the guide names is installed, embedded, or an example.
func TestInstallGuideNamesOnlyInstalledFiles(t *testing.T) {
	have := append(installed(t), names(rows(t, deploy.Install, "files", 1))...)
	for _, file := range regexp.MustCompile(`/usr/(?:share|lib)/[\w./@-]*\w`).FindAllString(string(deploy.Install), -1) {
		rest, isBench := strings.CutPrefix(file, "/usr/share/lockstep/benches/")
		example, isExample := strings.CutPrefix(file, "/usr/share/doc/lockstep/examples/")
		var err error
		switch {
		case isBench:
			_, err = plants.Read(strings.TrimSuffix(rest, ".yaml"))
		case isExample:
			_, err = os.Stat(example)
		case !slices.Contains(have, file):
			err = os.ErrNotExist
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// settings returns the settings of a unit; the last line of a setting counts.
func settings(t *testing.T, unit string) map[string]string {
	t.Helper()
	list := map[string]string{}
	for line := range strings.Lines(read(t, "deploy/root/usr/lib/systemd/system/"+unit)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			list[key] = value
		}
	}
	return list
}

func TestInstallGuideDescribesTheService(t *testing.T) {
	unit := settings(t, "lockstep@.service")
	for _, row := range rows(t, deploy.Install, "lockstep@name", 1) {
		key, value := strings.Trim(row[0], "`"), strings.Trim(row[1], "`")
		if have, ok := unit[key]; !ok || have != value {
			t.Errorf("the unit has %s=%s, the guide says %s", key, have, value)
		}
	}
	var rights []string
	for _, name := range names(rows(t, deploy.Install, "users-and-rights", 0)) {
		rights = append(rights, strings.Fields(name)[0])
	}
	device, _, _ := strings.Cut(unit["DeviceAllow"], " ")
	same(t, "rights", rights, append(strings.Fields(unit["AmbientCapabilities"]), device))
	if unit["CapabilityBoundingSet"] != unit["AmbientCapabilities"] {
		t.Errorf("the unit has the capabilities %s and bounds them by %s", unit["AmbientCapabilities"], unit["CapabilityBoundingSet"])
	}

	section, _ := guide.Guide{Source: deploy.Install}.Section("lockstep@name")
	run := strings.NewReplacer("%S", "/var/lib", "%i", "NAME", "/usr/bin/", "").Replace(unit["ExecStart"])
	if blocks := section.Blocks(); len(blocks) != 1 || strings.TrimSpace(blocks[0].Text) != run {
		t.Errorf("the service runs %s; the guide says %v", run, blocks)
	}
	host := settings(t, "lockstep-host.service")
	for _, command := range []string{host["ExecStart"], host["ExecStop"]} {
		command = strings.TrimSuffix(strings.TrimPrefix(command, "/usr/bin/lockstep "), " $OPTIONS")
		if !strings.Contains(string(deploy.Install), strings.TrimPrefix(command, "doctor ")) {
			t.Errorf("the guide does not say that lockstep-host runs %s", command)
		}
	}
}

func TestInstallGuideDescribesThePackage(t *testing.T) {
	script := read(t, "deploy/package")
	var flags []string
	for _, m := range regexp.MustCompile(`(?m)^\t(-\w+)\)`).FindAllStringSubmatch(script, -1) {
		flags = append(flags, m[1])
	}
	same(t, "flags", names(rows(t, deploy.Install, "packages", 0)), flags)

	for _, row := range rows(t, deploy.Install, "packages", 1) {
		m := regexp.MustCompile(`(?m)^\t\t` + row[0] + `: \[(.*)\]$`).FindStringSubmatch(script)
		var told []string
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			told = append(told, name[1])
		}
		if m == nil {
			t.Errorf("deploy/package does not say %s", row[0])
			continue
		}
		same(t, row[0], told, strings.Split(m[1], ", "))
	}
}

func TestInstallGuideNamesTheRequiredGo(t *testing.T) {
	m := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "go.mod"))
	if m == nil {
		t.Fatal("go.mod does not name a version of Go")
	}
	section, _ := guide.Guide{Source: deploy.Install}.Section("go-version")
	told := map[string]bool{}
	for _, v := range regexp.MustCompile(`\b1\.\d+\.\d+\b`).FindAllString(string(section.Source), -1) {
		told[v] = true
	}
	if len(told) != 1 || !told[m[1]] {
		t.Errorf("go.mod needs Go %s; the guide says %q", m[1], slices.Collect(maps.Keys(told)))
	}
}

// The guide has the commands of the examples for clusters.
func TestInstallGuideHasTheCommandsForClusters(t *testing.T) {
	for topic, file := range map[string]string{"slurm": "slurm/sweep.sbatch", "kubernetes": "kubernetes/sweep-job.yaml"} {
		section, _ := guide.Guide{Source: deploy.Install}.Section(topic)
		blocks, text := section.Blocks(), read(t, "deploy/"+file)
		if len(blocks) != 1 {
			t.Fatalf("%s: %d blocks", topic, len(blocks))
		}
		for line := range strings.Lines(blocks[0].Text) {
			line = strings.Replace(strings.TrimSpace(line), "/usr/share/doc/lockstep/examples/", "deploy/", 1)
			if !strings.Contains(text, line) {
				t.Errorf("%s does not say %s", file, line)
			}
		}
	}
}

// The guide has the values of the network file and of the rules.
func TestInstallGuideHasTheValuesOfTheNetworkFiles(t *testing.T) {
	network, rules := read(t, "deploy/root/usr/share/lockstep/network/70-can.network"), read(t, "deploy/root/usr/share/lockstep/network/70-can.rules")
	for said, in := range map[string]string{"BitRate=500K": network, "RestartSec=100ms": network, `ATTR{tx_queue_len}="100"`: rules} {
		if !strings.Contains(in, "\n"+said) && !strings.Contains(in, ", "+said) {
			t.Errorf("no %s", said)
		}
	}
	for _, said := range []string{"500 kbit/s", "100 ms after bus-off", "queue of 100 frames"} {
		if !strings.Contains(strings.Join(strings.Fields(string(deploy.Install)), " "), said) {
			t.Errorf("the guide does not say %s", said)
		}
	}
}
