package answer

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// Format is --format, or --json.
func Format(c *urfave.Context, formats []string) (string, error) {
	format := c.String("format")
	if c.Bool("json") {
		if c.IsSet("format") && format != "json" {
			return "", cli.Usagef("one of --json and --format")
		}
		format = "json"
	}
	if !slices.Contains(formats, format) {
		return "", cli.Usagef("unknown format %q: one of %v", format, formats)
	}
	return format, nil
}

// To writes into the file of --output, which is not there when it fails, or to
// standard output.
func To(c *urfave.Context, write func(io.Writer) error) (err error) {
	name := c.String("output")
	if name == "" || name == "-" {
		return write(c.App.Writer)
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err = errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// Text prints what people read, with the names of jobs in it, as no terminal obeys it.
func Text(w io.Writer, print func(io.Writer)) error {
	var text strings.Builder
	print(&text)
	_, err := io.WriteString(w, printable.Lines(text.String()))
	return err
}

// JSON writes one indented value to standard output.
func JSON(c *urfave.Context, value any) error { return Indented(c.App.Writer, value) }

// Indented writes one indented value.
func Indented(w io.Writer, value any) error {
	encoder := json.NewEncoder(printable.JSON(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
