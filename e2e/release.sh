#!/usr/bin/env bash
# Makes releases of the present commit on this machine as the workflow does, as snapshots that go nowhere, twice and in
# two folders, and compares their files: programs, archives, packages, SBOMs, checksums. Then looks into the packages.
# Before that it decodes the manifests for Kubernetes strictly into the types of its API.
#
#   e2e/release.sh             for Linux, macOS and Windows, on amd64 and arm64: an hour of processor time at first
#   e2e/release.sh --short     for Linux on amd64 only
#   e2e/release.sh --install   as --short; then installs the Debian package, runs it, and removes it (root on Debian)
#   e2e/release.sh --check     only checks .goreleaser.yaml
#
# It needs Go, git and access to Go modules, and builds goreleaser, at the version of the workflow, and cyclonedx-gomod:
# ten minutes of processor time at first. E2E_TOOLS is a folder that keeps them. RELEASE_OUT is one for the first
# snapshot's files. With dpkg-deb and rpm it looks into the packages of that kind. Images and signatures are left out:
# they need a registry, and the identity of a workflow.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

need go git
mode=${1-}
tools=${E2E_TOOLS:-$work/tools}
export CGO_ENABLED=0 GOFLAGS=-trimpath PATH=$tools:$PATH

# pinned MODULE prints the version of a tool in the workflow.
pinned() {
	local version
	case $1 in
	goreleaser) version=$(sed -n 's/^ *version: \(v[0-9.]*\)$/\1/p' "$root/.github/workflows/release.yaml") ;;
	*) version=$(sed -n "s|.*/$1@\(v[0-9.]*\)$|\1|p" "$root/.github/workflows/release.yaml") ;;
	esac
	[[ -n $version ]] || { echo "$0: the workflow names no version of $1" >&2; exit 1; }
	echo "$version"
}

# fail MESSAGE ends the script.
fail() {
	printf '%s\n' "$@" >&2
	exit 1
}

# tool NAME PACKAGE builds a tool unless E2E_TOOLS has it.
tool() {
	local version
	version=$(pinned "$1")
	[[ -x $tools/$1 ]] && go version -m "$tools/$1" | grep -q "	$version	" || GOBIN=$tools go install "$2@$version"
}

tool goreleaser github.com/goreleaser/goreleaser/v2
if [[ $mode == --check ]]; then
	cd "$root"
	goreleaser check
	exit
fi
(cd "$root/packaging/kubernetes/check" && go test -count 1 .)
tool cyclonedx-gomod github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

# snapshot FOLDER makes the release in a clone, under a version that no release has.
snapshot() {
	mkdir -p "$(dirname "$1")"
	git clone --quiet "$root" "$1"
	cd "$1"
	git remote set-url origin https://github.com/souvenir-ai/souvenir.git
	git tag --force v0.0.99 >/dev/null 2>&1
	cp .goreleaser.yaml "$work/goreleaser.yaml" # a changed file in the clone would be in the programs' versions
	if [[ $mode == --short || $mode == --install ]]; then
		sed -i -e 's/goos: \[.*\]/goos: [linux]/' -e 's/goarch: \[.*\]/goarch: [amd64]/' "$work/goreleaser.yaml"
	fi
	goreleaser release --config "$work/goreleaser.yaml" --snapshot --clean --skip=docker,sign
	cd "$root"
}

# files FOLDER prints the hashes of all that a release would publish.
files() {
	(cd "$1/dist" && find . -type f \( -name '*.tar.gz' -o -name '*.zip' -o -name '*.deb' -o -name '*.rpm' -o -name '*.json' \
		-o -name '*.rb' -o -name checksums.txt -o -path '*/souvenir*/souvenir*' \) ! -name artifacts.json ! -name metadata.json \
		-exec sha256sum {} + | sort --key 2)
}

snapshot "$work/here"
[[ -z ${RELEASE_OUT-} ]] || cp -R "$work/here/dist/." "$RELEASE_OUT/"
snapshot "$work/there/deeper"
files "$work/here" >"$work/here.sums"
files "$work/there/deeper" >"$work/deeper.sums"
cat "$work/here.sums"
diff "$work/here.sums" "$work/deeper.sums" || fail "two snapshots of one commit differ"
for kind in tar.gz deb rpm cdx.json; do
	grep -q "\.$kind\$" "$work/here.sums" || fail "the release has no file .$kind"
done
(cd "$work/here/dist" && sha256sum --check --quiet checksums.txt)

# has PACKAGE LIST fails unless a package's list names what it installs.
has() {
	local path
	for path in /usr/bin/souvenir /usr/lib/systemd/system/souvenir.service /etc/souvenir/souvenir.env \
		/usr/share/doc/souvenir/copyright /usr/share/doc/souvenir/NOTICE; do
		grep -q "$path\$" <<<"$2" || fail "$1 lacks $path:" "$2"
	done
}

deb=$(find "$work/here/dist" -name '*linux_amd64.deb')
rpm=$(find "$work/here/dist" -name '*linux_amd64.rpm')
archive=$(find "$work/here/dist" -name '*linux_amd64.tar.gz')
names=$(tar --list --file "$archive")
for name in souvenir LICENSE NOTICE.txt README.md CHANGELOG.md systemd/souvenir.service; do
	grep -qx "$name" <<<"$names" || fail "$archive lacks $name:" "$names"
done
! command -v dpkg-deb >/dev/null || has "$deb" "$(dpkg-deb --contents "$deb")"
! command -v rpm >/dev/null || has "$rpm" "$(rpm --query --package --list "$rpm")"

if [[ $mode == --install ]]; then
	[[ $EUID -eq 0 ]] || fail "installing needs root"
	! dpkg --status souvenir >/dev/null 2>&1 || fail "souvenir is installed here already"
	known=$(getent passwd souvenir) || known=
	trap 'dpkg --purge souvenir; end_all' EXIT
	dpkg --install "$deb"
	/usr/bin/souvenir version
	/usr/bin/souvenir version --licenses | sed -n 1p
	stat --format '%A %U %n' /usr/lib/systemd/system/souvenir.service /etc/souvenir/souvenir.env
	getent passwd souvenir
	! command -v systemd-analyze >/dev/null || systemd-analyze verify /usr/lib/systemd/system/souvenir.service
	dpkg --purge souvenir
	trap end_all EXIT
	[[ -n $known ]] || userdel souvenir
	[[ ! -e /usr/bin/souvenir && ! -e /usr/lib/systemd/system/souvenir.service && ! -e /etc/souvenir ]] ||
		fail "the package left files behind"
fi
echo "ok"
