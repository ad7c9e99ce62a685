package tracer

import "testing"

func TestRequestsWaitForADecoderInTheirOrder(t *testing.T) {
	s := &Session{}
	var got []int
	for i := range 5000 { // nobody takes them yet
		s.do(func(*decoder) { got = append(got, i) })
	}
	s.serve()
	if len(got) != 5000 {
		t.Fatalf("%d of 5000 were run", len(got))
	}
	for i, n := range got {
		if n != i {
			t.Fatalf("request %d ran as number %d", n, i)
		}
	}
}
