package decode

import "testing"

func TestRequestsWaitForTheDecoderInTheirOrder(t *testing.T) {
	d, _, _ := testDecoder(t)
	var got []int
	for i := range 5000 { // they are not taken yet
		d.Do(func(*Decoder) { got = append(got, i) })
	}
	d.Serve()
	if len(got) != 5000 {
		t.Fatalf("%d of 5000 were run", len(got))
	}
	for i, n := range got {
		if n != i {
			t.Fatalf("request %d ran as number %d", n, i)
		}
	}
}
