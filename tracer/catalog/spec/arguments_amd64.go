package spec

// registerArguments is how many integer arguments come in registers: System V.
const registerArguments = 6
