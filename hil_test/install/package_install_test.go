package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// onCopy runs a script as root of a copy of this system: an overlay, of which nothing
// is kept. No service manager runs in it. $changes are the files that differ from this
// system's after the script, in content, mode or owner, with a sign before those that
// are new (+), gone (-) or otherwise (~).
const onCopy = `set -e
mount -t tmpfs -o size=500m tmpfs "$DIR"
cd "$DIR"
mkdir files work all
mount -t overlay -o lowerdir=/,upperdir=files,workdir=work overlay all
mount --rbind /proc all/proc
for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs all/$folder; done
mknod -m 666 all/dev/null c 1 3
mknod -m 600 all/dev/cpu_dma_latency c 10 62
cp "$PACKAGE" all/run/lockstep.deb
cp "$SCRIPT" all/run/script
# Triggers are other packages', as the index of manual pages, and slow: --no-triggers.
chroot all /bin/bash -e /run/script 2>&1
echo ==== changes
find files all/run all/dev -mindepth 1 ! -path 'all/run/script' ! -path all/run/lockstep.deb ! -path all/dev/null ! -path all/dev/cpu_dma_latency |
while read -r new; do
	case $new in
	files/*) old=/${new#files/} ;;
	*) echo "+${new#all}"; continue ;;
	esac
	if [ -c "$new" ]; then
		[ ! -e "$old" ] || echo "-$old"
	elif [ ! -e "$old" ] && [ ! -L "$old" ]; then
		echo "+$old"
	elif [ "$(stat -c %a:%u:%g:%F "$new")" != "$(stat -c %a:%u:%g:%F "$old")" ]; then
		echo "~$old"
	elif [ -f "$new" ] && ! cmp -s "$new" "$old"; then
		echo "~$old"
	fi
done
stat -c '%U:%G %a' all/dev/cpu_dma_latency`

// shorthand is what the scripts are written in.
const shorthand = `
deb=/run/lockstep.deb PATH=$PATH:/usr/sbin:/sbin
install() { dpkg --no-triggers --install $deb >/dev/null; }
remove() { dpkg --no-triggers --remove lockstep >/dev/null; }
purge() { dpkg --no-triggers --purge lockstep >/dev/null; }
whole() { # the package is installed as it was made, and works
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}' lockstep)" = "ii " ]
	[ -z "$(dpkg --verify lockstep)" ] && id lockstep >/dev/null && lockstep version >/dev/null
}
`

// dpkgs is what dpkg and the tools of the users' files keep for themselves, whatever
// package comes and goes.
var dpkgs = regexp.MustCompile(`^[+~](/var/lib/dpkg/.*|/var/log/dpkg\.log|/var/log/alternatives\.log|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-|/etc/\.pwd\.lock)$`)

// install runs a script where the package can be installed and returns what it printed
// and what it left behind.
func install(t *testing.T, script string) (out string, left []string) {
	t.Helper()
	lab.RequireProgram(t, "dpkg", "dpkg")
	if os.Getuid() != 0 {
		lab.Skip(t, "mounts an overlay: only as root")
	}
	packed(t)
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(shorthand+script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "bash", "-c", onCopy)
	cmd.Env = append(os.Environ(), "DIR="+t.TempDir(), "PACKAGE="+installation.deb, "SCRIPT="+file)
	b, err := cmd.CombinedOutput()
	out, list, complete := strings.Cut(string(b), "==== changes\n")
	if err != nil || !complete {
		t.Fatalf("%v\n%s", err, b)
	}
	for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
		if !dpkgs.MatchString(line) && line != "root:root 600" { // the last one is the device's
			left = append(left, line)
		}
	}
	return out, left
}

