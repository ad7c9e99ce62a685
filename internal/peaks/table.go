// Package peaks knows what devices can do at most: operations and bytes a
// second, from their makers' data sheets, or measured on this machine.
package peaks

import (
	"slices"
	"strings"
	"unicode"
)

// Peak is what a device does at most. Dense operations, without sparsity.
type Peak struct {
	Device string
	// FLOPs per second by element type: bf16 (also fp16), tf32, fp32, fp64, fp8.
	FLOPs map[string]float64
	Bytes float64 // of its memory, per second
	Note  string  // where the numbers come from
}

// devices: from the makers' data sheets as published by November 2026 (NVIDIA
// A10, A40, A100, H100, H200, L4, L40S, V100, T4, B200, RTX 3090 and 4090; AMD Instinct MI210, MI250X,
// MI300A, MI300X, MI325X and MI355X). Matrix units, dense; fp32 is without tf32.
//
// AWS: the architecture pages of the Neuron documentation (Inferentia, Inferentia2, Trainium, Trainium2, Trainium3: "NeuronCore"
// compute of a whole chip, memory bandwidth of its HBM or DDR4). Google: the system architecture pages of Cloud TPU (v3,
// v4, v5e, v5p, v6e, TPU7x: "peak compute per chip" and "HBM bandwidth"), which give no figure for fp32. The names are
// those that instances, the Neuron driver and XLA (device_kind) use.
var devices = []struct {
	words []string
	peak  Peak
}{
	{[]string{"H200"}, sheet("NVIDIA H200", 989.4, 494.7, 66.9, 66.9, 1978.9, 4800)},
	{[]string{"H100", "NVL"}, sheet("NVIDIA H100 NVL", 835.5, 417.7, 60, 60, 1671, 3938)},
	{[]string{"H100", "PCIe"}, sheet("NVIDIA H100 PCIe", 756, 378, 51, 51, 1513, 2039)},
	{[]string{"H100"}, sheet("NVIDIA H100 SXM", 989.4, 494.7, 66.9, 66.9, 1978.9, 3352)},
	{[]string{"B200"}, sheet("NVIDIA B200", 2250, 1125, 75, 37, 4500, 7700)},
	{[]string{"A100", "80GB"}, sheet("NVIDIA A100 80GB", 312, 156, 19.5, 19.5, 0, 2039)},
	{[]string{"A100"}, sheet("NVIDIA A100 40GB", 312, 156, 19.5, 19.5, 0, 1555)},
	{[]string{"L40S"}, sheet("NVIDIA L40S", 362, 183, 91.6, 1.4, 733, 864)},
	{[]string{"L4"}, sheet("NVIDIA L4", 121, 60, 30.3, 0.5, 242, 300)},
	{[]string{"V100"}, sheet("NVIDIA V100", 125, 0, 15.7, 7.8, 0, 900)},
	{[]string{"T4"}, sheet("NVIDIA T4", 65, 0, 8.1, 0.25, 0, 320)},
	{[]string{"A10"}, sheet("NVIDIA A10", 125, 62.5, 31.2, 0.5, 0, 600)},
	{[]string{"A40"}, sheet("NVIDIA A40", 149.7, 74.8, 37.4, 0.6, 0, 696)},
	{[]string{"4090"}, sheet("NVIDIA GeForce RTX 4090", 165.2, 82.6, 82.6, 1.3, 330.3, 1008)},
	{[]string{"3090"}, sheet("NVIDIA GeForce RTX 3090", 71, 35.5, 35.6, 0.6, 0, 936)},
	{[]string{"MI355X"}, sheet("AMD Instinct MI355X", 2516.6, 0, 157.3, 78.6, 5033.2, 8000)},
	{[]string{"MI325X"}, sheet("AMD Instinct MI325X", 1307.4, 653.7, 163.4, 163.4, 2614.9, 6000)},
	{[]string{"MI300X"}, sheet("AMD Instinct MI300X", 1307.4, 653.7, 163.4, 163.4, 2614.9, 5300)},
	{[]string{"MI250X"}, sheet("AMD Instinct MI250X", 383, 0, 95.7, 95.7, 0, 3277)},
	{[]string{"MI300A"}, sheet("AMD Instinct MI300A", 980.6, 490.3, 122.6, 122.6, 1961.2, 5300)},
	{[]string{"Trainium3"}, sheet("AWS Trainium3", 671, 671, 183, 0, 2517, 4900)},
	{[]string{"trn3"}, sheet("AWS Trainium3", 671, 671, 183, 0, 2517, 4900)},
	{[]string{"Trainium2"}, sheet("AWS Trainium2", 667, 667, 181, 0, 1299, 2900)},
	{[]string{"trn2"}, sheet("AWS Trainium2", 667, 667, 181, 0, 1299, 2900)},
	{[]string{"trn2u"}, sheet("AWS Trainium2", 667, 667, 181, 0, 1299, 2900)},
	{[]string{"Trainium"}, sheet("AWS Trainium", 190, 190, 47.5, 0, 190, 820)},
	{[]string{"trn1"}, sheet("AWS Trainium", 190, 190, 47.5, 0, 190, 820)},
	{[]string{"trn1n"}, sheet("AWS Trainium", 190, 190, 47.5, 0, 190, 820)},
	{[]string{"Inferentia2"}, sheet("AWS Inferentia2", 190, 190, 47.5, 0, 190, 820)},
	{[]string{"inf2"}, sheet("AWS Inferentia2", 190, 190, 47.5, 0, 190, 820)},
	{[]string{"Inferentia"}, sheet("AWS Inferentia", 64, 0, 0, 0, 0, 50)},
	{[]string{"inf1"}, sheet("AWS Inferentia", 64, 0, 0, 0, 0, 50)},
	{[]string{"TPU", "v3"}, sheet("Google TPU v3", 123, 0, 0, 0, 0, 900)},
	{[]string{"TPU", "v4"}, sheet("Google TPU v4", 275, 0, 0, 0, 0, 1200)},
	{[]string{"TPU", "v5", "lite"}, sheet("Google TPU v5e", 197, 0, 0, 0, 0, 819)},
	{[]string{"TPU", "v5e"}, sheet("Google TPU v5e", 197, 0, 0, 0, 0, 819)},
	{[]string{"TPU", "v5p"}, sheet("Google TPU v5p", 459, 0, 0, 0, 0, 2765)},
	{[]string{"TPU", "v5"}, sheet("Google TPU v5p", 459, 0, 0, 0, 0, 2765)},
	{[]string{"TPU", "v6e"}, sheet("Google TPU v6e", 918, 0, 0, 0, 0, 1640)},
	{[]string{"TPU", "v6"}, sheet("Google TPU v6e", 918, 0, 0, 0, 0, 1640)},
	{[]string{"TPU7x"}, sheet("Google TPU7x", 2307, 0, 0, 0, 4614, 7380)},
	{[]string{"MI210"}, sheet("AMD Instinct MI210", 181, 0, 45.3, 45.3, 0, 1638)},
}

