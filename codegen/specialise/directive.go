package specialise

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// directivePrefix begins a comment by which the kernel's source steers code generation.
//
//	//lockstep:noalias
//
// in the doc comment of a function says that no vector that it assigns to overlaps another of its
// vectors. Generated code may then add up the rows of a product one after the other.
const directivePrefix = "//lockstep:"

// ErrDirective is the error of a directive that is unknown or stands where it has no effect.
var ErrDirective = errors.New("bad directive")

// readDirectives notes the functions that the directives of a file are about.
func (p *program) readDirectives(file *ast.File) error {
	decls := map[*ast.CommentGroup]*ast.FuncDecl{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc != nil {
			decls[f.Doc] = f
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			name, ok := strings.CutPrefix(c.Text, directivePrefix)
			if !ok {
				continue
			}
			switch d := decls[group]; {
			case name != "noalias":
				return directiveError(p.fset, c, "unknown; the only one is "+directivePrefix+"noalias")
			case d == nil:
				return directiveError(p.fset, c, "not in the doc comment of a function")
			default:
				p.noalias[d] = true
			}
		}
	}
	return nil
}

func directiveError(fset *token.FileSet, c *ast.Comment, reason string) error {
	return fmt.Errorf("codegen: %s: %w %s: %s", fset.Position(c.Pos()), ErrDirective, c.Text, reason)
}
