package c10d

// hiddenResult is in which argument register the first argument of a function is that
// returns an object. AAPCS64: where such a result goes is in x8, which is no argument.
const hiddenResult = 0
