// Package guidetest owns the reading of a guide in tests that compare it with the code. It serves tests
// of the packages that have a guide. It does not know what a guide says.
package guidetest

import (
	"regexp"
	"strings"
	"testing"

	"lockstep/rt/guide"
)

// Section returns the text of a section of a guide.
func Section(t *testing.T, g guide.Guide, topic string) string {
	t.Helper()
	s, ok := g.Section(topic)
	if !ok {
		t.Fatalf("the guide has no section %s", topic)
	}
	return string(s.Source)
}

var row = regexp.MustCompile("(?m)^\\| `([^`]+)`")

// FirstColumn returns the quoted start of each row of table n (from 0) of a section.
func FirstColumn(t *testing.T, g guide.Guide, topic string, n int) (list []string) {
	t.Helper()
	tables := strings.Split(Section(t, g, topic), "\n|---")
	if len(tables) < n+2 {
		t.Fatalf("section %s has no table %d", topic, n)
	}
	text, _, _ := strings.Cut(tables[n+1], "\n\n")
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(m[1], `\|`, "|"))
	}
	return list
}
