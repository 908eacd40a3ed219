#!/usr/bin/env bash
# The recipes of docs/self-hosting.md, run as written there: the systemd unit, the container, the compose file, and
# with each of them an upgrade from an earlier version. A person signs up with the printed link, memories are stored
# and found, everything restarts, and afterwards all of it is still there. About two minutes.
#
#   e2e/selfhosting.sh [EARLIER]      EARLIER: the commit to upgrade from; otherwise the one five migrations ago
#
# E2E_PATIENCE says how many times longer everything may take than on an idle machine.
#
# Nothing on this machine changes: the unit runs under a separate systemd, which boots this Debian or other system,
# with its writes in memory; Docker runs as a separate daemon; and both have their own network, so that even the ports
# are those of the page. It needs root, Go, git, curl, iproute2, util-linux, systemd, and dockerd, docker and docker
# compose, in Debian the packages docker.io and docker-compose. Recipes that could not be tried are listed at the end.
source "$(dirname "${BASH_SOURCE[0]}")/server.sh"

need go git curl ip unshare nsenter script systemd-analyze dockerd docker
if [[ $(id -u) != 0 ]]; then
	echo "$0: this needs root, for mounts and for Docker" >&2
	exit 1
fi
untried=()
holder= daemon= machine=
at=() # what enters the place where the present recipe runs

end_places() {
	local one
	[[ -z $daemon ]] || "${at[@]}" docker ps --quiet | xargs -r "${at[@]}" docker rm --force >/dev/null 2>&1 || true
	for one in $machine $daemon $holder; do
		kill -TERM "$one" 2>/dev/null || true
		if [[ $one == "$machine" ]]; then kill -KILL "$(init)" 2>/dev/null || true; fi
		wait "$one" 2>/dev/null || true
	done
	end_all
}
trap end_places EXIT

# fail prints a message, and the output of the last commands.
fail() {
	printf '%s\n' "$@" >&2
	tail -n 20 "$work"/*.log >&2
	exit 1
}

# block LANGUAGE WORD prints the first piece of the page in a language that contains a word.
block() {
	local found
	found=$(awk -v mark="\`\`\`$1" -v word="$2" '$0 == mark { on = 1; text = ""; next }
		/^```$/ { if (on && index(text, word)) { printf "%s", text; exit } on = 0 } on { text = text $0 "\n" }' "$root/docs/self-hosting.md")
	[[ -n $found ]] || fail "docs/self-hosting.md has no piece in $1 with \"$2\""
	echo "$found"
}

# expect WORDS fails unless standard input contains them, and prints it.
expect() {
	local text
	text=$(cat)
	[[ $text == *"$1"* ]] || fail "got:" "$text" "want in it: $1"
	echo "$text"
}

# recipe FOLDER runs the commands on standard input in the current place, and stops at the first failure.
recipe() {
	(echo "cd $1" && cat) | "${at[@]}" bash -e 2>>"$work/recipes.log" || fail "a recipe failed"
}

# ready waits until the server answers.
ready() {
	local i
	for ((i = 0; i < 300 * ${E2E_PATIENCE:-1}; i++)); do
		if "${at[@]}" curl -sf http://127.0.0.1:8377/health 2>/dev/null | grep -q '"souvenir"'; then return; fi
		sleep 0.1
	done
	"${at[@]}" journalctl --unit souvenir --no-pager --lines 20 >"$work/journal.log" 2>&1 || true
	fail "no server answers"
}

# sign_up LOG NAME opens the link in the log as a browser does, and fills in the page.
sign_up() {
	local link origin page csrf cookies
	link=$(sed -n 's/.* \(https\{0,1\}:[^ ]*setup?invitation=[^ ]*\)$/\1/p' <<<"$1" | tail -1)
	origin=${link%/setup*}
	[[ -n $link ]] || fail "no link in: $1"
	# As a proxy passes it on.
	visit() { "${at[@]}" curl -s "http://127.0.0.1:8377${1#"$origin"}" -H "Host: ${origin#*//}" -H "X-Forwarded-Proto: ${origin%%:*}" "${@:2}"; }
	page=$(visit "$link" -i)
	csrf=$(sed -n 's/.*name="csrf" value="\([^"]*\)".*/\1/p' <<<"$page" | head -1)
	cookies=$(sed -n 's/^set-cookie: \([^;]*\).*/\1/ip' <<<"$page" | paste -sd';')
	visit "$link" >/dev/null
	visit "$origin/setup" -H "Origin: $origin" -H "Cookie: $cookies" --data-urlencode "csrf=$csrf" \
		--data-urlencode "invitation=${link#*invitation=}" -d "username=$2" -d email= --data-urlencode 'password=nine blue kettles' |
		expect 'You are set up' >/dev/null
	visit "$link" | expect 'has been' >/dev/null # it works once
}

