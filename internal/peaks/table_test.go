package peaks

import "testing"

func TestTheDeviceIsTheOneThatItsNameSays(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "NVIDIA H100 SXM", "NVIDIA H100 PCIe": "NVIDIA H100 PCIe", "NVIDIA H100 NVL": "NVIDIA H100 NVL",
		"NVIDIA A100-SXM4-80GB": "NVIDIA A100 80GB", "NVIDIA A100-PCIE-40GB": "NVIDIA A100 40GB", "NVIDIA L40S": "NVIDIA L40S",
		"NVIDIA L4": "NVIDIA L4", "Tesla T4": "NVIDIA T4", "AMD Instinct MI300X": "AMD Instinct MI300X", "a toaster": "",
		"Trainium2": "AWS Trainium2", "trn1.32xlarge": "AWS Trainium", "inf2.xlarge": "AWS Inferentia2", "TPU v5 lite": "Google TPU v5e",
		"TPU v5p": "Google TPU v5p", "TPU v6 lite": "Google TPU v6e", "TPU7x": "Google TPU7x", "TPU v4": "Google TPU v4",
		"NVIDIA L40": "", "NVIDIA A10G": "", "NVIDIA A10": "NVIDIA A10", "NVIDIA T400": "", "NVIDIA GB200": "NVIDIA B200",
		"Tesla V100-SXM2-16GB": "NVIDIA V100", "trn1n.32xlarge": "AWS Trainium", "trn2u.48xlarge": "AWS Trainium2", "TPU v6e": "Google TPU v6e",
	} {
		if got, ok := Find(name); got.Device != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got.Device, ok, want)
		}
	}
}

func TestPeaksAreInTheOrderOfTheirTypes(t *testing.T) {
	for _, d := range devices {
		p := d.peak
		if p.Bytes < 5e10 || p.FLOPs["bf16"] < p.FLOPs["fp32"] || p.FLOPs["fp32"] < p.FLOPs["fp64"] ||
			p.FLOPs["fp8"] > 0 && p.FLOPs["fp8"] < p.FLOPs["bf16"] || p.FLOPs["tf32"] > p.FLOPs["bf16"] {
			t.Errorf("%s: %v", p.Device, p)
		}
	}
}
