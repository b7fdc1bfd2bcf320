#!/bin/sh
# An MCP server in a few lines of shell: no library of ours on its side of the pipe.
echo "started $$" >&2
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
text() { say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*)
      say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      say '"result":{"tools":[
        {"name":"wipe","title":"Wipe the disk","description":"Deletes everything.","inputSchema":{"type":"object","properties":{"disk":{"type":"string"}},"required":["disk"]}},
        {"name":"look","description":"Looks.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
        {"name":"die","description":"Ends.","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false}},
        {"name":"hang","description":"Never ends.","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false}}
      ]}' | tr -d '\n'; echo ;;
    *'"name":"wipe"'*) echo wiped >> wiped; text 'Wiped.' ;;
    *'"name":"look"'*) text "token $TOKEN" ;;
    *'"name":"die"'*) kill -9 $$ ;;
    *'"name":"hang"'*)
      echo "hanging $$" >&2
      # Nothing it reads from will ever say anything, and it does not mind being asked to end.
      trap '' TERM INT
      mkfifo never
      read -r nothing < never ;;
  esac
done
