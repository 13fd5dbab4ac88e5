// Quality and diversity (MAP-Elites) on a few islands.
//
// Candidates live on ISLANDS islands in turns: BLOCK of them on one, the next BLOCK on the next
// one. An island's archive has, in each cell, the best measured and correct candidate that it has
// of this behaviour, its elite. Behaviour is what the compiler says of the code: registers, shared
// memory and occupancy on a GPU; instructions, vector instructions of the innermost loops and
// spills on a CPU; where nothing is said, the place of the parameters, of which each island looks
// at three others.
//
// A slot belongs to an island, and its candidate is a child of that island's elites: the neighbour
// of one, with TWO_STEPS a neighbour's neighbour, with CROSSOVER a mixture of two. Better elites
// have more children. Of a few such children one is preferred whose place has nothing of the island
// yet. Every EPOCH slots the MIGRANTS best elites of the next island become parents on this one,
// too: what they have found spreads over all islands, but slowly. The first START slots, those
// where a coin says so (EXPLORE) and those whose parents have no free children get random points,
// so that the search can neither get stuck nor leave a point out for ever.
//
// MAP-Elites: Mouret and Clune 2015, "Illuminating search spaces by mapping elites"; islands of
// programs: Romera-Paredes and others 2024, "Mathematical discoveries from program search with
// large language models".
#include "client/propose/strategy.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define START 16
#define EXPLORE 0.1
#define ISLANDS 4
#define BLOCK 4 // as many as a language model is asked for at a time
#define EPOCH 24
#define MIGRANTS 2
#define TWO_STEPS 0.2
#define CROSSOVER 0.2
#define PRESSURE 6 // the parent is number u^PRESSURE * elites, u uniform
#define CHILDREN 4 // compared for a slot
#define TRIES 16   // at getting them
#define WALK 64    // steps from one parent towards a mixture
#define NEIGHBOUR_MAX 128
#define CELLS 512
#define PLACES 27 // three axes in thirds
#define STREAM_COIN 0x69736c63ULL
#define STREAM_CHILD 0x69736c62ULL

// A measured and correct candidate.
struct member {
    uint64_t candidate;
    size_t point;
    double y; // log2 speedup
    unsigned island, cell;
};

struct archive {
    const struct strategy_view *view;
    struct member *member; // best first
    size_t count;
    bool *taken;
    bool occupied[ISLANDS][PLACES]; // something of the island was proposed there
};

static unsigned island_of(uint64_t candidate)
{
    return (unsigned)((candidate - 1) / BLOCK % ISLANDS);
}

// ---- behaviour ----

static unsigned clamp(double x, unsigned most)
{
    return x >= most ? most : x > 0 ? (unsigned)x : 0;
}

static unsigned octave(double x, double least, unsigned most)
{
    return x >= least ? 1 + clamp(log2(x / least), most - 1) : 0;
}

static double sum_of(const struct compiled *compiled, const char *name, const char *other)
{
    double sum = NAN;
    for (size_t i = 0; i < compiled->features_count; i++) {
        const struct fact *fact = &compiled->features[i];
        if (strcmp(fact->name, name) == 0 || (other && strcmp(fact->name, other) == 0)) {
            sum = isnan(sum) ? fact->value : sum + fact->value;
        }
    }
    return sum;
}

static unsigned position_cell(const struct generator *generator, size_t point, unsigned island)
{
    if (generator->axis_count == 0) {
        return 0;
    }
    double position[GENERATOR_AXIS_MAX];
    generator->ops->position(generator, point, position);
    unsigned cell = 0;
    for (size_t i = 0; i < 3; i++) {
        cell = cell * 3 + clamp(position[(3 * island + i) % generator->axis_count] * 3, 2);
    }
    return cell;
}

