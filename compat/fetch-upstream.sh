#!/usr/bin/env bash
# Fetches the Go modules of upstream's release that we compare ourselves with: fetch-upstream.sh DIR
# DIR/cluster-api.dir names the folder of the module. Nothing of it becomes part of the project.
set -euo pipefail
dir=$1
version=v1.14.2
command -v go >/dev/null || { echo "Go is needed to fetch upstream's modules: https://go.dev/doc/install" >&2; exit 1; }
mkdir -p "$dir"
echo "sigs.k8s.io/cluster-api $version"
# With -json Go reports errors on standard output, too.
answer=$(GOFLAGS= go mod download -json "sigs.k8s.io/cluster-api@$version") || { echo "$answer" >&2; exit 1; }
sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p' <<< "$answer" > "$dir/cluster-api.dir"
test -s "$dir/cluster-api.dir" || { echo "go mod download did not say where the module is: $answer" >&2; exit 1; }
