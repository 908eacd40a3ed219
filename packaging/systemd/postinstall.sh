#!/bin/sh
set -e
if ! getent passwd souvenir >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/souvenir --no-create-home --shell /usr/sbin/nologin souvenir
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	echo "souvenir: systemctl enable --now souvenir starts the server; its settings are in /etc/souvenir/souvenir.env"
fi