// The cell of the archive: CELLS / 2 of them by what the compiler says, then those by place.
static unsigned cell_of(const struct strategy_view *view, const struct member *member)
{
    const struct compiled *compiled = view->run_state->candidate[member->candidate - 1].compiled;
    double registers = compiled ? sum_of(compiled, "registers", NULL) : NAN;
    double instructions = compiled ? sum_of(compiled, "instructions", NULL) : NAN;
    if (!isnan(registers)) {
        double shared = sum_of(compiled, "shared_static_bytes", "shared_dynamic_bytes");
        return (clamp(registers / 32, 7) * 8 + octave(shared, 1024, 7)) * 4 +
               clamp(sum_of(compiled, "occupancy", NULL) * 4, 3);
    }
    if (!isnan(instructions)) {
        return (octave(instructions, 64, 7) * 8 +
                octave(sum_of(compiled, "inner_vectors", NULL), 1, 7)) *
                   4 +
               octave(sum_of(compiled, "spills", NULL), 1, 3);
    }
    if (view->generator->axis_count == 0) { // each for itself
        return CELLS / 2 + (unsigned)(member->candidate % (CELLS / 2));
    }
    return CELLS / 2 + position_cell(view->generator, member->point, member->island);
}

static int by_y(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    if (left->y != right->y) {
        return left->y > right->y ? -1 : 1;
    }
    return left->candidate < right->candidate ? -1 : 1;
}

// Candidates whose code another one has already are left out: that one stands for them.
static void archive_init(struct archive *archive, const struct strategy_view *view)
{
    *archive = (struct archive){.view = view};
    archive->member = xcalloc((size_t)view->visible + 1, sizeof(*archive->member));
    for (uint64_t id = 1; id <= view->visible; id++) {
        const struct run_state_candidate *candidate = &view->run_state->candidate[id - 1];
        struct member *member = &archive->member[archive->count];
        *member = (struct member){.candidate = id, .island = island_of(id)};
        if (candidate->proposed.duplicate_of == 0 && candidate->object_duplicate_of == 0 &&
            strategy_score(view, id, &member->y) &&
            (view->generator->is_llm || strategy_point(view, id, &member->point))) {
            member->cell = cell_of(view, member);
            archive->count++;
        }
    }
    qsort(archive->member, archive->count, sizeof(*archive->member), by_y);
}

static void archive_release(struct archive *archive)
{
    free(archive->member);
    free(archive->taken);
}

// The parents that a slot has, best first: its island's elites, and the migrants that had come to
// it by the last epoch's end. ret has room for 2 * CELLS.
static size_t elites(const struct archive *archive, uint64_t slot, const struct member **ret)
{
    unsigned island = island_of(slot), next = (island + 1) % ISLANDS;
    uint64_t arrived = (slot - 1) / EPOCH * EPOCH;
    bool own[CELLS] = {false}, others[CELLS] = {false};
    size_t count = 0, migrants = 0;
    for (size_t i = 0; i < archive->count; i++) {
        const struct member *member = &archive->member[i];
        bool migrates = member->island == next && member->candidate <= arrived &&
                        migrants < MIGRANTS && !others[member->cell];
        if (migrates) {
            others[member->cell] = true;
            migrants++;
        } else if (member->island != island || own[member->cell]) {
            continue;
        } else {
            own[member->cell] = true;
        }
        ret[count++] = member;
    }
    return count;
}

static const struct member *draw(const struct member *const *elite, size_t count,
                                 struct stats_rng *rng)
{
    return elite[(size_t)(pow(stats_rng_unit(rng), PRESSURE) * (double)count)];
}

// ---- children ----

static double distance(const struct generator *generator, size_t point, const double *target)
{
    double position[GENERATOR_AXIS_MAX], sum = 0;
    generator->ops->position(generator, point, position);
    for (size_t i = 0; i < generator->axis_count; i++) {
        sum += fabs(position[i] - target[i]);
    }
    return sum;
}

// The point that has each parameter from one of the two, or the closest one that can be reached
// over neighbours that come ever closer: not every mixture is a point.
static size_t mix(const struct generator *generator, size_t first, size_t second,
                  struct stats_rng *rng)
{
    double target[GENERATOR_AXIS_MAX], other[GENERATOR_AXIS_MAX];
    size_t neighbour[NEIGHBOUR_MAX], at = first;
    generator->ops->position(generator, first, target);
    generator->ops->position(generator, second, other);
    for (size_t i = 0; i < generator->axis_count; i++) {
        target[i] = stats_rng_below(rng, 2) == 0 ? target[i] : other[i];
    }
    double left = distance(generator, at, target);
    for (size_t step = 0; step < WALK && left > 1e-9; step++) {
        size_t count = generator->ops->neighbours(generator, at, neighbour, NEIGHBOUR_MAX);
        size_t from = at;
        for (size_t i = 0; i < count; i++) {
            double d = distance(generator, neighbour[i], target);
            if (d < left) {
                left = d;
                at = neighbour[i];
            }
        }
        if (at == from) {
            break;
        }
    }
    return at;
}

