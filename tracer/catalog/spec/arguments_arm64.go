package spec

// registerArguments is how many integer arguments come in registers: AAPCS64.
const registerArguments = 8
