package sigmap

import (
	"cmp"
	"slices"
	"strings"

	"lockstep/model/units"
)

// nearest names the up to three of list that look most like name.
func nearest(name string, list []string) string {
	if len(list) == 0 {
		return "there are none"
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b string) int {
		return cmp.Compare(units.Distance(name, a), units.Distance(name, b))
	})
	return "nearest: " + strings.Join(list[:min(3, len(list))], ", ")
}
