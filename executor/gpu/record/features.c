#include "executor/gpu/record/features.h"
#include "executor/fact_list.h"
#include "executor/gpu/compile/features.h"
#include "executor/gpu/program/recording.h"
#include <math.h>
#include <stdlib.h>

// What is added up over the nodes of a case.
struct sums {
    double kernels, fills, copies, blocks, threads, smem_most, threads_most, moved;
    double waves; // of blocks over the multiprocessors, one block on each at a time
};

static void add_kernel(struct sums *sums, const struct recorded_node *node, double multiprocessors)
{
    double blocks = (double)node->shape[0] * (double)node->shape[1] * (double)node->shape[2];
    double threads = (double)node->shape[3] * (double)node->shape[4] * (double)node->shape[5];

    sums->kernels++;
    sums->blocks += blocks;
    sums->threads += blocks * threads;
    sums->smem_most = fmax(sums->smem_most, (double)node->smem);
    sums->threads_most = fmax(sums->threads_most, threads);
    sums->waves += multiprocessors > 0 ? ceil(blocks / multiprocessors) : 0;
}

static struct sums sums_of(const struct recorded_case *of, double multiprocessors)
{
    struct sums sums = {.kernels = 0};

    for (size_t i = 0; i < of->nodes_count; i++) {
        const struct recorded_node *node = &of->nodes[i];

        if (node->kind == RECORDED_KERNEL) {
            add_kernel(&sums, node, multiprocessors);
            continue;
        }
        sums.fills += node->kind == RECORDED_FILL;
        sums.copies += node->kind == RECORDED_COPY;
        sums.moved += (double)node->bytes;
    }
    return sums;
}

// The launches of a case's kernels, which the caller frees. *ret_largest is the one with the most
// threads, NULL when there is none.
static struct cuda_form *forms_of(const struct recorded_case *of, size_t *ret_count,
                                  const struct recorded_node **ret_largest)
{
    struct cuda_form *form = xcalloc(of->nodes_count + 1, sizeof(*form));
    const struct recorded_node **node = xcalloc(of->nodes_count + 1, sizeof(*node));
    size_t count = 0;

    for (size_t i = 0; i < of->nodes_count; i++) {
        struct sums sums = {.kernels = 0};

        if (of->nodes[i].kind == RECORDED_KERNEL) {
            add_kernel(&sums, &of->nodes[i], 0);
            node[count] = &of->nodes[i];
            form[count++] = (struct cuda_form){
                .blocks = sums.blocks, .threads = sums.threads_most, .smem = sums.smem_most};
        }
    }
    *ret_count = count;
    *ret_largest = node[cuda_largest_form(form, count)];
    free(node);
    return form;
}

const struct recorded_node *record_largest_kernel(const struct recorded_case *of)
{
    const struct recorded_node *largest;
    size_t count;

    free(forms_of(of, &count, &largest));
    return largest;
}

// What the largest kernel takes, and how it fits the device, by the names that they have of sealed
// sources.
static void add_forms(const struct cuda_recording *recording, const struct recorded_case *of,
                      const struct problem *problem, const struct shape_case *shape,
                      const struct fact *facts, size_t facts_count, struct fact **list,
                      size_t *count)
{
    const struct recorded_node *largest;
    size_t form_count;
    struct cuda_form *form = forms_of(of, &form_count, &largest);
    struct cubin_usage usage = {.registers = 0};
    struct err ignored = ERR_INIT;

    if (largest && cubin_usage(&recording->images[largest->image].data, largest->symbol, &usage,
                               &ignored) == 0) {
        cuda_features_of_forms(&usage, form, form_count, problem, shape, facts, facts_count, list,
                               count);
    }
    free(form);
}

void record_features(const struct cuda_recording *recording, const struct problem *problem,
                     const struct shape_case *shape, const struct fact *facts, size_t facts_count,
                     struct fact **list, size_t *count)
{
    const struct recorded_case *of = recording_find(recording, problem, shape);
    double image_bytes = 0, own_code = 0, memory = 0, kept = 0;

    if (!of) {
        return;
    }
    struct sums sums = sums_of(of, fact_list_find(facts, facts_count, "multiprocessors"));
    for (size_t i = 0; i < recording->images_count; i++) {
        uint64_t code = 0, constants = 0;
        struct err ignored = ERR_INIT;

        image_bytes += (double)recording->images[i].data.len;
        if (cubin_sizes(&recording->images[i].data, &code, &constants, &ignored) == 0) {
            own_code += (double)code;
        }
    }
    for (size_t i = 0; i < of->blocks_count; i++) {
        memory += (double)of->blocks[i].bytes;
        kept += of->blocks[i].kept ? (double)of->blocks[i].bytes : 0;
    }
    const struct {
        const char *name;
        double value;
    } row[] = {
        {"recorded_kernels", sums.kernels},
        {"recorded_fills", sums.fills},
        {"recorded_copies", sums.copies},
        {"recorded_moved_bytes", sums.moved},
        {"recorded_blocks", sums.blocks},
        {"recorded_threads", sums.threads},
        {"recorded_block_threads", sums.threads_most},
        {"recorded_smem_bytes", sums.smem_most},
        {"recorded_waves", sums.waves},
        {"recorded_memory_bytes", memory},
        {"recorded_kept_bytes", kept},
        {"recorded_images", (double)recording->images_count},
        {"recorded_image_bytes", image_bytes},
        {"code_bytes", own_code},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        fact_list_add(list, count, row[i].name, row[i].value);
    }
    add_forms(recording, of, problem, shape, facts, facts_count, list, count);
}
