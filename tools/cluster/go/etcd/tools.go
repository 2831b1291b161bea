//go:build tools

// Package tools pins the commands that tools/cluster builds from this module.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)
