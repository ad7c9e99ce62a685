// Pagepictures draws the views of `ebpfprof serve` in chromium and writes them as PNG files:
//
//	go run ./internal/dev/pagepictures -dir docs/page DATASET
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/testkit/browser"
)

func main() {
	dir := flag.String("dir", ".", "where the pictures go")
	links := flag.String("links", "overview", "views, as the address names them, with ; between")
	width := flag.Int("width", 1280, "of the window")
	height := flag.Int("height", 800, "of the window")
	prefix := flag.String("prefix", "", "of the files' names")
	source := flag.String("source", "", "directory of source files")
	fleet := flag.String("store", "", "the fleet's store whose tables the dataset is")
	before := flag.String("before", "", "dataset to compare with")
	dark := flag.Bool("dark", false, "for a browser that prefers dark pages")
	flag.Parse()
	if err := run(flag.Arg(0), *dir, *prefix, page.Options{Source: *source, Before: *before, Store: *fleet}, strings.Split(*links, ";"), *width, *height,
		*dark); err != nil {
		fmt.Fprintln(os.Stderr, "pagepictures:", err)
		os.Exit(1)
	}
}

func run(path, dir, prefix string, options page.Options, links []string, width, height int, dark bool) error {
	server, err := page.New(path, options)
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := page.Listen(0)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	go func() { _ = server.Serve(ctx, listener) }()
	tab, cancel, err := browser.Open(ctx, width, height)
	if err != nil {
		return err
	}
	defer cancel()
	if dark {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
		if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
			return err
		}
	}
	for _, link := range links {
		name, _, _ := strings.Cut(link, "?")
		err := chromedp.Do(tab,
			chromedp.Navigate("about:blank"),
			chromedp.Navigate(server.Address(listener.Addr().String(), link)),
			chromedp.WaitReady(`main[data-drawn]`),
		)
		if err != nil {
			return fmt.Errorf("%s: %w", link, err)
		}
		picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			return fmt.Errorf("%s: %w", link, err)
		}
		file := filepath.Join(dir, prefix+name+".png")
		if err := os.WriteFile(file, picture, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d kB\n", file, len(picture)>>10)
	}
	return nil
}
