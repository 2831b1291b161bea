//go:build tools

// Package tools pins the commands that tools/cluster builds from this module.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
)
