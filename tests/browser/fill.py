"""Repeats the first turn of conversations: `fill.py DATABASE '{"title": turns}'`. The service may be running meanwhile."""

import json
import sqlite3
import sys

path, turns_of = sys.argv[1], json.loads(sys.argv[2])
database = sqlite3.connect(path, timeout=10)
with database:
    for block, (title, turns) in enumerate(turns_of.items()):
        (key,) = database.execute("SELECT key FROM adjutant_conversation WHERE title = ?", (title,)).fetchone()
        turn, last = database.execute(
            "SELECT min(turn), max(seq) FROM adjutant_event WHERE conversation = ?", (key,)
        ).fetchone()
        for table, place in (("adjutant_event", "seq"), ("adjutant_decision", "number")):
            rows = database.execute(f"SELECT * FROM {table} WHERE conversation = ?", (key,))
            columns = [column for column, *_ in rows.description]
            originals = rows.fetchall()
            for copy in range(1, turns):
                other = f"00000000-0000-7000-8{block:03x}-{copy:012x}"

                def changed(column, value):
                    if column == place:
                        return value + copy * last if place == "seq" else None
                    if isinstance(value, str):
                        return value.replace(turn, other).replace(title, f"{title} {copy + 1}")
                    return value

                database.executemany(
                    f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                    [[changed(column, value) for column, value in zip(columns, row)] for row in originals],
                )
        database.execute(
            "UPDATE adjutant_conversation SET next_seq = ?, turns = ? WHERE key = ?", (turns * last + 1, turns, key)
        )
