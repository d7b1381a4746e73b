"""Small exports of Nsight Systems, made of rows: only the tables and columns that a test names are in them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

PUSH_POP, START_END, MARK, CATEGORY, THREAD, DOMAIN = 59, 60, 34, 33, 39, 75


def gpid(pid):
    """The globalPid of a process."""
    return 1 << 48 | pid << 24


def gtid(pid, tid=None):
    """The globalTid of a thread, by default the first of its process."""
    return gpid(pid) | (pid if tid is None else tid)


class Export:
    """Rows by table; `put` takes any, the others make those of the usual tables."""

    def __init__(self):
        self.tables = {"StringIds": []}
        self.ids = {}

    def put(self, table, **row):
        self.tables.setdefault(table, []).append(row)
        return self

    def text(self, value):
        """The id of a text in StringIds."""
        if value not in self.ids:
            self.ids[value] = len(self.ids) + 1
            self.put("StringIds", id=self.ids[value], value=value)
        return self.ids[value]

    def gpu(self, table, start, end, corr, pid=100, device=0, stream=7, **more):
        row = {"start": start, "end": end, "deviceId": device, "contextId": 1, "streamId": stream}
        return self.put(table, **row, correlationId=corr, globalPid=gpid(pid), **more)

    def kernel(self, name, start, end, corr, **more):
        name = {"demangledName": self.text(name), "shortName": self.text(name)}
        return self.gpu("CUPTI_ACTIVITY_KIND_KERNEL", start, end, corr, **name, **more)

    def copy(self, start, end, corr, kind=1, size=4096, **more):
        return self.gpu("CUPTI_ACTIVITY_KIND_MEMCPY", start, end, corr, copyKind=kind, bytes=size, **more)

    def call(self, name, start, end, corr, pid=100, tid=None, **more):
        row = {"start": start, "end": end, "globalTid": gtid(pid, tid), "nameId": self.text(name)}
        return self.put("CUPTI_ACTIVITY_KIND_RUNTIME", **row, correlationId=corr, returnValue=0, **more)

    def launched(self, name, at, corr, pid=100, tid=None, **more):
        """A launch at `at` and its kernel 100 later, 50 long."""
        self.call("cudaLaunchKernel_v7000", at, at + 20, corr, pid, tid)
        return self.kernel(name, at + 100, at + 150, corr, pid=pid, **more)

    def nvtx(self, text, start, end, kind=PUSH_POP, pid=100, tid=None, **more):
        row = {"start": start, "end": end, "eventType": kind, "text": text, "globalTid": gtid(pid, tid)}
        return self.put(more.pop("table", "NVTX_EVENTS"), **row, **more)

    def version(self, schema="3.7.2", product="2023.4.4.54", table="META_DATA_EXPORT"):
        self.put(table, name="EXPORT_SCHEMA_VERSION", value=schema)
        return self.put(table, name="EXPORT_PRODUCT_VERSION", value=product)

    def columns(self, table):
        return list(dict.fromkeys(name for row in self.tables[table] for name in row))

    def write(self, path):
        """Make the SQLite file `path`; a column that a row does not name is NULL in it."""
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as db:
            for table, rows in self.tables.items():
                names = self.columns(table) or ["id", "value"]
                db.execute(f"CREATE TABLE {table} ({', '.join(f'[{n}]' for n in names)})")
                marks = ", ".join("?" * len(names))
                db.executemany(f"INSERT INTO {table} VALUES ({marks})", [[r.get(n) for n in names] for r in rows])
            db.commit()
        return path
