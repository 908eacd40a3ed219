#!/usr/bin/env bash
# The recipes of docs/self-hosting.md, as they are written there: the systemd unit, the container, the compose file and
# the upgrade. Names of folders, users and ports are changed, for this machine; nothing else is.
#
#   e2e/selfhosting.sh [EARLIER]      EARLIER: an earlier version of the program, to upgrade from; otherwise the same one
#
# The unit is checked by systemd-analyze, and its command runs as another user, without capabilities, in a mount
# namespace that is like the one systemd makes. A container runs with docker or podman, if one of them works here; else
# buildah makes the image, and its program runs in the image's folder. What could not be tried is said in the end. It
# needs Go, curl, and, as root, unshare and setpriv; systemd-analyze, and docker, podman or buildah.
#
# Where podman may not raise limits ("setrlimit: Operation not permitted"), or crun does not know the control groups,
# CONTAINERS_CONF can name a file with other ones:
#
#   [containers]
#   default_ulimits = ["nofile=20000:20000", "nproc=4000:4000"]
#   [engine]
#   runtime = "runc"
#   cgroup_manager = "cgroupfs"
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

earlier=${1:+$(realpath "$1")}
need go curl unshare setpriv systemd-analyze
if [[ $(id -u) != 0 ]]; then
	echo "$0: this needs root, for another user and for mounts" >&2
	exit 1
fi
page=$root/docs/self-hosting.md
untried=()
unprivileged=65534
chmod 711 "$work" # others pass through it to their own folders

