//go:build tools

// Package tools pins the modules whose CRDs the tests install; nothing of them is built.
package tools

import (
	_ "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	_ "sigs.k8s.io/gateway-api/apis/v1"
)
