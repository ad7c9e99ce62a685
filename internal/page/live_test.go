package page_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// The page of a recording that is being made goes along with it: the live view has its last rows, the timeline's end stays
// in view where it was, and no other part of it moves.
func TestAPageGoesAlongWithARecording(t *testing.T) {
	r := begin(t)
	b := browse(t, r.dir)
	b.open("live")
	b.until(`document.querySelector(".first").textContent.startsWith("Recording for")`)
	b.until(`document.querySelectorAll(".tile").length >= 4 && document.querySelector("#views a").textContent === "Live"`)
	r.second(7)
	b.until(`document.querySelector(".tile .note").textContent.startsWith("20 recorded")`)

	// The whole recording is in view, and stays so.
	b.open("timeline")
	b.until(`main.timeline.laid.rows === 20`)
	r.second(7)
	b.until(`main.timeline.laid.rows === 30 && main.timeline.view.from === 0 && main.timeline.view.until > main.timeline.laid.span_ns`)
	b.until(`main.timeline.picture.calls.reduce((all, n) => all + n, 0) === 30`)
	// The last tenth of a second: the view goes along, as near as it was.
	b.do(chromedp.Evaluate[chromedp.Void](`main.timeline.move(main.timeline.laid.span_ns - 1e8, main.timeline.laid.span_ns + 1e6)`))
	r.second(7)
	b.until(`main.timeline.laid.rows === 40 && main.timeline.view.until > main.timeline.laid.span_ns`)
	if size := evaluate[float64](b, "main.timeline.view.until - main.timeline.view.from"); size < 1.009e8 || size > 1.011e8 {
		t.Errorf("%v ns are in view, not as many as before", size)
	}
	// A part further back stays where it is.
	b.do(chromedp.Evaluate[chromedp.Void](`main.timeline.move(5e8, 9e8)`))
	r.second(7)
	b.until(`main.timeline.laid.rows === 50`)
	if from := evaluate[float64](b, "main.timeline.view.from"); from != 5e8 {
		t.Errorf("the view begins at %v ns", from)
	}

	// A view that cannot go along says that there is more.
	b.open("operators")
	r.second(7)
	b.until(`document.querySelector("#notice").textContent.includes("has gone on")`)
	b.do(chromedp.Click(`#notice button`))
	b.until(`document.querySelector("#notice").hidden && document.querySelector("main.operators[data-drawn=yes]") !== null`)

	b.open("live")
	r.end()
	b.until(`document.querySelector(".first").textContent.startsWith("The recording has ended")`)
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector("#notice").textContent.includes("was removed")`)
	b.clean()
}
