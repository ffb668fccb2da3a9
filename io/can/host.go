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
	if !strings.HasPrefix(name, "vcan") {
		name = "vcan0"
	}
	return "ip link add dev " + name + " type vcan && ip link set " + name + " up"
}

// bitrate is what "ip link set NAME up" needs besides on a real controller.
func bitrate(name string) string {
	if strings.HasPrefix(name, "vcan") || strings.HasPrefix(name, "vxcan") {
		return ""
	}
	return " type can bitrate 500000"
}

// interfaces lists the CAN interfaces under dir, which is laid out like
// /sys/class/net; none if it cannot be read.
func interfaces(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var list []string
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name(), "type"))
		if strings.TrimSpace(string(text)) == strconv.Itoa(unix.ARPHRD_CAN) {
			list = append(list, e.Name())
		}
	}
	return list
}
