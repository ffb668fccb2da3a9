package can

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Remedies on a kernel without CAN sockets.
const (
	loadModules     = "modprobe -a can can_raw"
	builtWithoutCAN = "it is built without CAN; "
	withoutCAN      = "an interface pair (lockstep run -bus pair) or a log (-bus file:LOG) works without CAN"
)

// HelpWithoutCAN returns what helps on this host after ErrNoCAN: a command, if the kernel has CAN
// as modules, else the interfaces that work without CAN.
func HelpWithoutCAN() string { return helpWithoutCAN("/") }

// helpWithoutCAN is HelpWithoutCAN for the host whose files are under root.
func helpWithoutCAN(root string) string {
	var name unix.Utsname
	_ = unix.Uname(&name) // cannot fail
	release := unix.ByteSliceToString(name.Release[:])
	switch has, known := hasCANModules(root, release); {
	case !known:
		return loadModules + "; if the kernel has no such modules, " + withoutCAN
	case !has:
		return builtWithoutCAN + withoutCAN
	}

	return loadModules
}

// BuiltWithout returns what works on a kernel that is built without CAN, by its release and the files below
// root; "" if it has CAN, or if the files do not say so.
func BuiltWithout(root, release string) string {
	if has, known := hasCANModules(root, release); has || !known {
		return ""
	}
	return builtWithoutCAN + withoutCAN
}

// hasCANModules reports whether the kernel of a release was built with raw CAN sockets, by its
// configuration or, without one, by the list of its modules. known is false if the host has neither.
func hasCANModules(root, release string) (has, known bool) {
	for _, f := range []struct{ file, entry string }{
		{"proc/config.gz", "\nCONFIG_CAN_RAW="},
		{"boot/config-" + release, "\nCONFIG_CAN_RAW="},
		{"lib/modules/" + release + "/modules.dep", "/can-raw.ko"},
	} {
		if text, err := readKernelFile(filepath.Join(root, f.file)); err == nil {
			return bytes.Contains(text, []byte(f.entry)), true
		}
	}

	return false, false
}

// mostKernelFile bounds the text of a configuration or a list of modules, bytes; distributions
// have up to 300 KiB and 1 MiB.
const mostKernelFile = 16 << 20

// readKernelFile reads a file that describes the kernel; the text of a .gz is unpacked.
func readKernelFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var text io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(text, mostKernelFile))
}
