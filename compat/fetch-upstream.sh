#!/usr/bin/env bash
# Fetches what we compare ourselves with from its Go modules, and builds what must run: fetch-upstream.sh DIR WHAT...
#   DIR/cluster-api.dir    always: names the folder of upstream's module
#   clusterctl             DIR/clusterctl, upstream's CLI
#   capi-core              DIR/capi-core, upstream's core manager
#   capi-operator          DIR/capi-operator, upstream's operator; DIR/cluster-api-operator.dir names its module's folder
#   cert-manager           DIR/cert-manager/, a repository with cert-manager's kinds and nothing that runs: all that
#                          clusterctl looks for
#   kubeadm                DIR/bootstrap-kubeadm/ and DIR/control-plane-kubeadm/, a repository of upstream's providers
#   kubernetes-api         DIR/kubernetes-api.dir names the folder of a module with an example of every kind, all fields set
#   releases               DIR/releases/, a repository of several releases of several providers, with cluster templates
# Nothing of it becomes part of the project. What is there already is not made again.
set -euo pipefail
dir=$1
shift
version=v1.14.2
cert_manager=v1.18.2
kustomize=v5.8.1
# Upstream's version requires this one.
kubernetes_api=v0.36.3
operator=v0.29.0
command -v go >/dev/null || { echo "Go is needed to fetch upstream's modules: https://go.dev/doc/install" >&2; exit 1; }
mkdir -p "$dir"
# Of one file system with what is made there, so that a name stands for a whole file or for none.
work=$(mktemp -d "$dir/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

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

# Builds a command of upstream's: build NAME PACKAGE
build() {
  [ "$(cat "$dir/$1.version" 2>/dev/null)" != "$version" ] || [ ! -x "$dir/$1" ] || return 0
  echo "building $1 $version" >&2
  mkdir "$work/$1"
  # Upstream's module replaces a part of itself by a folder, so it cannot be installed by its name alone.
  cat > "$work/$1/go.mod" <<MOD
module upstream
go 1.26.0
require sigs.k8s.io/cluster-api $version
require sigs.k8s.io/cluster-api/api $version
replace sigs.k8s.io/cluster-api/api => sigs.k8s.io/cluster-api/api $version
MOD
  printf '//go:build tools\npackage tools\nimport _ "%s"\n' "$2" > "$work/$1/tools.go"
  local variables=sigs.k8s.io/cluster-api/version
  (
    cd "$work/$1"
    export GOFLAGS=-mod=mod CGO_ENABLED=0
    # Tests of dependencies may need modules that are nowhere: what we build does not.
    go mod tidy -e >tidy.log 2>&1 || { cat tidy.log >&2; exit 1; }
    go build -trimpath \
      -ldflags "-s -w -X $variables.gitVersion=$version -X $variables.gitMajor=1 -X $variables.gitMinor=14" -o built "$2"
  )
  mv "$work/$1/built" "$dir/$1"
  echo "$version" > "$dir/$1.version"
}

operator() {
  [ "$(cat "$dir/capi-operator.version" 2>/dev/null)" != "$operator" ] || [ ! -x "$dir/capi-operator" ] || return 0
  fetch sigs.k8s.io/cluster-api-operator "$operator" > "$work/cluster-api-operator.dir"
  mv "$work/cluster-api-operator.dir" "$dir/cluster-api-operator.dir"
  echo "building capi-operator $operator" >&2
  mkdir "$work/capi-operator"
  cat > "$work/capi-operator/go.mod" <<MOD
module upstream
go 1.26.0
require sigs.k8s.io/cluster-api-operator $operator
MOD
  printf '//go:build tools\npackage tools\nimport _ "sigs.k8s.io/cluster-api-operator/cmd"\n' > "$work/capi-operator/tools.go"
  (
    cd "$work/capi-operator"
    export GOFLAGS=-mod=mod CGO_ENABLED=0
    go mod tidy -e >tidy.log 2>&1 || { cat tidy.log >&2; exit 1; }
    go build -trimpath -ldflags "-s -w" -o built sigs.k8s.io/cluster-api-operator/cmd
  )
  mv "$work/capi-operator/built" "$dir/capi-operator"
  echo "$operator" > "$dir/capi-operator.version"
}

cert_manager() {
  local file=$dir/cert-manager/$cert_manager/cert-manager.yaml crds
  [ ! -s "$file" ] || return 0
  crds=$(fetch github.com/cert-manager/cert-manager "$cert_manager")/deploy/crds
  {
    printf 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: cert-manager\n'
    # The files are templates of a chart; what is to be filled in are only labels and annotations.
    for crd in "$crds"/*.yaml; do echo ---; grep -v '{{' "$crd"; done
  } > "$work/cert-manager.yaml"
  mkdir -p "$(dirname "$file")"
  mv "$work/cert-manager.yaml" "$file"
}

kustomize() {
  if [ "$(cat "$dir/kustomize.version" 2>/dev/null)" != "$kustomize" ] || [ ! -x "$dir/kustomize" ]; then
    echo "building kustomize $kustomize" >&2
    GOFLAGS= CGO_ENABLED=0 GOBIN=$work go install -trimpath -ldflags "-s -w" \
      "sigs.k8s.io/kustomize/kustomize/v5@$kustomize"
    mv "$work/kustomize" "$dir/kustomize"
    echo "$kustomize" > "$dir/kustomize.version"
  fi
}

# Renders a provider as upstream's release does, but for the image: render OUT MODULE-FOLDER CONFIG-FOLDER FILE
render() {
  [ ! -s "$1/$4" ] || return 0
  kustomize
  mkdir -p "$1"
  install -m 644 "$2/metadata.yaml" "$1/metadata.yaml"
  # It warns of old fields in what is not ours.
  "$dir/kustomize" build "$2/$3" > "$work/$4" 2> "$work/warnings" || { cat "$work/warnings" >&2; return 1; }
  mv "$work/$4" "$1/$4"
}

# Lays out releases of core and kubeadm: core_releases VERSION
core_releases() {
  local out=$dir/releases module config=config/default
  [ ! -s "$out/control-plane-kubeadm/$1/control-plane-components.yaml" ] || return 0
  module=$(fetch sigs.k8s.io/cluster-api "$1")
  [ ! -d "$module/core/config/default" ] || config=core/config/default
  render "$out/cluster-api/$1" "$module" $config core-components.yaml
  render "$out/bootstrap-kubeadm/$1" "$module" bootstrap/kubeadm/config/default bootstrap-components.yaml
  render "$out/control-plane-kubeadm/$1" "$module" controlplane/kubeadm/config/default control-plane-components.yaml
}

# Lays out a release of an infrastructure provider with its templates: infrastructure_release NAME MODULE VERSION
infrastructure_release() {
  local out=$dir/releases/infrastructure-$1/$3 module
  [ ! -s "$out/infrastructure-components.yaml" ] || return 0
  module=$(fetch "$2" "$3")
  mkdir -p "$out"
  install -m 644 "$module"/templates/cluster-template*.yaml "$out"
  render "$out" "$module" config/default infrastructure-components.yaml
}

fetch sigs.k8s.io/cluster-api "$version" > "$work/cluster-api.dir"
mv "$work/cluster-api.dir" "$dir/cluster-api.dir"

for what in "$@"; do
  case $what in
    clusterctl) build clusterctl sigs.k8s.io/cluster-api/cmd/clusterctl ;;
    capi-core) build capi-core sigs.k8s.io/cluster-api/core ;;
    capi-operator) operator ;;
    cert-manager) cert_manager ;;
    kubeadm)
      module=$(cat "$dir/cluster-api.dir")
      render "$dir/bootstrap-kubeadm/$version" "$module" bootstrap/kubeadm/config/default bootstrap-components.yaml
      render "$dir/control-plane-kubeadm/$version" "$module" controlplane/kubeadm/config/default \
        control-plane-components.yaml
      ;;
    kubernetes-api)
      fetch k8s.io/api "$kubernetes_api" > "$work/kubernetes-api.dir"
      mv "$work/kubernetes-api.dir" "$dir/kubernetes-api.dir"
      ;;
    releases)
      for release in v1.9.0 v1.10.0 v1.13.6 "$version"; do core_releases "$release"; done
      infrastructure_release aws sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
      infrastructure_release gcp sigs.k8s.io/cluster-api-provider-gcp v1.10.0
      infrastructure_release gcp sigs.k8s.io/cluster-api-provider-gcp v1.13.1
      ;;
    *) echo "$what is not known: clusterctl, capi-core, capi-operator, cert-manager, kubeadm, kubernetes-api or releases" >&2; exit 1 ;;
  esac
done
