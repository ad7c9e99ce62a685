package main

// What commands have in common: the format and the place of what they write.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/printable"
)

// formatOf is --format, or --json.
func formatOf(c *urfave.Context, formats []string) (string, error) {
	format := c.String("format")
	if c.Bool("json") {
		if c.IsSet("format") && format != "json" {
			return "", usageError(errors.New("one of --json and --format"))
		}
		format = "json"
	}
	if !known(formats, format) {
		return "", usageError(fmt.Errorf("unknown format %q: one of %v", format, formats))
	}
	return format, nil
}

// writeOutput writes to --output, or to standard output.
func writeOutput(c *urfave.Context, write func(io.Writer) error) (err error) {
	if !c.IsSet("output") {
		return write(c.App.Writer)
	}
	path := c.String("output")
	if path == "-" {
		return write(c.App.Writer)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if err = errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// writeText prints what people read, with the names of jobs in it, as no terminal
// obeys it.
func writeText(w io.Writer, print func(io.Writer)) error {
	var text strings.Builder
	print(&text)
	_, err := io.WriteString(w, printable.Lines(text.String()))
	return err
}

func writeIndented(w io.Writer, v any) error {
	encoder := json.NewEncoder(printable.JSON(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
