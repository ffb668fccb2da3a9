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

// onCopy runs a script as root in an overlay copy of this system, which is then discarded. No
// service manager runs in the copy. The script prints the files that differ from this system in
// content, mode or owner, with a sign: new (+), deleted (-), changed (~).
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
# Triggers belong to other packages, like the index of manual pages, and are slow: --no-triggers.
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

// shorthand defines the functions of the scripts.
const shorthand = `
deb=/run/lockstep.deb PATH=$PATH:/usr/sbin:/sbin
install() { dpkg --no-triggers --install $deb >/dev/null; }
remove() { dpkg --no-triggers --remove lockstep >/dev/null; }
purge() { dpkg --no-triggers --purge lockstep >/dev/null; }
whole() { # checks that the package is complete and works
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}' lockstep)" = "ii " ]
	[ -z "$(dpkg --verify lockstep)" ] && id lockstep >/dev/null && lockstep version >/dev/null
}
`

// dpkgFiles matches files that dpkg and the tools for users change with any package.
var dpkgFiles = regexp.MustCompile(`^[+~](/var/lib/dpkg/.*|/var/log/dpkg\.log|/var/log/alternatives\.log|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-|/etc/\.pwd\.lock)$`)

// install runs a script in a copy of this system with the package. It returns the output and the
// files left behind.
func install(t *testing.T, script string) (out string, left []string) {
	t.Helper()
	lab.RequireProgram(t, "dpkg", "dpkg")
	if os.Getuid() != 0 {
		lab.Skip(t, "mounts an overlay: only as root")
	}
	buildPackage(t)
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
		if !dpkgFiles.MatchString(line) && line != "root:root 600" { // owner and mode of the device
			left = append(left, line)
		}
	}
	return out, left
}

// used is a script that leaves traces of normal use.
const used = `
cp /usr/share/lockstep/benches/powershift-bench.yaml /etc/lockstep/mine.yaml
mkdir -p /var/lib/lockstep /run/lockstep /run/lockstep-0 /etc/systemd/system/multi-user.target.wants /etc/systemd/system/lockstep@mine.service.d
touch /var/lib/lockstep/mine.json /run/lockstep/mine.sock /etc/systemd/system/lockstep@mine.service.d/override.conf
ln -s /usr/lib/systemd/system/lockstep@.service /etc/systemd/system/multi-user.target.wants/lockstep@mine.service
chown -R lockstep:lockstep /var/lib/lockstep /run/lockstep
chgrp lockstep /dev/cpu_dma_latency && chmod 660 /dev/cpu_dma_latency
gpasswd --add games lockstep >/dev/null # a user who may read the reports
touch /run/lockstep-doctor-undo.json # an empty file, which cannot be undone
`

func TestPurgedPackageLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	_, left := install(t, "install\nwhole\n"+used+"purge\n")
	for _, file := range left {
		t.Errorf("left behind: %s", file)
	}
}

// A person with the name of the service's user, and a unit with a similar name, stay.
func TestPurgedPackageLeavesForeignUsersAndUnits(t *testing.T) {
	t.Parallel()
	_, left := install(t, `
useradd --home-dir /home/lockstep --shell /bin/bash lockstep
install
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -s /etc/systemd/system/lockstep-backup.service /etc/systemd/system/multi-user.target.wants/
purge
[ "$(getent passwd lockstep | cut -d : -f 6-)" = /home/lockstep:/bin/bash ]
rm /etc/systemd/system/multi-user.target.wants/lockstep-backup.service # fails if purge removed it
userdel lockstep`)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRemovedPackageKeepsFilesOfTheUser(t *testing.T) {
	t.Parallel()
	out, left := install(t, `install`+used+`
echo 'OPTIONS=-besteffort' >/etc/lockstep/options
install # again, like an upgrade
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

# Power failures after unpacking and in the middle of postinst.
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
purge # without the package`)
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
