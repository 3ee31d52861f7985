#!/usr/bin/env bash
# Fetches what we compare ourselves with from its Go modules, and builds what must run: fetch-upstream.sh DIR
#   DIR/cluster-api.dir    names the folder of upstream's module
#   DIR/clusterctl         upstream's CLI
#   DIR/cert-manager/      a repository with cert-manager's kinds and nothing that runs: all that clusterctl looks for
# Nothing of it becomes part of the project. What is there already is not made again.
set -euo pipefail
dir=$1
version=v1.14.2
cert_manager=v1.18.2
command -v go >/dev/null || { echo "Go is needed to fetch upstream's modules: https://go.dev/doc/install" >&2; exit 1; }
mkdir -p "$dir"

# Prints the folder of a module.
fetch() {
  local answer
  echo "$1 $2" >&2
  # With -json Go reports errors on standard output, too.
  answer=$(GOFLAGS= go mod download -json "$1@$2") || { echo "$answer" >&2; return 1; }
  answer=$(sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p' <<< "$answer")
  test -n "$answer" || { echo "go mod download did not say where $1 is" >&2; return 1; }
  echo "$answer"
}

fetch sigs.k8s.io/cluster-api "$version" > "$dir/cluster-api.dir"

if [ "$(cat "$dir/clusterctl.version" 2>/dev/null)" != "$version" ]; then
  echo "building clusterctl $version" >&2
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
  # Upstream's module replaces a part of itself by a folder, so it cannot be installed by its name alone.
  cat > "$build/go.mod" <<MOD
module upstream
go 1.26.0
require sigs.k8s.io/cluster-api $version
require sigs.k8s.io/cluster-api/api $version
replace sigs.k8s.io/cluster-api/api => sigs.k8s.io/cluster-api/api $version
MOD
  printf '//go:build tools\npackage tools\nimport _ "sigs.k8s.io/cluster-api/cmd/clusterctl"\n' > "$build/tools.go"
  package=sigs.k8s.io/cluster-api/version
  (
    cd "$build"
    export GOFLAGS=-mod=mod CGO_ENABLED=0
    # Tests of dependencies may need modules that are nowhere: what we build does not.
    go mod tidy -e >tidy.log 2>&1 || { cat tidy.log >&2; exit 1; }
    go build -trimpath -ldflags "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=14" \
      -o clusterctl sigs.k8s.io/cluster-api/cmd/clusterctl
  )
  mv "$build/clusterctl" "$dir/clusterctl"
  echo "$version" > "$dir/clusterctl.version"
fi

file=$dir/cert-manager/$cert_manager/cert-manager.yaml
if [ ! -s "$file" ]; then
  crds=$(fetch github.com/cert-manager/cert-manager "$cert_manager")/deploy/crds
  {
    printf 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: cert-manager\n'
    # The files are templates of a chart; what is to be filled in are only labels and annotations.
    for crd in "$crds"/*.yaml; do echo ---; grep -v '{{' "$crd"; done
  } > "$dir/cert-manager.part"
  mkdir -p "$(dirname "$file")"
  mv "$dir/cert-manager.part" "$file"
fi
