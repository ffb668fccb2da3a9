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

// release is the version of a package and its commit, set by the linker in deploy/package; "" in
// any other build, for which Go may know the commit.
var release string

// Version returns the version of this program, its commit if known, and its compiler.
func Version() string {
	version, compiler := release, ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version, compiler = cmp.Or(version, info.Main.Version), info.GoVersion
	}
	return strings.Join(strings.Fields(cmp.Or(version, "(devel)")+" "+buildSetting("vcs.revision")+" "+compiler), " ")
}

// Arch returns the architecture that this program was built for, with its level: "amd64 v1".
func Arch() string {
	return strings.TrimSpace(runtime.GOARCH + " " + cmp.Or(buildSetting("GOAMD64"), buildSetting("GOARM64")))
}

// Changed reports whether the sources of this program differ from its commit; known is false if Go
// recorded no commit.
func Changed() (changed, known bool) {
	text := buildSetting("vcs.modified")
	return text == "true", text != ""
}

// buildSetting returns a build setting of this program; "" if Go recorded none.
func buildSetting(key string) (value string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				value = s.Value
			}
		}
	}

	return value
}

// Executable returns the SHA-256 of this program's file, hexadecimal.
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
