//go:build tools

// Package tools pins the commands that tools/cluster builds from this module.
package tools

import (
	_ "github.com/kedacore/keda/v2/cmd/adapter"
	_ "github.com/kedacore/keda/v2/cmd/operator"
)
