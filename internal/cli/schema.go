package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/output"
)

// SchemaCommand is `ebpfprof schema`: the tables of a dataset, their columns,
// types, units and meaning. It needs neither a dataset nor root.
func SchemaCommand() *urfave.Command {
	return &urfave.Command{
		Name:      "schema",
		Usage:     "print the tables of a dataset: columns, types, units, meaning",
		ArgsUsage: "[TABLE…]",
		Flags: []urfave.Flag{
			&urfave.StringFlag{Name: "format", Value: "table", Usage: "table, markdown, json, or sql: views of the tables for DuckDB"},
		},
		Action: func(c *urfave.Context) error {
			arguments, err := Interspersed(c)
			if err != nil {
				return urfave.Exit(err, 2)
			}
			tables, err := chooseTables(arguments)
			if err != nil {
				return urfave.Exit(err, 2)
			}
			if err := printSchema(c.App.Writer, tables, len(arguments) == 0, c.String("format")); err != nil {
				return urfave.Exit(err, 2)
			}
			return nil
		},
	}
}

// chooseTables returns the tables of these names, all when there are none.
func chooseTables(names []string) ([]output.Table, error) {
	all := output.Schema()
	if len(names) == 0 {
		return all, nil
	}
	var tables []output.Table
	for _, name := range names {
		i := slices.IndexFunc(all, func(t output.Table) bool { return t.Name == name })
		if i < 0 {
			var known []string
			for _, t := range all {
				known = append(known, t.Name)
			}
			return nil, fmt.Errorf("no table %q: choose one of %s", name, strings.Join(known, ", "))
		}
		tables = append(tables, all[i])
	}
	return tables, nil
}

func printSchema(w io.Writer, tables []output.Table, all bool, format string) error {
	switch format {
	case "table":
		for i, t := range tables {
			if i > 0 {
				fmt.Fprintln(w)
			}
			printTable(w, t)
		}
	case "markdown":
		if all {
			fmt.Fprint(w, output.Markdown())
			return nil
		}
		for _, t := range tables {
			fmt.Fprint(w, output.TableMarkdown(t))
		}
	case "json":
		return output.WriteSchema(w, tables)
	case "sql":
		if !all {
			return errors.New("the views are those of all tables: name no table with --format sql")
		}
		fmt.Fprint(w, output.Views())
	default:
		return fmt.Errorf("unknown format %q: one of table, markdown, json, sql", format)
	}
	return nil
}

func printTable(w io.Writer, schema output.Table) {
	fmt.Fprintf(w, "%s: a row is %s.\n", schema.Name, schema.Row)
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(table.Row{"column", "type", "unit", "meaning"})
	for _, c := range schema.Columns {
		sqlType := string(c.Type)
		if c.Nullable {
			sqlType += " or NULL"
		}
		t.AppendRow(table.Row{c.Name, sqlType, c.Unit, c.Description})
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 4, WidthMax: 72, WidthMaxEnforcer: text.WrapSoft}})
	t.Render()
}
