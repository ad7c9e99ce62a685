package tensor

import (
	"hash/fnv"
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Argument is one argument of an operator.
type Argument struct {
	Kind Kind
	// Type is what torch.profiler says of it where it is no tensor and has a value:
	// Scalar, ScalarList, TensorList; "" where that depends on the value.
	Type string
	// Slot is where among the captured arguments it is, -1: it is not captured.
	Slot int
}

// Kind is what can be read of an argument.
type Kind uint8

const (
	Other   Kind = iota
	One          // a tensor
	Perhaps      // an optional one
	Several      // a list
	Vector       // a std::vector: of one tensor it is that, of several a list
	Integer
	Boolean
	Integers
	Booleans
)

// Operator is a function of at::_ops whose arguments are read.
type Operator struct {
	Name      string
	Arguments []Argument
	Captures  []bpf.CallCapture
	// OnStack: some of them are passed there.
	OnStack bool
	// FlagFirst: an optional has its flag before its value (ABI.OldOptional).
	FlagFirst bool
	// Registers is which argument registers must be in place, a bit each.
	Registers uint8
	// Share is which of the arguments is one rank's share of a collective, -1: none.
	Share int
	// Identity is the function's, as good as unique: a hash of its symbol.
	Identity uint32
}

// Same reports whether another one is of the same function, read alike.
func (o *Operator) Same(other *Operator) bool {
	return o == other || other != nil && o.Identity == other.Identity && o.FlagFirst == other.FlagFirst
}

// identity tells functions apart that have the same place among the probes after each other.
func identity(symbol string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(symbol))
	return h.Sum32()
}

// ABI is how a library's functions are called.
type ABI struct {
	Machine elf.Machine
	// OldOptional: it is of the time before std::optional (#101995, PyTorch 2.4), and
	// its symbols say c10::optional.
	OldOptional bool
}

// mostCaptures is how many arguments can be captured (MAX_ARGS, bpf/wire.h).
const mostCaptures = len(bpf.CallProbeSpec{}.Capture)

// firstStackWord is where among the words of a call those of the stack begin
// (REGISTER_ARGS, bpf/regs.h), stackWords how many there are.
const (
	firstStackWord = 8
	stackWords     = 24
)

// Parse finds the arguments in an operator's symbol ("_ZN2at4_ops5addmm4callERKN…");
// returns is what its schema says it gives back. False where one lies where that
// does not tell, or where there is no tensor among them.
func Parse(operator, symbol, returns string, abi ABI) (*Operator, bool) {
	types, ok := parameters(demangle.Full(symbol))
	if !ok {
		return nil, false
	}
	hidden, ok := hiddenResult(returns)
	if !ok {
		return nil, false
	}
	p := placing{machine: abi.Machine, old: abi.OldOptional}
	if hidden && abi.Machine == elf.MachineX86_64 {
		p.integers = 1
	}
	o := &Operator{Name: operator, FlagFirst: abi.OldOptional, Share: -1, Identity: identity(symbol)}
	return o, o.arguments(types, &p)
}

// arguments places the arguments of these types, and reports whether all of them have a
// place and a tensor is among them.
func (o *Operator) arguments(types []string, p *placing) bool {
	numbers, tensors := strings.HasPrefix(o.Name, "aten::convolution"), false
	for _, t := range types {
		place, ok := p.place(t)
		if !ok {
			return false
		}
		a, c := describe(t, numbers)
		a.Slot = -1
		if c.Source != 0 {
			a.Slot = len(o.Captures)
			c.Index = uint8(place)
			o.Captures = append(o.Captures, c)
			if place >= firstStackWord {
				o.OnStack = true
			} else {
				o.Registers |= 1 << place
				if c.Source == uint8(bpf.CallTensorArgumentTENSOR_LIST) || c.Source == uint8(bpf.CallTensorArgumentTENSOR_NUMBERS) {
					o.Registers |= 1 << (place + 1)
				}
			}
		}
		tensors = tensors || a.Kind == One || a.Kind == Perhaps || a.Kind == Several || a.Kind == Vector
		o.Arguments = append(o.Arguments, a)
	}
	return tensors && len(o.Captures) <= mostCaptures && p.stack <= stackWords
}

