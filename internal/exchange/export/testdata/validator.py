"""PyTorch's own validator, loaded from its file: it stands alone. Violations, as JSON."""

import importlib.util
import json
import sys

spec = importlib.util.spec_from_file_location("validator", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["validator"] = module
spec.loader.exec_module(module)
passed, violations = module.validate_trace(sys.argv[2])
print(json.dumps([str(v) for v in violations] if not passed else []))
