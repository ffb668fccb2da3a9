package guide

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// Text writes the guide for a terminal of width columns, at least 40. Code is indented and never
// broken.
func (g Guide) Text(w io.Writer, width int) error {
	p := printer{Guide: g, width: max(width, 40)}
	for _, b := range g.blocks() {
		p.block(b, "")
	}
	_, err := io.WriteString(w, strings.TrimLeft(p.out.String(), "\n"))
	return err
}

// printer formats blocks as text, each after an empty line.
type printer struct {
	Guide
	width int // columns
	out   strings.Builder
}

// block prints a block whose lines begin with indent.
func (p *printer) block(n ast.Node, indent string) {
	switch n := n.(type) {
	case *ast.Heading:
		p.heading(n)
	case *ast.List:
		p.list(n, indent)
	case *tables.Table:
		p.table(n, indent)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		p.out.WriteString("\n")
		for line := range strings.Lines(string(n.Lines().Value(p.Source))) {
			p.out.WriteString(strings.TrimRight(indent+"    "+line, " \n") + "\n")
		}
	case *ast.Paragraph:
		p.out.WriteString("\n" + wrapped(p.inline(n), indent, indent, p.width))
	case *ast.TextBlock:
		p.out.WriteString(wrapped(p.inline(n), indent, indent, p.width))
	}
}

func (p *printer) heading(h *ast.Heading) {
	name := p.inline(h)
	p.out.WriteString("\n" + name + "\n")
	if h.Level < 3 {
		p.out.WriteString(strings.Repeat([]string{"=", "-"}[h.Level-1], utf8.RuneCountInString(name)) + "\n")
	}
}

// list prints the items of a list, each with its mark.
func (p *printer) list(l *ast.List, indent string) {
	p.out.WriteString("\n")
	for i, item := range children(l) {
		mark := "- "
		if l.IsOrdered() {
			mark = fmt.Sprintf("%d. ", l.Start+i)
		}

		inner := printer{Guide: p.Guide, width: p.width}
		for _, b := range children(item) {
			inner.block(b, indent+strings.Repeat(" ", len(mark)))
		}
		text := strings.TrimLeft(inner.out.String(), "\n ")
		p.out.WriteString(indent + mark + text)
	}
}

// table prints a table with aligned columns. The last column has the remaining width, and its text
// is broken between words.
func (p *printer) table(t *tables.Table, indent string) {
	var rows [][]string
	for _, row := range children(t) {
		var cells []string
		for _, cell := range children(row) {
			cells = append(cells, p.inline(cell))
		}
		rows = append(rows, cells)
	}

	last := len(rows[0]) - 1
	wide := make([]int, last)
	lead := len(indent)
	for i := range wide {
		for _, row := range rows {
			wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
		}
		lead += wide[i] + 2
	}
	if lead > p.width-20 { // no room for the last column: a paragraph for each row
		p.records(rows, indent)
		return
	}

	p.out.WriteString("\n")
	for i, row := range rows {
		head := indent
		for i, w := range wide {
			head += row[i] + strings.Repeat(" ", w-utf8.RuneCountInString(row[i])+2)
		}
		p.out.WriteString(wrapped(row[last], head, strings.Repeat(" ", lead), p.width))
		if i == 0 {
			p.out.WriteString(indent + strings.Repeat("-", min(p.width, lead+20)-len(indent)) + "\n")
		}
	}
}

// records prints a table as one paragraph per row, with a line for each column.
func (p *printer) records(rows [][]string, indent string) {
	for _, row := range rows[1:] {
		p.out.WriteString("\n")
		for i, cell := range row {
			head := indent + strings.Repeat("  ", min(i, 1))
			if cell != "" {
				p.out.WriteString(wrapped(rows[0][i]+": "+cell, head, head+"  ", p.width))
			}
		}
	}
}

// wrapped breaks text between words into lines of at most width columns. The first begins with
// head, the others with indent.
func wrapped(text, head, indent string, width int) string {
	var out strings.Builder
	line, begun := head, false
	for word := range strings.FieldsSeq(text) {
		if begun && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line, begun = indent, false
		}
		if begun {
			line += " "
		}
		line, begun = line+word, true
	}

	return out.String() + strings.TrimRight(line, " ") + "\n"
}

// inline returns the text of a node without its markup.
func (g Guide) inline(n ast.Node) string {
	var out strings.Builder
	for _, c := range children(n) {
		switch c := c.(type) {
		case *ast.Text:
			out.Write(c.Value(g.Source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(c.Value)
		case *ast.AutoLink:
			out.Write(c.URL(g.Source))
		default:
			out.WriteString(g.inline(c))
		}
	}

	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", `\|`, "|").Replace(out.String())
}

// Find returns the guide called topic, otherwise the first section with that topic. It searches the
// guides in their order.
func Find(guides []Guide, topic string) (Guide, bool) {
	topic = strings.ToLower(topic)
	if i := slices.IndexFunc(guides, func(g Guide) bool { return g.Name == topic }); i >= 0 {
		return guides[i], true
	}
	for _, g := range guides {
		if s, ok := g.Section(topic); ok {
			return s, true
		}
	}
	return Guide{}, false
}
