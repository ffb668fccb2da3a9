// Package guide owns the output of the guides of lockstep: it finds the section of a topic and prints
// it for a terminal, as HTML and as a manual page. It does not know the subjects of the guides.
//
// The text of a guide is a Markdown file in the folder of the package that it describes; that
// package embeds it.
//
// Reading order: guide.go (Guide, Section, Blocks), terminal.go (Text), page.go (HTML, Manual).
package guide

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Guide is one Markdown file.
type Guide struct {
	Name   string // argument of `lockstep help`, such as "plant"
	Source []byte // Markdown: headings, paragraphs, lists, tables, code
}

// reader reads Markdown with tables; headings get an anchor.
var reader = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// blocks returns the guide's blocks, in their order.
func (g Guide) blocks() []ast.Node {
	return children(reader.Parser().Parse(text.NewReader(g.Source)))
}

// Title returns the text of the first heading.
func (g Guide) Title() string {
	for _, b := range g.blocks() {
		if _, ok := b.(*ast.Heading); ok {
			return g.inline(b)
		}
	}
	return g.Name
}

// Topics returns the topics named by the headings below the title, in their order. A heading
// "`spring`, `damper`" names two topics; the topic of "Values over time" is "values-over-time".
func (g Guide) Topics() (list []string) {
	for _, b := range g.blocks() {
		if h, ok := b.(*ast.Heading); ok && h.Level > 1 {
			list = append(list, topics(g.inline(h))...)
		}
	}
	return list
}

func topics(heading string) []string {
	list := strings.Split(strings.ToLower(heading), ",")
	for i, t := range list {
		list[i] = strings.ReplaceAll(strings.TrimSpace(t), " ", "-")
	}
	return list
}

// Section returns the section of a topic: the first heading that names it, and the text up to the
// next heading of the same or a higher level. It returns false where no heading names the topic.
func (g Guide) Section(topic string) (Guide, bool) {
	from, level := -1, 0
	for _, b := range g.blocks() {
		h, ok := b.(*ast.Heading)
		switch {
		case !ok:
		case from < 0 && h.Level > 1 && slices.Contains(topics(g.inline(h)), topic):
			from, level = lineStart(g.Source, h), h.Level
		case from >= 0 && h.Level <= level:
			return Guide{g.Name, g.Source[from:lineStart(g.Source, h)]}, true
		}
	}

	if from < 0 {
		return Guide{}, false
	}
	return Guide{g.Name, g.Source[from:]}, true
}

// lineStart returns the index in the source at which the line of a heading begins.
func lineStart(source []byte, h *ast.Heading) int {
	return bytes.LastIndexByte(source[:h.Lines().At(0).Start], '\n') + 1
}

// Block is a code block of a guide.
type Block struct {
	Language string // the word after the fence, such as "yaml"; may be ""
	Text     string
	Line     int // line number of its first line in the guide, from 1
}

// Blocks returns the code blocks whose fence names a language, in their order.
func (g Guide) Blocks() (list []Block) {
	for _, b := range g.blocks() {
		if c, ok := b.(*ast.FencedCodeBlock); ok && c.Lines().Len() > 0 && c.Info != nil {
			line := 1 + bytes.Count(g.Source[:c.Lines().At(0).Start], []byte("\n"))
			list = append(list, Block{string(c.Language(g.Source)), string(c.Lines().Value(g.Source)), line})
		}
	}
	return list
}

// children returns the children of a node.
func children(n ast.Node) (list []ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		list = append(list, c)
	}
	return list
}
