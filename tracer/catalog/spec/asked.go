package spec

// What a user asks to be probed beside the catalog: functions and probes that the authors of a program left in it
// (USDT). Their arguments have names and types, and no meaning.

// LayerUser is the layer of such calls.
const LayerUser = "user"

// Kind is how an argument is shown.
type Kind uint8

const (
	Signed Kind = iota
	Unsigned
	Boolean
	Pointer
	String // what a char * points to
)

// Argument is one value that a row of such a call has.
type Argument struct {
	Name string
	Kind Kind
	Bits uint8 // of a number; 0 is 64
	// Value is which of the function's Values it is, NoValue if Constant is it, or nothing is where Unread says why.
	Value    int8
	Constant int64
	Unread   string
}

// NoValue is an Argument's Value that is captured nowhere.
const NoValue = -1

// Note names a USDT probe.
type Note struct{ Provider, Name string }

func (n Note) String() string { return n.Provider + ":" + n.Name }

// Asked is what the user said about a function.
type Asked struct {
	Text string // the flag's value
	// File is the base name of the file that has it, up to a version or a dash (libfoo.so is libfoo.so.1.2); "" is any.
	File      string
	Symbol    string // as it was written, mangled or not
	Note      Note   // of a USDT probe, whose Function has no Symbol
	Arguments []Argument
	Returned  *Argument // how the returned value is shown, nil if it is not read
}

// Strings has a bit for each of the Values that is a pointer to a string.
func (a *Asked) Strings() (bits uint8) {
	for _, argument := range a.Arguments {
		if argument.Kind == String && argument.Value >= 0 {
			bits |= 1 << argument.Value
		}
	}
	return bits
}

// MostStrings is how many of the first Values may be strings.
const MostStrings = 8

// MostValues is how many Values a call has room for, beside its stack.
const MostValues = maxValues - 1

// RegisterArguments is how many integer arguments come in registers.
const RegisterArguments = registerArguments
