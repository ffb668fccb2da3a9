package guide

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// page is the template of a guide in HTML. The page refers to no other file.
var page = template.Must(template.New("guide").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 sans-serif; max-width: 54em; margin: 2em auto; padding: 0 1em }
pre { overflow-x: auto; padding: .6em 1em; background: #8882 }
code { font-size: .92em }
table { border-collapse: collapse } td, th { border: 1px solid #8886; padding: .2em .6em; text-align: left; vertical-align: top }
</style></head><body>
{{.Body}}</body></html>
`))

// HTML writes the guide as one HTML page.
func (g Guide) HTML(w io.Writer) error {
	var body bytes.Buffer
	if err := reader.Convert(g.Source, &body); err != nil {
		return err
	}
	return page.Execute(w, struct {
		Title string
		Body  template.HTML // trusted: the guides are embedded
	}{g.Title(), template.HTML(body.String())})
}

// manualWidth is the width of tables in a manual page, columns; its terminal is unknown.
const manualWidth = 72

// Manual writes the guide as the manual page lockstep-NAME(7) of a version and date.
func (g Guide) Manual(w io.Writer, version, date string) error {
	var out strings.Builder
	name := "lockstep-" + g.Name
	fmt.Fprintf(&out, ".TH %s 7 %q %q \"lockstep\"\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n",
		strings.ToUpper(Roff(name)), date, "lockstep "+Roff(version), Roff(name), Roff(g.Title()))
	for i, b := range g.blocks() {
		if i == 0 { // the title
			out.WriteString(".SH DESCRIPTION\n")
			continue
		}
		g.manual(&out, b)
	}
	_, err := io.WriteString(w, afterHeading.ReplaceAllString(out.String(), "$1"))
	return err
}

// afterHeading matches a heading and the paragraph macro behind it, which mandoc calls empty.
var afterHeading = regexp.MustCompile(`(?m)^(\.S[HS] .*\n)\.PP\n`)

// manual writes a block in the troff macros of manual pages.
func (g Guide) manual(out *strings.Builder, n ast.Node) {
	switch n := n.(type) {
	case *ast.HTMLBlock: // a comment
	case *ast.Heading:
		macro := ".SS"
		if n.Level == 2 {
			macro = ".SH"
		}
		fmt.Fprintf(out, "%s %s\n", macro, Roff(g.inline(n)))
	case *ast.List:
		for i, item := range children(n) {
			mark := `\(bu`
			if n.IsOrdered() {
				mark = fmt.Sprint(n.Start+i, ".")
			}
			fmt.Fprintf(out, ".IP %s 3\n", mark)
			for k, b := range children(item) {
				if k > 0 {
					out.WriteString(".IP\n")
				}
				fmt.Fprintln(out, Roff(g.inline(b)))
			}
		}
	case *tables.Table:
		p := printer{Guide: g, width: manualWidth}
		p.table(n, "")
		verbatim(out, strings.TrimLeft(p.out.String(), "\n"))
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		verbatim(out, string(n.Lines().Value(g.Source)))
	default:
		fmt.Fprintf(out, ".PP\n%s\n", Roff(g.inline(n)))
	}
}

// verbatim writes lines that troff prints unchanged.
func verbatim(out *strings.Builder, text string) {
	out.WriteString(".PP\n.in +4\n.EX\n")
	for line := range strings.Lines(text) {
		out.WriteString(Roff(strings.TrimRight(line, "\n")) + "\n")
	}
	out.WriteString(".EE\n.in\n")
}

// Roff escapes text for troff, so that it is printed unchanged and its hyphens can be copied.
func Roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "\n", " ", "µ", `\[u00B5]`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
