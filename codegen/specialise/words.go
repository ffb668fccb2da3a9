package specialise

import "strings"

// letter reports whether a byte can be in a name, but for digits; what is not ASCII counts as
// one.
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// eachName gives where the names in a text begin and end.
func eachName(text string, name func(from, to int)) {
	for from := 0; from < len(text); from++ {
		to := from
		for to < len(text) && (letter(text[to]) || digit(text[to])) {
			to++
		}
		if to > from && letter(text[from]) {
			name(from, to)
		}
		from = max(from, to-1)
	}
}

// callNames are the names of what a text calls, with the dots in them.
func callNames(text string) (names []string) {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '(')
		if next < 0 {
			return names
		}
		at += next
		from := at
		for from > 0 && (letter(text[from-1]) || digit(text[from-1]) || text[from-1] == '.') {
			from--
		}
		for from < at && !letter(text[from]) {
			from++
		}
		if from < at {
			names = append(names, text[from:at])
		}
	}
}

// indexes are where the indices in a cell begin and end, with their brackets.
func indexes(cell string) (at [][2]int) {
	for from := range len(cell) {
		if cell[from] != '[' {
			continue
		}
		to := from + 1
		for to < len(cell) && digit(cell[to]) {
			to++
		}
		if to > from+1 && to < len(cell) && cell[to] == ']' {
			at = append(at, [2]int{from, to + 1})
		}
	}
	return at
}

// wild is a cell with * for every index.
func wild(cell string) string {
	at := indexes(cell)
	if len(at) == 0 {
		return cell
	}
	var b strings.Builder
	from := 0
	for _, i := range at {
		b.WriteString(cell[from:i[0]])
		b.WriteString("[*]")
		from = i[1]
	}
	b.WriteString(cell[from:])
	return b.String()
}
