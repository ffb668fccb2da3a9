package can

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// others says what to use instead of the interface name: the CAN interfaces
// there are, or the command that makes one.
func others(name string) string {
	if list := interfaces("/sys/class/net"); len(list) > 0 {
		return "this host has " + strings.Join(list, ", ")
	}
	if !strings.HasPrefix(name, "vcan") || !LegalName(name) {
		name = "vcan0"
	}
	return "ip link add dev " + name + " type vcan && ip link set " + name + " up"
}

// LegalName tells whether name can stand in a command as it is and be that of an
// interface: 1 to 15 of the letters, digits, ".", "_" and "-". The kernel allows
// more, quotes and dollar signs among it: linux net/core/dev.c, dev_valid_name.
func LegalName(name string) bool {
	if len(name) < 1 || len(name) > 15 || strings.Trim(name, ".") == "" || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// bitrate is what "ip link set NAME up" needs besides on a real controller.
func bitrate(name string) string {
	if strings.HasPrefix(name, "vcan") || strings.HasPrefix(name, "vxcan") {
		return ""
	}
	return " type can bitrate 500000 restart-ms 100"
}

// interfaces lists the CAN interfaces under dir, which is laid out like
// /sys/class/net; none if it cannot be read.
func interfaces(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var list []string
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name(), "type"))
		if LegalName(e.Name()) && strings.TrimSpace(string(text)) == strconv.Itoa(unix.ARPHRD_CAN) {
			list = append(list, e.Name())
		}
	}
	return list
}
