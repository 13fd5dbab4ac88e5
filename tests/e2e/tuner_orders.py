"""What scripts/kernel-tuner-orders.py (argument 1) makes of the lines of `kcast export` (2), without Kernel Tuner: one entry for each
candidate, whose costs add up to the device time of the whole space (3), and searches that pay for each candidate once."""
import importlib.util
import json
import math
import sys

spec = importlib.util.spec_from_file_location("orders", sys.argv[1])
orders = importlib.util.module_from_spec(spec)
spec.loader.exec_module(orders)
rows = [json.loads(line) for line in open(sys.argv[2])]
entries, numbers = orders.read_space(open(sys.argv[2]))
assert len(entries) == len(rows) and sorted(numbers.values()) == list(range(1, len(rows) + 1))
assert math.isclose(sum(entry["benchmark_time"] for entry in entries.values()) / 1e3, float(sys.argv[3]), rel_tol=1e-6)
assert orders.axes_of(entries)["VEC"] == sorted({row["params"]["VEC"] for row in rows})
for key, entry in entries.items():
    row = rows[numbers[key] - 1]
    assert key == ",".join(str(int(value)) for value in row["params"].values())
    if row["speedup"] is None:
        assert entry["time"] == "RuntimeFailedConfig", row
    else:
        assert math.isclose(entry["time"], 1 / row["speedup"], rel_tol=1e-9), row

search = orders.Search(entries, "mls", 1, 10, 5)
first, second = list(entries)[:2]
for key in (first, second, first):
    search.note(key)
assert search.order == [first, second]
assert math.isclose(search.used, (entries[first]["benchmark_time"] + entries[second]["benchmark_time"]) / 1e3)
assert search.entries[first]["benchmark_time"] == 0 and entries[first]["benchmark_time"] > 0

budget = orders.Budget(1.0, 3, KeyError, lambda: False)
assert orders.Budget(1.0, 3, KeyError, lambda: True).is_done()
budget.add_time(milliseconds=400)
budget.add_evaluations()
assert not budget.is_done() and math.isclose(budget.get_fraction_consumed(), 0.4)
budget.add_time(milliseconds=700)
assert budget.is_done()

# What does not compile costs nothing; a cost that is not known is the mean of the others.
lines = [json.dumps({"candidate": i + 1, "params": {"X": float(i)}, "verdict": verdict, "log2_speedup": log2, "seconds": seconds})
         for i, (verdict, log2, seconds) in enumerate((
             ("faster", 1.0, {"held": 0.5}), ("compile-error", None, None), ("wrong", None, {"held": 0.3}), ("slower", -1.0, None)))]
entries, _ = orders.read_space(lines)
assert [entry["benchmark_time"] for entry in entries.values()] == [500, 0, 300, 400]
assert [entry["time"] for entry in entries.values()] == [0.5, "CompilationFailedConfig", "RuntimeFailedConfig", 2.0]
