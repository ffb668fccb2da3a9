package c99

import (
	"fmt"
	"go/ast"
	"strings"
)

const cWidth = 108 // columns, with tabs of 4

// lines collects lines of C.
type lines struct {
	text   []string
	indent int // tabs
}

// put adds a line. A line longer than cWidth is broken after a comma or an operator.
func (l *lines) put(format string, args ...any) {
	line := format
	if len(args) > 0 {
		line = fmt.Sprintf(format, args...)
	}
	if line == "" {
		l.blank()
		return
	}

	tabs := l.indent
	for {
		cut := breakAt(line, cWidth-4*tabs)
		l.text = append(l.text, strings.Repeat("\t", tabs)+line[:cut])
		if cut == len(line) {
			return
		}
		line, tabs = line[cut+1:], l.indent+1
	}
}

// blank adds an empty line, except after an empty line or an opening brace.
func (l *lines) blank() {
	if n := len(l.text); n > 0 && l.text[n-1] != "" && !strings.HasSuffix(l.text[n-1], "{") {
		l.text = append(l.text, "")
	}
}

// append adds a comment to the last line.
func (l *lines) append(text string) {
	if text != "" {
		l.text[len(l.text)-1] += " " + text
	}
}

// breakAt returns the index of the space at which a line is broken: the last one within width that
// follows a comma or an operator and is least nested. Without such a space it is the line's length.
func breakAt(line string, width int) int {
	if len(line) <= width {
		return len(line)
	}
	best, least, depth, quoted := len(line), 1<<30, 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"' && (i == 0 || line[i-1] != '\\'):
			quoted = !quoted
		case quoted:
		case c == '/' && i+1 < len(line) && line[i+1] == '/':
			return best
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ' ' && i > 0 && strings.IndexByte(",;+-*/%&|^<>=?:", line[i-1]) >= 0:
			if i > width && best < len(line) {
				return best
			}
			if depth <= least || i < width/2 {
				best, least = i, depth
			}
		}
	}

	return best
}

// comment adds the lines of a Go comment.
func (l *lines) comment(group *ast.CommentGroup) {
	if group == nil {
		return
	}
	for i, c := range group.List {
		if c.Text == "//" && i+1 < len(group.List) && commentText(group.List[i+1].Text) == "" {
			continue // empty line between the text and a directive
		}
		for line := range strings.Lines(commentText(c.Text)) {
			l.text = append(l.text, strings.Repeat("\t", l.indent)+strings.TrimRight(line, "\n"))
		}
	}
}

// commentText returns a Go comment as a comment of C, or "" for a directive. It removes trigraphs
// and a backslash at the end of a line.
func commentText(text string) string {
	if strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//nolint") || strings.HasPrefix(text, "//line") {
		return ""
	}
	if block, ok := strings.CutPrefix(text, "/*"); ok {
		var out []string
		for line := range strings.Lines(strings.TrimSuffix(block, "*/")) {
			out = append(out, strings.TrimRight("// "+strings.TrimSpace(line), " "))
		}
		return commentText(strings.Join(out, "\n"))
	}

	text = strings.ReplaceAll(text, "??", "? ?")
	out := strings.Split(text, "\n")
	for i := range out {
		if out[i] = strings.TrimRight(out[i], " \t\r"); strings.HasSuffix(out[i], `\`) {
			out[i] += "."
		}
	}

	return strings.Join(out, "\n")
}

// cString returns a string literal of C.
func cString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '?':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}

	b.WriteByte('"')
	return b.String()
}
