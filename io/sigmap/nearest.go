package sigmap

import (
	"cmp"
	"slices"
	"strings"
)

// nearest names the up to three of list that look most like name.
func nearest(name string, list []string) string {
	if len(list) == 0 {
		return "there are none"
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b string) int {
		return cmp.Compare(distance(name, a), distance(name, b))
	})
	return "nearest: " + strings.Join(list[:min(3, len(list))], ", ")
}

// distance is the number of letters to change, add or remove, whatever their
// case: Levenshtein, 1966.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