// used is what a box has after a while.
const used = `
cp /usr/share/lockstep/benches/powershift-bench.yaml /etc/lockstep/mine.yaml
mkdir -p /var/lib/lockstep /run/lockstep /run/lockstep-0 /etc/systemd/system/multi-user.target.wants /etc/systemd/system/lockstep@mine.service.d
touch /var/lib/lockstep/mine.json /run/lockstep/mine.sock /etc/systemd/system/lockstep@mine.service.d/override.conf
ln -s /usr/lib/systemd/system/lockstep@.service /etc/systemd/system/multi-user.target.wants/lockstep@mine.service
chown -R lockstep:lockstep /var/lib/lockstep /run/lockstep
chgrp lockstep /dev/cpu_dma_latency && chmod 660 /dev/cpu_dma_latency
gpasswd --add games lockstep >/dev/null # who may look at the reports
touch /run/lockstep-doctor-undo.json # not one that can be undone
`

func TestPurgedPackageLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	_, left := install(t, "install\nwhole\n"+used+"purge\n")
	for _, file := range left {
		t.Errorf("left behind: %s", file)
	}
}

// A person who is called as the service's user is, and a unit that is called nearly so,
// are not the package's.
func TestPurgedPackageLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	_, left := install(t, `
useradd --home-dir /home/lockstep --shell /bin/bash lockstep
install
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -s /etc/systemd/system/lockstep-backup.service /etc/systemd/system/multi-user.target.wants/
purge
[ "$(getent passwd lockstep | cut -d : -f 6-)" = /home/lockstep:/bin/bash ]
rm /etc/systemd/system/multi-user.target.wants/lockstep-backup.service # fails where it is gone
userdel lockstep`)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRemovedPackageKeepsWhatTheUserMade(t *testing.T) {
	t.Parallel()
	out, left := install(t, `install`+used+`
echo 'OPTIONS=-besteffort' >/etc/lockstep/options
install # the same again: an upgrade
cat /etc/lockstep/options
remove
cat /etc/lockstep/options
[ -f /etc/lockstep/mine.yaml ]
[ -f /var/lib/lockstep/mine.json ]
[ ! -e /usr/bin/lockstep ]
[ ! -e /run/lockstep ]
install
cat /etc/lockstep/options
[ -f /etc/lockstep/mine.yaml ]
purge`)
	if strings.Count(out, "OPTIONS=-besteffort\n") != 3 {
		t.Errorf("the user's options after upgrade, removal and installation:\n%s", out)
	}
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestHalfRemovedPackageIsRepairedByInstallingAgain(t *testing.T) {
	t.Parallel()
	_, left := install(t, `install
rm -r /usr/bin/lockstep /usr/lib/systemd/system/lockstep* /usr/share/lockstep
userdel lockstep
install
whole
for n in 1 2; do for step in 'prerm remove' 'postrm remove' 'postrm purge'; do
	set -- $step
	sh /var/lib/dpkg/info/lockstep.$1 $2
done; done
dpkg --force-confmiss --no-triggers --install $deb >/dev/null # the file in /etc had been deleted
whole

# A power cut after unpacking, and one in the middle of postinst.
dpkg --no-triggers --unpack $deb >/dev/null
install
whole
dpkg --no-triggers --unpack $deb >/dev/null
cp /var/lib/dpkg/info/lockstep.postinst /run/postinst
printf '#!/bin/sh\nkill -9 $$\n' >/var/lib/dpkg/info/lockstep.postinst
if dpkg --no-triggers --configure lockstep >/dev/null 2>&1; then exit 1; fi
install
whole
rm /run/postinst
rm /var/lib/dpkg/info/lockstep.list
install
whole
purge
purge # of what is not there`)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPackageInstallsWithoutSystemd(t *testing.T) {
	t.Parallel()
	_, left := install(t, `
mkdir /run/away
for program in systemctl systemd-sysusers udevadm; do
	[ ! -e /usr/bin/$program ] || mv /usr/bin/$program /run/away/
done
install
whole
getent passwd lockstep
purge
mv /run/away/* /usr/bin/
rmdir /run/away`)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
