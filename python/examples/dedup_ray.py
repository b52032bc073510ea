"""Keeps one record of each value of a field, in a dataset of Ray. It needs `pip install 'pykoel[ray]' 'ray[data]'`.

    python dedup_ray.py records/ new/ --field url --seen seen

reads the JSON lines in the folder `records`, and writes those whose URL is new to the folder `new`. The set of URLs is
in the folder `seen`: a second run leaves out what the first one kept.

Records without a value are all kept. When an actor of the set dies, no record is lost. The records whose answers are missing are kept, so a few may be kept
twice. One new value in a hundred million is taken for seen.

A task of the dataset that ran a second time would take its own records for seen, and lose them. So tasks are not tried
again: if one dies, the run ends with an error. Begin again then with the set as it was before, or without one.
"""

import argparse
import os
import time

import pyarrow as pa  # type: ignore[import-untyped]
import ray

from pykoel.ray import InDoubt, SharedFilter


def first(seen: SharedFilter, values: list[str], tries: int = 30) -> list[bool]:
    """Whether each value is new. One in doubt counts as new, and is added once more."""
    try:
        return seen.add_many(values)
    except InDoubt as doubt:
        if tries == 0:
            raise
        # Ray starts the actor again.
        time.sleep(1)
        first(seen, [values[index] for index in doubt.indices], tries - 1)
        return [answer is not False for answer in doubt.answers]


def new_records(records: ray.data.Dataset, seen: SharedFilter, field: str) -> ray.data.Dataset:
    """Write the result, or `materialize()` it, before anything else: each time that it runs, fewer records are new."""

    def keep_new(batch: pa.Table) -> pa.Table:
        values = batch[field].to_pylist()
        new = iter(first(seen, [str(value) for value in values if value is not None]))
        return batch.filter(pa.array([value is None or next(new) for value in values]))

    # Ray 2.60 warns that 2.64 has no such argument, which is then an error.
    return records.map_batches(keep_new, batch_format="pyarrow", batch_size=10_000, max_retries=0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Keeps one record of each value of a field.")
    parser.add_argument("records", help="a folder of JSON lines")
    parser.add_argument("new", help="the folder for the records that are kept")
    parser.add_argument("--field", required=True, help="records with an equal value of this field are equal")
    parser.add_argument("--seen", required=True, help="the folder of the set")
    parser.add_argument("--partitions", type=int, default=2, help="the number of actors that the set is divided among")
    options = parser.parse_args()

    ray.init(ignore_reinit_error=True)
    with SharedFilter(options.seen, options.partitions, rate=1e-8) as seen:
        before = len(seen)
        records = ray.data.read_json(os.path.abspath(options.records))
        new_records(records, seen, options.field).write_json(os.path.abspath(options.new))
        print(f"{len(seen) - before} values were new.")


if __name__ == "__main__":
    main()
