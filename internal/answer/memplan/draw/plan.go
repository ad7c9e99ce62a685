package draw

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"html"
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"io"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/amount"
)

// Rectangle is a block in a plan.
type Rectangle struct {
	Lower, Upper int64 // ticks
	Offset, Size int64
	Label        string // shown when pointed at; equal labels have equal colours
}

// Plan is blocks in time × offset.
type Plan struct {
	Title      string
	Rectangles []Rectangle
	Peak       int64
	Bound      int64 // drawn as a line, if above 0
}

// drawn is how many rectangles a picture has at most: the largest ones. A browser
// is slow with more, and they are smaller than its pixels.
const drawn = 20_000

const planHeight = 560.0

func (p Plan) extent() (first, last int64) {
	if len(p.Rectangles) == 0 {
		return 0, 1
	}
	first, last = p.Rectangles[0].Lower, p.Rectangles[0].Upper
	for _, r := range p.Rectangles {
		first, last = min(first, r.Lower), max(last, r.Upper)
	}
	return first, max(last, first+1)
}

func (p Plan) largest() []Rectangle {
	all := slices.Clone(p.Rectangles)
	slices.SortStableFunc(all, func(a, b Rectangle) int {
		return cmp.Compare(float64(b.Size)*float64(b.Upper-b.Lower), float64(a.Size)*float64(a.Upper-a.Lower))
	})
	return all[:min(len(all), drawn)]
}

// WriteSVG draws the plan; pointing at a block says which it is.
func (p Plan) WriteSVG(w io.Writer) error {
	first, last := p.extent()
	most := max(p.Peak, p.Bound, 1)
	x := func(tick int64) float64 { return left + (width-left-right)*float64(tick-first)/float64(last-first) }
	y := func(bytes int64) float64 {
		return planHeight - bottom - (planHeight-top-bottom)*float64(bytes)/float64(most)
	}
	var b strings.Builder
	title := p.Title
	if n := len(p.Rectangles) - drawn; n > 0 {
		title += fmt.Sprintf(" (the %d smallest of %d blocks are not drawn)", n, len(p.Rectangles))
	}
	open(&b, width, planHeight, title)
	for n := range int64(5) {
		v := most / 4 * n
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, width-right, y(v), y(v), left-6, y(v)+4, amount.Bytes(v))
	}
	for _, r := range p.largest() {
		c := colour(r.Label)
		fmt.Fprintf(&b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="#%02x%02x%02x" stroke="#fff" stroke-width="0.3"><title>%s</title></rect>`+"\n",
			x(r.Lower), y(r.Offset+r.Size), x(r.Upper)-x(r.Lower), y(r.Offset)-y(r.Offset+r.Size), c.R, c.G, c.B,
			html.EscapeString(fmt.Sprintf("%s: %s at %d, ticks %d to %d", r.Label, amount.Bytes(r.Size), r.Offset, r.Lower, r.Upper)))
	}
	for _, l := range []struct {
		at          int64
		name, paint string
	}{{p.Peak, "peak", "#c00"}, {p.Bound, "lower bound", "#080"}} {
		if l.at > 0 {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="4,3"><title>%s %d</title></line>`+"\n",
				left, width-right, y(l.at), y(l.at), l.paint, l.name, l.at)
		}
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">tick %d</text><text x="%.1f" y="%.1f" text-anchor="end">tick %d</text></svg>`+"\n",
		left, planHeight-12, first, width-right, planHeight-12, last)
	_, err := io.WriteString(w, b.String())
	return err
}

// WritePNG draws the blocks alone, without words: 1920 × 1080.
func (p Plan) WritePNG(w io.Writer) error {
	const wide, high = 1920, 1080
	picture := image.NewRGBA(image.Rect(0, 0, wide, high))
	imagedraw.Draw(picture, picture.Bounds(), image.White, image.Point{}, imagedraw.Src)
	first, last := p.extent()
	most := max(p.Peak, p.Bound, 1)
	x := func(tick int64) int { return int(float64(wide) * float64(tick-first) / float64(last-first)) }
	y := func(bytes int64) int { return high - int(float64(high-1)*float64(bytes)/float64(most)) }
	for _, r := range p.largest() {
		area := image.Rect(x(r.Lower), y(r.Offset+r.Size), max(x(r.Upper), x(r.Lower)+1), max(y(r.Offset), y(r.Offset+r.Size)+1))
		imagedraw.Draw(picture, area, image.NewUniform(colour(r.Label)), image.Point{}, imagedraw.Src)
	}
	if p.Bound > 0 {
		line := image.Rect(0, y(p.Bound), wide, y(p.Bound)+1)
		imagedraw.Draw(picture, line, image.NewUniform(color.RGBA{0, 128, 0, 255}), image.Point{}, imagedraw.Src)
	}
	return png.Encode(w, picture)
}

// colour is a light one that is always the same for a label.
func colour(label string) color.RGBA {
	h := fnv.New32a()
	io.WriteString(h, label)
	n := h.Sum32()
	return color.RGBA{uint8(90 + n%130), uint8(90 + n>>8%130), uint8(90 + n>>16%130), 255}
}
