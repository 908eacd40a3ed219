#!/usr/bin/env bash
# The configurations of docs/proxy.md that are marked as tested: Caddy and nginx, at the root of a host and below a
# path, each before a server, with "souvenir doctor" as the client. Only names, ports and certificates are adapted to
# this machine.
#
#   e2e/proxy.sh [--short]
#
# It takes about twenty seconds; the short form leaves out paths below the root, and common mistakes. It needs Go, curl,
# Caddy, nginx and OpenSSL.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

short=false
[[ ${1-} != --short ]] || short=true

need caddy nginx openssl
proxy_pid=
end_proxy() {
	if [[ -n $proxy_pid ]]; then
		kill -TERM "$proxy_pid" 2>/dev/null || true
		wait "$proxy_pid" 2>/dev/null || true
		proxy_pid=
	fi
}
trap 'end_proxy; end_all' EXIT

# block NAME prints the piece of the page that is marked with a name.
block() {
	local found
	found=$(awk -v mark="\`\`\`$1" '$0 == mark { on = 1; next } /^```$/ { on = 0 } on' "$root/docs/proxy.md")
	if [[ -z $found ]]; then
		echo "docs/proxy.md has no piece $1" >&2
		exit 1
	fi
	echo "$found"
}

# free_port prints an unused port.
free_port() { "$work/port"; }

cat >"$work/port.go" <<'GO'
package main

import (
	"fmt"
	"net"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
}
GO
(cd "$work" && go build -o port port.go)

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 60 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
	-keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null

# try NAME PATH [PROBLEM] starts the server and the proxy with the configuration $work/config, and runs the doctor. It
# must find nothing, or only PROBLEM, the beginning of a line.
try() {
	local name=$1 path=$2 problem=${3-}
	rm -f "$work"/souvenir.db*
	start_server --public-url "https://localhost:$port$path"
	local backend=${url#http://}
	sed -i -e "s/127\.0\.0\.1:8377/$backend/" "$work/config"
	"run_$name" >"$work/proxy.log" 2>&1 &
	proxy_pid=$!
	local ready=false status=0
	for _ in {1..100}; do
		if curl --silent --cacert "$work/cert.pem" --output /dev/null "https://localhost:$port/"; then
			ready=true
			break
		fi
		sleep 0.1
	done
	SSL_CERT_FILE=$work/cert.pem "$souvenir" doctor "https://localhost:$port$path" --timeout 3s --token "$admin" >"$work/doctor" || status=$?
	grep -v '^ok ' "$work/doctor" >"$work/wrong" || true
	if ! $ready || [[ -z $problem && ($status -ne 0 || -s $work/wrong) ]] || [[ -n $problem && ($status -ne 1 || $(cat "$work/wrong") != "$problem"*) ]]; then
		echo "$name$path is not as it should be:" >&2
		cat "$work/doctor" "$work/config" "$work/proxy.log" >&2
		exit 1
	fi
	if [[ -n $problem ]]; then
		end_proxy
		stop_server
		echo "ok: $name at https://localhost$path, and found: $problem"
		return
	fi
	head -c 20971520 /dev/zero >"$work/large"
	curl --silent --show-error --fail-with-body --cacert "$work/cert.pem" -H "Authorization: Bearer $admin" -F "file=@$work/large;filename=large.bin" \
		"https://localhost:$port$path/api/files/upload" >"$work/uploaded"
	end_proxy
	stop_server
	echo "ok: $name at https://localhost$path: $(wc -l <"$work/doctor") checks, and an upload of 20 MiB"
}

run_caddy() { XDG_DATA_HOME=$work/caddy XDG_CONFIG_HOME=$work/caddy exec caddy run --adapter caddyfile --config "$work/config"; }
run_nginx() { exec nginx -p "$work" -c "$work/config" -e "$work/nginx.error" -g 'daemon off;'; }

# caddy_config PIECE prints the whole configuration: no automatic certificates, and no port 80.
caddy_config() {
	{
		printf '{\n\tadmin off\n\tauto_https disable_redirects\n}\n'
		block "$1" | sed -e "s/^memory\.example\.com {/https:\/\/localhost:$port {\n\ttls ${work//\//\\/}\/cert.pem ${work//\//\\/}\/key.pem/"
	} >"$work/config"
}

# nginx_config [PIECE] prints the whole configuration; a piece replaces the location.
nginx_config() {
	local own
	own=$(block nginx | awk '/^server {/ { n++ } n == 2') # not the one of port 80
	if [[ -n ${1-} ]]; then
		own=$(awk '/^\tlocation/ { exit } { print }' <<<"$own"; block "$1"; echo '}')
	fi
	{
		printf 'pid %s/nginx.pid;\nevents {}\nhttp {\n\taccess_log off;\n' "$work"
		local kind
		for kind in client_body proxy fastcgi uwsgi scgi; do
			printf '\t%s_temp_path %s/temp_%s;\n' "$kind" "$work" "$kind"
		done
		sed -e "s/listen 443/listen 127.0.0.1:$port/" -e '/listen \[::\]/d' -e 's/memory\.example\.com;/localhost;/' \
			-e "s|/etc/letsencrypt/live/memory.example.com/fullchain.pem|$work/cert.pem|" -e "s|/etc/letsencrypt/live/memory.example.com/privkey.pem|$work/key.pem|" <<<"$own"
		echo '}'
	} >"$work/config"
}

port=$(free_port)
caddy_config caddyfile
try caddy ''
port=$(free_port)
nginx_config
try nginx ''
if ! $short; then
	port=$(free_port)
	caddy_config caddyfile-path
	try caddy /memory
	port=$(free_port)
	nginx_config nginx-path
	try nginx /memory

	# Common mistakes.
	port=$(free_port)
	nginx_config
	sed -i '/client_max_body_size/d' "$work/config"
	try nginx '' 'problem  bodies '
	port=$(free_port)
	nginx_config
	sed -i 's/proxy_redirect off;/proxy_intercept_errors on; error_page 401 =401 \/nothing.html;/' "$work/config"
	try nginx '' 'problem  challenge '
	port=$(free_port)
	nginx_config
	sed -i 's/proxy_redirect off;/proxy_set_header Authorization "";/' "$work/config"
	try nginx '' 'problem  credentials '
fi
