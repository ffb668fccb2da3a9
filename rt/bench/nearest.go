package bench

import "strings"

// Nearest returns the known word that word was probably meant to be, or "" when
// none is near: at most a third of its letters, and always two, may be wrong.
func Nearest(word string, known []string) string {
	best, found := 1+max(2, len(word)/3), ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < best {
			best, found = d, k
		}
	}
	return found
}

// meant is " (did you mean x?)", or nothing when no known word is near.
func meant(word string, known []string) string {
	if n := Nearest(word, known); n != "" {
		return " (did you mean " + n + "?)"
	}
	return ""
}

// distance counts the letters to insert, delete or replace to make b of a
// (Levenshtein, Soviet Physics Doklady 10(8), 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
