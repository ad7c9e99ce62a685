package c10d

// hiddenResult is in which argument register the first argument of a function is that
// returns an object. System V: the first argument says where a result goes that is no plain word.
const hiddenResult = 1
