package tensor

import (
	"strconv"

	"github.com/ebpfprof/ebpfprof/internal/flops"
)

// scalarTypes are the names of c10::ScalarType by their numbers, as torch.profiler
// writes them: the names of their C++ types. From torch/headeronly/core/ScalarType.h
// of 2.15.0; none has ever changed its number.
var scalarTypes = [...]string{
	"unsigned char", "signed char", "short int", "int", "long int", "c10::Half", "float", "double",
	"c10::complex<c10::Half>", "c10::complex<float>", "c10::complex<double>", "bool",
	"c10::qint8", "c10::quint8", "c10::qint32", "c10::BFloat16", "c10::quint4x2", "c10::quint2x4",
	"c10::bits1x8", "c10::bits2x4", "c10::bits4x2", "c10::bits8", "c10::bits16",
	"c10::Float8_e5m2", "c10::Float8_e4m3fn", "c10::Float8_e5m2fnuz", "c10::Float8_e4m3fnuz",
	"short unsigned int", "unsigned int", "long unsigned int",
	"c10::dummy_uint1_7_t<1u>", "c10::dummy_uint1_7_t<2u>", "c10::dummy_uint1_7_t<3u>", "c10::dummy_uint1_7_t<4u>",
	"c10::dummy_uint1_7_t<5u>", "c10::dummy_uint1_7_t<6u>", "c10::dummy_uint1_7_t<7u>",
	"c10::dummy_int1_7_t<1u>", "c10::dummy_int1_7_t<2u>", "c10::dummy_int1_7_t<3u>", "c10::dummy_int1_7_t<4u>",
	"c10::dummy_int1_7_t<5u>", "c10::dummy_int1_7_t<6u>", "c10::dummy_int1_7_t<7u>",
	"c10::Float8_e8m0fnu", "c10::Float4_e2m1fn_x2", "", "", "", "",
}

func typeName(number uint16) string {
	if int(number) < len(scalarTypes) {
		return scalarTypes[number]
	}
	return ""
}

// deviceTypes are the names of c10::DeviceType by their numbers, as PyTorch writes them
// (torch/headeronly/core/DeviceType.h of 2.15.0; number 8 was called ort before).
var deviceTypes = [...]string{
	"cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan", "metal", "xpu", "mps",
	"meta", "hpu", "ve", "lazy", "ipu", "mtia", "privateuseone",
}

// place is the device of a tensor, or of the first of a list, as PyTorch writes it; "" is none.
func (s *slot) place() string {
	switch {
	case !s.there || s.device < 0 || int(s.device) >= len(deviceTypes):
		return ""
	case s.index < 0:
		return deviceTypes[s.device]
	}
	return deviceTypes[s.device] + ":" + strconv.Itoa(int(s.index))
}

// bytes are those of the elements of a tensor, or of all in a list, as JSON: null where
// that is not known, as of a list with tensors of several types, or of more than are
// looked at.
func (s *slot) bytes() string {
	size := flops.ElementSize(typeName(s.kind))
	if !s.there || s.unmatched || size <= 0 {
		return "null"
	}
	return strconv.FormatUint(s.elements*uint64(size), 10)
}
