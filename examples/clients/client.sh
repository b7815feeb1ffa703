#!/usr/bin/env bash
# Finds the best x with curl and jq:  bash client.sh http://127.0.0.1:8420 NAME
# The token of the server, if any, is read from NOREGRET_TOKEN.
set -euo pipefail
url=$1 name=$2

call() { # call METHOD PATH [JSON]
    curl --silent --show-error --fail-with-body --request "$1" "$url$2" \
        --header "Content-Type: application/json" --header "Authorization: Bearer ${NOREGRET_TOKEN:-}" ${3:+--data "$3"}
}

call POST /studies '{"name": "'"$name"'", "goal": "minimize", "space": {"x": {"type": "float", "low": 0, "high": 1}}}' >/dev/null
for _ in $(seq 12); do
    trial=$(call POST "/studies/$name/ask" '{"client": "shell"}' | jq '.trials[0]')
    value=$(jq '.params.x - 0.3 | . * .' <<<"$trial") # what you would measure
    call POST "/studies/$name/trials/$(jq .id <<<"$trial")/tell" '{"value": '"$value"'}' >/dev/null
done
call GET "/studies/$name" | jq '{name, trials, states}'
call GET "/studies/$name/best" | jq --compact-output .