# remember TOKEN COLOUR stores a memory, and recall TOKEN COLOUR searches it.
call() {
	"${at[@]}" curl -s http://127.0.0.1:8377/tools/call -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -d "$2"
}
remember() { call "$1" "{\"name\": \"memory\", \"arguments\": {\"action\": \"store\", \"content\": \"The kettle is $2.\"}}" | expect 'indexed' >/dev/null; }
recall() { call "$1" '{"name": "memory", "arguments": {"action": "search", "query": "which colour has the kettle?"}}' | expect "$2" >/dev/null; }

echo "two versions"
clone=$work/clone
earlier=${1-}
for ((skip = 4; ${#earlier} == 0 && skip < 12; skip++)); do
	earlier=$(git -C "$root" log -1 --skip=$skip --format=%H -- internal/sqlite/migrations)^
	# If two were written at the same time, some commits have a gap between their numbers, and their programs do not
	# start.
	git -C "$root" ls-tree --name-only "$earlier" internal/sqlite/migrations/ 2>/dev/null | sed -n 's|.*/0*\([0-9]*\)_.*\.sql$|\1|p' |
		awk '$1 != NR { exit 1 }' || earlier=
done
mkdir "$clone" "$work/earlier"
git -C "$root" ls-files -z | (cd "$root" && tar --null --ignore-failed-read -T - -c 2>/dev/null) | tar -x -C "$clone"
if git -C "$root" archive "$earlier" 2>"$work/archive.log" | tar -x -C "$work/earlier" 2>/dev/null; then
	(cd "$work/earlier" && eval "$(block sh 'go build')")
else
	untried+=("an upgrade from an earlier version, which this clone does not have: $(<"$work/archive.log")")
	(cd "$clone" && eval "$(block sh 'go build')" && cp souvenir "$work/earlier/")
fi
(cd "$clone" && eval "$(block sh 'docker build' | grep 'mkdir\|go build')" && eval "$(block sh 'go build')")
built=("$work/earlier/souvenir" "$clone/souvenir") # the earlier version, and the present one

# A separate network and separate mounts, for both of the following.
mkdir "$work/memory"
# shellcheck disable=SC2016 # the inner shell expands
unshare --net --mount bash -ec 'mount --make-rprivate /; ip link set lo up; mount -t tmpfs tmpfs "$1"
	mount -t tmpfs -o mode=755 tmpfs /run; : >"$1/ready"; exec sleep infinity' x "$work/memory" 2>"$work/holder.log" &
holder=$!
for _ in {1..50}; do
	if nsenter --target $holder --mount test -f "$work/memory/ready" 2>/dev/null; then break; fi
	kill -0 $holder 2>/dev/null || fail "no mounts and networks of its own"
	sleep 0.1
done

# boot starts the machine with its earlier writes, and waits until it is up.
boot() {
	local i
	# shellcheck disable=SC2016 # the inner shell expands
	nsenter --target $holder --net --mount unshare --net --mount --pid --ipc --uts --cgroup --fork bash -ec '
		ip link set lo up
		mkdir -p "$1/upper" "$1/work" "$1/root"
		cd "$1/root"
		mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
		cd "$1/root"
		if [[ ! -e was-booted ]]; then # without the services of this machine
			rm -rf etc/systemd/system/*.wants
			touch was-booted
		fi
		mount -t proc proc proc
		mount -t sysfs sysfs sys
		mount -t cgroup2 cgroup2 sys/fs/cgroup
		mount -t tmpfs -o mode=755 tmpfs run
		mount -t tmpfs -o mode=755 tmpfs dev
		for one in null zero full random urandom tty; do
			touch "dev/$one"
			mount --bind "/dev/$one" "dev/$one"
		done
		mkdir -p dev/pts dev/shm was
		mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
		ln -s pts/ptmx dev/ptmx
		ln -s /proc/self/fd dev/fd
		pivot_root . was
		umount -l /was
		exec env -i container=souvenir-e2e /lib/systemd/systemd --system --unit=multi-user.target' x "$work/memory" >>"$work/machine.log" 2>&1 &
	machine=$!
	for ((i = 0; i < 100 * ${E2E_PATIENCE:-1}; i++)); do
		at=(nsenter --all --target "$(init)")
		if [[ $("${at[@]}" systemctl is-system-running 2>/dev/null) =~ running|degraded ]]; then return; fi
		kill -0 $machine 2>/dev/null || return 1
		sleep 0.3
	done
	return 1
}
# init prints the machine's first process.
init() { tr -d ' ' <"/proc/$machine/task/$machine/children"; }
reboot() {
	"${at[@]}" systemctl reboot
	wait $machine || true
	boot || fail "the machine does not start again"
	ready
}
install_program() { "${at[@]}" bash -c "cat >$2.new && chmod 755 $2.new && mv $2.new $2" <"$1"; }

echo "the unit"
if boot; then
	"${at[@]}" bash -c 'cat >/etc/systemd/system/souvenir.service' < <(block ini ExecStart)
	install_program "${built[0]}" /usr/local/bin/souvenir
	block sh useradd | recipe /
	recipe / <<<'systemctl enable --now souvenir'
	ready
	sign_up "$(recipe / <<<'journalctl --unit souvenir --output cat')" ben
	as_souvenir='cd /var/lib/souvenir && runuser -u souvenir --'
	ben=$(recipe / <<<"$as_souvenir souvenir token add --user ben --name laptop")
	remember "$ben" blue
	# The commands after the first one, which asks on a terminal.
	block sh runuser | sed "s|^runuser.*user add.*|script -qec '&' /dev/null|" >"$work/commands"
	anna=$("${at[@]}" bash -e -c "$(<"$work/commands")" <<<$'nine blue kettles\nnine blue kettles' | tee "$work/commands.log" | grep -o 'mcp_[0-9A-Za-z]*')
	expect 'added user anna (admin)' <"$work/commands.log" >/dev/null
	remember "$anna" green
	[[ $("${at[@]}" stat -c '%a %U' /var/lib/souvenir/souvenir.db) == "600 souvenir" ]] || fail "others could read the file"
	reboot
	recall "$ben" blue
	recall "$anna" green
	echo "its upgrade, and the way back"
	recipe / <<<"$as_souvenir $(block sh before-upgrade.db)" | expect 'wrote before-upgrade.db' >/dev/null
	recipe / <<<'systemctl stop souvenir'
	install_program "${built[1]}" /usr/local/bin/souvenir
	recipe / <<<'systemctl start souvenir'
	ready
	recall "$ben" blue
	remember "$ben" yellow
	recipe / <<<"$as_souvenir souvenir check" | expect 'ok:' >/dev/null
	echo "the unit of the packages"
	recipe / <<<'systemctl disable --now souvenir && rm /usr/local/bin/souvenir'
	"${at[@]}" bash -c 'cat >/etc/systemd/system/souvenir.service && mkdir -p /etc/souvenir' <"$root/packaging/systemd/souvenir.service"
	"${at[@]}" bash -c 'cat >/etc/souvenir/souvenir.env' <"$root/packaging/systemd/souvenir.env"
	install_program "${built[1]}" /usr/bin/souvenir
	"${at[@]}" sh -s configure <"$root/packaging/systemd/postinstall.sh" >/dev/null
	recipe / <<<'systemctl enable --now souvenir'
	ready
	recall "$ben" yellow
	reboot
	recall "$anna" green
	"${at[@]}" systemd-analyze security --no-pager --threshold=15 souvenir >"$work/security.log" || fail "the unit is exposed"
	# Back to the earlier version, with the backup.
	recipe / <<<'systemctl stop souvenir'
	install_program "${built[0]}" /usr/bin/souvenir
	recipe /var/lib/souvenir < <(block sh 'souvenir restore' | sed 's|/mnt/backup/[^ ]*|before-upgrade.db|; s|^souvenir|runuser -u souvenir -- &|') |
		expect 'ok:' >/dev/null
	recipe / <<<'systemctl start souvenir'
	ready
	recall "$ben" blue
	"${at[@]}" systemctl poweroff
	wait $machine || true
	machine=
else
	machine=
	untried+=("the unit: no systemd starts here: $(tail -1 "$work/machine.log")")
fi

at=(nsenter --target $holder --net --mount)
"${at[@]}" dockerd --data-root "$work/docker" >"$work/dockerd.log" 2>&1 &
daemon=$!
for _ in {1..300}; do
	if "${at[@]}" docker info >/dev/null 2>&1 || ! kill -0 $daemon 2>/dev/null; then break; fi
	sleep 0.1
done
if ! "${at[@]}" docker run --help >/dev/null 2>&1 || ! "${at[@]}" docker info >/dev/null 2>&1; then
	daemon=
	untried+=("the container and the compose file: no dockerd starts here: $(tail -1 "$work/dockerd.log")")
fi

if [[ -n $daemon ]]; then
	echo "the container"
	image=$clone/dist/image/souvenir
	present=$work/present
	cp "$image" "$present"
	pieces=$(block sh 'docker build' | grep -v 'mkdir\|go build')
	cp "${built[0]}" "$image"
	recipe "$clone" <<<"$(grep -v logs <<<"$pieces")" >/dev/null
	ready
	log=$(recipe "$clone" <<<"$(grep logs <<<"$pieces") 2>&1")
	token=$(block sh 'docker exec' | recipe / | grep -o 'mcp_[0-9A-Za-z]*')
	remember "$token" blue
	sign_up "$log" anna # still works after "user add --no-password"
	recipe / <<<'docker restart souvenir' >/dev/null
	ready
	recall "$token" blue
	recipe / <<<"docker exec souvenir /$(block sh before-upgrade.db)" | expect 'wrote before-upgrade.db' >/dev/null
	recipe / <<<'docker rm --force souvenir' >/dev/null
	cp "$present" "$image"
	recipe "$clone" <<<"$(grep -v logs <<<"$pieces")" >/dev/null
	ready
	recall "$token" blue
	recipe / <<<'docker exec souvenir /souvenir health && docker exec souvenir /souvenir check' | expect 'ok:' >/dev/null
	recipe / <<<'docker rm --force souvenir' >/dev/null

	echo "the compose file"
	pieces=$(block sh 'docker compose')
	if ! docker compose version >/dev/null 2>&1; then
		need docker-compose
		pieces=${pieces//docker compose/docker-compose}
		untried+=("docker compose: docker-compose $(docker-compose version --short) was there instead")
	fi
	cp "${built[0]}" "$image"
	recipe "$clone" <<<"$(grep -v logs <<<"$pieces")" >/dev/null
	ready
	log=$(recipe "$clone" <<<"$(grep logs <<<"$pieces") 2>&1")
	sign_up "$log" anna
	compose=$(head -1 <<<"${pieces%% up*}")
	token=$(recipe "$clone" <<<"$compose exec -T souvenir /souvenir token add --user anna --name laptop")
	remember "$token" blue
	recipe "$clone" <<<"$compose restart"
	ready
	recall "$token" blue
	cp "$present" "$image"
	recipe "$clone" <<<"$(grep -v logs <<<"$pieces")" >/dev/null
	ready
	recall "$token" blue
	recipe "$clone" <<<"$compose down --volumes"
fi

[[ ${#untried[@]} == 0 ]] || printf 'not tried: %s\n' "${untried[@]}"
echo "ok"
