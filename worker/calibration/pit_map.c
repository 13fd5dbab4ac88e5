#include "worker/calibration/pit_map.h"

#include "common/mem.h"
#include <stdlib.h>

void pit_map_fit(struct pit_map *map, const double *u, const double *weight, size_t count)
{
    pit_map_release(map);
    if (count == 0) {
        return;
    }
    map->u = xcalloc(count, sizeof *map->u);
    map->below = xcalloc(count + 1, sizeof *map->below);
    map->count = count;
    for (size_t i = 0; i < count; i++) {
        map->u[i] = u[i];
        map->weight += weight[i];
        map->below[i + 1] = map->weight;
        map->weight_square += weight[i] * weight[i];
    }
}

void pit_map_release(struct pit_map *map)
{
    free(map->u);
    free(map->below);
    *map = (struct pit_map){0};
}

double pit_map_below(const struct pit_map *map, double u)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->u[middle] <= u) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return map->count > 0 ? map->below[low] : 0;
}
