package host

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// TerminalWidth returns the width of a terminal, columns; 0 where f is no terminal.
func TerminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// Fold returns a writer of whole lines to f. Where f is a terminal, lines that are too long for it
// are broken between words; any other file gets the lines unchanged.
func Fold(f *os.File) io.Writer {
	if TerminalWidth(f) == 0 {
		return f
	}
	return &lineFolder{to: f, width: func() int { return TerminalWidth(f) }}
}

// lineFolder folds lines to the width of a terminal.
type lineFolder struct {
	to      io.Writer
	width   func() int // columns
	pending []byte     // unfinished line
	column  int        // first column of the text of the previous line, 0: unknown
}

// Width returns the width of the terminal, columns.
func (f *lineFolder) Width() int { return f.width() }

// Write implements io.Writer. An unfinished line is held back until its end is written.
func (f *lineFolder) Write(p []byte) (int, error) {
	text := append(f.pending, p...)
	end := bytes.LastIndexByte(text, '\n') + 1
	var out strings.Builder
	for line := range strings.Lines(string(text[:end])) {
		f.fold(&out, []rune(line[:len(line)-1]))
	}
	f.pending = append([]byte(nil), text[end:]...)
	_, err := io.WriteString(f.to, out.String())
	return len(p), err
}

// minFold is the narrowest terminal that lines are folded for, columns.
const minFold = 40

// fold writes a line. It is broken at the gap before a column in its second half, otherwise
// between words; what follows begins below the last column of the first half. A word that is
// longer than the terminal is wide stays whole, and so does advice after "-> ", which may be a
// command to copy.
func (f *lineFolder) fold(out *strings.Builder, line []rune) {
	width := max(f.width(), minFold)
	_, column := gaps(line, width)
	text := strings.TrimLeft(string(line), " ")
	indent := len(line) - utf8.RuneCountInString(text) + 2
	switch before := f.column; {
	case column > 0:
		indent, f.column = column, column
	case before > 0 && before < len(line) && line[before-1] == ' ' && line[before] != ' ':
		indent = before
	case text == "":
		f.column = 0
	}

	indent = min(indent, width/2)
	for len(line) > width && !strings.HasPrefix(text, "-> ") {
		gap, _ := gaps(line, width)
		if gap == 0 {
			gap = lastBlank(line, indent, width)
		}
		if gap == len(line) {
			break
		}
		out.WriteString(strings.TrimRight(string(line[:gap]), " ") + "\n")
		rest := strings.TrimLeft(string(line[gap:]), " ")
		line = []rune(strings.Repeat(" ", indent) + rest)
	}
	out.WriteString(string(line) + "\n")
}

// gaps returns where the last gap of two blanks or more in the second half of the width begins, 0
// if there is none, and where the text after the last gap in the first half begins. The last eighth
// does not count: rows of a table break before the same column, however long their cells are.
func gaps(line []rune, width int) (gap, column int) {
	for i := 0; i < len(line) && i <= width; {
		n := i
		for n < len(line) && line[n] == ' ' {
			n++
		}
		switch blanks := n - i; {
		case i == 0 || blanks < 2 || n == len(line):
		case n <= width/2:
			column = n
		case n <= width-width/8:
			gap = i
		}
		i = max(n, i+1)
	}
	return gap, column
}

// lastBlank returns the last blank up to width after indent, otherwise the first one beyond; the
// length of the line if there is none.
func lastBlank(line []rune, indent, width int) int {
	found := len(line)
	for i := indent + 1; i < len(line) && (i <= width || found == len(line)); i++ {
		if line[i] == ' ' && line[i-1] != ' ' {
			found = i
		}
	}
	return found
}
