package catalog

// registerArguments is how many integer arguments come in registers: AAPCS64.
const registerArguments = 8

// hiddenResult is in which argument register the first argument of a function is that
// returns an object. AAPCS64: where such a result goes is in x8, which is no argument.
const hiddenResult = 0
