package virtual

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSameFileFollowsLinksAndPaths(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a"), filepath.Join(dir, "l")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{file, link, true}, {file, dir + "/./a", true}, {dir + "/new", dir + "/./new", true}, {dir + "/new", dir + "/other", false},
		{"-", "-", true}, {"-", file, false}, {file, "", false}, {"/dev/null", "/dev/null", false},
	} {
		if got := sameFile(c.a, c.b); got != c.want {
			t.Errorf("same(%q, %q) = %v", c.a, c.b, got)
		}
	}
}
