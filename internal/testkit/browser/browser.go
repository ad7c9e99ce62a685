// Package browser runs Debian's chromium without a window, for the tests and the pictures of the page.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// ErrNone is returned where no chromium is installed.
var ErrNone = errors.New("chromium is not installed: make deps installs Debian's")

// Open starts a browser with a window of that size; cancel ends it.
func Open(parent context.Context, width, height int) (ctx context.Context, cancel func(), err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, ErrNone
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(2*time.Minute), // on a machine that does much else
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"),
		// What chromium fetches by itself would look like a request of the page.
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("no-first-run", true),
	)
	allocator, end := chromedp.NewExecAllocator(parent, options...)
	ctx, endTab := chromedp.NewContext(allocator)
	cancel = func() { endTab(); end() }
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		return nil, nil, fmt.Errorf("starting chromium: %w", err)
	}
	return ctx, cancel, nil
}

// Start is Open for a test, which is skipped where there is no chromium.
func Start(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel, err := Open(t.Context(), 1280, 800)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	return ctx
}
