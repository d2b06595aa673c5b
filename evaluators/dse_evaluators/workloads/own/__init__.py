"""Models of the user: PyTorch modules, ONNX files and safetensors folders, with their data."""
