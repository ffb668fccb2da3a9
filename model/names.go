package model

import (
	"fmt"
	"slices"
)

func indexOf(list []string, s string) int { return slices.Index(list, s) }

// didYouMean is ", did you mean ..." for the nearest of the names, if one is near.
func didYouMean(name string, names []string) string {
	best, at := 1+len(name)/3, -1
	for i, n := range names {
		if len(name) > 100 || len(n) > 100 || n == name {
			continue
		}
		if d := distance(name, n); d < best || d == best && at < 0 {
			best, at = d, i
		}
	}
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", names[at])
}

// distance is the number of edits from a to b (Levenshtein), in bytes.
func distance(a, b string) int {
	d := make([]int, len(b)+1)
	for j := range d {
		d[j] = j
	}
	for i := range len(a) {
		left := d[0]
		d[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = d[j+1]
			d[j+1] = min(cost, d[j]+1, left+1)
		}
	}
	return d[len(b)]
}

// isName tells whether s is letters, digits and "_", not starting with a digit;
// dotted allows several of these joined by ".".
func isName(s string, dotted bool) bool {
	if s == "" || len(s) > 100 || nameLen(s) != len(s) {
		return false
	}
	return dotted || !slices.Contains([]byte(s), '.')
}
