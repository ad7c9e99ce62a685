package nvml

// Return is what a call returns, nvmlReturn_t.
type Return uint32

const (
	Success          Return = 0
	InvalidArgument  Return = 2
	NotSupported     Return = 3
	NoPermission     Return = 4
	NotFound         Return = 6
	InsufficientSize Return = 7
	FunctionNotFound Return = 13
)

// ValueType says how a value is stored, nvmlValueType_t.
type ValueType uint32

const (
	Double ValueType = iota
	UnsignedInt
	UnsignedLong
	UnsignedLongLong
	SignedLongLong
	SignedInt
)

// Sampling is what the driver samples by itself, nvmlSamplingType_t.
type Sampling uint32

const (
	GPUUtilization    Sampling = 1
	MemoryUtilization Sampling = 2
)

// Clock is nvmlClockType_t.
type Clock uint32

const (
	ClockSM     Clock = 1
	ClockMemory Clock = 2
)

// PCIeCounter is nvmlPcieUtilCounter_t.
type PCIeCounter uint32

const (
	PCIeSent     PCIeCounter = 0
	PCIeReceived PCIeCounter = 1
)

// Policy is a reason for lower clocks whose time is counted, nvmlPerfPolicyType_t.
type Policy uint32

const (
	PolicyPower   Policy = 0
	PolicyThermal Policy = 1
)

// Bits of ThrottleReasons.
const (
	ThrottleGPUIdle            = 1 << 0
	ThrottleClocksSetting      = 1 << 1
	ThrottleSoftwarePowerCap   = 1 << 2
	ThrottleHardwareSlowdown   = 1 << 3
	ThrottleSyncBoost          = 1 << 4
	ThrottleSoftwareThermal    = 1 << 5
	ThrottleHardwareThermal    = 1 << 6
	ThrottleHardwarePowerBrake = 1 << 7
)

// IDs of Field.
const (
	FieldNVLinkSent     = 138
	FieldNVLinkReceived = 139
	FieldPCIeSent       = 197
	FieldPCIeReceived   = 198
)

// Metrics of GPM.
const (
	GPMGraphicsUtil       = 1
	GPMSMUtil             = 2
	GPMSMOccupancy        = 3
	GPMAnyTensorUtil      = 5
	GPMHalfTensorUtil     = 7
	GPMIntegerTensorUtil  = 9
	GPMDRAMBandwidth      = 10
	GPMFP64Util           = 11
	GPMFP32Util           = 12
	GPMFP16Util           = 13
	GPMPCIeSentRate       = 20
	GPMPCIeReceivedRate   = 21
	GPMNVLinkReceivedRate = 60
	GPMNVLinkSentRate     = 61
)
