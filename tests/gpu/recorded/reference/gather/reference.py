# The table comes in double precision, the numbers as they are. Of what must be equal no scale is asked.
def reference(table, index, a):
    y = a * table[index]
    return (y, y.abs()), 2 * index
