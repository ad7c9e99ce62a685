package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli/commands/analysis"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page"
)

// training is a recording of a training job that an earlier version made.
const training = "../answer/report/testdata/schema-1.1.0"

// client asks a server as its page does.
type client struct {
	t     *testing.T
	url   string
	token string
}

// serve opens a page on a dataset.
func serve(t *testing.T, path string, o page.Options) client {
	t.Helper()
	_, c := serveBoth(t, path, o)
	return c
}

func serveBoth(t *testing.T, path string, o page.Options) (*page.Server, client) {
	t.Helper()
	server, err := page.New(path, o)
	if err != nil {
		t.Fatal(err)
	}
	over := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		over.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	_, fragment, _ := strings.Cut(server.Address("x", ""), "#")
	return server, client{t, over.URL, strings.TrimPrefix(fragment, "token=")}
}

// do sends a request; change may alter it.
func (c client) do(method, path string, change func(*http.Request)) (*http.Response, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer, string(body)
}

// get returns an answer of status 200.
func (c client) get(path string) string {
	c.t.Helper()
	answer, body := c.do("GET", path, nil)
	if answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s %s", path, answer.Status, body)
	}
	return body
}

// report is what the command line prints.
func report(t *testing.T, arguments ...string) string {
	t.Helper()
	var out bytes.Buffer
	app := &urfave.App{Name: "ebpfprof", Writer: &out, ErrWriter: io.Discard, Commands: []*urfave.Command{analysis.ReportCommand()}}
	if err := app.RunContext(t.Context(), append([]string{"ebpfprof", "report", "--json"}, arguments...)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheReportIsTheCommandLinesByteForByte(t *testing.T) {
	c := serve(t, training, page.Options{})
	for query, flags := range map[string][]string{
		"":                 nil,
		"?step=1":          {"--step", "1"},
		"?from=100&to=400": {"--from", "100", "--to", "400"},
	} {
		if got, want := c.get("/api/report"+query), report(t, append(flags, training)...); got != want {
			t.Errorf("%s: the page has %d bytes, the command line %d", query, len(got), len(want))
		}
	}
}

func TestSeveralTabsShareOneReport(t *testing.T) {
	c := serve(t, training, page.Options{})
	texts := make(chan string)
	for range 5 {
		go func() {
			_, body := c.do("GET", "/api/report", nil)
			texts <- body
		}()
	}
	first := <-texts
	for range 4 {
		if text := <-texts; text != first || !json.Valid([]byte(text)) {
			t.Errorf("%.80s, and %.80s", first, text)
		}
	}
}

func TestOnlyThePageItselfGetsData(t *testing.T) {
	c := serve(t, training, page.Options{})
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"the page":         {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, http.StatusOK},
		"a forwarded port": {func(r *http.Request) { r.Host = "localhost:8080" }, http.StatusOK},
		"no token":         {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"another token":    {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.token+"x") }, http.StatusUnauthorized},
		"the token as cookie": {func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(&http.Cookie{Name: "token", Value: c.token})
		}, http.StatusUnauthorized},
		"a rebound name":   {func(r *http.Request) { r.Host = "attacker.example:80" }, http.StatusForbidden},
		"a name like ours": {func(r *http.Request) { r.Host = "127.0.0.1.attacker.example" }, http.StatusForbidden},
		"another site":     {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another port":     {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
	} {
		answer, body := c.do("GET", "/api/dataset", test.change)
		if answer.StatusCode != test.want {
			t.Errorf("%s: %s, want %d", name, answer.Status, test.want)
		}
		if test.want != http.StatusOK && (strings.Contains(body, "schema-1.1.0") || !strings.Contains(body, `"error":`)) {
			t.Errorf("%s: %s", name, body)
		}
	}
	if answer, _ := c.do("POST", "/api/dataset", nil); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %s", answer.Status)
	}
}

func TestEveryAnswerHasItsHeadersAndNoCookie(t *testing.T) {
	c := serve(t, training, page.Options{})
	for _, path := range []string{"/", "/main.js", "/style.css", "/nothing", "/api/dataset", "/api/nothing", "/../server.go"} {
		answer, _ := c.do("GET", path, nil)
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
		} {
			if got := answer.Header.Get(header); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s is %q", path, header, got)
			}
		}
		if len(answer.Cookies()) > 0 || answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, answer.Header)
		}
	}
}

