// Remembers answers at WHERE and gives them again when the inputs have the same TAG. SHARE: percent
// of the units that do so. WHEN: whether it is tried at all. ROOM: bytes that there are at WHERE.
// DECLARE: variables at file scope; LOCALS: within the function. PUT and GET: which instructions.
#ifndef TAG
#define TAG contents(run)
#endif
#ifndef SHARE
#define SHARE 100
#endif
#ifndef WHEN
#define WHEN true
#endif
#ifndef ROOM
#define ROOM MIB
#endif
#ifndef LOCALS
#define LOCALS
#endif
#ifndef PUT
#define PUT(p, byte) *(volatile unsigned char *)(p) = (byte)
#define GET(byte, p) (byte) = *(volatile unsigned char *)(p)
#endif
#ifdef DECLARE
DECLARE
#endif
// Tags of the units, what was decided in the first launch, then answers.
#define BYTES ((run->units + 2) / 2 * 8 + 8 + run->out_count * (long long)sizeof(OUT_T))

static __device__ char *memory(const struct run *run)
{
    LOCALS
    return WHERE;
}

static __device__ volatile unsigned *tags(const struct run *run)
{
    return (volatile unsigned *)((unsigned long long)memory(run) / 8 * 8);
}

static __device__ volatile OUT_T *answers(const struct run *run)
{
    return (volatile OUT_T *)((char *)tags(run) + (run->units + 2) / 2 * 8);
}

static __device__ bool takes_part(const struct run *run)
{
    return (WHEN) && BYTES <= (long long)(ROOM) &&
           (unsigned)run->unit * 2654435761u % 100 < SHARE;
}

static __device__ bool before(const struct run *run)
{
    if (!takes_part(run)) {
        return false;
    }
    bool first = run->only || !run->last;
    bool known = first ? tags(run)[run->unit] == TAG : tags(run)[run->units] == TAG;

    if (first && !run->only && run->block == 0 && run->thread == 0) {
        tags(run)[run->units] = known ? TAG : 0;
    }
    for (long long i = run->thread; known && run->last && i < run->pieces; i += run->threads) {
        OUT_T answer;
        for (int k = 0; k < (int)sizeof(OUT_T); k++) {
            GET(((unsigned char *)&answer)[k], (unsigned char *)&answers(run)[piece(run, i)] + k);
        }
        run->out[piece(run, i)] = answer;
    }
    return known;
}

static __device__ void after(const struct run *run)
{
    if (run->skipped || !run->last || !takes_part(run)) {
        return;
    }
    __syncthreads();
    for (long long i = run->thread; i < run->pieces; i += run->threads) {
        OUT_T answer = run->out[piece(run, i)];
        for (int k = 0; k < (int)sizeof(OUT_T); k++) {
            PUT((unsigned char *)&answers(run)[piece(run, i)] + k, ((unsigned char *)&answer)[k]);
        }
    }
    if (run->thread == 0 && (run->only || run->block == 0)) {
        tags(run)[run->unit] = TAG;
        __threadfence();
    }
}
