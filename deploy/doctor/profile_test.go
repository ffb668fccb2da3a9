package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
)

// profile returns the text of an installed file.
func profile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../root", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The files that make the changes permanent have the values that -fix sets and prints.
func TestTheHostProfileHasTheValuesOfFix(t *testing.T) {
	b := newBox(t, "tuned")
	b.set("proc/sys/kernel/sched_rt_runtime_us", "950000")
	b.set("proc/sys/kernel/numa_balancing", "1")
	var want []string
	for _, c := range b.plan().Changes {
		want = append(want, strings.TrimPrefix(c.Command, "sudo sysctl -w "))
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^-?(\S+) = (\S+)$`).FindAllStringSubmatch(profile(t, "usr/share/lockstep/host/90-lockstep.conf"), -1) {
		got = append(got, m[1]+"="+m[2])
	}
	if !slices.Equal(got, want) || len(want) != 2 {
		t.Errorf("sysctl.d sets %q, -fix %q", got, want)
	}

	p := b.plan() // for a loop on CPU 3 of 0 to 3
	lines := p.Boot.Lines()
	if text := profile(t, "usr/share/lockstep/host/lockstep.cfg"); !strings.HasSuffix(text, "\n"+lines[len(lines)-1]+"\n") {
		t.Errorf("the snippet for grub does not end with %s", lines[len(lines)-1])
	}
	options := strings.Join(p.Boot.Wanted, " ")
	if text := profile(t, "usr/share/lockstep/host/bootargs.txt"); strings.Count(text, options) != 3 {
		t.Errorf("want %q three times in\n%s", options, text)
	}
}

func TestTheNetworkFilesHaveTheValuesOfFix(t *testing.T) {
	b := newBox(t, "throttled")
	b.set("sys/class/net/can0/tx_queue_len", "10")
	queue, restart := "", ""
	b.links["can0"] = can.Link{Card: true}
	for _, c := range b.plan().Changes {
		switch c.Check {
		case "queue can0":
			queue = c.Then
		case "restart can0":
			restart = c.Then
		}
	}
	if text := profile(t, "usr/share/lockstep/network/70-can.rules"); queue == "" || !strings.Contains(text, `ATTR{tx_queue_len}="`+queue+`"`) {
		t.Errorf("-fix sets a queue of %q, the udev rule:\n%s", queue, text)
	}
	if text := profile(t, "usr/share/lockstep/network/70-can.network"); restart == "" || !strings.Contains(text, "\nRestartSec="+restart+"ms\n") {
		t.Errorf("-fix sets restart-ms %q, the file of networkd:\n%s", restart, text)
	}
}

func TestTheHostServiceFixesAtItsStartAndUndoesAtItsStop(t *testing.T) {
	unit := profile(t, "usr/lib/systemd/system/lockstep-host.service")
	for _, line := range []string{
		"ExecStart=/usr/bin/lockstep doctor -fix -yes $OPTIONS", "ExecStop=/usr/bin/lockstep doctor -undo", "RemainAfterExit=yes",
		"EnvironmentFile=-/etc/lockstep/host",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	// These options would block /proc/sys, /sys and the kernel's threads.
	for _, word := range []string{"ProtectKernelTunables=", "ProtectControlGroups=", "ProtectProc=", "RestrictRealtime=yes", "User="} {
		if strings.Contains(unit, word) {
			t.Errorf("%s is in the unit", word)
		}
	}
	if bench := profile(t, "usr/lib/systemd/system/lockstep@.service"); !regexp.MustCompile(`(?m)^After=.*\blockstep-host\.service`).MatchString(bench) {
		t.Error("benches do not wait for the settings of the host")
	}
	if text := profile(t, "etc/lockstep/host"); regexp.MustCompile(`(?m)^[^#\n]`).MatchString(text) {
		t.Error("the options of the host service are not all comments")
	}
}
