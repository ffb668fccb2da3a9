package doctor

import (
	"strings"
	"testing"
)

func TestTheCommandLineIsComputedForTheHost(t *testing.T) {
	const rest = " skew_tick=1 nosoftlockup nmi_watchdog=0"
	for _, c := range []struct {
		host   string
		edits  map[string]string
		cpu    int // CPU of the loop; -1 to let the doctor choose
		wanted string
		lacks  string
		drop   string
		first  string // first line of the instructions
		last   string
	}{
		{"tuned", nil, -1, "isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest, "", "",
			"# /etc/default/grub.d/lockstep.cfg, ", `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3` + rest + `"`},
		{"throttled", nil, -1, "isolcpus=managed_irq,domain,3 irqaffinity=0,2 rcu_nocbs=3" + rest, "isolcpus=managed_irq,domain,3 irqaffinity=0,2 rcu_nocbs=3" + rest, "isolcpus=3",
			"# /etc/default/grub.d/lockstep.cfg, ", "GRUB_CMDLINE_LINUX="},
		{"pi", nil, -1, "isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest, "isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest, "",
			"# at the end of the one line in /boot/firmware/cmdline.txt", "isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest},
		// A partition isolates the CPU; CPU 2 belongs to another loop.
		{"mainline", nil, -1, "isolcpus=managed_irq,2-3 irqaffinity=0-1 rcu_nocbs=2-3" + rest, "rcu_nocbs=2-3" + rest, "", "", ""},
		// nosmt disables the second thread of each core, which is the loop's CPU here.
		{"desktop", nil, 7, "isolcpus=managed_irq,domain,7 irqaffinity=0-2,4-6 rcu_nocbs=7" + rest, "isolcpus=managed_irq,domain,7 irqaffinity=0-2,4-6 rcu_nocbs=7" + rest, "", "", ""},
		{"desktop", map[string]string{"sys/devices/system/cpu/cpu3/topology/thread_siblings_list": "3,7"}, 3,
			"isolcpus=managed_irq,domain,3 irqaffinity=0-2,4-6 rcu_nocbs=3 nosmt" + rest, "isolcpus=managed_irq,domain,3 irqaffinity=0-2,4-6 rcu_nocbs=3 nosmt" + rest, "", "", ""},
		{"mainline", map[string]string{"boot/extlinux/extlinux.conf": "LABEL l0", "sys/fs/cgroup/cpuset.cpus.isolated": "", "sys/fs/cgroup/hil.slice/cpuset.cpus.partition": "member"}, 3,
			"isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest, "isolcpus=managed_irq,domain,3 rcu_nocbs=3" + rest, "isolcpus=managed_irq,3",
			"# at the end of the line APPEND in /boot/extlinux/extlinux.conf", "# or at the prompt of u-boot: setenv bootargs"},
		{"pi", map[string]string{"boot/firmware/cmdline.txt": gone}, 3, "isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest, "", "",
			"# grub, in ", "isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest},
		{"tuned", map[string]string{"etc/os-release": "ID=fedora"}, 3, "isolcpus=managed_irq,domain,3 irqaffinity=0-2 rcu_nocbs=3" + rest, "", "",
			`sudo grubby --update-kernel=ALL --args="isolcpus=managed_irq,domain,3 `, "# then: sudo grub2-mkconfig"},
	} {
		want := demo
		want.CPU = c.cpu
		p, err := NewPlan(edited(t, c.host, c.edits), want, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := p.Boot
		if got := strings.Join(b.Wanted, " "); got != c.wanted {
			t.Errorf("%s: wanted %s, want %s", c.host, got, c.wanted)
		}
		if got := strings.Join(b.Lacks, " "); c.lacks != "" && got != strings.TrimSpace(c.lacks) {
			t.Errorf("%s: lacks %s, want %s", c.host, got, c.lacks)
		}
		if got := strings.Join(b.Drop, " "); got != c.drop {
			t.Errorf("%s: drop %s, want %s", c.host, got, c.drop)
		}
		lines := b.Lines()
		if !strings.HasPrefix(lines[0], c.first) || !strings.HasPrefix(lines[len(lines)-1], c.last) {
			t.Errorf("%s: the lines are\n%s", c.host, strings.Join(lines, "\n"))
		}
	}
	if b := newBox(t, "tuned").plan().Boot; len(b.Lacks) > 0 {
		t.Errorf("a tuned box lacks %q", b.Lacks)
	}
}

func TestCoversAcceptsValuesWithTheSameEffect(t *testing.T) {
	for _, c := range []struct {
		name, given, wanted string
		does                bool
	}{
		{"isolcpus", "domain,managed_irq,2-3", "managed_irq,domain,3", true},
		{"isolcpus", "2-3", "managed_irq,3", false},
		{"isolcpus", "2-3", "domain,3", true},
		{"isolcpus", "managed_irq,domain,2", "managed_irq,domain,3", false},
		{"isolcpus", "managed_irq,domain,x", "managed_irq,domain,3", false},
		{"rcu_nocbs", "all", "3", true},
		{"rcu_nocbs", "0-2", "3", false},
		{"irqaffinity", "0", "0-2", true},
		{"irqaffinity", "0-3", "0-2", false},
		{"irqaffinity", "", "0-2", false},
		{"nmi_watchdog", "1", "0", false},
		{"nosmt", "force", "", true},
	} {
		if got := covers(c.name, c.given, c.wanted, 3); got != c.does {
			t.Errorf("%s=%s for %s: %t", c.name, c.given, c.wanted, got)
		}
	}
}
