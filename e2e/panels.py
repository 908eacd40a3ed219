"""Runs the queries of a dashboard for Grafana in Prometheus: panels.py DASHBOARD ADDRESS."""
import json
import math
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

STEP = 1  # seconds between two scrapes, and two points


def get(path, **parameters):
    try:
        with urllib.request.urlopen(f"{sys.argv[2]}{path}?{urllib.parse.urlencode(parameters)}") as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as e:
        sys.exit(f"{path} {parameters}: {e.code} {e.read().decode()}")


def main():
    with open(sys.argv[1]) as file:
        dashboard = json.load(file)
    # Grafana's rules: four times the time between two scrapes; all values, or a group of the selected ones, escaped.
    all_of, selected = ({"__rate_interval": f"{4 * STEP}s"} for _ in range(2))
    for v in dashboard["templating"]["list"]:
        if v["type"] == "query":
            inside = re.fullmatch(r"label_values\((\w+), (\w+)\)", v["definition"])
            got = get(f"/api/v1/label/{inside[2]}/values", **{"match[]": inside[1]})
            if not got:
                sys.exit(f"the variable {v['name']} has no value, want the server's address")
            all_of[v["name"]] = v["allValue"]
            escaped = (re.sub(r"[\\^$*+?.()|{}\[\]]", r"\\\\\g<0>", value) for value in got + ["gone:9464"])
            selected[v["name"]] = f"({'|'.join(escaped)})"
    wrong, queries, now = [], 0, time.time()
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            queries += 1
            for values in (all_of, selected):
                query = re.sub(r"\$(\w+)", lambda found: values[found[1]], target["expr"])
                got = get("/api/v1/query_range", query=query, start=now - 15, end=now, step=STEP)["result"]
                numbers = [float(n) for series in got for _, n in series["values"]]
                if not any(map(math.isfinite, numbers)):
                    wrong.append(f"{panel['title']}: got {len(got)} series and no number, want one: {query}")
    rules = [rule for group in get("/api/v1/rules")["groups"] for rule in group["rules"]]
    wrong += [f"{r['name']}: got {r['health']} {r.get('lastError', '')}, want ok" for r in rules if r["health"] != "ok"]
    if wrong or not rules:
        sys.exit("\n".join(wrong) or "Prometheus has no rules")
    print(f"ok: {queries} queries of {len(dashboard['panels'])} panels, {len(rules)} alerts")


main()
