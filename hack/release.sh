#!/usr/bin/env bash
# Makes the files of a release: the npm package, the chart as helm packages it, the bill of materials, and the checksums.
#
#   hack/release.sh FOLDER [TAG]
#
# With TAG, package.json and the chart have to have its version. .github/workflows/release.yaml publishes what this makes;
# the images are built there, by the Dockerfile.
set -euo pipefail
cd "$(dirname "$0")/.."
folder="${1:?the folder to write to}"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"

version="$(node --print 'require("./package.json").version')"
for line in version appVersion; do
  grep --quiet --extended-regexp "^$line: ['\"]?${version}['\"]?\$" deploy/chart/Chart.yaml || {
    echo "deploy/chart/Chart.yaml: $line is not $version, as in package.json" >&2
    exit 1
  }
done
if [ -n "${2:-}" ] && [ "$2" != "v$version" ]; then
  echo "the tag $2 is not v$version, as package.json has it" >&2
  exit 1
fi

npm pack --silent --pack-destination "$folder" >&2
# Of one commit always the same bytes: in order, and with its time.
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
  --transform='s,^chart,servicenet,' --directory=deploy chart | gzip --no-name >"$folder/servicenet-chart-$version.tgz"
node hack/sbom.ts >"$folder/sbom.cdx.json"
cd "$folder"
rm -f SHA256SUMS
sha256sum -- * >SHA256SUMS
cat SHA256SUMS