// sheet takes tera-operations and gigabytes a second; 0 is what a device has not.
func sheet(name string, bf16, tf32, fp32, fp64, fp8, gigabytes float64) Peak {
	p := Peak{Device: name, FLOPs: map[string]float64{}, Bytes: gigabytes * 1e9, Note: "data sheet, dense"}
	for kind, tera := range map[string]float64{"bf16": bf16, "tf32": tf32, "fp32": fp32, "fp64": fp64, "fp8": fp8} {
		if tera > 0 {
			p.FLOPs[kind] = tera * 1e12
		}
	}
	return p
}

// Devices are all that are known.
func Devices() (all []Peak) {
	for _, d := range devices {
		all = append(all, d.peak)
	}
	return all
}

// FindAmong looks in a user's peaks first: theirs is the one whose name is a part of the device's.
func FindAmong(own []Peak, device string) (Peak, bool) {
	for _, p := range own {
		if device != "" && strings.Contains(strings.ToUpper(device), strings.ToUpper(p.Device)) {
			return p, true
		}
	}
	return Find(device)
}

// Find returns the peak of the device of that name; the first row all of whose
// words are in it.
func Find(device string) (Peak, bool) {
	upper := strings.ToUpper(device)
	for _, d := range devices {
		if !slices.ContainsFunc(d.words, func(w string) bool { return !endsIn(upper, strings.ToUpper(w)) }) {
			return d.peak, true
		}
	}
	return Peak{}, false
}

// endsIn reports whether a word of a name ends with another: an L40 is no L4, an A10G no A10.
func endsIn(name, word string) bool {
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if strings.HasSuffix(w, word) {
			return true
		}
	}
	return false
}

// Kind is the element type, as torch.profiler or C++ spell it, by which FLOPs
// are looked up; "" where it has none here.
func Kind(dtype string) string {
	switch strings.TrimPrefix(dtype, "c10::") {
	case "BFloat16", "Half", "bfloat16", "float16":
		return "bf16"
	case "float", "float32":
		return "fp32"
	case "double", "float64":
		return "fp64"
	case "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz":
		return "fp8"
	}
	return ""
}
