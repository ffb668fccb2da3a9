package units

import (
	"regexp"
	"slices"
	"strings"
)

// Meant returns " (did you mean x?)" with the known name nearest to name, "" if no name is near.
func Meant(name string, known []string) string {
	if n := Nearest(name, known); n != "" {
		return " (did you mean " + n + "?)"
	}
	return ""
}

// Nearest returns the known name with the smallest Distance from name, "" if no name is near. A
// near name differs in at most two letters, or a third of them if this is more.
func Nearest(name string, known []string) string {
	best, found := 1+max(2, len(name)/3), ""
	for _, k := range known {
		if len(name) > 100 || len(k) > 100 || k == name {
			continue
		}
		if d := Distance(name, k); d < best && d < max(len(name), len(k)) {
			best, found = d, k
		}
	}

	return found
}

// Alike returns up to eight known names that share a part of at least four letters with name, where "_"
// and capitals begin parts.
func Alike(name string, known []string) (list []string) {
	parts := strings.Split(strings.ToLower(capitals.ReplaceAllString(name, "${1}_$2")), "_")
	shares := func(a, b string) bool {
		return len(a) >= 4 && len(b) >= 4 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a) || Distance(a, b) == 1)
	}
	for _, k := range known {
		if len(list) < 8 && len(name) <= 100 && slices.ContainsFunc(strings.Split(k, "_"), func(b string) bool {
			return slices.ContainsFunc(parts, func(a string) bool { return shares(a, b) })
		}) {
			list = append(list, k)
		}
	}
	return list
}

// capitals matches the end of a part of a name before a capital.
var capitals = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// Distance returns the number of bytes to insert, delete or replace to change a into b, without
// regard to case (Levenshtein, Soviet Physics Doklady 10(8), 1966).
func Distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
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

// IsName reports whether s consists of letters, digits and "_", not a digit first; dotted accepts
// several such parts joined by ".".
func IsName(s string, dotted bool) bool {
	return len(s) <= 100 && s != "" && nameForm.FindString(s) == s && (dotted || !strings.Contains(s, "."))
}
