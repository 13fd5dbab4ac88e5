// The strategy `islands`: an evolutionary search for quality and diversity (MAP-Elites) in a few
// separate populations, the islands.
//
// Candidates are assigned to ISLANDS islands in turns: BLOCK candidates to one, the next BLOCK to
// the next. The archive of an island has one cell for each behaviour, and a cell holds its elite:
// the best candidate of this behaviour that was measured and correct. Behaviour is what the
// compiler reports of the code: registers, shared memory and occupancy on a GPU; instructions,
// vector instructions of the innermost loops and spills on a CPU. Where the compiler reports
// nothing, behaviour is the point's position on three axes, which differ from island to island.
//
// A slot belongs to an island, and its candidate is a child of that island's elites. It is a
// neighbour of one elite, with probability TWO_STEPS a neighbour's neighbour, and with probability
// CROSSOVER a mixture of two elites. Better elites have more children. Of CHILDREN such children
// one is preferred whose position is in a cell in which the island has proposed nothing yet.
//
// Every EPOCH slots the MIGRANTS best elites of the next island become parents on this island too,
// so that good candidates spread over all islands, but slowly. Random points go to the first START
// slots, to others with probability EXPLORE, and to those whose parents have no free children. So
// the search can neither get stuck nor leave a point out for ever.
//
// MAP-Elites: Mouret and Clune 2015, "Illuminating search spaces by mapping elites". Islands of
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
#define BLOCK 4 // candidates that a language model is asked for at a time
#define EPOCH 24
#define MIGRANTS 2
#define TWO_STEPS 0.2
#define CROSSOVER 0.2
#define PRESSURE 6 // the parent is elite number u^PRESSURE * elites, with u uniform from 0 to 1
#define CHILDREN 4 // compared for one slot
#define TRIES 16   // attempts at making these children
#define WALK 64    // steps from one parent towards a mixture
#define NEIGHBOUR_MAX 128
#define CELLS 512         // of an island's archive
#define POSITION_CELLS 27 // three axes, each cut into thirds
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
    struct member *member; // best first; owned
    size_t count;
    bool *taken; // points that were proposed; owned; NULL while a parent is chosen
    bool occupied[ISLANDS][POSITION_CELLS]; // the island has proposed a point there
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

// 0 below least, 1 from least, 2 from twice that, 3 from four times that, up to most.
static unsigned octave(double x, double least, unsigned most)
{
    return x >= least ? 1 + clamp(log2(x / least), most - 1) : 0;
}

// The sum of one or two features of the compiler. NaN when it reports neither.
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

// Which of the POSITION_CELLS the point is in: on each of three axes, which third.
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

// The cell of the archive. The first CELLS / 2 are for candidates with features of the compiler,
// the others for those without.
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
    if (view->generator->axis_count == 0) { // every candidate is a cell of its own
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

// Fills in the visible candidates that were measured and correct. Duplicates, by source or by
// object code, are left out.
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
            (view->generator->asks || strategy_point(view, id, &member->point))) {
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

// The parents that a slot may have, best first: the elites of its island, and the migrants that had
// arrived there by the end of the last epoch. ret has room for 2 * CELLS. Returns how many there
// are.
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

// The point that takes each parameter from the first or the second parent at random. Not every
// mixture is a point, so this walks from the first parent over neighbours that come ever closer to
// the mixture, and returns the closest point that it reaches.
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

// Draws parents and makes one child. False when the child is taken already.
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

// Makes up to CHILDREN children for the slot and chooses among them. False when none is free.
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

// Notes that the candidate's island has proposed something at the point's position.
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

// An elite of the slot's island. With probability EXPLORE it is the newest candidate that failed,
// so that it is repaired, or the baseline when none failed. Before there are any it is one that the
// user has given.
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
    return ret == 0 && count == 0 ? strategy_given(view, slot) : ret;
}

const struct strategy strategy_islands = {
    .name = "islands",
    .help = "families that rarely mix, each with a best of every behaviour",
    .choose = choose,
    .parent = parent,
};
