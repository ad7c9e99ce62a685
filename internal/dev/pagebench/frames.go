package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// watchFrames notes when the browser draws.
const watchFrames = `(() => {
	window.frameTimes = [];
	let last = 0;
	const each = (now) => {
		if (window.frameTimes === null) return;
		if (last) window.frameTimes.push(now - last);
		last = now;
		requestAnimationFrame(each);
	};
	requestAnimationFrame(each);
	return true;
})()`

const takeFrames = `(() => { const t = window.frameTimes; window.frameTimes = null; return t; })()`

// gestures pans by the mouse and zooms by the wheel and by keys, as somebody does who looks around.
func gestures(ctx context.Context) error {
	mouse := func(kind input.DispatchMouseEventType, x, y float64, more ...chromedp.MouseOption) error {
		return chromedp.Do(ctx, chromedp.MouseEvent(kind, x, y, more...))
	}
	for round := range 4 {
		y := 250.0 + 30*float64(round)
		if err := mouse("mousePressed", 900, y, chromedp.ButtonType("left"), chromedp.ButtonModifiers(chromedp.ModifierShift)); err != nil {
			return err
		}
		for i := range 40 {
			x := 900 - 12*float64(i)
			if round%2 == 1 {
				x = 420 + 12*float64(i)
			}
			if err := mouse("mouseMoved", x, y, chromedp.ButtonType("left"), chromedp.ButtonModifiers(chromedp.ModifierShift)); err != nil {
				return err
			}
		}
		if err := mouse("mouseReleased", 600, y, chromedp.ButtonType("left"), chromedp.ButtonModifiers(chromedp.ModifierShift)); err != nil {
			return err
		}
		for i := range 24 {
			by := -60.0
			if i >= 12 {
				by = 60
			}
			wheel := func(p *input.DispatchMouseEventParams) {
				p.DeltaX, p.DeltaY = 0.01, by // both must be there
				p.Modifiers = int64(chromedp.ModifierCtrl)
			}
			if err := mouse("mouseWheel", 700, y, wheel); err != nil {
				return err
			}
		}
		if err := chromedp.Do(ctx, chromedp.KeyEvent("w"), chromedp.KeyEvent("w"), chromedp.KeyEvent("s"), chromedp.KeyEvent("s"),
			chromedp.KeyEvent(kb.Shift)); err != nil {
			return err
		}
	}
	return nil
}

// frames are the times between frames while somebody pans and zooms: median, 95 % and the longest.
func frames(ctx context.Context) (string, error) {
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](watchFrames)); err != nil {
		return "", err
	}
	if err := gestures(ctx); err != nil {
		return "", err
	}
	all, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](takeFrames))
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "no frames", nil
	}
	slices.Sort(all)
	at := func(share float64) float64 { return all[min(len(all)-1, int(share*float64(len(all))))] }
	return strings.Join([]string{fmt.Sprintf("%.1f", at(0.5)), fmt.Sprintf("%.1f", at(0.95)), fmt.Sprintf("%.0f ms (%d frames)",
		all[len(all)-1], len(all))}, ", "), nil
}