// hiddenResult reports whether a function that returns what a schema says has a hidden
// first argument: where its result goes. A tensor does, a reference to one ("Tensor(a!)")
// does not; how tuples of references come back depends on the standard library.
func hiddenResult(returns string) (hidden, ok bool) {
	switch {
	case returns == "":
		return false, false
	case strings.HasPrefix(returns, "("):
		return returns != "()", !strings.Contains(returns, "!")
	case strings.HasSuffix(returns, "!)"):
		return false, strings.HasPrefix(returns, "Tensor(")
	case strings.HasPrefix(returns, "Tensor"), returns == "Scalar", returns == "SymInt":
		return true, true
	case returns == "bool", returns == "int", returns == "float", returns == "ScalarType":
		return false, true
	}
	return false, false
}

// parameters splits the parameter list of a demangled function.
func parameters(demangled string) ([]string, bool) {
	open := strings.IndexByte(demangled, '(')
	if open < 0 || !strings.HasSuffix(demangled, ")") {
		return nil, false
	}
	var types []string
	list, depth, from := demangled[open+1:len(demangled)-1], 0, 0
	for i, c := range list {
		switch {
		case c == '<' || c == '(':
			depth++
		case c == '>' || c == ')':
			depth--
		case c == ',' && depth == 0:
			types = append(types, strings.TrimSpace(list[from:i]))
			from = i + 1
		}
	}
	if last := strings.TrimSpace(list[from:]); last != "" {
		types = append(types, last)
	}
	return types, true
}

// describe says what an argument of a type is, and how it is captured. Numbers are
// captured only where they count.
func describe(t string, numbers bool) (a Argument, c bpf.CallCapture) {
	capture := func(kind bpf.CallTensorArgument) { c.Source = uint8(kind) }
	number := func(kind Kind, how bpf.CallTensorArgument) {
		if numbers {
			a.Kind = kind
			capture(how)
		}
	}
	switch {
	case t == "at::Tensor const&", t == "at::Tensor&":
		a.Kind = One
		capture(bpf.CallTensorArgumentTENSOR_ONE)
	case t == "std::optional<at::Tensor> const&":
		a.Kind = Perhaps
		capture(bpf.CallTensorArgumentTENSOR_OPTIONAL)
	case t == "c10::optional<at::Tensor> const&":
		a.Kind = Perhaps
		capture(bpf.CallTensorArgumentTENSOR_OPTIONAL)
		c.Offset[0] = 8
	case t == "std::vector<at::Tensor, std::allocator<at::Tensor> >&":
		a.Kind, a.Type = Vector, "TensorList"
		capture(bpf.CallTensorArgumentTENSOR_VECTOR)
	case t == "c10::ArrayRef<at::Tensor>":
		a.Kind, a.Type = Several, "TensorList"
		capture(bpf.CallTensorArgumentTENSOR_LIST)
	case t == "c10::IListRef<at::Tensor> const&":
		a.Kind, a.Type = Several, "TensorList"
		capture(bpf.CallTensorArgumentTENSOR_LIST_BEHIND)
	case t == "c10::ArrayRef<long>", t == "c10::ArrayRef<c10::SymInt>":
		a.Type = "ScalarList"
		number(Integers, bpf.CallTensorArgumentTENSOR_NUMBERS)
	case t == "c10::SymInt":
		a.Type = "Scalar"
		number(Integer, bpf.CallTensorArgumentTENSOR_NUMBER_BEHIND)
	case t == "long":
		a.Type = "Scalar"
		number(Integer, bpf.CallTensorArgumentTENSOR_NUMBER)
	case t == "bool":
		a.Type = "Scalar"
		number(Boolean, bpf.CallTensorArgumentTENSOR_NUMBER)
	case strings.HasPrefix(t, "std::array<bool,"):
		a.Type = "ScalarList"
		number(Booleans, bpf.CallTensorArgumentTENSOR_NUMBER)
	case t == "double", t == "c10::Scalar const&", t == "c10::ScalarType", t == "c10::MemoryFormat", t == "c10::Layout":
		a.Type = "Scalar"
	}
	return a, c
}
