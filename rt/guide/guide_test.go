package guide

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const sample = "# A guide\n\nIt says `what` a *thing* is, in a line that is longer than forty columns.\n\n" +
	"## Values over time\n\n- first, which is long enough for a second line of text\n- second\n\n" +
	"1. one\n2. two\n\n```yaml\nplant: x\n  a: 'b'\n```\n\n### `spring`, `damper`\n\n<!-- remark -->\n\n" +
	"| key | unit | meaning |\n|---|---|---|\n| `c` | N.m/rad | stiffness of the spring between both flanges |\n| `d` |  | damping |\n\n" +
	"## After\n\n.dot\n"

var g = Guide{"sample", []byte(sample)}

func TestSectionEndsAtTheNextHeadingOfItsLevel(t *testing.T) {
	if got := g.Topics(); !slices.Equal(got, []string{"values-over-time", "spring", "damper", "after"}) {
		t.Errorf("topics %q", got)
	}
	for topic, want := range map[string][2]string{
		"damper": {"### `spring`", "damping |"}, "values-over-time": {"## Values", "damping |"}, "after": {"## After", ".dot"},
	} {
		s, ok := Find([]Guide{g}, topic)
		if text := strings.TrimSpace(string(s.Source)); !ok || !strings.HasPrefix(text, want[0]) || !strings.HasSuffix(text, want[1]) {
			t.Errorf("%s: %q, want from %q to %q", topic, text, want[0], want[1])
		}
	}
	if s, ok := Find([]Guide{g}, "A-guide"); ok {
		t.Errorf("the title is a topic: %q", s.Source)
	}
}

func TestBlocksHaveTheirLine(t *testing.T) {
	b := g.Blocks()
	if len(b) != 1 || b[0].Language != "yaml" || b[0].Text != "plant: x\n  a: 'b'\n" {
		t.Fatalf("%+v", b)
	}
	if line := strings.Split(sample, "\n")[b[0].Line-1]; line != "plant: x" {
		t.Errorf("line %d is %q", b[0].Line, line)
	}
}

func TestTextFitsTheTerminal(t *testing.T) {
	for width := 40; width < 130; width += 7 {
		var out bytes.Buffer
		if err := g.Text(&out, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if strings.Join(strings.Fields(out.String()), " ") == "" || strings.ContainsAny(out.String(), "`|") || strings.Contains(out.String(), "remark") {
			t.Errorf("%d columns: %s", width, &out)
		}
	}
	var out bytes.Buffer
	_ = g.Text(&out, 60)
	want := "key  unit     meaning\n----------------------------------\n" +
		"c    N.m/rad  stiffness of the spring between both flanges\nd             damping\n"
	if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "\n\n    plant: x\n      a: 'b'\n") {
		t.Errorf("%s", &out)
	}
}

func TestManualPageIsValidTroff(t *testing.T) {
	var out bytes.Buffer
	if err := g.Manual(&out, "1.0", ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH LOCKSTEP\\-SAMPLE 7", ".SS spring, damper", "\n\\&.dot\n", "a: \\(aqb\\(aq"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "remark") || strings.Contains(out.String(), ".PP\n\n") {
		t.Errorf("a comment is printed in\n%s", &out)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		return // only the text above can be checked without groff
	}
	c := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
	c.Stdin = &out
	if says, err := c.CombinedOutput(); err != nil || len(says) > 0 {
		t.Errorf("%v: %s", err, says)
	}
}

func TestHTMLContainsTables(t *testing.T) {
	var out bytes.Buffer
	if err := g.HTML(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>A guide</title>", `<h2 id="values-over-time">`, "<td>damping</td>", "<code>what</code>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