// A child that may be taken, which the caller finds out.
static bool make_child(const struct archive *archive, const struct member *const *elite,
                       size_t count, struct stats_rng *rng, struct strategy_choice *ret)
{
    const struct generator *generator = archive->view->generator;
    const struct member *first = draw(elite, count, rng);
    double coin = stats_rng_unit(rng);
    size_t at = first->point;
    ret->parent = first->candidate;
    if (coin < CROSSOVER && count > 1) {
        const struct member *second = draw(elite, count, rng);
        ret->point = mix(generator, at, second->point, rng);
        return !archive->taken[ret->point];
    }
    if (coin < CROSSOVER + TWO_STEPS) {
        size_t neighbour[NEIGHBOUR_MAX];
        size_t n = generator->ops->neighbours(generator, at, neighbour, NEIGHBOUR_MAX);
        at = n > 0 ? neighbour[stats_rng_below(rng, n)] : at;
    }
    return strategy_neighbour(archive->view, archive->taken, at, rng, &ret->point);
}

static bool choose_child(const struct archive *archive, uint64_t slot, struct strategy_choice *ret)
{
    const struct member *elite[2 * CELLS];
    size_t count = elites(archive, slot, elite), children = 0;
    struct stats_rng rng;
    stats_rng_init(&rng, archive->view->seed ^ STREAM_CHILD, slot);
    for (size_t try = 0; try < TRIES && children < CHILDREN && count > 0; try++) {
        struct strategy_choice child;
        if (!make_child(archive, elite, count, &rng, &child)) {
            continue;
        }
        unsigned island = island_of(slot);
        unsigned cell = position_cell(archive->view->generator, child.point, island);
        bool occupied = archive->occupied[island][cell];
        if (children == 0 || !occupied) {
            *ret = child;
        }
        children++;
        if (!occupied) {
            break;
        }
    }
    return children > 0;
}

static void occupy(struct archive *archive, uint64_t candidate, size_t point)
{
    unsigned island = island_of(candidate);
    archive->occupied[island][position_cell(archive->view->generator, point, island)] = true;
}

static size_t choose(const struct strategy_view *view, size_t want, struct strategy_choice *out)
{
    struct archive archive;
    size_t count = 0, point;
    uint64_t made = strategy_proposed(view);
    archive_init(&archive, view);
    archive.taken = strategy_taken(view);
    for (uint64_t id = 1; id <= view->run_state->candidate_count; id++) {
        if (strategy_point(view, id, &point)) {
            occupy(&archive, id, point);
        }
    }
    for (; count < want; count++) {
        uint64_t slot = view->run_state->candidate_count + count + 1;
        if (made + count < START || strategy_uniform(view, STREAM_COIN, slot) < EXPLORE ||
            !choose_child(&archive, slot, &out[count])) {
            out[count].parent = 0;
            if (!strategy_random(view, archive.taken, slot, &out[count].point)) {
                break;
            }
        }
        archive.taken[out[count].point] = true;
        occupy(&archive, slot, out[count].point);
    }
    archive_release(&archive);
    return count;
}

// An elite of the slot's island; with probability EXPLORE the newest that failed, to be repaired,
// or the baseline.
static uint64_t parent(const struct strategy_view *view, uint64_t slot)
{
    struct archive archive;
    uint64_t ret = view->visible;
    archive_init(&archive, view);
    const struct member *elite[2 * CELLS];
    size_t count = elites(&archive, slot, elite);
    struct stats_rng rng;
    stats_rng_init(&rng, view->seed ^ STREAM_CHILD, slot);
    if (count > 0 && strategy_uniform(view, STREAM_COIN, slot) >= EXPLORE) {
        ret = draw(elite, count, &rng)->candidate;
    } else {
        while (ret > 0 && !strategy_failed(view, ret)) {
            ret--;
        }
    }
    archive_release(&archive);
    return ret;
}

const struct strategy strategy_islands = {
    .name = "islands",
    .help = "families that rarely mix, each with a best of every behaviour",
    .choose = choose,
    .parent = parent,
};
