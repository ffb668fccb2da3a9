package host

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// release is the version of a package and its commit, which deploy/package has the
// linker set; "" in any other build, of which Go itself may know the commit.
var release string

// Version is that of this program, its commit where it is known, and its compiler's.
func Version() string {
	version, compiler := release, ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version, compiler = cmp.Or(version, info.Main.Version), info.GoVersion
	}
	return strings.Join(strings.Fields(cmp.Or(version, "(devel)")+" "+noted("vcs.revision")+" "+compiler), " ")
}

// Arch is the architecture that this program was built for, with its level: "amd64 v1".
func Arch() string {
	return strings.TrimSpace(runtime.GOARCH + " " + cmp.Or(noted("GOAMD64"), noted("GOARM64")))
}

// Changed tells whether the sources of this program were not those of its commit; known
// is false where Go noted no commit.
func Changed() (changed, known bool) {
	text := noted("vcs.modified")
	return text == "true", text != ""
}

// noted is what Go has noted of how this program was built, "" nothing.
func noted(key string) (value string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				value = s.Value
			}
		}
	}
	return value
}

// Executable is the SHA-256 of this program's file, hexadecimal.
func Executable() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