# block LANGUAGE WORD prints the first piece of the page in a language that contains a word.
block() {
	local found
	found=$(awk -v mark="\`\`\`$1" -v word="$2" '$0 == mark { on = 1; text = ""; next }
		/^```$/ { if (on && index(text, word)) { printf "%s", text; exit } on = 0 } on { text = text $0 "\n" }' "$page")
	if [[ -z $found ]]; then
		echo "docs/self-hosting.md has no piece in $1 with \"$2\"" >&2
		exit 1
	fi
	echo "$found"
}

# expect WORDS fails, unless standard input has them.
expect() {
	local text
	text=$(cat)
	if [[ $text != *"$1"* ]]; then
		printf 'got:\n%s\nwant in it: %s\n' "$text" "$1" >&2
		exit 1
	fi
}

# free_port prints an unused port.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# await PORT waits until a server answers.
await() {
	local i
	for i in {1..300}; do
		if curl -sf "http://127.0.0.1:$1/health" | grep -q '"souvenir"'; then return; fi
		sleep 0.1
	done
	echo "no server answers on port $1" >&2
	return 1
}

# end PID stops a server.
end() {
	kill -TERM "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	server_pid=
}

souvenir=$work/souvenir
(cd "$root" && eval "$(block sh 'go build' | sed "s|-o souvenir|-o $souvenir|")")
chmod 755 "$souvenir"

echo "the unit"
unit=$work/souvenir.service
home=$work/var
install -d -m 700 -o $unprivileged -g $unprivileged "$home"
block ini ExecStart | sed "s|/usr/local/bin/souvenir|$souvenir|; s|/var/lib/souvenir|$home|g; s|^User=souvenir|User=daemon|" >"$unit"
systemd-analyze verify "$unit"
systemd-analyze security --offline=true --threshold=50 "$unit" >"$work/security" || { tail -3 "$work/security" >&2; exit 1; }
directive() { sed -n "s/^$1=//p" "$unit"; }
port=$(free_port)
# shellcheck disable=SC2016 # the inner shell expands
as_unit='
	set -euo pipefail
	mount --make-rprivate /
	mount --bind "$HOME_OF" "$HOME_OF"
	mount -t tmpfs tmpfs /home
	mount -o remount,ro,bind /
	umask "$UMASK_OF"
	cd "$HOME_OF"
	exec env -i $ENVIRONMENT_OF SOUVENIR_LISTEN=127.0.0.1:$PORT_OF setpriv --reuid=65534 --regid=65534 --clear-groups \
		--no-new-privs --bounding-set=-all --inh-caps=-all "$@"'
in_unit() {
	HOME_OF=$(directive WorkingDirectory) UMASK_OF=$(directive UMask) ENVIRONMENT_OF=$(directive Environment) PORT_OF=$port \
		exec unshare --mount bash -c "$as_unit" unit "$@"
}
# shellcheck disable=SC2046 # words
(in_unit $(directive ExecStart)) >"$work/unit.log" 2>&1 &
server_pid=$!
await "$port"
expect 'https://memory.example.com/setup?invitation=' <"$work/unit.log"
[[ $(stat -c '%a %u' "$home/souvenir.db") == "600 $unprivileged" ]] || { stat "$home/souvenir.db" >&2; exit 1; }
while read -r line; do # the commands after it, without their cd
	command=${line#runuser -u souvenir -- souvenir }
	[[ $command != "$line" ]] || continue
	said=mcp_
	if [[ $command == user* ]]; then # which asks on a terminal
		command+=' --password-stdin' said='added user anna (admin)'
	fi
	# shellcheck disable=SC2086 # words
	(in_unit "$souvenir" $command <<<'nine blue kettles' 2>&1) | expect "$said"
done < <(block sh runuser)
curl -sf "http://127.0.0.1:$port/health" | expect '"ok"'
end $server_pid

echo "the compose file"
python3 - "$root/cmd/souvenir/compose.yaml" "$root" <<'PY'
import os, re, sys
try:
    import yaml
except ImportError:
    sys.exit("python3 has no yaml module, without which this checks nothing")
path, root = sys.argv[1:]
service = yaml.safe_load(open(path))["services"]["souvenir"]
context = os.path.normpath(os.path.join(os.path.dirname(path), service["build"]["context"]))
assert context == os.path.join(root, "dist/image"), context
assert os.path.exists(os.path.normpath(os.path.join(context, service["build"]["dockerfile"]))), "the Dockerfile"
page = open(os.path.join(root, "docs/self-hosting.md")).read()
line = re.search(r"docker run .*?\n```", page, re.S).group()
for flag in ["--publish " + service["ports"][0], "--volume " + service["volumes"][0], "--read-only", "--cap-drop " + service["cap_drop"][0],
             "--security-opt no-new-privileges"]:
    assert flag in line, f"docker run has no {flag}: {line}"
assert service["read_only"] and service["security_opt"] == ["no-new-privileges:true"], service
assert list(service["environment"]) == ["SOUVENIR_PUBLIC_URL"], service["environment"]
PY
if command -v docker-compose >/dev/null; then
	docker-compose --file "$root/cmd/souvenir/compose.yaml" config | expect 'read_only: true'
elif docker compose version >/dev/null 2>&1; then
	docker compose --file "$root/cmd/souvenir/compose.yaml" config | expect 'read_only: true'
else
	untried+=("the compose file was read as YAML and compared with docker run, but not by Docker Compose")
fi

echo "the container"
image=$work/image
mkdir -p "$image/data"
(cd "$root" && eval "$(block sh 'docker build' | grep 'go build' | sed "s|dist/image|$image|")")
port=$(free_port)
tool=
for one in docker podman; do
	if "$one" info >/dev/null 2>&1; then
		tool=$one
		break
	fi
done
# recipe: the commands of the page, with another tool, port and name.
recipe() { sed "s|^docker|$tool|; s|dist/image|$image|g; s|8377:8377|$port:8377|; s|127.0.0.1:8377|127.0.0.1:$port|g; s|name souvenir|name souvenir-e2e|; s|exec souvenir|exec souvenir-e2e|; s|logs souvenir|logs souvenir-e2e|; s|souvenir:/data|souvenir-e2e:/data|"; }
ran=
if [[ -n $tool ]]; then
	block sh 'docker build' | grep -v 'mkdir\|go build\|docker logs' | recipe >"$work/run.sh"
	if (cd "$root" && bash -e "$work/run.sh") >"$work/run.log" 2>&1; then
		ran=true
		await "$port"
		"$tool" logs souvenir-e2e 2>&1 | expect "http://127.0.0.1:$port/setup?invitation="
		block sh 'docker exec' | recipe | bash -e | expect mcp_
		"$tool" logs souvenir-e2e 2>&1 | sed -n 's/^ *\(http.*setup.*\)$/\1/p' >"$work/link"
	else
		tail -3 "$work/run.log" >&2
		"$tool" rm --force souvenir-e2e >/dev/null 2>&1 || true
		"$tool" volume rm souvenir-e2e >/dev/null 2>&1 || true
		untried+=("$tool cannot run a container here")
	fi
fi
if [[ -z $ran ]]; then
	need buildah
	# Copies in place of mounts, in a folder of the script's own.
	image_tool() { buildah --storage-driver vfs --root "$work/storage" --runroot "$work/runroot" "$@"; }
	image_tool bud --isolation chroot --tag souvenir --file "$root/cmd/souvenir/Dockerfile" "$image" >"$work/bud.log" 2>&1 || {
		cat "$work/bud.log" >&2
		exit 1
	}
	made=$(image_tool from --pull-never localhost/souvenir)
	image_tool inspect "$made" >"$work/config.json"
	mounted=$(image_tool mount "$made")
	# The image's own command and environment, in its folder, as its user, with only the volume writable.
	python3 - "$work/config.json" >"$work/command" <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))["OCIv1"]["config"]
