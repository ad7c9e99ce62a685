package page

import (
	"io"
	"os"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

func TestALinkLosesItsHostAndItsToken(t *testing.T) {
	for link, want := range map[string]string{
		"http://127.0.0.1:8080/#token=abc&timeline?from=1ms": "timeline?from=1ms", "timeline?from=1ms&sel=7.7~3": "timeline?from=1ms&sel=7.7~3",
		"#flame": "flame", "": "",
	} {
		if got := fragment(link); got != want {
			t.Errorf("%s: %s, want %s", link, got, want)
		}
	}
}

func serve(t *testing.T, arguments ...string) error {
	t.Helper()
	app := &urfave.App{Name: "ebpfprof", Writer: io.Discard, ErrWriter: io.Discard, Commands: []*urfave.Command{ServeCommand()},
		ExitErrHandler: func(*urfave.Context, error) {}}
	return app.RunContext(t.Context(), append([]string{"ebpfprof", "serve"}, arguments...))
}

func TestMistakesAreSentences(t *testing.T) {
	for _, c := range []struct {
		arguments string
		code      int
		want      string
	}{
		{"d --port 70000", cli.ExitUsage, "ports go from 0"},
		{"d --port 1 --socket s", cli.ExitUsage, "exclude each other"},
		{"d --idle -1s", cli.ExitUsage, "positive time"},
		{"d e f", cli.ExitUsage, "compares two"},
		{"nothing ../../../answer/report/testdata/schema-1.1.0 --allow-root", cli.ExitFailed, "there is no dataset nothing"},
		{"nothing --allow-root", cli.ExitFailed, "there is no dataset nothing"},
	} {
		err := serve(t, strings.Fields(c.arguments)...)
		if err == nil || cli.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.arguments, err)
		}
	}
}

func TestRootIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this user is not root")
	}
	t.Setenv("SUDO_UID", "")
	if err := serve(t, "nothing"); cli.ExitCode(err) != cli.ExitNotPermitted || !strings.Contains(err.Error(), "--allow-root") {
		t.Errorf("%v", err)
	}
}
