package rules

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fileOfPackage is a file as a package comment names it: without a folder.
var fileOfPackage = regexp.MustCompile(`(^|[\s(])(\w+\.go)\b`)

// packageComments returns the package comments by folder, without those of test files.
func packageComments(t *testing.T) map[string][]string {
	t.Helper()
	comments := map[string][]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, s.path), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		list := comments[s.folder]
		if text := f.Doc.Text(); text != "" {
			list = append(list, text)
		}
		comments[s.folder] = list
	}
	return comments
}

func TestPackageCommentsSayWhatThePackageOwnsAndDoesNotDo(t *testing.T) {
	denies := regexp.MustCompile(`\b([Nn]ot|[Nn]o|nothing|Nothing|none|neither|nor)\b`)
	for folder, list := range packageComments(t) {
		if len(list) != 1 {
			t.Errorf("%s has %d package comments; want one", folder, len(list))
			continue
		}
		text := strings.Join(strings.Fields(list[0]), " ")
		first, _, _ := strings.Cut(text, ". ")
		if !strings.HasPrefix(text, "Command ") && !strings.Contains(first, " owns ") {
			t.Errorf("%s: the first sentence of the package comment does not say what it owns: %s", folder, first)
		}
		if !denies.MatchString(text) {
			t.Errorf("%s: the package comment does not say what the package does not do", folder)
		}
	}
}

func TestPackageCommentsNameFilesThatExist(t *testing.T) {
	for folder, list := range packageComments(t) {
		for _, m := range fileOfPackage.FindAllStringSubmatch(strings.Join(list, "\n"), -1) {
			if _, err := os.Stat(filepath.Join(top, folder, m[2])); err != nil {
				t.Errorf("%s: the package comment names %s: %v", folder, m[2], err)
			}
		}
	}
}
