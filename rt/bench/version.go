package bench

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// release is the version of a package and its commit, which deploy/package has the
// linker set; "" in any other build, of which Go itself may know the commit.
var release string

// Version is that of this program, its commit where it is known, and its compiler's.
func Version() string {
	version, revision, compiler := release, "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
		compiler = info.GoVersion
	}
	return strings.Join(strings.Fields(cmp.Or(version, "(devel)")+" "+revision+" "+compiler), " ")
}
