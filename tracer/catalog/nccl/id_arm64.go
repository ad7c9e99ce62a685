package nccl

// Where ncclCommInitRank has its rank and its id on this architecture.
const rankArgument = 3

var uniqueID = idBehind(2)
