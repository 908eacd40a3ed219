#!/usr/bin/env bash
# Signing in with an external OpenID Connect provider: npm oidc-provider on this machine, and a browser that fills in
# its forms. It covers accounts by e-mail domain, linking and unlinking, wrong passwords there, a required second
# factor, by amr and by acr, and a provider that is down.
#
#   e2e/provider.sh [--short]
#
# It takes about ten seconds; the short form leaves out acr and the provider that is down. It needs Go, curl, Node 20
# and npm.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

provider_version=9.5.1
short=false
[[ ${1-} != --short ]] || short=true

need node npm
provider_pid=
end_provider() {
	if [[ -n $provider_pid ]]; then
		kill "$provider_pid" 2>/dev/null || true
		wait "$provider_pid" 2>/dev/null || true
		provider_pid=
	fi
}
trap 'end_provider; end_all' EXIT

mkdir "$work/node"
(cd "$work/node" && npm install --silent --no-fund --no-audit --no-save "oidc-provider@$provider_version")
: >"$work/issuer" # so that it is there before the provider's shell makes it
(cd "$work/node" && exec node "$root/e2e/provider.mjs" provider) >"$work/issuer" 2>"$work/provider.log" &
provider_pid=$!
issuer=
for _ in {1..100}; do
	issuer=$(cat "$work/issuer")
	[[ -z $issuer ]] || break
	sleep 0.1
done
if [[ -z $issuer ]]; then
	echo "the provider did not start:" >&2
	cat "$work/provider.log" >&2
	exit 1
fi

# with NAME [FLAG...] runs a part against its own server, and checks that the log keeps secrets.
with() {
	local part=$1
	shift
	rm -f "$work"/souvenir.db*
	start_server --oidc-issuer "$issuer" --oidc-client-id souvenir --oidc-client-secret 'a secret of 32 characters or more' \
		--oidc-name 'Example ID' --oidc-create-domain example.com "$@"
	local password
	password=$(random_password)
	"$souvenir" user passwd anna --db "$db" --password-stdin <<<"$password" >/dev/null
	if ! node "$root/e2e/provider.mjs" "$part" "$url" "$password"; then
		cat "$work/server.log" >&2
		exit 1
	fi
	stop_server
	check_log 'ses_|code='
	echo "ok: $part${*:+ $*}"
}

with plain
with strong --oidc-require-amr otp,hwk
if ! $short; then
	with strong --oidc-require-acr urn:example:mfa
	end_provider
	with down
fi