assert c["User"] == "65534:65534" and c["WorkingDir"] == "/data" and "/data" in c["Volumes"], c
print("\n".join(["env", "-i"] + [e for e in c["Env"] if e.startswith("SOUVENIR_")]))
print("\n".join(c["Entrypoint"] + c["Cmd"]))
PY
	expect SOUVENIR_LISTEN=0.0.0.0:8377 <"$work/command"
	# shellcheck disable=SC2016 # the inner shell expands
	in_image() {
		unshare --mount bash -c 'set -e; mount --make-rprivate /; mount --bind "$1" "$1"; mount --bind "$1/data" "$1/data"
			mount -o remount,ro,bind "$1"; folder=$1; port=$2; shift 2; cd "$folder"
			exec env -i SOUVENIR_DB=/data/souvenir.db SOUVENIR_LISTEN=127.0.0.1:$port SOUVENIR_PUBLIC_URL=http://127.0.0.1:$port \
				setpriv --no-new-privs "$(command -v chroot)" --userspec=65534:65534 "$folder" "$@"' x "$mounted" "$port" "$@"
	}
	in_image /souvenir serve >"$work/container.log" 2>&1 &
	server_pid=$!
	await "$port" || { cat "$work/container.log" >&2; exit 1; }
	expect "http://127.0.0.1:$port/setup?invitation=" <"$work/container.log"
	while read -r line; do
		command=${line#docker exec souvenir }
		# shellcheck disable=SC2086 # words
		in_image $command | expect "$([[ $command == */souvenir\ user* ]] && echo 'added user anna (admin)' || echo mcp_)"
	done < <(block sh 'docker exec')
	in_image /souvenir health | expect 'ok:'
	sed -n 's/^ *\(http.*setup.*\)$/\1/p' "$work/container.log" >"$work/link"
	untried+=("the image was made by buildah and its program ran in the image's folder, without a container")
fi

# The setup link works after "user add --no-password", once, and gives anna her password.
jar=$work/jar
form=$(curl -sf -c "$jar" -b "$jar" "$(cat "$work/link")")
csrf=$(sed -n 's/.*name="csrf" value="\([^"]*\)".*/\1/p' <<<"$form" | head -1)
value=$(sed -n 's/.*invitation=//p' "$work/link")
curl -sf -c "$jar" -b "$jar" -H "Origin: http://127.0.0.1:$port" --data-urlencode "csrf=$csrf" --data-urlencode "invitation=$value" \
	-d username=anna -d email= --data-urlencode 'password=nine blue kettles' "http://127.0.0.1:$port/setup" | expect 'You are set up'
curl -s "$(cat "$work/link")" | expect 'has been'
if [[ -n $ran ]]; then
	"$tool" rm --force souvenir-e2e >/dev/null
	"$tool" volume rm souvenir-e2e >/dev/null
else
	end $server_pid
fi

echo "the upgrade"
program=$work/program
cp "${earlier:-$souvenir}" "$program"
old=$work/old
mkdir "$old"
port=$(free_port)
serve_old() {
	(cd "$old" && exec "$program" serve --listen "127.0.0.1:$port") >"$old/log" 2>&1 &
	server_pid=$!
	await "$port"
}
serve_old
(cd "$old" && "$program" user add anna --admin --no-password && "$program" token add --user anna --name laptop >token) >/dev/null
curl -sf "http://127.0.0.1:$port/tools/call" -H "Authorization: Bearer $(cat "$old/token")" -H 'Content-Type: application/json' \
	-d '{"name": "memory", "arguments": {"action": "store", "content": "The kettle in the kitchen is blue."}}' >/dev/null
(cd "$old" && eval "$(block sh before-upgrade.db | sed "s|^souvenir|$program|")") | expect 'wrote before-upgrade.db'
end $server_pid
cp "$souvenir" "$program"
serve_old
(cd "$old" && "$program" search 'which colour has the kettle?') | expect 'blue'
end $server_pid
(cd "$old" && mkdir gone && mv souvenir.db* gone/ && "${earlier:-$souvenir}" restore before-upgrade.db && "${earlier:-$souvenir}" check) | expect 'ok:'
[[ -n $earlier ]] || untried+=("the upgrade was from the same version")

for one in "${untried[@]}"; do echo "not tried: $one"; done
echo "ok"
