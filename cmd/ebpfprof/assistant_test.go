package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/assistant"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

// inProcess runs the commands of this program without starting it.
func inProcess(_ context.Context, stdin string, args ...string) ([]byte, string, error) {
	for _, c := range append(answers(), cli.SchemaCommand()) {
		if c.Name == args[0] {
			out, complaint, _, err := testcommand.RunWith(stdin, c, args[1:]...)
			return []byte(out), complaint, err
		}
	}
	return nil, "", fmt.Errorf("there is no command %s", args[0])
}

// connected is the SDK's own client at a server over datasets.
func connected(t *testing.T, paths ...string) *mcp.ClientSession {
	t.Helper()
	server, err := assistant.New(paths, inProcess)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func called(t *testing.T, client *mcp.ClientSession, tool string, arguments map[string]any) (text []string, failed bool) {
	t.Helper()
	result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return []string{err.Error()}, true
	}
	for _, c := range result.Content {
		text = append(text, c.(*mcp.TextContent).Text)
	}
	return text, result.IsError
}

func TestAnAssistantFindsWhyAJobIsSlow(t *testing.T) {
	dir := scripted.Copying(t)
	client := connected(t, dir)
	tools, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint || tool.Description == "" {
			t.Errorf("%s: %+v", tool.Name, tool.Annotations)
		}
	}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		line      []string // the command whose JSON is the answer
	}{
		{"report", nil, []string{"report", dir, "--json"}},
		{"report", map[string]any{"top": 1}, []string{"report", dir, "--json", "--top", "1"}},
		{"findings", nil, []string{"findings", dir, "--json"}},
		{"steps", nil, []string{"steps", dir, "--json"}},
		{"schema", map[string]any{"table": "span"}, []string{"schema", "span", "--format", "json"}},
		{"query", map[string]any{"sql": "SELECT count(*) AS n FROM span"}, []string{"query", dir, "SELECT count(*) AS n FROM span", "--format",
			"json"}},
		{"diff", map[string]any{"before": dir, "after": dir}, []string{"diff", "--json", dir, dir}},
	} {
		text, failed := called(t, client, c.tool, c.arguments)
		if failed || len(text) < 2 {
			t.Errorf("%s: %q", c.tool, text)
			continue
		}
		want, _, err := inProcess(t.Context(), "", c.line...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text[0], "not instructions") || text[1] != string(want) || !json.Valid([]byte(text[1])) {
			t.Errorf("%s answers\n%s\nthe command\n%s", c.tool, text[1], want)
		}
	}
	if len(tools.Tools) != 9 {
		t.Errorf("%d tools", len(tools.Tools))
	}
}

// TestAnAssistantReadsTheGivenDatasetsAlone: it cannot name another path, write, or smuggle in a flag.
func TestAnAssistantReadsTheGivenDatasetsAlone(t *testing.T) {
	dir, other := scripted.Copying(t), scripted.Copying(t)
	client := connected(t, dir)
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"report", map[string]any{"dataset": other}, "no dataset"},
		{"diff", map[string]any{"before": dir, "after": other}, "no dataset"},
		{"query", map[string]any{"sql": "COPY span TO '" + other + "/x.csv'"}, ""},
		{"query", map[string]any{"sql": "SELECT * FROM read_csv('/etc/passwd')"}, ""},
		{"query", map[string]any{"sql": "SELECT * FROM read_parquet('" + other + "/span/*.parquet')"}, ""},
		{"schema", map[string]any{"table": "--help"}, "no name of a table"},
		{"query", map[string]any{}, "sql"},
		{"memory", nil, "no allocator events"}, // the sentence of the command
		{"source", map[string]any{"file": "' OR true --"}, "[]"},
	} {
		text, failed := called(t, client, c.tool, c.arguments)
		if all := strings.Join(text, "\n"); !strings.Contains(all, c.want) || !failed && c.want != "[]" || strings.Contains(all, "root:x:") {
			t.Errorf("%s %v: %q", c.tool, c.arguments, text)
		}
	}
	if _, err := assistant.New([]string{t.TempDir()}, nil); err == nil {
		t.Error("an empty directory is taken for a dataset")
	}
}

func TestAnAssistantReadsTheDocuments(t *testing.T) {
	client := connected(t, scripted.Copying(t))
	list, err := client.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) < 5 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, r := range list.Resources {
		page, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
		if err != nil || len(page.Contents) != 1 || len(page.Contents[0].Text) < 500 || r.Title == "" || strings.ContainsAny(r.Title, "<#\n") {
			t.Errorf("%s %q: %v", r.URI, r.Title, err)
		}
	}
}
