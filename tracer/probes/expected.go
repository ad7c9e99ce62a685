package probes

import "time"

// Which operators a job uses is seen a moment after it has begun to, and the first calls
// of each go unseen until its probe is in. In training that moment is part of a step, for
// which other steps stand; what builds a model runs once. So where a library is new to its
// processes, what most models are built with is put in before it is used.

// expectFor is how long these are waited for: each takes time to be put in and taken out
// again for every slice.
const expectFor = time.Minute

// expected are the operators behind the constructors of torch.nn, torch.nn.init, the
// factories of tensors, and the first step of torch.optim.
var expected = map[string]bool{
	"aten::arange": true, "aten::clone": true, "aten::copy_": true, "aten::detach": true, "aten::empty": true,
	"aten::empty_like": true, "aten::empty_strided": true, "aten::fill_": true, "aten::full": true, "aten::mul_": true,
	"aten::normal_": true, "aten::ones": true, "aten::rand": true, "aten::randint": true, "aten::randn": true,
	"aten::random_": true, "aten::to": true, "aten::trunc_normal_": true, "aten::uniform_": true, "aten::zero_": true,
	"aten::zeros": true, "aten::zeros_like": true,
}

// expectation is what a file's processes are expected to use soon.
type expectation struct {
	decided bool
	until   time.Time
}

// decide is called once it is known which functions of a file are used: where none is, as
// in a library that was just loaded, some are expected.
func (e *expectation) decide(any bool) {
	if e.decided {
		return
	}
	e.decided = true
	if !any {
		e.until = time.Now().Add(expectFor)
	}
}

// is reports whether a function is put in although nothing calls it yet.
func (e *expectation) is(name string) bool {
	return expected[name] && !e.until.IsZero() && time.Now().Before(e.until)
}
