package can

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A kernel says in its configuration, or in the list of its modules, whether modprobe can help.
func TestHelpForAKernelWithoutCANFollowsFromHowItWasBuilt(t *testing.T) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	const with, without = "# CONFIG_X is not set\nCONFIG_CAN=m\nCONFIG_CAN_RAW=m\n", "CONFIG_NET=y\n# CONFIG_CAN is not set\n"
	modules := "lib/modules/" + release + "/modules.dep"
	for _, c := range []struct {
		name             string
		files            map[string]string
		modprobe, others bool
	}{
		{"configuration with CAN", map[string]string{"proc/config.gz": with, modules: ""}, true, false},
		{"configuration without CAN", map[string]string{"proc/config.gz": without, modules: "kernel/net/can/can-raw.ko:\n"}, false, true},
		{"configuration in /boot", map[string]string{"boot/config-" + release: without}, false, true},
		{"modules with CAN", map[string]string{modules: "kernel/net/can/can.ko.zst:\nkernel/net/can/can-raw.ko.zst: kernel/net/can/can.ko.zst\n"}, true, false},
		{"modules without CAN", map[string]string{modules: "kernel/net/ipv6/ipv6.ko:\n"}, false, true},
		{"not known", nil, true, true},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, ".gz") {
				z := gzip.NewWriter(f)
				_, _ = z.Write([]byte(text))
				err = z.Close()
			} else {
				_, err = f.WriteString(text)
			}
			if err != nil || f.Close() != nil {
				t.Fatal(err)
			}
		}
		help := helpWithoutCAN(root)
		if strings.Contains(help, "modprobe") != c.modprobe || (strings.Contains(help, "pair") && strings.Contains(help, "file:LOG")) != c.others {
			t.Errorf("%s: %q", c.name, help)
		}
	}
}