func TestTheShellHoldsNoDataAndNeedsNoToken(t *testing.T) {
	c := serve(t, training, page.Options{})
	first := 0
	for _, path := range []string{"/", "/main.js", "/api.js", "/text.js", "/overview.js", "/timeline.js", "/gestures.js", "/picture.js",
		"/layout.js", "/paint.js", "/inspector.js", "/layers.js", "/table.js",
		"/flame.js", "/source.js", "/style.css", "/icon.svg"} {
		answer, body := c.do("GET", path, func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Accept-Encoding", "gzip")
		})
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %s %v", path, answer.Status, answer.Header)
		}
		first += len(body)
		again, _ := c.do("GET", path, func(r *http.Request) { r.Header.Set("If-None-Match", answer.Header.Get("ETag")) })
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s, known: %s", path, again.Status)
		}
	}
	if first > 70_000 {
		t.Errorf("the first load is %d bytes, more than 70 kB", first)
	}
}

// Names of the job reach the page as text nodes: its scripts have nothing that makes markup or code of text.
func TestTheScriptsMakeNoMarkupOfText(t *testing.T) {
	scripts, err := filepath.Glob("assets/*.js")
	if err != nil || len(scripts) < 8 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc",
			"http:", "//cdn"} {
			if strings.Contains(string(text), word) && !(word == "http:" && script == "assets/text.js") { // SVG's name space
				t.Errorf("%s has %s", script, word)
			}
		}
	}
}

func TestPartsThatCannotBeMeantAreRefused(t *testing.T) {
	c := serve(t, training, page.Options{})
	for query, want := range map[string]string{
		"step=x": "no number", "step=-1": "no number", "from=NaN": "milliseconds", "from=-1": "milliseconds", "from=3&to=2": "not before",
		"step=1&from=2": "omit",
	} {
		answer, body := c.do("GET", "/api/report?"+query, nil)
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %s %s", query, answer.Status, body)
		}
	}
	if answer, body := c.do("GET", "/api/report?rank=7", nil); answer.StatusCode != http.StatusNotFound || !strings.Contains(body,
		"no rank 7") {
		t.Errorf("rank 7: %s %s", answer.Status, body)
	}
}

// status is what the page knows of its dataset; it waits until that is so.
func (c client) status(is func(pageState) bool) (now pageState) {
	c.t.Helper()
	version := int64(0)
	for {
		if err := json.Unmarshal([]byte(c.get(fmt.Sprintf("/api/status?after=%d", version))), &now); err != nil {
			c.t.Fatal(err)
		}
		if version = now.Version; is(now) {
			return now
		}
	}
}

type pageState struct {
	Version, Edition int64
	Recording, Gone  bool
	Problem          string
}

func TestADatasetThatGoesOrChangesIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	if err := os.CopyFS(path, os.DirFS(training)); err != nil {
		t.Fatal(err)
	}
	c := serve(t, path, page.Options{})
	first := c.status(func(pageState) bool { return true })
	if first.Recording || first.Gone || first.Problem != "" {
		t.Errorf("%+v", first)
	}
	before := c.get("/api/dataset")
	files, err := filepath.Glob(filepath.Join(path, "span", "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if err := os.Truncate(file, 100); err != nil {
			t.Fatal(err)
		}
	}
	// Cut files are left out, and the page names them.
	c.status(func(now pageState) bool { return now.Edition > first.Edition })
	if after := c.get("/api/dataset"); strings.Contains(before, "span") || !strings.Contains(after, "span/") {
		t.Errorf("cut: %s", after)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	c.status(func(now pageState) bool { return now.Gone })
	if answer, body := c.do("GET", "/api/report", nil); answer.StatusCode != http.StatusGone || !strings.Contains(body,
		"was removed while the page was open") {
		t.Errorf("removed: %s %s", answer.Status, body)
	}
}

func TestADatasetThatCannotBeOpenedIsAnError(t *testing.T) {
	if _, err := page.New(filepath.Join(t.TempDir(), "nothing"), page.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := page.New(t.TempDir(), page.Options{}); !errors.Is(err, dataset.ErrNotDataset) {
		t.Error(err)
	}
}

func TestATakenPortIsASentence(t *testing.T) {
	first, err := page.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	address := first.Addr().(*net.TCPAddr)
	if !address.IP.IsLoopback() {
		t.Errorf("it listens on %s", address)
	}
	if _, err := page.Listen(address.Port); err == nil || !strings.Contains(err.Error(), "is taken: choose another with --port") {
		t.Error(err)
	}
}

func TestASocketIsOnlyTheUsersAndIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	for range 2 {
		listener, err := page.ListenSocket(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if _, err := page.ListenSocket(path); err == nil || !strings.Contains(err.Error(), "server that runs") {
			t.Error(err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := page.ListenSocket(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Error(err)
	}
}

func TestAnIdleServerEnds(t *testing.T) {
	server, err := page.New(training, page.Options{Idle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	listener, err := page.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(t.Context(), listener); !errors.Is(err, page.ErrIdle) {
		t.Error(err)
	}
}

func TestAServerEndsWithItsContext(t *testing.T) {
	server, err := page.New(training, page.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	listener, err := page.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, listener) }()
	answer, err := http.Get("http://" + listener.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
