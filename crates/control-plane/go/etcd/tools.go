//go:build tools

// Package tools keeps in go.mod what the program built here needs.
package tools

import _ "go.etcd.io/etcd/server/v3/etcdmain"
