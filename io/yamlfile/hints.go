package yamlfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// DuplicateKey is the error for a key that appears twice in a mapping.
type DuplicateKey struct {
	Key   string
	First Pos
}

func (d *DuplicateKey) Error() string {
	return fmt.Sprintf("key %q appears twice, first at line %d, column %d", d.Key, d.First.Line, d.First.Col)
}

// failSyntax records the error of the parser, with a reason that the writer of the file can see.
func (r *Reader) failSyntax(data []byte, err yaml.Error) {
	at := tokenPos(err.GetToken())
	if tab := tabInIndentation(data, at.Line); tab.Line > 0 {
		r.FailAt(tab, "the line is indented with a tab: indent with blanks")
		return
	}
	advice := ""
	if strings.Contains(lineOf(data, at.Line), "\t") {
		advice = "; write blanks instead of tabs"
	}
	r.FailAt(at, "YAML: %s%s", err.GetMessage(), advice)
}

// checkMappings refuses a key that appears twice in a mapping, and a decimal comma in a mapping.
func (r *Reader) checkMappings(n Node) {
	if s, ok := n.(*ast.SequenceNode); ok {
		for _, item := range s.Values {
			r.checkMappings(item)
		}
	}
	entries, _ := mappingEntries(n)
	first := make(map[string]Pos, len(entries))
	for i, e := range entries {
		key, at := e.Key.GetToken().Value, NodePos(e.Key)
		if i > 0 && IsEmpty(e.Value) {
			r.checkDecimalComma(entries[i-1], key)
		}
		if before, ok := first[key]; ok {
			r.FailAt(at, "%w", &DuplicateKey{Key: key, First: before})
		}
		first[key] = at
		r.checkMappings(e.Value)
	}
}

// tabInIndentation returns the position of the first tab in the indentation of the lines up to last; 0
// if there is none.
func tabInIndentation(data []byte, last int) Pos {
	number := 0
	for line := range strings.Lines(string(data)) {
		if number++; number > last {
			break
		}
		text := strings.TrimLeft(line, " \t")
		if i := strings.IndexByte(line[:len(line)-len(text)], '\t'); i >= 0 && strings.TrimSpace(text) != "" {
			return Pos{number, i + 1}
		}
	}
	return Pos{}
}

// lineOf returns a line of a file, from 1.
func lineOf(data []byte, number int) string {
	for line := range strings.Lines(string(data)) {
		if number--; number == 0 {
			return line
		}
	}
	return ""
}

// Ends of a decimal number that a comma cuts: "0" of "0,2 kg.m2", and "2 kg.m2".
var (
	beforeComma = regexp.MustCompile(`(^|[^0-9.])[0-9]+$`)
	groups      = regexp.MustCompile(`([0-9])\.([0-9]{3})$`) // of thousands: "1.000" of "1.000,5"
	afterComma  = regexp.MustCompile(`^[0-9]+([eE][+-]?[0-9]+)?($|[^0-9.])`)
)

// checkDecimalComma refuses a key that is the rest of the number in the entry before it.
func (r *Reader) checkDecimalComma(before *ast.MappingValueNode, key string) {
	text, ok := ScalarText(before.Value)
	if text = groups.ReplaceAllString(text, "$1$2"); ok && beforeComma.MatchString(text) && afterComma.MatchString(key) {
		r.FailAt(NodePos(before.Value), "%s: a comma ends the value; decimals follow a point: %s.%s",
			before.Key.GetToken().Value, text, key)
	}
}

// CheckRows refuses a table that is not a list of rows of n values, where the intention is clear: a row
// without its brackets, a single value, or a decimal comma in a row.
func (r *Reader) CheckRows(f Field, what string, n int) {
	items := []Field{f}
	if IsList(f.Node) {
		items = r.Items(f, what)
	}
	var texts []string
	for _, item := range items {
		if IsList(item.Node) {
			if row := r.Items(item, what); len(row) > n && r.DecimalAdvice(item) != "" {
				r.FailAt(item.At, "%s: row of %d values; %d are wanted%s", what, len(row), n, r.DecimalAdvice(item))
			}
			continue
		}
		if text, ok := ScalarText(item.Node); ok && text != "" {
			texts = append(texts, text)
		}
	}

	switch {
	case len(texts) < len(items) || len(items) == 0:
	case len(texts) == 1 && n == 2:
		r.FailAt(f.At, "%s: one value, where rows are wanted; write %s: [[0, %s]]", what, f.Key, texts[0])
	case len(texts)%n == 0:
		var rows []string
		for row := range slices.Chunk(texts, n) {
			rows = append(rows, "["+strings.Join(row, ", ")+"]")
		}
		r.FailAt(f.At, "%s: a list of values, where rows are wanted; write %s: [%s]", what, f.Key, strings.Join(rows, ", "))
	}
}

// DecimalAdvice continues the error of a list that has too many items: with the number that a decimal
// comma cuts into two of them. It is "" if no comma, or more than one, is between two digits.
func (r *Reader) DecimalAdvice(list Field) (found string) {
	row := r.Items(list, list.Key)
	for i := 1; i < len(row); i++ {
		a, b := row[i-1], row[i]
		left, isText := ScalarText(a.Node)
		right, alsoText := ScalarText(b.Node)
		if isText && alsoText && a.At.Line == b.At.Line && b.At.Col == a.At.Col+len(left)+1 &&
			beforeComma.MatchString(left) && afterComma.MatchString(right) {
			if found != "" {
				return ""
			}
			found = "; decimals follow a point: " + left + "." + right
		}
	}
	return found
}
