"""Tests on a real node: the real API server, kubelet, images and vLLM."""
