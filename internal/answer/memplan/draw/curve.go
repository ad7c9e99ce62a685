// Package draw makes pictures of memory: live bytes over time, and plans as
// rectangles of time × offset. It owns how they look, as SVG and PNG.
package draw

import (
	"fmt"
	"html"
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"io"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/amount"
)

// Point is live bytes from an instant on.
type Point struct {
	Seconds  float64
	Min, Max int64
}

// Curve is live bytes over time.
type Curve struct {
	Title  string
	Points []Point
	End    float64   // seconds
	Steps  []float64 // seconds at which steps begin
	Peak   float64   // second of the peak
}

const (
	width, height = 960.0, 300.0
	left, right   = 80.0, 20.0
	top, bottom   = 34.0, 36.0
)

// WriteSVG draws the curve.
func (c Curve) WriteSVG(w io.Writer) error {
	var most int64 = 1
	for _, p := range c.Points {
		most = max(most, p.Max)
	}
	end := max(c.End, 1e-9)
	x := func(seconds float64) float64 { return left + (width-left-right)*seconds/end }
	y := func(bytes float64) float64 { return height - bottom - (height-top-bottom)*bytes/float64(most) }
	var b strings.Builder
	open(&b, width, height, c.Title)
	for n := range 5 {
		v := float64(most) * float64(n) / 4
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, width-right, y(v), y(v), left-6, y(v)+4, amount.Bytes(int64(v)))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%.4g s</text>`+"\n", x(end*float64(n)/4), height-12, end*float64(n)/4)
	}
	if len(c.Steps) <= 200 {
		for _, s := range c.Steps {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#eee"/>`+"\n", x(s), x(s), top, height-bottom)
		}
	}
	var upper, lower strings.Builder
	for i, p := range c.Points {
		next := end
		if i+1 < len(c.Points) {
			next = c.Points[i+1].Seconds
		}
		fmt.Fprintf(&upper, "%.1f,%.1f %.1f,%.1f ", x(p.Seconds), y(float64(p.Max)), x(next), y(float64(p.Max)))
		fmt.Fprintf(&lower, "%.1f,%.1f %.1f,%.1f ", x(p.Seconds), y(float64(p.Min)), x(next), y(float64(p.Min)))
	}
	fmt.Fprintf(&b, `<polygon points="%.1f,%.1f %s%.1f,%.1f" fill="#bcd3ee"/>`+"\n", x(0), y(0), upper.String(), x(end), y(0))
	fmt.Fprintf(&b, `<polygon points="%.1f,%.1f %s%.1f,%.1f" fill="#4a7ebb"/>`+"\n", x(0), y(0), lower.String(), x(end), y(0))
	fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#c00" stroke-dasharray="3,3"/>`, x(c.Peak), x(c.Peak), top,
		height-bottom)
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" fill="#c00" text-anchor="middle">peak %s</text>`+"\n",
		min(max(x(c.Peak), left+60), width-right-60), top-4, amount.Bytes(most))
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func open(b *strings.Builder, width, height float64, title string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n",
		width, height, width, height)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="8" y="14" font-weight="bold">%s</text>`+"\n",
		html.EscapeString(title))
}

// WritePNG draws the curve alone, without words: 1920 × 600.
func (c Curve) WritePNG(w io.Writer) error {
	const wide, high = 1920, 600
	picture := image.NewRGBA(image.Rect(0, 0, wide, high))
	imagedraw.Draw(picture, picture.Bounds(), image.White, image.Point{}, imagedraw.Src)
	var most int64 = 1
	for _, p := range c.Points {
		most = max(most, p.Max)
	}
	end := max(c.End, 1e-9)
	for i, p := range c.Points {
		next := end
		if i+1 < len(c.Points) {
			next = c.Points[i+1].Seconds
		}
		from, to := int(wide*p.Seconds/end), int(wide*next/end)+1
		for _, bar := range []struct {
			bytes int64
			paint color.RGBA
		}{{p.Max, color.RGBA{0xbc, 0xd3, 0xee, 255}}, {p.Min, color.RGBA{0x4a, 0x7e, 0xbb, 255}}} {
			area := image.Rect(from, high-int(float64(high)*float64(bar.bytes)/float64(most)), to, high)
			imagedraw.Draw(picture, area, image.NewUniform(bar.paint), image.Point{}, imagedraw.Src)
		}
	}
	return png.Encode(w, picture)
}
