package page_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow"
)

// On a phone two fingers zoom a flow's picture about the place between them, one moves it, and a tap opens a node; buttons and keys do the same.
func TestPictureByTouch(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{Passwords: true})
	fan := flow.New("fan").Noop("first")
	var all []string
	for i := range 12 {
		name := "part-" + strconv.Itoa(i)
		fan.Noop(name).After("first").Noop(name + "-done").After(name)
		all = append(all, name+"-done")
	}
	fan.Noop("last").After(all...)
	h.push(t, "etl", fan)
	b := h.Browser("admin")
	b.View(390, false)
	b.Go("/flows/etl/fan")
	b.WaitUntil(`document.querySelector("figure.graph svg") !== null`)
	b.Eval(`(document.querySelector("figure.graph .view").scrollIntoView({block: "center"}), "")`)
	numbers := func(expression string) (list []float64) {
		t.Helper()
		for text := range strings.FieldsSeq(b.Eval(expression)) {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
		return list
	}
	// look is the upper left corner of what is shown, and how large a pixel of the picture is.
	look := func() (x, y, scale float64) {
		t.Helper()
		l := numbers(`(() => {
			const v = document.querySelector("figure.graph svg").viewBox.baseVal;
			return [v.x, v.y, document.querySelector("figure.graph .view").clientWidth / v.width].join(" ");
		})()`)
		return l[0], l[1], l[2]
	}
	box := numbers(`(() => { const b = document.querySelector("figure.graph .view").getBoundingClientRect(); return [b.left, b.top, b.width, b.height].join(" "); })()`)
	at := func(x, y float64) pagetest.Finger { return pagetest.Finger{X: box[0] + x*box[2], Y: box[1] + y*box[3]} }
	near := func(what string, got, want, within float64) {
		t.Helper()
		if math.Abs(got-want) > within {
			t.Errorf("%s is %.2f, want %.2f", what, got, want)
		}
	}
	x, y, scale := look()
	b.View(900, false)
	pgtest.Eventually(t, pagetest.Patience, func() bool { _, _, wide := look(); return wide > scale*1.2 }, "the picture to fit a wider view")
	b.View(390, false)
	pgtest.Eventually(t, pagetest.Patience, func() bool { backX, backY, back := look(); return backX == x && backY == y && back == scale }, "and a narrow one again")
	b.Eval(`(document.querySelector("figure.graph .view").scrollIntoView({block: "center"}), "")`)
	b.Touch([]pagetest.Finger{at(.4, .5), at(.6, .5)}, []pagetest.Finger{at(.35, .5), at(.65, .5)}, []pagetest.Finger{at(.3, .5), at(.7, .5)})
	x2, y2, scale2 := look()
	near("the scale after two fingers went apart", scale2/scale, 2, .05)
	near("the place between them", x2+box[2]/2/scale2, x+box[2]/2/scale, 3)
	b.Touch([]pagetest.Finger{at(.5, .5)}, []pagetest.Finger{at(.4, .45)}, []pagetest.Finger{at(.3, .4)})
	x3, y3, scale3 := look()
	near("the scale after a drag", scale3, scale2, .001)
	near("the way to the side", x3-x2, .2*box[2]/scale2, 8)
	if y3 == y2 && y2 == y {
		t.Error("the picture did not move up")
	}
	b.Touch([]pagetest.Finger{at(.2, .5), at(.8, .5)}, []pagetest.Finger{at(.4, .5), at(.6, .5)})
	if _, _, now := look(); now > scale2/2 {
		t.Errorf("the scale after two fingers went together is %.2f of %.2f", now, scale2)
	}
	_, _, mine := look()
	b.View(900, false)
	b.WaitUntil(`document.querySelector("figure.graph .view").clientWidth > 600`)
	if _, _, now := look(); math.Abs(now-mine) > .001 {
		t.Errorf("what was zoomed to %.3f is %.3f in a wider view", mine, now)
	}
	b.View(390, false)
	if path := b.Path(); path != "/flows/etl/fan" {
		t.Fatalf("a drag led to %s", path)
	}
	for _, one := range []struct {
		what string
		do   func()
		more bool
	}{
		{"button +", func() { b.Click(`[data-zoom="in"]`) }, true},
		{"button -", func() { b.Click(`[data-zoom="out"]`) }, false},
		{"key +", func() { key(b, "+") }, true},
		{"key -", func() { key(b, "-") }, false},
	} {
		_, _, before := look()
		one.do()
		if _, _, after := look(); (after > before) != one.more || after == before {
			t.Errorf("%s: from %.3f to %.3f", one.what, before, after)
		}
	}
	b.Click(`[data-zoom="all"]`)
	b.Eval(`(document.querySelector("figure.graph .view").scrollIntoView({block: "center"}), "")`)
	node := numbers(`(() => { const b = document.querySelector("figure.graph #n0 rect").getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2].join(" "); })()`)
	b.Touch([]pagetest.Finger{{X: node[0], Y: node[1]}})
	b.WaitFor("#node", "Node first")
}

// key presses a key in the picture.
func key(b *pagetest.Browser, name string) {
	b.Eval(fmt.Sprintf(`document.querySelector("figure.graph .view").dispatchEvent(new KeyboardEvent("keydown", {key: %q}))`, name))
}
